//! URLs that carry a credential: user and password, or a token in the query.

use std::ops::Range;
use std::sync::LazyLock;

static PATTERN: LazyLock<regex::Regex> = LazyLock::new(|| {
    super::pattern(
        r#"(?x)
        \b[A-Za-z][A-Za-z0-9+.-]{1,20}://(?:
            [^\s/@"'<>]+:[^\s/@"'<>]+@[^\s"'<>]+
          | [^\s"'<>]*[?&\#](?i:access_token|auth_token|token|id_token|refresh_token|api_?key|apikey|key|secret|client_secret
              |password|passwd|pwd|sig|signature|x-amz-signature|x-amz-credential|sas|session(?:_?id)?)=[^\s"'<>&]{4,}[^\s"'<>]*
        )"#,
    )
});

pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    PATTERN
        .find_iter(text)
        .map(|m| m.start()..m.start() + m.as_str().trim_end_matches(['.', ',', ')', ';', '!', '?']).len())
        .collect()
}
