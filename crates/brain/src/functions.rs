//! CONCAT, REPLACE and GROUP_CONCAT, which make no text that is too long. Otherwise they are those of the evaluator.

use crate::meter::Meter;
use crate::query::{Asked, concat, concatenating, replacing};
use oxrdf::vocab::xsd;
use oxrdf::{Literal, Term};
use regex::Regex;
use spareval::{AggregateFunctionAccumulator, QueryEvaluator};
use std::sync::Arc;

/// The evaluator with the functions of a query.
pub(crate) fn evaluator(asked: &Asked, meter: &Arc<Meter>) -> QueryEvaluator {
    let metered = Arc::clone(meter);
    let mut evaluator = QueryEvaluator::new()
        .with_custom_function(concat(), move |arguments| concatenated(arguments, &metered));
    for (number, regex) in asked.replaced.iter().enumerate() {
        let (regex, metered) = (regex.clone(), Arc::clone(meter));
        evaluator = evaluator.with_custom_function(replacing(number), move |arguments| {
            let [text, by] = arguments else { return None };
            replaced(text, by, &regex, &metered)
        });
    }
    for (number, separator) in asked.separators.iter().enumerate() {
        let (separator, metered) = (separator.clone(), Arc::clone(meter));
        evaluator = evaluator.with_custom_aggregate_function(concatenating(number), move || {
            let meter = Arc::clone(&metered);
            Box::new(Concatenating {
                separator: separator.clone(),
                meter,
                text: Some(String::new()),
                language: None,
            })
        });
    }
    evaluator
}

/// A text and its language; nothing else is concatenated or replaced in.
fn text(term: &Term) -> Option<(&str, Option<&str>)> {
    match term {
        Term::Literal(literal) if literal.language().is_some() || literal.datatype() == xsd::STRING => {
            Some((literal.value(), literal.language()))
        }
        _ => None,
    }
}

fn literal(text: String, language: Option<&str>) -> Term {
    match language {
        Some(language) => Literal::new_language_tagged_literal_unchecked(text, language).into(),
        None => Literal::from(text).into(),
    }
}

/// SPARQL 1.1, section 17.4.3.12.
fn concatenated(arguments: &[Term], meter: &Meter) -> Option<Term> {
    let texts: Vec<_> = arguments.iter().map(text).collect::<Option<_>>()?;
    meter.making(texts.iter().map(|(text, _)| text.len()).sum());
    let first = texts.first().and_then(|(_, language)| *language);
    let language = first.filter(|first| texts.iter().all(|(_, language)| *language == Some(first)));
    Some(literal(texts.iter().map(|(text, _)| *text).collect(), language))
}

/// SPARQL 1.1, section 17.4.3.15.
fn replaced(within: &Term, by: &Term, regex: &Regex, meter: &Meter) -> Option<Term> {
    let (within, language) = text(within)?;
    let (by, None) = text(by)? else { return None };
    meter.step(within.len());
    // Each match brings what takes its place, and all matches together no more than the text for each group that is named in it.
    let matches = regex.find_iter(within).count();
    let groups = by.matches('$').count();
    let longest = within.len().saturating_mul(1 + groups).saturating_add(matches.saturating_mul(by.len()));
    meter.making(longest);
    Some(literal(regex.replace_all(within, by).into_owned(), language))
}

/// SPARQL 1.1, section 18.5.1.7.
struct Concatenating {
    separator: String,
    meter: Arc<Meter>,
    /// Nothing, once something was no text.
    text: Option<String>,
    /// The language of all so far, once there is one.
    language: Option<Option<String>>,
}

impl AggregateFunctionAccumulator for Concatenating {
    fn accumulate(&mut self, element: Term) {
        let Some(whole) = self.text.as_mut() else { return };
        let Some((text, language)) = text(&element) else {
            self.text = None;
            return;
        };
        match &self.language {
            None => self.language = Some(language.map(str::to_owned)),
            Some(before) => {
                if before.as_deref() != language {
                    self.language = Some(None);
                }
                whole.push_str(&self.separator);
            }
        }
        self.meter.fits(whole.len() + text.len());
        self.meter.keeping(text.len());
        whole.push_str(text);
    }

    fn finish(&mut self) -> Option<Term> {
        let language = self.language.take().flatten();
        Some(literal(self.text.take()?, language.as_deref()))
    }
}
