//! Subscriptions, as a grantee makes and reads them (protocol section 17).

use super::super::context::{Context, Session, expect};
use super::super::refusals::Family;
use super::super::wire::Reply;
use super::super::{Failed, Probe, Severity};
use super::{ids, note, owned, probe, twice};
use crate::possession;
use oap_identity::{Hash, Signer, SubscriptionId, Timestamp, json as strict};
use serde_json::{Value, json};

/// Where a grantee subscribes.
const SUBSCRIBE: &str = "/oap/memory/subscribe";
/// Most of one grant.
const MOST: usize = 4;

pub(super) fn all() -> Vec<Probe> {
    use Severity::{Critical, Major};
    vec![
        owned("subscriptions", &["FE-10"], Major, probe!(subscribing)),
        owned("events", &["FE-11"], Critical, probe!(events)),
        owned("events-behind-gates", &["FE-11", "ME-14", "CO-18"], Critical, probe!(events_behind_gates)),
    ]
}

/// What a grantee subscribes with.
fn new(context: &Context<'_>, window: u32) -> Value {
    json!({"subscription": SubscriptionId::new(context.now(), context.random()), "window": window})
}

/// A grantee whose grant over a label allows these operations.
async fn allowed(
    context: &Context<'_>,
    grantee: Signer,
    label: &str,
    operations: &[&str],
) -> Result<Session, Failed> {
    let mut draft = context.draft(&grantee, label, 2);
    draft["operations"] = json!(operations);
    context.session(grantee, draft).await
}

const BOTH: [&str; 2] = ["query", "subscribe"];

/// A subscription that must be made: its name.
async fn subscribed(context: &Context<'_>, session: &Session, new: &Value) -> Result<String, Failed> {
    let reply = context.post_as(session, SUBSCRIBE, new).await?;
    expect(reply.status == 200, || {
        format!("a subscription with nothing wrong: status {} instead of 200", reply.status)
    })?;
    let made = reply.json();
    let begun_at = made["begun_at"].as_str().and_then(|at| at.parse::<Timestamp>().ok());
    let is_as_asked = made["subscription"] == new["subscription"] && made["window"] == new["window"];
    expect(is_as_asked && made["sequence"] == 0 && begun_at.is_some(), || {
        format!("a subscription is not as it was asked for: {made}")
    })?;
    Ok(made["subscription"].as_str().unwrap_or_default().to_owned())
}

/// A subscription that must not be made.
async fn refused(
    context: &Context<'_>,
    session: &Session,
    what: &str,
    new: &Value,
    must: u16,
) -> Result<(), Failed> {
    let status = context.post_as(session, SUBSCRIBE, new).await?.status;
    expect(status == must, || format!("a subscription {what}: status {status} instead of {must}"))
}

/// Who may subscribe, with what, and how often.
async fn subscribing(context: &Context<'_>) -> Result<(), Failed> {
    Family::Subscriptions.offered(context).await?;
    let label = context.word();
    let session = allowed(context, context.stranger(), &label, &BOTH).await?;
    // The same again is the same one; under its name there is no other.
    let first = new(context, 3_600);
    let id = subscribed(context, &session, &first).await?;
    subscribed(context, &session, &first).await?;
    let mut renamed = new(context, 60);
    renamed["subscription"] = first["subscription"].clone();
    refused(context, &session, "under a name that another one has", &renamed, 409).await?;
    // One thing wrong each. A grantee that is its own key has no gateway: nobody is aimed at.
    let with = |name: &str, value: Value| {
        let mut new = new(context, 60);
        new[name] = value;
        new
    };
    let push = |url: &str| with("push", json!({"url": url}));
    for (what, new) in [
        ("with a window of nine seconds", new(context, 9)),
        ("with a window of more than a day", new(context, 86_401)),
        ("with a window that is no number", with("window", json!("60"))),
        ("with a name that is none", with("subscription", json!("sub_1"))),
        ("with a member that nobody knows", with("colour", json!("red"))),
        ("to be pushed to a stranger", push("https://stranger.example/push")),
        ("to be pushed to this machine", push("https://127.0.0.1/push")),
        ("to be pushed to an address with a user", push("https://user@stranger.example/push")),
        ("to be pushed to an address of two spellings", push("https://STRANGER.example/push")),
        (
            "to be pushed to an address of more than 512 bytes",
            push(&format!("https://a.example/{}", "p".repeat(512))),
        ),
        ("to be pushed nowhere", push("")),
    ] {
        refused(context, &session, what, &new, 400).await?;
    }
    for operation in BOTH {
        let one = allowed(context, context.stranger(), &label, &[operation]).await?;
        let what = format!("under a grant for {operation} alone");
        refused(context, &one, &what, &new(context, 60), 403).await?;
    }
    let grantee = context.stranger();
    let mut draft = context.draft(&grantee, &label, 2);
    (draft["operations"], draft["bearer"]) = (json!(BOTH), json!(true));
    // A gateway need not allow them.
    let bearer = context.try_session(grantee, draft).await?;
    if let Ok(bearer) = bearer
        && bearer.bearer
    {
        refused(context, &bearer, "by a bearer token", &new(context, 60), 401).await?;
    }
    // As many as there may be, at both ends of what a window may be.
    for window in [10, 86_400, 60] {
        subscribed(context, &session, &new(context, window)).await?;
    }
    refused(context, &session, &format!("beside {MOST} others of its grant"), &new(context, 60), 409).await?;
    // Nobody else ends it, and it ends once; then there is room.
    let other = allowed(context, context.stranger(), &label, &BOTH).await?;
    let end = format!("{SUBSCRIBE}/{id}/end");
    for (whose, session, must) in
        [("another's", &other, 404), ("one's own", &session, 200), ("what ended", &session, 404)]
    {
        let status = context.post_as(session, &end, &json!({})).await?.status;
        expect(status == must, || format!("ending {whose}: status {status} instead of {must}"))?;
    }
    subscribed(context, &session, &new(context, 60)).await.map(drop)
}

/// The first event of a stream; none where it says that there is nothing to tell.
fn event(what: &str, reply: &Reply) -> Result<Option<(u64, Value)>, Failed> {
    expect(reply.status == 200, || format!("{what}: status {} instead of 200", reply.status))?;
    let text = String::from_utf8_lossy(&reply.bytes);
    let first = text.split("\n\n").next().unwrap_or_default();
    if first.starts_with(':') {
        return Ok(None);
    }
    let line = |name: &str| first.lines().find_map(|line| line.strip_prefix(name)).map(str::trim_start);
    let push = line("data:").and_then(|data| strict::parse(data.as_bytes()).ok());
    let number = line("id:").and_then(|id| id.parse().ok());
    match (line("event:"), number, push) {
        (Some("push"), Some(number), Some(push)) => Ok(Some((number, push))),
        _ => Err(Failed::Wrong(format!("{what}: its first event is no push with a number"))),
    }
}

/// What a push says that came, changed and left, each in one order: none is asked for.
fn named(push: &Value) -> [Vec<&str>; 3] {
    ["came", "changed", "left"].map(|what| {
        let all = push["changes"][what].as_array().into_iter().flatten().filter_map(Value::as_str);
        let mut all: Vec<&str> = all.collect();
        all.sort_unstable();
        all
    })
}

/// That a push is an answer under the grant of its subscription, and that its receipt covers what stands beside it.
async fn proved(context: &Context<'_>, session: &Session, id: &str, push: &Value) -> Result<(), Failed> {
    let wrong = |why: String| Failed::Wrong(format!("a push: {why}"));
    expect(push["oap"] == "1.0" && push["type"] == "push" && push["subscription"] == id, || {
        "what is pushed is no push of its subscription, of version 1.0".to_owned()
    })?;
    let (answer, document) = (&push["answer"], context.document().await?);
    let possession = possession::of_answer(answer, &session.grant, &[], session.grantee.did(), &document);
    possession.map_err(|unsound| wrong(unsound.to_string()))?;
    let asked = json!({
        "subscription": push["subscription"], "sequence": push["sequence"], "after": push["after"],
        "changes": push["changes"], "more": push["more"], "query": "", "include_embeddings": false,
        "integrity": "full", "max_results": 50, "request_id": answer["request_id"],
    });
    let hash = Hash::of_canonical(&asked).map_err(|e| Failed::Skipped(e.to_string()))?;
    expect(answer["receipt"]["input_hash"] == json!(hash), || {
        "a push: its receipt does not cover what it says became of the view".to_owned()
    })?;
    let [came, changed, _] = named(push);
    let (mut told, mut shown) = ([came, changed].concat(), ids(answer));
    told.sort_unstable();
    shown.sort_unstable();
    expect(told == shown, || "a push: what came and changed is not what its answer shows".to_owned())
}

/// Reads the first event of a subscription, which must be a push with these changes; its number.
async fn tells(
    context: &Context<'_>,
    session: &Session,
    id: &str,
    last: Option<&str>,
    mut must: [Vec<&str>; 3],
) -> Result<String, Failed> {
    must.iter_mut().for_each(|all| all.sort_unstable());
    let what = format!("events after {}", last.unwrap_or("none"));
    let reply = context.event_as(Some(session), &format!("{SUBSCRIBE}/{id}/events"), last).await?;
    let Some((number, push)) = event(&what, &reply)? else {
        return Err(Failed::Wrong(format!("{what}: nothing is told, and something became of the view")));
    };
    expect(push["sequence"] == number, || format!("{what}: its id is not the number of the push"))?;
    proved(context, session, id, &push).await?;
    expect(named(&push) == must, || {
        format!("{what}: came, changed, left are {:?}, must be {must:?}", named(&push))
    })?;
    Ok(number.to_string())
}

/// Events tell a grantee what became of its view, and nothing else; what came is told once, and nobody else is told anything.
async fn events(context: &Context<'_>) -> Result<(), Failed> {
    Family::Subscriptions.offered(context).await?;
    let (label, outside) = (context.word(), context.word());
    let items = [note("the first", &[&label]), note("it is not shown", &[&outside])];
    let made = context.capture(&items).await?;
    let first = made.first().map(String::as_str).unwrap_or_default();
    let [one, same] = twice(context)?;
    let session = allowed(context, one, &label, &BOTH).await?;
    let again = allowed(context, same, &label, &BOTH).await?;
    let id = subscribed(context, &session, &new(context, 3_600)).await?;
    let path = format!("{SUBSCRIBE}/{id}/events");
    // Nobody else reads it: neither without a token nor with that of another grant, of whomever, and by whatever number.
    let other = allowed(context, context.stranger(), &label, &BOTH).await?;
    let query = context.granted(&label, 2).await?;
    let nowhere = format!("{SUBSCRIBE}/{}/events", SubscriptionId::new(context.now(), context.random()));
    for (what, session, path, last, must) in [
        ("without a token", None, &path, None, 401),
        ("with another grantee's token", Some(&other), &path, None, 404),
        ("with another grantee's token, as if it had read before", Some(&other), &path, Some("1"), 404),
        ("with a token of another grant of the same grantee", Some(&again), &path, None, 404),
        ("under a grant for queries alone", Some(&query), &path, None, 403),
        ("of a subscription that there is not", Some(&session), &nowhere, None, 404),
        ("after what is no number", Some(&session), &path, Some("x"), 400),
        ("after a number below none", Some(&session), &path, Some("-1"), 400),
    ] {
        let status = context.event_as(session, path, last).await?.status;
        expect(status == must, || format!("events {what}: status {status} instead of {must}"))?;
    }
    // Whoever did not say that it came is told again, under a higher number; who did is told what came since.
    let one = tells(context, &session, &id, None, [vec![first], vec![], vec![]]).await?;
    let two = tells(context, &session, &id, None, [vec![first], vec![], vec![]]).await?;
    expect(one != two, || "two pushes have the same number".to_owned())?;
    let reply = context.event_as(Some(&session), &path, Some(&two)).await?;
    expect(event("events after all came", &reply)?.is_none(), || {
        "what came is told again, or what is not in the view is told".to_owned()
    })?;
    let made = context.capture(&[note("the second", &[&label]), note("nor this", &[&outside])]).await?;
    let second = made.first().map(String::as_str).unwrap_or_default();
    let corrected = json!({"content": {"text": "the first, corrected"}});
    context.owner(json!({"do": "correct", "item_id": first, "item": corrected})).await?;
    // Where a grant is for one item at most it is the first one.
    let (came, last) =
        if context.declared().max_items > 1 { (vec![second], second) } else { (vec![], first) };
    let three = tells(context, &session, &id, Some(&two), [came, vec![first], vec![]]).await?;
    context.owner(json!({"do": "retract", "item_id": last})).await?;
    tells(context, &session, &id, Some(&three), [vec![], vec![], vec![last]]).await?;
    // Nothing is told of what is over.
    context.owner(json!({"do": "revoke", "grant_id": session.grant["grant_id"]})).await?;
    let status = context.event_as(Some(&session), &path, None).await?.status;
    expect(status == 403, || format!("events under a revoked grant: status {status} instead of 403"))
}

/// What an owner owes to others stands before a push as before an answer: an embargo takes what was shown out of the view, and what comes meanwhile is
/// not told; once it is lifted both come (protocol sections 7 and 17).
async fn events_behind_gates(context: &Context<'_>) -> Result<(), Failed> {
    Family::Subscriptions.offered(context).await?;
    let (label, scope) = (context.word(), format!("probe-{}", context.word()));
    let item = |text: &str| {
        let mut item = note(text, &[&label]);
        item["scope_id"] = json!(scope);
        item
    };
    let made = context.capture(&[item("the first")]).await?;
    let first = made.first().map(String::as_str).unwrap_or_default();
    let grantee = context.stranger();
    let did = grantee.did().clone();
    let mut draft = context.draft(&grantee, &label, 2);
    (draft["operations"], draft["scope"]) = (json!(BOTH), json!(scope));
    let session = context.session(grantee, draft).await?;
    let id = subscribed(context, &session, &new(context, 3_600)).await?;
    let says = async |listed: Value| {
        let document = json!({"ccc_version": "1.0", "scope_id": scope, "embargo_list": listed});
        context.owner(json!({"do": "context", "context": document})).await.map(drop)
    };
    let one = tells(context, &session, &id, None, [vec![first], vec![], vec![]]).await?;
    says(json!([did])).await?;
    let two = tells(context, &session, &id, Some(&one), [vec![], vec![], vec![first]]).await?;
    let made = context.capture(&[item("the second")]).await?;
    let second = made.first().map(String::as_str).unwrap_or_default();
    let path = format!("{SUBSCRIBE}/{id}/events");
    let reply = context.event_as(Some(&session), &path, Some(&two)).await?;
    expect(event("events under an embargo", &reply)?.is_none(), || {
        "what came under an embargo is told to whom it covers".to_owned()
    })?;
    says(json!([])).await?;
    // Where a grant is for one item at most it is the first one.
    let came = if context.declared().max_items > 1 { vec![first, second] } else { vec![first] };
    tells(context, &session, &id, Some(&two), [came, vec![], vec![]]).await.map(drop)
}
