//! `oap-memory conformance`

use super::probe::Http;
use super::trust::resolved;
use super::{CliError, Global, output};
use crate::api::standing as api;
use crate::api::standing::AttestRequest;
use crate::system::clock::{SystemClock, SystemRandom};
use crate::system::config::Config;
use oap_conformance::probe::{self, Limits};
use oap_conformance::receipt;
use oap_identity::{Clock, Did};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Sign, check and witness Conformance Receipts
#[derive(clap::Subcommand)]
#[command(after_help = "Examples:
  oap-memory conformance attest --report report.json --level L0 --level L1
  oap-memory conformance verify receipt.json
  oap-memory conformance witness receipt.json")]
pub(super) enum Conformance {
    /// Sign what a run of the protocol's own suite showed, and publish it
    #[command(after_help = "Examples:
  oap-memory conformance attest --candidate --level L0 --level L1
  OAP_TARGET=https://memory.example OAP_REPORT=json node runner.js > report.json
  oap-memory conformance attest --report report.json --level L0 --level L1

The suite makes its adversarial probes only where the gateway publishes a claim: so first a candidate, which has no results
and ends after an hour. Every probe that a level needs must have run and passed. A receipt holds for ninety days.")]
    Attest(Attest),
    /// Check a receipt: signatures, time, results, witnesses
    #[command(after_help = "Examples:
  oap-memory conformance verify receipt.json
  oap-memory conformance verify receipt.json --did-document did.json
  oap-memory conformance verify receipt.json --live

Exit status 4 when it does not hold.")]
    Verify(Verify),
    /// Sign another gateway's receipt as its witness: you checked it and ran the suite against that gateway
    Witness {
        /// The receipt
        #[arg(value_name = "FILE")]
        receipt: PathBuf,
    },
}

#[derive(clap::Args)]
pub(super) struct Attest {
    /// The suite's report, made with OAP_REPORT=json
    #[arg(long, value_name = "FILE", required_unless_present = "candidate")]
    report: Option<PathBuf>,
    /// Publish a claim without results for an hour, so that the suite makes every probe
    #[arg(long, conflicts_with = "report")]
    candidate: bool,
    /// L0, L1 or L1-NC; for a candidate L3 too, to see its probes; may be given several times
    #[arg(long, required = true, value_parser = ["L0", "L1", "L1-NC", "L3"])]
    level: Vec<String>,
}

#[derive(clap::Args)]
pub(super) struct Verify {
    /// The receipt
    #[arg(value_name = "FILE")]
    receipt: PathBuf,
    /// A DID document to check with, instead of the published one; may be given several times
    #[arg(long, value_name = "FILE")]
    did_document: Vec<PathBuf>,
    /// Ask the gateway too: this program's public probes are made against it
    #[arg(long)]
    live: bool,
}

impl Conformance {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        match self {
            Self::Attest(attest) => {
                let report = attest.report.as_deref().map(output::read_json).transpose()?;
                let request = AttestRequest { levels: attest.level, report };
                let receipt = global.owner().await?.send::<api::Attest>((), &request).await?;
                output::print(global.json, &receipt, output::pretty);
                Ok(())
            }
            Self::Verify(verify) => verify.run(global).await,
            Self::Witness { receipt } => {
                let receipt = output::read_json(&receipt)?;
                let signed = global.owner().await?.send::<api::Witness>((), &receipt).await?;
                output::print(global.json, &signed, output::pretty);
                Ok(())
            }
        }
    }
}

impl Verify {
    async fn run(self, global: &Global) -> Result<(), CliError> {
        let receipt = output::read_json(&self.receipt)?;
        let proof = |e: receipt::ReceiptError| CliError::Proof(e.to_string());
        let parse = |did: &Value| {
            let did = did.as_str().unwrap_or_default();
            did.parse::<Did>().map_err(|_| CliError::Proof(format!("{did:?} is no DID")))
        };
        let implementation = parse(&receipt["implementation"]["did"])?;
        let peers = receipt["peer_witnesses"].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut dids = vec![implementation.clone()];
        for peer in peers {
            dids.push(parse(&peer["witness_did"])?);
        }
        let known = resolved(global, &self.did_document, dids.into_iter().collect()).await?;
        let document = known.get(&implementation).ok_or_else(|| CliError::Proof("no DID document".into()))?;
        let witnesses: Vec<_> = known.values().map(|document| (**document).clone()).collect();
        let held = receipt::check(&receipt, document, &witnesses, SystemClock.now()).map_err(proof)?;
        let mut report = json!({"verified": true, "levels": held.levels, "not_after": held.not_after,
            "witnesses": held.witnesses});
        if self.live {
            report["live"] = live(global, &receipt).await?;
        }
        output::print(global.json, &report, |r| {
            format!("{} until {}, {} witness(es).", held.levels.join(", "), held.not_after, held.witnesses)
                + if r.get("live").is_some() { " The gateway passes the public probes now." } else { "" }
        });
        Ok(())
    }
}

/// The public probes against the receipt's target.
async fn live(global: &Global, receipt: &Value) -> Result<Value, CliError> {
    let home = global.home();
    let config = Config::load(home.path(), &global.flags())?;
    let origin = receipt["target"]["uri"].as_str().unwrap_or_default().trim_end_matches('/').to_owned();
    let wire = Http::to(&origin, &config, &home)?;
    let limits = Limits::default();
    let report = probe::run(&origin, &wire, None, &SystemClock, &SystemRandom, limits, &mut |_| {}).await;
    if report.failures().is_empty() {
        return Ok(json!({"requests": report.requests}));
    }
    Err(CliError::Proof(report.text()))
}
