//! Grants that a grantee passes on (protocol section 5.2), from their making at the delegator's gateway to their end in the wallet of
//! whom they are for.

use crate::common::*;
use crate::program::{Home, Server, read};
use oap_federation::Content;
use oap_federation::letter::{Letter, SignedLetter};
use oap_federation::notice::RevocationNotice;
use oap_grants::grant::Delegable;
use oap_grants::{Grant, LawfulBasis, Operation, SignedGrant, evidence};
use oap_identity::{Did, DidDocument, GrantId, Hash, LetterId, ScopedDid, Signer, VerificationKey};
use oap_memory::{Filter, TrustLevel};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);

/// A first grant of somebody's, which can be passed on twice over.
fn first(world: &World, granter: &Signer, grantee: &Did) -> Grant {
    Grant {
        version: 1,
        grant_id: GrantId::new(world.now(), &world.fresh()),
        granter: ScopedDid { principal: granter.did().clone(), scope: "personal".parse().unwrap() },
        grantee: grantee.clone(),
        purpose: "testing".to_owned(),
        purpose_codes: Vec::new(),
        filter: Filter { labels_any: Some(vec!["website".to_owned()]), ..Filter::default() },
        max_items: 10,
        issued_at: world.now(),
        not_before: None,
        expires_at: world.now().plus(10 * DAY),
        revocable: true,
        redaction_profile: "oap.profile.projection.memory.v1".to_owned(),
        trust_level: TrustLevel::try_from(2).unwrap(),
        lawful_basis: LawfulBasis::default(),
        operations: BTreeSet::from([Operation::Query]),
        embedding_access: false,
        delegable: Some(Delegable { max_depth: 2 }),
        parent: None,
        budget: None,
        bearer: false,
        status: None,
    }
}

/// A grant that is made from another one, for somebody else.
fn made_from(world: &World, above: &SignedGrant, grantee: &Did) -> Grant {
    Grant {
        grant_id: GrantId::new(world.now(), &world.fresh()),
        grantee: grantee.clone(),
        delegable: None,
        parent: Some(above.hash()),
        ..above.grant().clone()
    }
}

fn sign(grant: Grant, signer: &Signer) -> SignedGrant {
    SignedGrant::sign(grant, signer).unwrap()
}

/// What a DID that is its own key says of itself.
fn document_of(signer: &Signer) -> DidDocument {
    let key = VerificationKey::new(signer.kid().clone(), *signer.public());
    DidDocument::new(signer.did().clone(), vec![key])
}

fn principal() -> Did {
    PRINCIPAL.parse().unwrap()
}

async fn add(world: &World, grant: &Value, chain: &[&Value]) -> Answer {
    let body = json!({"grant": grant, "chain": chain});
    world.owner("POST", "/oap/owner/received", Some(&body)).await
}

async fn delegate(world: &World, grant: Hash, draft: &Value) -> Answer {
    world.owner("POST", &format!("/oap/owner/received/{grant}/delegate"), Some(draft)).await
}

/// The receipts of delegation in the owner's log.
async fn written_down(world: &World) -> Vec<Value> {
    let log = world.owner("GET", "/oap/audit?limit=1000", None).await.ok();
    let receipts = log["receipts"].as_array().unwrap().iter();
    receipts.filter(|receipt| receipt["action_id"] == "memory.delegate").cloned().collect()
}

/// The attack: an owner, or who has their credential, gives more than they were given. Nothing is signed, and nothing written down.
#[tokio::test]
async fn more_than_was_given_is_not_passed_on() {
    let mut world = World::new().await;
    let granter = agent(21);
    let given = sign(first(&world, &granter, &principal()), &granter);
    add(&world, given.document(), &[]).await.ok();
    let draft = json!({
        "grantee": agent(3).did(), "purpose": "Copy", "filter": {"labels_any": ["website"], "labels_all": ["copy"]},
        "max_items": 5, "expires_at": world.now().plus(5 * DAY), "trust_level": 1,
        "redaction_profile": "oap.profile.projection.memory.v1",
    });
    for (member, value, says) in [
        ("filter", json!({}), "filter.labels_any"),
        ("filter", json!({"labels_any": ["website", "health"]}), "filter.labels_any"),
        ("max_items", json!(11), "max_items"),
        ("expires_at", json!(world.now().plus(11 * DAY)), "expires_at"),
        ("trust_level", json!(3), "trust_level"),
        ("redaction_profile", json!("oap.profile.projection.full.v1"), "redaction_profile"),
        ("operations", json!(["query", "export"]), "operations"),
        ("embedding_access", json!(true), "embedding_access"),
        ("bearer", json!(true), "bearer"),
        ("lawful_basis", json!("contract"), "lawful_basis"),
        ("scope", json!("work"), "scope"),
        ("delegable", json!({"max_depth": 2}), "delegable"),
        // Within the other's, and no grant at all.
        ("max_items", json!(0), "max_items"),
        ("expires_at", json!(world.now()), "expires_at"),
        ("purpose", json!(" "), "purpose"),
    ] {
        let mut wider = draft.clone();
        wider[member] = value;
        let refused = delegate(&world, given.hash(), &wider).await.refused(400, "invalid_input");
        assert!(refused["message"].as_str().unwrap().starts_with(says), "{member}: {refused}");
    }
    // Whoever has it already is nobody to pass it on to.
    let mut own = draft.clone();
    own["grantee"] = json!(PRINCIPAL);
    let refused = delegate(&world, given.hash(), &own).await.refused(400, "invalid_input");
    assert!(refused["message"].as_str().unwrap().starts_with("grantee: must be somebody else"), "{refused}");
    assert!(written_down(&world).await.is_empty());

    // What is within it is signed by this principal, and holds for whoever has both.
    let made = delegate(&world, given.hash(), &draft).await.ok();
    let documents: BTreeMap<Did, Arc<DidDocument>> =
        [(granter.did().clone(), Arc::new(document_of(&granter))), (principal(), Arc::new(world.document()))]
            .into();
    let terms =
        evidence::grant(&made["grant"], &[given.document().clone()], &documents, world.now()).unwrap();
    assert_eq!(terms.signer(), &principal());
    assert_eq!(terms.ancestors, [given.hash()]);
    assert_eq!(made["above"], json!([given.document()]));
    let written = written_down(&world).await;
    let decision = &written[0]["policy_decisions"][0];
    assert_eq!(
        (written.len(), &decision["grant_hash"], &decision["delegation"]),
        (1, &made["hash"], &json!([given.hash()]))
    );

    // Not from one that may not be passed on, nor from what ended, nor from nothing.
    let alone = sign(Grant { delegable: None, ..first(&world, &granter, &principal()) }, &granter);
    add(&world, alone.document(), &[]).await.ok();
    let refused = delegate(&world, alone.hash(), &draft).await.refused(400, "invalid_input");
    assert!(refused["message"].as_str().unwrap().starts_with("parent"), "{refused}");
    delegate(&world, Hash::of(b"none"), &draft).await.refused(404, "not_found");
    // During a lockdown nothing is signed that gives access.
    let locked = world.owner("POST", "/oap/owner/lockdown", Some(&json!({}))).await.ok();
    world.token = locked["trust_token"].as_str().unwrap().to_owned();
    delegate(&world, given.hash(), &draft).await.refused(409, "conflict");
    world.owner("POST", "/oap/owner/lockdown/lift", Some(&json!({}))).await.ok();
    let notice = RevocationNotice { grants: vec![given.hash()], revoked_at: world.now() };
    let letter = Letter {
        id: LetterId::from_bytes([1; 16]),
        from: granter.did().clone(),
        to: principal(),
        issued_at: world.now(),
        expires_at: world.now().plus(Duration::from_secs(60)),
        content: Content::RevocationNotice(notice),
    };
    let letter = SignedLetter::sign(&letter, &granter).unwrap();
    let body = serde_json::from_slice(letter.bytes()).unwrap();
    assert_eq!(world.raw("POST", "/oap/peer/letter", &[], Some(&body)).await.ok()["outcome"], "taken");
    delegate(&world, given.hash(), &draft).await.refused(409, "conflict");
    assert_eq!(written_down(&world).await.len(), 1);
}

/// What was passed on comes with those that it was made from, or is not taken.
#[tokio::test]
async fn what_was_passed_on_comes_with_those_above() {
    let world = World::new().await;
    let (granter, delegator, next, mallory) = (agent(21), agent(22), agent(23), agent(24));
    let above = sign(first(&world, &granter, delegator.did()), &granter);
    let other = sign(first(&world, &granter, delegator.did()), &granter);
    let child = sign(made_from(&world, &above, &principal()), &delegator);
    let (above_it, others) = (above.document(), other.document());
    for chain in [&[][..], &[others], &[above_it, above_it], &[above_it, others]] {
        let refused = add(&world, child.document(), chain).await.refused(400, "invalid_input");
        let says = refused["message"].as_str().unwrap();
        assert!(says.starts_with("chain: must be the grants that this one was made from"), "{refused}");
    }
    let six = [above_it; 6];
    let refused = add(&world, child.document(), &six).await.refused(400, "invalid_input");
    assert!(refused["message"].as_str().unwrap().starts_with("chain"), "{refused}");
    let wider = Grant { max_items: 11, ..made_from(&world, &above, &principal()) };
    for forged in [
        sign(made_from(&world, &above, &principal()), &mallory),
        sign(made_from(&world, &above, &principal()), &granter),
        sign(wider, &delegator),
        sign(made_from(&world, &above, mallory.did()), &delegator),
    ] {
        add(&world, forged.document(), &[above_it]).await.refused(400, "invalid_input");
    }
    let none = world.owner("GET", "/oap/owner/received", None).await.ok();
    assert_eq!(none["received"], json!([]));

    let taken = add(&world, child.document(), &[above_it]).await.ok();
    assert_eq!((&taken["granter"], &taken["above"]), (&json!(granter.did()), &json!([above_it])));
    // Of two steps, too; and it is passed on from here no further than it may be.
    let between =
        Grant { delegable: Some(Delegable { max_depth: 1 }), ..made_from(&world, &above, next.did()) };
    let between = sign(between, &delegator);
    let last = sign(made_from(&world, &between, &principal()), &next);
    let taken = add(&world, last.document(), &[above_it, between.document()]).await.ok();
    assert_eq!(taken["above"], json!([above_it, between.document()]));
    let path = format!("/oap/owner/received/{}/remove", child.hash());
    world.owner("POST", &path, Some(&json!({}))).await.ok();
    let kept = world.owner("GET", &format!("/oap/owner/received/{}", last.hash()), None).await.ok();
    assert_eq!(kept["above"], json!([above_it, between.document()]));
    world.chains_hold().await;
}

/// Gateways that serve, and trust each other's certificates.
fn serving<const N: usize>() -> ([Home; N], [Server; N]) {
    let mut homes = [(); N].map(|()| Home::web());
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
    let servers = std::array::from_fn(|at| homes[at].serve(&[]));
    (homes, servers)
}

/// Looks until there is something: the gateways are at work by themselves.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    (0..900)
        .find_map(|_| {
            let found = look();
            if found.is_none() {
                std::thread::sleep(Duration::from_millis(100));
            }
            found
        })
        .unwrap_or_else(|| panic!("never {what}"))
}

/// The state of the only grant in a wallet.
fn state(home: &Home) -> String {
    let received = home.run(&["grant", "received", "--json"]).json();
    received["received"][0]["state"].as_str().unwrap().to_owned()
}

fn texts(found: &Value) -> Vec<String> {
    let items = found["from_peers"]["items"].as_array().unwrap();
    items.iter().map(|item| item["content"].as_str().unwrap().to_owned()).collect()
}

/// Three real gateways: what is asked for is to be passed on, is passed on, is recalled by the third, and ends with the grant above it.
#[test]
fn three_gateways_pass_on_and_end_together() {
    let ([alice, bob, carol], _servers) = serving::<3>();
    let did = |home: &Home| read(home.home().join("did.json"))["id"].as_str().unwrap().to_owned();
    for (text, label) in
        [("The site goes live on 1 June", "website"), ("Mira writes the site's copy", "copy")]
    {
        alice.run(&["item", "add", "--kind", "fact", "--text", text, "--label", label]).ok();
    }
    let from = did(&alice);
    let request = ["grant", "request", "--from", &from, "--purpose", "Website", "--until", "30d"];
    bob.run(&[&request[..], &["--trust-level", "2", "--delegable", "1"]].concat()).ok();
    let task = until("asked", || {
        let asks = alice.run(&["grant", "inbox", "--json"]).json();
        asks["asks"][0]["task"].as_str().map(str::to_owned)
    });
    assert!(alice.run(&["grant", "inbox", "show", &task]).ok().contains("pass it on, 1 deep"));
    let given = alice.run(&["grant", "approve", &task, "--yes", "--json"]).json();
    let hash = given["hash"].as_str().unwrap();
    until("given", || {
        let received = bob.run(&["grant", "received", "--json"]).json();
        received["received"][0]["hash"].as_str().filter(|is| *is == hash).map(str::to_owned)
    });
    let (parent, child) = (bob.path("grant.json"), bob.path("child.json"));
    bob.run(&["grant", "received", "show", hash, "--out", &parent]).ok();
    assert!(bob.run(&["grant", "received", "show", hash]).ok().contains("passed on, 1 deep"));
    let to = did(&carol);
    let pass = ["grant", "delegate", hash, "--to", &to];
    bob.run(&[&pass[..], &["--trust-level", "3"]].concat()).failed(2, "--trust-level");
    bob.run(&[&pass[..], &["--label", "copy", "--until", "7d", "--out", &child]].concat()).ok();
    carol.run(&["grant", "received", "add", &child]).failed(2, "grant");
    carol.run(&["grant", "received", "add", &child, "--chain", &parent]).ok();
    let shown = carol.run(&["grant", "received", "show", "mgr_"]).ok();
    assert!(shown.contains(&did(&bob)) && shown.contains("--chain FILE"), "{shown}");

    let found = carol.run(&["recall", "site", "--deadline", "25", "--json"]).json();
    assert_eq!(texts(&found), ["Mira writes the site's copy"], "{found}");
    let asked = ["query", "--grant", &child, "--chain", &parent, "site", "--json"];
    assert_eq!(carol.run(&asked).json()["items"].as_array().unwrap().len(), 1);
    assert_eq!(state(&carol), "active");

    // The grant above is taken back, and nobody names the one below.
    alice.run(&["grant", "revoke", given["grant"]["grant_id"].as_str().unwrap()]).ok();
    for home in [&bob, &carol] {
        until("told", || (state(home) == "revoked").then_some(()));
        let found = home.run(&["recall", "site", "--deadline", "25", "--json"]).json();
        assert_eq!(found["from_peers"]["peers"], json!([]), "{found}");
    }
    carol.run(&asked).failed(3, "403");
    for home in [&alice, &bob, &carol] {
        home.run(&["audit", "verify"]).ok();
    }
}
