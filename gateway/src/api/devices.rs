//! The owner's other devices: gateways that are kept in step with this one.

use super::{Done, endpoints};
use oap_federation::pairing::Code;
use oap_identity::{Did, GrantId, Timestamp};
use oap_memory::closed_enum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

endpoints! {
    /// The devices, those that are being added and that were removed with them.
    ListDevices: GET "/oap/owner/devices" needs Admin answers(DeviceList);
    /// Begins to make a gateway a device of this owner's. Its owner must do the same there.
    AddDevice: POST "/oap/owner/devices" needs Admin body(DeviceName) answers(DeviceInfo);
    /// Says yes, with the code that the other gateway shows.
    ConfirmDevice: POST "/oap/owner/devices/confirm" needs Admin body(ConfirmedDevice) answers(DeviceInfo);
    /// A device.
    ShowDevice: POST "/oap/owner/devices/show" needs Admin body(DeviceName) answers(DeviceInfo);
    /// Ends a device: its grant is revoked, and nothing of it is asked any more.
    RemoveDevice: POST "/oap/owner/devices/remove" needs Admin body(DeviceName) answers(Done);
    /// Asks a device what changed, and takes that over: a part of it, where it is much.
    SyncDevice: POST "/oap/owner/devices/sync" needs Admin body(DeviceName) answers(SyncReport);
}

closed_enum! {
    /// How a device stands.
    DeviceState {
        /// The other side has not said that it wants this one.
        Asked = "asked",
        /// Both sides show a code: the owner compares them, and says yes on both.
        Compare = "compare",
        /// The owner said yes here; the other side did not yet.
        Waits = "waits",
        /// It is kept in step.
        Active = "active",
        /// Nobody said yes in time.
        Over = "over",
        /// It was removed, here or there, or a lockdown ended it.
        Removed = "removed",
    }
}

/// Which gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeviceName {
    /// Its DID.
    pub did: Did,
}

/// A yes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfirmedDevice {
    /// The DID of the other gateway.
    pub did: Did,
    /// The code that the other gateway shows.
    pub code: Code,
}

/// The devices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceList {
    /// By DID.
    pub devices: Vec<DeviceInfo>,
}

/// A device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct DeviceInfo {
    pub did: Did,
    pub state: DeviceState,
    pub added_at: Timestamp,
    /// What both sides show while the owner compares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed_at: Option<Timestamp>,
    /// The grant that was given to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<GrantId>,
    /// When the first of the two grants ends, and the two do not stay in step any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// When everything was taken over that it had to tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synced_at: Option<Timestamp>,
    /// How many changes were taken over from it.
    pub taken: u64,
    /// How many of its changes were left.
    pub left: u64,
    /// Whether its grant is used up, so that it leaves new items out.
    pub full: bool,
    /// What went wrong last, until something goes right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<DeviceTrouble>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed_at: Option<Timestamp>,
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct DeviceTrouble {
    pub since: Timestamp,
    pub last_at: Timestamp,
    /// How often in a row.
    pub times: u32,
    pub why: String,
}

/// What came of asking a device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SyncReport {
    /// How many items it told of.
    pub told: usize,
    /// How many changes were taken over.
    pub taken: usize,
    /// What was left, and why: the newest 100.
    pub left: Vec<LeftChange>,
    /// Whether it has more to tell: ask again.
    pub more: bool,
    /// Why it gave no more, where that was not all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// A change that was left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftChange {
    /// Of which item.
    pub item_id: oap_identity::ItemId,
    /// Why.
    pub why: Left,
}

closed_enum! {
    /// Why a change of a device's was left.
    Left {
        /// The item is not kept in step here: it is private, local, waits for the owner, may not leave, or is of another scope.
        NotInStep = "not_in_step",
        /// It is no item that this gateway takes.
        Unreadable = "unreadable",
        /// The item cannot be changed so as it stands here: held, or with as many versions as one may have.
        Conflict = "conflict",
    }
}
