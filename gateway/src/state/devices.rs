//! The owner's other devices: gateways that are kept in step with this one.

pub use crate::api::devices::DeviceState;

use crate::error::{Conflict, Error};
use crate::state::commits::{Writing, chain_of};
use crate::state::grant_book::GrantKey;
use crate::state::schema::{DEVICES, RENEWED, REVOKED};
use oap_federation::pairing::{Code, commitment};
use oap_grants::Grant;
use oap_grants::grant::UnverifiedGrant;
use oap_identity::{Did, GrantId, Hash, LetterId, Timestamp, json};
use oap_memory::receipt::Action;
use oap_store::{Range, Rows};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::Duration;

/// Most devices, those that are being added with them.
pub const MAX_DEVICES: usize = 16;
/// How long the owner has to say yes on both sides.
pub const PAIRS_FOR: Duration = Duration::from_secs(3600);

/// What went wrong last, and how often since something went right.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Trouble {
    pub(crate) since: Timestamp,
    pub(crate) last_at: Timestamp,
    pub(crate) times: u32,
    /// One word for it, or a sentence.
    pub(crate) why: String,
}

/// What was taken over from a device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counts {
    /// Changes that had an effect here.
    pub(crate) taken: u64,
    /// Changes that were left.
    pub(crate) left: u64,
}

/// A device, as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredDevice {
    pub(crate) added_at: Timestamp,
    /// The own value of the pairing.
    pub(crate) value: Hash,
    /// What binds the other side to its value.
    pub(crate) bound: Option<Hash>,
    /// The other side's value.
    pub(crate) theirs: Option<Hash>,
    /// When the owner said yes here.
    pub(crate) confirmed_at: Option<Timestamp>,
    /// The grant that was given to it last: its id, and the hash of its document.
    pub(crate) given: Option<(GrantId, Hash)>,
    /// The grant that it gave, in canonical form, and the hash of it.
    pub(crate) received: Option<(String, Hash)>,
    /// Where the next list of its changes begins.
    pub(crate) cursor: Option<String>,
    /// When it was last asked, and everything was taken over that it had to tell.
    pub(crate) synced_at: Option<Timestamp>,
    pub(crate) counts: Counts,
    /// Whether its grant is used up, so that it leaves new items out.
    pub(crate) full: bool,
    pub(crate) trouble: Option<Trouble>,
    /// Since when it is none any more.
    pub(crate) removed_at: Option<Timestamp>,
}

impl StoredDevice {
    /// One that the owner wants.
    pub(crate) fn new(added_at: Timestamp, value: Hash) -> Self {
        Self {
            added_at,
            value,
            bound: None,
            theirs: None,
            confirmed_at: None,
            given: None,
            received: None,
            cursor: None,
            synced_at: None,
            counts: Counts::default(),
            full: false,
            trouble: None,
            removed_at: None,
        }
    }

    /// How it stands.
    pub(crate) fn state(&self, now: Timestamp) -> DeviceState {
        if self.removed_at.is_some() {
            return DeviceState::Removed;
        }
        let is_over = self.added_at.plus(PAIRS_FOR) <= now;
        match (self.confirmed_at, &self.received, self.theirs) {
            (Some(_), Some(_), _) => DeviceState::Active,
            (Some(_), None, _) => DeviceState::Waits,
            (None, ..) if is_over => DeviceState::Over,
            (None, _, Some(_)) => DeviceState::Compare,
            (None, _, None) => DeviceState::Asked,
        }
    }

    /// Whether the two sides are still becoming devices of each other: letters of the other's have an effect.
    pub(crate) fn is_pairing(&self, now: Timestamp) -> bool {
        matches!(self.state(now), DeviceState::Asked | DeviceState::Compare | DeviceState::Waits)
    }

    /// What binds this side to its value.
    pub(crate) fn commitment(&self, here: &Did, there: &Did) -> Hash {
        commitment(here, there, &self.value)
    }

    /// The code that both sides show, once both values are known.
    pub(crate) fn code(&self, here: &Did, there: &Did) -> Option<Code> {
        self.theirs.as_ref().map(|theirs| Code::of((here, &self.value), (there, theirs)))
    }

    /// The grant that it gave, where it is a device.
    pub(crate) fn grant(&self) -> Result<Option<(Value, Grant, Hash)>, Error> {
        let Some((document, hash)) = self.received.as_ref().filter(|_| self.is_active()) else {
            return Ok(None);
        };
        let document = json::parse(document.as_bytes())?;
        let grant = UnverifiedGrant::parse(document.clone())?.unverified().clone();
        Ok(Some((document, grant, *hash)))
    }

    /// Whether the owner said yes on both sides, and took it back on neither.
    pub(crate) const fn is_active(&self) -> bool {
        self.removed_at.is_none() && self.confirmed_at.is_some() && self.received.is_some()
    }
}

/// How what was given to a device was renewed last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredRenewal {
    /// What was given before: id, hash of the document, and end of each grant, oldest first. Those that ended go with the next renewal.
    pub(crate) former: Vec<(GrantId, Hash, Timestamp)>,
    /// The letter that hands over what was given last.
    pub(crate) letter: LetterId,
}

/// The grants that were given to a device: the last, and those that it renewed.
///
/// # Errors
/// [`Error::Store`].
pub(crate) fn all_given(
    rows: &impl Rows,
    did: &Did,
    device: &StoredDevice,
) -> Result<Vec<(GrantId, Hash)>, Error> {
    let former = RENEWED.get(rows, did)?.map(|renewal| renewal.former).unwrap_or_default();
    let former = former.into_iter().map(|(id, hash, _)| (id, hash));
    Ok(device.given.into_iter().chain(former).collect())
}

/// A device, and the id and hash of each grant that was given to it.
type Standing = (StoredDevice, Vec<(GrantId, Hash)>);

/// A device that was given something of which nothing is revoked, and that was not removed; with what it was given. In a backup from before
/// its removal it stands as one; the grants do not, for a restore revokes them again.
fn standing(rows: &impl Rows, did: &Did) -> Result<Option<Standing>, Error> {
    let device = DEVICES.get(rows, did)?.filter(|device| device.removed_at.is_none());
    let Some(device) = device else { return Ok(None) };
    let given = all_given(rows, did, &device)?;
    for (id, _) in &given {
        if REVOKED.get(rows, &GrantKey::named(*id))?.is_some() {
            return Ok(None);
        }
    }
    Ok((!given.is_empty()).then_some((device, given)))
}

/// Whether a grant is one that was given to a device that is one still.
///
/// # Errors
/// [`Error::Store`].
pub(crate) fn has_given(rows: &impl Rows, device: &Did, grant: Hash) -> Result<bool, Error> {
    Ok(standing(rows, device)?.is_some_and(|(_, given)| given.iter().any(|(_, hash)| *hash == grant)))
}

/// A device that is one: the owner said yes on both sides, and nothing of what was given to it is revoked.
///
/// # Errors
/// [`Error::Store`].
pub(crate) fn active(rows: &impl Rows, did: &Did) -> Result<Option<StoredDevice>, Error> {
    Ok(standing(rows, did)?.map(|(device, _)| device).filter(StoredDevice::is_active))
}

/// Whether somebody is a device of the owner's.
///
/// # Errors
/// [`Error::Store`].
pub(crate) fn is_one(rows: &impl Rows, did: &Did) -> Result<bool, Error> {
    Ok(active(rows, did)?.is_some())
}

impl Writing<'_, '_> {
    /// A device that is one in this transaction.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub(crate) fn device(&self, did: &Did) -> Result<StoredDevice, Error> {
        active(self.tx, did)?.ok_or(Error::NotFound)
    }

    /// That one device more has room.
    ///
    /// # Errors
    /// [`Conflict::ManyDevices`].
    pub(crate) fn room_for_device(&self) -> Result<(), Error> {
        let mut there = 0;
        for did in self.all_devices()? {
            there +=
                usize::from(DEVICES.get(self.tx, &did)?.is_some_and(|device| device.removed_at.is_none()));
        }
        if there < MAX_DEVICES { Ok(()) } else { Err(Error::Conflict(Conflict::ManyDevices)) }
    }

    fn all_devices(&self) -> Result<Vec<Did>, Error> {
        let mut dids: Vec<Did> = DEVICES.keys(&self.gateway.store, Range::all()).collect::<Result<_, _>>()?;
        dids.extend(DEVICES.written(self.tx));
        dids.sort_unstable();
        dids.dedup();
        Ok(dids)
    }

    /// Ends a device, with its receipt. What it gave is forgotten; that what was given to it is revoked is its caller's. One whose pairing
    /// never came to a yes leaves nothing.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub(crate) fn end_device(
        &mut self,
        did: &Did,
        mut device: StoredDevice,
        rules: &[&str],
    ) -> Result<(), Error> {
        RENEWED.delete(self.tx, did);
        if device.confirmed_at.is_none() {
            DEVICES.delete(self.tx, did);
            return Ok(());
        }
        let gateway = self.gateway.clone();
        let mut draft = gateway.draft(Action::RemoveDevice, gateway.principal.as_str());
        draft.rules = rules.iter().map(|rule| (*rule).to_owned()).collect();
        draft.more.insert("device".to_owned(), json!(did));
        self.receipt(&chain_of(&gateway.config.default_scope), draft)?;
        device.removed_at = Some(self.now);
        if let Some((_, hash)) = device.received.take() {
            self.tx.on_commit(move || gateway.remotes.forget(&hash));
        }
        (device.cursor, device.trouble) = (None, None);
        Ok(DEVICES.put(self.tx, did, &device)?)
    }

    /// Ends every device, in the transaction of a lockdown.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub(crate) fn end_devices(&mut self) -> Result<(), Error> {
        for did in self.all_devices()? {
            if let Some(device) = DEVICES.get(self.tx, &did)?.filter(|device| device.removed_at.is_none()) {
                self.end_device(&did, device, &["principal", "lockdown"])?;
            }
        }
        Ok(())
    }
}
