//! What a grant reaches: `View(grant) = cap( project( gate( select(store, filter) ), profile, level ), max_items )` (protocol
//! section 0), but for the cap, which depends on what was disclosed.

use super::Model;
use super::expected::{Form, Leaves};
use super::filter::Verdict;
use super::gates::To;
use super::grant::Grant;
use super::item::{Item, State, Version};
use super::profile;
use super::rule::{
    Asked, BoundCase, Epistemic, Field, List, ListCase, Reach, Refusal, Rule, Standing, Written,
};
use crate::world::leaves;
use oap_identity::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// An item as a grantee sees it.
#[derive(Debug, Clone)]
pub(super) struct Visible {
    pub id: String,
    /// The whole visible item, without `integrity` and `relevance`.
    pub item: Value,
    /// Leaves whose value the model cannot know.
    pub free: BTreeMap<String, Form>,
    /// The events of its chain.
    pub chain: Vec<&'static str>,
    /// What a listing orders by: the shown capture time.
    pub captured: Timestamp,
    /// Whether that is the gateway's clock as it was, more or less.
    pub clocked: bool,
    /// Everything that is shown as text, or may be.
    pub text: String,
    /// What of it is shown in any case.
    pub certain: String,
    /// Whether it may leave in an export.
    pub exportable: bool,
}

impl Visible {
    /// The leaves that are shown with a known value.
    pub fn leaves(&self) -> Leaves {
        let mut all = leaves(&self.item);
        all.retain(|pointer, _| !self.free.contains_key(pointer));
        all
    }

    /// A member's text, where it is shown.
    pub fn shown(&self, member: &str) -> Option<&str> {
        self.item[member].as_str()
    }
}

impl Model {
    /// Notes what decided: every rule where an item is let through, the only one that was against it else. Rules that
    /// agree with another decide nothing.
    pub(super) fn settle(&self, verdicts: &[Verdict]) -> bool {
        let against: Vec<Rule> = verdicts.iter().filter(|(_, lets)| !lets).map(|(rule, _)| *rule).collect();
        match against.as_slice() {
            [] => verdicts.iter().for_each(|(rule, _)| self.decided.note(*rule)),
            [only] => {
                self.decided.note(*only);
                self.note_pairs(*only, verdicts);
            }
            _ => {}
        }
        against.is_empty()
    }

    /// Notes each field of a filter beside the only one that is against an item.
    fn note_pairs(&self, only: Rule, verdicts: &[Verdict]) {
        let Some(alone) = field(only) else { return };
        for other in verdicts.iter().filter_map(|(rule, _)| field(*rule)).filter(|other| *other != alone) {
            self.decided.note(Rule::FilterPair(alone.min(other), alone.max(other)));
        }
    }

    /// Whether a grant reaches an item. `chain` is the grant and those above it, its first one last.
    fn reaches(&self, chain: &[&Grant], item: &Item, at: Timestamp) -> bool {
        let reached = self.settle(&self.verdicts(chain, item, &item.version, at));
        if let Some(correction) = &item.correction {
            let former = self.verdicts(chain, item, &correction.former, at);
            let before = former.iter().all(|(_, lets)| *lets);
            if before != reached {
                let way = if reached { Standing::CorrectedInto } else { Standing::CorrectedOutOf };
                self.decided.note(Rule::Standing(way));
                correction.members.iter().for_each(|member| self.decided.note(Rule::Corrected(*member)));
            }
        }
        reached
    }

    /// What every rule says of a version of an item.
    fn verdicts(&self, chain: &[&Grant], item: &Item, version: &Version, at: Timestamp) -> Vec<Verdict> {
        let Some(grant) = chain.first() else { return vec![(Rule::Refusal(Refusal::UnknownGrant), false)] };
        let mut verdicts = grant.filter.judge(version);
        let standing = |standing, lets| (Rule::Standing(standing), lets);
        verdicts.extend(match item.state {
            State::Retracted => vec![standing(Standing::Retracted, false)],
            State::Erased => vec![standing(Standing::Erased, false)],
            State::DerivedErased => vec![standing(Standing::DerivedErased, false)],
            State::Current => item.history().into_iter().map(|rule| standing(rule, true)).collect(),
        });
        let (lives, rules) = version.lives(at);
        // Of several rules that say the same, one is against it.
        let one = if lives { rules.len() } else { 1 };
        verdicts.extend(rules.into_iter().rev().take(one).map(|rule| standing(rule, lives)));
        let own_scope = version.text("/scope_id") == Some(grant.scope.as_str());
        let mut in_scope = own_scope;
        match grant.filter.list(List::Scopes) {
            None if own_scope => verdicts.push((Rule::Reach(Reach::DefaultScope), true)),
            None => verdicts.push((Rule::Reach(Reach::OtherScope), false)),
            Some(named) => in_scope = named.iter().any(|s| Some(s.as_str()) == version.text("/scope_id")),
        }
        // Items of scopes that are not meant come before no gate.
        if in_scope {
            let anonymous = is_anonymous(grant, version);
            let to = To { chain, owner: self.principal.as_str(), at, anonymous };
            verdicts.extend(self.gates.judge(version, &to));
        }
        let mut reach = |reach, lets| verdicts.push((Rule::Reach(reach), lets));
        if version.text("/sensitivity") == Some("restricted") {
            match grant.filter.list(List::Sensitivities) {
                None => reach(Reach::RestrictedUnnamed, false),
                Some(named) if named.iter().any(|s| s == "restricted") => reach(Reach::RestrictedNamed, true),
                Some(_) => {}
            }
        }
        if version.whole["exportable"] == false {
            let to_owner = chain.iter().all(|grant| grant.grantee == self.principal.as_str());
            let rule = if to_owner { Reach::NotExportableToOwner } else { Reach::NotExportable };
            reach(rule, to_owner);
        }
        let above = |grant: &&Grant| grant.filter.judge(version).iter().all(|(_, lets)| *lets);
        if !chain.iter().skip(1).all(above) {
            reach(Reach::AboveRefuses, false);
        }
        reach(Reach::Admitted, true);
        verdicts
    }

    /// The items of a grant, by their ids; `None` where its profile is not known.
    pub(super) fn view(&self, chain: &[&Grant], embedding: bool, at: Timestamp) -> Option<Vec<Visible>> {
        let grant = chain.first()?;
        let embedding = embedding && grant.embedding_access;
        let reached = self.items.iter().filter(|(_, item)| self.reaches(chain, item, at));
        reached.map(|(id, item)| self.visible(id, item, grant, embedding)).collect()
    }

    fn visible(&self, id: &str, item: &Item, grant: &Grant, embedding: bool) -> Option<Visible> {
        let version = &item.version;
        let shown = profile::project(version, &self.profiles, &grant.profile, grant.level, embedding)?;
        shown.rules.iter().for_each(|rule| self.decided.note(*rule));
        version.written.iter().for_each(|written| self.decided.note(Rule::Written(*written)));
        if let Some(correction) = &item.correction {
            let former =
                profile::project(&correction.former, &self.profiles, &grant.profile, grant.level, embedding)?;
            let attitude = |version: &Version| self.attitude(version, item.is_confirmed()).1;
            if former.item != shown.item || attitude(&correction.former) != attitude(version) {
                correction.members.iter().for_each(|member| self.decided.note(Rule::Corrected(*member)));
            }
        }
        let mut visible = shown.item;
        if !version.whole["embedding"].is_null() && grant.level >= 4 {
            let rule = if embedding { Asked::EmbeddingShown } else { Asked::EmbeddingHidden };
            self.decided.note(Rule::Asked(rule));
        }
        let provenance = visible.entry("provenance").or_insert_with(|| json!({}));
        provenance["source_receipt"] = Value::Null;
        for (member, value) in [
            ("item_id", json!(id)),
            ("owner_did", json!(self.principal)),
            ("version", json!(item.committed + 1)),
            ("status", json!("current")),
            ("epistemic", json!(self.epistemic(item))),
        ] {
            visible.insert(member.to_owned(), value);
        }
        let item_value = Value::Object(visible);
        let mut free = BTreeMap::from([("/provenance/source_receipt".to_owned(), Form::Receipt)]);
        let shown_at = item_value.pointer("/provenance/captured_at").is_some();
        let clocked = !self.exact_clock && shown_at && version.written.contains(&Written::DefaultCapturedAt);
        if clocked {
            free.insert("/provenance/captured_at".to_owned(), Form::Near(item.at));
        }
        let text = visible_text(&item_value);
        let certain = match &shown.joined {
            None => text.clone(),
            Some(joined) => {
                let mut rest = item_value.clone();
                rest["content"]["text"] = Value::Null;
                visible_text(&rest) + &joined.certain()
            }
        };
        if let Some(joined) = shown.joined {
            free.insert("/content/text".to_owned(), Form::Joined(Box::new(joined)));
        }
        Some(Visible {
            id: id.to_owned(),
            text,
            certain,
            item: item_value,
            free,
            chain: item.events.clone(),
            captured: if shown_at { version.captured_at() } else { Timestamp::from_millis(0) },
            clocked,
            exportable: version.whole["exportable"] != false,
        })
    }

    /// What is said of the grantee's attitude (RFC 0010 A.2, A.6.2).
    fn epistemic(&self, item: &Item) -> &'static str {
        let (rule, attitude) = self.attitude(&item.version, item.is_confirmed());
        self.decided.note(Rule::Epistemic(rule));
        attitude
    }

    /// The same of a version, and the rule that says so.
    fn attitude(&self, version: &Version, confirmed: bool) -> (Epistemic, &'static str) {
        let sure = version.confidence();
        let above = sure >= self.belief_threshold;
        let rule = if sure >= 1.0 {
            if confirmed { Epistemic::Knowledge } else { Epistemic::CertainUnconfirmed }
        } else if confirmed {
            Epistemic::ConfirmedUncertain
        } else if sure > self.belief_threshold {
            Epistemic::Above
        } else if above {
            Epistemic::At
        } else {
            Epistemic::Below
        };
        let attitude = match (rule, above) {
            (Epistemic::Knowledge, _) => "knowledge",
            (_, true) => "belief",
            (_, false) => "possession",
        };
        (rule, attitude)
    }
}

/// The field of a filter that a rule is of, where the filter has it.
fn field(rule: Rule) -> Option<Field> {
    match rule {
        Rule::Filter(_, ListCase::Absent) | Rule::FilterBound(_, BoundCase::Absent) => None,
        Rule::Filter(list, _) => Some(Field::List(list)),
        Rule::FilterBound(bound, _) => Some(Field::Bound(bound)),
        _ => None,
    }
}

/// Whether what a grant shows of an item identifies nobody: no structured content, no personal span, no subject.
fn is_anonymous(grant: &Grant, version: &Version) -> bool {
    let subject = grant.level >= 1 && version.text("/subject_entity_id").is_some();
    grant.profile == "oap.profile.projection.memory.v1" && grant.level <= 2 && !subject
}

/// Everything visible as text: text, labels, subject, leaves of the structured content (protocol section 0).
fn visible_text(item: &Value) -> String {
    let mut text = String::new();
    for member in ["content", "labels", "subject_entity_id"] {
        for leaf in leaves(&item[member]).values() {
            match leaf {
                Value::String(leaf) => text.push_str(leaf),
                Value::Number(leaf) => text.push_str(&leaf.to_string()),
                _ => continue,
            }
            text.push('\n');
        }
    }
    text
}
