//! The bounds of this room, as rows that `docs/limits.md` is generated from.

use crate::{ack, ask, changes, due, letter, notice, pin, plain, push, reply, retry, step, verdict};
pub use oap_identity::limits::Limit;

const fn row(name: &'static str, value: u64, unit: &'static str, applies_to: &'static str) -> Limit {
    Limit { name, value, unit, applies_to }
}

/// Each row has the constant that is enforced.
pub const LIMITS: &[Limit] = &[
    row("letter::MAX_LETTER", letter::MAX_LETTER as u64, "bytes", "a letter; beyond it 413"),
    row(
        "letter::MAX_LIFE",
        letter::MAX_LIFE.as_secs(),
        "seconds",
        "a letter, from issued_at to expires_at; beyond it 400",
    ),
    row(
        "reply::MAX_REPLY",
        reply::MAX_REPLY as u64,
        "bytes",
        "a reply to a letter; a longer one is not believed",
    ),
    row(
        "plain::MAX_PLAIN",
        plain::MAX_PLAIN as u64,
        "characters",
        "a stranger's purpose or word; beyond it 400",
    ),
    row(
        "ack::MAX_LINKS",
        ack::MAX_LINKS as u64,
        "signatures",
        "acknowledgements of one answer, the countersignature included",
    ),
    row(
        "ack::AUTOMATIC",
        ack::AUTOMATIC as u64,
        "signatures",
        "those of them that gateways make by themselves, where their owners let them",
    ),
    row("ask::MAX_PROFILE", ask::MAX_PROFILE as u64, "bytes", "the profile that a request for access names"),
    row("ask::WAITS", ask::WAITS.as_secs(), "seconds", "for which a request for access waits for its answer"),
    row("notice::MAX_NAMED", notice::MAX_NAMED as u64, "names", "grants or items of one notice"),
    row(
        "push::MIN_WINDOW",
        push::MIN_WINDOW.as_secs(),
        "seconds",
        "between two pushes of a subscription, at least; less is 400",
    ),
    row(
        "push::MAX_WINDOW",
        push::MAX_WINDOW.as_secs(),
        "seconds",
        "between two pushes of a subscription, at most; more is 400",
    ),
    row(
        "push::MAX_CHANGES",
        push::MAX_CHANGES as u64,
        "items",
        "of one push, and as many that left the view; the others are in the next ones",
    ),
    row(
        "push::MAX_ITEMS_BYTES",
        push::MAX_ITEMS_BYTES as u64,
        "bytes",
        "the items of one push; one item is always pushed",
    ),
    row("push::MAX_PUSH", push::MAX_PUSH as u64, "bytes", "a push; beyond it 413"),
    row(
        "push::MAX_REPLY",
        push::MAX_REPLY as u64,
        "bytes",
        "a reply to a push; a longer one is not believed",
    ),
    row("push::MAX_URL", push::MAX_URL as u64, "bytes", "the address that pushes go to; beyond it 400"),
    row(
        "retry::FIRST",
        retry::FIRST.as_secs(),
        "seconds",
        "the wait after the first attempt to send a letter",
    ),
    row("retry::LONGEST", retry::LONGEST.as_secs(), "seconds", "the longest wait between two attempts"),
    row(
        "pin::MAX_MANIFEST",
        pin::MAX_MANIFEST as u64,
        "bytes",
        "a peer's memory manifest, and its list of handovers",
    ),
    row("pin::MAX_TOOL", pin::MAX_TOOL as u64, "bytes", "a peer's tool manifest"),
    row(
        "pin::MAX_KEYS",
        pin::MAX_KEYS as u64,
        "keys",
        "a peer's DID document; one with more is not believed",
    ),
    row("pin::MAX_ENDPOINTS", pin::MAX_ENDPOINTS as u64, "endpoints", "each manifest of a peer"),
    row(
        "pin::MAX_ENDPOINT",
        pin::MAX_ENDPOINT as u64,
        "bytes",
        "the name, and the address, of a peer's endpoint",
    ),
    row("pin::MAX_CLAIMS", pin::MAX_CLAIMS as u64, "levels", "conformance that a peer claims"),
    row("pin::MAX_CLAIM", pin::MAX_CLAIM as u64, "bytes", "the name of such a level"),
    row("pin::SKEW", pin::SKEW.as_secs(), "seconds", "by which a peer's manifest may be from later than now"),
    row("due::SHORTEST", due::SHORTEST.as_secs(), "seconds", "between two looks at a peer, at least"),
    row("due::LONGEST", due::LONGEST.as_secs(), "seconds", "between two looks at a peer, at most"),
    row("step::MAX_SEEN", step::MAX_SEEN as u64, "devices", "whose last words of an item are remembered"),
    row("changes::MAX_TOLD", changes::MAX_TOLD as u64, "items", "of which one answer tells a device"),
    row("changes::MAX_CURSOR", changes::MAX_CURSOR as u64, "bytes", "the cursor of a device; beyond it 400"),
    row("retry::TRIED_FOR", retry::TRIED_FOR.as_secs(), "seconds", "for which a letter is tried"),
    row(
        "verdict::AT_ONCE",
        verdict::AT_ONCE as u64,
        "gateways",
        "those that one recall asks at once; the others have their turn after",
    ),
    row(
        "verdict::MAX_ASKED",
        verdict::MAX_ASKED as u64,
        "grants",
        "under which one recall asks; how many more there are is said",
    ),
    row(
        "verdict::USUAL_DEADLINE",
        verdict::USUAL_DEADLINE.as_secs(),
        "seconds",
        "for which a recall waits for all other gateways together, where nobody says otherwise",
    ),
    row(
        "verdict::MAX_DEADLINE",
        verdict::MAX_DEADLINE.as_secs(),
        "seconds",
        "the longest such wait; beyond it 400",
    ),
    row(
        "verdict::MAX_CODE",
        verdict::MAX_CODE as u64,
        "bytes",
        "the code of another gateway's refusal; a longer one is unknown",
    ),
];
