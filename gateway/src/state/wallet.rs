//! What this owner asked others for, and the grants that others gave.

use crate::error::{Conflict, Error};
use crate::state::commits::Writing;
use crate::state::schema::{ASKED, WALLET, WALLET_ABOVE};
use crate::state::tips;
use oap_federation::ask::{AskState, WAITS};
use oap_federation::{Ask, plain::Plain};
use oap_grants::Grant;
use oap_grants::SignedGrant;
use oap_grants::grant::UnverifiedGrant;
use oap_identity::json;
use oap_identity::{AskId, Did, Hash, LetterId, Timestamp};
use oap_store::Rows;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// Most requests that are kept of what this owner asked; beyond it the oldest that are over go.
pub const MAX_ASKED: usize = 1_000;
/// Most grants of others that are kept.
pub const MAX_WALLET: usize = 1_000;

/// How often a granter is asked where its grants stand.
pub const CHECKED_EVERY: Duration = Duration::from_secs(3600);
/// Most granters that one pass over the wallet asks.
pub const MAX_CHECKED: usize = 64;
/// Most status lists of one granter that a pass reads: all of its grants are in one, as a rule.
pub const MAX_LISTS: usize = 4;

/// A request of this owner's, as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredAsked {
    pub(crate) to: Did,
    /// What is asked, in canonical form.
    pub(crate) ask: String,
    pub(crate) made_at: Timestamp,
    pub(crate) state: AskState,
    /// Since when it is over.
    pub(crate) over_at: Option<Timestamp>,
    /// What the granter said with a no.
    pub(crate) word: Option<Plain>,
    /// The grant that answers it.
    pub(crate) grant: Option<Hash>,
    /// The last letter that told of it.
    pub(crate) letter: LetterId,
    /// When the granter's gateway last said where it stands.
    pub(crate) heard_at: Option<Timestamp>,
}

impl StoredAsked {
    /// What is asked.
    pub(crate) fn ask(&self) -> Result<Ask, Error> {
        Ok(json::parse_as(self.ask.as_bytes())?)
    }

    /// Where it stands at a time: what nobody answered in time is over here, too.
    pub(crate) fn stands(&self, now: Timestamp) -> Result<AskState, Error> {
        let until = self.ask()?.expires_at.min(self.made_at.plus(WAITS));
        let is_late = self.state == AskState::Pending && until <= now;
        Ok(if is_late { AskState::Expired } else { self.state })
    }
}

/// What was read under a grant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reading {
    /// Answers that held.
    pub(crate) answers: u64,
    /// Items in them, each time that they came.
    pub(crate) items: u64,
    /// When the last one came.
    pub(crate) last_at: Option<Timestamp>,
}

/// A grant of somebody else's to this owner, as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredReceived {
    /// The signed document.
    pub(crate) grant: String,
    pub(crate) granter: Did,
    pub(crate) received_at: Timestamp,
    /// The request that it answers.
    pub(crate) request: Option<AskId>,
    /// Since when it is void, as its granter said.
    pub(crate) revoked_at: Option<Timestamp>,
    /// When its state was last looked up.
    pub(crate) checked_at: Option<Timestamp>,
    pub(crate) reading: Reading,
}

impl StoredReceived {
    /// The signed document, and what it says.
    pub(crate) fn document(&self) -> Result<(Value, Grant), Error> {
        let document = json::parse(self.grant.as_bytes())?;
        let grant = UnverifiedGrant::parse(document.clone())?.unverified().clone();
        Ok((document, grant))
    }
}

/// Puts a grant whose signature was checked into the wallet; one that is there stays as it is.
///
/// # Errors
/// [`Conflict::WalletFull`].
pub(crate) fn put(w: &mut Writing<'_, '_>, grant: &SignedGrant, request: Option<AskId>) -> Result<(), Error> {
    let hash = grant.hash();
    if WALLET.contains(w.tx, &hash)? {
        return Ok(());
    }
    // Those of earlier transactions of the batch are counted twice at most, which errs on the safe side.
    let there = WALLET.keys(&w.gateway.store, oap_store::Range::all()).count() + WALLET.written(w.tx).len();
    if there >= MAX_WALLET {
        return Err(Error::Conflict(Conflict::WalletFull));
    }
    let granter = grant.grant().granter.principal.clone();
    let received = StoredReceived {
        grant: json::canonical_text(grant.document())?,
        granter: granter.clone(),
        received_at: w.now,
        request,
        revoked_at: None,
        checked_at: None,
        reading: Reading::default(),
    };
    WALLET.put(w.tx, &hash, &received)?;
    tips::hold(w, &granter)?;
    let gateway = w.gateway.clone();
    w.tx.on_commit(move || gateway.heard.note_known(&granter));
    Ok(())
}

/// Keeps the grants that one of the wallet was made from, first one first.
///
/// # Errors
/// [`Error::Json`], [`Error::Store`].
pub(crate) fn put_above(w: &mut Writing<'_, '_>, hash: Hash, above: &[Value]) -> Result<(), Error> {
    if above.is_empty() {
        return Ok(());
    }
    let texts = above.iter().map(json::canonical_text).collect::<Result<Vec<String>, _>>()?;
    Ok(WALLET_ABOVE.put(w.tx, &hash, &texts)?)
}

/// The grants that one of the wallet was made from, first one first; none where its granter gave it.
///
/// # Errors
/// [`Error::Store`], [`Error::Json`].
pub(crate) fn above(rows: &impl Rows, hash: &Hash) -> Result<Vec<Value>, Error> {
    let texts = WALLET_ABOVE.get(rows, hash)?.unwrap_or_default();
    texts.iter().map(|text| Ok(json::parse(text.as_bytes())?)).collect()
}

/// Marks a grant in the wallet as void, where this is its granter; whether it is there.
pub(crate) fn revoke(
    w: &mut Writing<'_, '_>,
    hash: Hash,
    granter: &Did,
    at: Timestamp,
) -> Result<bool, Error> {
    let Some(mut received) = WALLET.get(w.tx, &hash)?.filter(|received| received.granter == *granter) else {
        return Ok(false);
    };
    if received.revoked_at.is_none() {
        received.revoked_at = Some(at);
        WALLET.put(w.tx, &hash, &received)?;
    }
    Ok(true)
}

/// Makes room for one more request of this owner's: where there are as many as are kept, the oldest that is over goes.
///
/// # Errors
/// [`Conflict::ManyAsked`] where all of them wait.
pub(crate) fn make_room(w: &mut Writing<'_, '_>) -> Result<(), Error> {
    // Those of earlier transactions of the batch are counted twice at most, which errs on the safe side.
    let there = ASKED.keys(&w.gateway.store, oap_store::Range::all()).count() + ASKED.written(w.tx).len();
    if there < MAX_ASKED {
        return Ok(());
    }
    let gateway = w.gateway.clone();
    for id in ASKED.keys(&gateway.store, oap_store::Range::all()) {
        let id = id?;
        let Some(asked) = ASKED.get(w.tx, &id)? else { continue };
        if asked.stands(w.now)?.is_over() {
            ASKED.delete(w.tx, &id);
            return Ok(());
        }
    }
    Err(Error::Conflict(Conflict::ManyAsked))
}

/// Ends a request of this owner's.
pub(crate) fn end_asked(
    w: &mut Writing<'_, '_>,
    id: AskId,
    mut asked: StoredAsked,
    state: AskState,
) -> Result<(), Error> {
    (asked.state, asked.over_at) = (state, Some(w.now));
    Ok(ASKED.put(w.tx, &id, &asked)?)
}
