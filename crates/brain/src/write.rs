//! An outcome in a format, whole or not at all.

use crate::accept::Format;
use crate::error::Error;
use crate::evaluate::Outcome;
use crate::vocabulary::{BRAIN, OAP, PROV, RELATION};
use oxrdf::{Literal, Term, TermRef, Triple};
use oxrdfio::{RdfFormat, RdfSerializer};
use sparesults::{QueryResultsFormat, QueryResultsSerializer};
use std::borrow::Cow;
use std::io::{self, Write};

/// Bytes that stop where an answer ends.
struct Bounded {
    bytes: Vec<u8>,
    most: usize,
    full: bool,
    xml: bool,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let kept = if self.xml { returns(bytes) } else { bytes.into() };
        if self.bytes.len() + kept.len() > self.most {
            self.full = true;
            return Err(io::Error::other("the answer is full"));
        }
        self.bytes.extend_from_slice(&kept);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Carriage returns of XML as references: a reader takes one that stands there as itself for the end of a line (XML 1.0, section 2.11).
fn returns(bytes: &[u8]) -> Cow<'_, [u8]> {
    if !bytes.contains(&b'\r') {
        return bytes.into();
    }
    let between: Vec<&[u8]> = bytes.split(|byte| *byte == b'\r').collect();
    between.join(&b"&#13;"[..]).into()
}

/// Writes an outcome, in `most` bytes at most.
///
/// # Errors
///
/// [`Error::Answer`], where it is longer; [`Error::NotAcceptable`], where the format cannot hold it.
pub fn write(outcome: &Outcome, format: Format, most: usize) -> Result<Vec<u8>, Error> {
    let xml = matches!(format, Format::Results(QueryResultsFormat::Xml) | Format::Rdf(RdfFormat::RdfXml));
    let mut to = Bounded { bytes: Vec::new(), most, full: false, xml };
    let written = match (outcome, format) {
        (Outcome::Boolean(yes), Format::Results(format)) => {
            QueryResultsSerializer::from_format(format).serialize_boolean_to_writer(&mut to, *yes).map(|_| ())
        }
        (Outcome::Solutions(variables, rows), Format::Results(format)) => {
            solutions(variables, rows, format, &mut to)
        }
        (Outcome::Triples(triples), Format::Rdf(format)) => rdf(triples, format, &mut to),
        _ => return Err(Error::NotAcceptable { offered: "a format of the query's form" }),
    };
    match written {
        Ok(()) => Ok(to.bytes),
        Err(_) if to.full => Err(Error::Answer(most)),
        Err(e) => Err(Error::Evaluation(e.to_string())),
    }
}

fn solutions(
    variables: &[oxrdf::Variable],
    rows: &[Vec<Option<Term>>],
    format: QueryResultsFormat,
    to: &mut Bounded,
) -> io::Result<()> {
    let serializer = QueryResultsSerializer::from_format(format);
    let mut serializer = serializer.serialize_solutions_to_writer(to, variables.to_vec())?;
    for row in rows {
        let terms = row.iter().map(|term| term.as_ref().map(|term| fit_result(term, format)));
        let terms: Vec<Option<Cow<'_, Term>>> = terms.collect();
        let bound =
            variables.iter().zip(&terms).filter_map(|(variable, term)| Some((variable, term.as_deref()?)));
        serializer.serialize(bound)?;
    }
    serializer.finish().map(|_| ())
}

fn rdf(triples: &[Triple], format: RdfFormat, to: &mut Bounded) -> io::Result<()> {
    let mut serializer = RdfSerializer::from_format(format);
    for (name, iri) in [("brain", BRAIN), ("prov", PROV), ("oap", OAP), ("rel", RELATION)] {
        serializer = serializer.with_prefix(name, iri).map_err(io::Error::other)?;
    }
    let mut serializer = serializer.for_writer(to);
    for triple in triples {
        let object = fit(&triple.object, format == RdfFormat::RdfXml);
        let object: TermRef<'_> = object.as_ref().as_ref();
        serializer.serialize_triple(oxrdf::TripleRef { object, ..triple.as_ref() })?;
    }
    serializer.finish().map(|_| ())
}

/// A term as a format of results can hold it. Of CSV the writer quotes literals alone: an IRI with a comma is written as its text, which is
/// all that CSV says of either.
fn fit_result(term: &Term, format: QueryResultsFormat) -> Cow<'_, Term> {
    match term {
        Term::NamedNode(node) if format == QueryResultsFormat::Csv && node.as_str().contains(',') => {
            Cow::Owned(Literal::from(node.as_str()).into())
        }
        term => fit(term, format == QueryResultsFormat::Xml),
    }
}

/// A term as a format can hold it: XML 1.0 has no way to write most control characters, which become U+FFFD.
fn fit(term: &Term, xml: bool) -> Cow<'_, Term> {
    let never =
        |c: char| (c < ' ' && !matches!(c, '\t' | '\n' | '\r')) || matches!(c, '\u{fffe}' | '\u{ffff}');
    match term {
        Term::Literal(literal) if xml && literal.value().contains(never) => {
            let text = literal.value().replace(never, "\u{fffd}");
            let literal = match literal.language() {
                Some(language) => Literal::new_language_tagged_literal_unchecked(text, language),
                None => Literal::new_typed_literal(text, literal.datatype()),
            };
            Cow::Owned(literal.into())
        }
        term => Cow::Borrowed(term),
    }
}
