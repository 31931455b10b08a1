//! Twins: worlds that differ only in what a grantee may not learn.

use super::chance::Chance;
use super::item::{self, Common, Item};
use super::text::{People, Text};
use super::{CONTACTS, Setting, Span, World, leaves};
use oap_identity::Timestamp;
use serde_json::{Value, json};

/// Members whose values have a meaning that other members follow from.
const FIXED: [&str; 4] = ["entity_type", "kind", "scope_id", "sensitivity"];

impl World {
    /// The world with a time of its own for each item, so that their order does not hang on ids, and without items that were made from
    /// others, whose ids are shown.
    #[must_use]
    pub fn apart(&self, setting: &Setting) -> Self {
        let mut world = self.clone();
        for (number, item) in world.batches.iter_mut().flatten().enumerate() {
            let at = item.draft["provenance"]["captured_at"].as_str().and_then(|at| at.parse().ok());
            let at = at.map_or(setting.now.millis() - 86_400_000, |at: Timestamp| at.millis());
            let number = i64::try_from(number).unwrap_or(0);
            item.draft["provenance"]["captured_at"] = json!(Timestamp::from_millis(at + 7 * number));
            item.derived_from.clear();
        }
        world
    }

    /// A world that looks the same. `same` says whether an item looks like another one; what hides it is asked for each change,
    /// and every change that does not show is made. Of the items that nobody sees half are left out. Contacts stay.
    #[must_use]
    pub fn twin(
        &self,
        seed: u64,
        setting: &Setting,
        seen: &dyn Fn(&Item) -> bool,
        same: &dyn Fn(&Item, &Item) -> bool,
    ) -> Self {
        let mut chance = Chance::new(seed);
        let mut twin = self.clone();
        let mut number = 0;
        for batch in &mut twin.batches {
            batch.retain_mut(|item| {
                number += 1;
                if number <= CONTACTS {
                    return true;
                }
                if !seen(item) && chance.once_in(2) {
                    return false;
                }
                *item = changed(&mut chance, setting, &self.scope, item, same);
                true
            });
        }
        twin
    }
}

/// An item that looks the same and is another wherever that does not show.
fn changed(
    chance: &mut Chance,
    setting: &Setting,
    scope: &str,
    item: &Item,
    same: &dyn Fn(&Item, &Item) -> bool,
) -> Item {
    let mut twin = item.clone();
    let mut attempt = |change: &mut dyn FnMut(&mut Chance, &mut Item), chance: &mut Chance| {
        let mut other = twin.clone();
        change(chance, &mut other);
        if other != twin && same(item, &other) {
            twin = other;
        }
    };
    // As a whole: another item altogether, of the same kind and time, where nothing of it is seen.
    attempt(
        &mut |chance, other| {
            let common = Common {
                scope: scope.to_owned(),
                labels: vec![chance.canary()],
                subjects: vec![chance.canary()],
                times: [setting.now.millis() - 2_000_000, setting.now.millis() - 1_000_000],
                confidences: vec![0.3, 0.7],
                ..Common::default()
            };
            *other = item::make(chance, setting, &common, &People::default());
            other.draft["provenance"] = item.draft["provenance"].clone();
        },
        chance,
    );
    attempt(
        &mut |chance, other| {
            let text = Text::make(chance, &People::default());
            other.draft["content"]["text"] = json!(text.text);
            other.planted.spans = [("/content/text".to_owned(), text.spans)].into();
        },
        chance,
    );
    let spans = item.planted.spans.get("/content/text").map_or(0, Vec::len);
    for number in 0..spans {
        attempt(&mut |chance, other| respanned(chance, other, number), chance);
    }
    for (at, leaf) in leaves(&item.draft) {
        let name = at.rsplit('/').next().unwrap_or_default();
        if !FIXED.contains(&name) && at != "/content/text" {
            attempt(&mut |chance, other| releafed(chance, other, &at, &leaf), chance);
        }
    }
    for name in ["extensions", "embedding", "ttl_days", "subject_entity_id", "sensitivity", "labels"] {
        attempt(&mut |chance, other| toggled(chance, other, name), chance);
    }
    twin
}

/// Another span of its class, of another length.
fn respanned(chance: &mut Chance, item: &mut Item, number: usize) {
    let Some(spans) = item.planted.spans.get_mut("/content/text") else { return };
    let Some(text) = item.draft["content"]["text"].as_str().map(str::to_owned) else { return };
    let Some(span) = spans.get(number).cloned() else { return };
    let other = match span.class.as_str() {
        "email" => format!("{}.{}@other.example", chance.canary(), chance.canary()),
        "url_credentials" => format!("https://{}:{}@host.example/other", chance.canary(), chance.canary()),
        "phone" => format!("+49 30 {}{}", 2 + chance.below(7), chance.digits(7)),
        "ip" => format!("10.{}.{}.{}", chance.below(250), chance.below(250), chance.below(250)),
        "secret" if !span.text.starts_with("sk_") && !span.text.starts_with("glpat") => {
            format!("{}-{}", chance.canary(), chance.canary())
        }
        "secret" => format!("sk_live_{}{}", chance.canary(), chance.digits(14)),
        _ => return,
    };
    let (Some(before), Some(after)) = (text.get(..span.start), text.get(span.end..)) else { return };
    item.draft["content"]["text"] = json!(format!("{before}{other}{after}"));
    let longer = other.len() as i64 - (span.end - span.start) as i64;
    for (n, later) in spans.iter_mut().enumerate() {
        let moved = |place: usize| usize::try_from(place as i64 + longer).unwrap_or(place);
        if n == number {
            *later = Span { end: moved(later.end), text: other.clone(), ..later.clone() };
        } else if n > number {
            *later = Span { start: moved(later.start), end: moved(later.end), ..later.clone() };
        }
    }
}

/// Another value of the same type, of another length.
fn releafed(chance: &mut Chance, item: &mut Item, at: &str, leaf: &Value) {
    let other = match leaf {
        Value::String(text) if text.parse::<Timestamp>().is_ok() => {
            json!(Timestamp::from_millis(1_700_000_000_000 + 1000 * chance.below(9_000_000) as i64))
        }
        Value::String(text) if text.starts_with("did:") => {
            json!(format!("did:web:{}.other.example", chance.canary()))
        }
        Value::String(_) => json!(format!("{} {}", chance.canary(), chance.canary())),
        Value::Bool(is) => json!(!is),
        Value::Number(number) if number.as_f64().is_some_and(|n| n > 0.0 && n < 1.0) => json!(0.61),
        Value::Number(number) if number.as_u64().is_some_and(|n| n > 1_000) => json!(chance.number()),
        _ => return,
    };
    if let Some(place) = item.draft.pointer_mut(at) {
        *place = other;
    }
}

/// A member that comes or goes.
fn toggled(chance: &mut Chance, item: &mut Item, name: &str) {
    let Some(members) = item.draft.as_object_mut() else { return };
    if members.remove(name).is_some() {
        return;
    }
    let value = match name {
        "extensions" => json!({"example.other": {chance.canary(): [chance.canary()]}}),
        "embedding" => json!({"model": chance.canary()}),
        "ttl_days" => json!(30_000),
        "subject_entity_id" => json!(format!("urn:entity:{}", chance.canary())),
        "sensitivity" => json!("confidential"),
        _ => json!([chance.canary(), chance.canary()]),
    };
    members.insert(name.to_owned(), value);
}
