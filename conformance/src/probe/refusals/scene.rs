//! A grantee that may use every door, somebody else, and by how much the gateway's clock is ahead of ours.

use super::doors::NO_SUBSCRIPTION;
use super::jws::Jws;
use super::proofs::{Around, Skew};
use super::rules::{Door, ShownAt};
use crate::probe::Failed;
use crate::probe::context::{Context, INVOKE, Session, expect, post};
use crate::probe::declared::Place;
use crate::probe::wire::{Refused, Reply, Request};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use oap_identity::{Hash, Signer, SubscriptionId, Timestamp};
use serde_json::{Value, json};
use std::time::Duration;

/// By how much the gateway's clock is ahead of ours, in milliseconds: at least so much, and at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ahead {
    least: i64,
    most: i64,
}

impl Ahead {
    /// As the receipt of an answer tells it.
    pub(super) async fn told(context: &Context<'_>, session: &Session) -> Result<Self, Failed> {
        let before = context.now().millis();
        let told = context.answer(session, &json!({})).await?;
        let at: Option<Timestamp> = told["receipt"]["timestamp"].as_str().and_then(|at| at.parse().ok());
        let at = at.ok_or_else(|| Failed::Wrong("the receipt of an answer has no timestamp".to_owned()))?;
        Ok(Self { least: at.millis() - context.now().millis(), most: at.millis() - before })
    }

    /// Whether the gateway's clock is known to the millisecond: it stands, and is set.
    pub(super) fn is_exact(self, context: &Context<'_>) -> bool {
        context.sets_clock() && self.least == self.most
    }

    /// The gateway's clock, as far as it is known.
    pub(super) fn now(self, context: &Context<'_>) -> Timestamp {
        Timestamp::from_millis(context.now().millis() + self.least)
    }

    /// Lets time pass until the gateway's clock shows no time before this one; whether it can.
    pub(super) async fn after(self, context: &Context<'_>, time: Timestamp) -> Result<bool, Failed> {
        reach(context, time.millis() - self.least).await
    }

    /// Lets time pass until the gateway's clock shows no time after this one; whether it can.
    pub(super) async fn before(self, context: &Context<'_>, time: Timestamp) -> Result<bool, Failed> {
        reach(context, time.millis() - self.most).await
    }

    /// The latest that the gateway's clock may show.
    pub(super) fn latest(self, context: &Context<'_>) -> Timestamp {
        Timestamp::from_millis(context.now().millis() + self.most)
    }
}

/// Lets time pass until our clock shows this, in milliseconds.
async fn reach(context: &Context<'_>, millis: i64) -> Result<bool, Failed> {
    let left = u64::try_from(millis.saturating_sub(context.now().millis())).unwrap_or(0);
    context.advance(Duration::from_millis(left)).await
}

/// A grantee with a grant, and what it knows.
pub(super) struct Scene {
    pub(super) session: Session,
    /// The grants above its own, first one first.
    pub(super) above: Vec<Value>,
    pub(super) stranger: Signer,
    pub(super) ahead: Ahead,
    /// The name of its subscription.
    pub(super) subscription: String,
    pub(super) is_subscribed: bool,
    /// An item that it may see.
    pub(super) item: String,
    /// The same where it may have its vector: where the gateway has a model of embeddings.
    pub(super) vector: Option<String>,
}

/// A draft of a grant for everything that a gateway offers.
pub(super) fn everything(context: &Context<'_>, grantee: &Signer, label: &str, subscribes: bool) -> Value {
    let mut draft = context.draft(grantee, label, 4);
    let operations: &[&str] =
        if subscribes { &["query", "export", "subscribe"] } else { &["query", "export"] };
    (draft["operations"], draft["embedding_access"]) = (json!(operations), json!(true));
    draft
}

/// An item with a label of its own: that label, and the item's id.
pub(super) async fn noted(context: &Context<'_>) -> Result<(String, String), Failed> {
    let label = context.word();
    let item = json!({"kind": "fact", "content": {"text": "a note"}, "labels": [label]});
    let made = context.capture(&[item]).await?;
    Ok((label, made.into_iter().next().unwrap_or_default()))
}

/// A grantee with a token that is bound to no key; [`Failed::NotDeclared`] where a gateway gives none, which it need not.
pub(in crate::probe) async fn bearer(
    context: &Context<'_>,
    grantee: Signer,
    mut draft: Value,
) -> Result<Session, Failed> {
    draft["bearer"] = json!(true);
    let none = |why: &str| Failed::NotDeclared(format!("there are no bearer tokens: {why}"));
    let session = context.try_session(grantee, draft).await?;
    let session = session.map_err(|Refused(why)| none(&why))?;
    if session.bearer {
        Ok(session)
    } else {
        Err(none("a grant that allows them is exchanged for a bound one"))
    }
}

impl Scene {
    /// A grantee that may use every door; with a token that is bound to no key where that is wanted.
    pub(super) async fn set(
        context: &Context<'_>,
        of_bearer: bool,
        subscribes: bool,
    ) -> Result<Self, Failed> {
        let (label, item) = noted(context).await?;
        let grantee = context.stranger();
        let draft = everything(context, &grantee, &label, subscribes);
        let session = if of_bearer {
            bearer(context, grantee, draft).await?
        } else {
            context.session(grantee, draft).await?
        };
        if session.bearer && !of_bearer {
            return Err(Failed::Skipped("the gateway gives bearer tokens alone".to_owned()));
        }
        let mut scene = Self::of(context, session, Vec::new(), &item).await?;
        if subscribes && !of_bearer {
            scene.subscribe(context).await?;
        }
        Ok(scene)
    }

    /// A grantee with a token, and an item that its grant shows. Where clocks stand it begins with a second of the gateway's.
    pub(super) async fn of(
        context: &Context<'_>,
        session: Session,
        above: Vec<Value>,
        item: &str,
    ) -> Result<Self, Failed> {
        let ahead = Ahead::told(context, &session).await?;
        if ahead.is_exact(context) {
            let second = Timestamp::from_seconds(ahead.now(context).seconds() + 1);
            ahead.after(context, second).await?;
        }
        Ok(Self {
            session,
            above,
            stranger: context.stranger(),
            ahead,
            subscription: NO_SUBSCRIPTION.to_owned(),
            is_subscribed: false,
            item: item.to_owned(),
            vector: context.declared().embeddings.then(|| item.to_owned()),
        })
    }

    /// Somebody who has a grant to show, and no token.
    pub(super) fn shown(context: &Context<'_>, grant: Value, ahead: Ahead) -> Self {
        Self {
            session: Session { grantee: context.stranger(), grant, token: String::new(), bearer: false },
            above: Vec::new(),
            stranger: context.stranger(),
            ahead,
            subscription: NO_SUBSCRIPTION.to_owned(),
            is_subscribed: false,
            item: String::new(),
            vector: None,
        }
    }

    /// Subscribes, under a name of its own.
    pub(super) async fn subscribe(&mut self, context: &Context<'_>) -> Result<(), Failed> {
        self.subscription = SubscriptionId::new(context.now(), context.random()).to_string();
        let status = self.asked(context, Door::Subscribe).await?.status;
        expect(status == 200, || {
            format!("a subscription with nothing wrong: status {status} instead of 200")
        })?;
        self.is_subscribed = true;
        Ok(())
    }

    pub(super) fn around(&self, context: &Context<'_>) -> Around {
        Around {
            now: self.ahead.now(context).seconds(),
            skew: if self.ahead.is_exact(context) { Skew::EXACT } else { Skew::NEAR },
            strangers_jwk: self.stranger.public().jwk(),
            strangers_kid: self.stranger.kid().to_string(),
        }
    }

    /// A DPoP proof as it must be.
    pub(super) fn proof(&self, context: &Context<'_>, door: Door, token: &str) -> Jws {
        let key = &self.session.grantee;
        let ath = URL_SAFE_NO_PAD.encode(Hash::of(token.as_bytes()).as_bytes());
        let path = door.path(context, &self.subscription, self.vector.as_deref());
        let url = format!("{}{path}", context.origin());
        let now = self.ahead.now(context).seconds();
        Jws::new(
            json!({"typ": "dpop+jwt", "alg": "EdDSA", "jwk": key.public().jwk()}),
            json!({"jti": context.word(), "htm": door.method(), "htu": url, "iat": now, "ath": ath}),
        )
    }

    pub(super) fn made(&self, jws: &Jws) -> String {
        jws.made(&self.session.grantee, &self.stranger)
    }

    /// What a request with nothing wrong is answered.
    pub(super) async fn asked(&self, context: &Context<'_>, door: Door) -> Result<Reply, Failed> {
        let token = &self.session.token;
        let scheme = if self.session.bearer { "Bearer" } else { "DPoP" };
        let proofs = || match self.session.bearer {
            true => Vec::new(),
            false => vec![self.made(&self.proof(context, door, token))],
        };
        door.send(context, self, &[format!("{scheme} {token}")], proofs).await
    }

    /// That a request with nothing wrong is let in.
    pub(super) async fn control(&self, context: &Context<'_>, door: Door) -> Result<(), Failed> {
        let (said, must) = (door.said(&self.asked(context, door).await?), door.let_in(self));
        expect(said.status == must, || {
            format!("{door}: a request with nothing wrong: status {}, must be {must}", said.status)
        })
    }

    /// A grantee's proof as it must be, for an address.
    pub(super) fn grant_proof(&self, context: &Context<'_>, address: &str) -> Result<Jws, Failed> {
        let hash = Hash::of_canonical(&self.session.grant).map_err(|e| Failed::Skipped(e.to_string()))?;
        let now = self.ahead.now(context).seconds();
        let mut proof = unnamed_proof(context, &self.session.grantee, address, now);
        proof.claims["grant_hash"] = json!(hash);
        Ok(proof)
    }
}

/// A grantee's proof for an address that names no grant, made at a time in seconds.
pub(super) fn unnamed_proof(context: &Context<'_>, grantee: &Signer, address: &str, now: i64) -> Jws {
    Jws::new(
        json!({"typ": "oap-grant-proof+jwt", "alg": "EdDSA", "kid": grantee.kid()}),
        json!({
            "iss": grantee.did(), "sub": grantee.did(), "aud": address, "jti": context.word(), "iat": now, "exp": now + 60,
        }),
    )
}

impl ShownAt {
    pub(super) fn path(self, context: &Context<'_>, grant: &Value) -> String {
        let exchange = context.at(Place::Grant);
        match self {
            Self::Exchange => exchange.to_owned(),
            Self::State => format!("{exchange}/{}", grant["grant_id"].as_str().unwrap_or_default()),
            Self::Invoke => INVOKE.to_owned(),
        }
    }

    /// The status of a proof that is refused: whoever is not the grantee does not learn that there is a grant.
    pub(super) const fn refuses(self) -> u16 {
        if matches!(self, Self::State) { 404 } else { 401 }
    }

    /// A request with a proof, as it is sent.
    pub(super) fn request(
        self,
        context: &Context<'_>,
        scene: &Scene,
        proof: &str,
    ) -> Result<Request, Failed> {
        let grant = &scene.session.grant;
        let path = self.path(context, grant);
        let mut input = json!({"grant": grant, "proof": proof});
        if !scene.above.is_empty() {
            input["chain"] = json!(scene.above);
        }
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

    /// What a proof with nothing wrong is answered.
    pub(super) async fn asked(self, context: &Context<'_>, scene: &Scene) -> Result<Reply, Failed> {
        let address = format!("{}{}", context.origin(), self.path(context, &scene.session.grant));
        let made = || {
            let proof = scene.made(&scene.grant_proof(context, &address)?);
            self.request(context, scene, &proof)
        };
        context.send_each(made).await
    }
}
