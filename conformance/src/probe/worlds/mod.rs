//! Worlds brought to a gateway: filled through its owner's side, asked as every grantee, compared with the model.

mod ask;
mod beside;
mod bounds;
mod exchanged;
mod fill;
mod fresh;
mod gates;
mod live;
mod pair;
mod shrink;

pub(super) use ask::{ask, ask_all, explain};
pub(super) use beside::{export, exports, over_time, owner_reads, strangers, vectors};
pub(super) use bounds::at_bounds;
pub(super) use fill::{Lived, Through, canaries_of, issued_below};
pub(super) use gates::behind_gates;
pub(super) use live::{revoke, steps};
pub(super) use pair::pair;
pub(super) use shrink::setting;

use super::{Context, Failed, judged};
use crate::model::Difference;
use crate::world::History;
use serde_json::Value;
use shrink::{Shown, lived_through, shortest};
use std::fmt;

/// Findings of a run that are told; more say little more.
const TOLD: usize = 5;

/// Where a gateway did something else than the model says.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Finding {
    /// The world's seed.
    pub(super) seed: u64,
    /// The number of the grant in the world, with its level and profile.
    pub(super) grant: String,
    /// What was asked.
    pub(super) query: Value,
    /// Where, what must be there and what is.
    pub(super) difference: Difference,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "world {}, {}, asked {}: {}", self.seed, self.grant, self.query, self.difference)
    }
}

/// Fails where something was found.
pub(super) fn judge(findings: &[Finding]) -> Result<(), Failed> {
    judged::note();
    if findings.is_empty() {
        return Ok(());
    }
    let told: Vec<String> = findings.iter().take(TOLD).map(Finding::to_string).collect();
    let more = findings.len().saturating_sub(TOLD);
    let rest = if more > 0 { format!("\n    and {more} more") } else { String::new() };
    Err(Failed::Wrong(told.join("\n    ") + &rest))
}

/// Lives through a history; fails with the shortest one that shows what it shows, as a script.
///
/// # Errors
/// What was found; [`Failed::Skipped`] where the keys were not rotated, or the run is over.
pub(super) async fn live(context: &Context<'_>, manifest: &Value, history: &History) -> Result<(), Failed> {
    let found = match lived_through(context, manifest, history).await? {
        Shown::Found(last, findings) => (last, findings),
        Shown::Refused(why) => return Err(Failed::Skipped(format!("the owner's side: {why}"))),
        Shown::Nothing => return Ok(()),
    };
    let (history, findings) = shortest(context, manifest, history, found).await;
    let Err(Failed::Wrong(why)) = judge(&findings) else { return Ok(()) };
    let steps = history.steps.len();
    Err(Failed::Wrong(format!(
        "{why}\n    shown by {steps} steps (probe --replay FILE):\n{}",
        history.script()
    )))
}
