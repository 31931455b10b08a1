//! A store that an earlier version made opens, says what it said, and goes on.
//!
//! `OAP_WRITE_STORE=name cargo test --workspace --test gateway former_stores::` writes one of this version into `tests/stores/name`: do
//! so before a change of what is kept, and add the name to [`MADE_BY`].

use crate::common::*;
use oap_gateway::Config;
use oap_gateway::state::owner::Permission;
use oap_identity::random::Seeded;
use oap_identity::signed::sign_document;
use oap_identity::{Hash, ItemId, Random, Signer, Timestamp};
use oap_store::{
    Engine, EngineKind, FileVault, Master, Op, OwnedPairs, Pairs, Range, Raw, Space, Store, StoreError,
    Table, Tx,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// The stores that are kept, by the commit whose program made each.
const MADE_BY: [&str; 2] = ["b8d02ab", "45312c9"];
const DAY: Duration = Duration::from_secs(86_400);

fn master() -> Master {
    Master::KeyFile([3; 32].into())
}

fn kept(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stores").join(name)
}

async fn engine(folder: &Path) -> Arc<dyn Engine> {
    loop {
        match EngineKind::Redb.open(&folder.join("store"), &Space::endless()) {
            // What a world that ended did beside its answers lets go of its store when it is done.
            Err(StoreError::Locked) => tokio::task::yield_now().await,
            opened => return opened.unwrap(),
        }
    }
}

fn admin() -> Signer {
    Signer::did_key(&[99; 32]).unwrap()
}

fn random() -> Arc<dyn Random> {
    Arc::new(Seeded::new(77))
}

fn store(folder: &Path, engine: impl Engine) -> Store {
    let vault = FileVault::open(&folder.join("vault"), &master()).unwrap();
    Store::open(engine, vault, random()).unwrap()
}

/// A kept store, unpacked.
fn unpacked(name: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in ["vault", "store"] {
        let packed = std::fs::read(kept(name).join(format!("{file}.zst"))).unwrap();
        let bytes = zstd::decode_all(&packed[..]).unwrap();
        let place = if file == "store" { folder.path().join("store") } else { folder.path().to_owned() };
        std::fs::create_dir_all(&place).unwrap();
        let name = if file == "store" { STORE_FILE } else { "vault" };
        std::fs::write(place.join(name), bytes).unwrap();
    }
    folder
}

/// How redb names its file.
const STORE_FILE: &str = "store.redb";

/// How many worlds were opened.
static OPENED: AtomicU64 = AtomicU64::new(1);

async fn opened(folder: &Path, at: Timestamp) -> World {
    let world = World::open_at(store(folder, engine(folder).await), Config::default(), random(), at).await;
    // Proofs that no world before it has used.
    world.proofs.store(1000 * OPENED.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
    world
}

/// Something of every kind that is kept.
async fn live(world: &World) {
    let ids = world
        .capture(&[
            note("Tea at four", &["shared"]),
            note("Oil the car", &["shared", "chores"]),
            note("The budget", &["sealed"]),
            note("Gone soon", &["shared"]),
            json!({"kind": "fact", "content": {"text": "Ann lives in Graz", "structured": {"city": "Graz"}},
                "subject_entity_id": "did:web:ann.example", "labels": ["people"], "provenance": {"confidence": 0.9}}),
        ])
        .await;
    let item = async |item: &str, event: &str, body: Value| {
        world.owner("POST", &format!("/oap/owner/items/{item}/{event}"), Some(&body)).await.ok()
    };
    world.clock.advance(Duration::from_secs(60));
    item(&ids[0], "correct", json!({"item": {"content": {"text": "Tea at five"}}})).await;
    item(&ids[0], "confirm", json!({})).await;
    item(&ids[1], "relabel", json!({"labels": ["shared", "garage"]})).await;
    item(&ids[2], "retract", json!({})).await;
    let records = json!([
        {"source": "chat/1", "item": note("From a chat", &["chat"])},
        {"source": "chat/2", "item": note("And erased", &["chat"])},
    ]);
    let imported =
        world.owner("POST", "/oap/owner/import/records", Some(&json!({"records": records}))).await.ok();
    let erased = imported["outcomes"][1]["imported"].clone();
    world.owner("POST", "/oap/data/delete", Some(&json!({"items": [ids[3], erased]}))).await.ok();
    let hold = json!({"items": [ids[4]], "reason": "litigation", "until": world.now().plus(100 * DAY)});
    world.owner("POST", "/oap/owner/holds", Some(&hold)).await;
    let context = json!({"ccc_version": "1.0", "scope_id": "personal"});
    world.owner("POST", "/oap/owner/contexts", Some(&context)).await.ok();
    let bridge = json!({"from_scope": "work", "to_scope": "personal", "data_categories": ["scheduling"],
        "valid_until": world.now().plus(10 * DAY)});
    world.owner("POST", "/oap/owner/bridges", Some(&bridge)).await.ok();
    for (name, permission) in [("scout", "memory.write"), ("gone", "memory.read")] {
        let new = json!({"name": name, "permission": permission});
        world.owner("POST", "/oap/owner/agents", Some(&new)).await.ok();
    }
    world.owner("POST", "/oap/owner/agents/gone/remove", None).await.ok();
    for (tool, arguments) in
        [("memory_learn", json!({"content": "Rain at noon"})), ("memory_recall", json!({"query": "rain"}))]
    {
        let call = json!({"tool": tool, "arguments": arguments});
        world.owner("POST", "/oap/owner/agents/scout/call", Some(&call)).await.ok();
    }

    let mut draft = world.draft(&agent(2));
    draft["filter"] = json!({"labels_any": ["shared", "garage"]});
    draft["delegable"] = json!({"max_depth": 1});
    let grant = world.issue(&draft).await;
    let token = world.token(&agent(2), &grant).await;
    world.query(&agent(2), &token, &json!({"query": "tea"})).await.ok();
    let mut child = grant.clone();
    for member in ["signature", "delegable", "status"] {
        child.as_object_mut().unwrap().remove(member);
    }
    child["grant_id"] = json!("mgr_01HX2QFXR0Q4S8T9V3W7X2Y0Z1");
    child["grantee"] = json!(agent(3).did());
    child["parent"] = json!(Hash::of_canonical(&grant).unwrap());
    sign_document(&mut child, &agent(2)).unwrap();
    let exchanged = world.exchange_with(&agent(3), &child, &[grant]).await.ok();
    let token = exchanged["memory_grant_jwt"].as_str().unwrap();
    world.query(&agent(3), token, &json!({})).await.ok();
    let ended = world.issue(&world.draft(&agent(4))).await;
    let revoke = format!("/oap/owner/grants/{}/revoke", ended["grant_id"].as_str().unwrap());
    world.owner("POST", &revoke, Some(&json!({}))).await.ok();
    world.owner("POST", "/oap/owner/keys/rotate", Some(&json!({}))).await.ok();
}

/// What a store says of all that, in its own words.
async fn said(world: &World) -> Value {
    let mut said = serde_json::Map::new();
    for path in [
        "/oap/owner/items",
        "/oap/owner/grants",
        "/oap/owner/keys",
        "/oap/owner/holds",
        "/oap/owner/agents",
        "/oap/owner/bridges",
        "/oap/owner/contexts",
    ] {
        said.insert(path.to_owned(), anew(world, "GET", path, None).await.body);
    }
    for chain in ["personal", "@anonymous", "@agents"] {
        let path = format!("/oap/audit?chain={chain}&from=0&limit=1000");
        said.insert(path.clone(), anew(world, "GET", &path, None).await.ok());
    }
    let listed = said["/oap/owner/items"].clone();
    for item in listed["items"].as_array().unwrap() {
        let path = format!("/oap/owner/items/{}", item["item_id"].as_str().unwrap());
        said.insert(path.clone(), anew(world, "GET", &path, None).await.body);
    }
    Value::Object(said)
}

/// Whether all is there that was there before. A later version may say more.
fn keeps(before: &Value, now: &Value) -> bool {
    match (before, now) {
        (Value::Object(before), Value::Object(now)) => {
            before.iter().all(|(name, before)| now.get(name).is_some_and(|now| keeps(before, now)))
        }
        (Value::Array(before), Value::Array(now)) => {
            before.len() == now.len() && before.iter().zip(now).all(|(before, now)| keeps(before, now))
        }
        _ => before == now,
    }
}

/// As the owner, whose token is made anew: a rotation ends the one before.
async fn anew(world: &World, method: &str, path: &str, body: Option<&Value>) -> Answer {
    let admin = admin();
    let token = world.gateway.trust_token(&admin, Permission::Admin).unwrap();
    world.as_agent(&admin, &token, method, path, body).await
}

/// What a grantee is answered: the items that are shown, without what is fresh in each answer.
async fn answered(world: &World, said: &Value) -> Vec<String> {
    let grants = said["/oap/owner/grants"]["grants"].as_array().unwrap();
    let of = |grantee: u8| {
        let did = json!(agent(grantee).did());
        let found = grants.iter().find(|info| info["grant"]["grantee"] == did && info["state"] == "active");
        found.unwrap()["grant"].clone()
    };
    let token = world.token(&agent(2), &of(2)).await;
    let mut texts = texts(&world.query(&agent(2), &token, &json!({})).await.ok());
    texts.sort();
    texts
}

#[tokio::test]
async fn a_store_of_an_earlier_version_says_what_it_said_and_goes_on() {
    if let Some(name) = std::env::var_os("OAP_WRITE_STORE") {
        return write(&kept(&name.into_string().unwrap())).await;
    }
    for name in MADE_BY {
        let folder = unpacked(name);
        let expected: Value =
            serde_json::from_slice(&std::fs::read(kept(name).join("said.json")).unwrap()).unwrap();
        let later = Timestamp::from_millis(START).plus(DAY);
        for time in 0..2 {
            let world = opened(folder.path(), later).await;
            let now = said(&world).await;
            for (path, before) in expected.as_object().unwrap() {
                assert!(
                    keeps(before, &now[path]),
                    "{name}, opened for the {time}th time: {path}: {before}, {}",
                    now[path]
                );
            }
        }
        let world = opened(folder.path(), later).await;
        assert_eq!(answered(&world, &expected).await, ["Oil the car", "Tea at five"]);
        // It goes on, and what is new follows what was there.
        anew(&world, "POST", "/oap/owner/items", Some(&json!({"items": [note("New tea", &["shared"])]})))
            .await
            .ok();
        assert_eq!(answered(&world, &expected).await, ["New tea", "Oil the car", "Tea at five"]);
        let admin = admin();
        let token = world.gateway.trust_token(&admin, Permission::Admin).unwrap();
        let report = world.job_as(&admin, &token, &json!({"job": "doctor"})).await;
        let findings = report["findings"].as_array().unwrap();
        assert!(findings.iter().all(|part| part["wrong"] == json!([])), "{report}");
        let forward = findings.iter().find(|part| part["part"] == "earlier version");
        let note = forward.and_then(|part| part["note"].as_str()).unwrap_or_default();
        assert!(note.contains("schema_3: 1 rows"), "{report}");
    }
}

/// An engine that fails after so many batches, as a program that is killed does.
struct Killed {
    engine: Arc<dyn Engine>,
    left: AtomicUsize,
}

impl Engine for Killed {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.engine.get(key)
    }
    fn scan<'a>(&'a self, prefix: &[u8], from: &[u8], descending: bool) -> Pairs<'a> {
        self.engine.scan(prefix, from, descending)
    }
    fn apply(&self, batch: Vec<Op>) -> Result<(), StoreError> {
        let lives = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        lives.map_err(|_| StoreError::Stopped)?;
        self.engine.apply(batch)
    }
    fn snapshot(&self) -> Result<OwnedPairs, StoreError> {
        self.engine.snapshot()
    }
}

/// A program that is killed while it brings a store forward leaves one that the next start brings forward.
#[tokio::test]
async fn what_was_broken_off_is_done_at_the_next_start() {
    const FORMER: Table<Vec<u8>, Vec<u8>, Raw> = Table::new(25);
    const DONE: Table<String, Vec<u8>, Raw> = Table::new(46);
    let later = Timestamp::from_millis(START).plus(DAY);
    let mut killed = 0;
    for batches in 0.. {
        let folder = unpacked(MADE_BY[0]);
        // A source as the first versions kept it: an item, and what it said, under the hash of where it came from.
        let world = opened(folder.path(), later).await;
        let old = note("Of an old import", &[]);
        let written = anew(&world, "POST", "/oap/owner/items", Some(&json!({"items": [old]}))).await.ok();
        let item: ItemId = written["items"][0]["item_id"].as_str().unwrap().parse().unwrap();
        drop(world);
        let former = store(folder.path(), engine(folder.path()).await);
        let says = Hash::of_canonical(&old).unwrap();
        let done: Vec<String> = DONE.keys(&former, Range::all()).map(Result::unwrap).collect();
        let put = move |tx: &mut Tx| {
            for name in &done {
                DONE.delete(tx, name);
            }
            let key = Sha256::digest("old/1")[..20].to_vec();
            FORMER.put(tx, &key, &[item.to_bytes().as_slice(), says.as_bytes()].concat())
        };
        former.transact(put).await.unwrap();
        drop(former);
        let breaks = Killed { engine: engine(folder.path()).await, left: AtomicUsize::new(batches) };
        let broken = {
            let store = store(folder.path(), breaks);
            tokio::spawn(async move { drop(World::open_at(store, Config::default(), random(), later).await) })
                .await
        };
        killed += usize::from(broken.is_err());
        let world = opened(folder.path(), later).await;
        let records = json!({"records": [{"source": "old/1", "item": old}]});
        let again = anew(&world, "POST", "/oap/owner/import/records", Some(&records)).await.ok();
        assert_eq!(again["outcomes"][0]["unchanged"], json!(item), "killed after {batches}: {again}");
        if broken.is_ok() {
            break;
        }
    }
    assert!(killed >= 3, "killed {killed} times");
}

async fn write(place: &Path) {
    let folder = tempfile::tempdir().unwrap();
    FileVault::create(&folder.path().join("vault"), &master(), &*random()).unwrap();
    let world =
        World::on(store(folder.path(), engine(folder.path()).await), Config::default(), random()).await;
    live(&world).await;
    let said = said(&world).await;
    drop(world);
    std::fs::create_dir_all(place).unwrap();
    std::fs::write(place.join("said.json"), serde_json::to_vec_pretty(&said).unwrap()).unwrap();
    for (file, from) in
        [("vault", folder.path().join("vault")), ("store", folder.path().join("store").join(STORE_FILE))]
    {
        let packed = zstd::encode_all(&std::fs::read(from).unwrap()[..], 19).unwrap();
        std::fs::write(place.join(format!("{file}.zst")), packed).unwrap();
    }
}
