//! In which format an answer is given: what can hold it, and what the caller accepts (RFC 9110, section 12.5.1).

use crate::error::Error;
use crate::query::Form;
use mediatype::{MediaType, MediaTypeList, ReadParams, names};
use oxrdfio::RdfFormat;
use sparesults::QueryResultsFormat;

/// A format of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Solutions, or yes and no.
    Results(QueryResultsFormat),
    /// Triples.
    Rdf(RdfFormat),
}

impl Format {
    /// Its media type.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Results(QueryResultsFormat::Xml) => "application/sparql-results+xml",
            Self::Results(QueryResultsFormat::Csv) => "text/csv; charset=utf-8",
            Self::Results(QueryResultsFormat::Tsv) => "text/tab-separated-values; charset=utf-8",
            Self::Results(_) => "application/sparql-results+json",
            Self::Rdf(RdfFormat::NTriples) => "application/n-triples",
            Self::Rdf(RdfFormat::RdfXml) => "application/rdf+xml",
            Self::Rdf(_) => "text/turtle",
        }
    }
}

/// A format by a name that callers ask for. The first of a list is given to whoever takes any.
type Offered = (&'static str, Format);

const RESULTS: [Offered; 6] = [
    ("application/sparql-results+json", Format::Results(QueryResultsFormat::Json)),
    ("application/json", Format::Results(QueryResultsFormat::Json)),
    ("application/sparql-results+xml", Format::Results(QueryResultsFormat::Xml)),
    ("application/xml", Format::Results(QueryResultsFormat::Xml)),
    ("text/csv", Format::Results(QueryResultsFormat::Csv)),
    ("text/tab-separated-values", Format::Results(QueryResultsFormat::Tsv)),
];
const RDF: [Offered; 3] = [
    ("text/turtle", Format::Rdf(RdfFormat::Turtle)),
    ("application/n-triples", Format::Rdf(RdfFormat::NTriples)),
    ("application/rdf+xml", Format::Rdf(RdfFormat::RdfXml)),
];

/// The format for answers of a form, by the caller's `Accept`, if it has one.
///
/// # Errors
///
/// [`Error::NotAcceptable`], where the caller takes none of them.
pub fn negotiate(accept: Option<&str>, form: Form) -> Result<Format, Error> {
    let (offered, names): (&[Offered], _) = match form {
        Form::Solutions | Form::Boolean => (
            &RESULTS,
            "application/sparql-results+json, application/sparql-results+xml, text/csv, text/tab-separated-values",
        ),
        Form::Triples => (&RDF, "text/turtle, application/n-triples, application/rdf+xml"),
    };
    let accept = accept.unwrap_or_default();
    // What is no media type is passed over; who names none takes any.
    let ranges: Vec<MediaType<'_>> = MediaTypeList::new(accept).filter_map(Result::ok).collect();
    if ranges.is_empty() {
        return offered.first().map(|(_, format)| *format).ok_or(Error::NotAcceptable { offered: names });
    }
    let mut best: Option<(u16, Format)> = None;
    for (name, format) in offered {
        let quality = MediaType::parse(name).map_or(0, |offered| quality(&ranges, &offered));
        if quality > best.map_or(0, |(quality, _)| quality) {
            best = Some((quality, *format));
        }
    }
    best.map(|(_, format)| format).ok_or(Error::NotAcceptable { offered: names })
}

/// How much a caller likes a type, in thousandths: the most specific of its ranges says it.
fn quality(ranges: &[MediaType<'_>], offered: &MediaType<'_>) -> u16 {
    let specific = |range: &MediaType<'_>| {
        let same = range.ty == offered.ty && range.subty == offered.subty && range.suffix == offered.suffix;
        let any = range.subty == names::_STAR && range.suffix.is_none();
        match range {
            _ if same => Some(2),
            range if any && range.ty == offered.ty => Some(1),
            range if any && range.ty == names::_STAR => Some(0),
            _ => None,
        }
    };
    let ranges = ranges.iter().filter_map(|range| Some((specific(range)?, weight(range))));
    ranges.max_by_key(|(specific, _)| *specific).map_or(0, |(_, weight)| weight)
}

/// The `q` of a range, in thousandths; what is no number from 0 to 1 is 0.
fn weight(range: &MediaType<'_>) -> u16 {
    let Some(q) = range.get_param(names::Q) else { return 1000 };
    let q: f32 = q.as_str().parse().unwrap_or(0.0);
    if (0.0..=1.0).contains(&q) { (q * 1000.0).round() as u16 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(accept: &str, form: Form) -> Option<&'static str> {
        let chosen = negotiate(Some(accept), form).ok()?;
        chosen.media_type().split(';').next()
    }

    #[test]
    fn the_best_liked_format_that_can_hold_the_answer_is_given() {
        const JSON: Option<&str> = Some("application/sparql-results+json");
        const XML: Option<&str> = Some("application/sparql-results+xml");
        assert_eq!(negotiate(None, Form::Boolean).unwrap().media_type(), JSON.unwrap());
        for (accept, expected) in [
            ("", JSON),
            ("*/*", JSON),
            ("application/*", JSON),
            ("application/*;q=0.5, text/*", Some("text/csv")),
            ("application/sparql-results+xml", XML),
            ("APPLICATION/SPARQL-Results+XML", XML),
            ("text/csv;q=0.4, application/sparql-results+xml;q=0.9, */*;q=0.1", XML),
            (
                "application/sparql-results+json;q=0, */*;q=0.5",
                JSON.and(Some("application/sparql-results+json")),
            ),
            ("application/sparql-results+json;q=0, application/json;q=0, */*;q=0.5", XML),
            ("text/tab-separated-values; q=1.0, text/csv; q=0.999", Some("text/tab-separated-values")),
            ("application/json", JSON),
            ("text/html, application/xhtml+xml", None),
            ("text/csv;q=0", None),
            ("text/csv;q=2", None),
            ("text/turtle", None),
            (",;,nonsense", JSON),
        ] {
            assert_eq!(chosen(accept, Form::Solutions), expected, "{accept}");
        }
        for (accept, expected) in [
            ("*/*", Some("text/turtle")),
            ("application/rdf+xml, text/turtle;q=0.8", Some("application/rdf+xml")),
            ("application/n-triples", Some("application/n-triples")),
            ("application/sparql-results+json", None),
        ] {
            assert_eq!(chosen(accept, Form::Triples), expected, "{accept}");
        }
    }
}
