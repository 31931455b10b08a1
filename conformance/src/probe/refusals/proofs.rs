//! Violations of the conditions on DPoP proofs and on grantees' proofs, and what is right at their boundaries.

use super::jws::{Jws, Seal};
use super::rules::{GrantProofRule, ProofRule};
use serde_json::{Value, json};

/// What a case is made with.
pub(super) struct Around {
    /// The gateway's time, in seconds.
    pub(super) now: i64,
    /// The public key of somebody else, as a JWK.
    pub(super) strangers_jwk: Value,
    /// Somebody else's key id.
    pub(super) strangers_kid: String,
}

/// A request that is right but for one condition, or is at its boundary.
pub(super) struct Case {
    /// What it is.
    pub(super) what: &'static str,
    /// Whether it must be let in.
    pub(super) holds: bool,
    pub(super) change: fn(&mut Jws, &Around),
}

const fn bad(what: &'static str, change: fn(&mut Jws, &Around)) -> Case {
    Case { what, holds: false, change }
}

const fn good(what: &'static str, change: fn(&mut Jws, &Around)) -> Case {
    Case { what, holds: true, change }
}

/// How far clocks may be apart, in seconds (protocol section 1), and how far from that a case is: requests take time.
const SKEW: i64 = 300;
const MARGIN: i64 = 10;

fn without(value: &mut Value, member: &str) {
    value.as_object_mut().map(|members| members.remove(member));
}

fn long(bytes: usize) -> Value {
    json!("j".repeat(bytes))
}

/// What is wrong with the form of any JWS.
fn shapes() -> Vec<Case> {
    vec![
        bad("two parts", |j, _| {
            j.finish = |text| text.rsplit_once('.').map_or_else(String::new, |(begin, _)| begin.to_owned());
        }),
        bad("four parts", |j, _| j.finish = |text| text + ".e30"),
        bad("padding", |j, _| j.finish = |text| text + "=="),
        bad("a header that is no JSON", |j, _| {
            j.finish = |text| text.split_once('.').map_or_else(String::new, |(_, rest)| format!("e.{rest}"));
        }),
        bad("claims that are no object", |j, _| j.claims = json!([])),
    ]
}

/// Algorithms that are none that may be.
fn algorithms() -> Vec<Case> {
    vec![
        bad("none, without a signature", |j, _| (j.header["alg"], j.seal) = (json!("none"), Seal::Empty)),
        bad("none, with the right signature", |j, _| j.header["alg"] = json!("none")),
        bad("HS256 under the public key", |j, _| (j.header["alg"], j.seal) = (json!("HS256"), Seal::Hmac)),
        bad("ES256", |j, _| j.header["alg"] = json!("ES256")),
        bad("none said", |j, _| without(&mut j.header, "alg")),
    ]
}

fn signatures() -> Vec<Case> {
    vec![
        bad("another", |j, _| j.seal = Seal::Changed),
        bad("none", |j, _| j.seal = Seal::Empty),
        bad("by another key", |j, _| j.seal = Seal::Stranger),
    ]
}

fn names() -> Vec<Case> {
    vec![
        bad("empty", |j, _| j.claims["jti"] = json!("")),
        bad("257 bytes", |j, _| j.claims["jti"] = long(257)),
        good("256 bytes", |j, around| {
            // One that was not used: its end is the time.
            j.claims["jti"] = json!(format!(
                "{:j<256}",
                format!("{}{}", around.now, j.claims["jti"].as_str().unwrap_or_default())
            ));
        }),
        bad("a number", |j, _| j.claims["jti"] = json!(7)),
    ]
}

fn critical() -> Vec<Case> {
    vec![
        bad("a name that nobody knows", |j, _| {
            j.header["crit"] = json!(["example.org/x"]);
            j.header["example.org/x"] = json!(true);
        }),
        // They are refused wherever they stand (bytes, "Signatures").
        bad("b64", |j, _| j.header["b64"] = json!(true)),
        bad("jku", |j, _| j.header["jku"] = json!("https://somebody.example/keys")),
        bad("x5u", |j, _| j.header["x5u"] = json!("https://somebody.example/key")),
        bad("x5c", |j, _| j.header["x5c"] = json!(["AAAA"])),
    ]
}

/// The cases of a condition on DPoP proofs. What is good once is used twice by the caller.
pub(super) fn of_proof(rule: ProofRule) -> Vec<Case> {
    match rule {
        ProofRule::Header => vec![bad("none", |j, _| j.copies = 0), bad("two", |j, _| j.copies = 2)],
        ProofRule::Shape => shapes(),
        ProofRule::Claims => vec![
            bad("without jti", |j, _| without(&mut j.claims, "jti")),
            bad("without htm", |j, _| without(&mut j.claims, "htm")),
            bad("without htu", |j, _| without(&mut j.claims, "htu")),
            bad("without iat", |j, _| without(&mut j.claims, "iat")),
            bad("iat as text", |j, _| j.claims["iat"] = json!(j.claims["iat"].to_string())),
        ],
        ProofRule::Kind => vec![
            bad("JWT", |j, _| j.header["typ"] = json!("JWT")),
            bad("that of another proof", |j, _| j.header["typ"] = json!("oap-grant-proof+jwt")),
            bad("none", |j, _| without(&mut j.header, "typ")),
        ],
        ProofRule::Algorithm => algorithms(),
        ProofRule::Signature => signatures(),
        ProofRule::Jwk => vec![
            bad("none", |j, _| without(&mut j.header, "jwk")),
            bad("with a private key", |j, _| j.header["jwk"]["d"] = long(43)),
            bad("of another type", |j, _| j.header["jwk"]["kty"] = json!("oct")),
            bad("without x", |j, _| without(&mut j.header["jwk"], "x")),
            bad("of another curve", |j, _| j.header["jwk"]["crv"] = json!("X25519")),
            bad("of 31 bytes", |j, _| {
                let x =
                    j.header["jwk"]["x"].as_str().and_then(|x| x.get(..42)).unwrap_or_default().to_owned();
                j.header["jwk"]["x"] = json!(x);
            }),
        ],
        ProofRule::Method => vec![
            bad("another", |j, _| {
                j.claims["htm"] = json!(if j.claims["htm"] == "POST" { "GET" } else { "POST" });
            }),
            bad("in small letters", |j, _| {
                j.claims["htm"] = json!(j.claims["htm"].as_str().unwrap_or_default().to_lowercase());
            }),
            bad("empty", |j, _| j.claims["htm"] = json!("")),
        ],
        ProofRule::Url => vec![
            bad("another path", |j, _| {
                j.claims["htu"] = json!(format!("{}x", j.claims["htu"].as_str().unwrap_or_default()));
            }),
            bad("another host", |j, _| {
                j.claims["htu"] =
                    json!(j.claims["htu"].as_str().unwrap_or_default().replacen("://", "://x.", 1));
            }),
            bad("another scheme", |j, _| {
                let url = j.claims["htu"].as_str().unwrap_or_default();
                let rest = url.split_once("://").map_or("", |(_, rest)| rest);
                j.claims["htu"] = json!(format!("wss://{rest}"));
            }),
            bad("a path alone", |j, _| {
                let url = j.claims["htu"].as_str().unwrap_or_default();
                let path = url.split_once("://").and_then(|(_, rest)| rest.split_once('/'));
                j.claims["htu"] = json!(format!("/{}", path.map_or("", |(_, path)| path)));
            }),
            bad("empty", |j, _| j.claims["htu"] = json!("")),
        ],
        ProofRule::Nonce => vec![bad("one that nobody gave out", |j, _| j.claims["nonce"] = json!("n-0S6"))],
        ProofRule::Time => vec![
            bad("too old", |j, around| j.claims["iat"] = json!(around.now - SKEW - MARGIN)),
            good("old", |j, around| j.claims["iat"] = json!(around.now - SKEW + MARGIN)),
            bad("too far ahead", |j, around| j.claims["iat"] = json!(around.now + SKEW + MARGIN)),
            good("ahead", |j, around| j.claims["iat"] = json!(around.now + SKEW - MARGIN)),
            bad("before its nbf", |j, around| j.claims["nbf"] = json!(around.now + SKEW + MARGIN)),
            good("a little before its nbf", |j, around| j.claims["nbf"] = json!(around.now + SKEW - MARGIN)),
            bad("after its exp", |j, around| j.claims["exp"] = json!(around.now - SKEW - MARGIN)),
            good("a little after its exp", |j, around| j.claims["exp"] = json!(around.now - SKEW + MARGIN)),
            bad("an nbf that is null", |j, _| j.claims["nbf"] = Value::Null),
            bad("an exp that is null", |j, _| j.claims["exp"] = Value::Null),
        ],
        ProofRule::Token => vec![
            bad("none", |j, _| without(&mut j.claims, "ath")),
            bad("of another", |j, _| j.claims["ath"] = long(43)),
            bad("empty", |j, _| j.claims["ath"] = json!("")),
        ],
        ProofRule::Bound => vec![bad("another key, which signs", |j, around| {
            (j.header["jwk"], j.seal) = (around.strangers_jwk.clone(), Seal::Stranger);
        })],
        ProofRule::Name => names(),
        ProofRule::Once => vec![],
        ProofRule::Critical => critical(),
    }
}

/// The cases of a condition on grantees' proofs. What is good once is used twice by the caller.
pub(super) fn of_grant_proof(rule: GrantProofRule) -> Vec<Case> {
    match rule {
        GrantProofRule::Shape => shapes(),
        GrantProofRule::Kind => vec![
            bad("JWT", |j, _| j.header["typ"] = json!("JWT")),
            bad("that of another proof", |j, _| j.header["typ"] = json!("dpop+jwt")),
            bad("none", |j, _| without(&mut j.header, "typ")),
        ],
        GrantProofRule::Algorithm => algorithms(),
        GrantProofRule::Signature => signatures(),
        GrantProofRule::Key => vec![
            bad("none", |j, _| without(&mut j.header, "kid")),
            bad("somebody else's, who signs", |j, around| {
                (j.header["kid"], j.seal) = (json!(around.strangers_kid), Seal::Stranger);
            }),
            bad("one that is not there", |j, _| {
                let did = j.claims["iss"].as_str().unwrap_or_default().to_owned();
                j.header["kid"] = json!(format!("{did}#key-9"));
            }),
            bad("none, and a key that it brings along", |j, around| {
                without(&mut j.header, "kid");
                (j.header["jwk"], j.seal) = (around.strangers_jwk.clone(), Seal::Stranger);
            }),
        ],
        GrantProofRule::Issuer => vec![
            bad("somebody else", |j, _| j.claims["iss"] = json!("did:web:somebody.example")),
            bad("nobody", |j, _| without(&mut j.claims, "iss")),
        ],
        GrantProofRule::Subject => vec![
            bad("somebody else", |j, _| j.claims["sub"] = json!("did:web:somebody.example")),
            bad("nobody", |j, _| without(&mut j.claims, "sub")),
        ],
        GrantProofRule::Audience => vec![
            bad("another address", |j, _| {
                j.claims["aud"] = json!(format!("{}x", j.claims["aud"].as_str().unwrap_or_default()));
            }),
            bad("another gateway", |j, _| {
                j.claims["aud"] =
                    json!(j.claims["aud"].as_str().unwrap_or_default().replacen("://", "://x.", 1));
            }),
            bad("none", |j, _| without(&mut j.claims, "aud")),
        ],
        GrantProofRule::Name => {
            let mut cases = names();
            cases.push(bad("none", |j, _| without(&mut j.claims, "jti")));
            cases
        }
        GrantProofRule::Life => vec![
            bad("61 seconds", |j, around| j.claims["exp"] = json!(around.now + 61)),
            good("60 seconds", |j, around| j.claims["exp"] = json!(around.now + 60)),
            bad("none at all", |j, around| j.claims["exp"] = json!(around.now)),
            bad("no end", |j, _| without(&mut j.claims, "exp")),
        ],
        GrantProofRule::Time => vec![
            bad("too old", |j, around| of_time(j, around.now - SKEW - MARGIN - 60)),
            good("old", |j, around| of_time(j, around.now - SKEW + MARGIN - 60)),
            bad("too far ahead", |j, around| of_time(j, around.now + SKEW + MARGIN)),
            good("ahead", |j, around| of_time(j, around.now + SKEW - MARGIN)),
            bad("none", |j, _| without(&mut j.claims, "iat")),
            bad("before its nbf", |j, around| j.claims["nbf"] = json!(around.now + SKEW + MARGIN)),
            good("a little before its nbf", |j, around| j.claims["nbf"] = json!(around.now + SKEW - MARGIN)),
            bad("an nbf that is null", |j, _| j.claims["nbf"] = Value::Null),
        ],
        GrantProofRule::Grant => vec![
            bad("another's", |j, _| j.claims["grant_hash"] = json!(format!("sha256:{}", "0".repeat(64)))),
            good("none", |j, _| without(&mut j.claims, "grant_hash")),
            bad("null", |j, _| j.claims["grant_hash"] = Value::Null),
        ],
        GrantProofRule::Once => vec![],
        GrantProofRule::Critical => critical(),
    }
}

fn of_time(jws: &mut Jws, iat: i64) {
    (jws.claims["iat"], jws.claims["exp"]) = (json!(iat), json!(iat + 60));
}
