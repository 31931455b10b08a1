//! Asking as a grantee: grants, tokens, queries, exports, envelopes.

use super::{Context, PURPOSE, Reading, expect, needed, owned, post};
use crate::probe::Failed;
use crate::probe::declared::Place;
use crate::probe::drafted::departures_of_grant;
use crate::probe::wire::{Refused, Reply, Request};
use oap_grants::{dpop, exchange};
use oap_identity::{Hash, RequestId, Signer, json as strict};
use serde_json::{Value, json};
use std::sync::{Mutex, PoisonError};

/// A grantee with a token.
#[allow(missing_docs, reason = "the names say it")]
pub struct Session {
    /// Its keys.
    pub grantee: Signer,
    pub grant: Value,
    pub token: String,
    /// How it is presented.
    pub bearer: bool,
}

impl Context<'_> {
    /// Issues a grant, with the [`PURPOSE`] of a run, and exchanges it.
    ///
    /// # Errors
    /// As [`Context::owner`]; [`Failed::Wrong`] when a good grant is refused, or is not as it was drafted.
    pub async fn session(&self, grantee: Signer, draft: Value) -> Result<Session, Failed> {
        Ok(self.session_and_reply(grantee, draft).await?.0)
    }

    /// The same, with what the exchange was answered with.
    pub(in crate::probe) async fn session_and_reply(
        &self,
        grantee: Signer,
        draft: Value,
    ) -> Result<(Session, Reply), Failed> {
        let grant = self.issued(draft).await?;
        let reply = self.exchange(&grantee, &grant).await?;
        Ok((session_of(grantee, grant, "a grant in force was", &reply)?, reply))
    }

    /// The same of a draft that need not be allowed: where it is refused, at issue or at its exchange, the protocol leaves open.
    ///
    /// # Errors
    /// As [`Context::session`], but for what is refused.
    pub async fn try_session(
        &self,
        grantee: Signer,
        draft: Value,
    ) -> Result<Result<Session, Refused>, Failed> {
        let grant = match self.try_issued(draft).await? {
            Ok(grant) => grant,
            Err(refused) => return Ok(Err(refused)),
        };
        let reply = self.exchange(&grantee, &grant).await?;
        if (400..500).contains(&reply.status) {
            return Ok(Err(Refused(format!("its exchange: status {}", reply.status))));
        }
        session_of(grantee, grant, "a grant in force was", &reply).map(Ok)
    }

    /// Issues a grant that must be allowed; not exchanged yet.
    pub(in crate::probe) async fn issued(&self, draft: Value) -> Result<Value, Failed> {
        let grant = self.try_issued(draft).await?;
        grant.map_err(|Refused(why)| Failed::Skipped(format!("the owner's side: {why}")))
    }

    /// A grant of a draft, with the [`PURPOSE`] of a run: as it was drafted, of a profile that the manifest names.
    async fn try_issued(&self, mut draft: Value) -> Result<Result<Value, Refused>, Failed> {
        draft["purpose"] = json!(PURPOSE);
        let profile = draft["redaction_profile"].as_str().unwrap_or_default();
        if !self.has_profile(profile) {
            return Err(Failed::Skipped(format!("the manifest does not name the profile {profile}")));
        }
        let grant = match self.try_owner(json!({"do": "grant", "draft": draft})).await? {
            Ok(done) => done["grant"].clone(),
            Err(refused) => return Ok(Err(refused)),
        };
        let departs = departures_of_grant(&draft, &grant);
        needed(departs.is_empty(), || format!("a grant is not as it was drafted: {}", departs.join("; ")))?;
        Ok(Ok(grant))
    }

    /// A fresh grantee with a token for a grant over one label.
    ///
    /// # Errors
    /// As [`Context::session`].
    pub async fn granted(&self, label: &str, level: u8) -> Result<Session, Failed> {
        let grantee = self.stranger();
        let draft = self.draft(&grantee, label, level);
        self.session(grantee, draft).await
    }

    /// Presents a grant with a proof of its grantee's key.
    ///
    /// # Errors
    /// As [`Context::send`].
    pub async fn exchange(&self, grantee: &Signer, grant: &Value) -> Result<Reply, Failed> {
        self.exchange_with_proof_for(grantee, grant, grant).await
    }

    /// Exchanges a grant that was made from others; `above` are those, first one first. With what that was answered with.
    ///
    /// # Errors
    /// As [`Context::session`].
    pub async fn session_below(
        &self,
        grantee: Signer,
        grant: Value,
        above: &[Value],
    ) -> Result<(Session, Reply), Failed> {
        let reply = self.present(&grantee, &grant, &grant, above).await?;
        Ok((session_of(grantee, grant, "a grant that was passed on was", &reply)?, reply))
    }

    /// A proof of a grantee's key, made for a grant, as it is shown at a path.
    fn grant_proof(&self, grantee: &Signer, grant: &Value, path: &str) -> Result<String, Failed> {
        let endpoint = format!("{}{path}", self.origin);
        let hash = Hash::of_canonical(grant).map_err(|e| Failed::Skipped(e.to_string()))?;
        exchange::prove(grantee, &endpoint, hash, self.now(), self.random)
            .map_err(|e| Failed::Skipped(e.to_string()))
    }

    /// The same, with the proof made for another grant.
    ///
    /// # Errors
    /// As [`Context::send`].
    pub async fn exchange_with_proof_for(
        &self,
        grantee: &Signer,
        grant: &Value,
        proved: &Value,
    ) -> Result<Reply, Failed> {
        self.present(grantee, grant, proved, &[]).await
    }

    /// Presents a grant with those above it, and a proof made for one of them.
    pub(in crate::probe) async fn present(
        &self,
        grantee: &Signer,
        grant: &Value,
        proved: &Value,
        above: &[Value],
    ) -> Result<Reply, Failed> {
        let path = self.at(Place::Grant);
        self.send_each(|| {
            let body = self.handed_in(grant, above, self.grant_proof(grantee, proved, path)?);
            Ok(post(path, &[], &body.to_string()))
        })
        .await
    }

    /// The same as the action `memory.grant`.
    pub(in crate::probe) async fn present_by_action(
        &self,
        grantee: &Signer,
        grant: &Value,
        above: &[Value],
    ) -> Result<Reply, Failed> {
        self.send_each(|| {
            let input = self.handed_in(grant, above, self.grant_proof(grantee, grant, INVOKE)?);
            Ok(post(INVOKE, &[], &self.envelope(grantee, "memory.grant", &input)?.to_string()))
        })
        .await
    }

    /// Presents a grant with another member beside it, at the endpoint or as the action `memory.grant`.
    pub(in crate::probe) async fn present_with(
        &self,
        grantee: &Signer,
        grant: &Value,
        by_action: bool,
        (name, value): (&str, &Value),
    ) -> Result<Reply, Failed> {
        let path = if by_action { INVOKE } else { self.at(Place::Grant) };
        self.send_each(|| {
            let mut body = self.handed_in(grant, &[], self.grant_proof(grantee, grant, path)?);
            body[name] = value.clone();
            if by_action {
                body = self.envelope(grantee, "memory.grant", &body)?;
            }
            Ok(post(path, &[], &body.to_string()))
        })
        .await
    }

    /// What is sent to exchange a grant.
    fn handed_in(&self, grant: &Value, above: &[Value], proof: String) -> Value {
        let mut body = json!({"grant": grant, "proof": proof});
        if !above.is_empty() {
            body["chain"] = json!(above);
        }
        body
    }

    /// POST of a document.
    ///
    /// # Errors
    /// As [`Context::send`].
    pub async fn post(&self, path: &str, headers: &[(&str, String)], body: &Value) -> Result<Reply, Failed> {
        self.post_text(path, headers, &body.to_string()).await
    }

    async fn post_text(&self, path: &str, headers: &[(&str, String)], body: &str) -> Result<Reply, Failed> {
        self.send(post(path, headers, body)).await
    }

    /// The headers of a request under a session, its proof made with a key.
    ///
    /// # Errors
    /// [`Failed::Skipped`]; none in practice.
    pub fn credentials(
        &self,
        session: &Session,
        key: &Signer,
        method: &str,
        path: &str,
    ) -> Result<Vec<(&'static str, String)>, Failed> {
        if session.bearer {
            return Ok(vec![("authorization", format!("Bearer {}", session.token))]);
        }
        let url = format!("{}{}", self.origin, path.split('?').next().unwrap_or_default());
        let target = dpop::Request { method, url: &url };
        let proof = dpop::prove(key, target, &session.token, self.now(), self.random)
            .map_err(|e| Failed::Skipped(e.to_string()))?;
        Ok(vec![("authorization", format!("DPoP {}", session.token)), ("dpop", proof)])
    }

    /// A query under a session.
    ///
    /// # Errors
    /// As [`Context::send`].
    pub async fn query(&self, session: &Session, query: &Value) -> Result<Reply, Failed> {
        self.query_text(session, &query.to_string()).await
    }

    /// The same, of a body that need not be JSON.
    ///
    /// # Errors
    /// As [`Context::send`].
    pub async fn query_text(&self, session: &Session, body: &str) -> Result<Reply, Failed> {
        let path = self.at(Place::Query);
        let made = || Ok(post(path, &self.credentials(session, &session.grantee, "POST", path)?, body));
        self.send_each(made).await
    }

    /// An empty query as a body of another media type.
    pub(in crate::probe) async fn query_of_type(
        &self,
        session: &Session,
        media_type: &str,
    ) -> Result<Reply, Failed> {
        self.query_with(session, &json!({}), |request| {
            request.headers.retain(|(name, _)| name != "content-type");
            request.headers.push(("content-type".to_owned(), media_type.to_owned()));
        })
        .await
    }

    /// A query in a request that has a name.
    pub(in crate::probe) async fn query_named(
        &self,
        session: &Session,
        name: &str,
        query: &Value,
    ) -> Result<Reply, Failed> {
        self.query_with(session, query, |request| {
            request.headers.push(("oap-request-id".to_owned(), name.to_owned()));
        })
        .await
    }

    async fn query_with(
        &self,
        session: &Session,
        query: &Value,
        change: impl Fn(&mut Request) + Sync,
    ) -> Result<Reply, Failed> {
        let path = self.at(Place::Query);
        let made = || {
            let credentials = self.credentials(session, &session.grantee, "POST", path)?;
            let mut request = post(path, &credentials, &query.to_string());
            change(&mut request);
            Ok(request)
        };
        self.send_each(made).await
    }

    /// An envelope for [`INVOKE`], signed by its agent (protocol section 12, bytes 8).
    ///
    /// # Errors
    /// [`Failed::Skipped`]; none in practice.
    pub fn envelope(&self, agent: &Signer, action: &str, input: &Value) -> Result<Value, Failed> {
        let mut envelope = json!({
            "oap_version": "1.0", "request_id": RequestId::new(self.now(), self.random), "timestamp": self.now(),
            "principal_did": agent.did(), "agent_did": agent.did(), "action": action, "input": input,
            "context": {"locale": "en-US", "currency": "EUR", "jurisdiction_user": "DE", "jurisdiction_agent": "DE"},
        });
        seal(&mut envelope, agent, agent)?;
        Ok(envelope)
    }

    /// A query under a session as the action `memory.query`. The reply is that of the query: what the envelope holds; and the whole of it.
    ///
    /// # Errors
    /// As [`Context::send`]; [`Failed::Wrong`] where the envelope answers another one.
    pub async fn query_by_envelope(
        &self,
        session: &Session,
        query: &Value,
    ) -> Result<(Reply, Reply), Failed> {
        // Where it is waited for it is made anew: its time is that of the request.
        let last = Mutex::new(Value::Null);
        let made = || {
            let envelope = self.envelope(&session.grantee, "memory.query", query)?;
            last.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&envelope);
            let headers = self.credentials(session, &session.grantee, "POST", INVOKE)?;
            Ok(post(INVOKE, &headers, &envelope.to_string()))
        };
        let reply = self.send_each(made).await?;
        let envelope = last.into_inner().unwrap_or_else(PoisonError::into_inner);
        let answer = reply.json();
        expect(answer["request_id"] == envelope["request_id"], || {
            format!("{INVOKE}: request_id is {}, must be that of the request", answer["request_id"])
        })?;
        let inner = if reply.status == 200 {
            expect(answer["receipt_id"] == answer["output"]["receipt"]["receipt_id"], || {
                format!(
                    "{INVOKE}: receipt_id is {}, must be that of the answer's receipt",
                    answer["receipt_id"]
                )
            })?;
            answer["output"].clone()
        } else {
            let error = &answer["error"];
            json!({"error": error["code"], "message": error["message"], "request_id": answer["request_id"]})
        };
        Ok((Reply { bytes: inner.to_string().into_bytes(), ..reply.clone() }, reply))
    }

    /// Asks for the state of a grant, with a proof of somebody's key.
    ///
    /// # Errors
    /// As [`Context::send`].
    pub async fn state_of(&self, grantee: &Signer, grant: &Value) -> Result<Reply, Failed> {
        let path = format!("{}/{}", self.at(Place::Grant), grant["grant_id"].as_str().unwrap_or_default());
        let made = || {
            let proof = self.grant_proof(grantee, grant, &path)?;
            let headers = owned([("authorization", format!("OAP-Proof {proof}"))]);
            Ok(Request { method: "GET", path: path.clone(), headers, body: None })
        };
        self.send_each(made).await
    }

    /// Hands in a grantee's signature under a receipt.
    ///
    /// # Errors
    /// As [`Context::send`].
    pub(in crate::probe) async fn countersign(
        &self,
        grantee: &Signer,
        receipt: &Value,
    ) -> Result<Reply, Failed> {
        let mut unsigned = receipt.clone();
        unsigned.as_object_mut().map(|members| members.remove("signatures"));
        let bytes = strict::canonical(&unsigned).map_err(|e| Failed::Skipped(e.to_string()))?;
        let signature = json!({"by": grantee.kid(), "alg": "EdDSA", "value": grantee.sign(&bytes)});
        let body = json!({"receipt_id": receipt["receipt_id"], "signature": signature});
        self.post("/oap/memory/ack", &[], &body).await
    }

    /// An export under a session.
    ///
    /// # Errors
    /// As [`Context::send`].
    pub async fn export(&self, session: &Session) -> Result<Reply, Failed> {
        self.export_beside(session, None).await
    }

    /// The same, with a body that nobody asked for.
    ///
    /// # Errors
    /// As [`Context::send`].
    pub async fn export_beside(&self, session: &Session, body: Option<&str>) -> Result<Reply, Failed> {
        let path = self.at(Place::Export);
        let made = || {
            let headers = owned(self.credentials(session, &session.grantee, "POST", path)?);
            let body = body.map(|body| body.as_bytes().to_vec());
            Ok(Request { method: "POST", path: path.to_owned(), headers, body })
        };
        self.send_each(made).await
    }

    /// A query that must be answered.
    ///
    /// # Errors
    /// As [`Context::query`]; another status than 200.
    pub async fn answer(&self, session: &Session, query: &Value) -> Result<Value, Failed> {
        let reply = self.query(session, query).await?;
        expect(reply.status == 200, || format!("a query under a grant in force: status {}", reply.status))?;
        Ok(reply.json())
    }

    /// POST of a document under a session.
    ///
    /// # Errors
    /// As [`Context::send`].
    pub async fn post_as(&self, session: &Session, path: &str, body: &Value) -> Result<Reply, Failed> {
        let body = body.to_string();
        let made = || Ok(post(path, &self.credentials(session, &session.grantee, "POST", path)?, &body));
        self.send_each(made).await
    }

    /// GET of a stream of events, maybe under a session, read as far as the first one; `last` is the number of the last that came.
    ///
    /// # Errors
    /// As [`Context::send`].
    pub async fn event_as(
        &self,
        session: Option<&Session>,
        path: &str,
        last: Option<&str>,
    ) -> Result<Reply, Failed> {
        let made = || {
            let presented = session.map(|session| self.credentials(session, &session.grantee, "GET", path));
            let mut headers = owned(presented.transpose()?.unwrap_or_default());
            headers.extend(last.map(|last| ("last-event-id".to_owned(), last.to_owned())));
            Ok(Request { method: "GET", path: path.to_owned(), headers, body: None })
        };
        self.send_for_event(made).await
    }

    /// Sends a request for a stream of events, made anew each time, and reads it as far as the first one.
    ///
    /// # Errors
    /// As [`Context::send_each`].
    pub(in crate::probe) async fn send_for_event(
        &self,
        make: impl Fn() -> Result<Request, Failed> + Send,
    ) -> Result<Reply, Failed> {
        self.send_as(Reading::FirstEvent, make).await
    }

    /// GET under a session.
    ///
    /// # Errors
    /// As [`Context::send`].
    pub async fn get_as(&self, session: &Session, path: &str) -> Result<Reply, Failed> {
        let made = || {
            let headers = owned(self.credentials(session, &session.grantee, "GET", path)?);
            Ok(Request { method: "GET", path: path.to_owned(), headers, body: None })
        };
        self.send_each(made).await
    }
}

/// What an exchange that must be answered gives.
fn session_of(grantee: Signer, grant: Value, what: &str, reply: &Reply) -> Result<Session, Failed> {
    let answer = reply.json();
    needed(reply.status == 200, || format!("{what} not exchanged: {} {}", reply.status, answer["message"]))?;
    let token = answer["memory_grant_jwt"].as_str().unwrap_or_default().to_owned();
    needed(!token.is_empty(), || "the answer has no memory_grant_jwt".to_owned())?;
    Ok(Session { grantee, grant, token, bearer: answer["token_type"] == "Bearer" })
}

/// Where actions are called by envelopes (protocol section 12).
pub const INVOKE: &str = "/oap/invoke";

/// Signs an envelope anew: the key of one signs, under the name of another.
///
/// # Errors
/// [`Failed::Skipped`] where it has no canonical form.
pub(in crate::probe) fn seal(envelope: &mut Value, by: &Signer, named: &Signer) -> Result<(), Failed> {
    envelope.as_object_mut().map(|members| members.remove("signature"));
    let bytes = strict::canonical(&envelope).map_err(|e| Failed::Skipped(e.to_string()))?;
    envelope["signature"] = json!({"alg": "EdDSA", "kid": named.kid(), "value": by.sign(&bytes)});
    Ok(())
}
