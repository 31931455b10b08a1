//! Public vectors, read from `../shared/vectors` (its README names the source and licence of each).

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as B64};
use oap_identity::document::DidDocument;
use oap_identity::jwk::PublicKey;
use oap_identity::resolve::{GuardedWeb, Resolver, WebPolicy};
use oap_identity::signed::{SignedError, UnverifiedJwt, UnverifiedSignature, sign_document, sign_jwt};
use oap_identity::{Clock, Did, Signer, Timestamp, VerificationKey, json};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folder of vectors; `None` (and a note) where the project stands without `../shared`.
fn vectors() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors");
    if !path.is_dir() {
        eprintln!("skipped: {} is not there", path.display());
        return None;
    }
    Some(path)
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

#[test]
fn jcs_examples_of_rfc_8785() {
    let Some(vectors) = vectors() else { return };
    let mut seen = 0;
    for entry in std::fs::read_dir(vectors.join("jcs/input")).unwrap() {
        let input = entry.unwrap().path();
        let name = input.file_stem().unwrap().to_str().unwrap();
        let value = json::parse(&std::fs::read(&input).unwrap()).unwrap();
        let canonical = json::canonical(&value).unwrap();
        let output = std::fs::read(vectors.join(format!("jcs/output/{name}.json"))).unwrap();
        assert_eq!(canonical, output, "{name}");
        let outhex = std::fs::read_to_string(vectors.join(format!("jcs/outhex/{name}.txt"))).unwrap();
        assert_eq!(canonical, hex(&outhex.split_whitespace().collect::<String>()), "{name}");
        assert_eq!(json::canonical(&json::parse(&canonical).unwrap()).unwrap(), canonical, "{name}");
        seen += 1;
    }
    assert!(seen >= 6);
}

#[test]
fn wycheproof_ed25519() {
    let Some(vectors) = vectors() else { return };
    let file = read_json(&vectors.join("wycheproof/ed25519_test.json"));
    let (mut valid, mut invalid) = (0, 0);
    for group in file["testGroups"].as_array().unwrap() {
        let key = PublicKey::from_bytes(&hex(group["publicKey"]["pk"].as_str().unwrap()));
        for test in group["tests"].as_array().unwrap() {
            let message = hex(test["msg"].as_str().unwrap());
            let signature = hex(test["sig"].as_str().unwrap());
            let verified = key.is_ok_and(|key| key.verify(&message, &signature).is_ok());
            assert_eq!(verified, test["result"] == "valid", "{} {}", test["tcId"], test["comment"]);
            if verified { valid += 1 } else { invalid += 1 }
        }
    }
    assert_eq!((valid, invalid), (88, 63));
}

/// None of Wycheproof's JWS groups is EdDSA, so each of its tokens, the valid ones too, must be refused.
#[test]
fn wycheproof_jws_other_algorithms_are_refused() {
    let Some(vectors) = vectors() else { return };
    let file = read_json(&vectors.join("wycheproof/json_web_signature_test.json"));
    let mut seen = 0;
    for group in file["testGroups"].as_array().unwrap() {
        for test in group["tests"].as_array().unwrap() {
            let Some(jws) = test["jws"].as_str() else { continue };
            assert!(UnverifiedJwt::parse(jws, "JWT").is_err(), "{}", test["comment"]);
            seen += 1;
        }
    }
    assert!(seen > 300, "{seen}");
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
    let Some(vectors) = vectors() else { return };
    let file = read_json(&vectors.join("did/did_key_ed25519_x25519.json"));
    let resolver = offline();
    for (did, case) in file.as_object().unwrap() {
        let seed = hex(case["seed"].as_str().unwrap());
        let signer = Signer::did_key(seed.as_slice().try_into().unwrap()).unwrap();
        assert_eq!(signer.did().as_str(), did);
        let document = resolver.resolve(signer.did()).await.unwrap();
        assert_eq!(document.keys(), [key(&signer)]);
        let id = case["verificationKeyPair"]["id"].as_str().unwrap();
        assert_eq!(id.rsplit('#').next(), Some(signer.kid().fragment()));
    }
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
    let Some(vectors) = vectors() else { return };
    let file = read_json(&vectors.join("did/did_web_resolve.json"));
    for case in file["vectors"].as_array().unwrap() {
        let did: Result<Did, _> = case["input"]["didUri"].as_str().unwrap().parse();
        let served = case["input"]["mockServer"].as_object().and_then(|m| m.iter().next());
        let resolved = did.ok().and_then(|did| {
            let (url, body) = served?;
            assert_eq!(did.document_url()?.as_str(), url, "{}", case["description"]);
            DidDocument::parse(body.to_string().as_bytes(), &did).ok()
        });
        let expected = case["output"]["didDocument"]["id"].as_str();
        assert_eq!(resolved.as_ref().map(|d| d.id().as_str()), expected, "{}", case["description"]);
    }
}

/// atproto's lists: every DID of a form that we take must pass, and nothing that it calls invalid may pass.
#[test]
fn did_syntax() {
    let Some(vectors) = vectors() else { return };
    let lines = |name: &str| {
        let text = std::fs::read_to_string(vectors.join("did").join(name)).unwrap();
        text.lines().filter(|l| !l.is_empty() && !l.starts_with('#')).map(str::to_owned).collect::<Vec<_>>()
    };
    for text in lines("did_syntax_valid.txt").iter().filter(|t| t.len() <= 512) {
        assert!(text.parse::<Did>().is_ok(), "{text}");
    }
    for text in lines("did_syntax_invalid.txt") {
        // DID Core allows digits in a method's name; atproto does not.
        assert_eq!(text.parse::<Did>().is_ok(), text == "did:m123:val", "{text}");
    }
}
