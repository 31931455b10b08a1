//! A text with very many spans: a gateway may join those that are near each other, with what stands between them (protocol section 7, `mixed`).
//! Which it joins is its own; what may come of it is here.

use crate::world::Span;
use std::collections::BTreeSet;

/// Spans that a text of any length may have before some of them are joined (`docs/limits.md`).
const FREE_SPANS: usize = 32;
/// The class of a span that joins some of several classes.
const MIXED: &str = "mixed";

/// A text whose spans may be joined, at a level that hides some of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joined {
    text: String,
    /// The spans, in order, and whether each must be hidden.
    spans: Vec<(Span, bool)>,
}

impl Joined {
    /// The text, where it has so many spans; `shows` says which classes are shown.
    pub(super) fn of(text: &str, spans: &[Span], shows: impl Fn(&str) -> bool) -> Option<Self> {
        let spans: Vec<(Span, bool)> = spans.iter().map(|span| (span.clone(), !shows(&span.class))).collect();
        (spans.len() > FREE_SPANS).then(|| Self { text: text.to_owned(), spans })
    }

    /// What is shown of it in any case: what stands before the first span and behind the last one.
    pub(in super::super) fn certain(&self) -> String {
        let first = self.spans.first().map_or(self.text.len(), |(span, _)| span.start);
        let last = self.spans.last().map_or(0, |(span, _)| span.end);
        let part = |from, to| self.text.get(from..to).unwrap_or_default();
        format!("{} {}", part(0, first), part(last.max(first), self.text.len()))
    }

    /// What is shown of it at most: all but the spans that must be hidden.
    pub(in super::super) fn most(&self) -> String {
        let (mut out, mut done) = (String::new(), 0);
        for (span, hidden) in &self.spans {
            out.push_str(self.text.get(done..span.start).unwrap_or_default());
            if !hidden {
                out.push_str(&span.text);
            }
            done = span.end;
        }
        out + self.text.get(done..).unwrap_or_default()
    }

    /// Whether a text is this one, but for whole stretches from the beginning of a span to the end of one, and no span that must be
    /// hidden is outside of them.
    pub(in super::super) fn allows(&self, shown: &str) -> bool {
        let start = |n: usize| self.spans.get(n).map_or(self.text.len(), |(span, _)| span.start);
        let between = |from: usize, n: usize| self.text.get(from..start(n));
        // How far a part of the text reaches in what is shown.
        let reach = |at: usize, part: Option<&str>| {
            let part = part?;
            shown.get(at..)?.starts_with(part).then(|| at + part.len())
        };
        // What is shown up to each span.
        let mut reached: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); self.spans.len() + 1];
        reached[0].extend(reach(0, between(0, 0)));
        for (n, (span, hidden)) in self.spans.iter().enumerate() {
            for at in std::mem::take(&mut reached[n]) {
                if !hidden {
                    reached[n + 1].extend(reach(at, between(span.start, n + 1)));
                }
                let (mut class, mut hides) = (span.class.as_str(), *hidden);
                for (last, (end, hidden)) in self.spans.iter().enumerate().skip(n) {
                    if end.class != class {
                        (class, hides) = (MIXED, true);
                    }
                    hides |= *hidden;
                    let placed = reach(at, Some(&format!("[{class}]"))).filter(|_| hides);
                    let beyond = placed.and_then(|at| reach(at, between(end.end, last + 1)));
                    reached[last + 1].extend(beyond);
                }
            }
        }
        reached.last().is_some_and(|ends| ends.contains(&shown.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `a0 1 2 ... 39 z`, whose numbers are spans, every third of which must be hidden.
    fn joined() -> Joined {
        let (mut text, mut spans) = ("a ".to_owned(), Vec::new());
        for n in 0..40 {
            let (start, class) = (text.len(), if n % 3 == 0 { "secret" } else { "ip" });
            text.push_str(&n.to_string());
            let span = Span { class: class.to_owned(), start, end: text.len(), text: n.to_string() };
            spans.push(span);
            text.push(' ');
        }
        Joined::of(&(text + "z"), &spans, |class| class == "ip").unwrap()
    }

    fn shown(part: impl Fn(usize) -> Option<String>) -> String {
        let parts: Vec<String> = (0..40).filter_map(part).collect();
        format!("a {} z", parts.join(" "))
    }

    #[test]
    fn stretches_may_be_hidden_and_what_must_be_is() {
        let joined = joined();
        let alone = |n: usize| Some(if n.is_multiple_of(3) { "[secret]".to_owned() } else { n.to_string() });
        assert!(joined.allows(&shown(alone)));
        let some = |n: usize| match n {
            3 => Some("[mixed]".to_owned()),
            4..=7 => None,
            n => alone(n),
        };
        assert!(joined.allows(&shown(some)));
        assert!(joined.allows("a [mixed] z"));
        let shows = |n: usize| if n == 9 { Some("9".to_owned()) } else { alone(n) };
        assert!(!joined.allows(&shown(shows)), "a secret");
        let loses = |n: usize| if n == 10 { None } else { alone(n) };
        assert!(!joined.allows(&shown(loses)), "a span that nothing stands for");
        let named = |n: usize| if n == 10 { Some("[ip]".to_owned()) } else { alone(n) };
        assert!(!joined.allows(&shown(named)), "a class that is shown");
        assert!(!joined.allows("a [mixed]"));
        assert!(!joined.allows("[mixed]"));
        assert!(!joined.allows("a [mixed] z and more"));
        assert_eq!(joined.certain(), "a   z");
    }

    #[test]
    fn a_text_with_few_spans_is_known_exactly() {
        let span = Span { class: "ip".to_owned(), start: 0, end: 1, text: "1".to_owned() };
        assert_eq!(Joined::of("1", &[span], |_| false), None);
    }
}
