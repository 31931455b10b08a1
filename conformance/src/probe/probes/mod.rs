//! The probes.

pub(super) mod acknowledgements;
mod among_gateways;
mod confidential;
mod credentials;
mod devices;
mod found;
mod letters;
mod lifecycle;
mod malformed;
mod named;
mod outputs;
mod own_forms;
mod passed_on;
mod projection;
mod published;
mod pushes;
mod receipts;
mod refused;
mod selections;
mod subscriptions;
mod views;
mod witnesses;
mod worlds;
mod written;

pub(super) use worlds::pairs;

use super::{Context, Failed, Probe, Running, Severity};
use oap_identity::{Signer, random};

/// The probe of what every reply must have.
const FORMS: &str = "answer-forms";
/// Probes that are made when all others are over, in this order.
pub(super) const LAST: [&str; 2] = [among_gateways::LOCKDOWN, FORMS];

type Run = for<'a> fn(&'a Context<'a>) -> Running<'a>;

/// A probe of what anybody can see.
const fn public(id: &'static str, checks: &'static [&'static str], severity: Severity, run: Run) -> Probe {
    Probe { id, checks, severity, needs_setup: false, waits: false, run }
}

/// A probe that needs the owner's side.
const fn owned(id: &'static str, checks: &'static [&'static str], severity: Severity, run: Run) -> Probe {
    Probe { id, checks, severity, needs_setup: true, waits: false, run }
}

/// The same of one that waits for an end. Nothing of what it asks is changed by what other grantees do meanwhile, nor by a new key.
fn waiting(probe: Probe) -> Probe {
    Probe { waits: true, ..probe }
}

/// Makes the function of a probe out of an asynchronous one.
macro_rules! probe {
    ($name:ident) => {
        |context| Box::pin($name(context))
    };
}
use probe;

pub(super) fn all() -> Vec<Probe> {
    [
        published::all(),
        outputs::all(),
        credentials::all(),
        projection::all(),
        receipts::all(),
        views::all(),
        lifecycle::all(),
        named::all(),
        found::all(),
        written::all(),
        selections::all(),
        passed_on::all(),
        confidential::all(),
        worlds::all(),
        refused::all(),
        malformed::all(),
        own_forms::all(),
        letters::all(),
        among_gateways::all(),
        pushes::all(),
        subscriptions::all(),
        witnesses::all(),
        acknowledgements::all(),
        devices::all(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The key of a fresh DID, for two sessions of one grantee.
fn twice(context: &Context<'_>) -> Result<[Signer; 2], Failed> {
    let seed: [u8; 32] = random::bytes(context.random());
    let signer = || Signer::did_key(&seed).map_err(|e| Failed::Skipped(e.to_string()));
    Ok([signer()?, signer()?])
}

/// An item of the probe's own.
fn note(text: &str, labels: &[&str]) -> serde_json::Value {
    serde_json::json!({"kind": "fact", "content": {"text": text}, "labels": labels})
}

/// A grant may be for few items.
fn room_for(context: &Context<'_>, items: u64) -> Result<(), Failed> {
    if context.declared().max_items < items {
        return Err(Failed::NotDeclared(format!("a grant for {items} items")));
    }
    Ok(())
}

fn items(answer: &serde_json::Value) -> &[serde_json::Value] {
    answer["items"].as_array().map_or(&[], Vec::as_slice)
}

fn ids(answer: &serde_json::Value) -> Vec<&str> {
    items(answer).iter().filter_map(|item| item["item_id"].as_str()).collect()
}
