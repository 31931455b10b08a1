//! What an import tells.

use crate::api::Document;
use crate::api::transfer::ImportOutcome;
use crate::cli::output::{self, VisibleItem};
use oap_identity::{BundleId, Hash};
use oap_memory::Receipt;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Places of what was left out that are told.
const PLACES: usize = 10_000;
/// Samples that a dry run shows.
const SAMPLES: usize = 5;
/// Places of what stays deleted that are told to people.
const MAX_LISTED: usize = 5;

/// What became of everything.
#[derive(Default, Serialize)]
pub(super) struct Report {
    pub(super) formats: Vec<String>,
    pub(super) dry_run: bool,
    pub(super) imported: u64,
    pub(super) updated: u64,
    pub(super) unchanged: u64,
    pub(super) skipped: BTreeMap<String, u64>,
    /// What stays deleted here.
    pub(super) deleted: Vec<Left>,
    pub(super) refused: Vec<Left>,
    pub(super) seconds: f64,
    pub(super) per_second: f64,
    /// Where what was left out stands, up to [`PLACES`] of them; told where that is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) left_out: Option<Vec<Left>>,
    /// Of a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) samples: Option<Vec<Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bundle: Option<BundleReport>,
}

/// What was not written, and why.
#[derive(Serialize)]
pub(super) struct Left {
    place: String,
    reason: String,
}

/// Whether a bundle is what its former house sealed.
#[derive(Default, Serialize)]
pub(super) struct BundleReport {
    pub(super) whole: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) why: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bundle_id: Option<BundleId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hash: Option<Hash>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) migration_receipt: Option<Document<Receipt>>,
}

impl Report {
    pub(super) fn new(dry_run: bool, verbose: bool) -> Self {
        let (left_out, samples) = (verbose.then(Vec::new), dry_run.then(Vec::new));
        Self { dry_run, left_out, samples, ..Self::default() }
    }

    pub(super) fn outcome(&mut self, place: &str, outcome: Option<&ImportOutcome>) {
        match outcome {
            Some(ImportOutcome::Imported(_)) => self.imported += 1,
            Some(ImportOutcome::Updated(_)) => self.updated += 1,
            Some(ImportOutcome::Unchanged(_)) => self.unchanged += 1,
            Some(ImportOutcome::Deleted(why)) => self.deleted.push(Left::new(place, why)),
            Some(ImportOutcome::Refused(reason)) => self.refuse(place, reason),
            None => self.refuse(place, "the gateway said nothing of it"),
        }
    }

    pub(super) fn refuse(&mut self, place: &str, reason: &str) {
        self.refused.push(Left::new(place, reason));
    }

    pub(super) fn skip(&mut self, place: &str, reason: String) {
        if let Some(places) = self.left_out.as_mut().filter(|places| places.len() < PLACES) {
            places.push(Left::new(place, &reason));
        }
        *self.skipped.entry(reason).or_default() += 1;
    }

    pub(super) fn sample(&mut self, item: impl FnOnce() -> Value) {
        if let Some(samples) = self.samples.as_mut().filter(|samples| samples.len() < SAMPLES) {
            samples.push(item());
        }
    }

    pub(super) fn done(&self) -> u64 {
        self.imported + self.updated + self.unchanged + (self.deleted.len() + self.refused.len()) as u64
    }

    /// Says how long it took.
    pub(super) fn finish(&mut self, seconds: f64) {
        self.seconds = (seconds * 1000.0).round() / 1000.0;
        self.per_second = (self.done() as f64 / seconds.max(0.001)).round();
    }

    pub(super) fn people(&self) -> String {
        let Self { imported, updated, unchanged, refused, deleted, seconds, per_second, .. } = self;
        let mut text = String::new();
        if self.dry_run {
            text.push_str("Nothing was written. With this file there would be:\n");
        }
        text.push_str(&format!(
            "{imported} imported, {updated} updated, {unchanged} unchanged, {} refused in {seconds} s ({per_second} a second)\n",
            refused.len(),
        ));
        let samples = self.samples.as_deref().unwrap_or_default();
        if !samples.is_empty() {
            let rows = samples.iter().map(|sample| {
                let item = VisibleItem::of(sample);
                vec![output::or_none(item.kind), output::says(&item.content)]
            });
            text.push_str(&format!("{}\n", output::table(&["kind", "content"], rows)));
        }
        for (reason, count) in &self.skipped {
            text.push_str(&format!("left out: {count} × {reason}\n"));
        }
        for left in self.left_out.iter().flatten() {
            text.push_str(&format!("  {}: {}\n", left.place, left.reason));
        }
        if !deleted.is_empty() {
            let number = deleted.len();
            text.push_str(&format!(
                "{number} were deleted here and stay so; --again ID or --again all brings them back\n"
            ));
            for left in deleted.iter().take(MAX_LISTED) {
                text.push_str(&format!("  {}: {}\n", left.place, left.reason));
            }
            if number > MAX_LISTED {
                text.push_str(&format!("  and {} more (--json tells them)\n", number - MAX_LISTED));
            }
        }
        for left in refused {
            text.push_str(&format!("refused: {}: {}\n", left.place, left.reason));
        }
        if let Some(receipt) = self.bundle.as_ref().and_then(|bundle| bundle.migration_receipt.as_ref()) {
            text.push_str(&format!("Migration Receipt {}\n", receipt.receipt_id));
        }
        text
    }
}

impl Left {
    fn new(place: &str, reason: &str) -> Self {
        Self { place: place.to_owned(), reason: reason.to_owned() }
    }
}
