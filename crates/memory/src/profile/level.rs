//! Trust levels.

use serde::{Deserialize, Serialize};

/// How far a grantee is trusted: 0 stranger, 1 acquaintance, 2 known, 3 trusted, 4 inner circle (RFC 0007
/// section 3.2).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(try_from = "u8", into = "u8")]
pub struct TrustLevel(#[schemars(range(min = 0, max = 4))] u8);

#[allow(missing_docs, reason = "the names say it")]
impl TrustLevel {
    /// 0, the level of whoever is not known better.
    pub const STRANGER: Self = Self(0);
    /// 4, as the principal themselves.
    pub const INNER_CIRCLE: Self = Self(4);

    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// All five.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..=4).map(Self)
    }

    /// What the level is called.
    #[must_use]
    pub const fn name(self) -> &'static str {
        ["stranger", "acquaintance", "known", "trusted", "inner circle"][self.0 as usize]
    }
}

/// Not a trust level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a trust level is 0 to 4")]
pub struct NotTrustLevel;

impl TryFrom<u8> for TrustLevel {
    type Error = NotTrustLevel;
    fn try_from(level: u8) -> Result<Self, NotTrustLevel> {
        if level <= 4 { Ok(Self(level)) } else { Err(NotTrustLevel) }
    }
}

impl From<TrustLevel> for u8 {
    fn from(level: TrustLevel) -> Self {
        level.0
    }
}
