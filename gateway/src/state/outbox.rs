//! Letters to other gateways that wait to be sent: put in the transaction of what they tell, and kept until they had their effect or
//! their time is over. What sends them is `service/letters/sending.rs`.

pub use crate::api::access::{Failure, LetterState};

use crate::error::{Conflict, Error};
use crate::state::commits::Writing;
use crate::state::heard::makes_known;
use crate::state::schema::{self, AgentKey, LETTERS, LETTERS_DUE, LETTERS_WAITING};
use oap_federation::letter::{LetterError, MAX_LETTER};
use oap_federation::retry::TRIED_FOR;
use oap_federation::{Content, LetterKind, retry};
use oap_identity::json;
use oap_identity::{Did, LetterId, Timestamp};
use oap_store::{Range, Store};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tokio::sync::Notify;

/// Most letters that wait, to all gateways together.
pub const MAX_WAITING: u32 = 10_000;
/// Most letters that wait to one gateway.
pub const MAX_WAITING_PER_PEER: u32 = 1_000;
/// Bytes of a letter that are not its body, at most.
const ENVELOPE: usize = 4 << 10;
/// The account of all gateways together; no DID has it, for it is no hash.
const ALL: AgentKey = [0; 16];

/// A letter as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredLetter {
    pub(crate) to: Did,
    pub(crate) kind: LetterKind,
    /// What it says, in canonical form; empty once it is over.
    pub(crate) body: String,
    pub(crate) made_at: Timestamp,
    pub(crate) attempts: u32,
    /// When it is sent next.
    pub(crate) next_at: Timestamp,
    pub(crate) state: LetterState,
    /// Why the last attempt came to nothing.
    pub(crate) failure: Option<Failure>,
    /// Since when it is over.
    pub(crate) over_at: Option<Timestamp>,
}

impl StoredLetter {
    /// What it says.
    pub(crate) fn content(&self) -> Result<Content, Error> {
        Ok(Content::read(self.kind, json::parse(self.body.as_bytes())?).map_err(LetterError::from)?)
    }

    /// Until when it is tried.
    pub(crate) fn until(&self) -> Timestamp {
        self.made_at.plus(TRIED_FOR)
    }
}

/// Wakes whoever sends letters.
#[derive(Debug, Default)]
pub struct Outbox {
    wake: Notify,
}

impl Outbox {
    /// Comes back when there may be a letter to be sent.
    pub async fn woken(&self) {
        self.wake.notified().await;
    }
}

/// Puts a letter into the outbox, in the transaction of what it tells.
///
/// # Errors
/// [`Error::Letter`] for what no letter may say; [`Conflict::OutboxFull`].
pub(crate) fn put(w: &mut Writing<'_, '_>, to: &Did, content: &Content) -> Result<LetterId, Error> {
    content.check().map_err(LetterError::from)?;
    let body = json::canonical_text(&content.body().map_err(LetterError::from)?)?;
    if body.len() + ENVELOPE > MAX_LETTER {
        return Err(LetterError::TooLong.into());
    }
    count(w, to, true)?;
    let id = LetterId::new(w.now, &*w.gateway.random);
    let letter = StoredLetter {
        to: to.clone(),
        kind: content.kind(),
        body,
        made_at: w.now,
        attempts: 0,
        next_at: w.now,
        state: LetterState::Waiting,
        failure: None,
        over_at: None,
    };
    LETTERS_DUE.put(w.tx, &due(&letter, id), &())?;
    LETTERS.put(w.tx, &id, &letter)?;
    let (gateway, to, known) = (w.gateway.clone(), to.clone(), makes_known(letter.kind));
    w.tx.on_commit(move || {
        if known {
            gateway.heard.note_known(&to);
        }
        gateway.outbox.wake.notify_one();
    });
    Ok(id)
}

/// A letter as it stands in a transaction, where it still waits.
pub(crate) fn waiting(w: &Writing<'_, '_>, id: LetterId) -> Result<Option<StoredLetter>, Error> {
    Ok(LETTERS.get(w.tx, &id)?.filter(|letter| letter.state == LetterState::Waiting))
}

/// Takes a letter that waits out of the outbox: it is over.
pub(crate) fn end(
    w: &mut Writing<'_, '_>,
    id: LetterId,
    mut letter: StoredLetter,
    state: LetterState,
) -> Result<(), Error> {
    LETTERS_DUE.delete(w.tx, &due(&letter, id));
    count(w, &letter.to.clone(), false)?;
    (letter.state, letter.over_at) = (state, Some(w.now));
    letter.body = String::new();
    Ok(LETTERS.put(w.tx, &id, &letter)?)
}

/// Notes that an attempt came to nothing: it is sent again later, or its time is over; whether that is so.
pub(crate) fn put_off(
    w: &mut Writing<'_, '_>,
    id: LetterId,
    mut letter: StoredLetter,
    failure: Failure,
) -> Result<bool, Error> {
    let before = due(&letter, id);
    letter.attempts = letter.attempts.saturating_add(1);
    letter.failure = Some(failure);
    if letter.until() <= w.now {
        end(w, id, letter, LetterState::GivenUp)?;
        return Ok(true);
    }
    LETTERS_DUE.delete(w.tx, &before);
    letter.next_at = w.now.plus(retry::wait(letter.attempts, &*w.gateway.random));
    LETTERS_DUE.put(w.tx, &due(&letter, id), &())?;
    LETTERS.put(w.tx, &id, &letter)?;
    Ok(false)
}

/// The letters that are due at a time, the longest due first, so many at most; so many of them to one gateway, which may take its time with
/// each.
pub(crate) fn all_due(
    store: &Store,
    now: Timestamp,
    most: usize,
    each: usize,
) -> Result<Vec<(LetterId, StoredLetter)>, Error> {
    let (mut found, mut counts) = (Vec::new(), BTreeMap::<Did, usize>::new());
    let (due, longest) = (millis(now), millis(now.plus(retry::LONGEST)));
    let in_time = LETTERS_DUE.keys(store, Range::all());
    let in_time = in_time.take_while(|key| !matches!(key, Ok((at, _)) if *at > due));
    // No letter waits longer than that, but for those that a clock put off that stood ahead.
    let first = (longest.saturating_add(1), LetterId::from_bytes([0; 16]));
    for key in in_time.chain(LETTERS_DUE.keys(store, Range::all().from(&first))) {
        if found.len() == most {
            break;
        }
        let (_, id) = key?;
        let Some(letter) = LETTERS.get(store, &id)? else { continue };
        let count = counts.entry(letter.to.clone()).or_default();
        if *count < each {
            *count += 1;
            found.push((id, letter));
        }
    }
    Ok(found)
}

fn millis(at: Timestamp) -> u64 {
    u64::try_from(at.millis()).unwrap_or_default()
}

fn due(letter: &StoredLetter, id: LetterId) -> (u64, LetterId) {
    (millis(letter.next_at), id)
}

/// Counts one more letter that waits, or one less: to its receiver, and in all.
fn count(w: &mut Writing<'_, '_>, to: &Did, more: bool) -> Result<(), Error> {
    for (account, most) in [(ALL, MAX_WAITING), (schema::agent(to.as_str()), MAX_WAITING_PER_PEER)] {
        let waiting = LETTERS_WAITING.get(w.tx, &account)?.unwrap_or_default();
        if more && waiting >= most {
            return Err(Error::Conflict(Conflict::OutboxFull));
        }
        match if more { waiting.saturating_add(1) } else { waiting.saturating_sub(1) } {
            0 => LETTERS_WAITING.delete(w.tx, &account),
            waiting => LETTERS_WAITING.put(w.tx, &account, &waiting)?,
        }
    }
    Ok(())
}

/// Whether one more letter to somebody has room.
///
/// # Errors
/// [`Error::Store`].
pub(crate) fn has_room(w: &Writing<'_, '_>, to: &Did) -> Result<bool, Error> {
    let waiting = |account| Ok::<_, Error>(LETTERS_WAITING.get(w.tx, &account)?.unwrap_or_default());
    Ok(waiting(ALL)? < MAX_WAITING && waiting(schema::agent(to.as_str()))? < MAX_WAITING_PER_PEER)
}
