//! `oap-memory conformance`

use super::probe::Http;
use super::trust::resolved;
use super::{CliError, Global, output};
use crate::api::standing as api;
use crate::api::standing::AttestRequest;
use crate::system::clock::{SystemClock, SystemRandom};
use crate::system::config::Config;
use oap_conformance::probe::{self, Limits};
use oap_conformance::receipt::{self, ConformanceReceipt, Conformant};
use oap_identity::Clock;
use serde::Serialize;
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
                let request = AttestRequest { levels: attest.level, report: report.map(Into::into) };
                let receipt = global.owner().await?.send::<api::Attest>((), &request).await?;
                output::print(global.json, &receipt, output::pretty);
                Ok(())
            }
            Self::Verify(verify) => verify.run(global).await,
            Self::Witness { receipt } => {
                let receipt = output::read_json(&receipt)?;
                let signed = global.owner().await?.send::<api::Witness>((), &receipt.into()).await?;
                output::print(global.json, &signed, output::pretty);
                Ok(())
            }
        }
    }
}

impl Verify {
    async fn run(self, global: &Global) -> Result<(), CliError> {
        let whole = output::read_json(&self.receipt)?;
        let proof = |e: receipt::ReceiptError| CliError::Proof(e.to_string());
        let receipt: ConformanceReceipt =
            oap_identity::json::from_value(whole.clone()).map_err(|e| proof(e.into()))?;
        let implementation = &receipt.implementation.did;
        let peers = receipt.peer_witnesses.iter().map(|peer| &peer.witness_did);
        let dids = peers.chain([implementation]).cloned().collect();
        let known = resolved(global, &self.did_document, dids).await?;
        let document = known.get(implementation).ok_or_else(|| CliError::Proof("no DID document".into()))?;
        let witnesses: Vec<_> = known.values().map(|document| (**document).clone()).collect();
        let held = receipt::check(&whole, document, &witnesses, SystemClock.now()).map_err(proof)?;
        let live = match self.live {
            true => Some(live(global, &receipt).await?),
            false => None,
        };
        let report = Held { verified: true, held, live };
        output::print(global.json, &report, |Held { held, live, .. }| {
            format!("{} until {}, {} witness(es).", held.levels.join(", "), held.not_after, held.witnesses)
                + if live.is_some() { " The gateway passes the public probes now." } else { "" }
        });
        Ok(())
    }
}

/// A receipt that holds.
#[derive(Serialize)]
struct Held {
    verified: bool,
    #[serde(flatten)]
    held: Conformant,
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<Live>,
}

/// The public probes passed.
#[derive(Serialize)]
struct Live {
    requests: usize,
}

/// The public probes against the receipt's target.
async fn live(global: &Global, receipt: &ConformanceReceipt) -> Result<Live, CliError> {
    let home = global.home();
    let config = Config::load(home.path(), &global.flags())?;
    let origin = receipt.target.uri.trim_end_matches('/');
    let wire = Http::to(origin, &config, &home)?;
    let limits = Limits::default();
    let report = probe::run(origin, &wire, None, &SystemClock, &SystemRandom, limits, &mut |_| {}).await;
    if report.failures().is_empty() {
        return Ok(Live { requests: report.requests });
    }
    Err(CliError::Proof(report.text()))
}
