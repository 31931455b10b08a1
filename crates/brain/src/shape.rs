//! How deep and how many-jointed a query is, read off its text before it is parsed: the parser and the evaluator go down by one call a
//! bracket and a joint, and the parser reads what is in the brackets of some functions twice.
//!
//! It is no parser. Where a text can be read in two ways it counts the larger number.

use crate::bounds::{MAX_JOINTS, MAX_NESTING, MAX_QUERY};
use crate::error::Error;

/// Joints within one address that are not counted: an address has slashes and dots.
const FREE_IN_ADDRESS: usize = 24;
/// Words that make a query deeper.
const WORDS: [&str; 11] = [
    "FILTER", "BIND", "OPTIONAL", "UNION", "MINUS", "GRAPH", "VALUES", "EXISTS", "HAVING", "SELECT",
    "LATERAL",
];

/// Refuses what is too long, too deep or has too many joints.
///
/// # Errors
///
/// [`Error::Long`], [`Error::Deep`], [`Error::Complex`].
pub(crate) fn check(query: &str) -> Result<(), Error> {
    if query.len() > MAX_QUERY {
        return Err(Error::Long);
    }
    let mut counted = Counted::default();
    let mut rest = query;
    while let Some(c) = rest.chars().next() {
        let taken = match c {
            '#' => rest.find(['\n', '\r']).unwrap_or(rest.len()),
            '"' | '\'' => text(rest, c),
            '\\' => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            '<' => {
                counted.address(rest);
                address(rest).unwrap_or(1)
            }
            _ if c.is_alphanumeric() || c == '_' => {
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                counted.word(&rest[..end]);
                end
            }
            _ => {
                counted.sign(c);
                c.len_utf8()
            }
        };
        rest = rest.get(taken.max(1)..).unwrap_or_default();
        counted.check()?;
    }
    Ok(())
}

/// What was counted so far.
#[derive(Default)]
struct Counted {
    depth: usize,
    deepest: usize,
    joints: usize,
}

impl Counted {
    fn sign(&mut self, c: char) {
        match c {
            '(' | '{' | '[' => {
                self.depth += 1;
                self.deepest = self.deepest.max(self.depth);
            }
            ')' | '}' | ']' => self.depth = self.depth.saturating_sub(1),
            '.' | ';' | ',' | '/' | '|' | '&' | '+' | '-' | '*' | '!' | '=' | '>' => self.joints += 1,
            _ => {}
        }
    }

    /// Words stand together without spaces where the parser takes them apart.
    fn word(&mut self, word: &str) {
        let upper = word.to_ascii_uppercase();
        self.joints += WORDS.iter().map(|joint| upper.matches(joint).count()).sum::<usize>();
        self.joints += usize::from(upper.ends_with("AS"));
    }

    /// What looks like an address may be a comparison: its brackets count, and its joints beyond those that an address has.
    fn address(&mut self, rest: &str) {
        let Some(end) = address(rest) else {
            self.joints += 1;
            return;
        };
        let before = self.joints;
        let within = rest.get(1..end.saturating_sub(1)).unwrap_or_default();
        within.chars().for_each(|c| self.sign(c));
        self.joints = before + (self.joints - before).saturating_sub(FREE_IN_ADDRESS);
    }

    fn check(&self) -> Result<(), Error> {
        match self {
            Self { deepest, .. } if *deepest > MAX_NESTING => Err(Error::Deep),
            Self { joints, .. } if *joints > MAX_JOINTS => Err(Error::Complex),
            _ => Ok(()),
        }
    }
}

/// Where an address ends that begins here.
fn address(rest: &str) -> Option<usize> {
    let never = |c: char| c <= ' ' || matches!(c, '"' | '{' | '}' | '|' | '^' | '`' | '<');
    let end = rest[1..].find(|c: char| c == '>' || never(c))? + 1;
    (rest.as_bytes().get(end) == Some(&b'>')).then_some(end + 1)
}

/// Where a text in quotation marks ends that begins here.
fn text(rest: &str, mark: char) -> usize {
    let bytes = rest.as_bytes();
    let mark = mark as u8;
    let long = bytes.get(1) == Some(&mark) && bytes.get(2) == Some(&mark);
    let mut at = if long { 3 } else { 1 };
    while let Some(byte) = bytes.get(at) {
        match *byte {
            b'\\' => at += 1,
            byte if byte == mark && !long => return at + 1,
            byte if byte == mark && bytes.get(at + 1) == Some(&mark) && bytes.get(at + 2) == Some(&mark) => {
                return at + 3;
            }
            // A short text ends with its line, where the parser gives up: what follows is counted.
            b'\n' | b'\r' if !long => return at,
            _ => {}
        }
        at += 1;
    }
    // It has no end, and so is no query; but what is in it is counted nevertheless.
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_are_counted_wherever_they_may_be_brackets() {
        let deep = "(".repeat(MAX_NESTING + 1);
        for hidden in [
            "\"'\"@",
            "<http://x/it's>",
            "<http://x/\\u0028'>",
            "ex:a\\#",
            "ex:a\\'",
            "'' ",
            "\"\\\"\" ",
            "?a<?b ",
        ] {
            assert_eq!(check(&format!("{hidden}{deep}")), Err(Error::Deep), "{hidden}");
        }
        assert_eq!(check(&format!("1<{deep}2>3")), Err(Error::Deep));
        assert_eq!(check(&format!("# {deep}\n '{deep}' \"\"\"\"{deep}\"\"\"")), Ok(()));
        assert_eq!(check(&"()".repeat(1000)), Ok(()));
    }

    #[test]
    fn joints_are_counted_wherever_they_may_be_joints() {
        let many = |part: &str| part.repeat(MAX_JOINTS + FREE_IN_ADDRESS + 2);
        for chain in ["1+", "1-", "a/", "a|", "?a&&", "{}UNION", "FILTERSTR ", "(1AS ?x)", "?s ?p ?o.", "!"] {
            assert_eq!(check(&many(chain)), Err(Error::Complex), "{chain}");
        }
        assert_eq!(check(&format!("?a<{}1>?b", many("1/"))), Err(Error::Complex));
        let prefixes = "PREFIX a: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>\n".repeat(100);
        assert_eq!(check(&prefixes), Ok(()));
        assert_eq!(check(&"a".repeat(MAX_QUERY + 1)), Err(Error::Long));
    }
}
