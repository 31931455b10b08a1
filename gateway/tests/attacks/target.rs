//! What is attacked.

#![allow(dead_code, reason = "each test binary uses its part")]

use crate::common::*;
use oap_identity::Signer;
use serde_json::{Value, json};

/// A gateway with things to find: what two items hide, and an item that is not granted at all.
pub struct Target {
    pub world: World,
    pub grantee: Signer,
    pub token: String,
    pub grant: Value,
    /// The ids of the two granted items.
    pub granted: Vec<String>,
    /// The id of the item that is not.
    pub outside: String,
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
    pub async fn at(level: u8) -> Self {
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

    pub fn draft(world: &World, level: u8) -> Value {
        let mut draft = world.draft(&agent(2));
        draft["filter"] = json!({"labels_any": ["shared"], "exclude_labels": ["never"]});
        draft["trust_level"] = json!(level);
        draft
    }

    pub async fn query(&self, query: Value) -> Answer {
        self.world.query(&self.grantee, &self.token, &query).await
    }

    /// The texts that a query finds.
    pub async fn find(&self, query: Value) -> Vec<String> {
        texts(&self.query(query).await.ok())
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.world.as_agent(&self.grantee, &self.token, "GET", path, None).await
    }
}
