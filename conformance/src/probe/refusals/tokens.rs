//! Violations of the conditions on tokens. Nobody but the granter can sign one: a token that says something else breaks its signature with it.

use super::cases::OneOrMore;
use super::jws::{Jws, Seal, changed, doubled, lifted, part, read};
use super::rules::TokenRule;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use oap_identity::Signer;
use serde_json::{Value, json};

/// What forgeries are made of.
pub(super) struct Given<'a> {
    /// A token that holds.
    pub(super) token: &'a str,
    /// The granter's public key.
    pub(super) granter: [u8; 32],
    /// Whose token it is.
    pub(super) grantee: &'a Signer,
    /// Somebody else.
    pub(super) stranger: &'a Signer,
    /// Whether the token is bound to no key.
    pub(super) bearer: bool,
    /// Other JWTs: one that the granter's key signed, and proofs of the grantee's.
    pub(super) others: Vec<(&'static str, String)>,
}

/// What is sent as `Authorization`, one value for each header.
pub(super) struct Shown {
    pub(super) what: String,
    pub(super) authorization: Vec<String>,
    /// Whether a proof for what is shown stands beside it.
    pub(super) proof: bool,
}

/// What is brought for a condition on tokens.
pub(super) enum Violation {
    Shown(OneOrMore<Shown>),
    /// The token itself, before and after its end.
    Ends,
}

impl Given<'_> {
    /// What stands before the token.
    const fn scheme(&self) -> &'static str {
        if self.bearer { "Bearer" } else { "DPoP" }
    }

    fn shown(&self, what: &str, token: &str) -> Shown {
        let authorization = vec![format!("{} {token}", self.scheme())];
        Shown { what: what.to_owned(), authorization, proof: !self.bearer }
    }

    /// The token with another header and other claims, under a signature of somebody else's.
    fn forged(&self, what: &str, change: impl FnOnce(&mut Jws)) -> Shown {
        let mut jws = Jws::new(read(self.token, 0), read(self.token, 1));
        jws.seal = Seal::Stranger;
        change(&mut jws);
        self.shown(what, &jws.made(self.stranger, self.stranger))
    }

    /// A token of a type that the grantee made for somebody else, out of its own. The proof beside it is by the key that it names.
    fn delegated(&self, what: &str, typ: &str) -> Shown {
        let mut jws = Jws::new(read(self.token, 0), read(self.token, 1));
        (jws.header["typ"], jws.header["kid"]) = (json!(typ), json!(self.grantee.kid()));
        (jws.claims["iss"], jws.claims["sub"]) = (json!(self.grantee.did()), json!(self.stranger.did()));
        jws.claims["delegation"] = json!({"parent": self.token});
        self.shown(what, &jws.made(self.grantee, self.stranger))
    }

    /// The token with another header and other claims under its own signature.
    fn altered(&self, what: &str, change: impl FnOnce(&mut Value, &mut Value)) -> Shown {
        let (mut header, mut claims) = (read(self.token, 0), read(self.token, 1));
        change(&mut header, &mut claims);
        let signature = self.token.rsplit('.').next().unwrap_or_default();
        self.shown(what, &format!("{}.{}.{signature}", part(&header), part(&claims)))
    }

    /// The token with a header, or claims, whose first member stands twice, under its own signature.
    fn doubled(&self, what: &str, number: usize) -> Shown {
        let mut parts: Vec<String> = self.token.split('.').map(str::to_owned).collect();
        if let Some(part) = parts.get_mut(number) {
            *part = URL_SAFE_NO_PAD.encode(doubled(read(self.token, number).to_string()));
        }
        self.shown(what, &parts.join("."))
    }
}

/// The violations of a condition.
pub(super) fn violations(rule: TokenRule, given: &Given<'_>) -> Violation {
    let token = given.token;
    let sent = |what: &str, all: &[String]| {
        let authorization = all.to_vec();
        Shown { what: what.to_owned(), authorization, proof: !given.bearer }
    };
    let own = format!("{} {token}", given.scheme());
    let (signed, signature) = token.rsplit_once('.').unwrap_or((token, ""));
    let one = OneOrMore::one;
    Violation::Shown(match rule {
        TokenRule::Present => one(sent("none", &[])),
        TokenRule::Once => one(sent("twice", &[own.clone(), own])),
        TokenRule::Scheme => {
            let other = if given.bearer { "DPoP" } else { "Bearer" };
            let others = [true, false].map(|proof| Shown {
                what: format!("as {other}, {} a proof", if proof { "with" } else { "without" }),
                authorization: vec![format!("{other} {token}")],
                proof,
            });
            one(sent("as Basic", &[format!("Basic {token}")]))
                .and(sent("without a scheme", &[token.to_owned()]))
                .and_all(others)
        }
        TokenRule::Shape => one(given.shown("two parts", signed))
            .and(given.shown("four parts", &format!("{token}.e30")))
            .and(given.shown("padding", &format!("{token}==")))
            .and(given.shown("a word", "token")),
        TokenRule::Algorithm => one(given.forged("none, without a signature", |j| {
            (j.header["alg"], j.seal) = (json!("none"), Seal::Empty);
        }))
        .and(given.altered("none, with the right signature", |header, _| header["alg"] = json!("none")))
        .and(given.altered("ES256", |header, _| header["alg"] = json!("ES256")))
        .and(hmac(given)),
        TokenRule::Signature => one(given.shown("another", &format!("{signed}.{}", changed(signature))))
            .and(given.shown("none", &format!("{signed}.")))
            .and(given.forged("by another key", |_| {})),
        TokenRule::Scalar => one(given.shown("S + L", &format!("{signed}.{}", lifted(signature)))),
        TokenRule::Claims => claims(given),
        TokenRule::Key => {
            one(given.forged("one in jwk", |j| j.header["jwk"] = given.stranger.public().jwk()))
                .and(given.forged("one at jku", |j| j.header["jku"] = json!("https://somebody.example/keys")))
                .and(given.forged("one at x5u", |j| j.header["x5u"] = json!("https://somebody.example/key")))
                .and(given.forged("one in x5c", |j| j.header["x5c"] = json!(["AAAA"])))
                .and(given.forged("kid of another", |j| j.header["kid"] = json!(given.stranger.kid())))
                .and(given.altered("kid that is not there", |header, _| {
                    let did =
                        header["kid"].as_str().and_then(|kid| kid.split('#').next()).unwrap_or_default();
                    header["kid"] = json!(format!("{did}#key-0"));
                }))
                .and(given.altered("kid absent", |header, _| without(header, "kid")))
        }
        TokenRule::Issuer => one(given.forged("of another gateway", |j| {
            j.header["kid"] = json!(given.stranger.kid());
            j.claims["iss"] = json!(given.stranger.did());
        })),
        TokenRule::Delegated => one(given.delegated("one of its own type", "oap-delegation+jwt"))
            .and(given.delegated("one of the type of the granter's", "oap-memory-grant+jwt")),
        TokenRule::Kind => one(given.altered("typ of another", |header, _| header["typ"] = json!("JWT")))
            .and(given.altered("no typ", |header, _| without(header, "typ")))
            .and_all(given.others.iter().map(|(what, jwt)| given.shown(what, jwt))),
        TokenRule::Lives => return Violation::Ends,
        TokenRule::Critical => one(given.altered("a name that nobody knows", |header, _| {
            header["crit"] = json!(["example.org/x"]);
            header["example.org/x"] = json!(true);
        }))
        .and(given.altered("b64", |header, _| header["b64"] = json!(true)))
        .and(given.altered("jku", |header, _| header["jku"] = json!("https://somebody.example/keys")))
        .and(given.altered("x5u", |header, _| header["x5u"] = json!("https://somebody.example/key")))
        .and(given.altered("x5c", |header, _| header["x5c"] = json!(["AAAA"]))),
        TokenRule::Compressed => one(given.altered("DEF", |header, _| header["zip"] = json!("DEF"))),
        TokenRule::Members => {
            one(given.doubled("one of the header", 0)).and(given.doubled("one of the claims", 1))
        }
    })
}

fn without(value: &mut Value, member: &str) {
    value.as_object_mut().map(|members| members.remove(member));
}

/// A token whose signature is an HMAC under the granter's public key.
fn hmac(given: &Given<'_>) -> Shown {
    let mut header = read(given.token, 0);
    header["alg"] = json!("HS256");
    let signed = format!("{}.{}", part(&header), part(&read(given.token, 1)));
    let mac = super::jws::hmac(&given.granter, signed.as_bytes());
    let mac = URL_SAFE_NO_PAD.encode(mac);
    given.shown("HS256 under the public key", &format!("{signed}.{mac}"))
}

/// Each claim of the token with another value, and left out, and one that it does not have.
fn claims(given: &Given<'_>) -> OneOrMore<Shown> {
    let named = read(given.token, 1);
    let mut all = OneOrMore::one(given.altered("one more", |_, claims| claims["colour"] = json!("red")));
    if given.bearer {
        // What binds it is signed as well.
        let jkt = given.stranger.public().thumbprint();
        all = all.and(given.altered("a cnf", |_, claims| claims["cnf"] = json!({"jkt": jkt})));
    }
    for (name, value) in named.as_object().into_iter().flatten() {
        let other = match value {
            Value::Number(number) => json!(number.as_i64().unwrap_or(0) + 60),
            Value::String(text) if name == "sub" || name == "iss" => json!(format!("{text}x")),
            Value::String(text) => json!(changed(text)),
            _ => json!({"jkt": given.stranger.public().thumbprint()}),
        };
        all = all
            .and(given.altered(&format!("another {name}"), |_, claims| claims[name.as_str()] = other))
            .and(given.altered(&format!("no {name}"), |_, claims| without(claims, name)));
    }
    all
}
