//! `oap-memory query`

use super::output::OutFile;
use super::{CliError, Global, output, values};
use crate::ambient::SystemClock;
use crate::client::grantee::Remote;
use crate::client::owner::http_client;
use crate::config::Config;
use crate::home::resolver;
use oap_memory::item::Kind;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;

/// Query another gateway as a grantee
#[derive(clap::Args)]
#[command(after_help = "Examples:
  oap-memory query https://user.example --grant grant.json \"preferred meeting times\"
  oap-memory query https://user.example --grant grant.json --max-results 50 --save answer.json
  oap-memory query https://user.example --grant grant.json --export slice.bundle
  oap-memory query https://localhost:8443 --grant grant.json --allow-local-dids --trust-ca ca.pem \"budget\"

The home is that of the grantee: its keys prove who asks. Every answer is checked before it is shown.")]
pub(super) struct Query {
    /// Where the granter's gateway is
    #[arg(value_name = "URL", value_parser = values::url)]
    gateway: String,
    /// The grant, as its granter handed it over
    #[arg(long, value_name = "FILE")]
    grant: PathBuf,
    /// The grants that it was made from, first one first, where it is a delegated one
    #[arg(long, value_name = "FILE")]
    chain: Vec<PathBuf>,
    /// The question; without one the newest items are listed
    #[arg(value_name = "TEXT", default_value = "")]
    text: String,
    /// At most so many items, 1 to 100
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=100))]
    max_results: u16,
    /// Only items of this kind; may be given several times
    #[arg(long, value_parser = values::kind())]
    kind: Vec<Kind>,
    /// Only items with one of these labels
    #[arg(long, value_parser = values::short)]
    label: Vec<String>,
    /// The purpose, one of the codes that the grant names
    #[arg(long, value_name = "CODE")]
    purpose: Option<String>,
    /// Ask for embeddings
    #[arg(long)]
    include_embeddings: bool,
    /// Go on where an answer ended
    #[arg(long)]
    cursor: Option<String>,
    /// Fetch everything that the grant shows as a bundle instead; the grant must allow exports
    #[arg(long, value_name = "FILE", conflicts_with = "text")]
    export: Option<PathBuf>,
    /// Keep the answer, for `oap-memory verify`
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
}

impl Query {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let home = global.home();
        let config = Config::load(home.path(), &global.flags())?;
        let grantee = config.principal(home.path())?;
        let grant = output::read_json(&self.grant)?;
        let chain = self.chain.iter().map(|path| output::read_json(path)).collect::<Result<Vec<_>, _>>()?;
        let file = self.export.as_ref().or(self.save.as_ref());
        let file = file.map(|path| OutFile::create(path)).transpose()?;
        let client = http_client(&config, &home)?;
        let resolver = Arc::new(resolver(&config, Arc::new(SystemClock))?);
        let mut own = global.owner().await?;
        let remote = Remote::discover(client, resolver, &self.gateway).await?;
        let session = remote.exchange(&mut own, &grant, &chain).await?;
        if let Some(path) = &self.export {
            let bytes = session.export(&mut own).await?;
            if let Some(file) = file {
                file.write(&bytes)?;
            }
            let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
            let done = json!({"file": path, "items": lines.saturating_sub(2)});
            output::print(global.json, &done, |done| {
                format!(
                    "{} items in {}; check it with `verify`",
                    output::text(done, "/items"),
                    path.display()
                )
            });
            return Ok(());
        }
        let checked = session.query(&mut own, &self.body(), &grantee).await?;
        if let Some(file) = file {
            file.write((output::pretty(&checked.answer) + "\n").as_bytes())?;
        }
        output::print(global.json, &checked.answer, answer);
        if !global.json {
            eprintln!(
                "{} item(s) of {}: signature, receipt, disclosures and chains verified",
                checked.verified.items.len(),
                remote.principal()
            );
        }
        Ok(())
    }

    fn body(&self) -> Value {
        let mut body = json!({"query": self.text, "max_results": self.max_results});
        let mut set = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                body[name] = value;
            }
        };
        set("kinds", (!self.kind.is_empty()).then(|| json!(self.kind)));
        set("labels_any", (!self.label.is_empty()).then(|| json!(self.label)));
        set("purpose", self.purpose.as_ref().map(|p| json!(p)));
        set("include_embeddings", self.include_embeddings.then_some(json!(true)));
        set("cursor", self.cursor.as_ref().map(|c| json!(c)));
        body
    }
}

/// What an answer shows to people. Also the demonstration's.
pub(super) fn answer(answer: &Value) -> String {
    let items = answer["items"].as_array().cloned().unwrap_or_default();
    let rows = items.iter().map(|item| {
        vec![
            output::text(item, "/item_id"),
            output::text(item, "/kind"),
            output::text(item, "/relevance"),
            output::text(item, "/epistemic"),
            output::gist(item),
        ]
    });
    let mut text = output::table(&["item", "kind", "relevance", "attitude", "content"], rows);
    if let Some(cursor) = answer["next_cursor"].as_str() {
        text.push_str(&format!("\nmore: --cursor {cursor}"));
    }
    text
}
