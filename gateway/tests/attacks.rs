//! Attempts to get one field more than granted, each a test that goes red when the attempt succeeds.

#[path = "common/mod.rs"]
mod common;
#[path = "attacks/counts.rs"]
mod counts;
#[path = "attacks/credentials.rs"]
mod credentials;
#[path = "attacks/cursors.rs"]
mod cursors;
#[path = "attacks/errors.rs"]
mod errors;
#[path = "attacks/filters.rs"]
mod filters;
#[path = "attacks/proofs.rs"]
mod proofs;
#[path = "attacks/queries.rs"]
mod queries;
#[path = "attacks/time.rs"]
mod time;
#[path = "common/twins.rs"]
mod twins;

use common::*;
use oap_identity::Signer;
use serde_json::{Value, json};

/// A gateway with things to find: what two items hide, and an item that is not granted at all.
struct Target {
    world: World,
    grantee: Signer,
    token: String,
    grant: Value,
    /// The ids of the two granted items.
    granted: Vec<String>,
    /// The id of the item that is not.
    outside: String,
}

/// What a granted item hides at level 2.
fn guarded() -> Value {
    json!({
        "kind": "fact",
        "content": {
            "text": "Ask Bob about the budget: bobby.tables@mail.example, the password: Xk29vvTTmQ81",
            "structured": {"codename": "zanzibar", "floor": 7},
        },
        "labels": ["shared"],
        "subject_entity_id": "urn:entity:bob",
        "provenance": {"confidence": 0.73},
        "extensions": {"example.app": {"trail": "quokka"}},
    })
}

impl Target {
    /// Granted at a level, with the label `shared` and not `never`.
    async fn at(level: u8) -> Self {
        let world = World::new().await;
        let granted = world.capture(&[guarded(), note("Tea with the team at four", &["shared"])]).await;
        let outside = world
            .capture(&[note("The acquisition of Umbrella closes in Wollongong", &["private", "deals"])])
            .await
            .remove(0);
        world.capture(&[note("Never show the budget", &["shared", "never"])]).await;
        let grantee = agent(2);
        let grant = world.issue(&Self::draft(&world, level)).await;
        let token = world.token(&grantee, &grant).await;
        Self { world, grantee, token, grant, granted, outside }
    }

    fn draft(world: &World, level: u8) -> Value {
        let mut draft = world.draft(&agent(2));
        draft["filter"] = json!({"labels_any": ["shared"], "exclude_labels": ["never"]});
        draft["trust_level"] = json!(level);
        draft
    }

    async fn query(&self, query: Value) -> Answer {
        self.world.query(&self.grantee, &self.token, &query).await
    }

    /// The texts that a query finds.
    async fn find(&self, query: Value) -> Vec<String> {
        texts(&self.query(query).await.ok())
    }

    async fn get(&self, path: &str) -> Answer {
        self.world.as_agent(&self.grantee, &self.token, "GET", path, None).await
    }
}

/// What an answer says, without what may differ (protocol section 9).
fn masked(mut answer: Answer) -> (u16, usize, Value) {
    if answer.body.get("error").is_some() {
        answer.body["request_id"] = json!("");
    }
    twins::mask(&mut answer.body);
    (answer.status.as_u16(), answer.bytes.len(), answer.body)
}
