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
    /// How many stay deleted here, and those of them that are told: [`PLACES`] at most, as of what was refused.
    pub(super) deleted_count: u64,
    pub(super) deleted: Vec<Left>,
    pub(super) refused_count: u64,
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

impl BundleReport {
    pub(super) fn broken(why: &str) -> Self {
        Self { why: Some(why.to_owned()), ..Self::default() }
    }
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
            Some(ImportOutcome::Deleted(why)) => {
                self.deleted_count += 1;
                if self.deleted.len() < PLACES {
                    self.deleted.push(Left::new(place, why));
                }
            }
            Some(ImportOutcome::Refused(reason)) => self.refuse(place, reason),
            None => self.refuse(place, "the gateway said nothing of it"),
        }
    }

    pub(super) fn refuse(&mut self, place: &str, reason: &str) {
        self.refused_count += 1;
        if self.refused.len() < PLACES {
            self.refused.push(Left::new(place, reason));
        }
    }

    pub(super) fn skip(&mut self, place: &str, reason: String) {
        if let Some(places) = self.left_out.as_mut().filter(|places| places.len() < PLACES) {
            places.push(Left::new(place, &reason));
        }
        let is_told = self.skipped.len() < PLACES || self.skipped.contains_key(&reason);
        let reason = if is_told { reason } else { "another reason".to_owned() };
        *self.skipped.entry(reason).or_default() += 1;
    }

    pub(super) fn sample(&mut self, item: impl FnOnce() -> Value) {
        if let Some(samples) = self.samples.as_mut().filter(|samples| samples.len() < SAMPLES) {
            samples.push(item());
        }
    }

    pub(super) fn done(&self) -> u64 {
        self.imported + self.updated + self.unchanged + self.deleted_count + self.refused_count
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
            self.refused_count,
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
            let number = self.deleted_count;
            text.push_str(&format!(
                "{number} were deleted here and stay so; --again ID or --again all brings them back\n"
            ));
            for left in deleted.iter().take(MAX_LISTED) {
                text.push_str(&format!("  {}: {}\n", left.place, left.reason));
            }
            if number > MAX_LISTED as u64 {
                text.push_str(&format!("  and {} more (--json tells them)\n", number - MAX_LISTED as u64));
            }
        }
        for left in refused {
            text.push_str(&format!("refused: {}: {}\n", left.place, left.reason));
        }
        let more = self.refused_count.saturating_sub(refused.len() as u64);
        if more > 0 {
            text.push_str(&format!("and {more} more refused\n"));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_refused_is_counted_and_told_within_a_bound() {
        let mut report = Report::new(false, false);
        for number in 0..=PLACES {
            report.refuse(&number.to_string(), "no text");
            report.skip("x", format!("reason {number}"));
        }
        report.skip("x", "one more".to_owned());
        assert_eq!((report.refused.len(), report.done()), (PLACES, PLACES as u64 + 1));
        assert_eq!((report.skipped.len(), report.skipped["another reason"]), (PLACES + 1, 2));
        assert!(report.people().contains("and 1 more refused"));
    }
}
