//! `docs/openapi.json` is what the endpoints' types say, it is what the gateway serves, and what the gateway answers is as it says.

use crate::common::*;
use crate::federated::party::Town;
use crate::played::{PlayedPeer, Shown};
use oap_federation::ask::AccessRequest;
use oap_federation::{Content, Letter, SignedLetter};
use oap_gateway::api::{
    Endpoint, access, acks, agents, all, audit, budgets, deletion, devices, disclosures, gates, grants,
    health, holds, items, jobs, keys, lockdown, oauth, openapi, path, peers, policy, recall, selections,
    standing, subscriptions, transfer, witnesses,
};
use oap_gateway::service::Letters;
use oap_gateway::system::config::Config;
use oap_grants::{SignedGrant, status};
use oap_identity::{AskId, GrantId, Hash, ItemId, JobId, LetterId, SubscriptionId};
use oap_memory::receipt::Receipt;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// `OAP_WRITE_DOCS=1` writes it anew.
#[test]
fn the_document_is_written_down() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/openapi.json");
    let document = format!("{}\n", serde_json::to_string_pretty(&openapi::document()).unwrap());
    if std::env::var_os("OAP_WRITE_DOCS").is_some() {
        std::fs::write(path, document).unwrap();
        return;
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(written == document, "docs/openapi.json is out of date: run this test with OAP_WRITE_DOCS=1");
}

#[tokio::test]
async fn anybody_may_read_it() {
    let world = World::new().await;
    let served = world.raw("GET", oap_manifest::path::OPENAPI, &[], None).await.ok();
    assert_eq!(served, openapi::document());
}

/// Asks an endpoint, and sees that its answer is what the document says: status, media type, shape.
struct Walk {
    world: World,
    document: Value,
    seen: BTreeSet<&'static str>,
}

impl Walk {
    async fn ask<E: Endpoint>(&mut self, place: E::Place, parameters: &str, body: Option<Value>) -> Value {
        let path = format!("{}{parameters}", path::<E>(&place));
        let answer = self.world.owner(E::METHOD.as_str(), &path, body.as_ref()).await;
        let said = (answer.status.as_u16(), answer.media_type.as_deref());
        assert_eq!(said, (E::STATUS, Some(E::MEDIA_TYPE)), "{}: {}", E::NAME, answer.body);
        let operation = &self.document["paths"][E::PATH][E::METHOD.as_str().to_ascii_lowercase()];
        let content = &operation["responses"][E::STATUS.to_string()]["content"];
        let schema = &content[E::MEDIA_TYPE]["schema"];
        assert!(!schema.is_null(), "{} is not there", E::NAME);
        let schema = json!({"allOf": [schema], "components": self.document["components"]});
        let validator = jsonschema::draft202012::new(&schema).unwrap();
        // Of lines, the first is the answer.
        let first = answer.bytes.split(|byte| *byte == b'\n').next().unwrap();
        let answer: Value = serde_json::from_slice(first).unwrap();
        let wrong: Vec<String> =
            validator.iter_errors(&answer).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert_eq!(wrong, [""; 0], "{}: {answer}", E::NAME);
        // What the owner's client makes of it.
        serde_json::from_value::<E::Answer>(answer.clone()).unwrap_or_else(|e| panic!("{}: {e}", E::NAME));
        self.seen.insert(E::NAME);
        answer
    }

    async fn get<E: Endpoint<Place = ()>>(&mut self) -> Value {
        self.ask::<E>((), "", None).await
    }

    async fn post<E: Endpoint<Place = ()>>(&mut self, body: Value) -> Value {
        self.ask::<E>((), "", Some(body)).await
    }

    async fn at<E: Endpoint>(&mut self, place: E::Place, body: Value) -> Value {
        self.ask::<E>(place, "", Some(body)).await
    }
}

/// Every endpoint of the owner's, asked once at least.
#[tokio::test]
async fn answers_are_as_it_says() {
    let world = World::with(1, Config { allow_local_dids: true, ..Config::default() }).await;
    let mut walk = Walk { world, document: openapi::document(), seen: BTreeSet::new() };
    let late = "2099-01-01T00:00:00Z";

    let mut item = note("The site goes live on 1 June", &["website"]);
    item["content"]["structured"] = json!({"day": 1.5});
    let written = walk.post::<items::WriteItems>(json!({"items": [item, note("Tea", &["tea"])]})).await;
    let item: ItemId = written["items"][0]["item_id"].as_str().unwrap().parse().unwrap();
    let other: ItemId = written["items"][1]["item_id"].as_str().unwrap().parse().unwrap();
    walk.at::<items::CorrectItem>(item, json!({"item": {"content": {"text": "8 June"}}})).await;
    walk.at::<items::RelabelItem>(item, json!({"labels": ["website", "dates"]})).await;
    walk.at::<items::ConfirmItem>(item, json!({})).await;
    walk.at::<items::RetractItem>(other, json!({})).await;
    walk.at::<items::RestoreItem>(other, json!({})).await;
    walk.at::<items::ResealItem>(item, json!({"dry_run": true})).await;
    walk.at::<items::ResealItem>(item, json!({"always": true})).await;
    walk.at::<items::ResealItem>(item, json!({})).await;

    let grant = walk.world.issue(&walk.world.draft(&agent(2))).await;
    let grant: GrantId = grant["grant_id"].as_str().unwrap().parse().unwrap();
    let draft = walk.world.draft(&agent(2));
    walk.world.ask(&agent(2), &draft, &json!({})).await;
    walk.ask::<grants::IssueGrant>((), "?offline=true", Some(draft.clone())).await;
    walk.post::<grants::PreviewGrant>(draft).await;
    walk.get::<grants::ListGrants>().await;
    walk.ask::<grants::ShowGrant>(grant, "", None).await;
    walk.post::<grants::ResumeGrants>(json!({})).await;
    walk.at::<grants::ConsentToGrant>(grant, json!({"given": true})).await;
    walk.get::<budgets::ListBudgets>().await;
    walk.post::<budgets::RefillBudget>(json!({"grantee": agent(2).did(), "grant": grant})).await;
    walk.get::<policy::ShowPolicy>().await;
    walk.post::<policy::SetPolicy>(json!({"types": {"session_summary": {"kept": true, "ttl_days": 30}}}))
        .await;
    walk.get::<standing::ListProfiles>().await;

    walk.get::<items::ListItems>().await;
    walk.ask::<items::ListItems>((), "?limit=1", None).await;
    walk.ask::<items::ShowItem>(item, "", None).await;
    walk.ask::<items::ExplainItem>(item, "?profile=oap.profile.projection.memory.v1&level=2", None).await;
    walk.ask::<disclosures::ItemHistory>(item, "", None).await;
    walk.post::<disclosures::Who>(json!({"did": agent(2).did()})).await;
    walk.post::<selections::ResolveItems>(json!({"ids": [&item.to_string()[..10]]})).await;
    walk.post::<selections::SearchItems>(json!({"text": "June"})).await;
    walk.post::<recall::RecallItems>(json!({"text": "June"})).await;
    walk.get::<recall::ListLies>().await;
    let named = json!({"items": [other]});
    let labels = json!({"selection": named, "labels": {"add": ["x"]}});
    walk.post::<selections::RelabelItems>(labels).await;
    walk.post::<selections::RetractItems>(json!({"selection": named})).await;

    let receipts = walk.get::<audit::Audit>().await;
    let asked = receipts["receipts"].as_array().unwrap().iter().find(|r| r["action_id"] == "memory.query");
    let decision = asked.unwrap()["policy_decisions"][0]["id"].as_str().unwrap().parse().unwrap();
    walk.ask::<gates::ShowDecision>(decision, "", None).await;
    walk.get::<audit::ListChains>().await;

    let context = json!({"ccc_version": "1.0", "scope_id": "work"});
    walk.post::<gates::SetContext>(context).await;
    walk.get::<gates::ListContexts>().await;
    walk.at::<gates::RemoveContext>("work".parse().unwrap(), json!({})).await;
    let bridge = json!({
        "from_scope": "work", "to_scope": "personal", "data_categories": ["fact"], "valid_until": late,
    });
    let bridge = walk.post::<gates::IssueBridge>(bridge).await;
    walk.get::<gates::ListBridges>().await;
    let bridge = bridge["bridge_id"].as_str().unwrap().parse().unwrap();
    walk.at::<gates::RevokeBridge>(bridge, json!({})).await;
    walk.get::<gates::ListBridges>().await;

    let held = json!({"items": [item], "reason": "legal_hold", "until": late});
    walk.post::<holds::SetHolds>(held).await;
    walk.get::<holds::ListHolds>().await;
    walk.post::<selections::SelectItems>(json!({"selection": {"all": true}})).await;
    walk.post::<holds::ReleaseHolds>(json!({"items": [item]})).await;

    let peer = PlayedPeer::new().await;
    peer.publish(&PlayedPeer::shown(walk.world.now()));
    walk.post::<peers::FindPeer>(json!({"host": peer.host})).await;
    walk.post::<peers::AddPeer>(json!({"peer": peer.did})).await;
    let (named, at) = (json!({"did": peer.did}), walk.world.now());
    let rotated = Shown { keys: vec![(2, None), (1, Some(at))], signer: 2, ..PlayedPeer::shown(at) };
    peer.publish(&rotated);
    let changed = walk.post::<peers::CheckPeer>(named.clone()).await;
    walk.post::<peers::ShowPeer>(named.clone()).await;
    let yes = json!({"did": peer.did, "seen": changed["pending"]["seen"]});
    walk.post::<peers::AcceptPeer>(yes).await;
    walk.get::<peers::ListPeers>().await;
    walk.post::<witnesses::AddWitness>(named.clone()).await;
    walk.get::<witnesses::ListWitnesses>().await;
    walk.post::<witnesses::WitnessFor>(named.clone()).await;
    walk.get::<witnesses::ListWitnessed>().await;
    // Nobody is the witness of their own log, and there is one peer.
    walk.post::<witnesses::SetDemand>(json!({"did": peer.did, "need": 0, "of": []})).await;
    walk.get::<witnesses::ListDemands>().await;
    walk.post::<witnesses::EndWitness>(named.clone()).await;
    walk.post::<witnesses::RemoveWitness>(named.clone()).await;
    walk.post::<peers::RemovePeer>(named).await;

    walk.post::<agents::AddAgent>(json!({"name": "scout", "permission": "memory.write"})).await;
    let scout: agents::AgentRef = "scout".parse().unwrap();
    walk.get::<agents::ListAgents>().await;
    walk.ask::<agents::ShowAgent>(scout.clone(), "", None).await;
    let change = json!({"role": "coordinator", "capacities": {"episodic": 200}});
    walk.at::<agents::SetAgent>(scout.clone(), change).await;
    walk.at::<agents::RotateAgent>(scout.clone(), json!({})).await;
    let recall = json!({"tool": "memory_recall", "arguments": {"query": "june"}});
    walk.at::<agents::CallTool>(scout.clone(), recall).await;
    let learn = json!({"tool": "memory_learn", "arguments": {
        "content": "Tea at four", "source": {"type": "mail", "ref": "from Ann"}, "level": "tool_verified", "scope": "shared"}});
    let learned = walk.at::<agents::CallTool>(scout.clone(), learn).await;
    let waits: ItemId = learned["structured"]["item_id"].as_str().unwrap().parse().unwrap();
    walk.at::<items::RejectItem>(waits, json!({"version": 1})).await;
    walk.ask::<agents::Injected>(scout.clone(), "?limit=5", None).await;
    let desk = json!({"name": "desk", "redirect_uris": ["http://127.0.0.1/cb"]});
    walk.post::<oauth::AddClient>(desk).await;
    walk.get::<oauth::ListClients>().await;
    let asks = "/oauth/authorize?client_id=desk&redirect_uri=http://127.0.0.1/cb&response_type=code&code_challenge_method=S256\
        &code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
    let mut codes = Vec::new();
    for _ in 0..3 {
        let begun = axum::http::Request::get(asks).body(axum::body::Body::empty()).unwrap();
        let begun = tower::ServiceExt::oneshot(walk.world.router.clone(), begun).await.unwrap();
        let header = |name: &str| begun.headers()[name].to_str().unwrap().to_owned();
        let (page, cookie) = (header("location"), header("set-cookie"));
        let cookie = [("cookie", cookie.split(';').next().unwrap())];
        let page = String::from_utf8(walk.world.raw("GET", &page, &cookie, None).await.bytes).unwrap();
        codes
            .push(page.split_once("consent approve ").unwrap().1[..9].parse::<oauth::ConsentCode>().unwrap());
    }
    walk.get::<oauth::ListConsents>().await;
    walk.ask::<oauth::ShowConsent>(codes[0], "", None).await;
    let given = walk.at::<oauth::ApproveConsent>(codes[0], json!({"agent": "scout"})).await;
    walk.at::<oauth::DeclineConsent>(codes[1], json!({})).await;
    let listed = walk.get::<oauth::ListConsents>().await;
    let waiting = listed["waiting"][0]["waiting"].as_str().unwrap().parse().unwrap();
    walk.at::<oauth::DeclineWaiting>(waiting, json!({})).await;
    walk.at::<oauth::EndConsent>(given["consent"].as_str().unwrap().parse().unwrap(), json!({})).await;
    walk.at::<oauth::RemoveClient>("desk".parse().unwrap(), json!({})).await;
    walk.at::<agents::RemoveAgent>(scout, json!({})).await;

    let header = walk.post::<transfer::ExportHeader>(json!({})).await;
    for part in ["items", "grants", "receipts"] {
        walk.post::<transfer::ExportPage>(json!({"part": part})).await;
    }
    let counts = json!({"items": 1, "grants": 0, "receipts": 0});
    let (bundle, hash) = (&header["bundle_id"], Hash::of(b"x"));
    let trailer = json!({
        "bundle_id": bundle, "counts": counts, "lines": 2, "hash": hash, "finished_at": walk.world.now(),
    });
    walk.post::<transfer::ExportSeal>(trailer).await;
    let line = json!({"item": {"item_id": item, "integrity": {}}});
    let chunk = json!({
        "bundle_id": bundle, "principal": PRINCIPAL, "documents": header["documents"], "items": [line],
    });
    walk.post::<transfer::ImportBundle>(chunk).await;
    let records = json!({"records": [{"source": "s", "item": note("Brought", &[])}, {"source": 1}]});
    walk.post::<transfer::ImportRecords>(records).await;
    let finish = json!({
        "bundle_id": bundle, "principal": PRINCIPAL, "hash": hash, "counts": counts,
        "imported": 1, "unchanged": 0, "refused": 0,
    });
    walk.post::<transfer::ImportFinish>(finish).await;

    let copies = tempfile::tempdir().unwrap();
    let kinds = [
        json!({"job": "doctor"}),
        json!({"job": "verify_audit"}),
        json!({"job": "reseal"}),
        json!({"job": "reseal_items"}),
        json!({"job": "audit_memorization"}),
        json!({"job": "delete", "items": ["mem_01HX2QFXR0Q4S8T9V3W7X2Y0Z1"]}),
        json!({"job": "backup", "folder": copies.path().join("copy")}),
    ];
    let mut job: Option<JobId> = None;
    for kind in kinds {
        let begun = walk.post::<jobs::BeginJob>(kind).await;
        let id = begun["job_id"].as_str().unwrap().parse().unwrap();
        walk.ask::<jobs::ShowJob>(id, "?wait=20", None).await;
        job = Some(id);
    }
    let job = job.unwrap();
    walk.get::<jobs::ListJobs>().await;
    walk.ask::<jobs::CancelJob>(job, "", None).await;
    walk.get::<health::ShowStatus>().await;
    walk.get::<health::ShowClock>().await;
    walk.post::<health::AcceptClock>(json!({})).await;

    let mut attested = walk.post::<standing::Attest>(json!({"levels": ["L0"]})).await;
    attested["implementation"]["did"] = json!("did:web:other.example");
    walk.post::<standing::Witness>(attested).await;
    let incident = json!({
        "detected_at": walk.world.now(), "severity": "low", "root_cause": "x", "mitigation": "x", "status": "open",
    });
    walk.post::<standing::ReportIncident>(incident).await;
    walk.post::<standing::Prove>(json!({"endpoint": "https://other.example/g", "grant_hash": hash})).await;
    let request = json!({"method": "POST", "url": "https://other.example/q", "token": "t"});
    walk.post::<standing::Prove>(request).await;

    walk.at::<grants::RevokeGrant>(grant, json!({})).await;
    let gone = walk.post::<deletion::Delete>(json!({"items": [other]})).await;
    let gone = gone["deletion_receipt"]["receipt_id"].as_str().unwrap().parse().unwrap();
    walk.ask::<deletion::ReportDeletion>(gone, "", None).await;
    walk.ask::<items::ShowItem>(other, "", None).await;
    walk.ask::<disclosures::ItemHistory>(other, "", None).await;

    walk.get::<keys::ListKeys>().await;
    let changed = walk.post::<keys::RotateKeys>(json!({})).await;
    walk.world.token = changed["trust_token"].as_str().unwrap().to_owned();
    let changed = walk.at::<keys::RevokeKey>("key-1".parse().unwrap(), json!({})).await;
    walk.world.token = changed["trust_token"].as_str().unwrap().to_owned();

    access_is_answered_as_it_says(&mut walk).await;
    devices_are_answered_as_it_says(&mut walk).await;

    let down = walk.post::<lockdown::LockDown>(json!({"reason": "A laptop was stolen"})).await;
    walk.world.token = down["trust_token"].as_str().unwrap().to_owned();
    walk.get::<lockdown::ShowLockdown>().await;
    walk.post::<lockdown::LiftLockdown>(json!({})).await;

    let unasked: Vec<&str> =
        all().iter().map(|row| row.name).filter(|name| !walk.seen.contains(name)).collect();
    assert_eq!(unasked, [""; 0]);
}

/// Two gateways of one owner, the one of which is asked.
async fn devices_are_answered_as_it_says(walk: &mut Walk) {
    let town = Town::new();
    let (mut phone, laptop, code) = crate::devices::compared(&town).await;
    let world = std::mem::replace(&mut phone.world, World::new().await);
    let before = std::mem::replace(&mut walk.world, world);
    let named = json!({"did": laptop.did});
    walk.post::<devices::AddDevice>(named.clone()).await;
    walk.get::<devices::ListDevices>().await;
    walk.post::<devices::ConfirmDevice>(json!({"did": laptop.did, "code": code})).await;
    let yes = json!({"did": phone.did, "code": code});
    laptop.world.owner("POST", "/oap/owner/devices/confirm", Some(&yes)).await.ok();
    Letters(&laptop.world.gateway).send_due().await.unwrap();
    laptop.world.capture(&[note("Tea", &["tea"])]).await;
    // The grant to the laptop is on its way still: it does not matter here.
    let report = walk.post::<devices::SyncDevice>(named.clone()).await;
    assert_eq!(report["taken"], 1, "{report}");
    walk.post::<devices::ShowDevice>(named.clone()).await;
    walk.post::<devices::RemoveDevice>(named).await;
    walk.world = before;
}

/// What a stranger with a did:key asks for, what is asked of them, and a grant of theirs, whose state is at an address of loopback.
async fn access_is_answered_as_it_says(walk: &mut Walk) {
    let (stranger, now) = (agent(3), walk.world.now());
    let end = now.plus(Duration::from_secs(86_400));
    let ask = |max_items: u32| json!({"purpose": "x", "max_items": max_items, "expires_at": end, "operations": ["query"]});
    for number in 1..=2_u8 {
        let asked = serde_json::from_value(ask(u32::from(number))).unwrap();
        let request = AccessRequest { request: AskId::from_bytes([number; 16]), ask: asked };
        let letter = Letter {
            id: LetterId::from_bytes([number; 16]),
            from: stranger.did().clone(),
            to: PRINCIPAL.parse().unwrap(),
            issued_at: now,
            expires_at: now.plus(Duration::from_secs(60)),
            content: Content::AccessRequest(Box::new(request)),
        };
        let signed = SignedLetter::sign(&letter, &stranger).unwrap();
        let body: Value = serde_json::from_slice(signed.bytes()).unwrap();
        walk.world.raw("POST", oap_manifest::path::LETTER, &[], Some(&body)).await.ok();
    }
    let asks = walk.get::<access::ListAsks>().await;
    let task = |n: usize| -> AskId { asks["asks"][n]["task"].as_str().unwrap().parse().unwrap() };
    walk.ask::<access::ShowAsk>(task(0), "", None).await;
    walk.at::<access::ApproveAsk>(task(0), asks["asks"][0]["proposal"].clone()).await;
    walk.at::<access::DeclineAsk>(task(1), json!({"word": "No"})).await;

    let asked = walk.post::<access::RequestAccess>(json!({"from": stranger.did(), "ask": ask(3)})).await;
    let request: AskId = asked["request"].as_str().unwrap().parse().unwrap();
    walk.ask::<access::ShowAsked>(request, "", None).await;
    walk.at::<access::AskAgain>(request, json!({})).await;
    walk.at::<access::WithdrawAsked>(request, json!({})).await;
    walk.get::<access::ListAsked>().await;
    walk.get::<access::ListLetters>().await;

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}/status", listener.local_addr().unwrap());
    let list = status::publish([].into_iter(), &uri, &stranger, now).unwrap();
    let handler = move || {
        let list = list.clone();
        async move { list }
    };
    let router = axum::Router::new().route("/status", axum::routing::get(handler));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let grant = json!({
        "grant_id": "mgr_01J9V8B7H1ZK4D2A0M9R8F0KQX", "granter": format!("{}#personal", stranger.did()), "grantee": PRINCIPAL,
        "purpose": "x", "filter": {}, "max_items": 5, "issued_at": now, "expires_at": end,
        "operations": ["query", "subscribe"],
        "redaction_profile": "oap.profile.projection.memory.v1", "status": {"status_list": {"idx": 1, "uri": uri}},
        "delegable": {"max_depth": 1},
    });
    let grant = SignedGrant::sign(serde_json::from_value(grant).unwrap(), &stranger).unwrap();
    walk.post::<access::AddReceived>(json!({"grant": grant.document()})).await;
    walk.get::<access::ListReceived>().await;
    walk.ask::<access::ShowReceived>(grant.hash(), "", None).await;
    let checked = walk.at::<access::CheckReceived>(grant.hash(), json!({})).await;
    assert!(checked["checked_at"].is_string(), "{checked}");
    let less = json!({
        "grantee": agent(4).did(), "purpose": "x", "max_items": 1, "expires_at": end,
        "redaction_profile": "oap.profile.projection.memory.v1",
    });
    let passed_on = walk.at::<access::DelegateReceived>(grant.hash(), less).await;
    assert_eq!(passed_on["grant"]["parent"], json!(grant.hash()), "{passed_on}");
    let mut receipt: Receipt = serde_json::from_value(json!({
        "receipt_id": "urn:oap:receipt:01J9V8B7H1ZK4D2A0M9R8F0KQX", "type": "invocation", "timestamp": now,
        "principal_did": stranger.did(), "agent_did": PRINCIPAL, "action_id": "memory.query", "output_hash": Hash::of(b"x"),
        "policy_decisions": [{"id": "pol_01J9V8B7H1ZK4D2A0M9R8F0KQX", "outcome": "allow", "rules": [], "grant_hash": grant.hash()}],
        "previous_receipt_hash": "genesis",
    }))
    .unwrap();
    let answered = receipt.sign(&stranger).unwrap();
    walk.at::<access::NoteAnswer>(grant.hash(), json!({"items": 1, "receipt": receipt})).await;
    walk.post::<acks::SetAcks>(json!({"automatic": true, "grant": grant.hash()})).await;
    walk.get::<acks::ListAcks>().await;
    walk.ask::<acks::ShowAck>(answered, "", None).await;
    walk.at::<acks::GiveAck>(answered, json!({})).await;
    // The granter's gateway is out of reach: it is asked again later.
    let held = walk.at::<subscriptions::Subscribe>(grant.hash(), json!({"window": 60})).await;
    walk.get::<subscriptions::ListSubscriptions>().await;
    let id: SubscriptionId = held["subscription"].as_str().unwrap().parse().unwrap();
    walk.at::<subscriptions::EndSubscription>(id, json!({})).await;
    walk.at::<access::RemoveReceived>(grant.hash(), json!({})).await;
}

/// Where the owner's endpoints are is said once: by their types.
#[test]
fn no_other_room_writes_an_owners_path() {
    let mut folders: Vec<_> = ["cli", "client", "http", "service", "state", "system"]
        .map(|room| std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(room))
        .into();
    let mut looked_at = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if path.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let text = text.split("#[cfg(test)]").next().unwrap_or_default();
            let found =
                ["\"/oap/owner", "\"/oap/data", "\"/oap/audit"].into_iter().find(|of| text.contains(of));
            assert_eq!(found, None, "{}", path.display());
            looked_at += 1;
        }
    }
    assert!(looked_at > 50, "{looked_at}");
}

/// What agents call is in it, too, and what they are answered is as it says.
#[tokio::test]
async fn agents_are_answered_as_it_says() {
    let world = World::new().await;
    let document = openapi::document();
    let new = json!({"name": "scout", "permission": "memory.write"});
    let made = world.owner("POST", "/oap/owner/agents", Some(&new)).await.ok();
    let key = format!("Bearer {}", made["api_key"].as_str().unwrap());
    let call = json!({"tool": "memory_learn", "arguments": {"content": "tea"}});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
    let accept = ("accept", "application/json, text/event-stream");
    let version = ("mcp-protocol-version", "2025-06-18");
    for (path, body, media_type) in
        [("/oap/agent/call", call, oap_gateway::api::MEDIA_TYPE), ("/mcp", message, "application/json")]
    {
        let operation = &document["paths"][path]["post"];
        let fits = |schema: &Value, value: &Value| {
            let schema = json!({"allOf": [schema], "components": document["components"]});
            jsonschema::is_valid(&schema, value)
        };
        let takes = operation["requestBody"]["content"].as_object().unwrap().values().next().unwrap();
        assert!(fits(&takes["schema"], &body) && !fits(&takes["schema"], &json!([])), "{path}");
        let headers = [("authorization", key.as_str()), accept, version];
        let answer = world.raw("POST", path, &headers, Some(&body)).await.ok();
        let gives = &operation["responses"]["200"]["content"][media_type]["schema"];
        assert!(fits(gives, &answer) && !fits(gives, &json!({})), "{path}: {answer}");
    }
}
