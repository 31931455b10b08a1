//! Counts, sizes and order: the shape of an answer must not tell of what it leaves out.

use super::{Target, masked};
use crate::common::*;
use crate::twins::*;
use serde_json::{Value, json};

/// Everything that two gateways say to the same requests, whose items differ in what the level hides.
async fn alike(level: u8, profile: &str, one: &[Value], other: &[Value]) {
    let mut answers = Vec::new();
    for items in [one, other] {
        let side = Side::new().await;
        for (number, item) in items.iter().enumerate() {
            side.capture(100 + number as u64, item).await;
        }
        side.random.set(1);
        let world = &side.world;
        let mut draft = Target::draft(world, level);
        draft["redaction_profile"] = json!(format!("oap.profile.projection.{profile}"));
        let grant = world.issue(&draft).await;
        let token = world.token(&agent(2), &grant).await;
        let query = json!({"query": "", "request_id": "01J9V8B7H1ZK4D2A0M9R8F0KQX"});
        answers.push(masked(world.query(&agent(2), &token, &query).await));
    }
    assert_eq!(answers[0].0, 200);
    assert!(!answers[0].2["items"].as_array().unwrap().is_empty());
    assert!(answers[0] == answers[1], "{}", difference(&answers[0].2, &answers[1].2, String::new()));
}

#[tokio::test]
async fn the_length_of_a_hidden_password() {
    let with = |password: &str| note(&format!("Note this: password: {password} for later"), &["shared"]);
    alike(3, "memory.v1", &[with("short1pw")], &[with("a-very-long-password-indeed-0123456789")]).await;
}

#[tokio::test]
async fn the_number_of_hidden_labels() {
    let with = |labels: &[&str]| note("A note", labels);
    alike(0, "memory.v1", &[with(&["shared"])], &[with(&["shared", "a", "b", "c"])]).await;
}

#[tokio::test]
async fn the_number_of_hidden_members() {
    let with = |structured: Value| json!({"kind": "fact", "content": {"text": "A note", "structured": structured}, "labels": ["shared"]});
    alike(3, "memory.v1", &[with(json!({"a": 1}))], &[with(json!({"a": 1, "b": [1, 2, 3], "c": {"d": 1}}))])
        .await;
}

#[tokio::test]
async fn whether_there_is_hidden_content_at_all() {
    let with = json!({"kind": "fact", "content": {"text": "A note", "structured": {"a": 1}}, "labels": ["shared"],
        "extensions": {"example.app": {"b": 1}}, "ttl_days": 900, "subject_entity_id": "urn:entity:bob"});
    alike(0, "memory.v1", &[with], &[note("Another", &["shared"])]).await;
}

#[tokio::test]
async fn the_number_of_segments_of_hidden_text() {
    let spans = "a@b.example and c@d.example and e@f.example and +49 30 12345678";
    alike(1, "memory.v1", &[note("plain", &["shared"])], &[note(spans, &["shared"])]).await;
}

#[tokio::test]
async fn the_channels_of_a_contact() {
    let contact = |channels: Value| {
        json!({"kind": "fact", "labels": ["shared"], "content": {"structured": {
            "entity_type": "oap.entity.contact", "names": {"given": "Ada", "family": "Byron"},
            "channels": channels,
        }}})
    };
    let one = contact(json!([{"type": "email", "value": "ada@mail.example", "primary": true}]));
    let many = contact(json!([
        {"type": "email", "value": "ada@mail.example", "primary": true},
        {"type": "phone", "value": "+49 30 12345678"}, {"type": "email", "value": "countess@work.example"},
    ]));
    alike(1, "contact.v1", &[one], &[many]).await;
}

#[tokio::test]
async fn the_title_of_a_private_event() {
    let event = |title: &str| {
        json!({"kind": "fact", "labels": ["shared"], "content": {"structured": {
            "entity_type": "oap.entity.calendar_event", "title": title, "visibility": "private",
            "start": "2026-05-02T10:00:00Z", "end": "2026-05-02T11:00:00Z", "transparency": "opaque",
        }}})
    };
    alike(1, "calendar_event.v1", &[event("Oncology")], &[event("Job interview at a competitor")]).await;
}

#[tokio::test]
async fn the_number_of_items_outside() {
    let target = Target::at(2).await;
    let query = json!({"query": "", "request_id": "01J9V8B7H1ZK4D2A0M9R8F0KQX"});
    let before = masked(target.query(query.clone()).await);
    let more: Vec<Value> = (0..50).map(|n| note(&format!("private {n}"), &["private"])).collect();
    target.world.capture(&more).await;
    assert_eq!(masked(target.query(query).await), before);
}

#[tokio::test]
async fn the_count_of_redacted_fields() {
    let target = Target::at(2).await;
    let count = async |query: Value| {
        target.query(query).await.ok()["projection_applied"]["redacted_field_count"].clone()
    };
    assert_eq!(count(json!({"query": "budget"})).await, count(json!({"query": "tea"})).await);
    assert_eq!(count(json!({"query": "nothing"})).await, count(json!({"query": "tea"})).await);
}

#[tokio::test]
async fn the_order_of_digests() {
    use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
    let target = Target::at(2).await;
    let answer = target.query(json!({"query": ""})).await.ok();
    for item in answer["items"].as_array().unwrap() {
        let jwt = item["integrity"]["sd_jwt"].as_str().unwrap().split('~').next().unwrap();
        let payload = URL_SAFE_NO_PAD.decode(jwt.split('.').nth(1).unwrap()).unwrap();
        let payload: Value = serde_json::from_slice(&payload).unwrap();
        let digests: Vec<&str> =
            payload["_sd"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert_eq!(digests.len() % 8, 0);
        assert!(digests.is_sorted(), "the order tells which member a digest is of");
    }
}

#[tokio::test]
async fn headers_that_differ() {
    let target = Target::at(2).await;
    let mut seen = Vec::new();
    for word in ["zanzibar", "zanzibat"] {
        let url = format!("{ORIGIN}/oap/memory/query");
        let request = oap_grants::dpop::Request { method: "POST", url: &url };
        let random = oap_identity::random::Seeded::new(word.len() as u64 + u64::from(word.as_bytes()[7]));
        let now = target.world.now();
        let proof = oap_grants::dpop::prove(&target.grantee, request, &target.token, now, &random).unwrap();
        let request = axum::http::Request::builder()
            .method("POST")
            .uri("/oap/memory/query")
            .header("authorization", format!("DPoP {}", target.token))
            .header("dpop", proof)
            .header("content-type", "application/oap+json")
            .body(axum::body::Body::from(json!({"query": word}).to_string()))
            .unwrap();
        let response = tower::ServiceExt::oneshot(target.world.router.clone(), request).await.unwrap();
        seen.push((response.status(), response.headers().clone()));
    }
    assert_eq!(seen[0], seen[1]);
}

#[tokio::test]
async fn documents_that_change_with_the_memory() {
    let target = Target::at(2).await;
    let fetch = async || {
        let mut all = Vec::new();
        for name in ["oap-memory", "oap-tool", "oap-scopes", "did"] {
            let path = format!("/.well-known/{name}.json");
            all.push(target.world.raw("GET", &path, &[], None).await.bytes);
        }
        all
    };
    let before = fetch().await;
    let mut elsewhere = note("In a scope of its own", &["private"]);
    elsewhere["scope_id"] = json!("clinic");
    target.world.capture(&[elsewhere]).await;
    assert_eq!(fetch().await, before);
}
