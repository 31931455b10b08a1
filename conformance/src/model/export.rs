//! A grantee's export: the whole view as a bundle (protocol section 8, bytes 7).

use super::Model;
use super::disclosed::Disclosed;
use super::expected::{Expected, ExpectedExport};
use super::page::{Candidates, Page};
use super::query::Query;
use super::rule::{Beside, Refusal, Rule};
use super::view::Visible;
use oap_identity::Timestamp;

impl Model {
    /// What an export under a grant must be, by its grantee with a token that holds.
    #[must_use]
    pub fn export(&self, grant_id: &str, at: Timestamp, spent: &Disclosed) -> ExpectedExport {
        let chain = self.chain(grant_id);
        let refused = self.not_in_force(&chain, "export", at).or_else(|| spent.spent(&chain, 0));
        let view = match (refused, self.view(&chain, false, at)) {
            (Some(refusal), _) => return self.refused_export(refusal),
            (None, None) => return self.refused_export(Refusal::UnknownGrant),
            (None, Some(view)) => view,
        };
        // `exportable: false` keeps an item out of every export, the owner's own grants too (protocol section 4).
        let leaves: Vec<&Visible> = view.iter().filter(|seen| seen.exportable).collect();
        let candidates = Candidates { chain: &chain, limit: usize::MAX, spent, walk: None, moved: false };
        let taken = candidates.take(&leaves);
        if let Some(refusal) = taken.got.and_then(|got| spent.spent(&chain, got)) {
            return self.refused_export(refusal);
        }
        taken.rules.iter().for_each(|rule| self.decided.note(Rule::Paged(*rule)));
        self.decided.note(Rule::Beside(Beside::Export));
        let page = Page { more: Some(false), ..taken };
        let mut answer = self.expected(&chain, &Query::default(), &view, page);
        answer.receipt = self.receipt("memory.export", &chain, None);
        ExpectedExport::Bundle(Box::new(answer))
    }

    fn refused_export(&self, refusal: Refusal) -> ExpectedExport {
        match self.refuse(refusal) {
            Expected::Refused { codes, status, rule } => ExpectedExport::Refused { codes, status, rule },
            Expected::Answer(answer) => ExpectedExport::Bundle(answer),
        }
    }
}
