//! How two gateways of one owner become devices of each other (docs/federation-devices.md): each owner's side says yes, after a look at a
//! code that both show.
//!
//! Each side commits itself to a random value before it learns the other's ([`commitment`]), and the [`Code`] is of both values and both
//! DIDs: whoever sits between the two, or poses as one of them, cannot make both show the same. A letter alone makes nobody a device.

use oap_identity::{Did, Hash};
use oap_memory::closed_enum;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::str::FromStr;

/// Digits of a code.
pub const DIGITS: usize = 8;

/// The body of `device_pairing`: one step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Body", into = "Body")]
pub enum Pairing {
    /// The owner wants the receiver for a device.
    Offer {
        /// What binds the sender to its value: [`commitment`].
        commitment: Hash,
    },
    /// The sender has the receiver's offer, and tells its value.
    Reveal {
        /// The value.
        value: Hash,
    },
    /// The owner compared the codes, and says yes.
    Grant {
        /// The signed grant. It is read and verified on its own.
        grant: Value,
    },
}

closed_enum! {
    /// Which step.
    Step {
        /// [`Pairing::Offer`].
        Offer = "offer",
        /// [`Pairing::Reveal`].
        Reveal = "reveal",
        /// [`Pairing::Grant`].
        Grant = "grant",
    }
}

/// A step on the wire: it has the member that it is named for, and no other.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    step: Step,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    commitment: Option<Hash>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<Hash>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    grant: Option<Value>,
}

/// Not such a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an offer has a commitment, a reveal a value, a grant a grant, and none of them another")]
struct NotStep;

impl TryFrom<Body> for Pairing {
    type Error = NotStep;

    fn try_from(body: Body) -> Result<Self, NotStep> {
        match (body.step, body.commitment, body.value, body.grant) {
            (Step::Offer, Some(commitment), None, None) => Ok(Self::Offer { commitment }),
            (Step::Reveal, None, Some(value), None) => Ok(Self::Reveal { value }),
            (Step::Grant, None, None, Some(grant)) => Ok(Self::Grant { grant }),
            _ => Err(NotStep),
        }
    }
}

impl From<Pairing> for Body {
    fn from(pairing: Pairing) -> Self {
        let body = |step| Self { step, commitment: None, value: None, grant: None };
        match pairing {
            Pairing::Offer { commitment } => Self { commitment: Some(commitment), ..body(Step::Offer) },
            Pairing::Reveal { value } => Self { value: Some(value), ..body(Step::Reveal) },
            Pairing::Grant { grant } => Self { grant: Some(grant), ..body(Step::Grant) },
        }
    }
}

/// What binds `from` to its value before `to` it: nobody can send it back as their own.
#[must_use]
pub fn commitment(from: &Did, to: &Did, value: &Hash) -> Hash {
    Hash::of(format!("oap-memory device pairing\n{from}\n{to}\n{value}").as_bytes())
}

/// What both sides show, and their owner compares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Code(String);

/// Not a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a code is {DIGITS} digits, as the other device shows them")]
pub struct NotCode;

impl Code {
    /// The code of two sides, each a DID and its value: the same whichever is named first.
    #[must_use]
    pub fn of(one: (&Did, &Hash), two: (&Did, &Hash)) -> Self {
        let (first, second) = if one.0 <= two.0 { (one, two) } else { (two, one) };
        let text = format!("oap-memory device code\n{}\n{}\n{}\n{}", first.0, second.0, first.1, second.1);
        let number = Hash::of(text.as_bytes())
            .as_bytes()
            .iter()
            .take(8)
            .fold(0_u64, |number, byte| number.wrapping_shl(8) | u64::from(*byte));
        let digits = format!("{:08}", number % 100_000_000);
        let (left, right) = digits.split_at(DIGITS / 2);
        Self(format!("{left}-{right}"))
    }
}

impl FromStr for Code {
    type Err = NotCode;

    fn from_str(text: &str) -> Result<Self, NotCode> {
        let digits: String = text.chars().filter(|c| !matches!(c, '-' | ' ')).take(DIGITS + 1).collect();
        if digits.len() != DIGITS || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(NotCode);
        }
        let (left, right) = digits.split_at(DIGITS / 2);
        Ok(Self(format!("{left}-{right}")))
    }
}

impl TryFrom<String> for Code {
    type Error = NotCode;

    fn try_from(text: String) -> Result<Self, NotCode> {
        text.parse()
    }
}

impl From<Code> for String {
    fn from(code: Code) -> Self {
        code.0
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn did(name: &str) -> Did {
        format!("did:web:{name}.example").parse().unwrap()
    }

    fn value(n: u8) -> Hash {
        Hash::from_bytes([n; 32])
    }

    #[test]
    fn a_code_is_of_both_sides() {
        let (phone, laptop) = (did("phone"), did("laptop"));
        let code = Code::of((&phone, &value(1)), (&laptop, &value(2)));
        assert_eq!(code, Code::of((&laptop, &value(2)), (&phone, &value(1))));
        // Another DID, another value, or the values the other way round: another code.
        let mallory = did("mallory");
        for other in [
            Code::of((&mallory, &value(1)), (&laptop, &value(2))),
            Code::of((&phone, &value(1)), (&mallory, &value(2))),
            Code::of((&phone, &value(3)), (&laptop, &value(2))),
            Code::of((&phone, &value(1)), (&laptop, &value(3))),
            Code::of((&phone, &value(2)), (&laptop, &value(1))),
        ] {
            assert_ne!(other, code);
        }
        let typed = code.to_string().replace('-', " ");
        assert_eq!(typed.parse(), Ok(code));
    }

    #[test]
    fn what_is_no_code() {
        let long = "1".repeat(10_000);
        for text in ["", "1234-567", "1234-56789", "1234-567a", "１２３４５６７８", long.as_str()] {
            assert_eq!(text.parse::<Code>(), Err(NotCode), "{text:.20}");
        }
    }

    /// The attack: what somebody is bound to is sent back, or on to a third.
    #[test]
    fn a_commitment_is_of_one_sender_and_one_receiver() {
        let bound = commitment(&did("a"), &did("b"), &value(1));
        assert_ne!(bound, commitment(&did("b"), &did("a"), &value(1)));
        assert_ne!(bound, commitment(&did("a"), &did("c"), &value(1)));
        assert_ne!(bound, commitment(&did("a"), &did("b"), &value(2)));
    }

    #[test]
    fn a_step_has_its_members_and_no_others() {
        let offer = Pairing::Offer { commitment: value(1) };
        let written = serde_json::to_value(&offer).unwrap();
        assert_eq!(written, serde_json::json!({"step": "offer", "commitment": value(1)}));
        assert_eq!(serde_json::from_value::<Pairing>(written).unwrap(), offer);
        for wrong in [
            serde_json::json!({"step": "offer"}),
            serde_json::json!({"step": "offer", "commitment": value(1), "grant": {}}),
            serde_json::json!({"step": "yes"}),
        ] {
            assert!(serde_json::from_value::<Pairing>(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
