//! The actions of the invoke endpoint (OAP-CORE 7).
//!
//! Protocol section 3 calls them `memory.describe` and so on; the action schema allows no dot in an id, so the
//! manifest says `memory_describe`. The invoke endpoint takes both spellings.

use serde_json::{Value, json};

/// An action of the invoke endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// What the manifest says; free, for anyone.
    Describe,
    /// A query under a grant.
    Query,
    /// From grant to token.
    Grant,
}

impl Action {
    /// Every action, the free one first.
    pub const ALL: [Self; 3] = [Self::Describe, Self::Query, Self::Grant];

    /// The id in the manifest.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::Describe => "memory_describe",
            Self::Query => "memory_query",
            Self::Grant => "memory_grant",
        }
    }

    /// The action of a name, in either spelling.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.id() == name.replacen('.', "_", 1))
    }

    /// Words by which a caller may ask for it.
    #[must_use]
    pub const fn intents(self) -> &'static [&'static str] {
        match self {
            Self::Describe => &["describe", "memory", "capabilities", "about", "manifest", "what"],
            Self::Query => &["query", "memory", "search", "recall", "context", "ask", "find", "read"],
            Self::Grant => &["grant", "token", "access", "authorize", "exchange", "permission"],
        }
    }
}

/// The action descriptors of the manifest.
#[must_use]
pub fn descriptors() -> Vec<Value> {
    Action::ALL.into_iter().map(descriptor).collect()
}

fn descriptor(action: Action) -> Value {
    let mut descriptor = json!({
        "id": action.id(),
        "version": "1.0.0",
        "idempotent": false,
        "cost": {"type": "free"},
        "risk_class": "minimal",
    });
    let more = match action {
        Action::Describe => json!({
            "summary": "What this memory gateway offers.",
            "description_for_agents": "Returns the kinds of memory, the projection profiles and the limits of grants that this gateway declares. Needs no credential and no input. Returns nothing of the principal's memory.",
            "side_effects": "read",
            "requires_consent": false,
            "input_schema": {"type": "object", "properties": {}, "additionalProperties": false},
            "output_schema": {
                "type": "object",
                "required": ["principal", "kinds_supported", "memory_exchange", "projections"],
                "properties": {
                    "principal": {"type": "string"}, "kinds_supported": {"type": "array"},
                    "memory_exchange": {"type": "object"}, "projections": {"type": "object"},
                },
            },
            "rate_limit": {"rpm": 600, "concurrent": 16},
            "data_classes_in": [], "data_classes_out": ["public"],
            "examples": [{"input": {}, "output": {"principal": "did:web:user.example", "kinds_supported": ["fact"],
                "memory_exchange": {"supported": true}, "projections": {"supported": true}}}],
        }),
        Action::Query => json!({
            "summary": "Query the slice of memory that a grant opens.",
            "description_for_agents": "Ranks the memory items of the caller's grant by relevance to a text and returns them as the grant's projection profile shows them, each with the proof that it is part of what was captured. Needs a token from memory_grant, sent as Authorization with a DPoP proof for this endpoint.",
            "side_effects": "read",
            "requires_consent": true,
            "input_schema": {
                "type": "object",
                "properties": {
                    "query": {"type": "string"},
                    "max_results": {"type": "integer", "minimum": 1, "maximum": 100},
                    "include_embeddings": {"type": "boolean"},
                    "kinds": {"type": "array", "items": {"type": "string"}},
                    "labels_any": {"type": "array", "items": {"type": "string"}},
                    "min_confidence": {"type": "number", "minimum": 0, "maximum": 1},
                    "cursor": {"type": "string"},
                    "integrity": {"enum": ["full", "chain"]},
                    "purpose": {"type": "string"},
                    "request_id": {"type": "string"},
                },
                "additionalProperties": false,
            },
            "output_schema": {
                "type": "object",
                "required": ["request_id", "response_id", "items", "projection_applied", "receipt", "signature"],
            },
            "rate_limit": {"rpm": 6000, "concurrent": 64},
            "data_classes_in": ["query_text"], "data_classes_out": ["memory_item"],
            "examples": [{"input": {"query": "preferred meeting times", "max_results": 5}, "output": {"items": []}}],
        }),
        Action::Grant => json!({
            "summary": "Exchange a signed grant for a short-lived token.",
            "description_for_agents": "Takes a grant that this principal issued to the caller and a proof that the caller controls the grantee's DID, and returns a token of at most ten minutes that is bound to the key of the proof.",
            "side_effects": "write",
            "requires_consent": true,
            "input_schema": {
                "type": "object",
                "required": ["grant", "proof"],
                "properties": {
                    "grant": {"type": "object"}, "chain": {"type": "array", "items": {"type": "object"}},
                    "proof": {"type": "string"},
                },
                "additionalProperties": false,
            },
            "output_schema": {
                "type": "object",
                "required": ["memory_grant_jwt", "expires_in", "token_type"],
            },
            "rate_limit": {"rpm": 600, "concurrent": 16},
            "data_classes_in": ["memory_grant"], "data_classes_out": ["access_token"],
            "examples": [{"input": {"grant": {}, "proof": "<JWT>"},
                "output": {"memory_grant_jwt": "<JWT>", "expires_in": 600, "token_type": "DPoP"}}],
        }),
    };
    if let (Some(all), Value::Object(more)) = (descriptor.as_object_mut(), more) {
        all.extend(more);
    }
    descriptor
}
