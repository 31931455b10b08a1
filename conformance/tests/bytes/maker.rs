//! Makes the examples of the page: one short story on a gateway with fixed keys, randomness and clock.

use super::common::*;
use super::formula::Blocks;
use super::page::pretty;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as B64};
use oap_exchange::Query;
use oap_gateway::Gateway;
use oap_gateway::service::Keys;
use oap_gateway::state::keyring::StoredKeys;
use oap_gateway::system::config::Config;
use oap_grants::grant::{Grant, SignedGrant};
use oap_grants::{dpop, exchange};
use oap_identity::random::Seeded;
use oap_identity::{GrantId, Hash, Random, Signer, Timestamp, json as strict};
use oap_memory::answer::envelope_bytes;
use oap_store::Store;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// The grantee's and the third party's keys: did:key of these seeds.
const GRANTEE: u8 = 7;
const THIRD: u8 = 9;

struct Making {
    world: World,
    blocks: Blocks,
    fresh: u64,
}

impl Making {
    fn text(&mut self, name: &str, text: &str) {
        assert!(self.blocks.insert(name.to_owned(), text.to_owned()).is_none(), "{name}");
    }

    fn json(&mut self, name: &str, value: &Value) {
        let value = strict::parse(&strict::canonical(value).unwrap()).unwrap();
        self.text(name, &pretty(&value));
    }

    /// A JWT: its text, and its header and payload as they are read.
    fn jwt(&mut self, name: &str, jwt: &str) {
        self.text(name, jwt);
        for (part, what) in jwt.split('.').zip(["header", "payload"]) {
            let value = strict::parse(&B64.decode(part).unwrap()).unwrap();
            self.json(&format!("{name}-{what}"), &value);
        }
    }

    fn random(&mut self) -> Seeded {
        self.fresh += 1;
        Seeded::new(7_000 + self.fresh)
    }

    fn tick(&self) {
        self.world.clock.advance(Duration::from_secs(1));
    }

    /// A request with a token and a proof of the grantee's key; the proof is kept.
    async fn as_grantee(&mut self, path: &str, token: &str, body: Option<&Value>) -> (String, Answer) {
        let (url, random) = (format!("{ORIGIN}{path}"), self.random());
        let target = dpop::Request { method: "POST", url: &url };
        let proof = dpop::prove(&agent(GRANTEE), target, token, self.world.now(), &random).unwrap();
        let authorization = format!("DPoP {token}");
        let headers = [("authorization", authorization.as_str()), ("dpop", proof.as_str())];
        let answer = self.world.raw("POST", path, &headers, body).await;
        (proof, answer)
    }

    async fn log(&self) -> Vec<Value> {
        let log = self.world.owner("GET", "/oap/audit?chain=personal&from=0&limit=1000", None).await.ok();
        log["receipts"].as_array().unwrap().clone()
    }

    async fn receipt_of(&self, action: &str) -> Value {
        self.log().await.into_iter().rfind(|receipt| receipt["action_id"] == action).unwrap()
    }
}

pub async fn blocks() -> Blocks {
    let random: Arc<dyn Random> = Arc::new(Seeded::new(1));
    let store = Store::in_memory(random.clone()).unwrap();
    let keys = StoredKeys::generate(&Seeded::new(7), Timestamp::from_millis(START));
    let seed: Vec<u8> =
        serde_json::from_value(serde_json::to_value(&keys).unwrap()["keys"][0]["seed"].clone()).unwrap();
    let seed: [u8; 32] = seed.try_into().unwrap();
    Gateway::init(&store, &keys).await.unwrap();
    let world = World::open(store, Config::default(), random).await;
    let mut making = Making { world, blocks: Blocks::new(), fresh: 0 };
    let (grantee, third) = (agent(GRANTEE), agent(THIRD));
    let owner = Signer::from_seed(format!("{PRINCIPAL}#key-1").parse().unwrap(), &seed).unwrap();
    let key = |signer: &Signer, seed: [u8; 32]| json!({"kid": signer.kid(), "seed": B64.encode(seed), "x": signer.public().jwk()["x"]});
    let all = json!({
        "owner": key(&owner, seed), "grantee": key(&grantee, [GRANTEE; 32]), "third": key(&third, [THIRD; 32]),
    });
    making.json("keys", &all);
    making.json("did-document", &making.world.gateway.published().did.clone());
    making.json("memory-manifest", &making.world.gateway.published().memory.clone());
    canonical_form(&mut making);
    let grant = captured_and_granted(&mut making).await;
    let token = exchanged(&mut making, &grant).await;
    queried(&mut making, &token).await;
    exported(&mut making, &token).await;
    delegated(&mut making, &grant).await;
    published_state(&mut making, &grant).await;
    bridged(&mut making).await;
    invoked(&mut making).await;
    deleted(&mut making).await;
    migrated(&mut making).await;
    rotated(&mut making).await;
    making.blocks
}

fn canonical_form(making: &mut Making) {
    let value = json!({"b": [1.0, 0.5, 1e2], "a": {"é": "ü", "z": null}, "A": "\u{1}\n\"/"});
    making.json("any", &value);
    making.text("any-canonical", &String::from_utf8(strict::canonical(&value).unwrap()).unwrap());
}

async fn captured_and_granted(making: &mut Making) -> Value {
    let world = &making.world;
    let mut item = note("Tea at nine, write to ann@b.example", &["home", "tea"]);
    item["content"]["structured"] = json!({"cups": 2});
    let ids = world.capture(&[item]).await;
    making.tick();
    let correct = json!({"item": {"content": {
        "text": "Tea at ten, write to ann@b.example", "structured": {"cups": 2},
    }}});
    world.owner("POST", &format!("/oap/owner/items/{}/correct", ids[0]), Some(&correct)).await.ok();
    making.tick();
    let mut draft = world.draft(&agent(GRANTEE));
    draft["filter"] = json!({"labels_any": ["tea"]});
    draft["trust_level"] = json!(2);
    draft["operations"] = json!(["query", "export"]);
    draft["delegable"] = json!({"max_depth": 1});
    let grant = world.issue(&draft).await;
    let log = making.log().await;
    for (number, name) in ["receipt-boot", "receipt-boot-head", "receipt-capture", "receipt-capture-head"]
        .into_iter()
        .enumerate()
    {
        making.json(name, &log[number]);
    }
    making.json("grant", &grant);
    let receipt = making.receipt_of("memory.grant").await;
    making.json("receipt-grant", &receipt);
    making.tick();
    grant
}

async fn exchanged(making: &mut Making, grant: &Value) -> String {
    let (hash, random) = (Hash::of_canonical(grant).unwrap(), making.random());
    let now = making.world.now();
    let endpoint = format!("{ORIGIN}/oap/memory/grant");
    let proof = exchange::prove(&agent(GRANTEE), &endpoint, hash, now, &random).unwrap();
    making.jwt("grant-proof", &proof);
    let request = json!({"grant": grant, "proof": proof});
    let answer = making.world.raw("POST", "/oap/memory/grant", &[], Some(&request)).await.ok();
    let token = answer["memory_grant_jwt"].as_str().unwrap().to_owned();
    making.jwt("token", &token);
    making.json("exchange-response", &answer);
    making.tick();
    token
}

async fn queried(making: &mut Making, token: &str) {
    let request = json!({"query": "tea", "max_results": 5, "request_id": "01J9V8B7H1ZK4D2A0M9R8F0KQX"});
    let (proof, answer) = making.as_grantee("/oap/memory/query", token, Some(&request)).await;
    let answer = answer.ok();
    making.json("query", &request);
    making.jwt("dpop-proof", &proof);
    let read: Query = strict::from_value(request).unwrap();
    making.json("query-as-read", &serde_json::to_value(read).unwrap());
    making.json("answer", &answer);
    let sd_jwt = answer["items"][0]["integrity"]["sd_jwt"].as_str().unwrap();
    let (jwt, disclosures) = sd_jwt.split_once('~').unwrap();
    for (part, name) in jwt.split('.').zip(["sd-jwt-header", "sd-jwt-payload"]) {
        making.json(name, &strict::parse(&B64.decode(part).unwrap()).unwrap());
    }
    let disclosures =
        disclosures.split_terminator('~').map(|d| strict::parse(&B64.decode(d).unwrap()).unwrap());
    making.json("sd-jwt-disclosures", &disclosures.collect());
    making.tick();
    let receipt = &answer["receipt"];
    let mut unsigned = receipt.clone();
    unsigned.as_object_mut().unwrap().remove("signatures");
    let grantee = agent(GRANTEE);
    let value = grantee.sign(&strict::canonical(&unsigned).unwrap());
    let ack = json!({
        "receipt_id": receipt["receipt_id"],
        "signature": {"by": grantee.kid(), "alg": "EdDSA", "value": value},
    });
    making.json("ack", &ack);
    let joint = making.world.raw("POST", "/oap/memory/ack", &[], Some(&ack)).await.ok();
    making.json("ack-response", &joint);
    making.tick();
}

async fn exported(making: &mut Making, token: &str) {
    let (_, answer) = making.as_grantee("/oap/memory/export", token, None).await;
    assert_eq!(answer.status, 200);
    making.text("bundle", String::from_utf8(answer.bytes).unwrap().trim_end());
    let trailer = making.blocks["bundle"].lines().last().unwrap().to_owned();
    making.json("bundle-trailer", &strict::parse(trailer.as_bytes()).unwrap());
    let receipt = making.receipt_of("memory.export").await;
    making.json("receipt-export", &receipt);
    making.tick();
}

async fn delegated(making: &mut Making, grant: &Value) {
    let (now, random) = (making.world.now(), making.random());
    let (grantee, third) = (agent(GRANTEE), agent(THIRD));
    let mut child = grant.clone();
    let members = child.as_object_mut().unwrap();
    for member in ["signature", "delegable", "status"] {
        members.remove(member);
    }
    child["grant_id"] = json!(GrantId::new(now, &random));
    child["grantee"] = json!(third.did());
    child["issued_at"] = json!(now);
    child["max_items"] = json!(1);
    child["operations"] = json!(["query"]);
    child["parent"] = json!(Hash::of_canonical(grant).unwrap());
    let child: Grant = strict::from_value(child).unwrap();
    let child = SignedGrant::sign(child, &grantee).unwrap().document().clone();
    making.json("child-grant", &child);
    let endpoint = format!("{ORIGIN}/oap/memory/grant");
    let hash = Hash::of_canonical(&child).unwrap();
    let proof = exchange::prove(&third, &endpoint, hash, now, &making.random()).unwrap();
    let request = json!({"grant": child, "chain": [grant], "proof": proof});
    making.world.raw("POST", "/oap/memory/grant", &[], Some(&request)).await.ok();
    making.tick();
}

async fn published_state(making: &mut Making, grant: &Value) {
    let (now, random) = (making.world.now(), making.random());
    let id = grant["grant_id"].as_str().unwrap();
    let path = format!("/oap/memory/grant/{id}");
    let hash = Hash::of_canonical(grant).unwrap();
    let proof = exchange::prove(&agent(GRANTEE), &format!("{ORIGIN}{path}"), hash, now, &random).unwrap();
    making.jwt("state-proof", &proof);
    let authorization = format!("OAP-Proof {proof}");
    let answer = making.world.raw("GET", &path, &[("authorization", &authorization)], None).await.ok();
    making.json("state-response", &answer);
    let revoked = making.world.issue(&making.world.draft(&agent(THIRD))).await;
    let path = format!("/oap/owner/grants/{}/revoke", revoked["grant_id"].as_str().unwrap());
    making.world.owner("POST", &path, None).await.ok();
    making.json("revoked-grant", &revoked);
    let list = making.world.raw("GET", "/oap/memory/status", &[], None).await;
    making.jwt("status-list", std::str::from_utf8(&list.bytes).unwrap());
    making.tick();
}

async fn bridged(making: &mut Making) {
    let draft = json!({
        "from_scope": "work", "to_scope": "personal", "data_categories": ["scheduling"],
        "valid_until": making.world.now().plus(Duration::from_secs(90 * 86_400)),
    });
    let info = making.world.owner("POST", "/oap/owner/bridges", Some(&draft)).await.ok();
    making.json("bridge", info.get("bridge").unwrap_or(&info));
    making.tick();
}

async fn invoked(making: &mut Making) {
    let grantee = agent(GRANTEE);
    let mut envelope = json!({
        "oap_version": "1.0", "request_id": "01J9V8B7H1ZK4D2A0M9R8F0KQY", "timestamp": making.world.now(),
        "principal_did": grantee.did(), "agent_did": grantee.did(), "action": "memory_describe", "input": {},
        "context": {"locale": "en-US", "currency": "EUR", "jurisdiction_user": "DE", "jurisdiction_agent": "DE"},
    });
    let value = grantee.sign(&envelope_bytes(&envelope).unwrap());
    envelope["signature"] = json!({"alg": "EdDSA", "kid": grantee.kid(), "value": value});
    making.json("request-envelope", &envelope);
    let answer = making.world.raw("POST", "/oap/invoke", &[], Some(&envelope)).await.ok();
    making.json("response-envelope", &answer);
    let path = format!("/oap/audit?principal_did={}", grantee.did());
    let log = making.world.raw("GET", &path, &[], None).await.ok();
    making.json("receipt-describe", &log["receipts"][0]);
    making.tick();
}

async fn deleted(making: &mut Making) {
    let ids = making.world.capture(&[note("To be forgotten", &["gone"])]).await;
    making.tick();
    let request = json!({"items": ids});
    let answer = making.world.owner("POST", "/oap/data/delete", Some(&request)).await.ok();
    making.json("deletion-receipt", &answer["deletion_receipt"]);
    let receipt = making.receipt_of("memory.delete").await;
    making.json("receipt-delete", &receipt);
    making.tick();
}

async fn migrated(making: &mut Making) {
    let trailer = strict::parse(making.blocks["bundle-trailer"].as_bytes()).unwrap();
    let finish = json!({
        "bundle_id": trailer["bundle_id"], "principal": PRINCIPAL, "hash": trailer["hash"],
        "counts": trailer["counts"], "imported": 1, "unchanged": 0, "refused": 0,
    });
    let answer = making.world.owner("POST", "/oap/owner/import/finish", Some(&finish)).await.ok();
    making.json("receipt-migration", &answer["receipt"]);
    making.tick();
}

async fn rotated(making: &mut Making) {
    let late = making.world.capture(&[note("Written after the theft", &["late"])]).await;
    making.tick();
    let answer = making.world.owner("POST", "/oap/owner/keys/rotate", Some(&json!({}))).await.ok();
    assert!(answer["trust_token"].is_string());
    let admin = Signer::did_key(&[99; 32]).unwrap();
    let token = answer["trust_token"].as_str().unwrap();
    let revoke = json!({"since": "2026-05-01T12:00:08.000Z"});
    let path = "/oap/owner/keys/key-1/revoke";
    let answer = making.world.as_agent(&admin, token, "POST", path, Some(&revoke)).await.ok();
    let token = answer["trust_token"].as_str().unwrap();
    let did = making.world.gateway.published().did.clone();
    making.json("did-document-rotated", &did);
    making.tick();
    let owner = |method, path, body| making.world.as_agent(&admin, token, method, path, body);
    // As the job does it.
    let (keys, proved) = (Keys(&making.world.gateway), making.world.proved().await);
    let held = keys.held_back(&proved).await.unwrap();
    keys.sign_receipts_anew(&proved, None).await.unwrap();
    let late = late[0].parse().unwrap();
    assert!(held.items.contains(&late));
    keys.reseal_held(&proved, late, held.at).await.unwrap();
    let draft = making.world.draft(&agent(GRANTEE));
    let grant = owner("POST", "/oap/owner/grants", Some(&draft)).await.ok()["grant"].clone();
    let token = making.world.token(&agent(GRANTEE), &grant).await;
    let query = json!({"labels_any": ["late"]});
    let answer = making.world.query(&agent(GRANTEE), &token, &query).await.ok();
    oap_memory::evidence::answer(&answer, &making.world.document()).unwrap();
    let mut integrity = answer["items"][0]["integrity"].clone();
    // Without disclosures: what they are is shown above.
    integrity["sd_jwt"] = json!(integrity["sd_jwt"].as_str().unwrap().split('~').next().unwrap());
    making.json("resealed", &integrity);
}
