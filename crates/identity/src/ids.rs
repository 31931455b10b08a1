//! Identifiers: a prefix and a ULID, one type each (protocol section 1). A wrong prefix is a parse error.

use crate::random::{self, Random};
use crate::time::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::fmt;
use std::str::FromStr;
use ulid::Ulid;

/// The text is not the identifier that was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {0}")]
pub struct IdError(&'static str);

fn crockford(c: u8) -> bool {
    matches!(c, b'0'..=b'9' | b'A'..=b'H' | b'J' | b'K' | b'M' | b'N' | b'P'..=b'T' | b'V'..=b'Z')
}

fn ulid(text: &str) -> Option<Ulid> {
    let canonical = text.len() == 26 && text.as_bytes()[0] <= b'7' && text.bytes().all(crockford);
    canonical.then(|| Ulid::from_string(text).ok())?
}

macro_rules! identifier {
    ($(#[$doc:meta])* $name:ident, $prefix:literal $(, also $alias:literal)?) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Ulid);

        impl $name {
            /// A fresh identifier: the time in milliseconds and 80 random bits.
            #[must_use]
            pub fn new(now: Timestamp, random: &dyn Random) -> Self {
                let millis = u64::try_from(now.millis()).unwrap_or(0);
                let mut wide = [0; 16];
                wide[6..].copy_from_slice(&random::bytes::<10>(random));
                Self(Ulid::from_parts(millis, u128::from_be_bytes(wide)))
            }

            /// The 16 bytes, in the order of time.
            #[must_use]
            pub fn to_bytes(self) -> [u8; 16] {
                self.0.to_bytes()
            }

            /// From the 16 bytes.
            #[must_use]
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Ulid::from_bytes(bytes))
            }

            /// The ULID without its prefix.
            #[must_use]
            pub fn ulid(self) -> String {
                self.0.to_string()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}{}", $prefix, self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                text.strip_prefix($prefix)
                    $(.or_else(|| text.strip_prefix($alias)))?
                    .and_then(ulid)
                    .map(Self)
                    .ok_or(IdError(concat!("\"", $prefix, "\" and a ULID of 26 Crockford characters")))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                if s.is_human_readable() { s.collect_str(self) } else { self.to_bytes().serialize(s) }
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                if d.is_human_readable() {
                    String::deserialize(d)?.parse().map_err(D::Error::custom)
                } else {
                    <[u8; 16]>::deserialize(d).map(Self::from_bytes)
                }
            }
        }
    };
}

identifier!(
    /// A memory item: `mem_` and a ULID.
    ItemId, "mem_"
);
identifier!(
    /// A bundle: `bdl_` and a ULID.
    BundleId, "bdl_"
);
identifier!(
    /// A Cross Scope Bridge (RFC 0006 section 3.6): `brg_` and a ULID.
    BridgeId, "brg_"
);
identifier!(
    /// A memory grant: `mgr_` and a ULID.
    GrantId, "mgr_"
);
identifier!(
    /// A receipt: `urn:oap:receipt:` and a ULID. Items write `rec_` and the same ULID ([`ReceiptId::short`]).
    ReceiptId, "urn:oap:receipt:", also "rec_"
);
identifier!(
    /// A deletion receipt: `urn:oap:deletion:` and a ULID.
    DeletionId, "urn:oap:deletion:"
);
identifier!(
    /// A policy decision: `pol_` and a ULID.
    DecisionId, "pol_"
);
identifier!(
    /// An incident report: `inc_` and a ULID.
    IncidentId, "inc_"
);
identifier!(
    /// An intent of the owner's agents (OpenIntent RFC-0001): `intent_` and a ULID.
    IntentId, "intent_"
);
identifier!(
    /// A task of an intent (OpenIntent RFC-0012): `task_` and a ULID.
    TaskId, "task_"
);
identifier!(
    /// A job of the owner's side: `job_` and a ULID.
    JobId, "job_"
);

identifier!(
    /// A letter from one gateway to another: `ltr_` and a ULID.
    LetterId, "ltr_"
);
identifier!(
    /// A request for access to somebody's memory: `ask_` and a ULID.
    AskId, "ask_"
);
identifier!(
    /// A subscription to the changes of a view: `sub_` and a ULID.
    SubscriptionId, "sub_"
);

/// A request or a response: 26 Crockford characters, as the envelope schema has it. A peer's need not be a
/// ULID (the protocol's own suite starts three in four of its ids beyond the largest ULID).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RequestId(String);

impl RequestId {
    /// A fresh identifier.
    #[must_use]
    pub fn new(now: Timestamp, random: &dyn Random) -> Self {
        Self(ItemId::new(now, random).ulid())
    }

    /// The 26 characters.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for RequestId {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        if text.len() == 26 && text.bytes().all(crockford) {
            Ok(Self(text.to_owned()))
        } else {
            Err(IdError("26 characters of Crockford's alphabet"))
        }
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(D::Error::custom)
    }
}

impl ReceiptId {
    /// The form that the RFC's items use: `rec_` and the ULID.
    #[must_use]
    pub fn short(self) -> String {
        format!("rec_{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Seeded;

    #[test]
    fn prefix_and_alphabet_are_checked() {
        let id: ItemId = "mem_01HX2QFXR0Q4S8T9V3W7X2Y0Z1".parse().unwrap();
        assert_eq!(id.to_string(), "mem_01HX2QFXR0Q4S8T9V3W7X2Y0Z1");
        for text in [
            "mgr_01HX2QFXR0Q4S8T9V3W7X2Y0Z1",
            "01HX2QFXR0Q4S8T9V3W7X2Y0Z1",
            "mem_01hx2qfxr0q4s8t9v3w7x2y0z1",
            "mem_81HX2QFXR0Q4S8T9V3W7X2Y0Z1",
            "mem_01HX2QFXR0Q4S8U9V3W7X2Y0Z1",
            "mem_01HX2QFXR0Q4S8T9V3W7X2Y0Z",
            "mem_",
        ] {
            assert!(text.parse::<ItemId>().is_err(), "{text}");
        }
    }

    #[test]
    fn receipts_have_two_spellings() {
        let id = ReceiptId::new(Timestamp::from_millis(1_700_000_000_000), &Seeded::new(1));
        assert_eq!(id.short().parse(), Ok(id));
        assert_eq!(id.to_string().parse(), Ok(id));
    }
}
