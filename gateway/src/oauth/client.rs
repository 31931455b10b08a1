//! Who a client says that it is.

use super::document::DocumentUrl;
use super::{OAuthError, RedirectUri};
use oap_identity::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use unicode_segmentation::UnicodeSegmentation;

/// Longest `client_id`, in bytes.
pub const MAX_CLIENT_ID: usize = 512;
/// Longest name of a client that the owner adds, in characters.
pub const MAX_CLIENT_NAME: usize = 64;
/// Most redirect URIs of a client.
pub const MAX_REDIRECTS: usize = 16;
/// Most of the name by which a client calls itself that a person is shown, in characters as people see them.
pub const MAX_SHOWN_NAME: usize = 64;
/// Most bytes of that, whatever characters are made of.
const MAX_SHOWN_BYTES: usize = 256;

/// By what a client is known: the address of its metadata document, or a name that the owner gave.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClientId {
    /// A client that publishes who it is.
    Document(DocumentUrl),
    /// A client that the owner added.
    Named(ClientName),
}

impl FromStr for ClientId {
    type Err = OAuthError;

    fn from_str(text: &str) -> Result<Self, OAuthError> {
        if text.len() > MAX_CLIENT_ID {
            return Err(OAuthError::TooLong("client_id", MAX_CLIENT_ID));
        }
        let named = || text.parse().map(Self::Named).map_err(|_| OAuthError::ClientId);
        text.parse().map(Self::Document).or_else(|_| named())
    }
}

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Document(url) => url.fmt(f),
            Self::Named(name) => name.fmt(f),
        }
    }
}

/// The name of a client that the owner added: 1 to 64 characters `a-z`, `0-9`, `_`, `-`, beginning with a letter or digit.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
pub struct ClientName(#[schemars(regex(pattern = "^[a-z0-9][a-z0-9_-]{0,63}$"))] String);

/// Not the name of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to {MAX_CLIENT_NAME} characters a-z 0-9 _ -, the first one a letter or digit")]
pub struct NotClientName;

impl FromStr for ClientName {
    type Err = NotClientName;

    fn from_str(text: &str) -> Result<Self, NotClientName> {
        let plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, b'_' | b'-');
        let fits = (1..=MAX_CLIENT_NAME).contains(&text.len())
            && text.bytes().all(plain)
            && !text.starts_with(['_', '-']);
        if fits { Ok(Self(text.to_owned())) } else { Err(NotClientName) }
    }
}

impl TryFrom<String> for ClientName {
    type Error = NotClientName;

    fn try_from(text: String) -> Result<Self, NotClientName> {
        text.parse()
    }
}

impl From<ClientName> for String {
    fn from(name: ClientName) -> Self {
        name.0
    }
}

impl fmt::Display for ClientName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a client calls itself, made fit to be shown: a line without what a screen would act on or leave out, and of a bounded length. It
/// proves nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct ShownName(String);

impl From<String> for ShownName {
    fn from(text: String) -> Self {
        // Whatever is no letter, mark, number, punctuation or symbol, and the characters that turn or hide text.
        let shown = |c: char| {
            !c.is_control()
                && !matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
                    | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
                    | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{ffff}'
                    | '\u{e000}'..='\u{f8ff}' | '\u{e0000}'..='\u{10ffff}')
        };
        let mut line = String::new();
        for word in text.split_whitespace() {
            let word: String = word.chars().filter(|c| shown(*c)).take(MAX_SHOWN_BYTES).collect();
            if line.len() > MAX_SHOWN_BYTES {
                break;
            }
            if !word.is_empty() {
                line.push_str(if line.is_empty() { "" } else { " " });
                line.push_str(&word);
            }
        }
        let mut name = String::new();
        for character in line.graphemes(true).take(MAX_SHOWN_NAME) {
            if name.len() + character.len() > MAX_SHOWN_BYTES {
                break;
            }
            name.push_str(character);
        }
        Self(if name.is_empty() { "(no name)".to_owned() } else { name })
    }
}

impl From<ShownName> for String {
    fn from(name: ShownName) -> Self {
        name.0
    }
}

impl fmt::Display for ShownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A client that the owner added, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredClient {
    pub(crate) redirects: Vec<String>,
    pub(crate) created_at: Timestamp,
}

impl StoredClient {
    /// The client of a name.
    pub(crate) fn of(&self, name: &ClientName) -> Result<Client, OAuthError> {
        let redirects = self.redirects.iter().map(|uri| uri.parse()).collect::<Result<_, _>>()?;
        Ok(Client { id: ClientId::Named(name.clone()), name: ShownName::from(name.to_string()), redirects })
    }
}

/// A client, as its document or the owner says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// By what it is known.
    pub id: ClientId,
    /// What it calls itself.
    pub name: ShownName,
    /// Where it may be sent back to; 1 to [`MAX_REDIRECTS`].
    pub redirects: Vec<RedirectUri>,
}

impl Client {
    /// That an address is one of its own.
    ///
    /// # Errors
    /// [`OAuthError::Redirect`].
    pub fn owns(&self, redirect: &RedirectUri) -> Result<(), OAuthError> {
        let own = self.redirects.iter().any(|own| redirect.is(own));
        if own { Ok(()) } else { Err(OAuthError::Redirect) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_of_a_name() {
        let shown = |text: &str| ShownName::from(text.to_owned()).to_string();
        assert_eq!(shown("  Caf\u{e9} \u{1f375}\n\tclient "), "Caf\u{e9} \u{1f375} client");
        assert_eq!(shown("a\u{202e}b\u{200b}c\u{1b}[2Jd\u{e0041}"), "abc[2Jd");
        assert_eq!(shown("\u{202e}\n"), "(no name)");
        assert_eq!(shown(&"x ".repeat(10_000)).chars().count(), MAX_SHOWN_NAME);
        // One character of a thousand marks.
        assert!(shown(&format!("a{}", "\u{301}".repeat(10_000))).len() <= MAX_SHOWN_BYTES);
    }

    #[test]
    fn ids_are_names_or_addresses() {
        assert!(matches!("desk-1".parse(), Ok(ClientId::Named(_))));
        assert!(matches!("https://app.example/client.json".parse(), Ok(ClientId::Document(_))));
        for wrong in ["", "http://app.example/client.json", "Desk", "a b", "https://app.example", "-a"] {
            assert_eq!(wrong.parse::<ClientId>(), Err(OAuthError::ClientId), "{wrong}");
        }
        let long = format!("https://app.example/{}", "a".repeat(MAX_CLIENT_ID));
        assert!(matches!(long.parse::<ClientId>(), Err(OAuthError::TooLong(..))));
    }
}
