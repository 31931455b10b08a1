//! The conditions on credentials, brought to every endpoint that takes one.

use super::jws::Jws;
use super::proofs::{Around, Case, of_grant_proof, of_proof};
use super::rules::{BearerRule, Condition, GrantProofRule, ProofRule, TokenRule};
use super::tokens::{Given, violations};
use crate::probe::Failed;
use crate::probe::context::{Context, INVOKE, Session, expect, post};
use crate::probe::declared::Place;
use crate::probe::wire::{Refused, Reply, Request};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use oap_identity::{Hash, Signer, Timestamp, random};
use serde_json::{Value, json};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// An endpoint that takes a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Door {
    Query,
    Export,
    Vector,
    Log,
    /// The action `memory.query`.
    Invoke,
}

impl Door {
    const ALL: [Self; 5] = [Self::Query, Self::Export, Self::Vector, Self::Log, Self::Invoke];

    const fn method(self) -> &'static str {
        match self {
            Self::Query | Self::Export | Self::Invoke => "POST",
            Self::Vector | Self::Log => "GET",
        }
    }

    fn path<'a>(self, context: &'a Context<'_>) -> &'a str {
        match self {
            Self::Query => context.at(Place::Query),
            Self::Export => context.at(Place::Export),
            Self::Vector => "/oap/memory/vec/mem_01HX2QFXR0Q4S8T9V3W7X2Y0Z1",
            Self::Log => "/oap/audit",
            Self::Invoke => INVOKE,
        }
    }

    /// The status of a request that is let in: the vector is of an item that there is not.
    const fn let_in(self) -> u16 {
        if matches!(self, Self::Vector) { 404 } else { 200 }
    }

    /// Whether a condition applies: whoever shows no token at all reads the public log.
    fn applies(self, rule: TokenRule) -> bool {
        self != Self::Log || rule != TokenRule::Present
    }

    /// Sends a request; where it is waited for its proofs and its envelope are made anew, for their times are those of the request.
    async fn send(
        self,
        context: &Context<'_>,
        scene: &Scene,
        authorization: &[String],
        proofs: impl Fn() -> Vec<String> + Send + Sync,
    ) -> Result<Reply, Failed> {
        context.send_each(|| self.request(context, scene, authorization, &proofs())).await
    }

    fn request(
        self,
        context: &Context<'_>,
        scene: &Scene,
        authorization: &[String],
        proofs: &[String],
    ) -> Result<Request, Failed> {
        let all = [("authorization", authorization), ("dpop", proofs)];
        let mut headers: Vec<(String, String)> = all
            .into_iter()
            .flat_map(|(name, values)| values.iter().map(move |value| (name.to_owned(), value.clone())))
            .collect();
        let body = match self {
            Self::Query => Some("{}".to_owned()),
            Self::Invoke => {
                Some(context.envelope(&scene.session.grantee, "memory.query", &json!({}))?.to_string())
            }
            Self::Export | Self::Vector | Self::Log => None,
        };
        if body.is_some() {
            headers.push(("content-type".to_owned(), "application/oap+json".to_owned()));
        }
        let body = body.map(String::into_bytes);
        let path = self.path(context).to_owned();
        Ok(Request { method: self.method(), path, headers, body })
    }
}

/// A grantee that may use every endpoint, somebody else, and by how much the gateway's time is ahead of ours.
struct Scene {
    session: Session,
    stranger: Signer,
    /// In seconds.
    ahead: i64,
    /// In milliseconds: at least so much, and at most.
    between: (i64, i64),
}

impl Scene {
    async fn set(context: &Context<'_>, bearer: bool) -> Result<Self, Failed> {
        let label = context.word();
        context.capture(&[json!({"kind": "fact", "content": {"text": "a note"}, "labels": [label]})]).await?;
        let grantee = context.stranger();
        let mut draft = context.draft(&grantee, &label, 4);
        draft["operations"] = json!(["query", "export"]);
        draft["embedding_access"] = json!(true);
        let session = if bearer {
            draft["bearer"] = json!(true);
            // A gateway need not allow them.
            let none = |why: &str| Failed::NotDeclared(format!("there are no bearer tokens: {why}"));
            let session = context.try_session(grantee, draft).await?;
            let session = session.map_err(|Refused(why)| none(&why))?;
            if !session.bearer {
                return Err(none("a grant that allows them is exchanged for a bound one"));
            }
            session
        } else {
            context.session(grantee, draft).await?
        };
        if session.bearer && !bearer {
            return Err(Failed::Skipped("the gateway gives bearer tokens alone".to_owned()));
        }
        let before = context.now();
        let told = context.answer(&session, &json!({})).await?;
        let at: Option<Timestamp> = told["receipt"]["timestamp"].as_str().and_then(|at| at.parse().ok());
        let at = at.ok_or_else(|| Failed::Wrong("the receipt of an answer has no timestamp".to_owned()))?;
        let between = (at.millis() - context.now().millis(), at.millis() - before.millis());
        let ahead = at.seconds() - context.now().seconds();
        Ok(Self { session, stranger: context.stranger(), ahead, between })
    }

    fn now(&self, context: &Context<'_>) -> i64 {
        context.now().seconds() + self.ahead
    }

    fn around(&self, context: &Context<'_>) -> Around {
        Around {
            now: self.now(context),
            strangers_jwk: self.stranger.public().jwk(),
            strangers_kid: self.stranger.kid().to_string(),
        }
    }

    /// A DPoP proof as it must be.
    fn proof(&self, context: &Context<'_>, door: Door, token: &str) -> Jws {
        let key = &self.session.grantee;
        let ath = URL_SAFE_NO_PAD.encode(Hash::of(token.as_bytes()).as_bytes());
        let url = format!("{}{}", context.origin(), door.path(context));
        Jws::new(
            json!({"typ": "dpop+jwt", "alg": "EdDSA", "jwk": key.public().jwk()}),
            json!({"jti": context.word(), "htm": door.method(), "htu": url, "iat": self.now(context), "ath": ath}),
        )
    }

    fn made(&self, jws: &Jws) -> String {
        jws.made(&self.session.grantee, &self.stranger)
    }

    /// The status of a request with nothing wrong.
    async fn asked(&self, context: &Context<'_>, door: Door) -> Result<u16, Failed> {
        let token = &self.session.token;
        let scheme = if self.session.bearer { "Bearer" } else { "DPoP" };
        let proofs = || match self.session.bearer {
            true => Vec::new(),
            false => vec![self.made(&self.proof(context, door, token))],
        };
        Ok(door.send(context, self, &[format!("{scheme} {token}")], proofs).await?.status)
    }

    /// That a request with nothing wrong is let in.
    async fn control(&self, context: &Context<'_>, door: Door) -> Result<(), Failed> {
        let (status, must) = (self.asked(context, door).await?, door.let_in());
        expect(status == must, || {
            format!("{door:?}: a request with nothing wrong: status {status}, must be {must}")
        })
    }

    /// A grantee's proof as it must be, for an address.
    fn grant_proof(&self, context: &Context<'_>, address: &str) -> Result<Jws, Failed> {
        let key = &self.session.grantee;
        let hash = Hash::of_canonical(&self.session.grant).map_err(|e| Failed::Skipped(e.to_string()))?;
        let now = self.now(context);
        Ok(Jws::new(
            json!({"typ": "oap-grant-proof+jwt", "alg": "EdDSA", "kid": key.kid()}),
            json!({
                "iss": key.did(), "sub": key.did(), "aud": address, "jti": context.word(), "iat": now, "exp": now + 60,
                "grant_hash": hash,
            }),
        ))
    }
}

/// Every condition on tokens, at every endpoint.
pub(in super::super) async fn tokens(context: &Context<'_>) -> Result<(), Failed> {
    of_tokens(context, false).await
}

/// The same of tokens that are bound to no key, and what is particular of them.
pub(in super::super) async fn bearer_tokens(context: &Context<'_>) -> Result<(), Failed> {
    of_tokens(context, true).await?;
    let scene = Scene::set(context, true).await?;
    let token = super::jws::read(&scene.session.token, 1);
    expect(token["cnf"].is_null(), || format!("a token: {}: it has a cnf", BearerRule::Issued))?;
    context.note(&Condition::OfBearer(BearerRule::Issued));
    // Two grants of one grantee, under each of which something was answered.
    let key: [u8; 32] = random::bytes(context.random());
    let grantee = || Signer::did_key(&key).map_err(|e| Failed::Skipped(e.to_string()));
    let bound = context.session(grantee()?, context.draft(&grantee()?, "l0", 2)).await?;
    let mut draft = context.draft(&grantee()?, "l1", 2);
    draft["bearer"] = json!(true);
    let session = context.session(grantee()?, draft).await?;
    for session in [&bound, &session] {
        context.answer(session, &json!({})).await?;
    }
    let hash = Hash::of_canonical(&session.grant).map_err(|e| Failed::Skipped(e.to_string()))?;
    let log = context.get_as(&session, "/oap/audit").await?;
    let receipts = log.json()["receipts"].as_array().cloned().unwrap_or_default();
    let own = |receipt: &Value| {
        receipt.pointer("/policy_decisions/0/grant_hash").is_some_and(|named| *named == hash.to_string())
    };
    expect(!receipts.is_empty() && receipts.iter().all(own), || {
        format!("a bearer token: {}: the log has others, or none", BearerRule::Log)
    })?;
    context.note(&Condition::OfBearer(BearerRule::Log));
    Ok(())
}

async fn of_tokens(context: &Context<'_>, bearer: bool) -> Result<(), Failed> {
    let document = context.document().await?;
    let status = Request { method: "GET", path: context.at(Place::Status).to_owned(), ..Request::default() };
    let status = String::from_utf8_lossy(&context.send(status).await?.bytes).into_owned();
    let of: fn(TokenRule) -> Condition = if bearer { Condition::Bearer } else { Condition::Token };
    for door in Door::ALL {
        // A grantee of its own for each: what is asked too often is refused for another reason.
        let scene = Scene::set(context, bearer).await?;
        let own = scene.grant_proof(context, context.at(Place::Grant))?;
        let kid = super::jws::read(&scene.session.token, 0)["kid"].as_str().and_then(|kid| kid.parse().ok());
        let granter = kid.and_then(|kid| document.key(&kid)).map(|key| *key.public().as_bytes());
        let given = Given {
            token: &scene.session.token,
            granter: granter.unwrap_or_default(),
            stranger: &scene.stranger,
            bearer,
            others: vec![("the status list", status.clone()), ("the grantee's own proof", scene.made(&own))],
        };
        for rule in TokenRule::ALL.iter().copied().filter(|rule| door.applies(*rule)) {
            scene.control(context, door).await?;
            for shown in violations(rule, &given) {
                let first = shown.authorization.first().map(String::as_str).unwrap_or_default();
                let text = first.rsplit(' ').next().unwrap_or_default();
                let proofs = || match shown.proof {
                    true => vec![scene.made(&scene.proof(context, door, text))],
                    false => Vec::new(),
                };
                let reply = door.send(context, &scene, &shown.authorization, proofs).await?;
                expect(reply.status == 401, || {
                    format!("{door:?}, {}: {}: status {}, must be 401", of(rule), shown.what, reply.status)
                })?;
            }
            if rule != TokenRule::Lives || ends(context, door, bearer).await? {
                context.note(&of(rule));
            }
        }
    }
    Ok(())
}

/// How often the end of a token is looked at where the clock goes on meanwhile.
const TRIES: usize = 5;

/// A token a second before its end, at it and after it; whether that can be asked: it takes ten minutes where no clock can be set.
async fn ends(context: &Context<'_>, door: Door, bearer: bool) -> Result<bool, Failed> {
    let said = |what: &str, status: u16, must: u16| {
        format!("{door:?}, token: {}: {what}: status {status}, must be {must}", TokenRule::Lives)
    };
    for _ in 0..TRIES {
        let scene = Scene::set(context, bearer).await?;
        let end = super::jws::read(&scene.session.token, 1)["exp"].as_i64().unwrap_or_default() * 1_000;
        let (least, most) = scene.between;
        let (before, must) = (end - 1_000, door.let_in());
        if !reach(context, before - most).await? {
            return Ok(false);
        }
        let status = scene.asked(context, door).await?;
        // On a clock that goes on it may have ended while it was asked.
        if status != must && context.now().millis() + most >= end {
            continue;
        }
        expect(status == must, || said("a second before its end", status, must))?;
        for (what, at) in [("at its end", end), ("a second after its end", end + 1_000)] {
            reach(context, at - least).await?;
            let status = scene.asked(context, door).await?;
            expect(status == 401, || said(what, status, 401))?;
        }
        return Ok(true);
    }
    Ok(false)
}

/// Lets time pass until our clock shows this, in milliseconds.
async fn reach(context: &Context<'_>, millis: i64) -> Result<bool, Failed> {
    let left = u64::try_from(millis.saturating_sub(context.now().millis())).unwrap_or(0);
    context.advance(Duration::from_millis(left)).await
}

/// Every condition on DPoP proofs, at every endpoint.
pub(in super::super) async fn proofs_of_possession(context: &Context<'_>) -> Result<(), Failed> {
    for door in Door::ALL {
        // A grantee of its own for each: what is asked too often is refused for another reason.
        let scene = Scene::set(context, false).await?;
        let authorization = [format!("DPoP {}", scene.session.token)];
        for rule in ProofRule::ALL.iter().copied() {
            scene.control(context, door).await?;
            for Case { what, holds, change } in of_proof(rule) {
                let proofs = || {
                    let mut jws = scene.proof(context, door, &scene.session.token);
                    change(&mut jws, &scene.around(context));
                    vec![scene.made(&jws); jws.copies]
                };
                let reply = door.send(context, &scene, &authorization, proofs).await?;
                let must = if holds { door.let_in() } else { 401 };
                expect(reply.status == must, || {
                    format!("{door:?}, proof: {rule}: {what}: status {}, must be {must}", reply.status)
                })?;
            }
            if rule == ProofRule::Once {
                let last = Mutex::new(Vec::new());
                let proofs = || {
                    let proofs = vec![scene.made(&scene.proof(context, door, &scene.session.token))];
                    last.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&proofs);
                    proofs
                };
                let first = door.send(context, &scene, &authorization, proofs).await?.status;
                let proofs = last.into_inner().unwrap_or_else(PoisonError::into_inner);
                let again = door.send(context, &scene, &authorization, || proofs.clone()).await?.status;
                for (status, must) in [(first, door.let_in()), (again, 401)] {
                    expect(status == must, || {
                        format!("{door:?}, proof: {rule}: status {status}, must be {must}")
                    })?;
                }
            }
            context.note(&Condition::Proof(rule));
        }
    }
    Ok(())
}

/// Where a grantee shows its proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShownAt {
    Exchange,
    State,
    /// The action `memory.grant`.
    Invoke,
}

impl ShownAt {
    fn path(self, context: &Context<'_>, grant: &Value) -> String {
        let exchange = context.at(Place::Grant);
        match self {
            Self::Exchange => exchange.to_owned(),
            Self::State => format!("{exchange}/{}", grant["grant_id"].as_str().unwrap_or_default()),
            Self::Invoke => INVOKE.to_owned(),
        }
    }

    /// The status of what is refused: whoever is not the grantee does not learn that there is a grant.
    const fn refuses(self) -> u16 {
        if matches!(self, Self::State) { 404 } else { 401 }
    }

    /// A request with a proof, as it is sent.
    fn request(self, context: &Context<'_>, scene: &Scene, proof: &str) -> Result<Request, Failed> {
        let grant = &scene.session.grant;
        let path = self.path(context, grant);
        let input = json!({"grant": grant, "proof": proof});
        Ok(match self {
            Self::Exchange => post(&path, &[], &input.to_string()),
            Self::Invoke => {
                let envelope = context.envelope(&scene.session.grantee, "memory.grant", &input)?;
                post(&path, &[], &envelope.to_string())
            }
            Self::State => {
                let headers = vec![("authorization".to_owned(), format!("OAP-Proof {proof}"))];
                Request { method: "GET", path, headers, body: None }
            }
        })
    }
}

/// Every condition on grantees' proofs, where they are shown.
pub(in super::super) async fn grant_proofs(context: &Context<'_>) -> Result<(), Failed> {
    for place in [ShownAt::Exchange, ShownAt::State, ShownAt::Invoke] {
        let scene = Scene::set(context, false).await?;
        let address = format!("{}{}", context.origin(), place.path(context, &scene.session.grant));
        for rule in GrantProofRule::ALL.iter().copied() {
            let mut cases = of_grant_proof(rule);
            cases.insert(0, Case { what: "nothing wrong", holds: true, change: |_, _| {} });
            for Case { what, holds, change } in cases {
                // Where it is waited for it is made anew: its times are those of the request.
                let last = Mutex::new(String::new());
                let made = || {
                    let mut jws = scene.grant_proof(context, &address)?;
                    change(&mut jws, &scene.around(context));
                    let proof = scene.made(&jws);
                    last.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&proof);
                    place.request(context, &scene, &proof)
                };
                let reply = context.send_each(made).await?;
                let must = if holds { 200 } else { place.refuses() };
                let told = |status: u16, must: u16| {
                    format!("{place:?}: {rule}: {what}: status {status}, must be {must}")
                };
                expect(reply.status == must, || told(reply.status, must))?;
                if rule == GrantProofRule::Once {
                    let proof = last.into_inner().unwrap_or_else(PoisonError::into_inner);
                    let again = context.send(place.request(context, &scene, &proof)?).await?;
                    expect(again.status == place.refuses(), || told(again.status, place.refuses()))?;
                }
            }
            context.note(&Condition::GrantProof(rule));
        }
    }
    Ok(())
}
