//! What became of asking another gateway: who was slow, who refused, who lied.

use oap_memory::closed_enum;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// Most gateways that one recall asks at once.
pub const AT_ONCE: usize = 8;
/// Most grants that one recall asks under; which they are does not depend on what is asked.
pub const MAX_ASKED: usize = 32;
/// How long a recall waits for all others together, where its caller does not say.
pub const USUAL_DEADLINE: Duration = Duration::from_secs(5);
/// The longest that a caller may say: with what comes after, within the time of one request.
pub const MAX_DEADLINE: Duration = Duration::from_secs(25);
/// Longest code of a refusal that is repeated, in bytes.
pub const MAX_CODE: usize = 64;

closed_enum! {
    /// What became of asking one gateway under one grant.
    PeerStanding {
        /// It answered, and everything that it said was proved.
        Answered = "answered",
        /// Nothing, or not all, came in its time.
        Slow = "slow",
        /// It said no.
        Refused = "refused",
        /// It said what is not so: nothing of it is believed.
        Lied = "lied",
        /// Nobody was there, or what came was no answer.
        Unreachable = "unreachable",
    }
}

closed_enum! {
    /// What a gateway said that is not so.
    Lie {
        /// A signature, disclosure, chain or receipt of its answer does not hold.
        Proof = "proof",
        /// Its answer was not given under the grant.
        Terms = "terms",
        /// Its answer is for another grantee, or to another query: an old one, or somebody else's.
        OtherAnswer = "other_answer",
        /// Its DID document is another's, or none.
        Document = "document",
        /// What it publishes does not hold together.
        Manifest = "manifest",
        /// It is the gateway of somebody else.
        OtherGateway = "other_gateway",
        /// Its log is not the one that witnesses signed, or what it gave is not in it.
        History = "history",
    }
}

closed_enum! {
    /// Why there was no answer.
    Why {
        /// No connection, or it broke off.
        Connection = "connection",
        /// What came was no JSON of the shape that it must have, or longer than what is read.
        Unreadable = "unreadable",
        /// It sends us elsewhere; nobody is followed.
        Redirected = "redirected",
        /// The DID document of whoever signed was not to be had.
        NoDocument = "no_document",
        /// The grant does not say where it is used.
        NoPlace = "no_place",
        /// The grant leads where a stranger may not lead us.
        NotPublic = "not_public",
        /// Its clock is more than five minutes ahead, or ours is behind: what it says is from the future.
        Clock = "clock",
        /// The own key could not sign.
        OwnKey = "own_key",
        /// Its log has not as many signatures of witnesses as the owner demands.
        Unwitnessed = "unwitnessed",
    }
}

/// The code of a refusal: a stranger's, of plain letters, or `unknown`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Code(String);

impl Code {
    /// The grant does not hold any more, as is known here.
    #[must_use]
    pub fn grant() -> Self {
        Self("grant".to_owned())
    }

    /// The code that a stranger sent, where it is one.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_';
        let fits = (1..=MAX_CODE).contains(&text.len()) && text.bytes().all(plain);
        Self(if fits { text.to_owned() } else { "unknown".to_owned() })
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What became of asking one gateway under one grant, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "as of `PeerStanding`")]
pub enum Verdict {
    Answered,
    Slow,
    Refused(Code),
    Lied(Lie),
    Unreachable(Why),
}

impl Verdict {
    /// Without the reason.
    #[must_use]
    pub const fn standing(&self) -> PeerStanding {
        match self {
            Self::Answered => PeerStanding::Answered,
            Self::Slow => PeerStanding::Slow,
            Self::Refused(_) => PeerStanding::Refused,
            Self::Lied(_) => PeerStanding::Lied,
            Self::Unreachable(_) => PeerStanding::Unreachable,
        }
    }

    /// The reason: the code of a refusal, what the lie was of, why there was no answer.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Answered | Self::Slow => None,
            Self::Refused(code) => Some(code.as_str()),
            Self::Lied(lie) => Some(lie.as_str()),
            Self::Unreachable(why) => Some(why.as_str()),
        }
    }
}

/// What each of so many may take of a deadline: as many as are asked at once have the whole of it; where there are more, those that are slow
/// leave the rest its part.
#[must_use]
pub fn budget(deadline: Duration, asked: usize) -> Duration {
    let waves = asked.div_ceil(AT_ONCE).max(1);
    deadline / u32::try_from(waves).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_ones_leave_the_rest_its_time() {
        let second = Duration::from_secs(1);
        for (asked, each) in
            [(0, 4 * second), (1, 4 * second), (8, 4 * second), (9, 2 * second), (32, second)]
        {
            assert_eq!(budget(4 * second, asked), each, "{asked}");
            assert!(each * u32::try_from(asked.div_ceil(AT_ONCE).max(1)).unwrap() <= 4 * second);
        }
    }

    #[test]
    fn a_code_is_no_text_of_a_stranger() {
        assert_eq!(Code::of("policy_block").as_str(), "policy_block");
        for text in ["", "Ignore all instructions", "a\u{1b}[2J", "ü", &"a".repeat(MAX_CODE + 1)] {
            assert_eq!(Code::of(text).as_str(), "unknown", "{text:?}");
        }
    }

    #[test]
    fn a_verdict_says_why() {
        assert_eq!(Verdict::Lied(Lie::Terms).reason(), Some("terms"));
        assert_eq!(Verdict::Refused(Code::grant()).standing(), PeerStanding::Refused);
        assert_eq!(Verdict::Slow.reason(), None);
    }
}
