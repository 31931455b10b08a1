//! What is answered in the dialect.

use super::{Opaque, Priority, Scope};
use crate::namespaces::Access;
use oap_identity::{ItemId, Timestamp};
use oap_memory::item::Sensitivity;
use oap_memory::record::Tier;
use serde::Serialize;

/// An entry (RFC-0015 1.1).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Entry {
    pub id: ItemId,
    /// Who wrote the version in force: an agent's name, or a DID.
    pub agent_id: String,
    pub namespace: String,
    pub key: String,
    pub value: Opaque,
    pub memory_type: Tier,
    pub scope: Scope,
    pub tags: Vec<String>,
    pub ttl: Option<String>,
    /// Whether it is never evicted.
    pub pinned: bool,
    pub priority: Priority,
    pub sensitivity: Sensitivity,
    /// Of a semantic entry: who brought it in.
    pub curated_by: Option<String>,
    /// From 1; each change makes it more.
    pub version: u32,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// When it ends, whichever of `expires_at` and `ttl` says so.
    pub expires_at: Option<Timestamp>,
}

/// What a query finds (RFC-0015 4.2).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Page {
    /// The entries, the one that was changed last first.
    pub entries: Vec<Entry>,
    /// How many match, of those that this agent may see.
    pub total: usize,
    /// How many were asked for.
    pub limit: usize,
    /// How many were left out before the first.
    pub offset: usize,
}

/// Who may do what with the semantic entries of a namespace (RFC-0015 2.3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Permissions {
    /// What every agent of the owner's may do that has the permission for it.
    pub default: Access,
    /// What some may do beyond that.
    pub allow: Vec<serde_json::Value>,
}

/// A namespace of semantic entries, as an agent sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Namespace {
    pub namespace: String,
    pub permissions: Permissions,
    /// What this agent may do there.
    pub access: Access,
    /// How many entries of it this agent may see.
    pub entry_count: usize,
}

/// Entries and what they take.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TierCount {
    /// How many.
    pub entry_count: usize,
    /// What their values take, in units of 1,024 bytes, begun ones counted.
    pub total_size_kb: usize,
}

/// Working entries.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct WorkingCount {
    /// How many.
    #[serde(flatten)]
    pub count: TierCount,
    /// Most that the agent may have.
    pub capacity: usize,
    /// The tasks that have any.
    pub tasks_with_memory: Vec<String>,
}

/// Episodic entries.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct EpisodicCount {
    #[serde(flatten)]
    pub count: TierCount,
    /// Most that the agent may have.
    pub capacity: usize,
    pub pinned_count: usize,
    pub oldest_entry: Option<Timestamp>,
    pub newest_entry: Option<Timestamp>,
}

/// What an agent has (RFC-0015, agent memory summary).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Summary {
    pub agent_id: String,
    pub working: WorkingCount,
    pub episodic: EpisodicCount,
    pub semantic_namespaces_accessible: Vec<String>,
}
