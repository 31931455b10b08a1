//! Deletion and revocation travel: the gateways of grantees are told, what they sign is kept, and nobody else has anything to tell.

use crate::common::{ORIGIN, PRINCIPAL, World, agent, note};
use crate::program::{Home, Server, read};
use oap_federation::Outcome;
use oap_federation::content::Content;
use oap_federation::letter::{Letter, SignedLetter};
use oap_federation::notice::{DeletionNotice, RevocationNotice};
use oap_federation::reply::{Reason, Reply};
use oap_gateway::client::{Caller, HomeClient};
use oap_gateway::service::Keys;
use oap_gateway::system::home;
use oap_grants::{Grant, LawfulBasis, Operation, SignedGrant};
use oap_identity::{DeletionId, GrantId, Hash, ItemId, LetterId, ScopedDid, Signer, json as strict};
use oap_memory::{Filter, TrustLevel};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A grant of somebody's to the principal of a world.
fn given(world: &World, granter: &Signer) -> SignedGrant {
    let grant = Grant {
        version: 1,
        grant_id: GrantId::new(world.now(), &world.fresh()),
        granter: ScopedDid { principal: granter.did().clone(), scope: "personal".parse().unwrap() },
        grantee: PRINCIPAL.parse().unwrap(),
        purpose: "testing".to_owned(),
        purpose_codes: Vec::new(),
        filter: Filter::default(),
        max_items: 10,
        issued_at: world.now(),
        not_before: None,
        expires_at: world.now().plus(Duration::from_secs(86_400)),
        revocable: true,
        redaction_profile: "oap.profile.projection.memory.v1".to_owned(),
        trust_level: TrustLevel::STRANGER,
        lawful_basis: LawfulBasis::default(),
        operations: BTreeSet::from([Operation::Query]),
        embedding_access: false,
        delegable: None,
        parent: None,
        budget: None,
        bearer: false,
        status: None,
    };
    SignedGrant::sign(grant, granter).unwrap()
}

/// Puts a grant into the wallet.
async fn keeps(world: &World, grant: &SignedGrant) {
    let body = json!({"grant": grant.document()});
    world.owner("POST", "/oap/owner/received", Some(&body)).await.ok();
}

/// Sends a letter; its reply, which is believed.
async fn letter(world: &World, from: &Signer, id: u8, content: Content) -> Reply {
    let letter = Letter {
        id: LetterId::from_bytes([id; 16]),
        from: from.did().clone(),
        to: PRINCIPAL.parse().unwrap(),
        issued_at: world.now(),
        expires_at: world.now().plus(Duration::from_secs(600)),
        content,
    };
    let signed = SignedLetter::sign(&letter, from).unwrap();
    let body = strict::parse(signed.bytes()).unwrap();
    let answer = world.raw("POST", "/oap/peer/letter", &[], Some(&body)).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    Reply::verify(&answer.bytes, signed.hash(), &world.document(), world.now()).unwrap()
}

fn deleted(items: &[ItemId], world: &World) -> Content {
    let (deletion, items) = (DeletionId::from_bytes([9; 16]), items.to_vec());
    Content::DeletionNotice(DeletionNotice { deletion, items, deleted_at: world.now() })
}

fn revoked(grant: Hash, world: &World) -> Content {
    Content::RevocationNotice(RevocationNotice { grants: vec![grant], revoked_at: world.now() })
}

async fn receipts(world: &World) -> usize {
    world.owner("GET", "/oap/audit?limit=1000", None).await.ok()["receipts"].as_array().unwrap().len()
}

async fn deletions(world: &World) -> usize {
    let all = world.owner("GET", "/oap/audit?limit=1000", None).await.ok();
    all["receipts"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|receipt| receipt["action_id"] == "memory.delete")
        .count()
}

/// The attack: whoever never gave this owner a grant, or means somebody else's, makes the gateway do nothing.
#[tokio::test]
async fn who_gave_nothing_has_nothing_to_tell() {
    let world = World::new().await;
    let (granter, stranger) = (agent(21), agent(22));
    let grant = given(&world, &granter);
    keeps(&world, &grant).await;
    let mine: ItemId = world.capture(&[note("Mine", &[])]).await.remove(0).parse().unwrap();
    let before = receipts(&world).await;
    for (id, content) in [(1, deleted(&[mine], &world)), (2, revoked(grant.hash(), &world))] {
        let reply = letter(&world, &stranger, id, content).await;
        assert_eq!((reply.outcome, reply.reason), (Outcome::Refused, Some(Reason::Unknown)));
        assert!(reply.deletion_receipt.is_none());
    }
    // What is here is the owner's, whoever says that it is deleted: no letter erases it, and no receipt says that it is not there.
    let reply = letter(&world, &granter, 3, deleted(&[mine], &world)).await;
    assert_eq!((reply.outcome, reply.reason), (Outcome::Refused, Some(Reason::NotSupported)));
    assert_eq!(receipts(&world).await, before);
    world.owner("GET", &format!("/oap/owner/items/{mine}"), None).await.ok();
    let received = world.owner("GET", "/oap/owner/received", None).await.ok();
    assert!(received["received"][0]["revoked_at"].is_null(), "{received}");
    // Nor does the answer tell whether it is still there.
    world.owner("POST", "/oap/data/delete", Some(&json!({"items": [mine]}))).await.ok();
    let reply = letter(&world, &granter, 4, deleted(&[mine], &world)).await;
    assert_eq!((reply.outcome, reply.reason), (Outcome::Refused, Some(Reason::NotSupported)));
    assert!(reply.deletion_receipt.is_none());
}

#[tokio::test]
async fn a_granter_is_answered_with_a_receipt_of_its_own() {
    let world = World::new().await;
    let granter = agent(21);
    let grant = given(&world, &granter);
    keeps(&world, &grant).await;
    let items = [ItemId::from_bytes([1; 16]), ItemId::from_bytes([2; 16])];
    let reply = letter(&world, &granter, 1, deleted(&items, &world)).await;
    assert_eq!(reply.outcome, Outcome::Taken);
    let receipt = reply.deletion_receipt.clone().unwrap();
    let verified = oap_memory::deletion::verify(&receipt, &world.document(), world.now()).unwrap();
    assert_eq!(verified.receipt.scope.cascade.not_found, items);
    assert!(verified.receipt.scope.items.is_empty(), "nothing was kept, and so nothing was erased");
    // Once in effect, however often it comes.
    let again = letter(&world, &granter, 1, deleted(&items, &world)).await;
    assert_eq!(again.deletion_receipt, reply.deletion_receipt);
    assert_eq!(deletions(&world).await, 1);
    // So it is in a letter of its own, which is what one is that was signed anew after the first was forgotten.
    let content = deleted(&items, &world);
    world.clock.advance(Duration::from_secs(1));
    let anew = letter(&world, &granter, 5, content).await;
    assert_eq!(anew.deletion_receipt, reply.deletion_receipt);
    assert_eq!(deletions(&world).await, 1);
    // Another deletion is another thing, and neither is one of this owner's.
    let other = letter(&world, &granter, 6, deleted(&items[..1], &world)).await;
    assert_ne!(other.deletion_receipt, reply.deletion_receipt);
    assert_eq!(deletions(&world).await, 2);
    let id = receipt["receipt_id"].as_str().unwrap();
    world.owner("GET", &format!("/oap/owner/deletions/{id}"), None).await.refused(404, "not_found");
    let reply = letter(&world, &granter, 2, revoked(grant.hash(), &world)).await;
    assert_eq!(reply.outcome, Outcome::Taken);
    let received = world.owner("GET", "/oap/owner/received", None).await.ok();
    assert!(received["received"][0]["revoked_at"].is_string(), "{received}");
    world.chains_hold().await;
}

/// What was signed with a key that was compromised since is signed anew, and says the same.
#[tokio::test]
async fn a_confirmation_outlives_its_key() {
    let world = World::new().await;
    let granter = agent(21);
    keeps(&world, &given(&world, &granter)).await;
    let since = world.now();
    world.clock.advance(Duration::from_secs(60));
    let content = deleted(&[ItemId::from_bytes([1; 16])], &world);
    let first = letter(&world, &granter, 1, content.clone()).await.deletion_receipt.unwrap();
    world.clock.advance(Duration::from_secs(60));
    Keys(&world.gateway).revoke_key(&world.proved().await, "key-1".into(), Some(since)).await.unwrap();
    assert!(oap_memory::deletion::verify(&first, &world.document(), world.now()).is_err());
    let again = letter(&world, &granter, 2, content).await.deletion_receipt.unwrap();
    oap_memory::deletion::verify(&again, &world.document(), world.now()).unwrap();
    for member in ["receipt_id", "completed_at", "scope"] {
        assert_eq!(again[member], first[member], "{member}");
    }
}

/// Of a grantee that is its own key nothing can be proved; who was shown nothing is not told.
#[tokio::test]
async fn who_was_shown_something_is_in_the_report() {
    let world = World::new().await;
    let ids = world.capture(&[note("Tea", &["tea"]), note("Oil the car", &["car"])]).await;
    for (grantee, label) in [(agent(2), "tea"), (agent(3), "car")] {
        let mut draft = world.draft(&grantee);
        draft["filter"] = json!({"labels_any": [label]});
        world.ask(&grantee, &draft, &json!({})).await;
    }
    let gone = world.owner("POST", "/oap/data/delete", Some(&json!({"items": [ids[0]]}))).await.ok();
    assert!(gone["cascade_report"].get("told").is_none(), "{gone}");
    assert_eq!(gone["deletion_receipt"]["scope"]["subprocessors_propagated_to"], json!([]));
    let id = gone["deletion_receipt"]["receipt_id"].as_str().unwrap();
    let report = world.owner("GET", &format!("/oap/owner/deletions/{id}"), None).await.ok();
    let grantees = report["grantees"].as_array().unwrap();
    assert_eq!(grantees.len(), 1, "{report}");
    assert_eq!(
        (&grantees[0]["grantee"], &grantees[0]["state"], &grantees[0]["items"]),
        (&json!(agent(2).did()), &json!("unprovable"), &json!([ids[0]]))
    );
    // Where nobody was shown anything, it says so; of what never was, nothing.
    let unseen = world.capture(&[note("Unseen", &[])]).await;
    let gone = world.owner("POST", "/oap/data/delete", Some(&json!({"items": unseen}))).await.ok();
    let id = gone["deletion_receipt"]["receipt_id"].as_str().unwrap();
    let report = world.owner("GET", &format!("/oap/owner/deletions/{id}"), None).await.ok();
    assert_eq!((&report["grantees"], &report["deletion"]), (&json!([]), &json!(id)));
    let never = DeletionId::from_bytes([3; 16]);
    let refused = world.owner("GET", &format!("/oap/owner/deletions/{never}"), None).await;
    let refused = refused.refused(404, "not_found");
    assert!(refused["message"].as_str().unwrap().contains("receipt_id"), "{refused}");
    let letters = world.owner("GET", "/oap/owner/letters", None).await.ok();
    assert_eq!(letters["letters"], json!([]), "nobody can be written to");
    assert!(world.gateway.url("").starts_with(ORIGIN));
}

/// Two gateways that serve, and trust each other's certificates.
fn pair() -> ([Home; 2], [Server; 2]) {
    let mut homes = [Home::web(), Home::web()];
    let mut authorities = String::new();
    for home in &homes {
        // Its certificate is made by its first start.
        home.serve(&[]).stop();
        authorities += &std::fs::read_to_string(home.home().join("tls/cert.pem")).unwrap();
    }
    for home in &mut homes {
        let file = home.path("authorities.pem");
        std::fs::write(&file, &authorities).unwrap();
        home.flags = vec!["--trust-ca".into(), file, "--allow-local-dids".into()];
    }
    let servers = [homes[0].serve(&[]), homes[1].serve(&[])];
    (homes, servers)
}

/// Asks again until it is so; a letter has its time.
fn until(what: &str, mut look: impl FnMut() -> Option<Value>) -> Value {
    for _ in 0..900 {
        if let Some(found) = look() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("never {what}");
}

async fn call(home: &Home, method: &str, path: &str, body: Option<&Value>) -> Value {
    let flags = BTreeMap::new();
    let owner = HomeClient::connect(home::Home::new(home.home()), &flags, Caller::default()).await.unwrap();
    owner.call(method, path, &[], body).await.unwrap()
}

#[test]
fn a_deletion_and_a_revocation_travel_to_the_grantee() {
    oap_gateway::system::tls::install();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let ([granter, grantee], [server, gone]) = pair();
    let did = read(grantee.home().join("did.json"))["id"].as_str().unwrap().to_owned();
    let add = |text: &str| {
        let added = granter.run(&["item", "add", "--kind", "fact", "--text", text, "--json"]).json();
        added["items"][0]["item_id"].as_str().unwrap().to_owned()
    };
    let (tea, coffee) = (add("tea at four"), add("coffee at nine"));
    let (file, origin) = (granter.path("grant.json"), granter.origin());
    granter
        .run(&[
            "grant",
            "issue",
            "--to",
            &did,
            "--purpose",
            "x",
            "--until",
            "30d",
            "--trust-level",
            "2",
            "--out",
            &file,
        ])
        .ok();
    let grant = read(&file);
    let body = json!({"grant": grant});
    runtime.block_on(call(&grantee, "POST", "/oap/owner/received", Some(&body)));
    for words in ["tea", "coffee"] {
        grantee.run(&["query", &origin, "--grant", &file, words]).ok();
    }

    let delete = |item: &str| {
        let done = granter.run(&["delete", "--item", item, "--yes", "--json"]).json();
        assert_eq!(done["cascade_report"]["told"], json!([did]), "{done}");
        let receipt = &done["deletion_receipt"];
        assert_eq!(receipt["scope"]["subprocessors_propagated_to"], json!([did]), "{done}");
        receipt["receipt_id"].as_str().unwrap().to_owned()
    };
    let told = |id: &str| granter.run(&["delete", "--report", id, "--json"]).json()["grantees"][0].clone();
    let first = delete(&tea);
    let confirmed = until("confirmed", || Some(told(&first)).filter(|told| told["state"] == "confirmed"));
    let cascade = &confirmed["deletion_receipt"]["scope"]["cascade"];
    assert_eq!((&cascade["not_found"], &confirmed["grantee"]), (&json!([tea]), &json!(did)), "{confirmed}");

    // A gateway that is away is told when it is back.
    gone.kill();
    let second = delete(&coffee);
    let waiting = until("tried", || Some(told(&second)).filter(|told| told["failure"].is_string()));
    assert_eq!(waiting["state"], "waiting", "{waiting}");
    assert!(granter.run(&["delete", "--report", &second]).ok().contains("waiting"));
    // It is told after a kill of the granter's too: the letter was put in the deletion's own transaction.
    server.kill();
    let servers = [granter.serve(&[]), grantee.serve(&[])];
    until("confirmed", || Some(told(&second)).filter(|told| told["state"] == "confirmed"));

    granter.run(&["lockdown", "--yes"]).ok();
    until("revoked", || {
        let received = runtime.block_on(call(&grantee, "GET", "/oap/owner/received", None));
        Some(received["received"][0]["revoked_at"].clone()).filter(Value::is_string)
    });
    for home in [&granter, &grantee] {
        home.run(&["audit", "verify"]).ok();
    }
    drop(servers);
}
