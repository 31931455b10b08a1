//! The signing keys.

use super::endpoints;
use super::place::Place;
use oap_identity::{ItemId, Kid, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

endpoints! {
    /// The signing keys, newest first.
    ListKeys: GET "/oap/owner/keys" needs Admin answers(KeyList);
    /// Puts a new signing key into use. It ends every trust token; the answer has the caller's new one.
    RotateKeys: POST "/oap/owner/keys/rotate" needs Admin answers(ChangedKeys);
    /// Marks a key as compromised. It ends every trust token; the answer has the caller's new one.
    RevokeKey: POST "/oap/owner/keys/{fragment}/revoke" at(KeyName) needs Admin body(Compromise) answers(ChangedKeys);
}

/// The name of a key: the fragment of its id, such as `key-1`.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
pub struct KeyName(#[schemars(regex(pattern = "^[A-Za-z0-9._~-]{1,128}$"))] String);

impl KeyName {
    /// As text, without the `#`.
    #[must_use]
    pub fn into_string(self) -> String {
        self.0
    }
}

impl fmt::Display for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Not the name of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be the name of a key, such as key-1")]
pub struct NotKeyName;

impl FromStr for KeyName {
    type Err = NotKeyName;

    fn from_str(text: &str) -> Result<Self, NotKeyName> {
        let name = text.trim_start_matches('#');
        let plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'~' | b'-');
        if (1..=128).contains(&name.len()) && name.bytes().all(plain) {
            Ok(Self(name.to_owned()))
        } else {
            Err(NotKeyName)
        }
    }
}

impl Place for KeyName {
    fn text(&self) -> Option<String> {
        Some(self.0.clone())
    }

    fn parse(text: Option<&str>) -> Option<Self> {
        text?.parse().ok()
    }
}

/// A key as `keys list` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct KeyInfo {
    /// The key id.
    pub kid: Kid,
    pub thumbprint: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was retired.
    pub retired_at: Option<Timestamp>,
    /// Since when it is compromised.
    pub revoked_at: Option<Timestamp>,
    /// `current`, `retired` or `revoked`.
    pub state: Cow<'static, str>,
}

/// The signing keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeyList {
    /// Newest first.
    pub keys: Vec<KeyInfo>,
}

/// The signing keys after a change, and the caller's new credential.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub struct ChangedKeys {
    /// Newest first.
    pub keys: Vec<KeyInfo>,
    /// The trust token that takes the place of the one that the change ended.
    pub trust_token: String,
}

/// How a key is marked as compromised.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Compromise {
    /// Since when the key is not to be trusted; now if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

/// Most items that a job's result names as held back still.
pub const MAX_LEFT: usize = 1_000;

/// What a job signed anew.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SignedAgain {
    /// How many receipts.
    pub receipts: usize,
    /// How many items.
    pub items: usize,
    /// How many items stay held back.
    pub held_back: usize,
    /// The first [`MAX_LEFT`] of them.
    pub left: Vec<ItemId>,
}

impl SignedAgain {
    /// An item stays held back.
    pub fn stays(&mut self, item: ItemId) {
        self.held_back += 1;
        if self.left.len() < MAX_LEFT {
            self.left.push(item);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_names_no_more_than_it_may() {
        let mut signed = SignedAgain::default();
        let item: ItemId = "mem_01JZZZZZZZZZZZZZZZZZZZZZZZ".parse().unwrap();
        (0..=MAX_LEFT).for_each(|_| signed.stays(item));
        assert_eq!((signed.held_back, signed.left.len()), (MAX_LEFT + 1, MAX_LEFT));
    }
}
