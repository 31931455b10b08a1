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

/// A name that tells, a separator, and a value that no sentence would go on with.
static NAMED: LazyLock<regex::Regex> = LazyLock::new(|| {
    super::pattern(
        r#"(?ix)
        \b(?:password|passwd|passwort|kennwort|passphrase|pwd|secret|api[\ _-]?key|access[\ _-]?key|auth[\ _-]?token
          |access[\ _-]?token|client[\ _-]?secret|private[\ _-]?key|token|pin)
        \s*(?:[:=]|\bis[:=]|\blautet)\s*["'`]?
        (?<value>[^\s"'`,;]{4,})
        "#,
    )
});

/// A name that tells in a sentence, and a value that is no word of one: see [`is_said`].
static SAID: LazyLock<regex::Regex> = LazyLock::new(|| {
    super::pattern(
        r#"(?ix)
        \b(?:(?<strict>password|passwd|passwort|kennwort|passphrase|pwd|pin)|secret|api[\ _-]?key|access[\ _-]?key
          |auth[\ _-]?token|access[\ _-]?token|client[\ _-]?secret|private[\ _-]?key|token)
        \s+(?<verb>(?:is|was|ist|war)\s+)?["'`]?
        (?<value>[^\s"'`,;]{4,})
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

pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let issued = ISSUED.find_iter(text).map(|m| m.range());
    let end = |m: regex::Match| {
        let value = m.as_str().trim_end_matches(['.', ')', '?']);
        m.start()..m.start() + value.len()
    };
    let named = NAMED.captures_iter(text).filter_map(|c| c.name("value")).map(end);
    let said = SAID.captures_iter(text).filter_map(|c| {
        let value = c.name("value")?;
        let value_text = value.as_str().trim_end_matches(['.', ')', '?', '!']);
        is_said(value_text, c.name("verb").is_some(), c.name("strict").is_some()).then(|| end(value))
    });
    issued.chain(named).chain(said).collect()
}
