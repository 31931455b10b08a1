//! The door for what other gateways push, as whoever has a key of their own meets it (protocol section 17.3).

use super::super::context::{Context, expect, post};
use super::super::wire::Request;
use super::super::{Failed, Probe, Severity};
use super::{probe, public};
use oap_identity::http_signature::{Covered, Nonce, SignedHeaders, sign};
use oap_identity::{Signer, SubscriptionId, Timestamp, random};
use serde_json::json;
use std::time::Duration;

/// What stands before the name of a subscription in the address of this gateway's door. Where another one's is, only who pushes to it is told.
const DOOR: &str = "/oap/peer/push/";
/// The tag of a push, and that of a reply to one.
const PUSH: &str = "oap-memory-push";
const REPLY: &str = "oap-memory-push-reply";
/// Beyond every skew that is forgiven.
const APART: Duration = Duration::from_secs(900);

pub(super) fn all() -> Vec<Probe> {
    vec![public("push-door", &["FE-9"], Severity::Critical, probe!(push_door))]
}

/// How a push is signed.
#[derive(Clone, Copy)]
struct Signing<'a> {
    target: &'a str,
    tag: &'a str,
    signer: &'a Signer,
    at: Timestamp,
}

impl Signing<'_> {
    fn of(&self, context: &Context<'_>, body: &str) -> SignedHeaders {
        let covered = Covered::Request { method: "POST", target: self.target };
        let nonce = Nonce::new(context.random());
        sign(covered, body.as_bytes(), &nonce, self.tag, self.signer, self.at)
    }
}

fn with(target: &str, headers: &[(&str, &str)], body: &str) -> Request {
    let headers: Vec<(&str, String)> =
        headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    post(target, &headers, body)
}

/// A push of a subscription that nobody here made.
fn body(id: SubscriptionId) -> String {
    json!({
        "oap": "1.0", "type": "push", "subscription": id, "sequence": 1, "after": 0, "more": false,
        "changes": {"came": [], "changed": [], "left": []}, "answer": {},
    })
    .to_string()
}

/// Heads that are not of the one form that is read, each in one respect: what, and the values of the three headers.
fn malformed(good: &SignedHeaders, reply: SignedHeaders) -> Vec<(&'static str, SignedHeaders)> {
    let input =
        |was: &str, is: &str| SignedHeaders { input: good.input.replacen(was, is, 1), ..good.clone() };
    let nonce =
        good.input.split("nonce=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
    let other =
        |was: &str, is: &str| SignedHeaders { digest: good.digest.replacen(was, is, 1), ..good.clone() };
    let spoiled = SignedHeaders { signature: good.signature.replacen("=:", "=:AA", 1), ..good.clone() };
    vec![
        ("with the tag of a reply", reply),
        ("that does not cover its body", input(" \"content-digest\"", "")),
        ("that covers another method", input("\"@method\"", "\"@authority\"")),
        ("without an end", input(";expires=", ";until=")),
        ("with a nonce of ten characters", input(nonce, "AAECAwQFBg")),
        ("with an algorithm", input(";tag=", ";alg=\"ed25519\";tag=")),
        ("with a signature of another name", input("oap=", "sig1=")),
        ("with a digest of another kind", other("sha-256=", "sha-512=")),
        ("with a digest that is none", other("sha-256=:", "sha-256=:AA")),
        ("with a signature that is none", spoiled),
    ]
}

/// A push is for a subscription of the owner's, by its granter, now and once. Whoever is not proved is told the same, whatever it is that fails.
async fn push_door(context: &Context<'_>) -> Result<(), Failed> {
    let now = context.now();
    let id = SubscriptionId::new(now, context.random());
    let (target, body) = (format!("{DOOR}{id}"), body(id));
    let status = context.send(with(&target, &[], &body)).await?.status;
    let document = context.document().await?;
    let me = context.stranger();
    let seed = |kid: &oap_identity::Kid| {
        let signer = Signer::from_seed(kid.clone(), &random::bytes(context.random()));
        signer.map_err(|e| Failed::Skipped(e.to_string()))
    };
    let forger = seed(me.kid())?;
    let own = document.keys().first().map(|key| seed(key.kid())).transpose()?;
    let own = own.ok_or_else(|| Failed::Skipped("the DID document has no key".to_owned()))?;
    let nobodys = Signing { target: &target, tag: PUSH, signer: &me, at: now };
    // The head is read and of the right form: all that fails is that nobody subscribed.
    let good = nobodys.of(context, &body);
    // What is not there is not there for who signs either.
    let is_absent = |status: u16| [404, 405].contains(&status);
    if is_absent(status) && is_absent(context.send(with(&target, &good.named(), &body)).await?.status) {
        return Err(Failed::NotDeclared(format!("nothing is pushed to {DOOR}")));
    }
    expect(status == 400, || format!("a push without a signature: status {status} instead of 400"))?;
    let elsewhere = format!("{DOOR}{}", SubscriptionId::new(now, context.random()));
    let nameless = format!("{DOOR}x");
    let of = |signing: Signing<'_>| signing.of(context, &body);
    let mut said = Vec::new();
    for (what, at, head) in [
        ("of a subscription that is not here", &target, good.clone()),
        ("that came before", &target, good.clone()),
        ("of another address", &target, of(Signing { target: &elsewhere, ..nobodys })),
        ("of what is no subscription", &nameless, of(Signing { target: &nameless, ..nobodys })),
        ("by another key in its sender's name", &target, of(Signing { signer: &forger, ..nobodys })),
        ("by another key in the receiver's own name", &target, of(Signing { signer: &own, ..nobodys })),
        ("that is over", &target, of(Signing { at: now.minus(APART), ..nobodys })),
        ("from later than now", &target, of(Signing { at: now.plus(APART), ..nobodys })),
        ("with another body than was signed", &target, nobodys.of(context, "{}")),
    ] {
        let reply = context.send(with(at, &head.named(), &body)).await?;
        expect(reply.status == 401, || format!("a push {what}: status {} instead of 401", reply.status))?;
        let told = reply.json();
        said.push((told["error"].clone(), told["message"].clone()));
    }
    expect(said.windows(2).all(|two| two[0] == two[1]), || {
        "two pushes of who is not proved are told different things".to_owned()
    })?;
    for (what, head) in malformed(&good, of(Signing { tag: REPLY, ..nobodys })) {
        let status = context.send(with(&target, &head.named(), &body)).await?.status;
        expect(status == 400, || format!("a push {what}: status {status} instead of 400"))?;
    }
    let named = good.named();
    for (name, value) in named {
        let left: Vec<_> = named.into_iter().filter(|(other, _)| *other != name).collect();
        let twice = [named.as_slice(), &[(name, value)]].concat();
        for (what, headers) in [("without", left), ("with two of", twice)] {
            let status = context.send(with(&target, &headers, &body)).await?.status;
            expect(status == 400, || format!("a push {what} {name}: status {status} instead of 400"))?;
        }
    }
    // And what was read before is read all the same.
    let status = context.send(with(&target, &nobodys.of(context, &body).named(), &body)).await?.status;
    expect(status == 401, || format!("a push of nobody's, after all of that: status {status} instead of 401"))
}
