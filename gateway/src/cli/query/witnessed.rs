//! `query --witnesses`: the answer is shown once its receipt is in a log that so many witnesses signed.

use super::Query;
use crate::api::witnesses::ListDemands;
use crate::cli::{CliError, Global};
use oap_client::Prover;
use oap_client::grantee::Session;
use oap_identity::resolve::Resolver;
use oap_identity::{Clock, Did, DidDocument};
use oap_memory::log::checkpoint::witnesses;
use oap_memory::log::inclusion::Known;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long the log is waited for: a tick, and what its witnesses take.
pub const PATIENCE: Duration = Duration::from_secs(180);
/// How often it is looked at meanwhile.
const AGAIN: Duration = Duration::from_secs(5);

/// How many of whose signatures must be there.
pub(super) struct Demanded {
    need: usize,
    of: Vec<Arc<DidDocument>>,
}

impl Query {
    /// Whose signatures count: those of the flags, or those that the home demands of the granter.
    pub(super) async fn demanded(
        &self,
        global: &Global,
        granter: &Did,
        need: u8,
        resolver: &Resolver,
    ) -> Result<Demanded, CliError> {
        let mut named: BTreeSet<Did> = self.witness.iter().cloned().collect();
        if named.is_empty() && self.key.is_none() {
            let list = global.owner().await?.get::<ListDemands>((), &()).await?;
            let demands = list.demands.into_iter().filter(|demand| demand.did == *granter);
            named = demands.flat_map(|demand| demand.of).collect();
        }
        if named.contains(granter) {
            return Err(CliError::Usage(format!(
                "--witness: {granter} is the granter: nobody is the witness of their own log"
            )));
        }
        let need = usize::from(need);
        if named.len() < need {
            return Err(CliError::Usage(format!(
                "--witnesses: {} witness(es) are named and {need} must sign: say --witness DID, or `oap-memory witness demand`",
                named.len()
            )));
        }
        let mut of = Vec::new();
        for did in named {
            let document = resolver.resolve(&did).await;
            of.push(document.map_err(|e| CliError::Other(format!("--witness {did}: {e}")))?);
        }
        Ok(Demanded { need, of })
    }
}

impl Demanded {
    /// Waits until the receipt of an answer is in the log, and the log is signed.
    pub(super) async fn wait(
        &self,
        session: &Session<'_>,
        prover: &dyn Prover,
        answer: &Value,
        clock: &dyn Clock,
    ) -> Result<(), CliError> {
        let nothing = || CliError::Proof("the answer has no receipt that could be in a log".to_owned());
        let receipt = Known::of(&answer["receipt"]).ok_or_else(nothing)?;
        let until = Instant::now() + PATIENCE;
        let mut signed = None;
        loop {
            if let Some(shown) = session.witnessed(prover, &receipt).await? {
                let count = witnesses(&shown.note, &self.of, clock.now()).len();
                if count >= self.need {
                    return Ok(());
                }
                signed = Some(count);
            }
            if Instant::now() + AGAIN > until {
                break;
            }
            sleep(AGAIN).await;
        }
        Err(CliError::Proof(match signed {
            None => "the granter's log does not have the receipt of this answer; nothing of it is shown"
                .to_owned(),
            Some(count) => format!(
                "the granter's log is signed by {count} of {} witness(es), and {} are demanded: whether others are shown the same is not \
                 known, and nothing of the answer is shown",
                self.of.len(),
                self.need
            ),
        }))
    }
}

impl fmt::Display for Demanded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "its receipt is in a log that at least {} of {} witness(es) signed",
            self.need,
            self.of.len()
        )
    }
}
