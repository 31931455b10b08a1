//! Violations of the conditions on DPoP proofs and on grantees' proofs, and what is right at their boundaries.

use super::cases::Cases;
use super::jws::{Jws, Seal, doubled, latin_1, neutral, utf_16};
use super::rules::{GrantProofRule, ProofRule};
use serde_json::{Value, json};

/// What a case is made with.
pub(super) struct Around {
    /// The gateway's time, in seconds.
    pub(super) now: i64,
    pub(super) skew: Skew,
    /// The public key of somebody else, as a JWK.
    pub(super) strangers_jwk: Value,
    /// Somebody else's key id.
    pub(super) strangers_kid: String,
}

/// How far from the gateway's time cases are, in seconds: five minutes are forgiven (protocol section 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Skew {
    /// A time that is forgiven, and one that is not.
    pub(super) within: i64,
    pub(super) beyond: i64,
    /// The same of an end, which is the first second in which it is over (RFC 7519 4.1.4).
    pub(super) lives: i64,
    pub(super) ended: i64,
}

impl Skew {
    /// At the limit, and a second beyond: where the clock stands.
    pub(super) const EXACT: Self = Self { within: 300, beyond: 301, lives: 299, ended: 300 };
    /// Ten seconds from it: requests take time.
    pub(super) const NEAR: Self = Self { within: 290, beyond: 310, lives: 290, ended: 310 };
}

/// What makes a case of a proof that is right.
pub(super) type Change = fn(&mut Jws, &Around);

/// What is brought for a condition on a proof.
pub(super) enum Violation {
    Cases(Cases<Change>),
    /// The same proof, shown twice.
    Twice,
    /// One by a grantee whose key is of small order.
    Weak,
}

fn broken(what: &'static str, change: Change) -> Cases<Change> {
    Cases::breaking(what, change)
}

fn without(value: &mut Value, member: &str) {
    value.as_object_mut().map(|members| members.remove(member));
}

fn long(bytes: usize) -> Value {
    json!("j".repeat(bytes))
}

/// What is wrong with the form of any JWS.
fn shapes() -> Cases<Change> {
    broken("two parts", |j, _| {
        j.finish = |text| text.rsplit_once('.').map_or_else(String::new, |(begin, _)| begin.to_owned());
    })
    .broken("four parts", |j, _| j.finish = |text| text + ".e30")
    .broken("padding", |j, _| j.finish = |text| text + "==")
    .broken("a header that is no JSON", |j, _| {
        j.finish = |text| text.split_once('.').map_or_else(String::new, |(_, rest)| format!("e.{rest}"));
    })
    .broken("claims that are no object", |j, _| j.claims = json!([]))
}

/// Algorithms that are none that may be.
fn algorithms() -> Cases<Change> {
    broken("none, without a signature", |j, _| (j.header["alg"], j.seal) = (json!("none"), Seal::Empty))
        .broken("none, with the right signature", |j, _| j.header["alg"] = json!("none"))
        .broken("HS256 under the public key", |j, _| (j.header["alg"], j.seal) = (json!("HS256"), Seal::Hmac))
        .broken("ES256", |j, _| j.header["alg"] = json!("ES256"))
        .broken("none said", |j, _| without(&mut j.header, "alg"))
}

fn signatures() -> Cases<Change> {
    broken("another", |j, _| j.seal = Seal::Changed)
        .broken("none", |j, _| j.seal = Seal::Empty)
        .broken("by another key", |j, _| j.seal = Seal::Stranger)
}

fn scalars() -> Cases<Change> {
    broken("S + L", |j, _| j.seal = Seal::Lifted)
}

fn compressed() -> Cases<Change> {
    broken("DEF", |j, _| j.header["zip"] = json!("DEF"))
}

fn names() -> Cases<Change> {
    broken("empty", |j, _| j.claims["jti"] = json!(""))
        .broken("257 bytes", |j, _| j.claims["jti"] = long(257))
        .right("256 bytes", |j, around| {
            // One that was not used: its end is the time.
            j.claims["jti"] = json!(format!(
                "{:j<256}",
                format!("{}{}", around.now, j.claims["jti"].as_str().unwrap_or_default())
            ));
        })
        .broken("a number", |j, _| j.claims["jti"] = json!(7))
}

fn critical() -> Cases<Change> {
    broken("a name that nobody knows", |j, _| {
        j.header["crit"] = json!(["example.org/x"]);
        j.header["example.org/x"] = json!(true);
    })
    // They are refused wherever they stand (bytes, "Signatures").
    .broken("b64", |j, _| j.header["b64"] = json!(true))
    .broken("jku", |j, _| j.header["jku"] = json!("https://somebody.example/keys"))
    .broken("x5u", |j, _| j.header["x5u"] = json!("https://somebody.example/key"))
    .broken("x5c", |j, _| j.header["x5c"] = json!(["AAAA"]))
}

/// Members that stand twice, one of the two as it must be or both.
fn members() -> Cases<Change> {
    broken("one of the header", |j, _| j.header_text = |text| doubled(text).into_bytes())
        .broken("alg, once as none", |j, _| {
            j.header_text = |text| text.replacen('{', r#"{"alg":"none","#, 1).into_bytes();
        })
        .broken("alg, at last as none", |j, _| {
            j.header_text = |text| {
                (text.strip_suffix('}').unwrap_or_default().to_owned() + r#","alg":"none"}"#).into_bytes()
            };
        })
        .broken("one of the claims", |j, _| j.claims_text = |text| doubled(text).into_bytes())
        .broken("iat, once of another time", |j, _| {
            j.claims_text = |text| text.replacen('{', r#"{"iat":1,"#, 1).into_bytes();
        })
        .broken("jti, once of another name", |j, _| {
            j.claims_text = |text| text.replacen('{', r#"{"jti":"another","#, 1).into_bytes();
        })
}

/// Encodings that are not UTF-8; the signature is over the bytes as they are.
fn encodings() -> Cases<Change> {
    broken("a header in UTF-16", |j, _| j.header_text = utf_16)
        .broken("claims in UTF-16", |j, _| j.claims_text = utf_16)
        .broken("claims in UTF-16 with a byte order mark", |j, _| {
            j.claims_text = |text| [vec![0xff, 0xfe], utf_16(text)].concat();
        })
        .broken("claims in ISO 8859-1", |j, _| {
            j.claims["jti"] = json!(format!("é{}", j.claims["jti"].as_str().unwrap_or_default()));
            j.claims_text = latin_1;
        })
        .right("the same claims in UTF-8", |j, _| {
            j.claims["jti"] = json!(format!("é{}", j.claims["jti"].as_str().unwrap_or_default()));
        })
}

/// What is brought for a condition on DPoP proofs.
pub(super) fn of_proof(rule: ProofRule) -> Violation {
    Violation::Cases(match rule {
        ProofRule::Header => broken("none", |j, _| j.copies = 0).broken("two", |j, _| j.copies = 2),
        ProofRule::Shape => shapes(),
        ProofRule::Claims => broken("without jti", |j, _| without(&mut j.claims, "jti"))
            .broken("without htm", |j, _| without(&mut j.claims, "htm"))
            .broken("without htu", |j, _| without(&mut j.claims, "htu"))
            .broken("without iat", |j, _| without(&mut j.claims, "iat"))
            .broken("iat as text", |j, _| j.claims["iat"] = json!(j.claims["iat"].to_string())),
        ProofRule::Kind => broken("JWT", |j, _| j.header["typ"] = json!("JWT"))
            .broken("that of another proof", |j, _| j.header["typ"] = json!("oap-grant-proof+jwt"))
            .broken("none", |j, _| without(&mut j.header, "typ")),
        ProofRule::Algorithm => algorithms(),
        ProofRule::Signature => signatures(),
        ProofRule::Scalar => scalars(),
        ProofRule::Jwk => broken("none", |j, _| without(&mut j.header, "jwk"))
            .broken("with a private key", |j, _| j.header["jwk"]["d"] = long(43))
            .broken("of another type", |j, _| j.header["jwk"]["kty"] = json!("oct"))
            .broken("without x", |j, _| without(&mut j.header["jwk"], "x"))
            .broken("of another curve", |j, _| j.header["jwk"]["crv"] = json!("X25519"))
            .broken("of 31 bytes", |j, _| {
                let x =
                    j.header["jwk"]["x"].as_str().and_then(|x| x.get(..42)).unwrap_or_default().to_owned();
                j.header["jwk"]["x"] = json!(x);
            }),
        // It is none that the token is bound to either; nobody can have a token that is.
        ProofRule::Weak => broken("the neutral point, under which anything is signed", |j, _| {
            (j.header["jwk"], j.seal) = (neutral(), Seal::Neutral);
        }),
        ProofRule::Method => broken("another", |j, _| {
            j.claims["htm"] = json!(if j.claims["htm"] == "POST" { "GET" } else { "POST" });
        })
        .broken("in small letters", |j, _| {
            j.claims["htm"] = json!(j.claims["htm"].as_str().unwrap_or_default().to_lowercase());
        })
        .broken("empty", |j, _| j.claims["htm"] = json!("")),
        ProofRule::Url => broken("another path", |j, _| {
            j.claims["htu"] = json!(format!("{}x", j.claims["htu"].as_str().unwrap_or_default()));
        })
        .broken("another host", |j, _| {
            j.claims["htu"] = json!(j.claims["htu"].as_str().unwrap_or_default().replacen("://", "://x.", 1));
        })
        .broken("another scheme", |j, _| {
            let url = j.claims["htu"].as_str().unwrap_or_default();
            let rest = url.split_once("://").map_or("", |(_, rest)| rest);
            j.claims["htu"] = json!(format!("wss://{rest}"));
        })
        .broken("a path alone", |j, _| {
            let url = j.claims["htu"].as_str().unwrap_or_default();
            let path = url.split_once("://").and_then(|(_, rest)| rest.split_once('/'));
            j.claims["htu"] = json!(format!("/{}", path.map_or("", |(_, path)| path)));
        })
        .broken("empty", |j, _| j.claims["htu"] = json!(""))
        .broken("the address in the query of another", |j, _| {
            let url = j.claims["htu"].as_str().unwrap_or_default();
            j.claims["htu"] = json!(format!("{url}x?{url}"));
        })
        // Of both addresses the query and the fragment do not count (RFC 9449 4.3).
        .right("with a query", |j, _| {
            j.claims["htu"] = json!(format!("{}?limit=1", j.claims["htu"].as_str().unwrap_or_default()));
        })
        .right("with a fragment", |j, _| {
            j.claims["htu"] = json!(format!("{}#here", j.claims["htu"].as_str().unwrap_or_default()));
        }),
        ProofRule::Nonce => broken("one that nobody gave out", |j, _| j.claims["nonce"] = json!("n-0S6")),
        ProofRule::Time => {
            broken("too old", |j, around| j.claims["iat"] = json!(around.now - around.skew.beyond))
                .right("old", |j, around| j.claims["iat"] = json!(around.now - around.skew.within))
                .broken("too far ahead", |j, around| j.claims["iat"] = json!(around.now + around.skew.beyond))
                .right("ahead", |j, around| j.claims["iat"] = json!(around.now + around.skew.within))
                .broken("before its nbf", |j, around| {
                    j.claims["nbf"] = json!(around.now + around.skew.beyond)
                })
                .right("a little before its nbf", |j, around| {
                    j.claims["nbf"] = json!(around.now + around.skew.within)
                })
                .broken("after its exp", |j, around| j.claims["exp"] = json!(around.now - around.skew.ended))
                .right("a little after its exp", |j, around| {
                    j.claims["exp"] = json!(around.now - around.skew.lives)
                })
                .broken("an nbf that is null", |j, _| j.claims["nbf"] = Value::Null)
                .broken("an exp that is null", |j, _| j.claims["exp"] = Value::Null)
        }
        ProofRule::Token => broken("none", |j, _| without(&mut j.claims, "ath"))
            .broken("of another", |j, _| j.claims["ath"] = long(43))
            .broken("empty", |j, _| j.claims["ath"] = json!("")),
        ProofRule::Bound => broken("another key, which signs", |j, around| {
            (j.header["jwk"], j.seal) = (around.strangers_jwk.clone(), Seal::Stranger);
        }),
        ProofRule::Name => names(),
        ProofRule::Once => return Violation::Twice,
        ProofRule::Critical => critical(),
        ProofRule::Compressed => compressed(),
        ProofRule::Members => members(),
        ProofRule::Encoded => encodings(),
    })
}

/// What is brought for a condition on grantees' proofs.
pub(super) fn of_grant_proof(rule: GrantProofRule) -> Violation {
    Violation::Cases(match rule {
        GrantProofRule::Shape => shapes(),
        GrantProofRule::Kind => broken("JWT", |j, _| j.header["typ"] = json!("JWT"))
            .broken("that of another proof", |j, _| j.header["typ"] = json!("dpop+jwt"))
            .broken("none", |j, _| without(&mut j.header, "typ")),
        GrantProofRule::Algorithm => algorithms(),
        GrantProofRule::Signature => signatures(),
        GrantProofRule::Scalar => scalars(),
        GrantProofRule::Key => broken("none", |j, _| without(&mut j.header, "kid"))
            .broken("somebody else's, who signs", |j, around| {
                (j.header["kid"], j.seal) = (json!(around.strangers_kid), Seal::Stranger);
            })
            .broken("one that is not there", |j, _| {
                let did = j.claims["iss"].as_str().unwrap_or_default().to_owned();
                j.header["kid"] = json!(format!("{did}#key-9"));
            })
            .broken("none, and a key that it brings along", |j, around| {
                without(&mut j.header, "kid");
                (j.header["jwk"], j.seal) = (around.strangers_jwk.clone(), Seal::Stranger);
            }),
        GrantProofRule::Weak => return Violation::Weak,
        GrantProofRule::Issuer => {
            broken("somebody else", |j, _| j.claims["iss"] = json!("did:web:somebody.example"))
                .broken("nobody", |j, _| without(&mut j.claims, "iss"))
        }
        GrantProofRule::Subject => {
            broken("somebody else", |j, _| j.claims["sub"] = json!("did:web:somebody.example"))
                .broken("nobody", |j, _| without(&mut j.claims, "sub"))
        }
        GrantProofRule::Audience => broken("another address", |j, _| {
            j.claims["aud"] = json!(format!("{}x", j.claims["aud"].as_str().unwrap_or_default()));
        })
        .broken("another gateway", |j, _| {
            j.claims["aud"] = json!(j.claims["aud"].as_str().unwrap_or_default().replacen("://", "://x.", 1));
        })
        .broken("none", |j, _| without(&mut j.claims, "aud")),
        GrantProofRule::Name => names().broken("none", |j, _| without(&mut j.claims, "jti")),
        GrantProofRule::Life => broken("61 seconds", |j, around| j.claims["exp"] = json!(around.now + 61))
            .right("60 seconds", |j, around| j.claims["exp"] = json!(around.now + 60))
            .broken("none at all", |j, around| j.claims["exp"] = json!(around.now))
            .broken("no end", |j, _| without(&mut j.claims, "exp")),
        GrantProofRule::Time => {
            broken("too old", |j, around| of_time(j, around.now - around.skew.ended - 60))
                .right("old", |j, around| of_time(j, around.now - around.skew.lives - 60))
                .broken("too far ahead", |j, around| of_time(j, around.now + around.skew.beyond))
                .right("ahead", |j, around| of_time(j, around.now + around.skew.within))
                .broken("none", |j, _| without(&mut j.claims, "iat"))
                .broken("before its nbf", |j, around| {
                    j.claims["nbf"] = json!(around.now + around.skew.beyond)
                })
                .right("a little before its nbf", |j, around| {
                    j.claims["nbf"] = json!(around.now + around.skew.within)
                })
                .broken("an nbf that is null", |j, _| j.claims["nbf"] = Value::Null)
        }
        GrantProofRule::Grant => {
            broken("another's", |j, _| j.claims["grant_hash"] = json!(format!("sha256:{}", "0".repeat(64))))
                .right("none", |j, _| without(&mut j.claims, "grant_hash"))
                .broken("null", |j, _| j.claims["grant_hash"] = Value::Null)
        }
        GrantProofRule::Once => return Violation::Twice,
        GrantProofRule::Critical => critical(),
        GrantProofRule::Compressed => compressed(),
        GrantProofRule::Members => members(),
        GrantProofRule::Encoded => encodings(),
    })
}

fn of_time(jws: &mut Jws, iat: i64) {
    (jws.claims["iat"], jws.claims["exp"]) = (json!(iat), json!(iat + 60));
}
