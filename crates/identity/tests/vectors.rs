//! Public vectors: their values in `tests/vectors`, whose README names the source and licence of each.

#[path = "support/beside.rs"]
mod beside;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as B64};
use oap_identity::document::DidDocument;
use oap_identity::jwk::PublicKey;
use oap_identity::resolve::{GuardedWeb, Resolver, WebPolicy};
use oap_identity::signed::{SignedError, UnverifiedJwt, UnverifiedSignature, sign_document, sign_jwt};
use oap_identity::{Clock, Did, Signer, Timestamp, VerificationKey, json};
use serde_json::{Value, json};
use std::sync::Arc;

/// The values of a file of `tests/vectors`.
fn vectors(name: &str) -> Vec<Value> {
    serde_json::from_slice(&std::fs::read(beside::own(name)).unwrap()).unwrap()
}

fn text<'a>(vector: &'a Value, member: &str) -> &'a str {
    vector[member].as_str().unwrap()
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

#[test]
fn jcs_examples_of_rfc_8785() {
    let vectors = vectors("jcs.json");
    for vector in &vectors {
        let value = json::parse(text(vector, "input").as_bytes()).unwrap();
        let canonical = json::canonical(&value).unwrap();
        assert_eq!(canonical, hex(text(vector, "canonical")), "{}", vector["number"]);
        assert_eq!(
            json::canonical(&json::parse(&canonical).unwrap()).unwrap(),
            canonical,
            "{}",
            vector["number"]
        );
    }
    assert_eq!(vectors.len(), 6);
}

#[test]
fn wycheproof_ed25519() {
    let (mut valid, mut invalid) = (0, 0);
    for vector in vectors("ed25519.json") {
        let key = PublicKey::from_bytes(&hex(text(&vector, "key")));
        let (message, signature) = (hex(text(&vector, "message")), hex(text(&vector, "signature")));
        let verified = key.is_ok_and(|key| key.verify(&message, &signature).is_ok());
        assert_eq!(verified, vector["valid"], "{}", vector["number"]);
        if verified { valid += 1 } else { invalid += 1 }
    }
    assert_eq!((valid, invalid), (88, 63));
}

/// None of Wycheproof's JWS groups is EdDSA, so each of its tokens, the valid ones too, must be refused.
#[test]
fn wycheproof_jws_other_algorithms_are_refused() {
    let tokens = vectors("jws.json");
    for (number, jws) in tokens.iter().enumerate() {
        assert!(UnverifiedJwt::parse(jws.as_str().unwrap(), "JWT").is_err(), "{number}");
    }
    assert!(tokens.len() > 300, "{}", tokens.len());
}

fn signer() -> Signer {
    Signer::did_key(&[7; 32]).unwrap()
}

fn key(signer: &Signer) -> VerificationKey {
    VerificationKey::new(signer.kid().clone(), *signer.public())
}

fn check(token: &str) -> Result<Value, SignedError> {
    UnverifiedJwt::parse(token, "t+jwt")?.verify(&key(&signer()), Timestamp::from_seconds(0))
}

/// The shapes of the Wycheproof groups, taken over to EdDSA.
#[test]
fn wycheproof_jws_shapes_on_eddsa() {
    let token = sign_jwt(&signer(), "t+jwt", &json!({"sub": "a"})).unwrap();
    assert_eq!(check(&token).unwrap(), json!({"sub": "a"}));
    let parts: Vec<&str> = token.split('.').collect();
    let [h, p, s] = parts[..] else { panic!() };
    let header = |v: Value| B64.encode(v.to_string());
    let kid = signer().kid().to_string();
    let resigned = |head: &str| {
        let input = format!("{head}.{p}");
        format!("{input}.{}", signer().sign(input.as_bytes()))
    };
    let mut flipped = B64.decode(s).unwrap();
    flipped[5] ^= 1;
    let attacker = Signer::did_key(&[8; 32]).unwrap();
    let foreign = {
        let head =
            header(json!({"alg": "EdDSA", "kid": kid, "typ": "t+jwt", "jwk": attacker.public().jwk()}));
        let input = format!("{head}.{p}");
        format!("{input}.{}", attacker.sign(input.as_bytes()))
    };
    let mac_with_public_key = resigned(&header(json!({"alg": "HS256", "kid": kid, "typ": "t+jwt"})));
    let refused = [
        ("modified signature", format!("{h}.{p}.{}", B64.encode(&flipped))),
        ("S + L", format!("{h}.{p}.{}", lifted(s))),
        ("missing signature", format!("{h}.{p}.")),
        ("missing signature and separator", format!("{h}.{p}")),
        ("modified payload", format!("{h}.{}.{s}", B64.encode(br#"{"sub":"b"}"#))),
        ("missing payload", format!("{h}..{s}")),
        ("missing payload and separator", format!("{h}.{s}")),
        ("missing header", format!(".{p}.{s}")),
        ("missing header and separator", format!("{p}.{s}")),
        ("empty", String::new()),
        ("extra empty part", format!("{token}.")),
        ("extra part", format!("{token}.{s}")),
        ("none", format!("{}.{p}.", header(json!({"alg": "none", "kid": kid, "typ": "t+jwt"})))),
        ("None", format!("{}.{p}.", header(json!({"alg": "None", "kid": kid, "typ": "t+jwt"})))),
        ("hmac with the public key", mac_with_public_key),
        ("key of the attacker in the header", foreign),
        ("json serialization", json!({"protected": h, "payload": p, "signature": s}).to_string()),
        ("padding", format!("{h}.{p}.{s}==")),
        ("space", format!("{h}.{p}. {s}")),
        ("invalid character", format!("{h}.{p}.{}!", &s[..s.len() - 1])),
        ("standard alphabet", format!("{h}.{p}.+/{}", &s[2..])),
        ("signature too long", format!("{h}.{p}.{s}AAAA")),
        ("unused bits", format!("{h}.{p}.{}", unused_bits(s))),
        (
            "crit",
            resigned(&header(json!({"alg": "EdDSA", "kid": kid, "typ": "t+jwt", "crit": ["x"], "x": 1}))),
        ),
        ("zip", resigned(&header(json!({"alg": "EdDSA", "kid": kid, "typ": "t+jwt", "zip": "DEF"})))),
        ("other typ", resigned(&header(json!({"alg": "EdDSA", "kid": kid, "typ": "u+jwt"})))),
        ("no kid", resigned(&header(json!({"alg": "EdDSA", "typ": "t+jwt"})))),
        (
            "duplicate alg",
            resigned(&B64.encode(format!(r#"{{"alg":"none","alg":"EdDSA","kid":"{kid}","typ":"t+jwt"}}"#))),
        ),
    ];
    for (name, token) in refused {
        assert!(check(&token).is_err(), "{name}");
    }
}

/// The signature with S + L in place of S: another text of the same (RFC 8032 5.1.7).
fn lifted(signature: &str) -> String {
    const ORDER: [u8; 32] = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];
    let mut bytes = B64.decode(signature).unwrap();
    let mut carry = 0;
    for (byte, more) in bytes[32..].iter_mut().zip(ORDER) {
        let [low, high] = (u16::from(*byte) + u16::from(more) + u16::from(carry)).to_le_bytes();
        (*byte, carry) = (low, high);
    }
    B64.encode(bytes)
}

/// Points of small order: none of them is a key, though under the first one anything is signed by the base point and 1.
#[test]
fn keys_of_small_order_are_refused() {
    let mut points = [[0; 32], [0; 32], [0xff; 32]];
    points[0][0] = 1;
    (points[2][0], points[2][31]) = (0xec, 0x7f);
    for x in points.map(|point| B64.encode(point)) {
        let jwk = json!({"crv": "Ed25519", "kty": "OKP", "x": x});
        assert!(PublicKey::from_jwk(&jwk).is_err(), "{x}");
        let head = B64.encode(json!({"alg": "EdDSA", "jwk": jwk, "typ": "t+jwt"}).to_string());
        let one = [[0x58; 1].as_slice(), &[0x66; 31], &[1], &[0; 31]].concat();
        let proof = format!("{head}.{}.{}", B64.encode("{}"), B64.encode(one));
        assert!(UnverifiedJwt::parse(&proof, "t+jwt").unwrap().jwk().is_err(), "{x}");
    }
}

/// The same bytes in another base64url spelling.
fn unused_bits(signature: &str) -> String {
    let mut chars: Vec<char> = signature.chars().collect();
    let last = chars.last_mut().unwrap();
    *last = char::from(*last as u8 + 1);
    chars.into_iter().collect()
}

/// RFC 8037 appendix A.4 and A.5: signature and verification.
#[test]
fn rfc_8037_signature() {
    let seed = B64.decode("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A").unwrap();
    let signer = Signer::did_key(seed.as_slice().try_into().unwrap()).unwrap();
    let input = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
    let expected = "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
    assert_eq!(signer.sign(input.as_bytes()), expected);
    assert!(signer.public().verify(input.as_bytes(), &B64.decode(expected).unwrap()).is_ok());
}

#[test]
fn document_signatures_cover_every_member_and_name_their_key() {
    let mut document = json!({"b": [1, {"c": "ü"}], "a": null});
    sign_document(&mut document, &signer()).unwrap();
    let at = Timestamp::from_seconds(100);
    let verify = |document: &Value, key: &VerificationKey| {
        UnverifiedSignature::of(document).and_then(|s| s.verify(key, at))
    };
    let signing_key = key(&signer());
    assert_eq!(verify(&document, &signing_key), Ok(()));
    for pointer in ["/a", "/b/0", "/b/1/c"] {
        let mut changed = document.clone();
        *changed.pointer_mut(pointer).unwrap() = json!(2);
        assert_eq!(verify(&changed, &signing_key), Err(SignedError::BadSignature), "{pointer}");
    }
    let mut added = document.clone();
    added["d"] = json!(1);
    assert_eq!(verify(&added, &signing_key), Err(SignedError::BadSignature));
    assert_eq!(verify(&json!({"a": 1}), &signing_key), Err(SignedError::Missing));

    let other = Signer::did_key(&[8; 32]).unwrap();
    assert_eq!(verify(&document, &key(&other)), Err(SignedError::OtherKey));

    let retired_later = signing_key.clone().retired(Timestamp::from_seconds(101));
    assert_eq!(verify(&document, &retired_later), Ok(()));
    let retired_before = signing_key.clone().retired(at);
    assert_eq!(verify(&document, &retired_before), Err(SignedError::Retired(at)));
    let revoked_later = signing_key.clone().revoked(Timestamp::from_seconds(101));
    assert_eq!(verify(&document, &revoked_later), Ok(()));
    let revoked = signing_key.revoked(at);
    assert_eq!(verify(&document, &revoked), Err(SignedError::Revoked(at)));
}

struct Fixed;
impl Clock for Fixed {
    fn now(&self) -> Timestamp {
        Timestamp::from_seconds(1_700_000_000)
    }
}

fn offline() -> Resolver {
    rustls_provider();
    Resolver::new(GuardedWeb::new(WebPolicy::Public, &[]).unwrap(), Arc::new(Fixed))
}

fn rustls_provider() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
}

#[tokio::test]
async fn did_key_vectors() {
    let resolver = offline();
    let vectors = vectors("did-key.json");
    for vector in &vectors {
        let seed = hex(text(vector, "seed"));
        let signer = Signer::did_key(seed.as_slice().try_into().unwrap()).unwrap();
        assert_eq!(signer.did().as_str(), text(vector, "did"));
        let document = resolver.resolve(signer.did()).await.unwrap();
        assert_eq!(document.keys(), [key(&signer)]);
        assert_eq!(signer.kid().fragment(), text(vector, "key"));
    }
    assert_eq!(vectors.len(), 5);
}

#[tokio::test]
async fn did_key_refuses_other_keys_and_nonsense() {
    let resolver = offline();
    for did in [
        "did:key:z6LShs9GGnqk85isEBzzshkuVWrVKsRp24GnDuHk8QWkARMW", // X25519: resolves, signs nothing
        "did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme",
        "did:key:z",
        "did:key:hello",
        "did:key:z6Mk",
        "did:plc:ewvi7nxzyoun6zhxrhs64oiz",
    ] {
        let resolved = resolver.resolve(&did.parse().unwrap()).await;
        assert!(resolved.is_err() || resolved.is_ok_and(|d| d.keys().is_empty()), "{did}");
    }
}

#[test]
fn did_web_vectors() {
    let vectors = vectors("did-web.json");
    for vector in &vectors {
        let did: Result<Did, _> = text(vector, "did").parse();
        let resolved = did.ok().and_then(|did| {
            let url = vector["served_at"].as_str()?;
            assert_eq!(did.document_url()?.as_str(), url);
            DidDocument::parse(vector["document"].to_string().as_bytes(), &did).ok()
        });
        assert_eq!(resolved.is_some(), vector["resolves"], "{}", vector["did"]);
        assert!(resolved.is_none_or(|document| document.id().as_str() == text(vector, "did")));
    }
    assert_eq!(vectors.len(), 6);
}

/// atproto's lists: every DID of a form that we take must pass, and nothing that it calls invalid may pass.
#[test]
fn did_syntax() {
    let vectors = vectors("did-syntax.json");
    for vector in &vectors {
        let did = text(vector, "text");
        // DID Core allows digits in a method's name; atproto does not. DIDs here have a length.
        let valid = vector["valid"] == true && did.len() <= 512 || did == "did:m123:val";
        assert_eq!(did.parse::<Did>().is_ok(), valid, "{did}");
    }
    assert!(vectors.len() > 30, "{}", vectors.len());
}

// --- where the sources are at hand: our values are theirs ---

#[test]
#[ignore = "needs the public vectors (OAP_SHARED or ../shared): vectors/jcs"]
fn the_values_of_jcs_are_those_of_their_source() {
    let names = ["arrays", "french", "structures", "unicode", "values", "weird"];
    let read = |path: String| String::from_utf8(beside::read(&path)).unwrap();
    let made = names.into_iter().enumerate().map(|(number, name)| {
        let canonical: String = read(format!("vectors/jcs/outhex/{name}.txt")).split_whitespace().collect();
        assert_eq!(hex(&canonical), beside::read(&format!("vectors/jcs/output/{name}.json")), "{name}");
        json!({"number": number, "input": read(format!("vectors/jcs/input/{name}.json")), "canonical": canonical})
    });
    beside::same_as_source("jcs.json", &made.collect::<Vec<_>>());
    let all = std::fs::read_dir(beside::place("vectors/jcs/input")).unwrap().count();
    assert_eq!(all, names.len(), "another case than those that are named");
}

/// The elements of a member of every group's tests, with their group.
fn of_groups(file: &Value) -> Vec<(&Value, &Value)> {
    let groups = file["testGroups"].as_array().unwrap();
    groups
        .iter()
        .flat_map(|group| group["tests"].as_array().unwrap().iter().map(move |test| (group, test)))
        .collect()
}

#[test]
#[ignore = "needs the public vectors (OAP_SHARED or ../shared): vectors/wycheproof"]
fn the_values_of_wycheproof_are_those_of_their_source() {
    let file = beside::json("vectors/wycheproof/ed25519_test.json");
    let made = of_groups(&file).into_iter().map(|(group, test)| {
        json!({
            "number": test["tcId"], "key": group["publicKey"]["pk"], "message": test["msg"],
            "signature": test["sig"], "valid": test["result"] == "valid",
        })
    });
    beside::same_as_source("ed25519.json", &made.collect::<Vec<_>>());
    let file = beside::json("vectors/wycheproof/json_web_signature_test.json");
    let mut tokens: Vec<Value> =
        of_groups(&file).into_iter().map(|(_, test)| test["jws"].clone()).filter(Value::is_string).collect();
    tokens.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
    tokens.dedup();
    beside::same_as_source("jws.json", &tokens);
}

#[test]
#[ignore = "needs the public vectors (OAP_SHARED or ../shared): vectors/did"]
fn the_values_of_dids_are_those_of_their_source() {
    let file = beside::json("vectors/did/did_key_ed25519_x25519.json");
    let made = file.as_object().unwrap().iter().map(|(did, case)| {
        let key = case["verificationKeyPair"]["id"].as_str().and_then(|id| id.rsplit('#').next());
        json!({"did": did, "seed": case["seed"], "key": key})
    });
    beside::same_as_source("did-key.json", &made.collect::<Vec<_>>());

    let file = beside::json("vectors/did/did_web_resolve.json");
    let made = file["vectors"].as_array().unwrap().iter().map(|case| {
        let served = case["input"]["mockServer"].as_object().and_then(|served| served.iter().next());
        let resolves = case["output"]["didDocument"]["id"].is_string();
        json!({
            "did": case["input"]["didUri"], "served_at": served.map(|(url, _)| url),
            "document": served.map(|(_, document)| document), "resolves": resolves,
        })
    });
    beside::same_as_source("did-web.json", &made.collect::<Vec<_>>());

    let mut made = Vec::new();
    for (name, valid) in [("did_syntax_valid.txt", true), ("did_syntax_invalid.txt", false)] {
        let list = String::from_utf8(beside::read(&format!("vectors/did/{name}"))).unwrap();
        let lines = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        made.extend(lines.map(|did| json!({"text": did, "valid": valid})));
    }
    beside::same_as_source("did-syntax.json", &made);
}
