//! Clients of OAuth: those that wait for the owner's yes, those that have it, and those that the owner added by name.

use super::agents::{AgentName, AgentRef};
use super::permission::Permission;
use super::place::Place;
use super::{Done, endpoints};
use crate::oauth::client::ClientName;
use data_encoding::HEXLOWER;
use oap_identity::{Random, Timestamp, random};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

endpoints! {
    /// The clients that wait for the owner's yes, and those that have it.
    ListConsents: GET "/oap/owner/oauth/consents" needs Admin answers(ConsentList);
    /// Who waits under the code that a page shows, to look at before the yes.
    ShowConsent: GET "/oap/owner/oauth/consents/{code}" at(ConsentCode) needs Admin answers(WaitingInfo);
    /// Says yes to the client whose page shows the code: it may use memory as an agent.
    ApproveConsent: POST "/oap/owner/oauth/consents/{code}/approve" at(ConsentCode) needs Admin body(NewConsent) answers(ConsentInfo);
    /// Says no to the client whose page shows the code.
    DeclineConsent: POST "/oap/owner/oauth/consents/{code}/decline" at(ConsentCode) needs Admin answers(Done);
    /// Says no to a client that waits, by its id in the list.
    DeclineWaiting: POST "/oap/owner/oauth/waiting/{waiting}/decline" at(WaitingId) needs Admin answers(Done);
    /// Takes a yes back: every token of it ends.
    EndConsent: POST "/oap/owner/oauth/given/{consent}/end" at(ConsentId) needs Admin answers(Done);
    /// The clients that the owner added.
    ListClients: GET "/oap/owner/oauth/clients" needs Admin answers(ClientList);
    /// Adds a client that has no metadata document.
    AddClient: POST "/oap/owner/oauth/clients" needs Admin body(NewClient) answers(ClientInfo);
    /// Removes a client that the owner added; every token of it ends.
    RemoveClient: POST "/oap/owner/oauth/clients/{client}/remove" at(ClientName) needs Admin answers(Done);
}

/// What codes are made of: no letter or digit that is taken for another.
const ALPHABET: &[u8; 32] = b"23456789ABCDEFGHJKLMNPQRSTUVWXYZ";
/// Characters of a code.
const CODE: usize = 8;

/// The code that the page of a waiting client shows: eight letters and digits, written `ABCD-EFGH`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, JsonSchema)]
#[schemars(with = "String")]
pub struct ConsentCode([u8; CODE]);

/// Not such a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be the code that the page shows, such as ABCD-EFGH")]
pub struct NotConsentCode;

impl ConsentCode {
    /// A fresh one, of 40 random bits.
    pub(crate) fn new(random: &dyn Random) -> Self {
        let bytes: [u8; CODE] = random::bytes(random);
        Self(bytes.map(|byte| ALPHABET[usize::from(byte % 32)]))
    }
}

impl FromStr for ConsentCode {
    type Err = NotConsentCode;

    fn from_str(text: &str) -> Result<Self, NotConsentCode> {
        let upper = text.to_ascii_uppercase();
        let plain: Vec<u8> = match upper.split_once('-') {
            Some((one, two)) if one.len() == CODE / 2 => [one, two].concat().into_bytes(),
            Some(_) => return Err(NotConsentCode),
            None => upper.into_bytes(),
        };
        let code: [u8; CODE] = plain.try_into().map_err(|_| NotConsentCode)?;
        if code.iter().all(|c| ALPHABET.contains(c)) { Ok(Self(code)) } else { Err(NotConsentCode) }
    }
}

impl fmt::Display for ConsentCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, c) in self.0.iter().enumerate() {
            let dash = if at == CODE / 2 { "-" } else { "" };
            write!(f, "{dash}{}", char::from(*c))?;
        }
        Ok(())
    }
}

/// By what the owner names a yes that was given: eight hex digits. It says nothing of the tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct ConsentId(pub(crate) [u8; 4]);

/// Not such an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an id that `agent consent list` shows: eight hex digits")]
pub struct NotConsentId;

impl FromStr for ConsentId {
    type Err = NotConsentId;

    fn from_str(text: &str) -> Result<Self, NotConsentId> {
        let bytes = HEXLOWER.decode(text.as_bytes()).map_err(|_| NotConsentId)?;
        bytes.try_into().map(Self).map_err(|_| NotConsentId)
    }
}

impl TryFrom<String> for ConsentId {
    type Error = NotConsentId;

    fn try_from(text: String) -> Result<Self, NotConsentId> {
        text.parse()
    }
}

impl From<ConsentId> for String {
    fn from(id: ConsentId) -> Self {
        id.to_string()
    }
}

impl fmt::Display for ConsentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", HEXLOWER.encode_display(&self.0))
    }
}

/// By what the owner names a client that waits, to refuse it: six hex digits. It says nothing of the code, so it gives no yes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct WaitingId([u8; 3]);

/// Not such an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an id of a client that waits, as `agent consent list` shows it: six hex digits")]
pub struct NotWaitingId;

impl WaitingId {
    /// A fresh one.
    pub(crate) fn new(random: &dyn Random) -> Self {
        Self(random::bytes(random))
    }
}

impl FromStr for WaitingId {
    type Err = NotWaitingId;

    fn from_str(text: &str) -> Result<Self, NotWaitingId> {
        let bytes = HEXLOWER.decode(text.as_bytes()).map_err(|_| NotWaitingId)?;
        bytes.try_into().map(Self).map_err(|_| NotWaitingId)
    }
}

impl TryFrom<String> for WaitingId {
    type Error = NotWaitingId;

    fn try_from(text: String) -> Result<Self, NotWaitingId> {
        text.parse()
    }
}

impl From<WaitingId> for String {
    fn from(id: WaitingId) -> Self {
        id.to_string()
    }
}

impl fmt::Display for WaitingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", HEXLOWER.encode_display(&self.0))
    }
}

macro_rules! places {
    ($($name:ty),+) => {$(
        impl Place for $name {
            fn text(&self) -> Option<String> {
                Some(self.to_string())
            }

            fn parse(text: Option<&str>) -> Option<Self> {
                text?.parse().ok()
            }
        }
    )+};
}

places!(ConsentCode, ConsentId, WaitingId, ClientName);

/// What the owner says yes to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewConsent {
    /// As which agent the client uses memory.
    pub agent: AgentRef,
    /// What it may do: no more than it asked for, and no more than the agent may. If absent, the most of that up to
    /// `memory.write`: who gives `memory.admin` says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission: Option<Permission>,
}

/// A client that waits. Its code is not told here: whoever says yes has seen the page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct WaitingInfo {
    /// By what it is refused.
    pub waiting: WaitingId,
    pub client_id: String,
    /// What it calls itself; it proves nothing.
    pub client_name: String,
    /// The host that the answer goes to.
    pub redirect_host: String,
    /// Whether that is a program on the machine of the browser.
    pub loopback: bool,
    /// What it asks to do; each permission includes those before it.
    pub permission: Permission,
    /// From which address or network the page was opened.
    pub network: String,
    pub asked_at: Timestamp,
}

/// A yes that was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ConsentInfo {
    pub consent: ConsentId,
    pub client_id: String,
    /// What the client calls itself; it proves nothing.
    pub client_name: String,
    /// The host that the answer went to.
    pub redirect_host: String,
    /// As which agent; absent where that one is not known any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    pub permission: Permission,
    /// Whether its tokens are bound to a key of the client's.
    pub bound: bool,
    pub given_at: Timestamp,
    /// When the client last got tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_at: Option<Timestamp>,
    /// Until when it counts, where the client does not come back before.
    pub until: Timestamp,
}

/// Clients and what the owner said to them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConsentList {
    /// Those that wait, the oldest first.
    pub waiting: Vec<WaitingInfo>,
    /// Those that have a yes that counts, the oldest first.
    pub given: Vec<ConsentInfo>,
}

/// A client to add.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewClient {
    /// Its name, which is its `client_id`.
    pub name: ClientName,
    /// Where it may be sent back to: 1 to 16 addresses, https, or http on loopback, where any port will do.
    pub redirect_uris: Vec<String>,
}

/// A client that the owner added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ClientInfo {
    pub client_id: ClientName,
    pub redirect_uris: Vec<String>,
    pub created_at: Timestamp,
}

/// The clients that the owner added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClientList {
    /// By name.
    pub clients: Vec<ClientInfo>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use oap_identity::random::Seeded;

    #[test]
    fn codes_are_typed_as_people_type() {
        let code = ConsentCode::new(&Seeded::new(1));
        let text = code.to_string();
        assert_eq!((text.len(), text.find('-')), (9, Some(4)));
        for typed in [text.clone(), text.to_lowercase(), text.replace('-', "")] {
            assert_eq!(typed.parse(), Ok(code));
        }
        for wrong in
            ["", "ABCD", "ABCD-EFG", "ABCD-EFG0", "ABC-DEFGH", "AB-CD-EFGH", "ABCD EFGH", "\u{c4}BCDEFG"]
        {
            assert_eq!(wrong.parse::<ConsentCode>(), Err(NotConsentCode), "{wrong}");
        }
        assert_eq!("00ff12ab".parse(), Ok(ConsentId([0, 255, 0x12, 0xab])));
        assert!("00FF12AB".parse::<ConsentId>().is_err());
        assert_eq!("00ff12".parse(), Ok(WaitingId([0, 255, 0x12])));
        for wrong in ["", "00FF12", "00ff1", "00ff1234"] {
            assert_eq!(wrong.parse::<WaitingId>(), Err(NotWaitingId), "{wrong}");
        }
    }
}
