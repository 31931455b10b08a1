//! A graph as the evaluator reads it.

use crate::graph::Chosen;
use crate::meter::{Counted, Meter};
use indexmap::IndexSet;
use oxrdf::{BlankNode, Literal, NamedNode, Term};
use spareval::{InternalQuad, QueryableDataset};
use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::rc::Rc;
use std::sync::Arc;

/// What one query reads, with the terms that it makes.
pub(crate) struct Read<'a> {
    chosen: &'a Chosen<'a>,
    /// Terms that the graph does not have; their numbers follow those of the graph.
    made: RefCell<IndexSet<Term>>,
    /// The subjects of which something was read, by their numbers.
    subjects: Subjects,
    meter: Arc<Meter>,
}

/// Which subjects were read.
pub(crate) type Subjects = Rc<[Cell<bool>]>;

impl<'a> Read<'a> {
    pub fn new(chosen: &'a Chosen<'a>, meter: Arc<Meter>) -> Self {
        let subjects = (0..chosen.graph.terms()).map(|_| Cell::new(false)).collect();
        Self { chosen, made: RefCell::default(), subjects, meter }
    }

    /// Which subjects are read, to be looked at when all is done.
    pub fn subjects(&self) -> Subjects {
        Rc::clone(&self.subjects)
    }

    /// The number of a term. One that the query made is kept until its end.
    fn number(&self, term: Term) -> u32 {
        if let Some(number) = self.chosen.graph.number(&term) {
            return number;
        }
        let mut made = self.made.borrow_mut();
        let at = made.get_index_of(&term).unwrap_or_else(|| {
            self.meter.keeping(AROUND_TERM + length(&term));
            made.insert_full(term).0
        });
        u32::try_from(self.chosen.graph.terms() + at).unwrap_or(u32::MAX)
    }

    fn term(&self, number: u32) -> Term {
        if let Some(term) = self.chosen.graph.term(number) {
            return term.clone();
        }
        let at = (number as usize).saturating_sub(self.chosen.graph.terms());
        let made = self.made.borrow();
        // Every number was given out here.
        made.get_index(at).cloned().unwrap_or_else(|| Literal::from("").into())
    }
}

/// Something of a subject is read; of the name of a graph, that it is there: it names a source, which is a subject.
fn mark(subjects: &Subjects, number: u32) {
    if let Some(subject) = subjects.get(number as usize) {
        subject.set(true);
    }
}

/// Bytes of a term that is kept, beside its text.
const AROUND_TERM: usize = 96;

/// How long the text of a term is, in bytes.
pub(crate) fn length(term: &Term) -> usize {
    let named = |node: &NamedNode| node.as_str().len();
    let blank = |node: &BlankNode| node.as_str().len();
    match term {
        Term::NamedNode(node) => named(node),
        Term::BlankNode(node) => blank(node),
        Term::Literal(literal) => literal.value().len() + literal.language().map_or(0, str::len),
    }
}

impl<'a> QueryableDataset<'a> for Read<'a> {
    type InternalTerm = Counted;
    type Error = Infallible;

    fn internal_quads_for_pattern(
        &self,
        subject: Option<&Counted>,
        predicate: Option<&Counted>,
        object: Option<&Counted>,
        graph: Option<Option<&Counted>>,
    ) -> impl Iterator<Item = Result<InternalQuad<Counted>, Infallible>> + use<'a> {
        self.meter.step(0);
        let pattern = [subject, predicate, object].map(|term| term.map(Counted::number));
        let chosen = self.chosen;
        let graphs: Box<dyn Iterator<Item = (Option<u32>, _)> + 'a> = match graph {
            Some(None) => Box::new(std::iter::once((None, chosen.default.as_ref()))),
            Some(Some(name)) => {
                let number = name.number();
                Box::new(chosen.named.get(&number).map(|triples| (Some(number), *triples)).into_iter())
            }
            None => {
                let meter = Arc::clone(&self.meter);
                Box::new(chosen.named.iter().map(move |(number, triples)| {
                    // A graph that has nothing of it takes time, too.
                    meter.step(0);
                    (Some(*number), *triples)
                }))
            }
        };
        let (meter, subjects) = (Arc::clone(&self.meter), self.subjects());
        graphs.flat_map(move |(graph, triples)| {
            let (meter, subjects) = (Arc::clone(&meter), Rc::clone(&subjects));
            triples.matching(pattern).map(move |triple| {
                mark(&subjects, triple[0]);
                let [subject, predicate, object] = triple.map(|number| Counted::new(number, &meter));
                let graph_name = graph.map(|number| Counted::new(number, &meter));
                Ok(InternalQuad { subject, predicate, object, graph_name })
            })
        })
    }

    fn internal_named_graphs(&self) -> impl Iterator<Item = Result<Counted, Infallible>> + use<'a> {
        let (meter, subjects) = (Arc::clone(&self.meter), self.subjects());
        self.chosen.named.keys().map(move |number| {
            mark(&subjects, *number);
            Ok(Counted::new(*number, &meter))
        })
    }

    fn contains_internal_graph_name(&self, graph: &Counted) -> Result<bool, Infallible> {
        let is_there = self.chosen.named.contains_key(&graph.number());
        if is_there {
            mark(&self.subjects, graph.number());
        }
        Ok(is_there)
    }

    fn internalize_term(&self, term: Term) -> Result<Counted, Infallible> {
        Ok(Counted::new(self.number(term), &self.meter))
    }

    fn externalize_term(&self, term: Counted) -> Result<Term, Infallible> {
        let term = self.term(term.number());
        self.meter.step(length(&term));
        Ok(term)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::Bounds;
    use crate::error::Error;
    use crate::graph::Graph;
    use crate::meter::stoppable;
    use crate::record::Record;

    #[test]
    fn each_graph_that_is_looked_into_is_a_step() {
        let record = |number: usize| Record {
            id: format!("mem_{number}"),
            source: Some(format!("https://s{number}.example/")),
            version: Some(1),
            ..Record::default()
        };
        let graph = Graph::of(&(0..100).map(record).collect::<Vec<_>>()).unwrap();
        let chosen = graph.whole();
        let looked = |steps: u64| {
            let bounds = Bounds { steps, ..Bounds::until(|| false) };
            stoppable(|| {
                let read = Read::new(&chosen, Meter::new(&bounds, 1));
                let nothing = NamedNode::new_unchecked("urn:nothing");
                let nothing = read.internalize_term(nothing.into()).unwrap();
                Ok(read.internal_quads_for_pattern(None, Some(&nothing), None, None).count())
            })
        };
        assert_eq!((looked(50), looked(200)), (Err(Error::Steps), Ok(0)));
    }
}
