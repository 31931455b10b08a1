//! What a grant is exchanged for, and what its grantee is told of its state (protocol section 5.1).

use super::Model;
use super::check::{Difference, Found};
use super::rule::{Exchanged, GrantState, Refusal, Rule};
use oap_identity::Timestamp;
use oap_identity::time::MAX_SKEW;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// Longest life of a token, in seconds.
const MAX_LIFE: i64 = 600;
/// Places of the status list.
const PLACES: u64 = 131_072;
/// A step that counts as the least.
const LEAST: Duration = Duration::from_millis(1);

/// What a grant must be exchanged for.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpectedExchange {
    /// Claims of the token with their values.
    claims: Value,
    /// The thumbprint of the key that it is bound to; `None` for a bearer token.
    jkt: Option<String>,
    /// The last second of its life: no token outlives its grant.
    ends: i64,
    /// When it is exchanged.
    at: Timestamp,
    /// The id of the key that signs it, where it is known.
    signed_by: Option<String>,
    /// Where the status list is, for a grant that gets a place in it; and whether it must get one: not where none is listed.
    status: Option<(String, bool)>,
}

impl ExpectedExchange {
    /// The differences of a reply, and of the header and the claims of the token in it.
    #[must_use]
    pub fn differences(&self, reply: &Value, header: &Value, claims: &Value) -> Vec<Difference> {
        let mut found = Found::default();
        let keys = |value: &Value| -> BTreeSet<String> {
            value.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
        };
        let mut members: BTreeSet<String> =
            ["memory_grant_jwt", "expires_in", "token_type", "receipt_id"].map(str::to_owned).into();
        let status = self.status.as_ref().filter(|(_, must)| *must || !reply["status"].is_null());
        members.extend(status.map(|_| "status".to_owned()));
        if keys(reply) != members {
            found.add("", format!("has the members {:?}, must have {members:?}", keys(reply)));
        }
        let kind = if self.jkt.is_some() { "DPoP" } else { "Bearer" };
        found.equal("/token_type", &reply["token_type"], &json!(kind));
        if !reply["receipt_id"].as_str().is_some_and(|id| id.starts_with("urn:oap:receipt:")) {
            found.add("/receipt_id", "is not the id of a receipt");
        }
        if let Some((uri, _)) = status {
            let place = &reply["status"]["status_list"];
            if place["idx"].as_u64().is_none_or(|place| place >= PLACES) {
                found.add("/status/status_list/idx", format!("is {}, must be a place", place["idx"]));
            }
            found.equal("/status/status_list/uri", &place["uri"], &json!(uri));
        }
        self.token_differs(reply, header, claims, &mut found);
        found.0
    }

    fn token_differs(&self, reply: &Value, header: &Value, claims: &Value, found: &mut Found) {
        for (name, wanted) in [("alg", "EdDSA"), ("typ", "oap-memory-grant+jwt")] {
            found.equal(format!("/memory_grant_jwt/header/{name}"), &header[name], &json!(wanted));
        }
        if let Some(kid) = &self.signed_by {
            found.equal("/memory_grant_jwt/header/kid", &header["kid"], &json!(kid));
        }
        for (name, wanted) in self.claims.as_object().into_iter().flatten() {
            found.equal(format!("/memory_grant_jwt/{name}"), &claims[name.as_str()], wanted);
        }
        if claims["jti"].as_str().is_none_or(str::is_empty) {
            found.add("/memory_grant_jwt/jti", "is no name");
        }
        let bound = self.jkt.as_ref().map_or(Value::Null, |jkt| json!({"jkt": jkt}));
        found.equal("/memory_grant_jwt/cnf", &claims["cnf"], &bound);
        let second = |name: &str| claims[name].as_i64().unwrap_or(0);
        let (made, begins, ends) = (second("iat"), second("nbf"), second("exp"));
        let skew = MAX_SKEW.as_secs().cast_signed();
        for (name, second) in [("iat", made), ("nbf", begins)] {
            if (second - self.at.seconds()).abs() > skew {
                found.add(format!("/memory_grant_jwt/{name}"), format!("is {second}, must be about now"));
            }
        }
        if ends <= made || ends - made > MAX_LIFE || ends > self.ends {
            let why =
                format!("is {ends}, must be within {MAX_LIFE} seconds of {made}, and at most {}", self.ends);
            found.add("/memory_grant_jwt/exp", why);
        }
        // A second may go by between the two.
        let life = reply["expires_in"].as_i64();
        if life.is_none_or(|life| (life - (ends - made)).abs() > 1) {
            found.add("/expires_in", format!("is {}, must be {}", reply["expires_in"], ends - made));
        }
    }
}

impl Model {
    /// What a grant in force must be exchanged for by its grantee, whose key has this thumbprint (RFC 7638); `None` where the grant is not
    /// known.
    #[must_use]
    pub fn exchange(&self, grant_id: &str, thumbprint: &str, at: Timestamp) -> Option<ExpectedExchange> {
        let chain = self.chain(grant_id);
        let grant = chain.first()?;
        let note = |rule: Exchanged| self.decided.note(Rule::Exchanged(rule));
        note(Exchanged::Claims);
        note(if grant.bearer { Exchanged::Bearer } else { Exchanged::Bound });
        note(if chain.len() > 1 { Exchanged::Delegated } else { Exchanged::First });
        let ends = grant.ends.unwrap_or(at).seconds();
        note(if ends - at.seconds() < MAX_LIFE { Exchanged::EndsWithGrant } else { Exchanged::Lives });
        Some(ExpectedExchange {
            claims: json!({
                "iss": grant.granter, "sub": grant.grantee, "aud": self.origin, "grant_id": grant.id,
                "grant_hash": grant.hash, "oap_scope": grant.scope,
            }),
            jkt: (!grant.bearer).then(|| thumbprint.to_owned()),
            ends,
            at,
            signed_by: self.key_in_use().map(str::to_owned),
            status: chain
                .last()
                .filter(|_| chain.len() > 1)
                .map(|first| (self.revocation.clone(), first.has_place)),
        })
    }

    /// What the grantee of a grant is told of its state; anybody else is told that there is no such grant.
    #[must_use]
    pub fn state(&self, grant_id: &str, is_grantee: bool, at: Timestamp) -> ExpectedState {
        let chain = self.chain(grant_id);
        let note = |rule: GrantState| self.decided.note(Rule::GrantState(rule));
        let Some(grant) = chain.first().filter(|_| is_grantee) else {
            note(GrantState::OfAnother);
            return ExpectedState(None);
        };
        let state = match self.out_of_force(&chain, at) {
            None => "active",
            Some(Refusal::Revoked | Refusal::AboveRevoked) => "revoked",
            Some(Refusal::Draft) => "draft",
            Some(_) => "expired",
        };
        let (begins, ends) = (grant.begins.unwrap_or(at), grant.ends.unwrap_or(at));
        note(match state {
            "revoked" if grant.revoked.is_none() => GrantState::AboveRevoked,
            "revoked" => GrantState::Revoked,
            "draft" if at.plus(LEAST) == begins => GrantState::LastDraft,
            "draft" => GrantState::Draft,
            "expired" if at == ends => GrantState::Ends,
            "expired" => GrantState::Expired,
            _ if at == begins => GrantState::Begins,
            _ if at.plus(LEAST) == ends => GrantState::LastActive,
            _ => GrantState::Active,
        });
        ExpectedState(Some(json!({"grant_id": grant.id, "state": state})))
    }
}

/// What a question for the state of a grant must be answered with; nothing where it is not there for who asks.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpectedState(Option<Value>);

impl ExpectedState {
    /// The differences of what came back.
    #[must_use]
    pub fn differences(&self, status: u16, body: &Value) -> Vec<Difference> {
        let mut found = Found::default();
        let wanted = if self.0.is_some() { 200 } else { 404 };
        if status != wanted {
            found.add("/status", format!("is {status}, must be {wanted}"));
            return found.0;
        }
        match &self.0 {
            Some(state) => found.equal("", body, state),
            None => found.equal("/error", &body["error"], &json!("not_found")),
        }
        found.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oap_identity::Hash;

    const NOW: &str = "2026-05-01T12:00:00Z";

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn model() -> (Model, Value) {
        let manifest = json!({"endpoints": {
            "query": "https://g.example/oap/memory/query", "revocation": "https://g.example/oap/memory/status",
        }});
        let mut model = Model::new("did:web:user.example".parse().unwrap(), &manifest, Vec::new());
        let grant = json!({
            "grant_id": "mgr_1", "granter": "did:web:user.example#personal", "grantee": "did:web:b.example", "filter": {}, "max_items": 5,
            "trust_level": 1, "redaction_profile": "oap.profile.projection.memory.v1", "delegable": {"max_depth": 1},
            "issued_at": "2026-05-01T11:00:00.000Z", "not_before": "2026-05-01T12:00:00.000Z", "expires_at": "2026-05-01T12:05:00.000Z",
            "status": {"status_list": {"idx": 7, "uri": "https://g.example/oap/memory/status"}},
        });
        model.granted(&grant);
        let mut child = grant.clone();
        let hash = json!(Hash::of_canonical(&grant).unwrap());
        (child["grant_id"], child["parent"], child["grantee"]) =
            (json!("mgr_2"), hash, json!("did:web:c.example"));
        model.granted(&child);
        (model, grant)
    }

    #[test]
    fn a_token_says_what_its_grant_says() {
        let (model, grant) = model();
        let now = at(NOW);
        let reply = json!({
            "memory_grant_jwt": "x", "expires_in": 300, "token_type": "DPoP", "receipt_id": "urn:oap:receipt:01KQHPHXG0A1AREXN59HZY6HH6",
        });
        let header =
            json!({"alg": "EdDSA", "typ": "oap-memory-grant+jwt", "kid": "did:web:user.example#key-1"});
        let claims = json!({
            "iss": "did:web:user.example", "sub": "did:web:b.example", "aud": "https://g.example", "iat": now.seconds(),
            "nbf": now.seconds(), "exp": now.seconds() + 300, "jti": "j", "grant_id": "mgr_1",
            "grant_hash": Hash::of_canonical(&grant).unwrap(), "oap_scope": "personal", "cnf": {"jkt": "t"},
        });
        let expected = model.exchange("mgr_1", "t", now).unwrap();
        assert_eq!(expected.differences(&reply, &header, &claims), []);
        for (name, spoilt) in [
            ("iss", json!("did:web:x.example")),
            ("aud", json!("https://g.example/oap")),
            ("exp", json!(now.seconds() + 301)),
            ("iat", json!(now.seconds() - 301)),
            ("cnf", json!(null)),
            ("grant_hash", json!("sha256:0")),
            ("oap_scope", json!("work")),
            ("jti", json!("")),
        ] {
            let mut claims = claims.clone();
            claims[name] = spoilt;
            assert_ne!(expected.differences(&reply, &header, &claims), [], "{name}");
        }
        for (name, spoilt) in [
            ("expires_in", json!(600)),
            ("token_type", json!("Bearer")),
            ("receipt_id", json!("x")),
            ("status", json!({"status_list": {"idx": 1, "uri": "https://g.example/oap/memory/status"}})),
        ] {
            let mut reply = reply.clone();
            reply[name] = spoilt;
            assert_ne!(expected.differences(&reply, &header, &claims), [], "{name}");
        }
        assert_ne!(expected.differences(&reply, &json!({"alg": "none"}), &claims), []);
        let child = model.exchange("mgr_2", "t", now).unwrap();
        let lacks_status = child.differences(&reply, &header, &claims);
        assert!(lacks_status.iter().any(|d| d.at == "/status/status_list/idx"), "{lacks_status:?}");
        let unlisted =
            ExpectedExchange { status: child.status.clone().map(|(uri, _)| (uri, false)), ..child };
        let unlisted = unlisted.differences(&reply, &header, &claims);
        assert!(unlisted.iter().all(|d| !d.at.starts_with("/status")), "{unlisted:?}");
    }

    #[test]
    fn a_state_is_told_to_its_grantee_at_each_instant() {
        let (mut model, _) = model();
        let state = |model: &Model, id: &str, now: &str| {
            model.state(id, true, at(now)).0.map(|state| state["state"].as_str().unwrap().to_owned())
        };
        for (now, expected) in [
            ("2026-05-01T11:59:59.999Z", "draft"),
            (NOW, "active"),
            ("2026-05-01T12:04:59.999Z", "active"),
            ("2026-05-01T12:05:00Z", "expired"),
            ("2026-05-01T12:05:00.001Z", "expired"),
        ] {
            assert_eq!(state(&model, "mgr_1", now).as_deref(), Some(expected), "{now}");
        }
        model.revoked("mgr_1", at(NOW));
        assert_eq!(state(&model, "mgr_2", NOW).as_deref(), Some("revoked"));
        assert_eq!(model.state("mgr_1", false, at(NOW)), ExpectedState(None));
        let decided = model.decided();
        for rule in [GrantState::LastDraft, GrantState::Begins, GrantState::LastActive, GrantState::Ends] {
            assert!(decided.contains_key(&Rule::GrantState(rule)), "{rule}");
        }
        let told = model.state("mgr_1", true, at(NOW));
        assert_eq!(told.differences(200, &json!({"grant_id": "mgr_1", "state": "active"})).len(), 1);
        assert_eq!(told.differences(404, &json!({"error": "not_found"})).len(), 1);
    }
}
