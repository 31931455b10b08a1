//! What a request of the SPARQL 1.1 Protocol asks (section 2.1): its query, and the graphs that it chooses.

use crate::bounds::MAX_GRAPHS;
use crate::error::Error;
use crate::evaluate::Dataset;
use mediatype::{MediaType, ReadParams, names};
use oxiri::Iri;
use oxrdf::NamedNode;

/// A request, as far as it says what is asked.
#[derive(Debug, Clone, Copy, Default)]
pub struct Request<'a> {
    /// Its method.
    pub method: &'a str,
    /// What stands behind the `?` of its address, as it was sent.
    pub parameters: &'a str,
    /// Its `Content-Type`.
    pub content_type: Option<&'a str>,
    /// Its body.
    pub body: &'a [u8],
}

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// What the service is: a GET without a query.
    Description,
    /// An answer.
    Answer {
        /// The query, unread.
        query: String,
        /// The graphs that the request chooses.
        dataset: Dataset,
    },
}

/// The parameters of a request that are ours. Any other is passed over, for clients send many.
#[derive(Default)]
struct Parameters {
    queries: Vec<String>,
    update: bool,
    dataset: Dataset,
}

impl Parameters {
    fn read(&mut self, encoded: &[u8]) -> Result<(), Error> {
        for (name, value) in form_urlencoded::parse(encoded) {
            match name.as_ref() {
                "query" => self.queries.push(value.into_owned()),
                "update" => self.update = true,
                "default-graph-uri" => self.dataset.default.push(graph(&value)?),
                "named-graph-uri" => self.dataset.named.push(graph(&value)?),
                // Passed over, it would be answered with what is known now.
                "as_of" => return Err(Error::AsOf),
                _ => {}
            }
            if self.dataset.default.len() + self.dataset.named.len() > MAX_GRAPHS {
                return Err(Error::ManyGraphs);
            }
            if self.queries.len() > 1 {
                return Err(Error::ManyQueries);
            }
        }
        Ok(())
    }
}

fn graph(value: &str) -> Result<NamedNode, Error> {
    Iri::parse(value).map(|iri| NamedNode::new_unchecked(iri.as_str())).map_err(|_| Error::NoIri)
}

/// The ways to send a body.
enum Body {
    Form,
    Query,
}

fn body(content_type: Option<&str>) -> Result<Body, Error> {
    let parsed = content_type.map(MediaType::parse).and_then(Result::ok).ok_or(Error::MediaType)?;
    let (kind, name) = (parsed.ty.as_str().to_ascii_lowercase(), parsed.subty.as_str().to_ascii_lowercase());
    let body = match (kind.as_str(), name.as_str()) {
        _ if parsed.suffix.is_some() => return Err(Error::MediaType),
        ("application", "x-www-form-urlencoded") => Body::Form,
        ("application", "sparql-query") => Body::Query,
        ("application", "sparql-update") => return Err(Error::Update),
        _ => return Err(Error::MediaType),
    };
    let encoding = parsed.get_param(names::CHARSET).map(|charset| charset.unquoted_str().into_owned());
    match encoding {
        Some(encoding) if !encoding.eq_ignore_ascii_case("utf-8") => Err(Error::NotUtf8),
        _ => Ok(body),
    }
}

impl Request<'_> {
    /// What it asks for.
    ///
    /// # Errors
    ///
    /// What [`Error`] says of requests; [`Error::Update`].
    pub fn read(&self) -> Result<Wanted, Error> {
        let mut parameters = Parameters::default();
        parameters.read(self.parameters.as_bytes())?;
        match self.method {
            "GET" | "HEAD" => {
                if parameters.queries.is_empty() && !parameters.update {
                    return Ok(Wanted::Description);
                }
            }
            "POST" => match body(self.content_type)? {
                Body::Form => parameters.read(self.body)?,
                Body::Query => {
                    let query = std::str::from_utf8(self.body).map_err(|_| Error::NotUtf8)?;
                    parameters.queries.push(query.to_owned());
                }
            },
            _ => return Err(Error::Method),
        }
        if parameters.update {
            return Err(Error::Update);
        }
        let mut queries = parameters.queries.into_iter();
        match (queries.next(), queries.next()) {
            (None, _) => Err(Error::NoQuery),
            (Some(query), None) if query.trim().is_empty() => Err(Error::NoQuery),
            (Some(query), None) => Ok(Wanted::Answer { query, dataset: parameters.dataset }),
            (Some(_), Some(_)) => Err(Error::ManyQueries),
        }
    }
}
