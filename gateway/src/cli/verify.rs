//! `oap-memory verify`

use super::{CliError, Global, output};
use crate::ambient::SystemClock;
use crate::config::Config;
use crate::home::resolver;
use oap_identity::{Did, DidDocument};
use oap_memory::evidence;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;

/// Check an answer or an item offline
#[derive(clap::Args)]
#[command(after_help = "Examples:
  oap-memory verify answer.json --did-document did.json
  oap-memory verify answer.json                    (resolves the owner's DID)

An answer is what `oap-memory query --save` keeps; an item is one of its items.")]
pub(super) struct Verify {
    /// The answer or item; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The owner's DID document; resolved if absent
    #[arg(long, value_name = "FILE")]
    did_document: Option<PathBuf>,
}

impl Verify {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let value = output::read_json(&self.file)?;
        let document = self.document(global, &value).await?;
        let refused = |e: evidence::EvidenceError| CliError::Proof(e.to_string());
        let items = if value.get("items").is_some() {
            evidence::answer(&value, &document).map_err(refused)?.items
        } else {
            vec![evidence::item(&value, &document).map_err(refused)?]
        };
        let explained: Vec<Vec<String>> = items.iter().map(evidence::explain).collect();
        let report = json!({"verified": true, "owner": document.id(), "items": explained});
        output::print(global.json, &report, |_| {
            let mut text = String::new();
            for lines in &explained {
                text.push_str(&lines.join("\n  "));
                text.push('\n');
            }
            text + &format!("{} item(s) of {} hold.", items.len(), document.id())
        });
        Ok(())
    }

    async fn document(&self, global: &Global, value: &Value) -> Result<Arc<DidDocument>, CliError> {
        let owner = ["/receipt/principal_did", "/integrity/capture_receipt/principal_did"]
            .iter()
            .find_map(|pointer| value.pointer(pointer)?.as_str()?.parse::<Did>().ok())
            .ok_or_else(|| CliError::Proof("it names no principal".to_owned()))?;
        match &self.did_document {
            Some(path) => {
                let bytes = output::read(path)?;
                let document = DidDocument::parse(&bytes, &owner);
                Ok(Arc::new(document.map_err(|e| CliError::File(path.clone(), e.to_string()))?))
            }
            None => {
                let config = Config::load(global.home().path(), &global.flags())?;
                let resolver = resolver(&config, Arc::new(SystemClock))?;
                Ok(resolver.resolve(&owner).await.map_err(crate::client::ClientError::from)?)
            }
        }
    }
}
