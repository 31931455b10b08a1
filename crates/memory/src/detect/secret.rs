//! Keys, tokens and passwords: known forms of issuers, and what follows a telling name.

use std::ops::Range;
use std::sync::LazyLock;

/// Forms that issuers publish so that scanners can find them.
static ISSUED: LazyLock<regex::Regex> = LazyLock::new(|| {
    super::pattern(
        r"(?x)
        \b(?:
            (?:AKIA|ASIA)[A-Z2-7]{16}                                  # AWS access key id
          | gh[pousr]_[A-Za-z0-9]{36,} | github_pat_[A-Za-z0-9_]{22,}      # GitHub
          | glpat-[A-Za-z0-9_-]{20,}                                           # GitLab
          | xox[abposr]-[A-Za-z0-9-]{10,}                              # Slack
          | AIza[A-Za-z0-9_-]{35}                                              # Google
          | ya29\.[A-Za-z0-9_-]{20,}                                           # Google OAuth
          | [sr]k_(?:live|test)_[A-Za-z0-9]{16,}                       # Stripe
          | sk-(?:ant-|proj-)?[A-Za-z0-9_-]{20,}                       # Anthropic, OpenAI
          | hf_[A-Za-z0-9]{30,}                                        # Hugging Face
          | npm_[A-Za-z0-9]{36}                                        # npm
          | SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}                                 # SendGrid
          | eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}                      # JWT
        )
        | -----BEGIN\ [A-Z\ ]*PRIVATE\ KEY-----(?s:.)*?-----END\ [A-Z\ ]*PRIVATE\ KEY-----
        ",
    )
});

/// A name that tells, and a separator; a [`value`] follows that no sentence would go on with.
static NAMED: LazyLock<regex::Regex> = LazyLock::new(|| {
    super::pattern(
        r#"(?ix)
        \b(?:password|passwd|passwort|kennwort|passphrase|pwd|secret|api[\ _-]?key|access[\ _-]?key|auth[\ _-]?token
          |access[\ _-]?token|client[\ _-]?secret|private[\ _-]?key|token|pin)
        \s*(?:[:=]|\bis[:=]|\blautet)\s*["'`]?
        "#,
    )
});

/// A name that tells in a sentence; a [`value`] follows that is no word of one: see [`is_said`].
static SAID: LazyLock<regex::Regex> = LazyLock::new(|| {
    super::pattern(
        r#"(?ix)
        \b(?:(?<strict>password|passwd|passwort|kennwort|passphrase|pwd|pin)|secret|api[\ _-]?key|access[\ _-]?key
          |auth[\ _-]?token|access[\ _-]?token|client[\ _-]?secret|private[\ _-]?key|token)
        \s+(?<verb>(?:is|was|ist|war)\s+)?["'`]?
        "#,
    )
});

/// Whether what follows a telling name in a sentence is its value: after a verb, digits of a password, or digits among letters;
/// without one, digits among letters of a long password.
fn is_said(value: &str, has_verb: bool, is_password: bool) -> bool {
    let digits = value.chars().any(char::is_numeric);
    let letters = value.chars().any(char::is_alphabetic);
    let symbols = value.chars().any(|c| "!@#$%^&*_+=".contains(c));
    let mixed = letters && (digits || symbols);
    if has_verb {
        mixed || (digits && is_password)
    } else {
        is_password && mixed && digits && value.len() >= 8
    }
}

/// Fewest characters of a value.
const MIN_VALUE: usize = 4;

/// The value that begins at a place: up to a space, a quote, a comma.
fn value(text: &str, start: usize) -> Option<Range<usize>> {
    let rest = text.get(start..)?;
    let is_end = |c: char| c.is_whitespace() || "\"'`,;".contains(c);
    let value = rest.get(..rest.find(is_end).unwrap_or(rest.len()))?;
    value.chars().nth(MIN_VALUE - 1)?;
    Some(start..start + value.trim_end_matches(['.', ')', '?']).len())
}

/// What follows `password=` and the like at the start of a text, or the whole text.
pub(super) fn after_name(text: &str) -> &str {
    let name = NAMED.find(text).filter(|name| name.start() == 0);
    name.and_then(|name| text.get(name.end()..)).unwrap_or(text)
}

pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let issued = ISSUED.find_iter(text).map(|m| m.range());
    // A name inside a value has a part of that value: nothing new.
    let mut end = 0;
    let named = NAMED.find_iter(text).filter_map(|name| {
        let value = (name.end() >= end).then(|| value(text, name.end()))??;
        end = value.end;
        Some(value)
    });
    let said = SAID.captures_iter(text).filter_map(|c| {
        let value = value(text, c.get(0)?.end())?;
        let value_text = text.get(value.clone())?.trim_end_matches('!');
        is_said(value_text, c.name("verb").is_some(), c.name("strict").is_some()).then_some(value)
    });
    issued.chain(named).chain(said).collect()
}
