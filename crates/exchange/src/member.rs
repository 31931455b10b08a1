//! What a view keeps of an item: what selecting, ranking, filters and cursors need, and nothing written out.

use crate::gate::Fired;
use crate::item::visible_text;
use crate::rank::{Document, Words};
use crate::vector::Vector;
use oap_identity::{Hash, ItemId, Timestamp};
use oap_memory::epistemic::Epistemic;
use oap_memory::record::Head;
use oap_memory::text::Language;
use oap_memory::{Confidence, Kind};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One version of an item, at one state of its chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Version {
    pub item: ItemId,
    /// The number of the link whose version is in force.
    pub number: u32,
    /// The number of the last link of its chain: what is shown is in force until another follows.
    pub last_link: u32,
}

/// An item of a view.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) version: Version,
    pub(crate) commitment: Hash,
    pub(crate) attitude: Epistemic,
    /// As it is visible.
    pub(crate) kind: Option<Kind>,
    pub(crate) labels: Arc<[String]>,
    pub(crate) confidence: Option<Confidence>,
    pub(crate) captured_at: Timestamp,
    /// From when on it is in no view.
    pub(crate) end_of_life: Option<Timestamp>,
    /// The rules of the gates that fired, and let it pass.
    pub(crate) rules: Fired,
    pub(crate) vector: Option<Vector>,
}

impl Member {
    pub(crate) const fn id(&self) -> ItemId {
        self.version.item
    }

    pub(crate) fn document<'a>(&self, text: &'a str) -> Document<'a> {
        let kind = self.kind.unwrap_or(Kind::Fact);
        Document { item: self.id(), text, kind, captured_at: self.captured_at }
    }

    /// How much memory it takes, in bytes, about.
    pub(crate) fn bytes(&self) -> usize {
        // Its place, and its entry in the order of ids, in nodes that are half full.
        size_of::<Option<Self>>()
            + 2 * (size_of::<ItemId>() + size_of::<u32>())
            + self.vector.as_ref().map_or(0, Vector::bytes)
    }
}

/// An item that is about to be a member, with what is matched of it.
#[derive(Debug)]
pub(crate) struct Entering {
    pub(crate) member: Member,
    pub(crate) text: String,
    pub(crate) words: Words,
}

impl Entering {
    pub(crate) fn of(
        head: &Head,
        rules: Fired,
        attitude: Epistemic,
        commitment: Hash,
        visible: &Map<String, Value>,
        language: Language,
    ) -> Self {
        let provenance = |name: &str| visible.get("provenance").and_then(|p| p.get(name));
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let labels = visible.get("labels").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let member = Member {
            version: Version::of(head),
            commitment,
            attitude,
            kind: text(visible.get("kind")).and_then(|kind| kind.parse().ok()),
            labels: labels.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect(),
            confidence: provenance("confidence").and_then(Value::as_f64).and_then(|c| c.try_into().ok()),
            captured_at: text(provenance("captured_at"))
                .and_then(|at| at.parse().ok())
                .unwrap_or(Timestamp::from_millis(0)),
            end_of_life: head.end_of_life,
            rules,
            vector: None,
        };
        let text = visible_text(visible);
        Self { member, words: Words::of(&text, language), text }
    }
}

/// The sets of labels of the members, each kept once.
#[derive(Debug, Default)]
pub(crate) struct Labels {
    /// With how many members have it.
    sets: BTreeMap<Arc<[String]>, usize>,
    bytes: usize,
}

impl Labels {
    /// The kept one of a set.
    pub(crate) fn keep(&mut self, labels: Arc<[String]>) -> Arc<[String]> {
        if let Some((kept, _)) = self.sets.get_key_value(&labels) {
            let kept = kept.clone();
            self.sets.entry(kept.clone()).and_modify(|members| *members += 1);
            return kept;
        }
        self.bytes += size(&labels);
        self.sets.insert(labels.clone(), 1);
        labels
    }

    /// Lets go of a member's set, where it was the last to have it. Answers that are under way may have it, too: they do not count.
    pub(crate) fn release(&mut self, labels: &Arc<[String]>) {
        let Some(members) = self.sets.get_mut(labels) else { return };
        *members -= 1;
        if *members == 0 {
            self.sets.remove(labels);
            self.bytes -= size(labels);
        }
    }

    /// How much memory they take, in bytes, about.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }
}

fn size(labels: &[String]) -> usize {
    2 * size_of::<Arc<[String]>>()
        + labels.iter().map(|label| size_of::<String>() + label.len()).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// An answer that is under way holds a member's labels: the view lets go of them all the same.
    #[test]
    fn labels_go_with_the_last_member_that_has_them() {
        let of = |label: &str| Arc::from([label.to_owned()]);
        let mut labels = Labels::default();
        let (one, other) = (labels.keep(of("zanzibar")), labels.keep(of("zanzibar")));
        let answer = one.clone();
        assert!(Arc::ptr_eq(&one, &other));
        // Where it is and how often, twice, and the text.
        let taken = 2 * size_of::<Arc<[String]>>() + size_of::<String>() + "zanzibar".len();
        assert_eq!(labels.bytes(), taken);
        labels.release(&one);
        assert_eq!(labels.bytes(), taken);
        labels.release(&other);
        assert!(labels.sets.is_empty() && labels.bytes() == 0);
        drop(answer);
    }
    /// What a view may take is counted in members and their vectors.
    #[test]
    fn a_member_takes_its_place_and_its_vector() {
        let mut member = Member {
            version: Version { item: ItemId::from_bytes([1; 16]), number: 0, last_link: 0 },
            commitment: Hash::of(b""),
            attitude: Epistemic::Belief,
            kind: None,
            labels: [].into(),
            confidence: None,
            captured_at: Timestamp::from_millis(0),
            end_of_life: None,
            rules: Fired::of(&BTreeSet::new()),
            vector: None,
        };
        let plain = member.bytes();
        assert_eq!(plain, size_of::<Option<Member>>() + 2 * (16 + 4));
        let vector = Vector::new(vec![0.5; 64]).unwrap();
        let taken = vector.bytes();
        member.vector = Some(vector);
        assert_eq!(member.bytes(), plain + taken);
        assert!(taken >= 64 * size_of::<f32>());
    }
}
