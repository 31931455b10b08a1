//! Tokens, DPoP and the way to a `VerifiedGrant`: one refusal each.

mod support;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as B64};
use oap_grants::checked::MAX_CHECKED;
use oap_grants::dpop::{self, DpopError, Request};
use oap_grants::exchange::{self, ProofError, UnverifiedProof};
use oap_grants::token::{self, TokenError};
use oap_grants::verify::{Presented, Refused, Subscriber, Unauthenticated, authenticate, verify};
use oap_grants::{CheckedTokens, Grant, GrantState, Operation, SignedGrant, VerifiedGrant};
use oap_identity::signed::{SignedError, UnsignedJwt, sign_jwt};
use oap_identity::{DidDocument, Signer, Timestamp, VerificationKey};
use serde_json::{Value, json};
use support::*;

struct Caller {
    grant: SignedGrant,
    key: Signer,
    token: String,
}

impl Caller {
    fn new() -> Self {
        let key = agent(2);
        Self::with(grant_to(key.did()), key)
    }

    fn with(grant: Grant, key: Signer) -> Self {
        let bound = (!grant.bearer).then(|| key.public().thumbprint());
        let grant = SignedGrant::sign(grant, &owner()).unwrap();
        let (token, _) = token::mint(&grant, bound, AUDIENCE, &owner(), now(), &random()).unwrap();
        Self { grant, key, token }
    }

    fn proof(&self) -> String {
        dpop::prove(&self.key, Request { method: "POST", url: QUERY }, &self.token, now(), &random()).unwrap()
    }
}

fn present(
    authorization: &[&str],
    dpop: &[&str],
    at: Timestamp,
    seen: &UsedProofs,
) -> Result<oap_grants::verify::Authenticated, Unauthenticated> {
    let request = Request { method: "POST", url: QUERY };
    let presented = Presented { authorization, dpop, request };
    authenticate(&presented, &CheckedTokens::default(), &document(&owner()), AUDIENCE, seen, at)
}

fn asked(caller: &Caller, proof: &str) -> Result<oap_grants::verify::Authenticated, Unauthenticated> {
    present(&[&format!("DPoP {}", caller.token)], &[proof], now(), &UsedProofs::default())
}

fn judged(caller: &Caller, book: &Book, at: Timestamp) -> Result<VerifiedGrant, Refused> {
    let authenticated = asked(caller, &caller.proof()).unwrap();
    verify(&authenticated, Operation::Query, book, &document(&owner()), at)
}

#[test]
fn a_token_and_its_proof_verify() {
    let caller = Caller::new();
    let book = Book::with([caller.grant.clone()]);
    let verified = judged(&caller, &book, now()).unwrap();
    assert_eq!(verified.hash(), caller.grant.hash());
    assert!(!verified.is_own_agent());
}

/// The confidentiality gate is open before the owner's own agent alone: one other through whose hands a grant came closes it.
#[test]
fn a_grant_of_ones_own_that_was_passed_on_is_not_ones_own() {
    let alone = Caller::with(grant_to(owner().did()), owner());
    let book = Book::with([alone.grant.clone()]);
    assert!(judged(&alone, &book, now()).unwrap().is_own_agent());
    let own = SignedGrant::sign(delegable(owner().did(), 2), &owner()).unwrap();
    let child = Grant {
        grant_id: oap_identity::GrantId::new(now(), &oap_identity::random::Seeded::new(7)),
        grantee: agent(3).did().clone(),
        parent: Some(own.hash()),
        delegable: None,
        ..own.grant().clone()
    };
    let passed_on = Caller::with(child, agent(3));
    let book = Book::with([own, passed_on.grant.clone()]);
    assert!(!judged(&passed_on, &book, now()).unwrap().is_own_agent());
}

/// A token that is signed and bound as it must be, and was made for another than its grant.
#[test]
fn a_token_of_another_grantee_or_granter_alone_does_not_fit_its_grant() {
    let caller = Caller::new();
    let fits = |sub: &str, book: Book, hash: oap_identity::Hash| {
        let claims = json!({
            "iss": owner().did(), "sub": sub, "aud": AUDIENCE, "iat": now().seconds(), "nbf": now().seconds(),
            "exp": now().seconds() + 600, "jti": "one", "grant_id": caller.grant.grant().grant_id,
            "grant_hash": hash, "oap_scope": "personal", "cnf": {"jkt": caller.key.public().thumbprint()},
        });
        let token = sign_jwt(&owner(), token::TYP, &claims).unwrap();
        let request = Request { method: "POST", url: QUERY };
        let proof = dpop::prove(&caller.key, request, &token, now(), &random()).unwrap();
        let caller = present(&[&format!("DPoP {token}")], &[&proof], now(), &UsedProofs::default()).unwrap();
        verify(&caller, Operation::Query, &book, &document(&owner()), now())
    };
    let own = || Book::with([caller.grant.clone()]);
    let (sub, hash) = (caller.key.did().as_str(), caller.grant.hash());
    assert!(fits(sub, own(), hash).is_ok());
    assert!(matches!(fits("did:web:somebody.example", own(), hash), Err(Refused::Mismatch)));
    // The same grantee, of a grant that somebody else gave.
    let other = Signer::from_seed("did:web:other.example#key-1".parse().unwrap(), &[8; 32]).unwrap();
    let granter = "did:web:other.example#personal".parse().unwrap();
    let foreign = SignedGrant::sign(Grant { granter, ..caller.grant.grant().clone() }, &other).unwrap();
    let hash = foreign.hash();
    assert!(matches!(fits(sub, Book::with([foreign]), hash), Err(Refused::Mismatch)));
}

// --- the twelve checks of RFC 9449 section 4.3 ---

fn proof_of(caller: &Caller, patch: Value) -> String {
    let mut claims = json!({
        "jti": "one", "htm": "POST", "htu": QUERY, "iat": now().seconds(), "ath": dpop::hash(&caller.token),
    });
    for (name, value) in patch.as_object().unwrap() {
        if value.is_null() {
            claims.as_object_mut().unwrap().remove(name);
        } else {
            claims[name] = value.clone();
        }
    }
    UnsignedJwt::with_jwk(caller.key.public(), dpop::TYP, &claims).unwrap().signed_by(&caller.key)
}

fn with_header(proof: &str, key: &Signer, header: &Value) -> String {
    let payload = proof.split('.').nth(1).unwrap();
    let input = format!("{}.{payload}", B64.encode(header.to_string()));
    format!("{input}.{}", key.sign(input.as_bytes()))
}

fn refused(caller: &Caller, proof: &str) -> DpopError {
    match asked(caller, proof).unwrap_err() {
        Unauthenticated::Dpop(error) => error,
        other => panic!("{other}"),
    }
}

#[test]
fn dpop_check_1_one_header() {
    let caller = Caller::new();
    let authorization = format!("DPoP {}", caller.token);
    let proof = caller.proof();
    for headers in [vec![], vec![proof.as_str(), proof.as_str()]] {
        let error = present(&[&authorization], &headers, now(), &UsedProofs::default()).unwrap_err();
        assert_eq!(error, Unauthenticated::Dpop(DpopError::Headers));
    }
}

#[test]
fn dpop_check_2_well_formed() {
    let caller = Caller::new();
    for proof in ["", "x", "a.b", "a.b.c.d", "{}"] {
        assert!(matches!(refused(&caller, proof), DpopError::Jwt(SignedError::Malformed)), "{proof}");
    }
}

#[test]
fn dpop_check_3_all_claims() {
    let caller = Caller::new();
    assert!(asked(&caller, &proof_of(&caller, json!({}))).is_ok());
    for claim in ["jti", "htm", "htu", "iat"] {
        let error = refused(&caller, &proof_of(&caller, json!({claim: null})));
        assert!(matches!(error, DpopError::Jwt(SignedError::Claims(_))), "{claim}: {error}");
    }
    assert_eq!(refused(&caller, &proof_of(&caller, json!({"jti": ""}))), DpopError::Jti);
}

#[test]
fn dpop_check_4_typ() {
    let caller = Caller::new();
    let header = json!({"alg": "EdDSA", "typ": "JWT", "jwk": caller.key.public().jwk()});
    let proof = with_header(&caller.proof(), &caller.key, &header);
    assert_eq!(refused(&caller, &proof), DpopError::Jwt(SignedError::Type("dpop+jwt")));
}

#[test]
fn dpop_check_5_algorithm() {
    let caller = Caller::new();
    for alg in ["none", "HS256", "ES256", "RS256"] {
        let header = json!({"alg": alg, "typ": "dpop+jwt", "jwk": caller.key.public().jwk()});
        let proof = with_header(&caller.proof(), &caller.key, &header);
        assert_eq!(refused(&caller, &proof), DpopError::Jwt(SignedError::Algorithm), "{alg}");
    }
    // The example of RFC 9449 section 4.1 itself, which is ES256.
    let example = "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0RscEJoRjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19.eyJqdGkiOiItQndDM0VTYzZhY2MybFRjIiwiaHRtIjoiUE9TVCIsImh0dSI6Imh0dHBzOi8vc2VydmVyLmV4YW1wbGUuY29tL3Rva2VuIiwiaWF0IjoxNTYyMjYyNjE2fQ.2-GxA6T8lP4vfrg8v-FdWP0A0zdrj8igiMLvqRMUvwnQg4PtFLbdLXiOSsX0x7NVY-FNyJK70nfbV37xRZT3Lg";
    assert_eq!(refused(&caller, example), DpopError::Jwt(SignedError::Algorithm));
}

#[test]
fn dpop_check_6_signature() {
    let caller = Caller::new();
    let header = json!({"alg": "EdDSA", "typ": "dpop+jwt", "jwk": caller.key.public().jwk()});
    let proof = with_header(&caller.proof(), &agent(9), &header);
    assert_eq!(refused(&caller, &proof), DpopError::Jwt(SignedError::BadSignature));
}

#[test]
fn dpop_check_7_no_private_key() {
    let caller = Caller::new();
    let mut jwk = caller.key.public().jwk();
    jwk["d"] = json!("AAAA");
    let header = json!({"alg": "EdDSA", "typ": "dpop+jwt", "jwk": jwk});
    let proof = with_header(&caller.proof(), &caller.key, &header);
    assert_eq!(refused(&caller, &proof), DpopError::Jwt(SignedError::Header("jwk")));
}

#[test]
fn dpop_check_8_method() {
    let caller = Caller::new();
    for htm in ["GET", "post", ""] {
        assert_eq!(refused(&caller, &proof_of(&caller, json!({"htm": htm}))), DpopError::Method);
    }
}

#[test]
fn dpop_check_9_url() {
    let caller = Caller::new();
    for same in [
        "https://USER.example/oap/memory/query",
        "https://user.example:443/oap/memory/query",
        "https://user.example/oap/memory/query?x=1#y",
        "https://user.example/oap/./memory/query",
    ] {
        assert!(asked(&caller, &proof_of(&caller, json!({"htu": same}))).is_ok(), "{same}");
    }
    for other in [
        "http://user.example/oap/memory/query",
        "https://user.example:444/oap/memory/query",
        "https://user.example/oap/memory/grant",
        "https://user.example/oap/memory/query/",
        "https://evil.example/oap/memory/query",
        "https://a@user.example/oap/memory/query",
        "https://:b@user.example/oap/memory/query",
        "/oap/memory/query",
        "",
    ] {
        let error = refused(&caller, &proof_of(&caller, json!({"htu": other})));
        assert_eq!(error, DpopError::Url, "{other}");
    }
}

#[test]
fn dpop_check_10_nonce() {
    let caller = Caller::new();
    assert_eq!(refused(&caller, &proof_of(&caller, json!({"nonce": "n"}))), DpopError::Nonce);
}

#[test]
fn dpop_check_11_time() {
    let caller = Caller::new();
    for (offset, ok) in [(0, true), (300, true), (-300, true), (301, false), (-301, false)] {
        let proof = proof_of(&caller, json!({"iat": now().seconds() + offset}));
        assert_eq!(asked(&caller, &proof).is_ok(), ok, "{offset}");
    }
    for extreme in [9_000_000_000_000_000_i64, -9_000_000_000_000_000] {
        assert_eq!(refused(&caller, &proof_of(&caller, json!({"iat": extreme}))), DpopError::Time);
    }
}

#[test]
fn dpop_check_12_token_and_key() {
    let caller = Caller::new();
    for ath in [json!(null), json!(dpop::hash("another token")), json!("")] {
        assert_eq!(refused(&caller, &proof_of(&caller, json!({"ath": ath}))), DpopError::Ath);
    }
    let thief = Caller { key: agent(9), grant: caller.grant.clone(), token: caller.token.clone() };
    assert_eq!(refused(&caller, &thief.proof()), DpopError::Key);
    // RFC 9449 section 4.3, figures 12 and 13.
    assert_eq!(
        dpop::hash("Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU"),
        "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo"
    );
}

#[test]
fn a_proof_is_used_once() {
    let caller = Caller::new();
    let authorization = format!("DPoP {}", caller.token);
    let (proof, seen) = (caller.proof(), UsedProofs::default());
    assert!(present(&[&authorization], &[&proof], now(), &seen).is_ok());
    let again = present(&[&authorization], &[&proof], now(), &seen).unwrap_err();
    assert_eq!(again, Unauthenticated::Dpop(DpopError::Replayed));
}

// --- the token ---

#[test]
fn a_bound_token_is_no_bearer() {
    let caller = Caller::new();
    let error =
        present(&[&format!("Bearer {}", caller.token)], &[], now(), &UsedProofs::default()).unwrap_err();
    assert_eq!(error, Unauthenticated::Scheme);
}

#[test]
fn a_bearer_only_where_the_grant_allows_it() {
    let key = agent(2);
    let caller = Caller::with(Grant { bearer: true, ..grant_to(key.did()) }, key);
    let bearer = format!("Bearer {}", caller.token);
    let authenticated = present(&[&bearer], &[], now(), &UsedProofs::default()).unwrap();
    let own = document(&owner());
    let book = Book::with([caller.grant.clone()]);
    assert!(verify(&authenticated, Operation::Query, &book, &own, now()).is_ok());

    // A plain token for a grant that allows none, as only a thief of the signing key or a bug could make it.
    let strict = SignedGrant::sign(grant_to(agent(2).did()), &owner()).unwrap();
    let (token, _) = token::mint(&strict, None, AUDIENCE, &owner(), now(), &random()).unwrap();
    let plain = present(&[&format!("Bearer {token}")], &[], now(), &UsedProofs::default()).unwrap();
    let error = verify(&plain, Operation::Query, &Book::with([strict]), &own, now()).unwrap_err();
    assert_eq!(error, Refused::Bearer);
}

#[test]
fn authorization_must_be_one_token() {
    let caller = Caller::new();
    let (proof, one) = (caller.proof(), format!("DPoP {}", caller.token));
    for authorization in [vec![], vec![one.as_str(), one.as_str()], vec!["DPoP"], vec!["Basic YTpi"]] {
        let error = present(&authorization, &[&proof], now(), &UsedProofs::default()).unwrap_err();
        assert_eq!(error, Unauthenticated::NoToken);
    }
}

fn token_with(patch: Value) -> String {
    let caller = Caller::new();
    let payload = caller.token.split('.').nth(1).unwrap();
    let mut claims: Value = serde_json::from_slice(&B64.decode(payload).unwrap()).unwrap();
    for (name, value) in patch.as_object().unwrap() {
        if value.is_null() {
            claims.as_object_mut().unwrap().remove(name);
        } else {
            claims[name] = value.clone();
        }
    }
    sign_jwt(&owner(), token::TYP, &claims).unwrap()
}

#[test]
fn every_claim_of_a_token_counts() {
    let own = document(&owner());
    let check =
        |token: &str, at: Timestamp| token::check(token, &own, AUDIENCE, at).map(|(claims, _)| claims);
    let at = now().seconds();
    assert!(check(&token_with(json!({})), now()).is_ok());
    let elsewhere = |claim| TokenError::Elsewhere(claim);
    for (patch, error) in [
        (json!({"iss": "did:web:other.example"}), elsewhere("iss")),
        (json!({"aud": "https://other.example"}), elsewhere("aud")),
        (json!({"exp": at}), TokenError::Expired),
        (json!({"exp": at + 601}), TokenError::Life),
        (json!({"nbf": at + 301}), TokenError::Early),
        (json!({"iat": at + 301, "exp": at + 500}), TokenError::Early),
    ] {
        assert_eq!(check(&token_with(patch.clone()), now()), Err(error), "{patch}");
    }
    // As far ahead as clocks may be apart, and the whole of its life.
    for patch in [
        json!({"nbf": at + 300}),
        json!({"iat": at + 300, "exp": at + 500}),
        json!({"exp": at + 1}),
        json!({"exp": at + 600}),
    ] {
        assert!(check(&token_with(patch.clone()), now()).is_ok(), "{patch}");
    }
    for claim in ["iss", "sub", "aud", "iat", "nbf", "exp", "jti", "grant_id", "grant_hash", "oap_scope"] {
        let error = check(&token_with(json!({claim: null})), now()).unwrap_err();
        assert!(matches!(error, TokenError::Jwt(SignedError::Claims(_))), "{claim}: {error}");
    }
    assert_eq!(check(&token_with(json!({})), later(600)), Err(TokenError::Expired));
}

#[test]
fn a_token_is_eddsa_of_this_kind_by_this_gateway() {
    let own = document(&owner());
    let claims: Value = {
        let token = Caller::new().token;
        serde_json::from_slice(&B64.decode(token.split('.').nth(1).unwrap()).unwrap()).unwrap()
    };
    let signed = |signer: &Signer, header: Value| {
        let input = format!("{}.{}", B64.encode(header.to_string()), B64.encode(claims.to_string()));
        format!("{input}.{}", signer.sign(input.as_bytes()))
    };
    let kid = owner().kid().to_string();
    let check = |token: &str| token::check(token, &own, AUDIENCE, now()).unwrap_err();
    for alg in ["none", "HS256", "RS256", "eddsa"] {
        let token = signed(&owner(), json!({"alg": alg, "typ": token::TYP, "kid": kid}));
        assert_eq!(check(&token), TokenError::Jwt(SignedError::Algorithm), "{alg}");
    }
    let other_kind = signed(&owner(), json!({"alg": "EdDSA", "typ": "JWT", "kid": kid}));
    assert_eq!(check(&other_kind), TokenError::Jwt(SignedError::Type(token::TYP)));
    let foreign = signed(&agent(9), json!({"alg": "EdDSA", "typ": token::TYP, "kid": agent(9).kid()}));
    assert_eq!(check(&foreign), TokenError::Elsewhere("kid"));
    let forged = signed(&agent(9), json!({"alg": "EdDSA", "typ": token::TYP, "kid": kid}));
    assert_eq!(check(&forged), TokenError::Jwt(SignedError::BadSignature));
}

#[test]
fn a_token_ends_with_its_grant() {
    let key = agent(2);
    let grant = SignedGrant::sign(Grant { expires_at: later(90), ..grant_to(key.did()) }, &owner()).unwrap();
    let (_, life) = token::mint(&grant, None, AUDIENCE, &owner(), now(), &random()).unwrap();
    assert_eq!(life, 90);
}

// --- the grant ---

#[test]
fn the_gateways_clock_alone_decides() {
    let caller = Caller::new();
    let book = Book::with([caller.grant.clone()]);
    assert!(judged(&caller, &book, later(86_399)).is_ok());
    assert_eq!(judged(&caller, &book, later(86_400)).unwrap_err(), Refused::Inactive(GrantState::Expired));

    let key = agent(2);
    let early = Caller::with(Grant { not_before: Some(later(60)), ..grant_to(key.did()) }, key);
    let book = Book::with([early.grant.clone()]);
    assert_eq!(judged(&early, &book, later(59)).unwrap_err(), Refused::Inactive(GrantState::Draft));
    assert!(judged(&early, &book, later(60)).is_ok());
}

#[test]
fn revoked_grants_and_revoked_keys() {
    let caller = Caller::new();
    let mut book = Book::with([caller.grant.clone()]);
    book.revoke(caller.grant.grant().grant_id);
    assert_eq!(judged(&caller, &book, now()).unwrap_err(), Refused::Inactive(GrantState::Revoked));

    let book = Book::with([caller.grant.clone()]);
    let authenticated = asked(&caller, &caller.proof()).unwrap();
    let revoked = VerificationKey::new(owner().kid().clone(), *owner().public()).revoked(now());
    let own = DidDocument::new(owner().did().clone(), vec![revoked]);
    let error = verify(&authenticated, Operation::Query, &book, &own, now()).unwrap_err();
    assert_eq!(error, Refused::Inactive(GrantState::Revoked));
}

#[test]
fn another_grant_under_the_same_id() {
    let caller = Caller::new();
    let wider = Grant { max_items: 9_999, ..caller.grant.grant().clone() };
    let book = Book::with([SignedGrant::sign(wider, &owner()).unwrap()]);
    assert_eq!(judged(&caller, &book, now()).unwrap_err(), Refused::UnknownGrant);
    assert_eq!(judged(&caller, &Book::default(), now()).unwrap_err(), Refused::UnknownGrant);
}

#[test]
fn operations_that_were_not_granted() {
    let caller = Caller::new();
    let book = Book::with([caller.grant.clone()]);
    let authenticated = asked(&caller, &caller.proof()).unwrap();
    let error = verify(&authenticated, Operation::Export, &book, &document(&owner()), now()).unwrap_err();
    assert_eq!(error, Refused::Operation(Operation::Export));
}

// --- the exchange ---

fn proof_claims(patch: Value) -> String {
    let key = agent(2);
    let at = now().seconds();
    let mut claims = json!({
        "iss": key.did(), "sub": key.did(), "aud": ENDPOINT, "jti": "one", "iat": at, "exp": at + 60,
    });
    for (name, value) in patch.as_object().unwrap() {
        claims[name] = value.clone();
    }
    sign_jwt(&key, exchange::TYP, &claims).unwrap()
}

/// RFC 7519 section 4.1: what a proof says of its own time holds too.
#[test]
fn a_proof_ends_when_it_says() {
    let caller = Caller::new();
    let at = now().seconds();
    for patch in [json!({"nbf": at + 301}), json!({"exp": at - 300}), json!({"nbf": 1_i64 << 52})] {
        assert_eq!(refused(&caller, &proof_of(&caller, patch.clone())), DpopError::Ended, "{patch}");
    }
    for patch in [
        json!({"nbf": at + 300}),
        json!({"exp": at - 299}),
        json!({"nbf": -(1_i64 << 52), "exp": 1_i64 << 52}),
    ] {
        assert!(asked(&caller, &proof_of(&caller, patch.clone())).is_ok(), "{patch}");
    }
    let claims = json!({
        "jti": "one", "htm": "POST", "htu": QUERY, "iat": at, "ath": dpop::hash(&caller.token),
    });
    for name in ["nbf", "exp", "nonce"] {
        let mut claims = claims.clone();
        claims[name] = Value::Null;
        let proof =
            UnsignedJwt::with_jwk(caller.key.public(), dpop::TYP, &claims).unwrap().signed_by(&caller.key);
        assert!(matches!(refused(&caller, &proof), DpopError::Jwt(SignedError::Claims(_))), "{name}");
    }
}

#[test]
fn the_grantee_proves_control_of_its_did() {
    let key = agent(2);
    let grant = SignedGrant::sign(grant_to(key.did()), &owner()).unwrap();
    let check = |proof: &str, at| {
        UnverifiedProof::parse(proof)?.verify(&document(&agent(2)), ENDPOINT, grant.hash(), at)
    };
    let proof = exchange::prove(&key, ENDPOINT, grant.hash(), now(), &random()).unwrap();
    assert_eq!(check(&proof, now()).unwrap().jkt, key.public().thumbprint());
    assert!(check(&proof, later(299)).is_ok());
    assert_eq!(check(&proof, later(360)), Err(ProofError::Time));
    let at = now().seconds();
    for (patch, error) in [
        (json!({"iss": "did:web:other.example"}), ProofError::Grantee("iss")),
        (json!({"sub": "did:web:other.example"}), ProofError::Grantee("sub")),
        (json!({"aud": QUERY}), ProofError::Audience(ENDPOINT.to_owned())),
        (json!({"exp": at + 61}), ProofError::Time),
        (json!({"exp": at}), ProofError::Time),
        (json!({"iat": at + 301, "exp": at + 310}), ProofError::Time),
        (json!({"nbf": at + 301}), ProofError::Time),
        (json!({"jti": ""}), ProofError::Jti),
        (json!({"grant_hash": oap_identity::Hash::of(b"other")}), ProofError::OtherGrant),
    ] {
        assert_eq!(check(&proof_claims(patch.clone()), now()), Err(error), "{patch}");
    }
    assert!(check(&proof_claims(json!({"nbf": at + 300, "exp": at + 1})), now()).is_ok());
    // `null` is no value of a claim that may be left out.
    for name in ["grant_hash", "nbf"] {
        let error = check(&proof_claims(json!({name: null})), now()).unwrap_err();
        assert!(matches!(error, ProofError::Jwt(SignedError::Claims(_))), "{name}: {error}");
    }
    let stranger = exchange::prove(&agent(9), ENDPOINT, grant.hash(), now(), &random()).unwrap();
    assert_eq!(check(&stranger, now()), Err(ProofError::Grantee("kid")));
}

#[test]
fn a_retired_key_of_the_grantee_proves_nothing() {
    let key = agent(2);
    let grant = SignedGrant::sign(grant_to(key.did()), &owner()).unwrap();
    let retired = VerificationKey::new(key.kid().clone(), *key.public()).retired(now());
    let document = DidDocument::new(key.did().clone(), vec![retired]);
    // The time that the grantee wrote does not help: the key is judged by the gateway's clock.
    let at = now().seconds() - 200;
    let proof = proof_claims(json!({"iat": at, "exp": at + 60}));
    let error = UnverifiedProof::parse(&proof).unwrap().verify(&document, ENDPOINT, grant.hash(), now());
    assert_eq!(error, Err(ProofError::Jwt(SignedError::Retired(now()))));
}

/// A token that was checked before counts for no longer than one that is checked anew, and only with its own key.
#[test]
fn a_token_that_was_checked_before_counts_no_longer() {
    let tokens = CheckedTokens::default();
    let own = document(&owner());
    let token = token_with(json!({}));
    let checked = tokens.check(&token, &own, AUDIENCE, now()).unwrap();
    assert_eq!(checked, token::check(&token, &own, AUDIENCE, now()).unwrap());
    assert_eq!((tokens.len(), tokens.check(&token, &own, AUDIENCE, now()).unwrap()), (1, checked));
    // Another signature under the same claims is another token.
    let other = format!("{}A", &token[..token.len() - 1]);
    assert!(tokens.check(&other, &own, AUDIENCE, now()).is_err() || other == token);
    // Elsewhere, later, with the key revoked, with another key of that name, without it.
    assert_eq!(tokens.check(&token, &own, "https://other.example", now()), Err(TokenError::Elsewhere("aud")));
    let known = own.key(owner().kid()).unwrap();
    let stranger = VerificationKey::new(owner().kid().clone(), *agent(9).public());
    for keys in [vec![known.clone().revoked(now())], vec![stranger], vec![]] {
        tokens.check(&token, &own, AUDIENCE, now()).unwrap();
        let changed = DidDocument::new(own.id().clone(), keys);
        let refused = tokens.check(&token, &changed, AUDIENCE, now()).unwrap_err();
        assert_eq!(refused, token::check(&token, &changed, AUDIENCE, now()).unwrap_err());
        assert!(tokens.is_empty());
    }
    tokens.check(&token, &own, AUDIENCE, now()).unwrap();
    assert_eq!(tokens.check(&token, &own, AUDIENCE, later(600)), Err(TokenError::Expired));
    assert!(tokens.is_empty());
}

/// What is remembered has a bound; those that end first go first.
#[test]
fn tokens_are_remembered_up_to_a_bound() {
    let (tokens, own) = (CheckedTokens::default(), document(&owner()));
    let at = now().seconds();
    let token = |number: usize| {
        let exp = at + 60 + i64::from(number as u32 % 500);
        token_with(json!({"jti": format!("token-{number}"), "exp": exp}))
    };
    for number in 0..MAX_CHECKED + 3 {
        tokens.check(&token(number), &own, AUDIENCE, now()).unwrap();
    }
    assert_eq!(tokens.len(), MAX_CHECKED);
}

/// What was good when it came may have ended when its answer is recorded: the token, or the key that signed it.
#[test]
fn a_token_is_looked_at_again() {
    let caller = Caller::new();
    let authenticated = asked(&caller, &caller.proof()).unwrap();
    let claims = B64.decode(caller.token.split('.').nth(1).unwrap()).unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    let (own, end) = (document(&owner()), claims["exp"].as_i64().unwrap());
    let still = |own: &DidDocument, at: i64| authenticated.still(own, Timestamp::from_seconds(at));
    assert_eq!(still(&own, now().seconds()), Ok(()));
    assert_eq!(still(&own, end - 1), Ok(()));
    assert_eq!(still(&own, end), Err(Refused::Token));
    let key = || VerificationKey::new(owner().kid().clone(), *owner().public());
    let without = DidDocument::new(owner().did().clone(), Vec::new());
    let before = DidDocument::new(owner().did().clone(), vec![key().revoked(now())]);
    for other in [without, before] {
        assert_eq!(still(&other, now().seconds()), Err(Refused::Token));
    }
}

/// A subscription outlives its token and the retirement of the key that signed it; it ends when the key is gone or compromised.
#[test]
fn a_subscriber_is_known_for_as_long_as_the_key_is_good() {
    let caller = Caller::new();
    let subscriber = Subscriber::of(&asked(&caller, &caller.proof()).unwrap()).unwrap();
    let key = || VerificationKey::new(owner().kid().clone(), *owner().public());
    let with = |keys: Vec<VerificationKey>| DidDocument::new(owner().did().clone(), keys);
    let at = later(30 * 86_400);
    let known = |own: &DidDocument, seconds: i64| {
        subscriber.caller(own, at).still(own, Timestamp::from_seconds(at.seconds() + seconds))
    };
    for good in [with(vec![key()]), with(vec![key().retired(later(60))])] {
        assert_eq!(known(&good, 0), Ok(()));
        assert_eq!(known(&good, token::MAX_LIFE - 1), Ok(()));
        assert_eq!(known(&good, token::MAX_LIFE), Err(Refused::Token));
    }
    // Though it was made before.
    for bad in [with(Vec::new()), with(vec![key().revoked(later(60))])] {
        assert_eq!(known(&bad, 0), Err(Refused::Token));
    }
    let key = agent(2);
    let bearer = Caller::with(Grant { bearer: true, ..grant_to(key.did()) }, key);
    let authorization = format!("Bearer {}", bearer.token);
    let anyone = present(&[&authorization], &[], now(), &UsedProofs::default()).unwrap();
    assert_eq!(Subscriber::of(&anyone), None);
}
