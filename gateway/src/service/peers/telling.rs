//! What the owner is told of a peer.

use crate::api::peers::{
    PeerChange, PeerInfo, PeerKey, PeerNotice, PeerPapers, PeerPending, PeerState, PeerTrouble,
};
use crate::error::Error;
use crate::state::peers::StoredPeer;
use oap_federation::change::{Change, Reason, Verdict, What};
use oap_federation::pin::Pin;

/// A peer as it is told.
pub(super) fn info(peer: &StoredPeer) -> Result<PeerInfo, Error> {
    let pending = peer.pending.as_ref().map(|pending| {
        Ok::<_, Error>(PeerPending {
            since: pending.since,
            seen: pending.pin.hash()?,
            changes: pending.changes.iter().map(change).collect(),
        })
    });
    let trouble = peer.trouble.as_ref().map(|trouble| PeerTrouble {
        since: trouble.since,
        disbelieved: trouble.disbelieved,
        why: trouble.why.clone(),
        times: trouble.times,
    });
    let notices =
        peer.notices.iter().map(|notice| PeerNotice { at: notice.at, change: change(&notice.change) });
    Ok(PeerInfo {
        state: state(peer),
        pinned: papers(&peer.pin),
        added_at: peer.added_at,
        checked_at: peer.checked_at,
        due_at: peer.due_at,
        pending: pending.transpose()?,
        trouble,
        notices: notices.collect(),
    })
}

/// How a peer stands: what waits for the owner first.
pub(super) fn state(peer: &StoredPeer) -> PeerState {
    match (&peer.pending, &peer.trouble) {
        (Some(_), _) => PeerState::Changed,
        (None, Some(trouble)) if trouble.disbelieved => PeerState::Disbelieved,
        (None, Some(_)) => PeerState::Unreachable,
        (None, None) => PeerState::Sound,
    }
}

/// What its owner can do about how a peer stands.
pub(super) const fn fix(state: PeerState) -> &'static str {
    match state {
        PeerState::Sound => "nothing is to be done",
        PeerState::Changed => {
            "`oap-memory peer show DID` says what changed: ask the peer's owner by another way, then `peer accept` or `peer remove`"
        }
        PeerState::Unreachable => {
            "who does not answer is asked again, later each time, and `peer check` asks at once; nothing waits for your yes"
        }
        PeerState::Disbelieved => {
            "`oap-memory peer show DID` says what does not hold: ask the peer's owner by another way; there is nothing to accept"
        }
    }
}

/// What is pinned.
pub(super) fn papers(pin: &Pin) -> PeerPapers {
    let keys = pin.keys.iter().map(|key| PeerKey {
        kid: key.key().kid().clone(),
        thumbprint: key.key().public().thumbprint(),
        retired_at: key.key().retired_at(),
        revoked_at: key.key().revoked_at(),
    });
    PeerPapers {
        did: pin.did.clone(),
        origin: pin.origin.to_string(),
        keys: keys.collect(),
        endpoints: pin.endpoints.clone(),
        claims: pin.claims.iter().cloned().collect(),
        published_at: pin.published_at,
    }
}

fn change(change: &Change) -> PeerChange {
    let key = |kid: &oap_identity::Kid| kid.fragment().to_owned();
    let (name, says) = match &change.what {
        What::Principal => ("principal", "it is another principal's".to_owned()),
        What::KeyAdded(kid) => ("key_added", format!("{} is a new key", key(kid))),
        What::KeyGone(kid) => ("key_gone", format!("{} was in force and is not there any more", key(kid))),
        What::KeyDropped(kid) => ("key_dropped", format!("{} was over and is not listed any more", key(kid))),
        What::KeyEnded(kid) => ("key_ended", format!("{} ended, or earlier than was known", key(kid))),
        What::KeyRevived(kid) => {
            ("key_revived", format!("{} had ended and counts again, or longer", key(kid)))
        }
        What::KeyReplaced(kid) => {
            ("key_replaced", format!("{} is another key under the same name", key(kid)))
        }
        What::Endpoint(name, was, is) => {
            let or_none = |url: &Option<String>| url.clone().unwrap_or_else(|| "none".to_owned());
            ("endpoint", format!("{name} was {}, is {}", or_none(was), or_none(is)))
        }
        What::ClaimLowered(level) => ("claim_lowered", format!("it does not claim {level} any more")),
        What::ClaimRaised(level) => ("claim_raised", format!("it claims {level}")),
        What::Older(was, is) => {
            ("older", format!("its manifest is of {is}, and was of {was}: an old one came back"))
        }
        What::Manifest(by) => {
            ("manifest", format!("its manifests say something else, signed by {}", key(by)))
        }
    };
    let because = match &change.verdict {
        Verdict::AsksTheOwner => None,
        Verdict::Accepted(Reason::HandedOver(by)) => Some(format!("{} signed for it", key(by))),
        Verdict::Accepted(Reason::SignedBy(by)) => Some(format!("signed by {}, which counts", key(by))),
        Verdict::Accepted(Reason::Narrower) => Some("it takes trust away".to_owned()),
    };
    PeerChange { change: name.to_owned(), says, asks: change.asks_the_owner(), because }
}
