//! What is wrong with a text that is no query, in words that help and quote nothing of it.
//!
//! The parser says how far it came and what it tried there. It reads a keyword by its length: so it may have come some characters beyond
//! what it did not understand, names the longest keyword alone, and near the end of a text whatever was too long for it.

use spargebra::SparqlParser;

/// Most things that could stand there which are named.
const MAX_NAMED: usize = 6;
/// Most names before a colon that are tried as prefixes.
const MAX_TRIED: usize = 64;
/// What the parser calls any character: it came to the end of the text.
const ANY: &str = "[_]";
/// How the name of a variable and an address begin: a term was expected, of which the parser names every beginning.
const TERM: [&str; 2] = ["\"?\"", "\"<\""];
/// Words that a query can begin with.
const FIRST: [&str; 6] = ["ASK", "BASE", "CONSTRUCT", "DESCRIBE", "PREFIX", "SELECT"];

/// Why a text is no query: of the parser that refused it, and what it said.
pub(crate) fn told(parser: SparqlParser, query: &str, said: &str) -> String {
    let begins = query.trim_start();
    let first = begins.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default().to_uppercase();
    if !begins.starts_with('#') && !FIRST.contains(&first.as_str()) {
        return "a query begins with SELECT, ASK, CONSTRUCT or DESCRIBE, after what PREFIX and BASE declare"
            .to_owned();
    }
    if holds_with_prefixes(parser, query) {
        return "a prefix is used that is not declared: begin with PREFIX name: <iri>; brain, prov, oap, rel, rdfs and xsd need none".to_owned();
    }
    placed(query, said).unwrap_or_else(|| said.to_owned())
}

/// Whether a text is a query once every name before a colon in it is a prefix.
fn holds_with_prefixes(mut parser: SparqlParser, query: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    for (end, _) in query.match_indices(':').take(MAX_TRIED) {
        let before = query.get(..end).unwrap_or_default();
        let name = before.rsplit(|c: char| !is_name(c)).next().unwrap_or_default();
        match parser.with_prefix(name, "urn:undeclared:") {
            Ok(with) => parser = with,
            Err(_) => return false,
        }
    }
    parser.parse_query(query).is_ok()
}

/// What the parser said, with the place that is meant.
fn placed(query: &str, said: &str) -> Option<String> {
    let (place, expected) = said.strip_prefix("error at ")?.split_once(": expected ")?;
    let (line, column) = place.split_once(':')?;
    let (line, column) = (line.parse().ok()?, column.parse().ok()?);
    let tried: Vec<&str> = expected.strip_prefix("one of ").unwrap_or(expected).split(", ").collect();
    let is_keyword = |word: &&str| !word.is_empty() && word.bytes().all(|c| c.is_ascii_uppercase());
    let keywords: Vec<&str> = tried.iter().copied().filter(is_keyword).collect();
    let is_rule = |word: &&str| word.contains(' ') && word.starts_with(|c: char| c.is_ascii_alphabetic());
    if let Some(rule) = tried.iter().copied().find(is_rule) {
        return Some(format!("near line {line}, column {column}: {rule}"));
    }
    if tried.contains(&ANY) {
        let missing = "near its end something is missing, or is not understood: a triple has three parts, and brackets and quotes have an end";
        return Some(missing.to_owned());
    }
    if TERM.iter().all(|begins| tried.contains(begins)) {
        return Some(format!(
            "near line {line}, column {column}: expected a variable, an address, a name or a value"
        ));
    }
    // The sign of a comment can stand everywhere.
    let is_sign = |word: &&str| word.starts_with('"') && *word != "\"#\"";
    let mut named: Vec<&str> = tried.iter().copied().filter(is_sign).collect();
    named.sort_by_key(|sign| !matches!(*sign, "\"}\"" | "\")\"" | "\"]\""));
    let (line, column) = match keywords.iter().map(|word| word.len()).max() {
        Some(longest) if keywords.len() == tried.len() => back(query, line, column, longest),
        _ => (line, column),
    };
    named.extend(&keywords);
    if named.is_empty() {
        return Some(format!("near line {line}, column {column}: what stands there is not understood"));
    }
    let more = if named.len() < tried.len() || named.len() > MAX_NAMED { ", or something else" } else { "" };
    named.truncate(MAX_NAMED);
    Some(format!("near line {line}, column {column}: expected {}{more}", named.join(", ")))
}

/// The place so many characters before another; both are counted from 1.
fn back(query: &str, line: usize, column: usize, by: usize) -> (usize, usize) {
    let above: usize =
        query.split_inclusive('\n').take(line.saturating_sub(1)).map(|line| line.chars().count()).sum();
    let at = (above + column).saturating_sub(by + 1);
    query.chars().take(at).fold((1, 1), |(line, column), c| match c {
        '\n' => (line + 1, 1),
        _ => (line, column + 1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Asked, Error};

    /// Why a text is refused.
    fn why(query: &str) -> String {
        match Asked::read(query, "2026-01-01T00:00:00Z") {
            Err(Error::Syntax(why)) => why,
            other => panic!("{query}: {other:?}"),
        }
    }

    #[test]
    fn the_usual_mistakes_have_their_own_words() {
        for query in ["SELEC ?s WHERE { ?s ?p ?o }", "```sparql\nASK {}", "", "show me all facts"] {
            assert!(why(query).contains("begins with SELECT, ASK"), "{query}: {}", why(query));
        }
        let undeclared = [
            "SELECT ?s WHERE { ?s foaf:name ?o }",
            "PREFIX a: <urn:a:> ASK { a:x b:y \"c:d\" }",
            "ASK { ?s :p ?o }",
        ];
        for query in undeclared {
            assert!(
                why(query).contains("not declared: begin with PREFIX name: <iri>"),
                "{query}: {}",
                why(query)
            );
        }
        assert!(Asked::read("ASK { ?s brain:content ?o }", "").is_ok());
        for query in [
            "SELECT ?canary WHER { ?canary ?p ?o }",
            "ASK { ?canary ?p ",
            "SELECT ?canary WHERE { ?canary ?p }",
        ] {
            let why = why(query);
            assert!(why.starts_with("near line 1, column ") && !why.contains("canary"), "{query}: {why}");
        }
    }

    #[test]
    fn a_place_and_what_could_stand_there() {
        let query = "SELECT ?s\nWHER { ?s ?p ?o }";
        // A keyword of five characters was tried, from the beginning of the second line on.
        assert_eq!(
            placed(query, "error at 2:6: expected WHERE").unwrap(),
            "near line 2, column 1: expected WHERE"
        );
        let many = "error at 2:3: expected one of \"#\", \"(\", \"}\", ['a' ..= 'z'], OPTIONAL";
        assert_eq!(
            placed(query, many).unwrap(),
            "near line 2, column 3: expected \"}\", \"(\", OPTIONAL, or something else"
        );
        assert_eq!(
            placed(query, "error at 1:41: expected <unreported>").unwrap(),
            "near line 1, column 41: what stands there is not understood"
        );
        assert!(
            placed(query, "error at 1:14: expected one of LATERAL, SERVICE, [_]")
                .unwrap()
                .starts_with("near its end")
        );
        assert_eq!(
            placed(query, "error at 1:18: expected one of \"$\", \"(\", \"<\", \"?\", \"[\", ['0'..='9']")
                .unwrap(),
            "near line 1, column 18: expected a variable, an address, a name or a value"
        );
        assert_eq!(
            placed(query, "error at 1:9: expected The SELECT contains duplicated variables").unwrap(),
            "near line 1, column 9: The SELECT contains duplicated variables"
        );
        assert_eq!(placed(query, "The blank node _:a cannot be shared"), None);
        // However far back, it is a place.
        assert_eq!(
            (back(query, 1, 2, 9), back(query, 2, 1, 1), back("", 7, 9, 3)),
            ((1, 1), (1, 10), (1, 1))
        );
    }
}
