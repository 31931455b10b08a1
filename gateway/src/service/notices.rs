//! What granters tell of grants that ended and items that are gone (docs/federation-notices.md): told here to the gateways of grantees, and
//! taken in from those of granters.
//!
//! A notice is told in the transaction of what it tells. That there is no room for it holds nothing up: a grant is revoked and an item
//! erased whether anybody hears of it or not.

use crate::error::Error;
use crate::service::devices::pairing;
use crate::state::commits::{Writing, chain_of};
use crate::state::confirmed;
use crate::state::deletion_notices::{StoredDeletionNotice, ToldState};
use crate::state::devices;
use crate::state::grant_book::GrantEntry;
use crate::state::outbox::{self, StoredLetter};
use crate::state::schema::{DISCLOSED, LINKS, WALLET};
use crate::state::wallet;
use oap_federation::Outcome;
use oap_federation::content::Content;
use oap_federation::notice::{DeletionNotice, MAX_NAMED, RevocationNotice};
use oap_federation::reply::{LetterResult, Reason, Reply};
use oap_identity::{DeletionId, Did, Hash, ItemId, LetterId, json};
use oap_memory::deletion::{Cascade, DeletionReceipt, DeletionScope, Method};
use oap_memory::receipt::Action;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Items by the grantees who were shown them.
pub(crate) type ShownTo = BTreeMap<Did, BTreeSet<ItemId>>;

/// Whether somebody may have a gateway: a DID that is its own key has no document that could name one.
pub(crate) fn may_have_a_gateway(did: &Did) -> bool {
    !matches!(did.method(), "key" | "jwk")
}

/// Who was shown which of some items, by what was disclosed under their grants, revoked and ended ones with them. What was shown under a
/// grant that was passed on was shown under the one above it, too: who passed it on is told with the others.
///
/// # Errors
/// [`Error::Store`].
pub(crate) fn shown_to(w: &Writing<'_, '_>, items: &[ItemId]) -> Result<ShownTo, Error> {
    let gone: BTreeSet<ItemId> = items.iter().copied().collect();
    // What an answer of the same batch disclosed is in memory once it is durable.
    let lately = DISCLOSED.written(w.tx);
    let mut shown = ShownTo::new();
    for entry in w.gateway.grant_book.all() {
        let grantee = &entry.record.grant.grant().grantee;
        // A device of the owner's follows by itself.
        if *grantee == w.gateway.principal || devices::is_one(w.tx, grantee)? {
            continue;
        }
        let mut theirs: BTreeSet<ItemId> = if entry.disclosed() < gone.len() {
            entry.items().filter(|item| gone.contains(item)).collect()
        } else {
            gone.iter().copied().filter(|item| entry.has_disclosed(*item)).collect()
        };
        let of_batch = lately.iter().filter(|(key, item)| *key == entry.key && gone.contains(item));
        theirs.extend(of_batch.map(|(_, item)| *item));
        if !theirs.is_empty() {
            shown.entry(grantee.clone()).or_default().extend(theirs);
        }
    }
    Ok(shown)
}

/// Tells of a deletion to everybody who was shown something of it, and notes who cannot be told; who is told.
///
/// # Errors
/// [`Error::Store`].
pub(crate) fn tell_deleted(
    w: &mut Writing<'_, '_>,
    deletion: DeletionId,
    shown: ShownTo,
) -> Result<BTreeSet<Did>, Error> {
    let (mut told, mut number) = (BTreeSet::new(), 0);
    for (to, items) in shown {
        let items: Vec<ItemId> = items.into_iter().collect();
        for items in items.chunks(MAX_NAMED) {
            let (state, letter) = if !may_have_a_gateway(&to) {
                (ToldState::Unprovable, None)
            } else if outbox::has_room(w, &to)? {
                let notice = DeletionNotice { deletion, items: items.to_vec(), deleted_at: w.now };
                let letter = outbox::put(w, &to, &Content::DeletionNotice(notice))?;
                told.insert(to.clone());
                (ToldState::Waiting, Some(letter))
            } else {
                tracing::warn!(%deletion, "a grantee is not told of a deletion: so many letters wait");
                (ToldState::Unreachable, None)
            };
            let (to, items) = (to.clone(), items.to_vec());
            w.put_deletion_notice(
                deletion,
                number,
                &StoredDeletionNotice { to, items, state, since: w.now, letter, receipt: None },
            )?;
            number += 1;
        }
    }
    Ok(told)
}

/// Tells of revoked grants to their grantees. The status list says it, too, to whoever looks.
///
/// # Errors
/// [`Error::Store`].
pub(crate) fn tell_revoked<'a>(
    w: &mut Writing<'_, '_>,
    revoked: impl IntoIterator<Item = &'a GrantEntry>,
) -> Result<(), Error> {
    let mut grants: BTreeMap<&Did, Vec<Hash>> = BTreeMap::new();
    for entry in revoked {
        let (grantee, hash) = (&entry.record.grant.grant().grantee, entry.record.grant.hash());
        if may_have_a_gateway(grantee) && *grantee != w.gateway.principal {
            grants.entry(grantee).or_default().push(hash);
        }
    }
    for (to, grants) in grants {
        for grants in grants.chunks(MAX_NAMED) {
            if !outbox::has_room(w, to)? {
                tracing::warn!("a grantee is not told of a revocation: so many letters wait");
                break;
            }
            let notice = RevocationNotice { grants: grants.to_vec(), revoked_at: w.now };
            outbox::put(w, to, &Content::RevocationNotice(notice))?;
        }
    }
    Ok(())
}

/// Grants of the sender's were revoked: those in the wallet are marked.
pub(crate) fn revoked(
    w: &mut Writing<'_, '_>,
    from: &Did,
    notice: &RevocationNotice,
) -> Result<LetterResult, Error> {
    let mut known = pairing::revoked(w, from, &notice.grants)?;
    for grant in &notice.grants {
        known |= wallet::revoke(w, *grant, from, notice.revoked_at.min(w.now))?;
    }
    Ok(if known { LetterResult::taken() } else { LetterResult::refused(Reason::Unknown) })
}

/// Items that the sender showed were deleted. A gateway keeps nothing of what it is shown, and its signed Deletion Receipt says so: none of
/// the items is here. Where one is in the owner's own memory, for it was imported, no letter erases it: then there is no receipt. Nor is there
/// one where it was there once: the links of its chain stay, so that what is answered says nothing of whether it is there still.
///
/// A notice that comes again long after its letter was forgotten, for its reply was lost, is answered with the receipt of the first time.
pub(crate) fn deleted(
    w: &mut Writing<'_, '_>,
    from: &Did,
    notice: &DeletionNotice,
) -> Result<LetterResult, Error> {
    if let Some(receipt) = confirmed::find(w, from, notice)? {
        return Ok(LetterResult { deletion_receipt: Some(receipt), ..LetterResult::taken() });
    }
    if !has_granted(w, from)? {
        return Ok(LetterResult::refused(Reason::Unknown));
    }
    for item in &notice.items {
        if LINKS.contains(w.tx, &(*item, 0))? {
            tracing::warn!(%item, "a granter deleted what is or was in the owner's own memory: no letter erases it");
            return Ok(LetterResult::refused(Reason::NotSupported));
        }
    }
    let receipt = nothing_here(w, notice)?;
    confirmed::keep(w, from, notice, &receipt)?;
    let gateway = w.gateway.clone();
    let mut draft = gateway.draft(Action::Delete, gateway.principal.as_str());
    draft.rules = vec!["peer.notice".to_owned()];
    draft.more.insert("deletion_receipt".to_owned(), receipt["receipt_id"].clone());
    draft.more.insert("granter_deletion".to_owned(), json!(notice.deletion));
    draft.output_hash = Some(Hash::of_canonical(&receipt)?);
    w.receipt(&chain_of(&gateway.config.default_scope), draft)?;
    Ok(LetterResult { deletion_receipt: Some(receipt), ..LetterResult::taken() })
}

/// Whether a grant of somebody's is in the wallet: nobody else has anything to tell here.
fn has_granted(w: &Writing<'_, '_>, granter: &Did) -> Result<bool, Error> {
    for hash in WALLET.written(w.tx) {
        if WALLET.get(w.tx, &hash)?.is_some_and(|received| received.granter == *granter) {
            return Ok(true);
        }
    }
    for row in WALLET.scan(&w.gateway.store) {
        let (hash, received) = row?;
        if received.granter == *granter && WALLET.contains(w.tx, &hash)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A Deletion Receipt that says that nothing of a notice is here.
fn nothing_here(w: &Writing<'_, '_>, notice: &DeletionNotice) -> Result<Value, Error> {
    let gateway = w.gateway;
    let not_found: BTreeSet<ItemId> = notice.items.iter().copied().collect();
    let receipt = DeletionReceipt {
        receipt_id: DeletionId::new(w.now, &*gateway.random),
        tool_did: gateway.principal.clone(),
        principal_did: gateway.principal.clone(),
        scope_id: None,
        request_received_at: w.now,
        completed_at: w.now,
        method: Method::CryptographicErasure,
        scope: DeletionScope {
            data_classes: vec!["memory_item".to_owned()],
            provenance_tags: Vec::new(),
            subprocessors_propagated_to: Vec::new(),
            items: Vec::new(),
            cascade: Cascade { not_found: not_found.into_iter().collect(), ..Cascade::default() },
        },
        exceptions: Vec::new(),
    };
    Ok(receipt.sign(w.keys.current())?)
}

/// A notice of this gateway's was answered. The signature of a Deletion Receipt in the reply was checked when the reply was.
pub(crate) fn answered(
    w: &mut Writing<'_, '_>,
    id: LetterId,
    letter: &StoredLetter,
    reply: &Reply,
) -> Result<(), Error> {
    let Content::DeletionNotice(notice) = letter.content()? else { return Ok(()) };
    let confirms = |receipt: &&Value| {
        let mut unsigned = (*receipt).clone();
        let had = unsigned.as_object_mut().and_then(|members| members.remove("signature"));
        let read = json::from_value::<DeletionReceipt>(unsigned);
        had.is_some() && read.is_ok_and(|read| notice.is_confirmed_by(&read, &letter.to))
    };
    let receipt = reply.deletion_receipt.as_ref().filter(|_| reply.outcome == Outcome::Taken);
    let receipt = receipt.filter(confirms);
    let state = if receipt.is_some() { ToldState::Confirmed } else { ToldState::Refused };
    w.settle_deletion_notice(id, state, receipt)
}

/// A notice of this gateway's was never answered.
pub(crate) fn given_up(w: &mut Writing<'_, '_>, id: LetterId, letter: &StoredLetter) -> Result<(), Error> {
    tracing::warn!(%id, kind = letter.kind.as_str(), "a notice was not answered for as long as it was tried");
    // What the grantee publishes names no place for letters: there is no gateway to answer.
    let none = letter.failure == Some(outbox::Failure::NoPlace);
    let state = if none { ToldState::Unprovable } else { ToldState::Unreachable };
    w.settle_deletion_notice(id, state, None)
}
