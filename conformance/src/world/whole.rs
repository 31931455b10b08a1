//! A world in which every cell of every table and every case of a filter decides something: items that have every member, under a grant of
//! every level of every profile; items that differ in one member, under grants whose filter has one field; and what their owner does
//! with some of them. Nothing in it is left to chance but its words.

use super::cases::Cases;
use super::chance::Chance;
use super::grant::{Grant, SHOWN};
use super::history::{Corrected, Step};
use super::item::{self, Common, Item};
use super::text::{CLASSES, People, Text};
use super::{CONTACTS, Setting, World, entity, whole_name};
use oap_identity::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;

const DAY: i64 = 86_400_000;

/// What tells events apart whose title is hidden.
const PRIVATE: [(&str, &str); 5] = [
    ("/content/structured/visibility", "\"private\""),
    ("/content/structured/visibility", "\"confidential\""),
    ("/content/structured/private", "true"),
    ("/content/structured/private", "\"true\""),
    ("/sensitivity", "\"restricted\""),
];

impl World {
    /// The items that have everything, without grants.
    pub(super) fn with_everything(seed: u64, setting: &Setting) -> Self {
        let mut chance = Chance::new(seed).whole();
        let (common, batches) = everything(&mut chance, setting);
        Self { seed, scope: common.scope, batches, grants: Vec::new() }
    }

    /// The world of tables and cases of a seed, and what is done in it once all was asked.
    #[must_use]
    pub fn whole(seed: u64, setting: &Setting) -> (Self, Vec<Step>) {
        let mut chance = Chance::new(seed).whole();
        let (common, batches) = everything(&mut chance, setting);
        let first = batches.iter().map(Vec::len).sum();
        let cases = Cases::new(&mut chance, setting, &common.scope);
        let mut grants = Grants { setting, scope: &common.scope, made: Vec::new() };
        let tables = json!({"sensitivities": ["internal", "restricted"], "labels_any": common.labels});
        for (profile, level) in SHOWN.into_iter().filter(|(name, _)| setting.has_profile(name)) {
            grants.of_table(profile, level, &tables);
        }
        for filter in cases.filters() {
            grants.of_case(&filter, json!([{"query": "", "integrity": "chain", "max_results": 100}]));
        }
        // Its filter is the last one: how sure one is.
        let of_sure = grants.made.len() - 1;
        grants
            .of_case(&cases.every_field(), json!([{"query": "", "integrity": "chain", "max_results": 100}]));
        // Without a scope, so of the default one.
        grants.of_case(&json!({"labels_any": [cases.unscoped]}), json!([{"integrity": "chain"}]));
        grants.unscoped();
        grants.shared(&cases);
        grants.shown_above(&cases);
        grants.found_last(&cases);
        grants.found_last_below(&cases);
        // More than a page of them; one that has no elements; and what is done is seen under this one.
        let few = json!({"integrity": "chain", "max_results": 1});
        grants.of_case(&json!({}), json!([{"integrity": "chain"}, {"kinds": []}, few, {"labels_any": []}]));
        let grants = grants.made;
        // The last one that is private.
        let restricted = CONTACTS + entity::FORMS + PRIVATE.len();
        let mut batches = batches;
        batches.push(cases.items(&mut chance));
        let world = Self { seed, scope: common.scope.clone(), batches, grants };
        let whole = world.grants.iter().position(|grant| shows_embeddings(&grant.draft));
        let mut steps = whole.map(corrected_whole).unwrap_or_default();
        steps.extend(done(world.grants.len() - 1, [first, restricted], &cases));
        // One of which one is less than sure.
        let [.., surer, _, _] = cases.apart_in();
        steps.extend([Step::Confirm { item: first + surer }, Step::Query { grant: of_sure, query: 0 }]);
        (world, steps)
    }
}

/// Contacts, what others are made from, and items that have every member and every class of spans.
fn everything(chance: &mut Chance, setting: &Setting) -> (Common, Vec<Vec<Item>>) {
    let now = setting.now.millis();
    let common = Common {
        scope: format!("w{}", chance.canary()),
        labels: vec![chance.canary(), chance.canary()],
        subjects: vec![format!("urn:entity:{}", chance.canary())],
        times: [now - 40 * DAY, now - 10 * DAY],
        confidences: vec![1.0],
        ..Common::default()
    };
    let mut people = People::default();
    let mut contacts: Vec<Item> =
        (0..CONTACTS).map(|_| item::contact(chance, &common, &mut people)).collect();
    // A name is one also where nobody may see whose contact it is.
    if let Some(hidden) = contacts.last_mut() {
        (hidden.draft["sensitivity"], hidden.draft["exportable"]) = (json!("restricted"), json!(false));
    }
    let base = vec![every(chance, &common, &people, entity::FORMS - 1)];
    let mut all: Vec<Item> = (0..entity::FORMS).map(|form| every(chance, &common, &people, form)).collect();
    for (at, value) in PRIVATE {
        let mut event = every(chance, &common, &people, 1);
        set(&mut event.draft, at, serde_json::from_str(value).unwrap_or_default());
        all.push(event);
    }
    all.push(crowded(chance, &common, &people));
    // A span of each class at each place.
    for (class, other) in CLASSES.into_iter().zip(CLASSES.into_iter().cycle().skip(1)) {
        chance.take();
        let text = Text::alone(chance, &people, class);
        all.push(of_form(chance, &common, entity::FORMS - 1, text));
        chance.take();
        let text = Text::places(chance, &people, class, other);
        all.push(of_form(chance, &common, entity::FORMS - 1, text));
    }
    for item in &mut all {
        item.derived_from = vec![CONTACTS];
    }
    (common, vec![contacts, base, all])
}

/// Whether a grant is the one of the tables that shows everything, embeddings too, of what is no entity of its profile.
fn shows_embeddings(draft: &Value) -> bool {
    draft["redaction_profile"] == "oap.profile.projection.memory.v1" && draft["trust_level"] == 4
}

/// The first item of the tables becomes like the second one, in what a grant alone shows that shows everything.
fn corrected_whole(grant: usize) -> Vec<Step> {
    let what = [Corrected::Content, Corrected::CapturedAt, Corrected::Extensions, Corrected::Embedding];
    let (item, like) = (CONTACTS + 1, CONTACTS + 2);
    let seen = |what| [Step::Correct { item, like, what }, Step::Query { grant, query: 1 }];
    what.into_iter().flat_map(seen).collect()
}

/// What is done with the items of the cases, the first of which has this number, and with what others were made from; each seen under a grant. The
/// other number is that of an item that is restricted.
fn done(grant: usize, [first, restricted]: [usize; 2], cases: &Cases) -> Vec<Step> {
    // The first two are of other scopes; those after them have labels.
    let (labelled, last) = (first + 2, first + 3);
    let [item, subject, kind, unsure, _, kept_in, over] = cases.apart_in().map(|place| first + place);
    let all = Step::Query { grant, query: 0 };
    let mut steps = Vec::new();
    for (what, like) in [
        (Corrected::Labels, labelled),
        (Corrected::Subject, subject),
        (Corrected::Kind, kind),
        (Corrected::Confidence, unsure),
        // Out of the view, and into it again.
        (Corrected::Sensitivity, restricted),
        (Corrected::Sensitivity, kind),
        (Corrected::Exportable, kept_in),
        (Corrected::Exportable, kind),
        (Corrected::End, over),
    ] {
        steps.extend([Step::Correct { item, like, what }, all.clone()]);
    }
    steps.extend([
        Step::Confirm { item: labelled },
        Step::Relabel { item: labelled, like: last },
        all.clone(),
        Step::Retract { item: labelled },
        all.clone(),
        Step::Restore { item: labelled },
        all.clone(),
        Step::Query { grant, query: 2 },
        Step::Retract { item: last },
        Step::Page { grant },
        Step::Delete { item: CONTACTS },
        all,
    ]);
    steps
}

fn set(draft: &mut Value, at: &str, value: Value) {
    let (above, name) = at.rsplit_once('/').unwrap_or_default();
    if let Some(members) = draft.pointer_mut(above).and_then(Value::as_object_mut) {
        members.insert(name.to_owned(), value);
    }
}

/// An item of a form with every member, and a text with every class of spans.
fn every(chance: &mut Chance, common: &Common, people: &People, form: usize) -> Item {
    chance.take();
    let text = Text::every(chance, people);
    of_form(chance, common, form, text)
}

/// The same, with a text that has very many spans.
fn crowded(chance: &mut Chance, common: &Common, people: &People) -> Item {
    chance.take();
    let text = Text::many(chance, people);
    of_form(chance, common, entity::FORMS - 1, text)
}

fn of_form(chance: &mut Chance, common: &Common, form: usize, text: Text) -> Item {
    let mut structured = entity::make(chance, form);
    if form == 1 {
        // An event that everybody may know of, whose gateway counts who takes part.
        let open =
            [("transparency", json!("busy")), ("visibility", json!("public")), ("private", json!(false))];
        for (name, value) in open {
            structured[name] = value;
        }
        structured.as_object_mut().map(|event| event.remove("participants_count"));
    }
    let at = Timestamp::from_seconds(common.times[0] / 1_000 + chance.below(1_000_000) as i64);
    // To the second: it is written to the millisecond.
    let at = at.to_string().replace(".000Z", "");
    chance.planted(at.clone());
    let draft = json!({
        "kind": "fact", "scope_id": common.scope, "content": {"text": text.text, "structured": structured},
        "subject_entity_id": common.subjects[0], "labels": common.labels,
        "provenance": {
            "captured_at": format!("{at}Z"), "confidence": 1, "channel": chance.canary(),
            "tool": {"name": chance.canary()},
        },
        "ttl_days": 36_500, "expires_at": chance.moment(common.times[1] + 400 * DAY, DAY.cast_unsigned()),
        "exportable": true, "sensitivity": "internal",
        "embedding": {"model": chance.canary(), "dimensions": 3, "vector_url": chance.canary()},
        "extensions": {format!("example.{}", chance.canary()): {"trail": chance.canary()}},
    });
    item::finished(chance, draft, text.spans, common)
}

/// The grants as they are made, each for a grantee of its own.
struct Grants<'a> {
    setting: &'a Setting,
    scope: &'a str,
    made: Vec<Grant>,
}

impl Grants<'_> {
    fn add(&mut self, profile: &str, level: u8, filter: &Value, queries: Value) {
        let draft = json!({
            "scope": self.scope, "purpose": "a look at every table", "filter": filter,
            "expires_at": self.setting.now.plus(Duration::from_secs(86_400 - 600)),
            "max_items": self.setting.max_items.min(100),
            "redaction_profile": whole_name(profile), "trust_level": level,
            "embedding_access": true,
        });
        let queries = queries.as_array().cloned().unwrap_or_default();
        self.made.push(Grant { grantee: self.made.len(), parent: None, draft, queries });
    }

    fn of_table(&mut self, profile: &str, level: u8, filter: &Value) {
        let mut queries = json!([{"query": "", "max_results": 100}]);
        if level == 4 {
            queries = json!([{"query": "", "max_results": 100}, {"query": "", "max_results": 100, "include_embeddings": true}]);
        }
        self.add(profile, level, filter, queries);
        if let Some(last) = self.made.last_mut() {
            last.draft["operations"] = json!(["query", "export"]);
        }
    }

    /// At the level that shows little, where there is one: what counts is which items come.
    fn of_case(&mut self, filter: &Value, queries: Value) {
        let (profile, level) = self.setting.general().map_or(("full", 4), |name| (name, 1));
        self.add(profile, level, filter, queries);
    }

    /// A grant of three items, and three that are made from it: the first one uses two of them up, the next one has more and shows the third, and
    /// nothing is left for the last one.
    fn shared(&mut self, cases: &Cases) {
        self.of_case(&json!({}), json!([]));
        let (parent, most) = (self.made.len() - 1, 3.min(self.setting.max_items));
        if let Some(above) = self.made.last_mut() {
            above.draft["max_items"] = json!(most);
            above.draft["delegable"] = json!({"max_depth": 1});
        }
        let ([two, one], [five, ..]) = (cases.apart(), cases.found_last());
        for label in [two, five, one] {
            let filter = json!({"labels_any": [label], "labels_all": [label]});
            let draft = json!({"filter": filter, "max_items": most});
            let queries = vec![json!({"integrity": "chain"})];
            self.made.push(Grant { grantee: self.made.len(), parent: Some(parent), draft, queries });
        }
    }

    /// A grant, and one of two items that is made from it: what the first one has shown already takes the room of the other all the same.
    fn shown_above(&mut self, cases: &Cases) {
        let [a, c] = cases.apart();
        self.of_case(&json!({"labels_any": [a, c]}), json!([{"integrity": "chain"}]));
        let parent = self.made.len() - 1;
        if let Some(above) = self.made.last_mut() {
            above.draft["delegable"] = json!({"max_depth": 1});
        }
        let queries = [c, a].map(|label| json!({"labels_any": [label], "integrity": "chain"})).to_vec();
        let draft = json!({"max_items": 2.min(self.setting.max_items)});
        self.made.push(Grant { grantee: self.made.len(), parent: Some(parent), draft, queries });
    }

    /// A grant of two items, one of which it has shown: it is found behind others, for which there is no room but for one.
    fn found_last(&mut self, cases: &Cases) {
        let [all, last, word] = cases.found_last();
        let (profile, level) = self.setting.general().map_or(("full", 4), |name| (name, 3));
        let queries = json!([
            {"labels_any": [last], "integrity": "chain"},
            {"query": word, "max_results": 2, "integrity": "chain"},
        ]);
        self.add(profile, level, &json!({"labels_any": [all]}), queries);
        if let Some(grant) = self.made.last_mut() {
            grant.draft["max_items"] = json!(2.min(self.setting.max_items));
        }
    }

    /// The same where the one above has less room than the one that is made from it: it has shown another item as well.
    fn found_last_below(&mut self, cases: &Cases) {
        let ([_, other], [all, last, word]) = (cases.apart(), cases.found_last());
        let (profile, level) = self.setting.general().map_or(("full", 4), |name| (name, 3));
        let of = |label: &str| json!({"labels_any": [label], "integrity": "chain"});
        self.add(profile, level, &json!({"labels_any": [all, other]}), json!([of(last), of(other)]));
        let (parent, most) = (self.made.len() - 1, 4.min(self.setting.max_items));
        if let Some(above) = self.made.last_mut() {
            above.draft["max_items"] = json!(most);
            above.draft["delegable"] = json!({"max_depth": 1});
        }
        let draft = json!({"filter": {"labels_any": [all]}, "max_items": most});
        let queries = vec![of(last), json!({"query": word, "max_results": 2, "integrity": "chain"})];
        self.made.push(Grant { grantee: self.made.len(), parent: Some(parent), draft, queries });
    }

    /// The last one names no scope.
    fn unscoped(&mut self) {
        let draft = self.made.last_mut().and_then(|grant| grant.draft.as_object_mut());
        draft.map(|members| members.remove("scope"));
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Planted, leaves};
    use super::*;

    #[test]
    fn every_item_of_a_table_has_every_class_of_spans() {
        let setting = Setting::of(&json!({}), Timestamp::from_millis(1_777_636_800_000));
        let (world, _) = World::whole(1, &setting);
        for item in world.batches[2].iter().take(entity::FORMS + PRIVATE.len() + 1) {
            let Planted { spans, .. } = &item.planted;
            let classes: Vec<&str> = spans.values().flatten().map(|span| span.class.as_str()).collect();
            assert!(CLASSES.iter().all(|class| classes.contains(class)), "{classes:?}");
            assert!(leaves(&item.draft).contains_key("/embedding/model"));
        }
    }
}
