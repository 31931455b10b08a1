//! Witnesses of the own log, the logs whose witness this gateway is, and whose signatures the logs of peers must have.

use super::{Done, endpoints};
use oap_identity::{Did, Hash, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

endpoints! {
    /// The own log and its witnesses.
    ListWitnesses: GET "/oap/owner/witnesses" needs Admin answers(WitnessList);
    /// Submits the log to a peer from now on, for it to sign.
    AddWitness: POST "/oap/owner/witnesses" needs Admin body(WitnessName) answers(WitnessInfo);
    /// Submits the log to it no more.
    RemoveWitness: POST "/oap/owner/witnesses/remove" needs Admin body(WitnessName) answers(Done);
    /// The logs whose witness this gateway is.
    ListWitnessed: GET "/oap/owner/witnessed" needs Admin answers(WitnessedList);
    /// Signs the log of a peer from now on. Said again after a restore or a lockdown, it signs on from where that log stood here.
    WitnessFor: POST "/oap/owner/witnessed" needs Admin body(WitnessName) answers(WitnessedInfo);
    /// Signs its log no more, and forgets how far it was.
    EndWitness: POST "/oap/owner/witnessed/end" needs Admin body(WitnessName) answers(Done);
    /// Whose signatures the logs of peers must have.
    ListDemands: GET "/oap/owner/peers/witnesses" needs Admin answers(DemandList);
    /// Says whose signatures the log of a peer must have before what it answers is believed.
    SetDemand: POST "/oap/owner/peers/witnesses" needs Admin body(PeerDemand) answers(DemandList);
}

/// Whose gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WitnessName {
    /// Its principal, who is a peer.
    pub did: Did,
}

/// The own log and its witnesses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WitnessList {
    /// The log; absent where there never was a witness.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<LogInfo>,
    /// By DID.
    pub witnesses: Vec<WitnessInfo>,
}

/// The own log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct LogInfo {
    pub began_at: Timestamp,
    /// How many ticks it has.
    pub size: u64,
    pub root: Hash,
}

/// A witness of the own log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct WitnessInfo {
    pub did: Did,
    pub added_at: Timestamp,
    /// The size of the log that it signed last.
    pub size: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed_at: Option<Timestamp>,
    /// Why it did not sign when it was last asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<WitnessTrouble>,
}

/// Why a witness did not sign.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct WitnessTrouble {
    pub at: Timestamp,
    pub why: Trouble,
}

/// Why a witness does not sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Trouble {
    /// It is no peer any more, or names no place where it takes checkpoints.
    NoPlace,
    /// Nobody answered, or with what is no answer.
    Unreachable,
    /// It is a witness for others, and not for this gateway.
    NotForUs,
    /// It signed a longer log, or another one, under this gateway's key.
    OtherHistory,
    /// It refused what it was sent.
    Refused,
    /// What it signed does not hold.
    Disbelieved,
}

impl Trouble {
    /// As it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoPlace => "no_place",
            Self::Unreachable => "unreachable",
            Self::NotForUs => "not_for_us",
            Self::OtherHistory => "other_history",
            Self::Refused => "refused",
            Self::Disbelieved => "disbelieved",
        }
    }
}

/// The logs whose witness this gateway is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WitnessedList {
    /// By DID.
    pub witnessed: Vec<WitnessedInfo>,
}

/// A log whose witness this gateway is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct WitnessedInfo {
    pub did: Did,
    pub since: Timestamp,
    /// Whether it is signed: not after a restore or a lockdown, until the owner says so again.
    pub signs: bool,
    /// What was signed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed: Option<SeenCheckpoint>,
    /// What its key signed, and is another history than that: evidence, with the one above. The last of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<SeenCheckpoint>,
}

/// A checkpoint that another's key signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct SeenCheckpoint {
    pub at: Timestamp,
    pub size: u64,
    pub root: Hash,
    /// The signed note.
    pub note: String,
}

/// Whose signatures the log of a peer must have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PeerDemand {
    /// The peer.
    pub did: Did,
    /// How many of them; 0 asks for none any more.
    pub need: u8,
    /// Which witnesses count: peers, at most 16, each once.
    #[serde(default)]
    pub of: Vec<Did>,
}

/// Whose signatures the logs of peers must have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DemandList {
    /// By DID.
    pub demands: Vec<PeerDemand>,
}
