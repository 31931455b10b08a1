//! The conditions on credentials, brought to every endpoint that takes one.

use super::jws::Jws;
use super::proofs::{Around, Case, of_grant_proof, of_proof};
use super::rules::{Condition, GrantProofRule, ProofRule, TokenRule};
use super::tokens::{Given, violations};
use crate::probe::Failed;
use crate::probe::context::{Context, Reply, Request, Session, expect};
use crate::probe::declared::Place;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use oap_identity::{Hash, Signer, Timestamp};
use serde_json::{Value, json};

/// An endpoint that takes a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Door {
    Query,
    Export,
    Vector,
    Log,
}

impl Door {
    const ALL: [Self; 4] = [Self::Query, Self::Export, Self::Vector, Self::Log];

    const fn method(self) -> &'static str {
        match self {
            Self::Query | Self::Export => "POST",
            Self::Vector | Self::Log => "GET",
        }
    }

    fn path<'a>(self, context: &'a Context<'_>) -> &'a str {
        match self {
            Self::Query => context.at(Place::Query),
            Self::Export => context.at(Place::Export),
            Self::Vector => "/oap/memory/vec/mem_01HX2QFXR0Q4S8T9V3W7X2Y0Z1",
            Self::Log => "/oap/audit",
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

    async fn send(
        self,
        context: &Context<'_>,
        authorization: &[String],
        proofs: &[String],
    ) -> Result<Reply, Failed> {
        let all = [("authorization", authorization), ("dpop", proofs)];
        let mut headers: Vec<(String, String)> = all
            .into_iter()
            .flat_map(|(name, values)| values.iter().map(move |value| (name.to_owned(), value.clone())))
            .collect();
        let body = (self == Self::Query).then(|| {
            headers.push(("content-type".to_owned(), "application/oap+json".to_owned()));
            b"{}".to_vec()
        });
        let path = self.path(context).to_owned();
        context.send(Request { method: self.method(), path, headers, body }).await
    }
}

/// A grantee that may use every endpoint, somebody else, and by how many seconds the gateway's time is ahead of ours.
struct Scene {
    session: Session,
    stranger: Signer,
    ahead: i64,
}

impl Scene {
    async fn set(context: &Context<'_>) -> Result<Self, Failed> {
        let label = context.word();
        context.capture(&[json!({"kind": "fact", "content": {"text": "a note"}, "labels": [label]})]).await?;
        let grantee = context.stranger();
        let mut draft = context.draft(&grantee, &label, 4);
        draft["operations"] = json!(["query", "export"]);
        draft["embedding_access"] = json!(true);
        let session = context.session(grantee, draft).await?;
        if session.bearer {
            return Err(Failed::Skipped("the gateway gives bearer tokens alone".to_owned()));
        }
        let told = context.answer(&session, &json!({})).await?;
        let at: Option<Timestamp> = told["receipt"]["timestamp"].as_str().and_then(|at| at.parse().ok());
        let at = at.ok_or_else(|| Failed::Wrong("the receipt of an answer has no timestamp".to_owned()))?;
        Ok(Self { session, stranger: context.stranger(), ahead: at.seconds() - context.now().seconds() })
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

    /// That a request with nothing wrong is let in.
    async fn control(&self, context: &Context<'_>, door: Door) -> Result<(), Failed> {
        let proof = self.made(&self.proof(context, door, &self.session.token));
        let reply = door.send(context, &[format!("DPoP {}", self.session.token)], &[proof]).await?;
        expect(reply.status == door.let_in(), || {
            format!(
                "{door:?}: a request with nothing wrong: status {}, must be {}",
                reply.status,
                door.let_in()
            )
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
    let scene = Scene::set(context).await?;
    let token = &scene.session.token;
    let document = context.document().await?;
    let granter = document.keys().last().map(|key| *key.public().as_bytes());
    let status = Request { method: "GET", path: context.at(Place::Status).to_owned(), ..Request::default() };
    let status = String::from_utf8_lossy(&context.send(status).await?.bytes).into_owned();
    let own = scene.grant_proof(context, context.at(Place::Grant))?;
    let given = Given {
        token,
        granter: granter.unwrap_or_default(),
        stranger: &scene.stranger,
        others: vec![("the status list", status), ("the grantee's own proof", scene.made(&own))],
    };
    for door in Door::ALL {
        for rule in TokenRule::ALL.iter().copied().filter(|rule| door.applies(*rule)) {
            scene.control(context, door).await?;
            for shown in violations(rule, &given) {
                let first = shown.authorization.first().map(String::as_str).unwrap_or_default();
                let text = first.rsplit(' ').next().unwrap_or_default();
                let proof = scene.made(&scene.proof(context, door, text));
                let reply = door.send(context, &shown.authorization, &[proof]).await?;
                expect(reply.status == 401, || {
                    format!("{door:?}, token: {rule}: {}: status {}, must be 401", shown.what, reply.status)
                })?;
            }
            context.note(&Condition::Token(rule));
        }
    }
    Ok(())
}

/// Every condition on DPoP proofs, at every endpoint.
pub(in super::super) async fn proofs_of_possession(context: &Context<'_>) -> Result<(), Failed> {
    for door in Door::ALL {
        // A grantee of its own for each: what is asked too often is refused for another reason.
        let scene = Scene::set(context).await?;
        let authorization = [format!("DPoP {}", scene.session.token)];
        for rule in ProofRule::ALL.iter().copied() {
            scene.control(context, door).await?;
            for Case { what, holds, change } in of_proof(rule) {
                let mut jws = scene.proof(context, door, &scene.session.token);
                change(&mut jws, &scene.around(context));
                let proofs = vec![scene.made(&jws); jws.copies];
                let reply = door.send(context, &authorization, &proofs).await?;
                let must = if holds { door.let_in() } else { 401 };
                expect(reply.status == must, || {
                    format!("{door:?}, proof: {rule}: {what}: status {}, must be {must}", reply.status)
                })?;
            }
            if rule == ProofRule::Once {
                let proof = scene.made(&scene.proof(context, door, &scene.session.token));
                for must in [door.let_in(), 401] {
                    let reply = door.send(context, &authorization, std::slice::from_ref(&proof)).await?;
                    expect(reply.status == must, || {
                        format!("{door:?}, proof: {rule}: status {}, must be {must}", reply.status)
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
enum Gate {
    Exchange,
    State,
}

impl Gate {
    fn path(self, context: &Context<'_>, grant: &Value) -> String {
        let exchange = context.at(Place::Grant);
        match self {
            Self::Exchange => exchange.to_owned(),
            Self::State => format!("{exchange}/{}", grant["grant_id"].as_str().unwrap_or_default()),
        }
    }

    /// The status of what is refused: whoever is not the grantee does not learn that there is a grant.
    const fn refuses(self) -> u16 {
        if matches!(self, Self::State) { 404 } else { 401 }
    }

    async fn send(self, context: &Context<'_>, scene: &Scene, proof: &str) -> Result<Reply, Failed> {
        let grant = &scene.session.grant;
        let path = self.path(context, grant);
        match self {
            Self::Exchange => context.post(&path, &[], &json!({"grant": grant, "proof": proof})).await,
            Self::State => {
                let headers = vec![("authorization".to_owned(), format!("OAP-Proof {proof}"))];
                context.send(Request { method: "GET", path, headers, body: None }).await
            }
        }
    }
}

/// Every condition on grantees' proofs, where they are shown.
pub(in super::super) async fn grant_proofs(context: &Context<'_>) -> Result<(), Failed> {
    for gate in [Gate::Exchange, Gate::State] {
        let scene = Scene::set(context).await?;
        let address = format!("{}{}", context.origin(), gate.path(context, &scene.session.grant));
        for rule in GrantProofRule::ALL.iter().copied() {
            let mut cases = of_grant_proof(rule);
            cases.insert(0, Case { what: "nothing wrong", holds: true, change: |_, _| {} });
            for Case { what, holds, change } in cases {
                let mut jws = scene.grant_proof(context, &address)?;
                change(&mut jws, &scene.around(context));
                let proof = scene.made(&jws);
                let reply = gate.send(context, &scene, &proof).await?;
                let must = if holds { 200 } else { gate.refuses() };
                let told = |status: u16, must: u16| {
                    format!("{gate:?}: {rule}: {what}: status {status}, must be {must}")
                };
                expect(reply.status == must, || told(reply.status, must))?;
                if rule == GrantProofRule::Once {
                    let again = gate.send(context, &scene, &proof).await?;
                    expect(again.status == gate.refuses(), || told(again.status, gate.refuses()))?;
                }
            }
            context.note(&Condition::GrantProof(rule));
        }
    }
    Ok(())
}
