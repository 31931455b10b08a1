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

pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let issued = ISSUED.find_iter(text).map(|m| m.range());
    let named = NAMED.captures_iter(text).filter_map(|c| c.name("value")).map(|m| {
        let value = m.as_str().trim_end_matches(['.', ')', '?']);
        m.start()..m.start() + value.len()
    });
    issued.chain(named).collect()
}
