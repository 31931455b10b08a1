//! The brain: what is remembered as RDF with PROV-O, computed of what a caller sees, and SPARQL 1.1 queries over it (`docs/brain.md`;
//! Trails ADR-0051, sections 1 and 3).
//!
//! Pure functions: no I/O, no clock, no hidden randomness. The graph is made of a list of records and of nothing else, so that COUNT,
//! FILTER, OPTIONAL, MINUS and paths cannot tell a caller of anything that was not in its list.
//!
//! - [`record`]: what a graph is made of
//! - [`graph`], [`vocabulary`]: the graph, and the names in it
//! - [`protocol`]: what a request of the SPARQL Protocol asks
//! - [`query`]: a query that was read, and may be evaluated
//! - [`evaluate`]: its evaluation, to the end or not at all
//! - [`accept`], [`write`], [`description`]: formats of answers
//! - [`bounds`], [`error`]: what a query may take, and what it is refused for
//!
//! ```
//! use oap_brain::{Bounds, Graph, Record, Request, Setting, respond};
//!
//! let tea = Record { id: "mem_1".into(), content: Some("Tea, not coffee".into()), version: Some(1), ..Record::default() };
//! let graph = Graph::of(&[tea]).unwrap();
//! let request = Request { method: "GET", parameters: "query=SELECT+?what+%7B?fact+brain:content+?what%7D", ..Request::default() };
//! let setting = Setting {
//!     endpoint: "https://memory.example/.well-known/brain/sparql",
//!     now: "2026-11-23T08:00:00Z",
//!     bounds: &Bounds::until(|| false),
//! };
//! let answer = respond(&graph, &request, Some("text/csv"), &setting).unwrap();
//! assert_eq!(answer.body, b"what\r\n\"Tea, not coffee\"\r\n");
//! ```

#![warn(clippy::unwrap_used)]

pub mod accept;
pub mod bounds;
mod dataset;
mod describe;
pub mod description;
pub mod error;
pub mod evaluate;
mod functions;
pub mod graph;
pub mod limits;
mod meter;
pub mod protocol;
pub mod query;
pub mod record;
mod shape;
mod syntax;
mod triples;
pub mod vocabulary;
pub mod write;

pub use bounds::Bounds;
pub use error::Error;
pub use evaluate::{Dataset, Found, Outcome, evaluate};
pub use graph::Graph;
pub use protocol::{Request, Wanted};
pub use query::{Asked, Form};
pub use record::Record;

use accept::negotiate;

/// The description of the service at this address: its media type, and its bytes.
///
/// # Errors
///
/// [`Error::NotAcceptable`].
pub fn describe(endpoint: &str, accept: Option<&str>) -> Result<(&'static str, Vec<u8>), Error> {
    let format = negotiate(accept, Form::Triples)?;
    let outcome = description::description(&vocabulary::iri_or(vocabulary::OTHER, endpoint));
    Ok((format.media_type(), write::write(&outcome, format, bounds::MAX_ANSWER)?))
}

/// What an answer depends on beside the memory and the query.
#[derive(Clone, Copy)]
pub struct Setting<'a> {
    /// The address of the service, which its description names.
    pub endpoint: &'a str,
    /// What `NOW()` says, RFC 3339.
    pub now: &'a str,
    /// What the query may take.
    pub bounds: &'a Bounds,
}

/// An answer, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Its media type.
    pub media_type: &'static str,
    /// Its bytes.
    pub body: Vec<u8>,
    /// The records of which anything was read for it ([`Found::read`]).
    pub read: Vec<usize>,
}

/// Answers a request. Nothing is answered in part: where the query fails on its way, there is no answer.
///
/// # Errors
///
/// Whatever [`Error`] has.
pub fn respond(
    graph: &Graph,
    request: &Request<'_>,
    accept: Option<&str>,
    setting: &Setting<'_>,
) -> Result<Answer, Error> {
    let (found, format) = match request.read()? {
        Wanted::Description => {
            let (media_type, body) = describe(setting.endpoint, accept)?;
            return Ok(Answer { media_type, body, read: Vec::new() });
        }
        Wanted::Answer { query, dataset } => {
            let asked = Asked::read_at(setting.endpoint, &query, setting.now)?;
            let format = negotiate(accept, asked.form())?;
            (evaluate(graph, &asked, &dataset, setting.bounds)?, format)
        }
    };
    let body = write::write(&found.outcome, format, setting.bounds.checked().answer)?;
    Ok(Answer { media_type: format.media_type(), body, read: found.read })
}
