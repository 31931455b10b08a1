//! What is selected, as flags: of a request for access, and of the owner's narrower answer.

use crate::cli::CliError;
use crate::cli::values;
use crate::cli::when::{self, When};
use oap_identity::ScopeId;
use oap_memory::Filter;
use oap_memory::item::{Confidence, Kind, Sensitivity};

/// Which items.
#[derive(clap::Args)]
pub(super) struct Selected {
    /// Only items of these scopes
    #[arg(long, value_name = "SCOPE")]
    item_scope: Vec<ScopeId>,
    /// Only items of this kind; may be given several times
    #[arg(long, value_parser = values::kind())]
    kind: Vec<Kind>,
    /// Only items with one of these labels
    #[arg(long, value_parser = values::short)]
    label: Vec<String>,
    /// Only items with all of these labels
    #[arg(long, value_name = "LABEL", value_parser = values::short)]
    all_labels: Vec<String>,
    /// Never items with one of these labels
    #[arg(long, value_name = "LABEL", value_parser = values::short)]
    exclude_label: Vec<String>,
    /// Only items about one of these
    #[arg(long, value_name = "ENTITY", value_parser = values::short)]
    subject: Vec<String>,
    /// Only items captured at or after this time
    #[arg(long, value_name = "TIME")]
    captured_after: Option<When>,
    /// Only items captured before this time
    #[arg(long, value_name = "TIME")]
    captured_before: Option<When>,
    /// Only items of at least this confidence
    #[arg(long, value_name = "0..1", value_parser = values::confidence)]
    min_confidence: Option<Confidence>,
    /// Only items of these sensitivities; names `restricted` to include it
    #[arg(long, value_parser = values::sensitivity())]
    sensitivity: Vec<Sensitivity>,
}

impl Selected {
    /// Puts what the flags say in the place of what a filter says. Labels that an item must have, or must not, are added to those that
    /// stand there.
    pub(super) fn narrow(&self, filter: &mut Filter) -> Result<(), CliError> {
        fn replace<T: Clone>(list: &[T], of: &mut Option<Vec<T>>) {
            if !list.is_empty() {
                *of = Some(list.to_vec());
            }
        }
        fn extend(list: &[String], of: &mut Option<Vec<String>>) {
            for label in list {
                let labels = of.get_or_insert_default();
                if !labels.contains(label) {
                    labels.push(label.clone());
                }
            }
        }
        let now = when::now();
        replace(&self.item_scope, &mut filter.scopes);
        replace(&self.kind, &mut filter.kinds);
        replace(&self.label, &mut filter.labels_any);
        replace(&self.subject, &mut filter.subject_entity_ids);
        replace(&self.sensitivity, &mut filter.sensitivities);
        extend(&self.all_labels, &mut filter.labels_all);
        extend(&self.exclude_label, &mut filter.exclude_labels);
        if let Some(after) = self.captured_after {
            filter.captured_after = Some(after.since(now));
        }
        if let Some(before) = self.captured_before {
            filter.captured_before = Some(before.since(now));
        }
        filter.min_confidence = self.min_confidence.or(filter.min_confidence);
        match (filter.captured_after, filter.captured_before) {
            (Some(after), Some(before)) if before <= after => {
                Err(CliError::Usage("--captured-before: must be later than --captured-after".to_owned()))
            }
            _ => Ok(()),
        }
    }
}
