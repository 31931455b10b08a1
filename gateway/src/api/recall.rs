//! The own memory and that of others, asked at once; and what others said that is not so.

use super::endpoints;
use super::items::Brief;
use oap_agents::foreign::FromPeers;
use oap_federation::verdict::Lie;
use oap_identity::ids::IncidentId;
use oap_identity::{Did, Hash, Timestamp};
use oap_memory::Kind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

endpoints! {
    /// Searches the own memory and every one that the owner was granted to read. The others are sent the words.
    RecallItems: POST "/oap/owner/recall" needs Admin body(RecallQuery) answers(Recollection);
    /// What other gateways said that is not so, newest first.
    ListLies: GET "/oap/owner/lies" needs Admin answers(LieList);
}

/// What to look for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecallQuery {
    /// Words, at most [`MAX_QUERY`](oap_exchange::query::MAX_QUERY) bytes.
    pub text: String,
    /// Only of one of these kinds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<Kind>,
    /// At most so many of all together, 1 to 100; 20 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// How long others are waited for at most, in seconds, 1 to 25; 5 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<u64>,
    /// Whether nobody else is asked.
    #[serde(default)]
    pub own_only: bool,
}

/// What was found.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Recollection {
    /// Own items, the best first.
    pub items: Vec<Brief>,
    /// How many match in the own memory.
    pub matched: usize,
    /// What others showed, where they were asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_peers: Option<FromPeers>,
}

/// What others said that is not so.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct LieList {
    /// Newest first.
    pub lies: Vec<LieInfo>,
}

/// Something that another gateway said and that is not so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names say it")]
pub struct LieInfo {
    pub incident: IncidentId,
    pub at: Timestamp,
    /// When the same came last.
    pub last_at: Timestamp,
    /// How often the same came.
    pub times: u32,
    /// Whose gateway.
    pub peer: Did,
    /// Under which grant it was asked, by the hash of its document.
    pub grant: Hash,
    /// What the lie is of.
    pub lie: Lie,
    /// The check that failed, by its stable name, where it is one of the evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// Why it does not hold.
    pub says: String,
    /// What is kept of the answer, where one came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<LieEvidence>,
}

/// What is kept of an answer that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LieEvidence {
    /// The hash of its bytes.
    pub hash: Hash,
    /// How many bytes it had.
    pub bytes: u64,
    /// Its first 1,024 bytes, as far as they are text. They are a stranger's.
    pub beginning: String,
}
