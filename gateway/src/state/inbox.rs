//! What others ask this owner for: tasks that wait for a yes or a no. A task gives nobody anything.

use crate::error::Error;
use crate::state::commits::Writing;
use crate::state::schema::{ASKS, ASKS_NAMED, ASKS_OPEN};
use oap_federation::ask::{AskState, WAITS};
use oap_federation::{Ask, plain::Plain};
use oap_identity::json;
use oap_identity::{AskId, Did, GrantId, Hash, Timestamp};
use oap_store::Rows;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::time::Duration;

/// Most tasks that the owner did not answer, of all together.
pub const MAX_OPEN: usize = 256;
/// Most of them that are of strangers.
pub const MAX_OPEN_OF_STRANGERS: usize = 192;
/// Most of them of one DID.
pub const MAX_OPEN_PER_DID: usize = 8;
/// Most of them from one network.
pub const MAX_OPEN_PER_NETWORK: usize = 32;
/// Most names under which one task was asked for.
pub const MAX_NAMES: usize = 8;
/// How long a task that is over is kept.
pub const KEPT: Duration = Duration::from_secs(90 * 86_400);
/// How long a task that nobody answered keeps its place once it is over.
const KEPT_UNANSWERED: Duration = Duration::from_secs(86_400);

/// A task as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredAsk {
    pub(crate) from: Did,
    /// The names that whoever asks gave it; the first one first.
    pub(crate) names: Vec<AskId>,
    /// What is asked, in canonical form.
    pub(crate) ask: String,
    pub(crate) asked_at: Timestamp,
    pub(crate) state: AskState,
    /// Since when it is over.
    pub(crate) over_at: Option<Timestamp>,
    /// What the owner said with a no.
    pub(crate) word: Option<Plain>,
    /// The grant that was signed for it, by its id and its hash.
    pub(crate) grant: Option<(GrantId, Hash)>,
}

impl StoredAsk {
    /// What is asked.
    pub(crate) fn ask(&self) -> Result<Ask, Error> {
        Ok(json::parse_as(self.ask.as_bytes())?)
    }

    /// Until when it waits: no longer than what it asks for would last.
    pub(crate) fn until(&self) -> Result<Timestamp, Error> {
        Ok(self.ask()?.expires_at.min(self.asked_at.plus(WAITS)))
    }

    /// Where it stands at a time.
    pub(crate) fn stands(&self, now: Timestamp) -> Result<AskState, Error> {
        let is_late = self.state == AskState::Pending && self.until()? <= now;
        Ok(if is_late { AskState::Expired } else { self.state })
    }
}

/// A task that has a place among those that the owner did not answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Open {
    task: AskId,
    /// Whose, by the hash of the DID.
    from: Hash,
    /// What it asks, by its hash.
    asks: Hash,
    network: [u8; 16],
    stranger: bool,
    until: Timestamp,
    withdrawn: bool,
}

impl Open {
    fn is_over(&self, now: Timestamp) -> bool {
        self.withdrawn || self.until <= now
    }
}

/// Where a task is put, or why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placed {
    /// The owner is asked this by the same already.
    Same(AskId),
    /// It is there now.
    New(AskId),
    /// There is no room.
    Full,
}

fn octets(network: IpAddr) -> [u8; 16] {
    match network {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

/// What a task is found by: who asks, and the name that they gave it.
pub(crate) fn named(from: &Did, name: AskId) -> Hash {
    let mut bytes = name.to_bytes().to_vec();
    bytes.extend_from_slice(from.as_str().as_bytes());
    Hash::of(&bytes)
}

/// A task by the name that whoever asks gave it.
pub(crate) fn find(rows: &impl Rows, from: &Did, name: AskId) -> Result<Option<(AskId, StoredAsk)>, Error> {
    let Some(id) = ASKS_NAMED.get(rows, &named(from, name))? else { return Ok(None) };
    Ok(ASKS.get(rows, &id)?.map(|task| (id, task)))
}

/// Puts what somebody asks before the owner: once, and within the bounds.
pub(crate) fn put(
    w: &mut Writing<'_, '_>,
    from: &Did,
    name: AskId,
    ask: &Ask,
    network: IpAddr,
) -> Result<Placed, Error> {
    let text = json::canonical_text(ask)?;
    let (whose, asks, network) =
        (Hash::of(from.as_str().as_bytes()), Hash::of(text.as_bytes()), octets(network));
    let mut open = ASKS_OPEN.get(w.tx)?.unwrap_or_default();
    let is_same = |open: &&Open| open.from == whose && open.asks == asks && !open.is_over(w.now);
    if let Some(task) = open.iter().find(is_same).map(|open| open.task)
        && let Some(mut stored) = ASKS.get(w.tx, &task)?
    {
        if stored.names.len() >= MAX_NAMES {
            return Ok(Placed::Full);
        }
        stored.names.push(name);
        ASKS.put(w.tx, &task, &stored)?;
        ASKS_NAMED.put(w.tx, &named(from, name), &task)?;
        return Ok(Placed::Same(task));
    }
    let stranger = !w.gateway.heard.knows(from);
    let bounds: [Bound<'_>; 4] = [
        (MAX_OPEN_PER_DID, &|open| open.from == whose),
        (MAX_OPEN_PER_NETWORK, &|open| open.network == network),
        (MAX_OPEN_OF_STRANGERS, &|open| stranger && open.stranger),
        (MAX_OPEN, &|_| true),
    ];
    let Some(gone) = make_room(&mut open, &bounds, w.now) else { return Ok(Placed::Full) };
    for task in gone {
        remove(w, task)?;
    }
    let task = AskId::new(w.now, &*w.gateway.random);
    let stored = StoredAsk {
        from: from.clone(),
        names: vec![name],
        ask: text,
        asked_at: w.now,
        state: AskState::Pending,
        over_at: None,
        word: None,
        grant: None,
    };
    let until = stored.until()?;
    open.push(Open { task, from: whose, asks, network, stranger, until, withdrawn: false });
    ASKS_OPEN.put(w.tx, &open)?;
    ASKS_NAMED.put(w.tx, &named(from, name), &task)?;
    ASKS.put(w.tx, &task, &stored)?;
    Ok(Placed::New(task))
}

/// So many open tasks at most, of those that count.
type Bound<'a> = (usize, &'a dyn Fn(&Open) -> bool);

/// Makes room for one more under each bound, which says what counts under it: of that, the oldest that are over go. Which tasks go; `None`
/// where there is no room, and then none does. Nobody's task goes for a bound that it does not count under.
fn make_room(open: &mut Vec<Open>, bounds: &[Bound<'_>], now: Timestamp) -> Option<Vec<AskId>> {
    let (mut left, mut gone) = (open.clone(), Vec::new());
    for (most, counts) in bounds {
        while left.iter().filter(|open| counts(open)).count() >= *most {
            let at = left.iter().position(|open| counts(open) && open.is_over(now))?;
            gone.push(left.remove(at).task);
        }
    }
    *open = left;
    Some(gone)
}

fn remove(w: &mut Writing<'_, '_>, task: AskId) -> Result<(), Error> {
    if let Some(stored) = ASKS.get(w.tx, &task)? {
        for name in &stored.names {
            ASKS_NAMED.delete(w.tx, &named(&stored.from, *name));
        }
    }
    ASKS.delete(w.tx, &task);
    Ok(())
}

/// Takes one of several names from a task: whoever asks took that request back, and not the others.
pub(crate) fn drop_name(
    w: &mut Writing<'_, '_>,
    task: AskId,
    mut stored: StoredAsk,
    name: AskId,
) -> Result<(), Error> {
    stored.names.retain(|known| *known != name);
    ASKS_NAMED.delete(w.tx, &named(&stored.from, name));
    Ok(ASKS.put(w.tx, &task, &stored)?)
}

/// Ends a task that waits. The owner's answer gives its place free; what was withdrawn keeps it for a while, so that who asks and
/// withdraws again and again comes no further than who asks.
pub(crate) fn end(
    w: &mut Writing<'_, '_>,
    task: AskId,
    mut stored: StoredAsk,
    state: AskState,
) -> Result<(), Error> {
    let mut open = ASKS_OPEN.get(w.tx)?.unwrap_or_default();
    if state == AskState::Withdrawn {
        open.iter_mut().filter(|open| open.task == task).for_each(|open| open.withdrawn = true);
    } else {
        open.retain(|open| open.task != task);
    }
    ASKS_OPEN.put(w.tx, &open)?;
    (stored.state, stored.over_at) = (state, Some(w.now));
    Ok(ASKS.put(w.tx, &task, &stored)?)
}

/// Forgets what was over long enough; how many that were.
pub(crate) fn sweep(w: &mut Writing<'_, '_>, tasks: &[AskId]) -> Result<usize, Error> {
    let mut open = ASKS_OPEN.get(w.tx)?.unwrap_or_default();
    let (mut swept, before) = (0, open.len());
    for task in tasks {
        let Some(stored) = ASKS.get(w.tx, task)? else { continue };
        let unanswered = matches!(stored.stands(w.now)?, AskState::Expired | AskState::Withdrawn);
        let since = match stored.over_at {
            Some(at) => at,
            None => stored.until()?,
        };
        if since.plus(if unanswered { KEPT_UNANSWERED } else { KEPT }) <= w.now {
            open.retain(|open| open.task != *task);
            remove(w, *task)?;
            swept += 1;
        }
    }
    if open.len() != before {
        ASKS_OPEN.put(w.tx, &open)?;
    }
    Ok(swept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(task: u8, from: u8, until: i64) -> Open {
        Open {
            task: AskId::from_bytes([task; 16]),
            from: Hash::of(&[from]),
            asks: Hash::of(&[task]),
            network: [from; 16],
            stranger: true,
            until: Timestamp::from_seconds(until),
            withdrawn: false,
        }
    }

    /// Who comes to a bound of their own costs nobody else a task that is over: its state is asked for yet.
    #[test]
    fn room_is_made_where_it_is_missing() {
        let now = Timestamp::from_seconds(100);
        let id = |n: u8| AskId::from_bytes([n; 16]);
        let mine = Hash::of(&[1]);
        let own = move |open: &Open| open.from == mine;
        let bounds: [Bound<'_>; 2] = [(2, &own), (4, &|_| true)];
        // Another's is over, and both of their own wait.
        let before = vec![open(1, 2, 50), open(2, 1, 200), open(3, 1, 200)];
        let mut there = before.clone();
        assert_eq!(make_room(&mut there, &bounds, now), None);
        assert_eq!(there, before);
        // One of their own is over: it goes, though another's is older.
        there[2].withdrawn = true;
        assert_eq!(make_room(&mut there, &bounds, now), Some(vec![id(3)]));
        assert_eq!(there, before[..2]);
        // There is room for one more of them.
        assert_eq!(make_room(&mut there, &bounds, now), Some(Vec::new()));
        // All are too many: the oldest that is over goes, and where another bound holds nothing does.
        let full = vec![open(1, 2, 50), open(4, 3, 200), open(5, 4, 50), open(6, 5, 200)];
        let mut there = full.clone();
        assert_eq!(make_room(&mut there, &bounds, now), Some(vec![id(1)]));
        let mut there = [full, vec![open(2, 1, 200), open(3, 1, 200)]].concat();
        let before = there.clone();
        assert_eq!(make_room(&mut there, &bounds, now), None);
        assert_eq!(there, before);
    }
}
