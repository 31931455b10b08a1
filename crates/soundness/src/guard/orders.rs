//! Orders to whoever reads, as rules over cues: which follow each other, how far apart, in one sentence or not.

use super::cues::{Cue, Hit, cues, is_word};
use super::fold::{Folded, LINE, PARAGRAPH};
use super::{Finding, Kind, Severity};
use std::ops::Range;

/// Most findings of one rule in one text.
const MOST: usize = 4;
/// Longest quotation in which an order is taken for a quoted one, in bytes.
const QUOTATION: usize = 160;
/// How far before a quotation the word stands that says what it is, in bytes.
const ANNOUNCED: usize = 160;

/// One rule: cues in this order, each at most so many bytes behind the one before, in one sentence.
struct Rule {
    kind: Kind,
    severity: Severity,
    /// What it says to people.
    says: &'static str,
    steps: &'static [(Cue, usize)],
    /// Cues that stand somewhere in the sentence, too.
    with: &'static [Cue],
    /// Cues of which none stands in the sentence.
    without: &'static [Cue],
    /// Whether it may go over the end of a sentence.
    across: bool,
}

const fn rule(kind: Kind, says: &'static str, steps: &'static [(Cue, usize)]) -> Rule {
    Rule { kind, severity: Severity::Hostile, says, steps, with: &[], without: &[], across: false }
}

impl Rule {
    const fn suspect(self) -> Self {
        Self { severity: Severity::Suspect, ..self }
    }
    const fn with(self, with: &'static [Cue]) -> Self {
        Self { with, ..self }
    }
    const fn without(self, without: &'static [Cue]) -> Self {
        Self { without, ..self }
    }
    const fn across(self) -> Self {
        Self { across: true, ..self }
    }
}

use Cue::{
    Act, Address, Ai, Always, Answer, Become, Bring, Conceal, Deal, Deed, Denied, Dest, Dispose, Everywhere,
    Freed, FromNow, Header, Human, IfYouAre, Instruction, Instructs, Itself, Keep, Lure, Manner, Me,
    Memories, Memory, Mention, Must, NewOrder, Norm, Not, Only, Others, Override, Permanently, Place, Prior,
    Prompt, Push, Remember, Rest, Reveal, Revoked, Say, Secret, Send, Sent, Speak, Spoken, Spread, Store,
    Summarising, Sway, Tamper, TheirWords, ThisText, Unasked, Universal, Unknowing, User, Usual, Utter,
    Voided, Waiver, WhenAsked, Wipe, Words, You, YouMust,
};

const RULES: &[Rule] = &[
    rule(
        Kind::Override,
        "It tells its reader to take no notice of earlier instructions.",
        &[(Override, 0), (Prior, 24), (Instruction, 48)],
    )
    .across(),
    rule(
        Kind::Override,
        "It tells its reader to take no notice of earlier instructions.",
        &[(Override, 0), (Instruction, 24), (Prior, 24)],
    )
    .across(),
    rule(
        Kind::Override,
        "It says that the reader's instructions are in force no more.",
        &[(You, 0), (Instruction, 32), (Revoked, 48)],
    ),
    rule(Kind::Override, "It gives its reader a new task.", &[(NewOrder, 0)]).suspect(),
    rule(
        Kind::Override,
        "It tells its reader to take no notice of something, and what to say instead.",
        &[(Override, 0), (Instruction, 8), (Bring, 40)],
    )
    .across(),
    rule(
        Kind::Override,
        "It tells its reader to take no notice of something, and what to say instead.",
        &[(Override, 0), (Rest, 16), (Bring, 80)],
    )
    .across(),
    rule(Kind::Directed, "It is addressed to an assistant.", &[(Spoken, 0)]).suspect().without(&[Human]),
    rule(Kind::Directed, "It says what alone to answer when somebody asks.", &[(WhenAsked, 0), (Only, 120)])
        .without(&[Me, Others]),
    rule(Kind::SystemPrompt, "It speaks as a system's message.", &[(Header, 0), (Only, 80)]),
    rule(Kind::Directed, "It puts something into its reader's answer.", &[(Tamper, 0), (Answer, 120)])
        .with(&[Lure])
        .without(&[Me]),
    rule(Kind::Directed, "It puts something into its reader's answer.", &[(Answer, 0), (Tamper, 60)])
        .with(&[Lure])
        .without(&[Me]),
    rule(Kind::Secrecy, "It asks that nobody gets to know of it.", &[(Conceal, 0), (ThisText, 24)]),
    rule(
        Kind::Directed,
        "It lays down what its reader must do from now on.",
        &[(FromNow, 0), (YouMust, 120), (Act, 80)],
    )
    .without(&[Me]),
    rule(
        Kind::Directed,
        "It lays down what its reader must do from now on.",
        &[(FromNow, 0), (YouMust, 120), (Push, 80)],
    )
    .without(&[Me]),
    rule(Kind::Directed, "It says what to claim whenever the user asks.", &[(WhenAsked, 0), (Sway, 120)])
        .without(&[Me, Others]),
    rule(Kind::Directed, "It says what to answer whenever the user asks.", &[(WhenAsked, 0), (Push, 120)])
        .without(&[Me, Others]),
    rule(Kind::Directed, "It asks for something to be recommended every time.", &[(Always, 0), (Push, 4)])
        .suspect()
        .without(&[Me, Others]),
    rule(Kind::Directed, "It is addressed to an assistant.", &[(Address, 0), (Ai, 24)])
        .suspect()
        .without(&[Human]),
    rule(Kind::Directed, "It is addressed to whoever is an assistant.", &[(IfYouAre, 0), (Ai, 24)])
        .without(&[Human]),
    rule(Kind::Directed, "It says what an assistant must do.", &[(Ai, 0), (Must, 60), (Act, 60)])
        .suspect()
        .without(&[Human]),
    rule(
        Kind::Directed,
        "It gives orders to an assistant in somebody's name.",
        &[(Instructs, 0), (Ai, 24), (Deed, 24)],
    )
    .suspect()
    .without(&[Human]),
    rule(Kind::Directed, "It says what a summary of it is to say.", &[(Summarising, 0), (YouMust, 60)])
        .suspect(),
    rule(Kind::Directed, "It puts words into its reader's answer.", &[(Summarising, 0), (Utter, 80)]),
    rule(Kind::Directed, "It puts words into its reader's answer.", &[(Utter, 0), (Summarising, 80)]),
    rule(Kind::Persona, "It makes its reader somebody else, without bounds.", &[(Become, 0), (Freed, 80)]),
    rule(Kind::SystemPrompt, "It speaks as a system's message.", &[(Header, 0), (You, 80)]),
    rule(Kind::SystemPrompt, "It speaks as a system's message.", &[(Header, 0), (Freed, 80)]),
    rule(Kind::SystemPrompt, "It speaks as a system's message.", &[(Header, 0), (Ai, 80), (Must, 40)])
        .across(),
    rule(Kind::SystemPrompt, "It asks for what the reader was told first.", &[(Reveal, 0), (Prompt, 48)])
        .without(&[Others]),
    rule(Kind::Secrecy, "It asks that the user does not get to know.", &[(Conceal, 0), (User, 60)]),
    rule(Kind::Secrecy, "It asks that the user does not get to know.", &[(Say, 0), (User, 60), (Denied, 48)]),
    rule(Kind::Secrecy, "It asks for something without the user's word.", &[(Unasked, 0)])
        .with(&[User, Dispose]),
    rule(Kind::Secrecy, "It asks an assistant for something without asking.", &[(Unasked, 0)])
        .with(&[Ai, Dispose])
        .without(&[Human]),
    rule(Kind::Spreading, "It asks to be handed on.", &[(Spread, 0), (Itself, 60)]).with(&[Everywhere]),
    rule(Kind::Memory, "It says what is to be remembered of the user.", &[(Remember, 0)]),
    rule(Kind::Memory, "It says what is to be written into the memory.", &[(Store, 0), (Memory, 48)]),
    rule(Kind::Memory, "It says what is to be kept of the user for good.", &[(Store, 0), (Permanently, 32)])
        .with(&[User])
        .across(),
    rule(Kind::Memory, "It says what is to be forgotten.", &[(Wipe, 0), (Memories, 60)]).without(&[Others]),
    rule(
        Kind::Exfiltration,
        "It asks for what the user said to be sent away.",
        &[(Send, 0), (TheirWords, 160)],
    )
    .with(&[Dest])
    .without(&[Me])
    .across(),
    rule(Kind::Exfiltration, "It asks for what is the user's to be sent away.", &[(Send, 0), (Secret, 60)])
        .with(&[Dest])
        .without(&[Me]),
    // The same where the verb stands last, or what is told is told of whom it concerns.
    rule(Kind::Exfiltration, "It asks for what is the user's to be sent away.", &[(Secret, 0), (Sent, 80)])
        .with(&[Place])
        .without(&[Me, Usual]),
    rule(
        Kind::Override,
        "It says that earlier instructions are to be taken no notice of.",
        &[(Prior, 0), (Instruction, 40), (Voided, 24)],
    )
    .suspect(),
    rule(
        Kind::Override,
        "It says that earlier instructions are to be taken no notice of.",
        &[(Instruction, 0), (Prior, 24), (Voided, 24)],
    )
    .suspect(),
    rule(Kind::Secrecy, "It says that the user is not to get to know.", &[(User, 0), (Unknowing, 32)])
        .suspect(),
    rule(
        Kind::Persona,
        "It makes its reader somebody else, without bounds.",
        &[(Become, 0), (Not, 80), (Norm, 16)],
    )
    .suspect(),
    rule(Kind::Memory, "It says that the user agreed to whatever is done.", &[(User, 0), (Waiver, 80)])
        .suspect()
        .with(&[Universal, Deal])
        .without(&[Me]),
    // How something is to be said is a preference.
    rule(Kind::Directed, "It says what an assistant must do.", &[(Ai, 0), (Must, 60), (Speak, 60)])
        .suspect()
        .without(&[Human, Manner]),
    rule(
        Kind::Directed,
        "It lays down what its reader must do from now on.",
        &[(FromNow, 0), (YouMust, 120), (Speak, 80)],
    )
    .without(&[Me, Manner]),
    // What is to be said is no manner of saying it.
    rule(
        Kind::Directed,
        "It says what an assistant must say.",
        &[(Ai, 0), (Must, 60), (Speak, 60), (Words, 60)],
    )
    .suspect()
    .without(&[Human]),
    rule(
        Kind::Directed,
        "It lays down what its reader must say from now on.",
        &[(FromNow, 0), (YouMust, 120), (Speak, 80), (Words, 60)],
    )
    .without(&[Me]),
];

/// A sentence in the common form, with its cues.
struct Sentence<'a> {
    hits: &'a [Hit],
    range: Range<usize>,
}

/// Shortest paragraph that an empty line makes a sentence of, in bytes: words that stand alone on their lines are one.
const STRETCH: usize = 24;

/// Where sentences end: at a full stop that no word follows at once, at other closing marks, at an empty line.
fn ends(text: &str) -> Vec<usize> {
    let mut ends: Vec<usize> = Vec::new();
    let mut paragraph = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, c)| *c);
        let closes = match c {
            '!' | '?' | ';' | '\u{3002}' => true,
            '.' => next.is_none_or(|c| !is_word(c)),
            PARAGRAPH => at - std::mem::replace(&mut paragraph, at) >= STRETCH,
            _ => false,
        };
        if closes {
            ends.push(at + c.len_utf8());
        }
    }
    if ends.last() != Some(&text.len()) {
        ends.push(text.len());
    }
    ends
}

/// What a system's message begins with, and whether brackets around it are enough: of those that are names of other things, too, a colon
/// says that somebody speaks.
const HEADERS: [(&str, bool); 16] = [
    ("system", false),
    ("sistema", false),
    ("系统", false),
    ("admin", false),
    ("systemnachricht", true),
    ("system-nachricht", true),
    ("systemmeldung", true),
    ("system message", true),
    ("system notice", true),
    ("system notification", true),
    ("developer message", true),
    ("mensaje del sistema", true),
    ("aviso del sistema", true),
    ("系统消息", true),
    ("系统通知", true),
    ("系统指令", true),
];

/// Lines that begin as a system's message does, as hits.
fn headers(text: &str) -> Vec<Hit> {
    let mut hits = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive([LINE, PARAGRAPH]) {
        let bare = line.trim_start_matches([' ', '#', '*', '[', '\u{3010}', '-', '>', '"', '\'']);
        let lead = line.len() - bare.len();
        let is_bracketed = line.get(..lead).is_some_and(|lead| lead.contains(['[', '\u{3010}']));
        let begin = start + lead;
        for (name, brackets_do) in HEADERS {
            let Some(rest) = bare.strip_prefix(name) else { continue };
            let closes = is_bracketed && brackets_do && rest.trim_start().starts_with([']', '\u{3011}']);
            let rest = rest.trim_start_matches([' ', ']', '\u{3011}', '*']);
            if closes || rest.starts_with(':') {
                hits.push(Hit { cue: Header, range: begin..begin + name.len() });
            }
        }
        start += line.len();
    }
    hits
}

/// Takes what is not to be forgotten for what it is: no order to take no notice.
fn keep(hits: &mut Vec<Hit>) {
    let kept: Vec<Range<usize>> =
        hits.iter().filter(|hit| hit.cue == Keep).map(|hit| hit.range.clone()).collect();
    if !kept.is_empty() {
        hits.retain(|hit| {
            let after = kept.partition_point(|kept| kept.start <= hit.range.start);
            let within = after.checked_sub(1).and_then(|n| kept.get(n));
            hit.cue != Override || within.is_none_or(|kept| hit.range.end > kept.end)
        });
    }
}

/// Who speaks beside the assistant where a conversation is written down.
const SPEAKERS: [&str; 5] = ["user", "owner", "nutzer", "usuario", "用户"];

/// Assistants that a sentence begins by speaking to, such as `AI agents: ...`, as hits.
fn spoken_to(text: &str, hits: &[Hit], sentences: &[usize]) -> Vec<Hit> {
    let begins = |at: usize| {
        let before =
            text.get(..at).unwrap_or_default().trim_end_matches([' ', '#', '*', '-', LINE, PARAGRAPH, '>']);
        before.is_empty() || sentences.binary_search(&before.len()).is_ok() || before.ends_with('"')
    };
    // Where a user speaks too, it is said who said what.
    let is_transcript = text.split([LINE, PARAGRAPH]).any(|line| {
        let line = line.trim_start();
        SPEAKERS.iter().any(|name| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(':')))
    });
    if is_transcript {
        return Vec::new();
    }
    let followed = |end: usize| text.get(end..).is_some_and(|rest| rest.starts_with(':'));
    let open = |at: usize| {
        let before = text.get(..at).unwrap_or_default().trim_end();
        before.ends_with("<!--") || before.ends_with('>')
    };
    let spoken = hits.iter().filter(|hit| {
        hit.cue == Ai && followed(hit.range.end) && (begins(hit.range.start) || open(hit.range.start))
    });
    spoken.map(|hit| Hit { cue: Spoken, range: hit.range.clone() }).collect()
}

/// The orders in a text; `None` where it has more cues than are looked at.
pub(super) fn orders(form: &Folded<'_>) -> Option<Vec<Finding>> {
    let text = form.text.as_str();
    let mut hits = cues(&form.flow())?;
    keep(&mut hits);
    if hits.is_empty() {
        return Some(Vec::new());
    }
    let ends = ends(text);
    hits.extend(headers(text));
    hits.extend(spoken_to(text, &hits, &ends));
    hits.sort_by_key(|hit| (hit.range.start, hit.cue));
    let whole = Sentence { hits: &hits, range: 0..text.len() };
    let mut sentences = Vec::with_capacity(ends.len());
    let (mut start, mut first) = (0, 0);
    for end in ends {
        let count = hits.iter().skip(first).take_while(|hit| hit.range.start < end).count();
        let of = hits.get(first..first + count).unwrap_or_default();
        sentences.push(Sentence { hits: of, range: start..end });
        (start, first) = (end, first + count);
    }
    let quotations = quotations(text);
    let mut findings = Vec::new();
    for rule in RULES {
        let mut found: Vec<Range<usize>> = Vec::new();
        if rule.across {
            matches(rule, &whole, &mut found);
        } else {
            sentences.iter().for_each(|sentence| matches(rule, sentence, &mut found));
        }
        for range in found {
            let quoted = is_mentioned(text, &range, &quotations, &hits);
            let severity = if quoted { Severity::Note } else { rule.severity };
            findings.push(Finding { kind: rule.kind, range, severity, says: rule.says });
        }
    }
    Some(findings)
}

/// Where a rule holds in a sentence.
fn matches(rule: &Rule, sentence: &Sentence<'_>, found: &mut Vec<Range<usize>>) {
    let has = |cue: &Cue| sentence.hits.iter().any(|hit| hit.cue == *cue);
    let Some((first, _)) = rule.steps.first() else { return };
    if !rule.steps.iter().all(|(cue, _)| has(cue))
        || !rule.with.iter().all(has)
        || rule.without.iter().any(has)
    {
        return;
    }
    debug_assert!(sentence.hits.iter().all(|hit| sentence.range.contains(&hit.range.start)));
    for (n, hit) in sentence.hits.iter().enumerate().filter(|(_, hit)| hit.cue == *first) {
        if found.len() >= MOST {
            return;
        }
        if found.last().is_some_and(|last| hit.range.start < last.end) {
            continue;
        }
        if let Some(end) = follow(sentence.hits, n, &rule.steps[1..]) {
            found.push(hit.range.start..end);
        }
    }
}

/// Where the last of some steps ends that follow a hit. Of each step, all that are near enough are tried: how many there are is bounded by
/// the distance, and so is the number of steps.
fn follow(hits: &[Hit], from: usize, steps: &[(Cue, usize)]) -> Option<usize> {
    let here = hits.get(from)?;
    let Some(((cue, gap), rest)) = steps.split_first() else { return Some(here.range.end) };
    let near =
        hits.iter().enumerate().skip(from + 1).take_while(|(_, hit)| hit.range.start <= here.range.end + gap);
    for (n, hit) in near {
        if hit.cue == *cue
            && hit.range.start >= here.range.end
            && let Some(end) = follow(hits, n, rest)
        {
            return Some(end);
        }
    }
    None
}

/// What stands in quotation marks, as far as it is short enough to be quoted.
fn quotations(text: &str) -> Vec<Range<usize>> {
    let closing = |c: char| match c {
        '"' => Some(&['"'][..]),
        '\u{201c}' => Some(&['\u{201d}'][..]),
        '\u{201e}' => Some(&['\u{201c}', '\u{201d}'][..]),
        '\u{ab}' => Some(&['\u{bb}'][..]),
        '\u{300c}' => Some(&['\u{300d}'][..]),
        '\'' => Some(&['\''][..]),
        _ => None,
    };
    let mut found = Vec::new();
    let mut open: Option<(usize, &[char])> = None;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        match open {
            Some((start, closing)) if closing.contains(&c) => {
                if at - start <= QUOTATION {
                    found.push(start..at);
                }
                open = None;
            }
            // An apostrophe in a word opens nothing.
            None if c == '\'' && is_word(before) => {}
            None => open = closing(c).map(|closing| (at + c.len_utf8(), closing)),
            Some((start, _)) if at - start > QUOTATION => open = None,
            Some(_) => {}
        }
        before = c;
    }
    found
}

/// Whether an order stands in quotation marks, in a sentence that says that it speaks about such texts.
fn is_mentioned(text: &str, range: &Range<usize>, quotations: &[Range<usize>], hits: &[Hit]) -> bool {
    let quotation = quotations.iter().find(|quoted| quoted.start <= range.start && range.end <= quoted.end);
    quotation.is_some_and(|quoted| {
        let announced = quoted.start.saturating_sub(ANNOUNCED)..quoted.start;
        let behind = quoted.end..(quoted.end + 24).min(text.len());
        hits.iter().any(|hit| {
            hit.cue == Mention && (announced.contains(&hit.range.start) || behind.contains(&hit.range.start))
        })
    })
}
