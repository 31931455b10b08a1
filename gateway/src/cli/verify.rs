//! `oap-memory verify`

use super::trust::{Trust, resolved};
use super::{CliError, Global, output};
use crate::client::grantee::signers;
use crate::transfer::bundle_file;
use oap_identity::Did;
use oap_memory::bundle::{Header, Line, MAX_LINE, Reader};
use oap_memory::evidence::{self, VerifiedItem};
use oap_memory::lines::lines;
use oap_memory::receipt;
use serde_json::json;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Check an answer, an item or a bundle offline
#[derive(clap::Args)]
#[command(after_help = "Examples:
  oap-memory verify answer.json --did-document did.json
  oap-memory verify answer.json                    (resolves the owner's DID)
  oap-memory verify memory.bundle --trust-bundle   (with the keys that the bundle brings)

An answer is what `oap-memory query --save` keeps; an item is one of its items; a bundle is what `oap-memory export`
writes. Exit status 4 when a proof does not hold.")]
pub(super) struct Verify {
    /// The answer, item or bundle; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    trust: Trust,
    /// Of encrypted bundles: your age identity
    #[arg(long, value_name = "FILE")]
    identity: Option<PathBuf>,
}

impl Verify {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        if self.file != Path::new("-") && is_bundle(&self.file, self.identity.as_deref())? {
            return self.bundle(global).await;
        }
        let value = output::read_json(&self.file)?;
        let documents = resolved(global, &self.trust.did_document, signers(&value)).await?;
        let refused = |e: evidence::EvidenceError| CliError::Proof(e.to_string());
        let items = if value.get("items").is_some() {
            evidence::answer(&value, &documents).map_err(refused)?.items
        } else {
            vec![evidence::item(&value, &documents).map_err(refused)?]
        };
        let items =
            items.into_iter().map(VerifiedItem::proved).collect::<Result<Vec<_>, _>>().map_err(refused)?;
        let explained: Vec<Vec<String>> = items.iter().map(evidence::explain).collect();
        let owners: Vec<&Did> = documents.keys().collect();
        let report =
            json!({"verified": true, "owner": owners.first(), "signers": owners, "items": explained});
        output::print(global.json, &report, |_| {
            let mut text = String::new();
            for lines in &explained {
                text.push_str(&lines.join("\n  "));
                text.push('\n');
            }
            let owners: Vec<&str> = owners.iter().map(|did| did.as_str()).collect();
            text + &format!("{} item(s) of {} hold.", items.len(), owners.join(", "))
        });
        Ok(())
    }

    async fn bundle(&self, global: &Global) -> Result<(), CliError> {
        let failed = |e: std::io::Error| CliError::File(self.file.clone(), e.to_string());
        let open = || bundle_file::open(&self.file, self.identity.as_deref()).map_err(failed);
        let header = header(open()?)?;
        let (_, known) = self.trust.documents(global, &header).await?;
        let mut bundle = Reader::default();
        let (mut items, mut receipts, mut wrong) = (0u64, 0u64, Vec::new());
        lines(open()?, MAX_LINE, |number, line| {
            let found = match line {
                Some(line) => bundle.read(line).map_err(|e| e.to_string()),
                None => {
                    bundle.skip();
                    Err("the line is too long".to_owned())
                }
            };
            let checked = found.and_then(|line| match line {
                Line::Item(item) => {
                    items += 1;
                    let item = evidence::item(&item.item, &known).and_then(VerifiedItem::proved);
                    item.map(drop).map_err(|e| e.to_string())
                }
                Line::Receipt { receipt } => {
                    receipts += 1;
                    receipt::verify(&receipt, &known).map(drop).map_err(|e| e.to_string())
                }
                _ => Ok(()),
            });
            if let Err(reason) = checked {
                wrong.push(json!({"line": number, "reason": reason}));
            }
            ControlFlow::Continue(())
        })
        .map_err(failed)?;
        let whole = bundle.finish(&known).map_err(|e| e.to_string());
        let verified = wrong.is_empty() && whole.is_ok();
        let brought =
            if self.trust.trust_bundle { Some("checked with the keys that the bundle brings") } else { None };
        let report = json!({
            "verified": verified, "principal": header.principal, "projected": header.projected, "items": items,
            "receipts": receipts, "wrong": wrong, "whole": whole.is_ok(), "why": whole.as_ref().err(), "note": brought,
        });
        output::print(global.json, &report, |report| {
            let mut text = format!("{items} items and {receipts} receipts of {}", header.principal);
            if let Some(projection) = &header.projected {
                text.push_str(&format!(
                    ", as {} shows them at level {} to {}",
                    projection.profile,
                    projection.trust_level.get(),
                    projection.grantee
                ));
            }
            for line in report["wrong"].as_array().into_iter().flatten() {
                text.push_str(&format!("\nline {}: {}", line["line"], output::text(line, "/reason")));
            }
            if verified {
                text.push_str(
                    "\nEvery signature, disclosure, chain and receipt holds, and nothing is missing.",
                );
            }
            if let Some(brought) = brought {
                text.push_str(&format!("\nnote: {brought}"));
            }
            text
        });
        match whole {
            Err(why) => Err(CliError::Proof(format!("the bundle as a whole: {why}"))),
            Ok(_) if !verified => Err(CliError::Proof(format!("{} line(s)", wrong.len()))),
            Ok(_) => Ok(()),
        }
    }
}

/// Whether a file is a bundle.
pub(super) fn is_bundle(path: &Path, identity: Option<&Path>) -> Result<bool, CliError> {
    let failed = |e: std::io::Error| CliError::File(path.to_owned(), e.to_string());
    let reader = bundle_file::open(path, identity).map_err(failed)?;
    let (head, _) = bundle_file::peek(reader, 64 << 10).map_err(failed)?;
    Ok(String::from_utf8_lossy(&head).contains("\"format\":\"oap-memory-bundle/"))
}

fn header(reader: impl std::io::Read) -> Result<Header, CliError> {
    let mut header = Err("it is empty".to_owned());
    let read = lines(reader, MAX_LINE, |_, line| {
        header = Reader::default().read(line.unwrap_or_default()).map_err(|e| e.to_string());
        ControlFlow::Break(())
    });
    read.map_err(|e| CliError::Other(e.to_string()))?;
    match header {
        Ok(Line::Header(header)) => Ok(header),
        Ok(_) => Err(CliError::Proof("a bundle begins with its header".to_owned())),
        Err(error) => Err(CliError::Proof(error)),
    }
}
