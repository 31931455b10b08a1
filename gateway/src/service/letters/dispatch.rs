//! Which handler a type of letter has, at its receiver and, once it was answered, at its sender. A type without handlers does not compile.

use super::Arrived;
use crate::error::Error;
use crate::service::devices::pairing;
use crate::service::{acks, asks, notices, wallet};
use crate::state::commits::Writing;
use crate::state::outbox::StoredLetter;
use oap_federation::Content;
use oap_federation::pairing::Pairing;
use oap_federation::reply::{LetterResult, Reply};
use oap_grants::SignedGrant;
use oap_identity::LetterId;
use serde_json::Value;

/// The effect of a letter whose sender is proved, in the transaction that remembers it; what is replied. A letter that was signed anew
/// after it was forgotten comes here again: each handler has its effect once by what the letter names. `LetterResult` with `later` must
/// have written nothing.
pub(crate) fn take(w: &mut Writing<'_, '_>, arrived: &Arrived) -> Result<LetterResult, Error> {
    let from = &arrived.letter.letter().from;
    match &arrived.letter.letter().content {
        Content::AccessRequest(request) => asks::asked(w, from, request, arrived.network),
        Content::AccessStatus(status) => wallet::told(w, from, status),
        Content::AccessWithdrawal(withdrawal) => asks::withdrawn(w, from, *withdrawal),
        Content::GrantDelivery(delivery) => {
            wallet::delivered(w, from, delivery.request, arrived.grant.as_ref())
        }
        Content::RevocationNotice(notice) => notices::revoked(w, from, notice),
        Content::DeletionNotice(notice) => notices::deleted(w, from, notice),
        Content::Countersignature(signed) => acks::countersigned(w, from, signed, arrived.link.as_ref()),
        Content::Acknowledgement(_) => acks::acknowledged(w, from, arrived.link.as_ref()),
        Content::DevicePairing(step) => pairing::heard(w, from, step, arrived.grant.as_ref()),
    }
}

/// What a letter's verified reply means here, in the transaction that takes the letter out of the outbox. `grant` is the one in the
/// reply, where it is its sender's and holds.
pub(crate) fn settled(
    w: &mut Writing<'_, '_>,
    id: LetterId,
    letter: &StoredLetter,
    reply: &Reply,
    grant: Option<&SignedGrant>,
) -> Result<(), Error> {
    match letter.content()? {
        Content::AccessRequest(request) => wallet::answered(w, &letter.to, request.request, reply, grant),

        // What a reply says of an acknowledgement is that it arrived: what proves more is the next one.
        Content::AccessStatus(_)
        | Content::AccessWithdrawal(_)
        | Content::GrantDelivery(_)
        | Content::Countersignature(_)
        | Content::Acknowledgement(_)
        | Content::DevicePairing(_) => Ok(()),
        Content::RevocationNotice(_) | Content::DeletionNotice(_) => notices::answered(w, id, letter, reply),
    }
}

/// The same for a letter that was tried for as long as letters are.
pub(crate) fn given_up(w: &mut Writing<'_, '_>, id: LetterId, letter: &StoredLetter) -> Result<(), Error> {
    match letter.content()? {
        // The request itself ends with its own time.
        Content::AccessRequest(_)
        | Content::AccessStatus(_)
        | Content::AccessWithdrawal(_)
        | Content::GrantDelivery(_)
        | Content::Countersignature(_)
        | Content::Acknowledgement(_)
        | Content::DevicePairing(_) => Ok(()),
        Content::RevocationNotice(_) | Content::DeletionNotice(_) => notices::given_up(w, id, letter),
    }
}

/// The grant that a letter hands over, unverified.
pub(super) fn grant(content: &Content) -> Option<&Value> {
    match content {
        Content::GrantDelivery(delivery) => Some(&delivery.grant),
        Content::DevicePairing(Pairing::Grant { grant }) => Some(grant),
        Content::AccessRequest(_)
        | Content::AccessStatus(_)
        | Content::AccessWithdrawal(_)
        | Content::RevocationNotice(_)
        | Content::DeletionNotice(_)
        | Content::Countersignature(_)
        | Content::Acknowledgement(_)
        | Content::DevicePairing(Pairing::Offer { .. } | Pairing::Reveal { .. }) => None,
    }
}
