//! The log of a gateway and its witnesses, as anybody meets them (protocol section 16; C2SP tlog-witness and tlog-checkpoint).

use super::super::context::{Context, expect};
use super::super::wire::{Reply, Request};
use super::super::{Failed, Probe, Severity};
use super::{note, owned, probe, public, twice};
use oap_identity::{Did, Hash, ReceiptId, Signer, Timestamp, json as strict};
use oap_memory::log::checkpoint::Checkpoint;
use oap_memory::log::inclusion::{Inclusion, Known};
use oap_memory::log::merkle;
use oap_memory::log::note::{Note, NoteSignature};
use oap_memory::log::submission::{MAX_SUBMISSION, Submission};
use serde_json::json;
use std::time::Duration;

/// Where it is shown that the log goes on, and that a receipt is in it.
const CONSISTENCY: &str = "/oap/log/consistency";
const WITNESSED: &str = "/oap/memory/witnessed";
/// A log has a leaf of it by then.
const MINUTE: Duration = Duration::from_secs(61);
/// How far clocks may be apart.
const SKEW: Duration = Duration::from_secs(300);

pub(super) fn all() -> Vec<Probe> {
    use Severity::{Critical, Major};
    vec![
        public("witness-door", &["FE-12"], Major, probe!(door)),
        public("own-log", &["FE-13"], Critical, probe!(own_log)),
        owned("witnessed-receipts", &["FE-13"], Critical, probe!(receipts)),
    ]
}

async fn get(context: &Context<'_>, path: String) -> Result<Reply, Failed> {
    context.send(Request { method: "GET", path, ..Request::default() }).await
}

/// What a stranger hands in of a log of one leaf: their own, or one under another name.
fn submission(by: &Signer, origin: &str, old: u64) -> Submission {
    let root = merkle::leaf(b"a leaf");
    let note = Checkpoint { origin: origin.to_owned(), size: 1, root }.sign(by);
    Submission { old, proof: Vec::new(), note }
}

/// Submissions that cannot be read, in one respect each: what, the status that it must have, the text.
fn malformed(good: &str) -> Vec<(&'static str, u16, String)> {
    let line = good.lines().last().unwrap_or_default();
    let hash = "PlRNCrwHpqhGrupue0L7gxbjbMiKA9temvuZZDDpkaw=\n";
    let after = |was: &str, is: &str| good.replacen(was, is, 1);
    vec![
        ("of nothing", 400, String::new()),
        ("that is no text", 400, "\u{0}".repeat(100)),
        ("without a size before", 400, after("old 0\n", "\n")),
        ("of a size with a leading zero", 400, after("old 0\n", "old 00\n")),
        ("of a size below none", 400, after("old 0\n", "old -1\n")),
        ("with a line that is no hash", 400, after("old 0\n", "old 0\nhash\n")),
        ("with 64 hashes", 400, after("old 0\n", &format!("old 0\n{}", hash.repeat(64)))),
        ("without a checkpoint", 400, "old 0\n\n".to_owned()),
        ("without a signature", 400, good.split(line).next().unwrap_or_default().to_owned()),
        ("with 65 signatures", 400, format!("{good}{}", format!("{line}\n").repeat(64))),
        ("of a checkpoint without a root", 400, {
            let root = good.lines().nth(4).unwrap_or_default();
            after(&format!("{root}\n"), "")
        }),
        ("of a checkpoint whose size is no number", 400, after("\n1\n", "\none\n")),
        ("of more than 68 KiB", 413, format!("{good}{}", "x".repeat(MAX_SUBMISSION))),
    ]
}

async fn hand_in(context: &Context<'_>, prefix: &str, text: &str) -> Result<Reply, Failed> {
    let headers = vec![("content-type".to_owned(), "text/plain; charset=utf-8".to_owned())];
    let path = format!("{prefix}/add-checkpoint");
    context.send(Request { method: "POST", path, headers, body: Some(text.as_bytes().to_vec()) }).await
}

/// A witness reads what is handed in, and signs for nobody for whom its owner did not say so.
async fn door(context: &Context<'_>) -> Result<(), Failed> {
    let none = || Failed::NotDeclared("the memory manifest names no endpoints.witness".to_owned());
    let prefix = context.declared().witness().ok_or_else(none)?.to_owned();
    let document = context.document().await?;
    let (me, other) = (context.stranger(), context.stranger());
    let own = me.did().to_string();
    let good = submission(&me, &own, 0);
    let unasked = [
        ("of a log for which nobody asked it", good.to_string()),
        ("of such a log, once more", good.to_string()),
        ("of such a log, signed by another key", submission(&other, &own, 0).to_string()),
        ("of such a log, behind its own size", submission(&me, &own, 2).to_string()),
        ("of a log whose name is no DID", submission(&me, "example.com/log", 0).to_string()),
        (
            "of the witness's own log, signed by a stranger",
            submission(&me, document.id().as_str(), 0).to_string(),
        ),
    ];
    let mut said = Vec::new();
    for (what, text) in unasked {
        let reply = hand_in(context, &prefix, &text).await?;
        expect(reply.status == 404, || {
            format!("a checkpoint {what}: status {} instead of 404", reply.status)
        })?;
        said.push(reply.json()["message"].clone());
    }
    expect(said.windows(2).all(|two| two[0] == two[1]), || {
        "two checkpoints of logs for which nobody asked it are told different things".to_owned()
    })?;
    for (what, status, text) in malformed(&good.to_string()) {
        match hand_in(context, &prefix, &text).await {
            Ok(reply) => expect(reply.status == status, || {
                format!("a submission {what}: status {} instead of {status}", reply.status)
            })?,
            // It may hang up on what it does not want to read.
            Err(Failed::Wrong(_)) if status == 413 => {}
            Err(other) => return Err(other),
        }
    }
    // Nothing is shown of it, and what can be read is read all the same.
    let origin: String =
        Hash::of(own.as_bytes()).as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    let status = get(context, format!("{prefix}/{origin}/checkpoint")).await?.status;
    expect(status == 404, || {
        format!("the last checkpoint of a log that it does not sign: status {status} instead of 404")
    })?;
    let status = hand_in(context, &prefix, &good.to_string()).await?.status;
    expect(status == 404, || {
        format!("a checkpoint that can be read, after all of that: status {status} instead of 404")
    })
}

/// The published checkpoint, signed by the principal.
async fn published(context: &Context<'_>, path: &str) -> Result<Checkpoint, Failed> {
    let reply = get(context, path.to_owned()).await?;
    if reply.status == 404 {
        return Err(Failed::NotDeclared("there is no log yet".to_owned()));
    }
    expect(reply.status == 200, || format!("{path}: status {} instead of 200", reply.status))?;
    let wrong = |why: &dyn std::fmt::Display| Failed::Wrong(format!("the published checkpoint: {why}"));
    let note = Note::parse(&reply.bytes).map_err(|e| wrong(&e))?;
    let document = context.document().await?;
    let now = context.now();
    let checkpoint = Checkpoint::verify(&note, &document, now).map_err(|e| wrong(&e))?;
    for line in note.signatures().iter().filter(|line| line.name != document.id().as_str()) {
        expect(is_cosignature(line, now), || {
            format!(
                "the published checkpoint: what is signed as {:?} is no signature of a witness",
                line.name
            )
        })?;
    }
    Ok(checkpoint)
}

/// Whether a line is one of a witness's: under a DID, a time that is not to come, and a signature. Its key is asked of nobody here.
fn is_cosignature(line: &NoteSignature, now: Timestamp) -> bool {
    let time =
        line.bytes.split_first_chunk::<8>().map(|(time, rest)| (u64::from_be_bytes(*time), rest.len()));
    let latest = u64::try_from(now.plus(SKEW).seconds()).unwrap_or_default();
    line.name.parse::<Did>().is_ok() && time.is_some_and(|(at, length)| at <= latest && length == 64)
}

/// That the log goes on from one checkpoint to another, as it proves.
async fn goes_on(context: &Context<'_>, from: &Checkpoint, to: &Checkpoint) -> Result<(), Failed> {
    expect(from.size <= to.size, || format!("the log had {} leaves, and has {}", from.size, to.size))?;
    let proved = context.get(&format!("{CONSISTENCY}?from={}&to={}", from.size, to.size)).await?;
    let proof: Vec<Hash> = strict::from_value(proved["proof"].clone())
        .map_err(|e| Failed::Wrong(format!("{CONSISTENCY}: the proof: {e}")))?;
    merkle::check_consistency(from.size, &from.root, to.size, &to.root, &proof).map_err(|e| {
        Failed::Wrong(format!("the log of {} leaves does not go on to that of {}: {e}", from.size, to.size))
    })
}

/// Where the checkpoint is.
fn log<'a>(context: &'a Context<'_>) -> Result<&'a str, Failed> {
    let none = || Failed::NotDeclared("the memory manifest names no endpoints.checkpoint".to_owned());
    context.declared().checkpoint().ok_or_else(none)
}

/// What is published of the log is signed, and goes on; of what it does not have nothing is proved.
async fn own_log(context: &Context<'_>) -> Result<(), Failed> {
    let path = log(context)?.to_owned();
    let mut seen = vec![published(context, &path).await?];
    for _ in 0..3 {
        context.advance(MINUTE).await?;
        seen.push(published(context, &path).await?);
    }
    for (at, from) in seen.iter().enumerate() {
        for to in seen.iter().skip(at) {
            goes_on(context, from, to).await?;
        }
    }
    let size = seen.last().map_or(0, |last| last.size);
    for (parameters, must) in [
        (format!("from={size}&to={}", size + 1_000_000), 404),
        (format!("from={0}&to={0}", size + 1_000_000), 404),
        (format!("from={}&to=0", size + 1), 404),
        ("from=-1&to=0".to_owned(), 400),
        ("from=0".to_owned(), 400),
        ("from=0&to=0&colour=red".to_owned(), 400),
    ] {
        let status = get(context, format!("{CONSISTENCY}?{parameters}")).await?.status;
        expect(status == must, || format!("{CONSISTENCY}?{parameters}: status {status} instead of {must}"))?;
    }
    Ok(())
}

/// A receipt is shown in the log to whom it was given, under the grant that it was given under, and to nobody else.
async fn receipts(context: &Context<'_>) -> Result<(), Failed> {
    published(context, log(context)?).await?;
    let label = context.word();
    context.capture(&[note("it was shown", &[&label])]).await?;
    let [one, same] = twice(context)?;
    let (draft, again) = (context.draft(&one, &label, 2), context.draft(&same, &label, 2));
    let (session, again) = (context.session(one, draft).await?, context.session(same, again).await?);
    let other = context.granted(&label, 2).await?;
    let answer = context.answer(&session, &json!({"query": ""})).await?;
    let receipt = &answer["receipt"];
    let at = |id: &str| format!("{WITNESSED}/{id}");
    let id = receipt["receipt_id"].as_str().unwrap_or_default();
    let capture = &answer["items"][0]["integrity"]["capture_receipt"]["receipt_id"];
    let nowhere = ReceiptId::new(context.now(), context.random()).to_string();
    let has_passed = context.advance(MINUTE).await?;
    let anonymous = get(context, at(id)).await?.status;
    expect(anonymous == 401, || {
        format!("a receipt in the log, without a token: status {anonymous} instead of 401")
    })?;
    for (what, session, id) in [
        ("of another grantee's", &other, id),
        ("under another grant of its grantee's", &again, id),
        ("of the owner's", &session, capture.as_str().unwrap_or_default()),
        ("that there is not", &session, nowhere.as_str()),
        ("whose name is none", &session, "receipt"),
    ] {
        let status = context.get_as(session, &at(id)).await?.status;
        expect(status == 404, || format!("a receipt {what} in the log: status {status} instead of 404"))?;
    }
    if !has_passed {
        // It is in the log within a minute or two, for which a run by a clock that nobody sets does not wait.
        return Ok(());
    }
    let reply = context.get_as(&session, &at(id)).await?;
    expect(reply.status == 200, || {
        format!("one's own receipt in the log, a minute later: status {} instead of 200", reply.status)
    })?;
    let shown: Inclusion = strict::from_value(reply.json())
        .map_err(|e| Failed::Wrong(format!("the way from a receipt to the checkpoint: {e}")))?;
    let known = Known::of(receipt).ok_or_else(|| Failed::Wrong("a receipt begins its chain".to_owned()))?;
    shown
        .check(&known, &context.document().await?, context.now())
        .map(drop)
        .map_err(|e| Failed::Wrong(format!("the way from a receipt to the checkpoint: {e}")))
}
