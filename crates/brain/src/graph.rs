//! The graph of what a caller sees: computed of the records that it sees, and of nothing else.

use crate::bounds::{MAX_RECORDS, MAX_TRIPLES};
use crate::describe::{Describing, Place};
use crate::error::Error;
use crate::record::Record;
use crate::triples::{Numbers, Triples};
use crate::vocabulary::{CURRENT, HISTORY};
use indexmap::IndexSet;
use oxrdf::{NamedNode, Term, Triple};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// A graph of records, to be asked as often as one likes. It is never stored: it lives as long as the view that it was made of.
///
/// Its default graph is what is in force. Named are the graph of what was ([`HISTORY`]) and, of each source, the graph of what is in
/// force and comes from there, by the IRI of the source.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    terms: IndexSet<Term>,
    current: Triples,
    named: BTreeMap<u32, Triples>,
    /// The records that say something of a subject, by their places in the list.
    said: BTreeMap<u32, Vec<usize>>,
}

/// The numbers of a graph while it grows.
#[derive(Default)]
struct Growing {
    terms: IndexSet<Term>,
    current: Vec<Numbers>,
    named: BTreeMap<u32, Vec<Numbers>>,
    said: BTreeMap<u32, Vec<usize>>,
    record: usize,
    triples: usize,
    full: bool,
}

impl Growing {
    fn number(&mut self, term: Term) -> u32 {
        // Three terms a triple at most, and the triples have a bound far below.
        u32::try_from(self.terms.insert_full(term).0).unwrap_or(u32::MAX)
    }

    fn put(&mut self, place: &Place, triple: Triple) {
        self.full |= self.triples >= MAX_TRIPLES;
        if self.full {
            return;
        }
        let numbers = [
            self.number(triple.subject.into()),
            self.number(triple.predicate.into()),
            self.number(triple.object),
        ];
        let said = self.said.entry(numbers[0]).or_default();
        if said.last() != Some(&self.record) {
            said.push(self.record);
        }
        let graph = match place {
            Place::Current(None) => None,
            Place::Current(Some(source)) => Some(source.clone()),
            Place::History => Some(NamedNode::new_unchecked(HISTORY)),
        };
        if matches!(place, Place::Current(_)) {
            self.current.push(numbers);
            self.triples += 1;
        }
        // Who names a source as we name our own graphs has it in the default graph alone.
        let ours = graph.as_ref().is_some_and(|graph| [CURRENT, HISTORY].contains(&graph.as_str()));
        if let Some(graph) = graph.filter(|_| !ours || matches!(place, Place::History)) {
            let graph = self.number(graph.into());
            self.named.entry(graph).or_default().push(numbers);
            self.triples += 1;
        }
    }
}

impl Graph {
    /// The graph of these records.
    ///
    /// # Errors
    ///
    /// [`Error::MuchRemembered`], where there are more than [`MAX_RECORDS`] records or [`MAX_TRIPLES`] triples.
    pub fn of<'a>(records: impl IntoIterator<Item = &'a Record>) -> Result<Self, Error> {
        let records: Vec<&Record> = records.into_iter().collect();
        if records.len() > MAX_RECORDS {
            return Err(Error::MuchRemembered);
        }
        let in_force = records.iter().filter(|record| record.retracted_at.is_none());
        let in_force: BTreeSet<&str> = in_force.map(|record| record.id.as_str()).collect();
        let mut growing = Growing::default();
        growing.number(NamedNode::new_unchecked(CURRENT).into());
        for (at, record) in records.iter().enumerate() {
            growing.record = at;
            let mut describing =
                Describing { in_force: &in_force, put: |place: &Place, triple| growing.put(place, triple) };
            describing.record(record);
        }
        if growing.full {
            return Err(Error::MuchRemembered);
        }
        let named = growing.named.into_iter().map(|(graph, triples)| (graph, Triples::of(triples)));
        Ok(Self {
            terms: growing.terms,
            current: Triples::of(growing.current),
            named: named.collect(),
            said: growing.said,
        })
    }

    /// How many triples are in force.
    pub fn len(&self) -> usize {
        self.current.len()
    }

    /// How many triples it has, with those of its named graphs.
    pub fn size(&self) -> usize {
        self.len() + self.named.values().map(Triples::len).sum::<usize>()
    }

    /// Nothing is in force.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The names of the named graphs.
    pub fn names(&self) -> impl Iterator<Item = &NamedNode> {
        self.named.keys().filter_map(|graph| match self.term(*graph)? {
            Term::NamedNode(name) => Some(name),
            _ => None,
        })
    }

    /// The triples in force.
    pub fn triples(&self) -> impl Iterator<Item = Triple> {
        let triple = |[subject, predicate, object]: &Numbers| {
            let (Term::NamedNode(subject), Term::NamedNode(predicate)) =
                (self.term(*subject)?, self.term(*predicate)?)
            else {
                return None;
            };
            Some(Triple::new(subject.clone(), predicate.clone(), self.term(*object)?.clone()))
        };
        self.current.all().iter().filter_map(triple)
    }

    /// The records that say something of these subjects, by their places in the list that the graph was made of, in order.
    pub(crate) fn records(&self, subjects: impl Iterator<Item = u32>) -> Vec<usize> {
        let records = subjects.filter_map(|subject| self.said.get(&subject)).flatten();
        records.copied().collect::<BTreeSet<usize>>().into_iter().collect()
    }

    /// The term of a number.
    pub(crate) fn term(&self, number: u32) -> Option<&Term> {
        self.terms.get_index(number as usize)
    }

    /// The number of a term, where the graph has it.
    pub(crate) fn number(&self, term: &Term) -> Option<u32> {
        self.terms.get_index_of(term).and_then(|number| u32::try_from(number).ok())
    }

    /// How many terms have a number.
    pub(crate) fn terms(&self) -> usize {
        self.terms.len()
    }

    /// What is asked where nothing else is said: what is in force, with every named graph.
    pub(crate) fn whole(&self) -> Chosen<'_> {
        let named = self.named.iter().map(|(graph, triples)| (*graph, triples)).collect();
        Chosen { graph: self, default: Cow::Borrowed(&self.current), named }
    }

    /// What is asked where a dataset is chosen: the default graph is these graphs as one, and these alone have names.
    /// A graph that is not there is empty, whoever's name it is.
    pub(crate) fn choose(&self, default: &[NamedNode], named: &[NamedNode]) -> Chosen<'_> {
        let find = |name: &NamedNode| {
            if name.as_str() == CURRENT {
                return Some((self.number(&name.clone().into()), &self.current));
            }
            let number = self.number(&name.clone().into())?;
            Some((Some(number), self.named.get(&number)?))
        };
        // Each once, however often it is named: what is copied is no more than there is.
        let chosen: BTreeMap<Option<u32>, &Triples> = default.iter().filter_map(find).collect();
        let chosen: Vec<&Triples> = chosen.into_values().collect();
        let default = match chosen.as_slice() {
            [one] => Cow::Borrowed(*one),
            several => {
                let all = several.iter().flat_map(|triples| triples.all());
                Cow::Owned(Triples::of(all.copied().collect()))
            }
        };
        let named = named.iter().filter_map(find).filter_map(|(number, triples)| Some((number?, triples)));
        Chosen { graph: self, default, named: named.collect() }
    }
}

/// What of a graph one query asks.
pub(crate) struct Chosen<'a> {
    pub graph: &'a Graph,
    pub default: Cow<'a, Triples>,
    pub named: BTreeMap<u32, &'a Triples>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_of_a_record_is_in_no_triple() {
        let graph = Graph::of([&Record { id: "mem_1".into(), ..Record::default() }]).unwrap();
        let said: BTreeSet<String> = graph.triples().map(|triple| triple.object.to_string()).collect();
        let classes = ["<http://www.w3.org/ns/prov#Entity>", "<https://trails.dev/ns/brain/v1#Fact>"];
        assert_eq!((said, graph.size()), (BTreeSet::from(classes.map(str::to_owned)), 2));
    }

    #[test]
    fn a_graph_that_is_named_often_is_copied_as_one_that_is_named_once() {
        let record = |id: &str, retracted_at: Option<&str>| Record {
            id: id.to_owned(),
            content: Some(id.to_owned()),
            version: Some(1),
            retracted_at: retracted_at.map(str::to_owned),
            ..Record::default()
        };
        let graph =
            Graph::of(&[record("mem_1", None), record("mem_2", Some("2026-11-23T08:00:00Z"))]).unwrap();
        let [current, history] = [CURRENT, HISTORY].map(NamedNode::new_unchecked);
        let often = vec![current.clone(); 500];
        assert!(matches!(graph.choose(&often, &[]).default, Cow::Borrowed(all) if all.len() == graph.len()));
        let both: Vec<NamedNode> = often.iter().cloned().chain(vec![history; 500]).collect();
        assert_eq!(graph.choose(&both, &[]).default.len(), graph.size());
    }
}
