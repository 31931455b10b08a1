//! The owner's other devices (docs/federation-devices.md): added with a yes on both sides ([`pairing`]), told what changed here
//! ([`telling`]), asked what changed there ([`pulling`]), and what they say taken over ([`taking`]), as far as it is kept in
//! step ([`in_step`]); what was given to them is renewed by itself ([`renewing`]).

mod in_step;
pub(crate) mod pairing;
mod pulling;
mod renewing;
mod taking;
mod telling;

pub use pulling::{INTERVAL, MAX_PAGES, PAGE_TIME};
pub(crate) use taking::at_home;
pub use telling::MAX_LOOKED;

use crate::api::devices::{DeviceInfo, DeviceList, DeviceTrouble};
use crate::error::Error;
use crate::service::Devices;
use crate::state::devices::{DeviceState, StoredDevice, is_one};
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use crate::state::schema::DEVICES;
use oap_identity::{Did, Timestamp};

impl Devices<'_> {
    /// The devices, by DID.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub fn list(self, _: &Owner<impl Permits<Admin>>) -> Result<DeviceList, Error> {
        let mut devices = Vec::new();
        for row in DEVICES.scan(&self.0.store) {
            let (did, device) = row?;
            devices.push(self.info(did, &device)?);
        }
        devices.sort_by(|one, other| one.did.cmp(&other.did));
        Ok(DeviceList { devices })
    }

    /// A device.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn show(self, _: &Owner<impl Permits<Admin>>, did: &Did) -> Result<DeviceInfo, Error> {
        self.info(did.clone(), &DEVICES.get(&self.0.store, did)?.ok_or(Error::NotFound)?)
    }

    fn info(self, did: Did, device: &StoredDevice) -> Result<DeviceInfo, Error> {
        let trouble = device.trouble.as_ref().map(|trouble| DeviceTrouble {
            since: trouble.since,
            last_at: trouble.last_at,
            times: trouble.times,
            why: trouble.why.clone(),
        });
        let is_compared = device.confirmed_at.is_none() && device.is_pairing(self.0.clock.now());
        let mut state = device.state(self.0.clock.now());
        if state == DeviceState::Active && !is_one(&self.0.store, &did)? {
            // Its grant alone was revoked.
            state = DeviceState::Removed;
        }
        Ok(DeviceInfo {
            state,
            added_at: device.added_at,
            code: device.code(&self.0.principal, &did).filter(|_| is_compared),
            confirmed_at: device.confirmed_at,
            grant: device.given.map(|(id, _)| id),
            until: self.until(device)?,
            synced_at: device.synced_at,
            taken: device.counts.taken,
            left: device.counts.left,
            full: device.full,
            trouble,
            removed_at: device.removed_at,
            did,
        })
    }

    /// When the first of the two grants ends.
    fn until(self, device: &StoredDevice) -> Result<Option<Timestamp>, Error> {
        let Some((_, received, _)) = device.grant()? else { return Ok(None) };
        let given = device.given.and_then(|(_, hash)| self.0.grant_book.entry(hash));
        let given = given.map(|entry| entry.record.grant.grant().expires_at);
        Ok(given.into_iter().chain([received.expires_at]).min())
    }
}
