//! Where a client is sent back to.

use super::OAuthError;
use std::str::FromStr;
use url::Url;

/// Longest redirect URI, in bytes.
pub const MAX_REDIRECT: usize = 1024;
/// The hosts that a client on the user's own machine listens at, as they are written.
const LOOPBACK: [&str; 3] = ["127.0.0.1", "[::1]", "localhost"];

/// A redirect URI: https anywhere, or http on the user's own machine; without fragment and user. Its text is kept as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedirectUri {
    text: String,
    url: Url,
}

impl FromStr for RedirectUri {
    type Err = OAuthError;

    fn from_str(text: &str) -> Result<Self, OAuthError> {
        // What browsers read differently from RFC 3986 is not let in, a backslash among it.
        let plain = |c: u8| c.is_ascii_graphic() && !br##"\"<>^`{|}#@"##.contains(&c);
        if text.len() > MAX_REDIRECT || !text.bytes().all(plain) {
            return Err(OAuthError::RedirectForm);
        }
        let url: Url = text.parse().map_err(|_| OAuthError::RedirectForm)?;
        let uri = Self { text: text.to_owned(), url };
        let fits = match uri.url.scheme() {
            "https" => text.starts_with("https://") && uri.url.has_host(),
            "http" => uri.loopback().is_some(),
            _ => false,
        };
        if fits { Ok(uri) } else { Err(OAuthError::RedirectForm) }
    }
}

impl RedirectUri {
    /// The text as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether a request that names this one is for `own`, one of the client's own: the same text, but for the port where both are on
    /// the user's machine, for there a client takes any that is free (RFC 8252 section 7.3).
    #[must_use]
    pub fn is(&self, own: &Self) -> bool {
        self.text == own.text
            || self.loopback().is_some_and(|(host, rest)| own.loopback() == Some((host, rest)))
    }

    /// Whether it is on the user's own machine: anything there can pretend to be the client.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.loopback().is_some()
    }

    /// The host, and the port where one is named: what a person is shown.
    #[must_use]
    pub fn host(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        self.url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// The address with these parameters more.
    #[must_use]
    pub fn with(&self, parameters: &[(&str, &str)]) -> String {
        let mut url = self.url.clone();
        url.query_pairs_mut().extend_pairs(parameters);
        url.into()
    }

    /// Of one on the user's own machine: its host, and what follows the port.
    fn loopback(&self) -> Option<(&str, &str)> {
        let rest = self.text.strip_prefix("http://")?;
        let host = LOOPBACK.into_iter().find(|host| rest.starts_with(host))?;
        let rest = rest.strip_prefix(host)?;
        let rest = match rest.strip_prefix(':') {
            Some(rest) => rest.trim_start_matches(|c: char| c.is_ascii_digit()),
            None => rest,
        };
        (rest.is_empty() || rest.starts_with(['/', '?'])).then_some((host, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(text: &str) -> RedirectUri {
        text.parse().unwrap_or_else(|_| panic!("{text}"))
    }

    #[test]
    fn where_a_client_may_be_sent() {
        for text in [
            "https://app.example/callback",
            "https://app.example:8443/cb?fixed=1",
            "http://127.0.0.1:33418",
            "http://127.0.0.1/callback",
            "http://localhost:3000/callback",
            "http://[::1]:1/cb",
        ] {
            assert_eq!(uri(text).as_str(), text);
        }
        for text in [
            "",
            "callback",
            "javascript:alert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "cursor://callback",
            "http://app.example/callback",
            "http://127.0.0.1.evil.example/",
            "http://localhost.evil.example/",
            "http://localhost@evil.example/",
            "http://localhost:80@evil.example/",
            "http://127.1/cb",
            "http://2130706433/cb",
            "https://user@app.example/cb",
            "https://app.example/cb#fragment",
            "https:app.example/cb",
            "https:\\\\app.example/cb",
            "http://localhost\\@evil.example/",
            "https://app.example/\ncb",
            "https://app.example/cb cb",
            "https://b\u{fc}cher.example/cb",
            "http://localhost:99999/cb",
            "https://",
            &format!("https://app.example/{}", "a".repeat(MAX_REDIRECT)),
        ] {
            assert_eq!(text.parse::<RedirectUri>(), Err(OAuthError::RedirectForm), "{text}");
        }
    }

    #[test]
    fn only_a_port_of_loopback_may_differ() {
        let is = |asked: &str, own: &str| uri(asked).is(&uri(own));
        assert!(is("https://app.example/cb", "https://app.example/cb"));
        assert!(is("http://127.0.0.1:4711/cb", "http://127.0.0.1/cb"));
        assert!(is("http://127.0.0.1:4711/cb", "http://127.0.0.1:3000/cb"));
        assert!(is("http://localhost/cb?x=1", "http://localhost:3000/cb?x=1"));
        for (asked, own) in [
            ("https://app.example/cb/", "https://app.example/cb"),
            ("https://app.example/cb?x", "https://app.example/cb"),
            ("https://app.example:444/cb", "https://app.example/cb"),
            ("https://APP.example/cb", "https://app.example/cb"),
            ("https://app.example/x/../cb", "https://app.example/cb"),
            ("http://localhost:3000/cb", "http://127.0.0.1:3000/cb"),
            ("http://127.0.0.1:3000/cb/x", "http://127.0.0.1:3000/cb"),
            ("http://127.0.0.1:3000/cb?next=x", "http://127.0.0.1:3000/cb"),
            ("http://127.0.0.1:3000", "http://127.0.0.1:3000/"),
        ] {
            assert!(!is(asked, own), "{asked} {own}");
        }
    }

    #[test]
    fn parameters_are_added_and_encoded() {
        let state = "a&b=c#d\r\n";
        assert_eq!(
            uri("https://app.example/cb?fixed=1").with(&[("code", "x"), ("state", state)]),
            "https://app.example/cb?fixed=1&code=x&state=a%26b%3Dc%23d%0D%0A"
        );
        assert_eq!(uri("https://app.example:8443/cb").host(), "app.example:8443");
    }
}
