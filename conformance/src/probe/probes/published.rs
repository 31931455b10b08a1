//! What a gateway publishes, and how it answers those who are nobody.

use super::super::context::{Context, Session, expect, post};
use super::super::declared::Place;
use super::super::wire::{Forbidden, Reply, Request};
use super::super::{Failed, Probe, Severity};
use super::{FORMS, probe, public};
use oap_identity::Hash;
use oap_identity::signed::UnverifiedSignature;
use serde_json::{Value, json};

pub(super) fn all() -> Vec<Probe> {
    vec![
        public("memory-manifest", &["ME-07", "ME-16"], Severity::Major, probe!(memory_manifest)),
        public(
            "memory-manifest-signed",
            &["ME-07", "ID-1", "CF-02"],
            Severity::Critical,
            probe!(manifests_signed),
        ),
        public("tool-manifest-agrees", &["ME-07"], Severity::Major, probe!(tool_manifest)),
        public(
            "tool-manifest",
            &["CO-03", "CO-04", "CO-05", "CO-06", "CO-07", "PS-08"],
            Severity::Major,
            probe!(tool_members),
        ),
        public("documents-agree", &["ME-07", "CO-01", "CO-03"], Severity::Major, probe!(documents_agree)),
        public("discover", &["CO-15"], Severity::Minor, probe!(discover)),
        public("did-document", &["ID-1", "CO-01"], Severity::Critical, probe!(did_document)),
        public("anonymous-query", &["ME-08", "ME-14", "CO-13"], Severity::Critical, probe!(anonymous_query)),
        public("anonymous-export", &["ME-08", "EX-1"], Severity::Critical, probe!(anonymous_export)),
        public("errors", &["PM-3", "CO-41"], Severity::Minor, probe!(errors)),
        public(FORMS, &["PM-3", "PM-5", "CO-41"], Severity::Minor, probe!(answer_forms)),
        public("hostile-bodies", &["PM-4"], Severity::Major, probe!(hostile_bodies)),
        public("tls-only", &["CO-09", "ME-04"], Severity::Critical, probe!(tls_only)),
        public("anonymous-audit", &["RC-2", "SP-07"], Severity::Critical, probe!(anonymous_audit)),
    ]
}

async fn memory_manifest(context: &Context<'_>) -> Result<(), Failed> {
    let manifest = context.get("/.well-known/oap-memory.json").await?;
    for member in ["principal", "kinds_supported", "endpoints", "max_grant_size_items", "embedding_profiles"]
    {
        expect(!manifest[member].is_null(), || format!("oap-memory.json: {member} is missing"))?;
    }
    for endpoint in ["query", "grant", "export"] {
        let url = manifest["endpoints"][endpoint].as_str().unwrap_or_default();
        let here = url.starts_with(context.origin());
        expect(here, || format!("oap-memory.json: endpoints.{endpoint} is {url:?}, not at this origin"))?;
    }
    let audited = manifest["confidentiality"]["memorization_audit"]["status"].as_str();
    expect(audited.is_some_and(|status| !status.is_empty()), || {
        "oap-memory.json: confidentiality.memorization_audit says no status".to_owned()
    })?;
    let exchange = &manifest["memory_exchange"];
    expect(exchange["supported"] == true, || {
        "oap-memory.json: memory_exchange.supported is not true".to_owned()
    })?;
    expect(exchange["max_grant_duration_days"].as_u64().is_some_and(|days| days > 0), || {
        "oap-memory.json: memory_exchange.max_grant_duration_days is missing".to_owned()
    })
}

/// The memory manifest and the list of scopes are signed by their principal (protocol section 3).
async fn manifests_signed(context: &Context<'_>) -> Result<(), Failed> {
    for name in ["oap-memory.json", "oap-scopes.json"] {
        let manifest = context.get(&format!("/.well-known/{name}")).await?;
        let document = context.document().await?;
        let wrong = |e: String| Failed::Wrong(format!("{name}: signature: {e}"));
        let signature = UnverifiedSignature::of(&manifest).map_err(|e| wrong(e.to_string()))?;
        let key = document
            .key(signature.kid())
            .ok_or_else(|| wrong("by a key that did.json does not have".to_owned()))?;
        signature.verify(key, context.now()).map_err(|e| wrong(e.to_string()))?;
        expect(manifest["principal"] == document.id().as_str(), || {
            format!("{name}: principal is another DID than did.json's")
        })?;
    }
    Ok(())
}

async fn tool_manifest(context: &Context<'_>) -> Result<(), Failed> {
    let memory = context.get("/.well-known/oap-memory.json").await?;
    let tool = context.get("/.well-known/oap-tool.json").await?;
    if let Some(named) = memory["tool_manifest"]["hash"].as_str() {
        let hash = Hash::of_canonical(&tool).map_err(|e| Failed::Wrong(e.to_string()))?.to_string();
        expect(hash == named, || {
            "oap-tool.json is not the document that oap-memory.json names by hash".to_owned()
        })?;
    }
    let document = context.document().await?;
    let did = tool["tool"]["did"].as_str().unwrap_or_default();
    expect(did == document.id().as_str(), || format!("oap-tool.json is of {did:?}"))
}

/// What is published says the same of DID and addresses (protocol section 3).
async fn documents_agree(context: &Context<'_>) -> Result<(), Failed> {
    let read = async |name: &str| context.get(&format!("/.well-known/{name}")).await;
    let (memory, tool) = (read("oap-memory.json").await?, read("oap-tool.json").await?);
    let (scopes, did) = (read("oap-scopes.json").await?, read("did.json").await?);
    let whole = |url: &Value| match url.as_str() {
        Some(path) if path.starts_with('/') => format!("{}{path}", context.origin()),
        url => url.unwrap_or_default().to_owned(),
    };
    let service = |kind: &str| {
        let mut all = did["service"].as_array().into_iter().flatten();
        whole(all.find(|service| service["type"] == kind).map_or(&Value::Null, |one| &one["serviceEndpoint"]))
    };
    let id = whole(&did["id"]);
    for (what, is, must) in [
        ("oap-memory.json: principal", whole(&memory["principal"]), id.clone()),
        ("oap-scopes.json: principal", whole(&scopes["principal"]), id.clone()),
        ("oap-tool.json: tool.did", whole(&tool["tool"]["did"]), id),
        (
            "did.json: OAPInvocationEndpoint",
            service("OAPInvocationEndpoint"),
            whole(&tool["endpoints"]["invoke"]),
        ),
        (
            "did.json: OAPRevocationStatus",
            service("OAPRevocationStatus"),
            whole(&memory["endpoints"]["revocation"]),
        ),
        (
            "did.json: OAPMemoryExchange",
            service("OAPMemoryExchange"),
            format!("{}/.well-known/oap-memory.json", context.origin()),
        ),
    ] {
        expect(!is.is_empty() && is == must, || format!("{what} is {is:?}, must be {must:?}"))?;
    }
    for name in ["invoke", "audit", "data_delete", "incident"] {
        let url = whole(&tool["endpoints"][name]);
        let is_here = url.strip_prefix(context.origin()).is_some_and(|path| path.starts_with('/'));
        expect(is_here, || format!("oap-tool.json: endpoints.{name} is {url:?}, not at this origin"))?;
    }
    Ok(())
}

/// Longest `description_for_agents`, in code points (OAP-CORE 6.3).
const MAX_DESCRIPTION: usize = 4000;

/// What OAP-CORE 6 and 7 want of the tool manifest, and the list of scopes (RFC 0006 3.3).
async fn tool_members(context: &Context<'_>) -> Result<(), Failed> {
    let tool = context.get("/.well-known/oap-tool.json").await?;
    let wrong = |why: &str| Failed::Wrong(format!("oap-tool.json: {why}"));
    expect(tool["oap_version"] == "1.0", || {
        format!("oap-tool.json: oap_version is {}", tool["oap_version"])
    })?;
    for endpoint in ["invoke", "audit", "data_delete", "incident"] {
        let there = tool["endpoints"][endpoint].as_str().is_some_and(|url| !url.is_empty());
        expect(there, || format!("oap-tool.json: endpoints.{endpoint} is missing"))?;
    }
    let again = context.get("/.well-known/oap-tool.json").await?;
    let described = tool.pointer("/tool/description_for_agents").or(tool.get("description_for_agents"));
    let text = described.and_then(Value::as_str).ok_or_else(|| wrong("description_for_agents is missing"))?;
    expect(text.chars().count() <= MAX_DESCRIPTION, || {
        "oap-tool.json: description_for_agents has more than 4000 code points".to_owned()
    })?;
    expect(tool == again, || "oap-tool.json is another document the second time".to_owned())?;
    let actions = tool["actions"].as_array().filter(|all| !all.is_empty());
    for action in actions.ok_or_else(|| wrong("it has no actions"))? {
        let id = action["id"].as_str().unwrap_or_default();
        for member in ["id", "side_effects", "input_schema", "output_schema", "examples"] {
            expect(!action[member].is_null(), || {
                format!("oap-tool.json: the action {id:?} has no {member}")
            })?;
        }
        let example = action["examples"].as_array().is_some_and(|all| !all.is_empty());
        expect(example, || format!("oap-tool.json: the action {id:?} has no example"))?;
        let risk = &action["risk_class"];
        expect(risk.is_null() || is_acceptable(risk), || {
            format!("oap-tool.json: the action {id:?} has the risk class {risk}")
        })?;
    }
    let risk = &tool["risk_class"];
    expect(is_acceptable(risk), || format!("oap-tool.json: the risk class is {risk}"))?;
    let scopes = context.get("/.well-known/oap-scopes.json").await?;
    expect(scopes.is_object(), || "oap-scopes.json is no object".to_owned())
}

/// A risk class that a tool may have (OAP-CORE 6.2).
fn is_acceptable(risk: &Value) -> bool {
    risk.as_str().is_some_and(|risk| ["minimal", "limited", "high"].contains(&risk))
}

/// Actions are found by the words of their intent (OAP-CORE 14).
async fn discover(context: &Context<'_>) -> Result<(), Failed> {
    let reply = context.post("/oap/discover", &[], &json!({"intent": "query the memory"})).await?;
    expect(reply.status == 200, || format!("/oap/discover: status {}, must be 200", reply.status))?;
    let found = reply.json()["actions"].as_array().map_or(0, Vec::len);
    expect(found > 0, || "/oap/discover: no action for \"query the memory\"".to_owned())
}

async fn did_document(context: &Context<'_>) -> Result<(), Failed> {
    let document = context.document().await?;
    expect(!document.keys().is_empty(), || "did.json has no key that may sign".to_owned())?;
    let raw = context.get("/.well-known/did.json").await?;
    let services = raw["service"].as_array().map(Vec::as_slice).unwrap_or_default();
    for wanted in ["OAPInvocationEndpoint", "OAPRevocationStatus", "OAPMemoryExchange"] {
        let there = services.iter().any(|service| service["type"] == wanted);
        expect(there, || format!("did.json has no service {wanted}"))?;
    }
    let agreement = raw["keyAgreement"].as_array().is_some_and(|keys| !keys.is_empty());
    expect(agreement, || "did.json has no key agreement key".to_owned())
}

/// A grantee who may do what nobody else may: who refuses everybody has refused nothing. `None` without the owner's side, which gives grants; what is
/// for anybody is answered there all the same.
async fn grantee_for(context: &Context<'_>, operation: &str) -> Result<Option<Session>, Failed> {
    if !context.has_setup() {
        return context.get("/.well-known/oap-memory.json").await.map(|_| None);
    }
    let grantee = context.stranger();
    let mut draft = context.draft(&grantee, &context.word(), 2);
    draft["operations"] = json!([operation]);
    context.session(grantee, draft).await.map(Some)
}

/// Nobody asks without a token that holds; whoever has one does.
async fn anonymous_query(context: &Context<'_>) -> Result<(), Failed> {
    let reply = context.post(context.at(Place::Query), &[], &json!({"query": ""})).await?;
    expect(reply.status == 401, || {
        format!("a query without a token: status {} instead of 401", reply.status)
    })?;
    let bearer = [("authorization", format!("Bearer {}", context.word()))];
    let reply = context.post(context.at(Place::Query), &bearer, &json!({"query": ""})).await?;
    expect(reply.status == 401, || format!("a query with a made-up token: status {}", reply.status))?;
    // The token is judged before what is asked.
    for (headers, body) in [(&[][..], "{"), (&[][..], r#"{"colour": 1}"#), (&bearer[..], "{")] {
        let status = context.send(post(context.at(Place::Query), headers, body)).await?.status;
        expect(status == 401, || {
            format!("a malformed query without a token that holds: status {status} instead of 401")
        })?;
    }
    // The same of who has a grant.
    if let Some(session) = grantee_for(context, "query").await? {
        context.answer(&session, &json!({"query": ""})).await?;
    }
    Ok(())
}

/// The same of an export.
async fn anonymous_export(context: &Context<'_>) -> Result<(), Failed> {
    let reply = context.post(context.at(Place::Export), &[], &json!({})).await?;
    expect(reply.status == 401, || {
        format!("an export without a token: status {} instead of 401", reply.status)
    })?;
    if let Some(session) = grantee_for(context, "export").await? {
        let status = context.export_beside(&session, Some("{}")).await?.status;
        expect(status == 200, || {
            format!("an export under a grant for exports: status {status} instead of 200")
        })?;
    }
    Ok(())
}

fn is_error(reply: &Reply) -> Result<(), Failed> {
    let body = reply.json();
    for member in ["error", "message", "request_id"] {
        expect(body[member].is_string(), || format!("an error without {member}"))?;
    }
    Ok(())
}

async fn errors(context: &Context<'_>) -> Result<(), Failed> {
    // Not everything is one.
    context.get("/.well-known/oap-memory.json").await?;
    let path = format!("/oap/memory/{}", context.word());
    let reply = context.send(Request { method: "GET", path, ..Request::default() }).await?;
    expect(reply.status == 404, || format!("a path that is none: status {}", reply.status))?;
    is_error(&reply)?;
    let reply = context.post(context.at(Place::Query), &[], &json!({"query": ""})).await?;
    is_error(&reply)?;
    expect(reply.json()["error"] == "auth_required", || "401 without the code auth_required".to_owned())
}

/// Headers, media types and bodies of every reply of the run, and of some more.
async fn answer_forms(context: &Context<'_>) -> Result<(), Failed> {
    context.nonsense().await;
    let name = "01J9V8B7H1ZK4D2A0M9R8F0KQX";
    let named = [("oap-request-id", name.to_owned())];
    let reply = context.post(context.at(Place::Query), &named, &json!({"query": ""})).await?;
    expect(reply.status == 401, || format!("a query without a token: status {}", reply.status))?;
    let headers = vec![("oap-request-id".to_owned(), name.to_owned())];
    let path = context.at(Place::Query).to_owned();
    let reply = context.send(Request { method: "GET", path, headers, body: None }).await?;
    let allowed = reply.header("allow").unwrap_or_default();
    expect(reply.status == 405 && allowed.contains("POST"), || {
        format!("GET where POST is: status {} instead of 405, Allow: {allowed}", reply.status)
    })?;
    for path in
        ["/.well-known/oap-tool.json", "/.well-known/did.json", context.at(Place::Status), "/oap/audit"]
    {
        let request = Request { method: "GET", path: path.to_owned(), ..Request::default() };
        let reply = context.send(request).await?;
        expect(reply.status == 200, || format!("{path}: status {} instead of 200", reply.status))?;
    }
    // What is not there is a refusal there, too.
    let path = format!("/.well-known/{}.json", context.word());
    context.send(Request { method: "GET", path, ..Request::default() }).await?;
    known_by_tags(context).await?;
    let text = Request {
        method: "POST",
        path: context.at(Place::Grant).to_owned(),
        headers: vec![("content-type".to_owned(), "text/plain".to_owned())],
        body: Some(b"{}".to_vec()),
    };
    let reply = context.send(text).await?;
    expect(reply.status == 400, || format!("a body of text/plain: status {} instead of 400", reply.status))?;
    let named = [("oap-request-id", "not a name".to_owned())];
    let reply = context.post(context.at(Place::Query), &named, &json!({"query": ""})).await?;
    let got = reply.json()["request_id"].as_str().unwrap_or_default().to_owned();
    expect(got.len() == 26, || format!("a request by a name that is none has the request_id {got:?}"))?;
    let deviations = context.deviations();
    expect(deviations.is_empty(), || deviations.join("; "))
}

/// Longest body of whoever shows no credential, in bytes (protocol section 1).
const LONGEST: usize = 128 << 10;

/// What is published has a tag, and is not sent again to whoever names it (protocol section 3).
async fn known_by_tags(context: &Context<'_>) -> Result<(), Failed> {
    let needed = ["oap-memory.json", "oap-tool.json", "oap-scopes.json", "did.json"];
    for name in needed.into_iter().chain(["oap-key-handovers.json", "agent-card.json"]) {
        let path = format!("/.well-known/{name}");
        let get = |headers| Request { method: "GET", path: path.clone(), headers, body: None };
        let reply = context.send(get(Vec::new())).await?;
        if reply.status == 404 && !needed.contains(&name) {
            continue;
        }
        let tag = reply.header("etag").unwrap_or_default();
        expect(!tag.is_empty(), || format!("{name}: no ETag"))?;
        let named = vec![("if-none-match".to_owned(), tag.to_owned())];
        let status = context.send(get(named)).await?.status;
        expect(status == 304, || format!("{name}, with If-None-Match: status {status} instead of 304"))?;
        let another = vec![("if-none-match".to_owned(), "\"nothing\"".to_owned())];
        let reply = context.send(get(another)).await?;
        expect(reply.status == 200 && !reply.bytes.is_empty(), || {
            format!("{name}, with If-None-Match of another tag: status {} instead of 200", reply.status)
        })?;
    }
    Ok(())
}

async fn hostile_bodies(context: &Context<'_>) -> Result<(), Failed> {
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    for (name, body, status) in [
        ("a duplicate key", r#"{"grant": {}, "grant": {}, "proof": ""}"#.to_owned(), 400),
        ("depth 200", deep, 400),
        ("not UTF-8", String::new(), 400),
        ("an array in place of the object", r#"[{}, ""]"#.to_owned(), 400),
        ("an array of 128 KiB", format!(r#"[{{}}, "{}"]"#, "x".repeat(LONGEST - 8)), 400),
        (
            "a byte more than 128 KiB",
            format!(r#"{{"grant": {{}}, "proof": "{}"}}"#, "x".repeat(LONGEST - 25)),
            413,
        ),
        ("four megabytes", format!("\"{}\"", "x".repeat(4 << 20)), 413),
    ] {
        let bytes = if name == "not UTF-8" { vec![0xff, 0xfe, b'{'] } else { body.into_bytes() };
        let headers = vec![("content-type".to_owned(), "application/oap+json".to_owned())];
        let request =
            Request { method: "POST", path: context.at(Place::Grant).to_owned(), headers, body: Some(bytes) };
        match context.send(request).await {
            Ok(reply) => expect(reply.status == status, || {
                format!("{name}: status {} instead of {status}", reply.status)
            })?,
            // A gateway may hang up on a body that it does not want; the next probes see whether it lives.
            Err(Failed::Wrong(_)) if status == 413 => {
                drop(context.get("/.well-known/oap-memory.json").await?)
            }
            Err(other) => return Err(other),
        }
    }
    // What is none of that is taken there.
    grantee_for(context, "query").await.map(drop)
}

/// Anybody sees receipts of anonymous calls and nothing of what was captured or granted.
async fn anonymous_audit(context: &Context<'_>) -> Result<(), Failed> {
    // There is one that is not for anybody.
    if let Some(session) = grantee_for(context, "query").await? {
        let answer = context.answer(&session, &json!({"query": ""})).await?;
        let id = &answer["receipt"]["receipt_id"];
        let own = context.get_as(&session, "/oap/audit").await?.json();
        let mut own = own["receipts"].as_array().into_iter().flatten();
        expect(own.any(|receipt| receipt["receipt_id"] == *id), || {
            "the log of a grantee does not have the receipt of its answer".to_owned()
        })?;
    }
    let listing = context.get("/oap/audit").await?;
    let receipts = listing["receipts"]
        .as_array()
        .ok_or_else(|| Failed::Wrong("the public audit log has no receipts, not even none".to_owned()))?;
    let tells = |receipt: &Value| {
        let mut decisions = receipt["policy_decisions"].as_array().into_iter().flatten();
        receipt["provenance_tags_out"].as_array().is_some_and(|tags| !tags.is_empty())
            || decisions.any(|decision| decision["consumed_grant_id"].is_string())
    };
    expect(!receipts.iter().any(tells), || "the public audit log names items or grants".to_owned())
}

async fn tls_only(context: &Context<'_>) -> Result<(), Failed> {
    // By the way that there must be it is answered.
    context.get("/.well-known/oap-memory.json").await?;
    for (way, name) in [(Forbidden::Plain, "plain HTTP"), (Forbidden::OldTls, "TLS 1.2")] {
        let request =
            Request { method: "GET", path: "/.well-known/oap-memory.json".to_owned(), ..Request::default() };
        let answered = context.answered(way, request).await?;
        let answered =
            answered.ok_or_else(|| Failed::Skipped("plain HTTP on this machine itself".to_owned()))?;
        expect(!answered, || format!("{name} is answered"))?;
    }
    Ok(())
}
