//! Subscriptions (protocol section 17): what a grantee subscribes with, what is pushed to it, and what it replies.
//!
//! A push is an answer to a listing of the view, with what became of items since the last push that was acknowledged. Its members are
//! bound by the receipt of the answer: `input_hash` is of [`Asked`].

use crate::letter::VERSION;
use oap_exchange::Query;
use oap_identity::json::{self, JsonError};
use oap_identity::{Hash, ItemId, RequestId, SubscriptionId};
use oap_memory::closed_enum;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;
use url::Url;

/// Shortest time between two pushes.
pub const MIN_WINDOW: Duration = Duration::from_secs(10);
/// Longest time between two pushes.
pub const MAX_WINDOW: Duration = Duration::from_secs(86_400);
/// Most items of one push, and most that left the view; the others are in the next ones.
pub const MAX_CHANGES: u16 = 50;
/// Most bytes of the items of one push; one item is always pushed.
pub const MAX_ITEMS_BYTES: usize = 1 << 20;
/// Largest push, in bytes: one item of any size, and what stands around it.
pub const MAX_PUSH: usize = 4 << 20;
/// Largest reply to a push, in bytes.
pub const MAX_REPLY: usize = 4 << 10;
/// Longest address that pushes go to, in bytes.
pub const MAX_URL: usize = 512;
/// The `tag` of the signature of a push.
pub const TAG: &str = "oap-memory-push";
/// The `tag` of the signature of the reply to one.
pub const REPLY_TAG: &str = "oap-memory-push-reply";
/// The `type` of a push.
const TYPE: &str = "push";

/// Where pushes go to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PushTo {
    /// An address of the grantee's own gateway.
    pub url: String,
}

/// What a grantee subscribes with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewSubscription {
    /// Its name, chosen by the grantee. The same again is the same subscription.
    pub subscription: SubscriptionId,
    /// Seconds between two pushes, from [`MIN_WINDOW`] to [`MAX_WINDOW`].
    pub window: u32,
    /// Where pushes go to; without it the grantee reads them as events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push: Option<PushTo>,
}

/// Why a subscription is refused as it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubscriptionError {
    /// Out of its bounds.
    #[error("window: from {} to {} seconds", MIN_WINDOW.as_secs(), MAX_WINDOW.as_secs())]
    Window,
    /// No address, or too long.
    #[error("push.url: an address of at most {MAX_URL} bytes, without user, password or fragment")]
    Url,
    /// Not of the grantee's own gateway.
    #[error(
        "push.url: must be at the origin of the gateway that the grantee's own DID document names (OAPMemoryExchange)"
    )]
    Stranger,
}

impl NewSubscription {
    /// Checks its bounds, and the form of its address.
    ///
    /// # Errors
    /// [`SubscriptionError`].
    pub fn check(&self) -> Result<(), SubscriptionError> {
        let window = Duration::from_secs(u64::from(self.window));
        if !(MIN_WINDOW..=MAX_WINDOW).contains(&window) {
            return Err(SubscriptionError::Window);
        }
        self.push.as_ref().map_or(Ok(()), |push| push.parse().map(|_| ()))
    }
}

impl PushTo {
    fn parse(&self) -> Result<Url, SubscriptionError> {
        let url: Url = Some(&self.url)
            .filter(|url| url.len() <= MAX_URL)
            .and_then(|url| url.parse().ok())
            .ok_or(SubscriptionError::Url)?;
        let plain = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
        // What is signed is the address as it is sent: it has one spelling.
        if plain && url.as_str() == self.url { Ok(url) } else { Err(SubscriptionError::Url) }
    }

    /// What a request to it covers as its target, where it is at that origin.
    ///
    /// # Errors
    /// [`SubscriptionError::Url`], [`SubscriptionError::Stranger`].
    pub fn target(&self, origin: &str) -> Result<String, SubscriptionError> {
        let url = self.parse()?;
        if url.origin().ascii_serialization() != origin {
            return Err(SubscriptionError::Stranger);
        }
        Ok(match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        })
    }
}

/// What became of items of the view since the last push that was acknowledged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Changes {
    /// Those that are new to the grantee; each is in the answer.
    pub came: BTreeSet<ItemId>,
    /// Those of which it has a former version; each is in the answer.
    pub changed: BTreeSet<ItemId>,
    /// Those that are not in the view any more, for whatever reason.
    pub left: BTreeSet<ItemId>,
}

impl Changes {
    /// Whether nothing became of anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.came.is_empty() && self.changed.is_empty() && self.left.is_empty()
    }
}

/// What the receipt's `input_hash` of a push is of: the listing, and what stands beside it.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "as in `Push`")]
pub struct Asked<'a> {
    pub subscription: SubscriptionId,
    pub sequence: u64,
    pub after: u64,
    pub changes: &'a Changes,
    pub more: bool,
    #[serde(flatten)]
    pub query: &'a Query,
}

/// The listing that a push answers.
#[must_use]
pub fn listing(request_id: RequestId) -> Query {
    Query { max_results: Some(MAX_CHANGES), request_id: Some(request_id), ..Query::default() }
}

impl Asked<'_> {
    /// What the receipt says.
    ///
    /// # Errors
    /// Never in practice: it has a canonical form.
    pub fn hash(&self) -> Result<Hash, JsonError> {
        Hash::of_canonical(self)
    }
}

/// A push.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Push {
    /// The version of the envelope.
    pub oap: String,
    /// `push`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Of which subscription.
    pub subscription: SubscriptionId,
    /// Its number, from 1; each attempt has a higher one than all before it.
    pub sequence: u64,
    /// The number of the last one that is known to have come; 0 where none is.
    pub after: u64,
    /// What became of items.
    pub changes: Changes,
    /// Whether there is more, which is in the next one.
    pub more: bool,
    /// The signed answer, with the items that came or changed.
    pub answer: Value,
}

/// Why a push is not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// Not JSON that the wire allows, or not of the shape.
    #[error("the push: {0}")]
    Json(#[from] JsonError),
    /// Another version or type.
    #[error("the push is no push of version {VERSION}")]
    Version,
    /// Of another subscription than its address.
    #[error("subscription: must be that of the address")]
    Other,
    /// What it says became of items is not what its answer has.
    #[error("changes: must name each item of the answer once, and nothing else twice")]
    Changes,
}

impl Push {
    /// The bytes of a push whose answer is written already, in canonical form.
    ///
    /// # Errors
    /// [`JsonError`].
    pub fn write(asked: &Asked<'_>, answer: &[u8]) -> Result<Vec<u8>, JsonError> {
        let answer = std::str::from_utf8(answer).map_err(|e| JsonError::Invalid(e.to_string()))?;
        let changes = json::canonical_text(asked.changes)?;
        let (after, more, sequence, subscription) =
            (asked.after, asked.more, asked.sequence, asked.subscription);
        Ok(format!(
            r#"{{"after":{after},"answer":{answer},"changes":{changes},"more":{more},"oap":"{VERSION}","sequence":{sequence},"subscription":"{subscription}","type":"{TYPE}"}}"#
        )
        .into_bytes())
    }

    /// Reads a push. Whether its answer holds is another question.
    ///
    /// # Errors
    /// [`PushError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, PushError> {
        let push: Self = json::parse_as(bytes)?;
        if push.oap != VERSION || push.kind != TYPE {
            return Err(PushError::Version);
        }
        let items = push.answer["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        let shown: BTreeSet<Option<ItemId>> =
            items.iter().map(|item| item["item_id"].as_str().and_then(|id| id.parse().ok())).collect();
        let Changes { came, changed, left } = &push.changes;
        let named: BTreeSet<Option<ItemId>> = came.iter().chain(changed).copied().map(Some).collect();
        let bounded = [came.len() + changed.len(), left.len()].iter().all(|n| *n <= usize::from(MAX_CHANGES));
        let once = named.len() == came.len() + changed.len() && items.len() == named.len();
        let apart = left.iter().all(|item| !named.contains(&Some(*item)));
        if bounded && once && apart && shown == named { Ok(push) } else { Err(PushError::Changes) }
    }
}

closed_enum! {
    /// What became of a push.
    Taken {
        /// It had its effect.
        Yes = "taken",
        /// Its number is not higher than that of the last one that was taken, which the reply has.
        Behind = "behind",
        /// Nobody here wants any more of them: the subscription is over.
        Over = "over",
    }
}

/// The reply to a push. Its signature covers it, and the request that it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct PushReply {
    pub subscription: SubscriptionId,
    pub sequence: u64,
    pub outcome: Taken,
}

/// The first tick of a subscription after a time: its ticks are its beginning and every `window` from there on. Nothing but the
/// subscription's own row decides when it is.
#[must_use]
pub fn tick_after(
    begun: oap_identity::Timestamp,
    window: Duration,
    time: oap_identity::Timestamp,
) -> oap_identity::Timestamp {
    let window = i64::try_from(window.as_millis()).unwrap_or(i64::MAX).max(1);
    // Before its beginning, too: that may be of a clock that stood ahead.
    let since = time.millis().saturating_sub(begun.millis());
    let ticks = since.div_euclid(window) + 1;
    oap_identity::Timestamp::from_millis(begun.millis().saturating_add(ticks.saturating_mul(window)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use oap_identity::Timestamp;
    use serde_json::json;

    fn id(n: u8) -> SubscriptionId {
        SubscriptionId::from_bytes([n; 16])
    }

    fn item(n: u8) -> ItemId {
        ItemId::from_bytes([n; 16])
    }

    #[test]
    fn ticks_depend_on_the_subscription_alone() {
        let at = Timestamp::from_millis;
        let (begun, window) = (at(1_000), Duration::from_secs(60));
        for (time, tick) in
            [(1_000, 61_000), (60_999, 61_000), (61_000, 121_000), (0, 1_000), (500_000, 541_000)]
        {
            assert_eq!(tick_after(begun, window, at(time)), at(tick), "{time}");
        }
    }

    #[test]
    fn where_pushes_go() {
        let to = |url: &str| PushTo { url: url.to_owned() };
        let origin = "https://a.example:8443";
        assert_eq!(to("https://a.example:8443/p?x=1").target(origin), Ok("/p?x=1".to_owned()));
        for url in [
            "https://b.example:8443/p",
            "https://a.example/p",
            "http://a.example:8443/p",
            "https://a.example:8443.b.example/p",
        ] {
            let target = to(url).target(origin);
            assert!(matches!(target, Err(SubscriptionError::Stranger | SubscriptionError::Url)), "{url}");
        }
        for url in [
            "https://a.example:8443@b.example/p",
            "https://u:p@a.example:8443/p",
            "https://a.example:8443/p#x",
            "https://A.example:8443/p",
            "https://a.example:8443/../p",
            "p",
            "",
        ] {
            assert_eq!(to(url).target(origin), Err(SubscriptionError::Url), "{url}");
        }
        let long = format!("{origin}/{}", "x".repeat(MAX_URL));
        assert_eq!(to(&long).target(origin), Err(SubscriptionError::Url));
        for (window, fits) in [(9, false), (10, true), (86_400, true), (86_401, false)] {
            let new = NewSubscription { subscription: id(1), window, push: None };
            assert_eq!(new.check().is_ok(), fits, "{window}");
        }
    }

    /// A push names what its answer has, once each; and what is written is read.
    #[test]
    fn what_is_pushed_is_what_is_named() {
        let answer = json!({"items": [{"item_id": item(1)}, {"item_id": item(2)}]});
        let push = |changes: Value| {
            let mut push = json!({
                "oap": "1.0", "type": "push", "subscription": id(1), "sequence": 3, "after": 1, "more": false, "answer": answer,
            });
            push["changes"] = changes;
            Push::parse(push.to_string().as_bytes())
        };
        let changes = |came: &[u8], changed: &[u8], left: &[u8]| {
            let ids = |of: &[u8]| of.iter().map(|n| item(*n)).collect::<Vec<_>>();
            json!({"came": ids(came), "changed": ids(changed), "left": ids(left)})
        };
        let read = push(changes(&[1], &[2], &[3])).unwrap();
        let asked = Asked {
            subscription: read.subscription,
            sequence: read.sequence,
            after: read.after,
            changes: &read.changes,
            more: read.more,
            query: &Query::default(),
        };
        let written = Push::write(&asked, &json::canonical(&answer).unwrap()).unwrap();
        assert_eq!(written, json::canonical(&read).unwrap());
        assert_eq!(Push::parse(&written), Ok(read));
        for other in [
            changes(&[1], &[], &[]),
            changes(&[1, 2], &[2], &[]),
            changes(&[1, 2], &[], &[2]),
            changes(&[1, 2, 3], &[], &[]),
            changes(&[1, 3], &[], &[]),
        ] {
            assert_eq!(push(other), Err(PushError::Changes));
        }
        assert!(matches!(push(json!({})), Err(PushError::Json(_))));
        assert!(matches!(Push::parse(b"[]"), Err(PushError::Json(_))));
    }
}
