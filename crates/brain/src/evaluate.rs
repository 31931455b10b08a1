//! A query over a graph: evaluated to its end, or refused.

use crate::bounds::Bounds;
use crate::dataset::{Read, length};
use crate::error::Error;
use crate::functions::evaluator;
use crate::graph::{Chosen, Graph};
use crate::meter::{Meter, stoppable};
use crate::query::Asked;
use indexmap::IndexSet;
use oxrdf::{NamedNode, Term, Triple, Variable};
use spareval::{QueryDatasetSpecification, QueryEvaluationError, QueryResults};

/// The graphs that a request chooses. None at all is the whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dataset {
    /// Together they are the default graph.
    pub default: Vec<NamedNode>,
    /// These alone have names.
    pub named: Vec<NamedNode>,
}

/// What a query found.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// Of a SELECT: the variables, and in each row a term or nothing for each of them.
    Solutions(Vec<Variable>, Vec<Vec<Option<Term>>>),
    /// Of an ASK.
    Boolean(bool),
    /// Of a CONSTRUCT or DESCRIBE, each once.
    Triples(Vec<Triple>),
}

/// What a query found, and of what.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// What it found.
    pub outcome: Outcome,
    /// The records of which anything was read on the way, by their places in the list that the graph was made of, in order: what is not
    /// among them made no difference to the outcome but by not matching.
    pub read: Vec<usize>,
}

/// Asks a graph. A dataset that the request chooses goes before the query's own.
///
/// # Errors
///
/// [`Error::Fetch`], where the query would have a graph fetched; what a query may not take.
pub fn evaluate(graph: &Graph, asked: &Asked, dataset: &Dataset, bounds: &Bounds) -> Result<Found, Error> {
    let chosen = choose(graph, asked, dataset)?;
    let bounds = bounds.checked();
    stoppable(|| run(&chosen, asked, &bounds))
}

fn choose<'a>(graph: &'a Graph, asked: &Asked, dataset: &Dataset) -> Result<Chosen<'a>, Error> {
    if *dataset != Dataset::default() {
        return Ok(graph.choose(&dataset.default, &dataset.named));
    }
    asked.fetches_nothing()?;
    Ok(asked.from().map_or_else(|| graph.whole(), |(default, named)| graph.choose(default, named)))
}

fn run(chosen: &Chosen<'_>, asked: &Asked, bounds: &Bounds) -> Result<Found, Error> {
    let meter = Meter::new(bounds, asked.width);
    let evaluator = evaluator(asked, &meter);
    let mut prepared = evaluator.prepare(&asked.query);
    *prepared.dataset_mut() = QueryDatasetSpecification::new();
    let mut room = Room { rows: 0, bytes: 0, bounds };
    let read = Read::new(chosen, meter);
    let subjects = read.subjects();
    let outcome = match prepared.execute(read).map_err(failed)? {
        QueryResults::Boolean(yes) => Outcome::Boolean(yes),
        QueryResults::Solutions(solutions) => {
            let variables = solutions.variables().to_vec();
            let mut rows = Vec::new();
            for solution in solutions {
                let row = solution.map_err(failed)?.values().to_vec();
                room.take(row.iter().flatten().map(length).sum())?;
                rows.push(row);
            }
            Outcome::Solutions(variables, rows)
        }
        QueryResults::Graph(found) => {
            let mut triples = IndexSet::new();
            for triple in found {
                let triple = triple.map_err(failed)?;
                let bytes = triple.predicate.as_str().len() + length(&triple.object);
                if triples.insert(triple) {
                    room.take(bytes)?;
                }
            }
            Outcome::Triples(triples.into_iter().collect())
        }
    };
    let read = (0..).zip(subjects.iter()).filter(|(_, read)| read.get()).map(|(subject, _)| subject);
    Ok(Found { outcome, read: chosen.graph.records(read) })
}

/// What of an answer there is so far.
struct Room<'a> {
    rows: usize,
    bytes: usize,
    bounds: &'a Bounds,
}

impl Room<'_> {
    fn take(&mut self, bytes: usize) -> Result<(), Error> {
        self.rows += 1;
        self.bytes += bytes;
        match self.bounds {
            bounds if self.rows > bounds.rows => Err(Error::Rows(bounds.rows)),
            bounds if self.bytes > bounds.answer => Err(Error::Answer(bounds.answer)),
            _ => Ok(()),
        }
    }
}

fn failed(error: QueryEvaluationError) -> Error {
    match error {
        QueryEvaluationError::UnsupportedCustomFunction(name)
        | QueryEvaluationError::UnsupportedCustomFunctionArity { name, .. } => {
            Error::Function(name.as_str().to_owned())
        }
        error => Error::Evaluation(error.to_string()),
    }
}
