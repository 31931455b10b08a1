//! The two gates before projection (RFC 0006, OAP-CORE 18.3), through the whole gateway.

use crate::common::*;
use crate::protocol_schemas::compare as validate;
use oap_exchange::ccc::SanctionsList;
use oap_exchange::gate::Sanctions;
use oap_gateway::Config;
use oap_identity::random::Seeded;
use oap_store::Store;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);

fn in_scope(scope: &str, text: &str, labels: &[&str]) -> Value {
    let mut item = note(text, labels);
    item["scope_id"] = json!(scope);
    item
}

async fn set_context(world: &World, mut more: Value) {
    more["ccc_version"] = json!("1.0");
    if more.get("scope_id").is_none() {
        more["scope_id"] = json!("personal");
    }
    validate("oap-ccc.schema.json", &more);
    world.owner("POST", "/oap/owner/contexts", Some(&more)).await.ok();
}

fn nda(more: Value) -> Value {
    let mut nda = json!({
        "id": "nda:a", "counterparties": ["did:web:client.example"], "type": "mutual",
        "valid_from": "2026-01-01", "valid_until": "2026-05-02", "jurisdiction": "DE",
        "document_hash": format!("sha256:{}", "0".repeat(64)),
    });
    for (name, value) in more.as_object().unwrap() {
        nda[name] = value.clone();
    }
    json!({"active_ndas": [nda]})
}

/// How many of two items, labelled `strategy` and `tea`, a grantee sees at a level under a context, and the
/// outcome in the Decision Record.
async fn seen(context: Value, level: u8, consent: bool) -> (Vec<String>, String) {
    let world = World::new().await;
    world.capture(&[note("The plan is secret", &["strategy"]), note("Tea at four", &["tea"])]).await;
    set_context(&world, context).await;
    let grantee = agent(2);
    let mut draft = world.draft(&grantee);
    draft["trust_level"] = json!(level);
    let grant = world.issue(&draft).await;
    if consent {
        let path = format!("/oap/owner/grants/{}/consent", grant["grant_id"].as_str().unwrap());
        world.owner("POST", &path, Some(&json!({"given": true}))).await.ok();
    }
    let token = world.token(&grantee, &grant).await;
    let answer = world.query(&grantee, &token, &json!({"query": ""})).await.ok();
    let decision = &answer["receipt"]["policy_decisions"][0];
    assert_eq!(decision["outcome"], "allow", "the receipt tells nothing of a gate");
    let path = format!("/oap/owner/decisions/{}", decision["id"].as_str().unwrap());
    let record = world.owner("GET", &path, None).await.ok();
    validate("oap-decision-record.schema.json", &record);
    (texts(&answer), record["outcome"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn each_question_of_the_gate_has_its_outcome() {
    let grantee = agent(2);
    let did = grantee.did().as_str();
    let both = ["The plan is secret", "Tea at four"];
    let tea = ["Tea at four"];
    let none: [&str; 0] = [];
    let strategy = json!({"covered_categories": ["strategy"]});
    let cases: Vec<(&str, Value, &[&str], &str)> = vec![
        ("nothing owed", json!({}), &both, "allow"),
        ("embargo", json!({"embargo_list": [did]}), &none, "block"),
        ("another's embargo", json!({"embargo_list": ["did:web:other.example"]}), &both, "allow"),
        ("an NDA with others", nda(strategy.clone()), &tea, "block"),
        ("an NDA over everything", nda(json!({})), &none, "block"),
        ("an NDA with the grantee", nda(json!({"counterparties": [did]})), &both, "allow_with_conditions"),
        ("an NDA that binds the other side", nda(json!({"type": "one_way_outbound"})), &both, "allow"),
        ("an NDA that has ended", nda(json!({"valid_until": "2026-04-30"})), &both, "allow"),
        ("an NDA that begins tomorrow", nda(json!({"valid_from": "2026-05-02"})), &both, "allow"),
        ("an NDA on its last day", nda(json!({"valid_until": "2026-05-01"})), &none, "block"),
        (
            "a non-compete",
            json!({"non_competes": [{
                "ex_employer": "did:web:former.example", "valid_until": "2026-12-31", "scope": "EU",
                "covered_industries": ["strategy"],
            }]}),
            &tea,
            "require_consent",
        ),
        (
            "a non-solicitation of the grantee",
            json!({"non_solicits": [{"subject_did": did, "applies_to": "both", "valid_until": "2026-12-31"}]}),
            &none,
            "require_consent",
        ),
        (
            "a wall between scope and grantee",
            json!({"chinese_walls": [{"between": ["personal", did], "reason": "competing"}]}),
            &none,
            "block",
        ),
        (
            "a wall elsewhere",
            json!({"chinese_walls": [{"between": ["work", did], "reason": "competing"}]}),
            &both,
            "allow",
        ),
        ("a professional code", json!({"professional_codes": ["bar:de"]}), &none, "require_consent"),
        ("a fiduciary duty", json!({"fiduciary_duties": ["brao_43a"]}), &none, "require_consent"),
        (
            "privilege",
            json!({"regulatory_classification": "attorney_client_privileged"}),
            &none,
            "require_consent",
        ),
        ("state secrets", json!({"regulatory_classification": "diplomatic_classified"}), &none, "block"),
        ("no classification", json!({"regulatory_classification": "none"}), &both, "allow"),
        (
            "inside knowledge",
            json!({"insider_lists": [{"issuer": "did:web:issuer.example", "instrument": "strategy"}]}),
            &tea,
            "require_consent",
        ),
        ("a list that is not there", json!({"sanctions_screening": ["eu"]}), &none, "block"),
        ("export control", json!({"export_control_classification": "5D002"}), &none, "block"),
    ];
    for (name, context, expected, outcome) in cases {
        let (texts, decided) = seen(context.clone(), 3, false).await;
        let mut texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        texts.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!((texts.as_slice(), decided.as_str()), (expected, outcome), "{name}");
        // Consent lifts what asks for it, and nothing else.
        let (texts, _) = seen(context, 3, true).await;
        let lifted = if outcome == "require_consent" { 2 } else { expected.len() };
        assert_eq!(texts.len(), lifted, "{name}, with consent");
    }
}

#[tokio::test]
async fn health_is_shown_without_what_identifies() {
    let health = json!({"regulatory_classification": "medical_confidentiality"});
    assert_eq!(seen(health.clone(), 2, false).await.0.len(), 2);
    assert_eq!(seen(health.clone(), 3, false).await, (vec![], "require_anonymization".to_owned()));
    assert_eq!(seen(health, 3, true).await.0.len(), 2);
}

#[tokio::test]
async fn a_subject_identifies() {
    let world = World::new().await;
    let mut about = note("Sleeps badly", &["health"]);
    about["subject_entity_id"] = json!("urn:entity:ada");
    world.capture(&[about, note("Walks daily", &["health"])]).await;
    set_context(&world, json!({"regulatory_classification": "therapeutic_privilege"})).await;
    let grantee = agent(2);
    let mut draft = world.draft(&grantee);
    draft["trust_level"] = json!(2);
    assert_eq!(texts(&world.ask(&grantee, &draft, &json!({})).await), ["Walks daily"]);
    draft["trust_level"] = json!(0);
    assert_eq!(world.ask(&grantee, &draft, &json!({})).await["items"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn grantees_are_screened_against_the_lists_at_hand() {
    let grantee = agent(2);
    for (listed, expected) in [("did:web:bad.example", 1), (grantee.did().as_str(), 0)] {
        let random = Arc::new(Seeded::new(1));
        let store = Store::in_memory(random.clone()).unwrap();
        let keys = oap_gateway::state::keyring::StoredKeys::generate(
            &*random,
            oap_identity::Timestamp::from_millis(START),
        );
        oap_gateway::Gateway::init(&store, &keys).await.unwrap();
        let lists = Sanctions::from([(SanctionsList::Eu, [listed.to_owned()].into())]);
        let world = World::equipped(store, Config::default(), random, lists, None).await;
        world.capture(&[note("Tea at four", &["tea"])]).await;
        set_context(&world, json!({"sanctions_screening": ["eu"]})).await;
        let draft = world.draft(&grantee);
        assert_eq!(texts(&world.ask(&grantee, &draft, &json!({})).await).len(), expected, "{listed}");
    }
}

#[tokio::test]
async fn another_scope_needs_a_bridge() {
    let world = World::new().await;
    world
        .capture(&[
            in_scope("work", "The board meets on Monday", &["scheduling"]),
            in_scope("work", "The merger is secret", &["deals"]),
            note("Tea at four", &["scheduling"]),
        ])
        .await;
    let grantee = agent(2);
    let mut draft = world.draft(&grantee);
    draft["filter"] = json!({"scopes": ["personal", "work"]});
    let refused = world.owner("POST", "/oap/owner/grants", Some(&draft)).await.refused(400, "invalid_input");
    assert!(
        refused["message"]
            .as_str()
            .unwrap()
            .contains("filter.scopes: no Cross Scope Bridge leads from one of them")
    );

    let bridge = json!({
        "from_scope": "work", "to_scope": "personal", "data_categories": ["scheduling"],
        "valid_until": world.now().plus(10 * DAY),
    });
    let bridge = world.owner("POST", "/oap/owner/bridges", Some(&bridge)).await.ok();
    let preview = world.owner("POST", "/oap/owner/grants/preview", Some(&draft)).await.ok();
    assert_eq!((&preview["selected"], &preview["withheld"]), (&json!(2), &json!(1)));
    assert_eq!(preview["rules"], json!({"scope.bridge": 1, "scope.no_bridge": 1}));

    let grant = world.issue(&draft).await;
    let token = world.token(&grantee, &grant).await;
    let mut over = texts(&world.query(&grantee, &token, &json!({})).await.ok());
    over.sort();
    assert_eq!(over, ["Tea at four", "The board meets on Monday"]);

    // What is said of the other scope's secret finds nothing, whatever is asked.
    for query in [json!({"query": "merger secret"}), json!({"labels_any": ["deals"]})] {
        assert_eq!(texts(&world.query(&grantee, &token, &query).await.ok()), [""; 0]);
    }

    // Taken back, it carries nothing from the next answer on.
    let path = format!("/oap/owner/bridges/{}/revoke", bridge["bridge_id"].as_str().unwrap());
    world.owner("POST", &path, Some(&json!({}))).await.ok();
    assert_eq!(texts(&world.query(&grantee, &token, &json!({})).await.ok()), ["Tea at four"]);
    world.owner("POST", &path, Some(&json!({}))).await.refused(409, "conflict");
}

#[tokio::test]
async fn a_bridge_ends() {
    let world = World::new().await;
    world.capture(&[in_scope("work", "The board meets on Monday", &["scheduling"])]).await;
    let bridge = json!({
        "from_scope": "work", "to_scope": "personal", "data_categories": ["fact"],
        "valid_until": world.now().plus(Duration::from_secs(60)),
    });
    world.owner("POST", "/oap/owner/bridges", Some(&bridge)).await.ok();
    let grantee = agent(2);
    let mut draft = world.draft(&grantee);
    draft["filter"] = json!({"scopes": ["work"]});
    let grant = world.issue(&draft).await;
    let token = world.token(&grantee, &grant).await;
    assert_eq!(texts(&world.query(&grantee, &token, &json!({})).await.ok()).len(), 1);
    world.clock.advance(Duration::from_secs(60));
    assert_eq!(texts(&world.query(&grantee, &token, &json!({})).await.ok()).len(), 0);
}

#[tokio::test]
async fn an_agreement_ends_with_its_day() {
    let world = World::new().await;
    world.capture(&[note("The plan is secret", &["strategy"])]).await;
    set_context(&world, nda(json!({"valid_until": "2026-05-01"}))).await;
    let grantee = agent(2);
    let grant = world.issue(&world.draft(&grantee)).await;
    let ask = async || {
        let token = world.token(&grantee, &grant).await;
        texts(&world.query(&grantee, &token, &json!({})).await.ok()).len()
    };
    assert_eq!(ask().await, 0);
    world.clock.advance(Duration::from_secs(11 * 3600));
    assert_eq!(ask().await, 0, "23:00");
    world.clock.advance(Duration::from_secs(3600));
    assert_eq!(ask().await, 1, "midnight");
}

#[tokio::test]
async fn no_bridge_leads_out_of_privilege_or_past_a_clearance_or_a_wall() {
    for (context, expected) in [
        (json!({"scope_id": "work", "regulatory_classification": "confessional_seal"}), 0),
        (json!({"scope_id": "work", "regulatory_classification": "trade_secret"}), 0),
        (json!({"scope_id": "personal", "security_clearance": ["scheduling"]}), 1),
        (json!({"scope_id": "personal", "security_clearance": []}), 0),
        (
            json!({"scope_id": "other", "chinese_walls": [{"between": ["work", "personal"], "reason": "r"}]}),
            0,
        ),
    ] {
        let world = World::new().await;
        world.capture(&[in_scope("work", "The board meets on Monday", &["scheduling"])]).await;
        let bridge = json!({
            "from_scope": "work", "to_scope": "personal", "data_categories": ["scheduling"],
            "valid_until": world.now().plus(10 * DAY),
        });
        world.owner("POST", "/oap/owner/bridges", Some(&bridge)).await.ok();
        let grantee = agent(2);
        let mut draft = world.draft(&grantee);
        draft["filter"] = json!({"scopes": ["work"]});
        let grant = world.issue(&draft).await;
        set_context(&world, context.clone()).await;
        let token = world.token(&grantee, &grant).await;
        let texts = texts(&world.query(&grantee, &token, &json!({})).await.ok());
        assert_eq!(texts.len(), expected, "{context}");
    }
    let world = World::new().await;
    set_context(&world, json!({"scope_id": "work", "regulatory_classification": "confessional_seal"})).await;
    let bridge = json!({
        "from_scope": "work", "to_scope": "personal", "data_categories": ["scheduling"],
        "valid_until": world.now().plus(10 * DAY),
    });
    world.owner("POST", "/oap/owner/bridges", Some(&bridge)).await.refused(409, "conflict");
}

#[tokio::test]
async fn malformed_contexts_and_bridges_are_refused_by_name() {
    let world = World::new().await;
    for (context, named) in [
        (json!({"ccc_version": "2.0", "scope_id": "a"}), "ccc_version"),
        (json!({"ccc_version": "1.0"}), "scope_id"),
        (json!({"ccc_version": "1.0", "scope_id": "a", "embargo": []}), "embargo"),
        (
            json!({"ccc_version": "1.0", "scope_id": "a", "chinese_walls": [{"between": ["b"], "reason": "r"}]}),
            "chinese_walls",
        ),
        (json!({"ccc_version": "1.0", "scope_id": "a", "sanctions_screening": "ofac_eu_un"}), "sequence"),
    ] {
        let answer = world.owner("POST", "/oap/owner/contexts", Some(&context)).await;
        let message = answer.refused(400, "invalid_input")["message"].to_string();
        assert!(message.contains(named), "{named}: {message}");
    }
    for (from, categories, until, named) in [
        ("personal", json!(["a"]), 1, "to_scope"),
        ("work", json!([]), 1, "data_categories"),
        ("work", json!(["a"]), 0, "valid_until"),
    ] {
        let bridge = json!({
            "from_scope": from, "to_scope": "personal", "data_categories": categories,
            "valid_until": world.now().plus(until * DAY),
        });
        let answer = world.owner("POST", "/oap/owner/bridges", Some(&bridge)).await;
        let message = answer.refused(400, "invalid_input")["message"].to_string();
        assert!(message.contains(named), "{named}: {message}");
    }
}

/// A withheld item's coming and going leaves the cached view alone: its time tells nothing.
#[tokio::test]
async fn decisions_are_the_owners_alone() {
    let world = World::new().await;
    set_context(&world, nda(json!({"covered_categories": ["strategy"]}))).await;
    world.capture(&[note("The plan is secret", &["strategy"]), note("Tea at four", &["tea"])]).await;
    let grantee = agent(2);
    let grant = world.issue(&world.draft(&grantee)).await;
    let token = world.token(&grantee, &grant).await;
    let answer = world.query(&grantee, &token, &json!({})).await.ok();
    assert!(!answer.to_string().contains("ccc"), "{answer}");
    let id = answer["receipt"]["policy_decisions"][0]["id"].as_str().unwrap();
    let path = format!("/oap/owner/decisions/{id}");
    let record = world.owner("GET", &path, None).await.ok();
    assert_eq!(record["applied_rules"], json!(["ccc.nda"]));
    assert_eq!(record["ccc_evaluation"]["nda_coverage"], false);
    assert!(record["explanation_for_principal"].as_str().unwrap().contains("not shown 1 item: ccc.nda (1)"));
    let stranger = world.as_agent(&grantee, &token, "GET", &path, None).await;
    assert_eq!(stranger.status, 401);
    // A refusal of the whole request has its record too.
    let refused = world.query(&grantee, &token, &json!({"include_embeddings": true})).await;
    refused.refused(403, "policy_block");
    let listing = world.owner("GET", "/oap/audit", None).await.ok();
    let decisions = listing["receipts"].as_array().unwrap().iter().map(|r| &r["policy_decisions"][0]);
    let blocks: Vec<&Value> = decisions.filter(|d| d["outcome"] == "block").collect();
    let id = blocks[0]["id"].as_str().unwrap().to_owned();
    let record = world.owner("GET", &format!("/oap/owner/decisions/{id}"), None).await.ok();
    assert_eq!(
        (&record["outcome"], &record["applied_rules"]),
        (&json!("block"), &json!(["grant.embedding_access"]))
    );
}
