//! What a device was given is renewed by itself, well before it ends: the owner said yes to the device, and not to some months of it. Each
//! side renews what it gave. The grant of before counts until its own end, so that whoever has not taken the new one yet goes on.

use crate::error::Error;
use crate::service::{Devices, Grants};
use crate::state::commits::{Writing, until_it_holds};
use crate::state::devices::{StoredDevice, StoredRenewal};
use crate::state::grant_book::GrantEntry;
use crate::state::outbox::{self, LetterState};
use crate::state::schema::{DEVICES, LETTERS, RENEWED};
use oap_federation::Content;
use oap_federation::pairing::Pairing;
use oap_identity::{Did, Timestamp};
use oap_store::Rows;
use std::time::Duration;

/// A grant is renewed once this part of its life is left: one of so many.
const PARTS: i64 = 3;
/// How long after a letter that came to nothing the grant is handed over by another.
const AGAIN: Duration = Duration::from_secs(86_400);

/// What is to be done of what a device was given.
enum Due {
    /// It ends soon.
    Renewal(GrantEntry),
    /// It was renewed, and the device did not take it.
    Letter(GrantEntry),
}

impl Devices<'_> {
    /// Renews what devices were given and ends soon, and hands over again what was not taken. What fails for one device is in the log, and
    /// tried again with the next turn.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub(super) async fn renew_due(self) -> Result<(), Error> {
        let mut waiting = Vec::new();
        for row in DEVICES.scan(&self.0.store) {
            let (did, device) = row?;
            if device.is_active() && self.due(&self.0.store, &did, &device, self.0.clock.now())?.is_some() {
                waiting.push(did);
            }
        }
        for did in waiting {
            match until_it_holds(|| self.renew(&did)).await {
                // Removed, or locked down, meanwhile.
                Ok(()) | Err(Error::NotFound | Error::LockedDown) => {}
                Err(error) => {
                    tracing::error!(%error, device = %did, "what a device was given could not be renewed");
                }
            }
        }
        Ok(())
    }

    /// What is to be done of what a device was given.
    fn due(
        self,
        rows: &impl Rows,
        did: &Did,
        device: &StoredDevice,
        now: Timestamp,
    ) -> Result<Option<Due>, Error> {
        // One that is not durable yet is in no book: it is new.
        let given = device.given.and_then(|(_, hash)| self.0.grant_book.entry(hash));
        let Some(given) = given else { return Ok(None) };
        let grant = given.record.grant.grant();
        if is_ending((grant.issued_at, grant.expires_at), self.longest(), now) {
            return Ok(Some(Due::Renewal(given)));
        }
        let Some(renewal) = RENEWED.get(rows, did)? else { return Ok(None) };
        let Some(letter) = LETTERS.get(rows, &renewal.letter)? else { return Ok(None) };
        let was_not_taken = matches!(letter.state, LetterState::GivenUp | LetterState::Refused);
        let is_again = letter.over_at.is_some_and(|over| over > now || over.plus(AGAIN) <= now);
        Ok((was_not_taken && is_again).then_some(Due::Letter(given)))
    }

    /// One transaction: whether it is due, and of a device that is one, is read again in it.
    async fn renew(self, did: &Did) -> Result<(), Error> {
        let (obligations, grant) = Grants(self.0).grant_of(self.draft(did.clone()))?;
        let did = did.clone();
        let renewed = move |w: &mut Writing<'_, '_>| {
            let mut device = w.device(&did)?;
            let due = Devices(w.gateway).due(w.tx, &did, &device, w.now)?;
            let mut former = RENEWED.get(w.tx, &did)?.map(|renewal| renewal.former).unwrap_or_default();
            let document = match due {
                None => return Ok(()),
                Some(Due::Letter(given)) => given.record.grant.document().clone(),
                Some(Due::Renewal(given)) => {
                    let before = &given.record.grant;
                    former.retain(|(_, _, end)| *end > w.now);
                    former.push((before.grant().grant_id, before.hash(), before.grant().expires_at));
                    let signed = w.issue(obligations, grant)?;
                    device.given = Some((signed.grant().grant_id, signed.hash()));
                    DEVICES.put(w.tx, &did, &device)?;
                    signed.document().clone()
                }
            };
            let content = Content::DevicePairing(Pairing::Grant { grant: document });
            let letter = outbox::put(w, &did, &content)?;
            Ok(RENEWED.put(w.tx, &did, &StoredRenewal { former, letter })?)
        };
        self.0.commit(renewed).await
    }

    /// How long what is given to devices is in force.
    pub(super) fn longest(self) -> Duration {
        Duration::from_secs(u64::from(self.0.config.max_grant_days) * 86_400)
    }
}

/// Whether what was issued at one time and ends at another ends soon, and what lasts as long as may be by now ends later.
fn is_ending((issued, ends): (Timestamp, Timestamp), longest: Duration, now: Timestamp) -> bool {
    let (life, left) =
        (ends.millis().saturating_sub(issued.millis()), ends.millis().saturating_sub(now.millis()));
    left <= life / PARTS && now.plus(longest) > ends
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    #[test]
    fn a_third_is_left_when_it_is_renewed() {
        let issued = Timestamp::from_seconds(1_777_636_800);
        let grant = (issued, issued.plus(180 * DAY));
        let at = |days: u32| issued.plus(days * DAY);
        assert!(!is_ending(grant, 180 * DAY, at(119)));
        for days in [120, 179, 180, 1000] {
            assert!(is_ending(grant, 180 * DAY, at(days)), "{days}");
        }
        // Less may be given by now: nothing is renewed by what ends before it.
        assert!(!is_ending(grant, 7 * DAY, at(173)));
        assert!(is_ending(grant, 7 * DAY, at(174)));
    }
}
