//! The shortest history that shows a finding: steps are left out as long as something is still found.

use super::super::Failed;
use super::super::context::Context;
use super::Finding;
use super::fill::{Lived, canaries_of};
use super::live::{Kept, look, seen, step};
use crate::world::{CONTACTS, Canaries, History, Setting};
use serde_json::Value;
use std::time::Duration;

/// Most histories that are tried to shorten one.
const TRIES: usize = 80;
/// When items of a history end that are to end while it is lived.
const SOON: [Duration; 2] = [Duration::from_millis(2_200), Duration::from_millis(3_700)];

/// What a history showed.
pub(super) enum Shown {
    /// The number of its first step that shows something, and what.
    Found(usize, Vec<Finding>),
    /// Nothing, but the owner's side did not do what it can be asked at any time: why.
    Refused(String),
    Nothing,
}

/// Where a history is made for: the gateway's manifest now.
pub(in super::super) fn setting(context: &Context<'_>, manifest: &Value) -> Setting {
    let mut setting = Setting::of(manifest, context.now());
    setting.soon = SOON.map(|after| setting.now.plus(after)).to_vec();
    setting
}

/// Lives through a history in a scope of its own with grantees of its own, up to the first step that shows something:
/// its number and what it shows; or why the owner's side refused what is permitted at any time.
///
/// # Errors
/// When the run is over.
pub(super) async fn lived_through(
    context: &Context<'_>,
    manifest: &Value,
    history: &History,
) -> Result<Shown, Failed> {
    let history = history.again(&format!("w{}", context.word()), context.now());
    let world = &history.world;
    let mut canaries = Canaries::default();
    canaries_of(world, &mut canaries);
    let mut lived = Lived::new(context, world, manifest, &canaries)?;
    let contacts: Vec<_> = world.items().take(CONTACTS).enumerate().collect();
    lived.capture(&contacts).await?;
    let (mut kept, mut findings) = (Kept::default(), Vec::new());
    lived.read_keys(&mut findings).await?;
    for (number, next) in history.steps.iter().enumerate() {
        let before = seen(&lived);
        let mut done = step(&mut lived, &mut kept, next, &mut findings).await;
        if next.changes_views() && findings.is_empty() && done.is_ok() {
            done = look(&mut lived, &mut kept, &before, &mut findings).await;
        }
        if !findings.is_empty() {
            return Ok(Shown::Found(number, findings));
        }
        done?;
    }
    Ok(kept.refused.map_or(Shown::Nothing, Shown::Refused))
}

/// A history that shows something, shortened (delta debugging), and what it shows then. A step more or less may show
/// something else: each is a finding.
///
/// # Errors
/// When the run is over before anything was tried.
pub(in super::super) async fn shortest(
    context: &Context<'_>,
    manifest: &Value,
    history: &History,
    (last, findings): (usize, Vec<Finding>),
) -> (History, Vec<Finding>) {
    let mut best =
        History { steps: history.steps.get(..=last).unwrap_or_default().to_vec(), ..history.clone() };
    let mut shown = findings;
    let (mut parts, mut tries) = (2, 0);
    while best.steps.len() > 1 && parts <= best.steps.len() && tries < TRIES {
        let size = best.steps.len().div_ceil(parts);
        let mut shorter = None;
        for part in 0..parts {
            let (from, to) = (part * size, (part + 1) * size);
            let kept = best.steps.iter().enumerate().filter(|(n, _)| !(from..to).contains(n));
            let steps: Vec<_> = kept.map(|(_, step)| step.clone()).collect();
            if steps.len() == best.steps.len() || tries == TRIES {
                continue;
            }
            tries += 1;
            let candidate = History { steps, ..best.clone() };
            // A run that is over ends the shortening, not the finding.
            match lived_through(context, manifest, &candidate).await {
                Ok(Shown::Found(last, findings)) => {
                    let steps = candidate.steps.get(..=last).unwrap_or_default().to_vec();
                    shorter = Some((History { steps, ..candidate }, findings));
                    break;
                }
                Ok(Shown::Refused(_) | Shown::Nothing) => {}
                Err(_) => return (best, shown),
            }
        }
        match shorter {
            Some((history, findings)) => {
                (best, shown) = (history, findings);
                parts = (parts - 1).max(2);
            }
            None if parts == best.steps.len() => break,
            None => parts = (parts * 2).min(best.steps.len()),
        }
    }
    (best, shown)
}
