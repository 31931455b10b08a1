//! The answer to a query (protocol section 6): who may ask, what is found, in which order, and how much of it.

use super::disclosed::{Disclosed, Walk};
use super::expected::{Expected, ExpectedAnswer, ExpectedReceipt};
use super::grant::Grant;
use super::page::{Candidates, Page};
use super::profile::table::Table;
use super::query::{DEFAULT_RESULTS, Query};
use super::rule::{Asked, Beside, Paged, Refusal, Rule};
use super::view::Visible;
use super::{Model, search};
use oap_identity::{Hash, Timestamp};
use serde_json::{Value, json};
use std::collections::BTreeMap;

impl Refusal {
    /// The codes and the statuses that it may have, one of each (protocol section 1).
    pub(crate) const fn form(self) -> (&'static [&'static str], &'static [u16]) {
        match self {
            // No token outlives its grant, and none is issued before it begins.
            Self::Expired | Self::Draft | Self::UnknownGrant => {
                (&["policy_block", "auth_required"], &[403, 401])
            }
            Self::Revoked
            | Self::AboveEnded
            | Self::AboveRevoked
            | Self::OperationQuery
            | Self::OperationExport
            | Self::Embeddings
            | Self::Purpose => (&["policy_block"], &[403]),
            Self::BudgetQueries | Self::BudgetEpsilon | Self::BudgetAbove => (&["budget_exhausted"], &[429]),
            _ => (&["invalid_input"], &[400]),
        }
    }
}

impl Model {
    /// A refusal, with its status and code.
    pub(super) fn refuse(&self, refusal: Refusal) -> Expected {
        let rule = Rule::Refusal(refusal);
        self.decided.note(rule);
        let (codes, status) = refusal.form();
        Expected::Refused { codes, status, rule }
    }

    /// What refuses an operation under a grant, whatever is asked.
    pub(super) fn not_in_force(&self, chain: &[&Grant], operation: &str, at: Timestamp) -> Option<Refusal> {
        let refusal = if operation == "export" { Refusal::OperationExport } else { Refusal::OperationQuery };
        let named = |grant: &&Grant| grant.operations.iter().any(|named| named == operation);
        self.out_of_force(chain, at).or_else(|| (!chain.first().is_some_and(named)).then_some(refusal))
    }

    /// Why a grant is not in force.
    pub(super) fn out_of_force(&self, chain: &[&Grant], at: Timestamp) -> Option<Refusal> {
        let Some((grant, above)) = chain.split_first() else { return Some(Refusal::UnknownGrant) };
        let ended = |grant: &Grant| grant.ends.is_none_or(|end| end <= at);
        let revoked = |grant: &Grant| grant.revoked.is_some_and(|since| since <= at);
        let draft = |grant: &Grant| grant.begins.is_none_or(|begin| begin > at);
        if revoked(grant) {
            return Some(Refusal::Revoked);
        }
        if above.iter().any(|grant| revoked(grant)) {
            return Some(Refusal::AboveRevoked);
        }
        if ended(grant) {
            return Some(Refusal::Expired);
        }
        if above.iter().any(|grant| ended(grant)) {
            return Some(Refusal::AboveEnded);
        }
        chain.iter().any(|grant| draft(grant)).then_some(Refusal::Draft)
    }

    pub(super) fn answer(&self, grant_id: &str, asked: &Value, at: Timestamp, spent: &Disclosed) -> Expected {
        let chain = self.chain(grant_id);
        let Some(grant) = chain.first().copied() else { return self.refuse(Refusal::UnknownGrant) };
        let query = match Query::read(asked) {
            Ok(query) => query,
            Err(refusal) => return self.refuse(refusal),
        };
        let refused = self.not_in_force(&chain, "query", at).or_else(|| not_granted(grant, &query));
        if let Some(refusal) = refused.or_else(|| spent.spent(&chain, 0)) {
            return self.refuse(refusal);
        }
        let walk = match query.cursor.as_ref().map(|cursor| spent.cursors.get(cursor)) {
            None => None,
            Some(None) => return self.refuse(Refusal::CursorForeign),
            Some(Some(walk)) if walk.grant != grant.hash => return self.refuse(Refusal::CursorForeign),
            Some(Some(walk)) if walk.binding != query.binding() => {
                return self.refuse(Refusal::CursorOtherQuery);
            }
            Some(walk) => walk,
        };
        let Some(view) = self.view(&chain, query.include_embeddings, at) else {
            return self.refuse(Refusal::UnknownGrant);
        };
        let admitted: Vec<&Visible> = view.iter().filter(|visible| self.admits(&query, visible)).collect();
        let page = self.page(&chain, &query, &admitted, walk, spent, at);
        if let Some(refusal) = page.got.and_then(|got| spent.spent(&chain, got)) {
            return self.refuse(refusal);
        }
        let mut answer = self.expected(&chain, &query, &view, page);
        let own = || self.profiles.iter().find(|own| own.name == grant.profile);
        let own = || own().map(|own| own.redacted(grant.level));
        answer.redacted_field_count = Table::redacted(&grant.profile, grant.level).or_else(own);
        answer.signed_by = self.signs();
        answer.refers = self.refers(query.include_embeddings, grant.embedding_access, grant.level);
        if answer.redacted_field_count.is_some() {
            self.decided.note(Rule::Beside(Beside::RedactedCount));
        }
        Expected::Answer(Box::new(answer))
    }

    /// Whether the conditions of a query admit an item: a condition on what is hidden admits nothing.
    fn admits(&self, query: &Query, visible: &Visible) -> bool {
        let mut verdicts = Vec::new();
        if let Some(kinds) = &query.kinds {
            let hit = visible.shown("kind").is_some_and(|kind| kinds.iter().any(|k| k == kind));
            verdicts.push(match (kinds.as_slice(), hit) {
                ([], _) => (Asked::KindsEmpty, false),
                (_, true) => (Asked::KindsHit, true),
                (_, false) => (Asked::KindsMiss, false),
            });
        }
        if let Some(any) = &query.labels_any {
            let labels = visible.item["labels"].as_array().map(Vec::as_slice).unwrap_or_default();
            let hit = labels.iter().any(|label| any.iter().any(|wanted| *label == **wanted));
            verdicts.push(match (any.as_slice(), labels, hit) {
                ([], ..) => (Asked::LabelsAnyEmpty, false),
                (_, [], _) => (Asked::LabelsAnyHidden, false),
                (.., true) => (Asked::LabelsAnyHit, true),
                (.., false) => (Asked::LabelsAnyMiss, false),
            });
        }
        if let Some(least) = query.min_confidence {
            verdicts.push(match visible.item.pointer("/provenance/confidence").and_then(Value::as_f64) {
                None => (Asked::MinConfidenceHidden, false),
                Some(sure) if sure < least => (Asked::MinConfidenceBelow, false),
                Some(sure) if sure > least => (Asked::MinConfidenceAbove, true),
                Some(_) => (Asked::MinConfidenceAt, true),
            });
        }
        let verdicts: Vec<_> = verdicts.into_iter().map(|(rule, lets)| (Rule::Asked(rule), lets)).collect();
        self.settle(&verdicts)
    }

    fn page(
        &self,
        chain: &[&Grant],
        query: &Query,
        admitted: &[&Visible],
        walk: Option<&Walk>,
        spent: &Disclosed,
        at: Timestamp,
    ) -> Page {
        let note = |rule: Paged| self.decided.note(Rule::Paged(rule));
        let moved = walk.is_some_and(|walk| self.fingerprint(chain, at) != walk.view);
        let limit = query.max_results.unwrap_or(DEFAULT_RESULTS);
        let candidates = Candidates { chain, limit, spent, walk, moved };
        let page = if query.is_listing() {
            self.decided.note(Rule::Asked(Asked::Listing));
            candidates.list(admitted)
        } else {
            let found = search::find(&query.text, admitted, !self.embeddings.is_empty());
            self.note_words(query, admitted, &found);
            // Ranked over the view, which is what was disclosed from then on.
            let shrunk = walk.is_some_and(|walk| !walk.full && spent.is_full(chain));
            Candidates { moved: moved || shrunk, ..candidates }.find(&found)
        };
        page.rules.iter().for_each(|rule| note(*rule));
        if page.ties {
            self.decided.note(Rule::Asked(Asked::Tie));
        }
        if query.max_results.is_none() && page.more == Some(true) {
            note(Paged::Default);
        }
        if walk.is_some() {
            note(if moved { Paged::Moved } else { Paged::Next });
        }
        page
    }

    /// Notes what the words of a question decided.
    fn note_words(&self, query: &Query, admitted: &[&Visible], found: &search::Found) {
        if !found.must.is_empty() {
            self.decided.note(Rule::Asked(Asked::WordShown));
        }
        let hidden = |visible: &&Visible| {
            let whole = self.items.get(&visible.id).map(|item| item.version.whole.to_string());
            !found.may.contains(&visible.id) && whole.is_some_and(|whole| whole.contains(query.text.trim()))
        };
        if admitted.iter().any(hidden) {
            self.decided.note(Rule::Asked(Asked::WordHidden));
        }
    }

    /// Everything that an answer must say, of the items of a page.
    pub(super) fn expected(
        &self,
        chain: &[&Grant],
        query: &Query,
        view: &[Visible],
        page: Page,
    ) -> ExpectedAnswer {
        let in_page: Vec<&Visible> = view.iter().filter(|visible| page.items.contains(&visible.id)).collect();
        let note = |rule: Rule| self.decided.note(rule);
        note(Rule::Asked(if query.chain_only { Asked::IntegrityChain } else { Asked::IntegrityFull }));
        if !in_page.is_empty() {
            [Beside::ChainEvents, Beside::ReceiptTags].into_iter().for_each(|rule| note(Rule::Beside(rule)));
        }
        let input = (!query.read.is_null()).then(|| query.read.clone());
        let mut receipt = self.receipt("memory.query", chain, input);
        if let Some(purpose) = &query.purpose {
            let any = chain.first().is_some_and(|grant| grant.purpose_codes.is_empty());
            note(Rule::Asked(if any { Asked::PurposeAny } else { Asked::PurposeStated }));
            note(Rule::Beside(Beside::ReceiptPurpose));
            receipt.decision.insert("purpose".to_owned(), json!(purpose));
        }
        note(Rule::Beside(Beside::ProjectionApplied));
        ExpectedAnswer {
            items: in_page.iter().map(|visible| (visible.id.clone(), visible.leaves())).collect(),
            certain: page.certain,
            at_end: page.at_end,
            free: in_page.iter().map(|visible| (visible.id.clone(), visible.free.clone())).collect(),
            order: page.order,
            more: page.more,
            most: page.most,
            rooms: page.rooms,
            chain: in_page.iter().map(|visible| (visible.id.clone(), visible.chain.clone())).collect(),
            sd_jwt: !query.chain_only,
            listing: query.is_listing(),
            has_best: page.has_best && !query.has_conditions(),
            projection_applied: chain.first().map(|grant| applied(grant)).unwrap_or_default(),
            redacted_field_count: None,
            receipt,
            signed_by: None,
            refers: None,
        }
    }

    /// What the receipt of an answer must say (protocol section 8).
    pub(super) fn receipt(
        &self,
        action: &'static str,
        chain: &[&Grant],
        input: Option<Value>,
    ) -> ExpectedReceipt {
        let Some((grant, above)) = chain.split_first() else { return ExpectedReceipt::default() };
        let note = |rule: Beside| self.decided.note(Rule::Beside(rule));
        let mut decision = BTreeMap::from([
            ("consumed_grant_id".to_owned(), json!(grant.id)),
            ("grant_hash".to_owned(), json!(grant.hash)),
            ("scope_id".to_owned(), json!(grant.scope)),
            ("trust_level".to_owned(), json!(grant.level)),
            ("profile".to_owned(), json!(grant.profile)),
            ("lawful_basis".to_owned(), json!(grant.lawful_basis)),
        ]);
        if let Some(hash) = self.profile_hash(&grant.profile) {
            note(Beside::ReceiptProfileHash);
            decision.insert("profile_hash".to_owned(), json!(hash));
        }
        if !above.is_empty() {
            note(Beside::ReceiptDelegation);
            let hashes: Vec<&str> = above.iter().rev().map(|grant| grant.hash.as_str()).collect();
            decision.insert("delegation".to_owned(), json!(hashes));
        }
        [Beside::ReceiptDecision, Beside::ReceiptOutput].into_iter().for_each(note);
        if input.is_some() {
            note(Beside::ReceiptInput);
        }
        ExpectedReceipt {
            action,
            agent: grant.grantee.clone(),
            principal: grant.granter.clone(),
            decision,
            input,
        }
    }

    /// The hash of a profile's document: of a built-in one as `docs/bytes.md` 5.1 lists it.
    fn profile_hash(&self, profile: &str) -> Option<String> {
        let own = || self.profiles.iter().find(|own| own.name == profile).map(|own| own.hash.clone());
        Table::hash(profile).map(str::to_owned).or_else(own)
    }

    /// What the view of a grant is, as one value: it changes when anything in it does.
    pub(super) fn fingerprint(&self, chain: &[&Grant], at: Timestamp) -> Hash {
        let unheard = self.unheard();
        let view = unheard.view(chain, false, at).unwrap_or_default();
        let all: Vec<&Value> = view.iter().map(|visible| &visible.item).collect();
        Hash::of_canonical(&all).unwrap_or(Hash::of(b""))
    }
}

/// What a grant does not give.
fn not_granted(grant: &Grant, query: &Query) -> Option<Refusal> {
    if query.include_embeddings && !grant.embedding_access {
        return Some(Refusal::Embeddings);
    }
    let named = |purpose: &String| grant.purpose_codes.is_empty() || grant.purpose_codes.contains(purpose);
    (!query.purpose.as_ref().is_none_or(named)).then_some(Refusal::Purpose)
}

/// `projection_applied`, but for the count.
fn applied(grant: &Grant) -> BTreeMap<String, Value> {
    BTreeMap::from([
        ("trust_level".to_owned(), json!(grant.level)),
        ("profile".to_owned(), json!(grant.profile)),
        ("lawful_basis".to_owned(), json!(grant.lawful_basis)),
    ])
}
