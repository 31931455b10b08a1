//! Letters between gateways, as whoever has a key of their own can write them (protocol section 13).

use super::super::context::{Context, PURPOSE, expect, post, seal};
use super::super::declared::Place;
use super::super::refusals::{lifted, resign};
use super::super::wire::Reply;
use super::super::{Failed, Probe, Severity};
use super::{ids, note, owned, probe, public};
use oap_identity::{
    AskId, DeletionId, DetachedSignature, Did, DidDocument, Hash, ItemId, LetterId, Signer, Timestamp,
    json as strict, random,
};
use serde_json::{Value, json};
use std::time::Duration;

/// How long a letter lives.
const LIFE: Duration = Duration::from_secs(600);
/// After which it does not come in again, however far the clocks are apart that are taken for one.
const OVER: Duration = Duration::from_secs(960);
/// Longest letter, in bytes.
const LONGEST: usize = 64 << 10;

pub(super) fn all() -> Vec<Probe> {
    use Severity::{Critical, Major};
    vec![
        public("letters", &["FE-1"], Critical, probe!(refused)),
        public("letter-replies", &["FE-2"], Major, probe!(replies)),
        public("letters-of-nobody", &["FE-3"], Critical, probe!(of_nobody)),
        public("access-requests", &["FE-4"], Critical, probe!(access_requests)),
        owned("notices-of-strangers", &["FE-5"], Critical, probe!(notices)),
    ]
}

/// Where letters are taken.
pub(super) fn door<'a>(context: &'a Context<'_>) -> Result<&'a str, Failed> {
    let none = || Failed::NotDeclared("the memory manifest names no endpoints.peer".to_owned());
    context.declared().letters().ok_or_else(none)
}

/// A letter as it should be.
pub(super) fn letter(
    context: &Context<'_>,
    from: &Signer,
    to: &Did,
    kind: &str,
    body: Value,
) -> Result<Value, Failed> {
    let now = context.now();
    let mut letter = json!({
        "oap": "1.0", "type": kind, "id": LetterId::new(now, context.random()), "from": from.did(), "to": to,
        "issued_at": now, "expires_at": now.plus(LIFE), "body": body,
    });
    seal(&mut letter, from, from)?;
    Ok(letter)
}

/// One with nothing wrong, and without any effect: it takes back what was never asked for.
pub(super) fn harmless(context: &Context<'_>, from: &Signer, to: &Did) -> Result<Value, Failed> {
    let body = json!({"request": AskId::new(context.now(), context.random())});
    letter(context, from, to, "access_withdrawal", body)
}

async fn hand_in(context: &Context<'_>, letter: &Value) -> Result<Reply, Failed> {
    context.post(door(context)?, &[], letter).await
}

/// That a document's `signature` is by a key of somebody's that is in force.
fn is_signed(document: &Value, by: &DidDocument, now: Timestamp) -> Result<(), String> {
    let mut unsigned = document.clone();
    let signature = unsigned.as_object_mut().and_then(|members| members.remove("signature"));
    let signature = signature.ok_or("there is none")?;
    let signature: DetachedSignature = strict::from_value(signature).map_err(|e| e.to_string())?;
    let bytes = strict::canonical(&unsigned).map_err(|e| e.to_string())?;
    signature.verify(&bytes, by, now).map(drop).map_err(|e| e.to_string())
}

/// The reply to a letter, which is one: of the principal's, to this letter, signed.
pub(super) async fn replied(
    context: &Context<'_>,
    letter: &Value,
    document: &DidDocument,
) -> Result<Value, Failed> {
    let reply = hand_in(context, letter).await?;
    expect(reply.status == 200, || {
        format!("a letter with nothing wrong: status {} instead of 200", reply.status)
    })?;
    let said = reply.json();
    let hash = Hash::of_canonical(letter).map_err(|e| Failed::Skipped(e.to_string()))?.to_string();
    expect(said["oap"] == "1.0" && said["type"] == "reply", || {
        "what a letter is answered with is no reply of version 1.0".to_owned()
    })?;
    expect(said["to"] == hash, || "the reply does not name its letter by its hash".to_owned())?;
    expect(said["from"] == document.id().as_str(), || "the reply is not the principal's".to_owned())?;
    is_signed(&said, document, context.now())
        .map_err(|why| Failed::Wrong(format!("the reply's signature: {why}")))?;
    Ok(said)
}

pub(super) async fn taken(
    context: &Context<'_>,
    letter: &Value,
    document: &DidDocument,
) -> Result<Value, Failed> {
    let said = replied(context, letter, document).await?;
    expect(said["outcome"] == "taken", || {
        format!("a letter with nothing wrong: outcome {}, must be taken", said["outcome"])
    })?;
    Ok(said)
}

/// Letters with one thing wrong each: what, the status that it must have, the bytes.
fn wrong(
    context: &Context<'_>,
    me: &Signer,
    other: &Signer,
    to: &Did,
) -> Result<Vec<(&'static str, u16, String)>, Failed> {
    let after = |change: &dyn Fn(&mut Value)| -> Result<String, Failed> {
        let mut letter = harmless(context, me, to)?;
        change(&mut letter);
        Ok(letter.to_string())
    };
    let by = |key: &Signer, named: &Signer, change: &dyn Fn(&mut Value)| -> Result<String, Failed> {
        let mut letter = harmless(context, me, to)?;
        change(&mut letter);
        seal(&mut letter, key, named)?;
        Ok(letter.to_string())
    };
    let signed = |change: &dyn Fn(&mut Value)| by(me, me, change);
    let now = context.now();
    let minutes = |n: u64| Duration::from_secs(60 * n);
    let lives = |from: Timestamp, until: Timestamp| {
        signed(&|letter| (letter["issued_at"], letter["expires_at"]) = (json!(from), json!(until)))
    };
    let text = after(&|_| {})?;
    let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
    let unsigned = |letter: &mut Value| drop(letter.as_object_mut().map(|all| all.remove("signature")));
    let lift = |letter: &mut Value| resign(&mut letter["signature"]["value"], lifted);
    let another = json!(AskId::new(now, context.random()));
    Ok(vec![
        ("without a signature", 400, after(&unsigned)?),
        ("signed by another key under the name of its sender's", 401, by(other, me, &|_| {})?),
        ("whose signature has S + L for S", 401, after(&lift)?),
        ("signed by a key that is not its sender's", 400, by(other, other, &|_| {})?),
        ("changed after it was signed", 401, after(&|letter| letter["body"]["request"] = another.clone())?),
        ("for another principal", 400, signed(&|letter| letter["to"] = json!(other.did()))?),
        ("that lives for more than ten minutes", 400, lives(now, now.plus(minutes(11)))?),
        ("that ends as it begins", 400, lives(now, now)?),
        ("that is over", 400, lives(now.minus(minutes(30)), now.minus(minutes(20)))?),
        ("of half an hour from now", 400, lives(now.plus(minutes(30)), now.plus(minutes(40)))?),
        ("with a member that nobody knows", 400, signed(&|letter| letter["colour"] = json!("red"))?),
        ("of another version", 400, signed(&|letter| letter["oap"] = json!("9.9"))?),
        ("of a type that there is not", 400, signed(&|letter| letter["type"] = json!("colour"))?),
        ("whose body is not of its type", 400, signed(&|letter| letter["body"] = json!({"colour": "red"}))?),
        ("with a member twice", 400, text.replacen('{', "{\"oap\":\"1.0\",", 1)),
        ("in 10,000 levels", 400, deep),
        ("of more than 64 KiB", 413, format!("{text}{}", " ".repeat(LONGEST))),
    ])
}

/// What a letter must not be, one thing at a time, and beside it what it may be.
async fn refused(context: &Context<'_>) -> Result<(), Failed> {
    let (door, document) = (door(context)?.to_owned(), context.document().await?);
    let (me, other) = (context.stranger(), context.stranger());
    taken(context, &harmless(context, &me, document.id())?, &document).await?;
    let wrong = || wrong(context, &me, &other, document.id());
    for (number, (what, status, _)) in wrong()?.into_iter().enumerate() {
        // Made anew each time: a letter lives for ten minutes, and who is asked too often is waited for.
        match context.send_each(|| Ok(post(&door, &[], &wrong()?.swap_remove(number).2))).await {
            Ok(reply) => expect(reply.status == status, || {
                format!("a letter {what}: status {} instead of {status}", reply.status)
            })?,
            // A gateway may hang up on what it does not want to read; the letter at the end sees whether it lives.
            Err(Failed::Wrong(_)) if status == 413 => {}
            Err(other) => return Err(other),
        }
    }
    taken(context, &harmless(context, &me, document.id())?, &document).await.map(drop)
}

/// A letter has its effect once, and its reply is a document that proves it.
async fn replies(context: &Context<'_>) -> Result<(), Failed> {
    door(context)?;
    let document = context.document().await?;
    let me = context.stranger();
    let first = harmless(context, &me, document.id())?;
    let once = hand_in(context, &first).await?;
    taken(context, &first, &document).await?;
    // What is signed anew where a clock stands would be the same.
    context.advance(Duration::from_millis(1)).await?;
    let twice = hand_in(context, &first).await?;
    expect(once.status == 200 && once.bytes == twice.bytes, || {
        "the same letter again has another reply".to_owned()
    })?;
    let mut anew = first.clone();
    anew["expires_at"] = json!(context.now().plus(LIFE / 2));
    seal(&mut anew, &me, &me)?;
    taken(context, &anew, &document).await?;
    let mut changed = first.clone();
    changed["body"]["request"] = json!(AskId::new(context.now(), context.random()));
    seal(&mut changed, &me, &me)?;
    let said = replied(context, &changed, &document).await?;
    expect(said["outcome"] == "refused" && said["reason"] == "other_letter", || {
        format!("another letter of the same id: outcome {}, must be refused, other_letter", said["outcome"])
    })?;
    if context.advance(OVER).await? {
        let late = hand_in(context, &first).await?.status;
        expect(late == 400, || format!("a letter that comes again when it is over: status {late}"))?;
    }
    Ok(())
}

/// Whoever is not proved is told the same, whoever they say that they are.
async fn of_nobody(context: &Context<'_>) -> Result<(), Failed> {
    door(context)?;
    let document = context.document().await?;
    let (me, other) = (context.stranger(), context.stranger());
    taken(context, &harmless(context, &me, document.id())?, &document).await?;
    let mut forged = harmless(context, &me, document.id())?;
    seal(&mut forged, &other, &me)?;
    let mut letters = vec![("whose signature does not hold", forged)];
    // Nobody resolves it: it leads into the gateway's own network.
    let skipped = |e: &dyn std::fmt::Display| Failed::Skipped(e.to_string());
    let nobody = "did:web:localhost".parse::<Did>().map_err(|e| skipped(&e))?;
    let kid = nobody.key("key-1").map_err(|e| skipped(&e))?;
    let signer = Signer::from_seed(kid, &random::bytes(context.random())).map_err(|e| skipped(&e))?;
    letters.push(("of a DID without a document", harmless(context, &signer, document.id())?));
    let mut said = Vec::new();
    for (what, letter) in letters {
        let reply = hand_in(context, &letter).await?;
        expect(reply.status == 401, || format!("a letter {what}: status {} instead of 401", reply.status))?;
        let body = reply.json();
        said.push((body["error"].clone(), body["message"].clone()));
    }
    expect(said.windows(2).all(|two| two[0] == two[1]), || {
        "two letters that are not proved are told different things".to_owned()
    })
}

/// An ask that may be.
fn ask(context: &Context<'_>, label: &str) -> Value {
    json!({
        "purpose": PURPOSE, "filter": {"labels_any": [label]}, "max_items": 1,
        "expires_at": context.now().plus(Duration::from_secs(86_400)), "operations": ["query"],
    })
}

/// What is said of a request that nobody answered.
fn waits(said: &Value) -> Result<(), Failed> {
    if said["outcome"] == "later" {
        return Err(Failed::Skipped("the inbox is full".to_owned()));
    }
    expect(said["outcome"] == "taken" && said["access"]["state"] == "pending", || {
        format!(
            "a request that its owner did not answer: outcome {}, state {}",
            said["outcome"], said["access"]["state"]
        )
    })?;
    expect(said["access"]["grant"].is_null(), || {
        "a request that its owner did not answer came back with a grant".to_owned()
    })
}

/// Asking gives nothing, and tells nothing: strangers are told the same, also of what another one asked.
async fn access_requests(context: &Context<'_>) -> Result<(), Failed> {
    door(context)?;
    let document = context.document().await?;
    let (one, two) = (context.stranger(), context.stranger());
    let request = AskId::new(context.now(), context.random());
    let body = json!({"request": request, "ask": ask(context, &context.word())});
    let mut answers = Vec::new();
    // The second one has the same handle as the first; the third letter is the first one's own, once more.
    for from in [&one, &two, &one] {
        let letter = letter(context, from, document.id(), "access_request", body.clone())?;
        let mut said = replied(context, &letter, &document).await?;
        waits(&said)?;
        for of_letter in ["to", "at", "signature"] {
            said.as_object_mut().map(|members| members.remove(of_letter));
        }
        answers.push(said);
    }
    let same = answers.windows(2).all(|two| two[0] == two[1]);
    let handle = [("authorization", format!("Bearer {request}"))];
    let queried = context.post(context.at(Place::Query), &handle, &json!({"query": ""})).await?.status;
    // Nothing of it is left to the owner to look at.
    for from in [&one, &two] {
        let back = letter(context, from, document.id(), "access_withdrawal", json!({"request": request}))?;
        taken(context, &back, &document).await?;
    }
    expect(same, || "the same request is answered differently, for who asks or how often".to_owned())?;
    expect(queried == 401, || {
        format!("a query with the handle of a request: status {queried} instead of 401")
    })?;
    // Whoever was granted something is answered.
    if context.has_setup() {
        let session = context.granted(&context.word(), 2).await?;
        context.answer(&session, &json!({"query": ""})).await?;
    }
    Ok(())
}

/// Whoever gave the principal nothing has nothing to tell: what they say is gone stays, and they do not learn what is there.
async fn notices(context: &Context<'_>) -> Result<(), Failed> {
    door(context)?;
    let document = context.document().await?;
    let (label, me) = (context.word(), context.stranger());
    let made = context.capture(&[note("it stays", &[&label])]).await?;
    let session = context.granted(&label, 2).await?;
    let everything = json!({"query": ""});
    let before = context.answer(&session, &everything).await?;
    let grant = Hash::of_canonical(&session.grant).map_err(|e| Failed::Skipped(e.to_string()))?;
    let now = context.now();
    let nothing = Hash::of(context.word().as_bytes());
    let nowhere = ItemId::new(now, context.random());
    let deletion = |item: Value| {
        let deletion = DeletionId::new(now, context.random());
        ("deletion_notice", json!({"deletion": deletion, "items": [item], "deleted_at": now}))
    };
    let revocation = |grant| ("revocation_notice", json!({"grants": [grant], "revoked_at": now}));
    for (kind, body) in
        [revocation(grant), revocation(nothing), deletion(json!(made.first())), deletion(json!(nowhere))]
    {
        let said = replied(context, &letter(context, &me, document.id(), kind, body)?, &document).await?;
        expect(said["outcome"] == "refused" && said["reason"] == "unknown", || {
            format!("a {kind} of a stranger: outcome {}, must be refused, unknown", said["outcome"])
        })?;
        expect(said["deletion_receipt"].is_null(), || {
            format!("a {kind} of a stranger is answered with a Deletion Receipt")
        })?;
    }
    let after = context.answer(&session, &everything).await?;
    expect(ids(&before).len() == 1 && ids(&before) == ids(&after), || {
        "a stranger's notice changed what a grantee is shown".to_owned()
    })
}
