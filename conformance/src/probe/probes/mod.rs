//! The probes.

mod confidential;
mod credentials;
mod lifecycle;
mod projection;
mod published;
mod receipts;
mod refused;
mod views;
mod worlds;

use super::{Context, Probe, Running, Severity};

/// The probe of what every reply must have: it is made last.
pub(super) const FORMS: &str = "answer-forms";

type Run = for<'a> fn(&'a Context<'a>) -> Running<'a>;

/// A probe of what anybody can see.
const fn public(id: &'static str, checks: &'static [&'static str], severity: Severity, run: Run) -> Probe {
    Probe { id, checks, severity, needs_setup: false, run }
}

/// A probe that needs the owner's side.
const fn owned(id: &'static str, checks: &'static [&'static str], severity: Severity, run: Run) -> Probe {
    Probe { id, checks, severity, needs_setup: true, run }
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
        credentials::all(),
        projection::all(),
        receipts::all(),
        views::all(),
        lifecycle::all(),
        confidential::all(),
        worlds::all(),
        refused::all(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// An item of the probe's own.
fn note(text: &str, labels: &[&str]) -> serde_json::Value {
    serde_json::json!({"kind": "fact", "content": {"text": text}, "labels": labels})
}

fn items(answer: &serde_json::Value) -> &[serde_json::Value] {
    answer["items"].as_array().map_or(&[], Vec::as_slice)
}

fn ids(answer: &serde_json::Value) -> Vec<&str> {
    items(answer).iter().filter_map(|item| item["item_id"].as_str()).collect()
}
