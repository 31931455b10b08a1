//! Why a query is not answered, one variant a reason, each with the way out.

use crate::bounds::{
    MAX_COMPILED, MAX_GRAPHS, MAX_JOINTS, MAX_NESTING, MAX_PATTERN, MAX_PATTERNS, MAX_QUERY, MAX_VALUE,
    MAX_VARIABLES,
};

/// Why a query is not answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request has no query.
    #[error(
        "there is no query: give one as the parameter `query`, or as the body with the type application/sparql-query"
    )]
    NoQuery,
    /// The request has several queries.
    #[error("there is more than one query: send one a request")]
    ManyQueries,
    /// The request is none of GET and POST.
    #[error("a query is sent with GET or POST")]
    Method,
    /// The body has another type, or none.
    #[error(
        "the body is neither application/x-www-form-urlencoded nor application/sparql-query: name its type"
    )]
    MediaType,
    /// The body is not UTF-8, or says that it is in another encoding.
    #[error("the body is not in UTF-8: send it so")]
    NotUtf8,
    /// No format that the caller takes can hold this answer.
    #[error("no format that `Accept` names can hold this answer: accept one of {offered}")]
    NotAcceptable {
        /// The media types that can.
        offered: &'static str,
    },
    /// A graph of the dataset is not named by an IRI.
    #[error("default-graph-uri and named-graph-uri take an absolute IRI each")]
    NoIri,
    /// The dataset has too many graphs.
    #[error("the dataset has more than {MAX_GRAPHS} graphs: name fewer")]
    ManyGraphs,

    /// The query is too long.
    #[error("the query is longer than {MAX_QUERY} bytes: make it shorter")]
    Long,
    /// Its brackets are too deep.
    #[error("the query has brackets deeper than {MAX_NESTING}: take some away, or ask in several queries")]
    Deep,
    /// It has too many parts.
    #[error(
        "the query has more than {MAX_JOINTS} triples, operators and groups: ask in several queries, and list values with VALUES"
    )]
    Complex,
    /// It has too many variables; blank nodes and steps of paths are some.
    #[error(
        "the query has more than {MAX_VARIABLES} variables, each step of a path one: ask in several queries"
    )]
    ManyVariables,
    /// It joins too much.
    #[error(
        "the query has more than {MAX_PATTERNS} triple patterns, paths and lists of values: ask in several queries"
    )]
    ManyPatterns,
    /// It is not SPARQL.
    #[error("the query is not SPARQL 1.1: {0}")]
    Syntax(String),
    /// It is an update.
    #[error(
        "this is an update, and the graph is only read: the owner's agents write with memory_learn, memory_correct, memory_forget and memory_link"
    )]
    Update,
    /// It asks for a time, which the endpoint does not answer.
    #[error("as_of is none of this endpoint: ask memory_query with sparql and as_of")]
    AsOf,
    /// It asks another service.
    #[error("SERVICE is not followed: ask the other service yourself, and give what it says in VALUES")]
    Service,
    /// It would fetch a graph.
    #[error(
        "what FROM names would have to be fetched, and nothing is: leave FROM away, or take GRAPH or default-graph-uri for what came from there"
    )]
    Fetch(String),
    /// It asks for chance.
    #[error(
        "RAND, UUID and STRUUID are not answered, for an answer follows from the memory and the query: make such values yourself"
    )]
    Chance,
    /// A pattern is computed.
    #[error(
        "the pattern and the flags of REGEX and REPLACE must be written out: use CONTAINS for what is computed"
    )]
    ComputedPattern,
    /// A pattern is too large, or none.
    #[error(
        "the pattern of REGEX or REPLACE is no regular expression within {MAX_PATTERN} bytes and {MAX_COMPILED} bytes compiled: simplify it"
    )]
    Pattern,
    /// A function that is not there.
    #[error("a function of the query is not there: take those of SPARQL 1.1 and the casts of XML Schema")]
    Function(String),

    /// Its time is over.
    #[error(
        "the query took too long: ask for less, begin with what is rare, or put a LIMIT into its inner SELECT"
    )]
    Time,
    /// Its steps are used up.
    #[error(
        "the query took too many steps: ask for less, begin with what is rare, or put a LIMIT into its inner SELECT"
    )]
    Steps,
    /// It would hold too much at once.
    #[error(
        "the query holds too many solutions at once: ask for less, and join by a variable what is unrelated now"
    )]
    Held,
    /// It would make a text that is too long, or too many of them.
    #[error("the query makes a text longer than {MAX_VALUE} bytes, or too many of them: take SUBSTR first")]
    Value,
    /// Too many rows.
    #[error("the answer has more than {0} rows: add LIMIT, and ask for the rest with OFFSET and ORDER BY")]
    Rows(usize),
    /// The answer is too large.
    #[error("the answer is larger than {0} bytes: select fewer variables, or add LIMIT")]
    Answer(usize),
    /// More was read than a receipt names.
    #[error(
        "the query reads more than {0} versions and links, and a receipt names each: name a topic, a source, an author or an item in it, so that \
         fewer are looked up (LIMIT does not help where all are read)"
    )]
    ReadMuch(usize),
    /// The tool answers with rows.
    #[error(
        "memory_query answers SELECT and ASK: take SELECT ?subject ?predicate ?object; the owner's agents send others to /.well-known/brain/sparql"
    )]
    Triples,
    /// More is remembered than a graph may have.
    #[error("more is remembered than a graph may have: use memory_query without sparql")]
    MuchRemembered,
    /// The library could not evaluate it.
    #[error("the query could not be evaluated: ask for less at once, or in other words")]
    Evaluation(String),
}

/// What sort of refusal it is, for whoever gives it a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// The request is wrong (400).
    Wrong,
    /// The method is wrong (405).
    Method,
    /// The type of the body is wrong (415).
    MediaType,
    /// No format is acceptable (406).
    NotAcceptable,
    /// It would take more than it may (400, as every query that can be written otherwise).
    TooMuch,
}

impl Error {
    /// What sort of refusal this is.
    pub const fn sort(&self) -> Sort {
        match self {
            Self::Method => Sort::Method,
            Self::MediaType => Sort::MediaType,
            Self::NotAcceptable { .. } => Sort::NotAcceptable,
            Self::NoQuery
            | Self::ManyQueries
            | Self::NotUtf8
            | Self::NoIri
            | Self::Syntax(_)
            | Self::Update
            | Self::AsOf
            | Self::Service
            | Self::Fetch(_)
            | Self::Chance
            | Self::ComputedPattern
            | Self::Function(_)
            | Self::Triples
            | Self::Evaluation(_) => Sort::Wrong,
            Self::ManyGraphs
            | Self::Long
            | Self::Deep
            | Self::Complex
            | Self::ManyVariables
            | Self::ManyPatterns
            | Self::Pattern
            | Self::Time
            | Self::Steps
            | Self::Held
            | Self::Value
            | Self::Rows(_)
            | Self::Answer(_)
            | Self::ReadMuch(_)
            | Self::MuchRemembered => Sort::TooMuch,
        }
    }
}
