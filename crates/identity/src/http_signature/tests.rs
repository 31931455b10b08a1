use super::HttpSignatureError as Error;
use super::*;
use crate::document::VerificationKey;
use crate::random::Seeded;

const TAG: &str = "test";
const BODY: &[u8] = b"{}";
const COVERED: Covered<'_> = Covered::Request { method: "POST", target: "/a?b=c" };

fn now() -> Timestamp {
    Timestamp::from_seconds(1_777_636_800)
}

fn signer(seed: u8) -> Signer {
    Signer::did_key(&[seed; 32]).unwrap()
}

fn document(of: &Signer) -> DidDocument {
    DidDocument::new(of.did().clone(), vec![VerificationKey::new(of.kid().clone(), *of.public())])
}

fn signed() -> (SignedHeaders, Nonce) {
    let nonce = Nonce::new(&Seeded::new(3));
    (sign(COVERED, BODY, &nonce, TAG, &signer(1), now()), nonce)
}

fn read(headers: &SignedHeaders) -> Result<UnverifiedMessage, Error> {
    let (digest, input, signature) =
        ([headers.digest.as_str()], [headers.input.as_str()], [headers.signature.as_str()]);
    UnverifiedMessage::request(Headers { digest: &digest, input: &input, signature: &signature }, TAG)
}

#[test]
fn what_is_signed_is_read() {
    let (headers, nonce) = signed();
    let message = read(&headers).unwrap();
    assert_eq!(message.kid(), signer(1).kid());
    let message = message.verify(COVERED, &document(&signer(1)), now()).unwrap();
    assert_eq!((message.covers(BODY), message.covers(b"{} ")), (Ok(()), Err(Error::Digest)));
    assert_eq!(message.answers(&nonce), Ok(()));
    assert_eq!(message.answers(&Nonce::new(&Seeded::new(4))), Err(Error::Nonce));
}

/// The signature base, spelled out: what another implementation signs (RFC 9421 section 2.5).
#[test]
fn the_base_is_as_the_rfc_has_it() {
    let (headers, _) = signed();
    let parameters = headers.input.strip_prefix("oap=").unwrap();
    let base = format!(
        "\"@method\": POST\n\"@request-target\": /a?b=c\n\"content-digest\": {}\n\"@signature-params\": {parameters}",
        "sha-256=:RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o=:"
    );
    assert_eq!(COVERED.base(&headers.digest, parameters), base);
    let answer = Covered::Answer { status: 200, method: "POST", target: "/a" };
    assert_eq!(
        answer.base("d", "p"),
        "\"@status\": 200\n\"@method\";req: POST\n\"@request-target\";req: /a\n\"content-digest\": d\n\"@signature-params\": p"
    );
}

/// A request and its answer, signed by another implementation (Python's `cryptography`) from protocol section 17.3.
#[test]
fn vectors() {
    let me = Signer::from_seed("did:web:alice.example#key-1".parse().unwrap(), &[7; 32]).unwrap();
    let nonce = Nonce::parse("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8").unwrap();
    let (method, target) = ("POST", "/oap/peer/push/sub_01J9V8B7H1ZK4D2A0M9R8F0KQX");
    let request = Covered::Request { method, target };
    let answer = Covered::Answer { status: 200, method, target };
    for (covered, tag, body, digest, signature) in [
        (
            request,
            "oap-memory-push",
            &b"{\"a\":1}"[..],
            "sha-256=:AVq9f1zFei3ZS3WQ8ErYCEJzkF7jPsXOvq5iJ2qX+GI=:",
            "oap=:xPjuvDJMVvz8oailDjliSMh6js30wXRvG0Tje+xmm4ACw3VEe0CIDLe4skMGkXd27TwypbZlIRDkK6fYiZv/DQ==:",
        ),
        (
            answer,
            "oap-memory-push-reply",
            &b"{\"outcome\":\"taken\"}"[..],
            "sha-256=:gtyeiuE7wegMXyqphR0FUb4dfmuugQCe+Aseb+l2M2o=:",
            "oap=:VQari7WcZLMZosYl5ZijzMCY5lUI+8iTDKd7SKvMxHpHmEIyY+dofmNbZdMHyK++Or7EQB08x774HpP81ljdDQ==:",
        ),
    ] {
        let signed = sign(covered, body, &nonce, tag, &me, now());
        assert_eq!((signed.digest.as_str(), signed.signature.as_str()), (digest, signature), "{tag}");
    }
}

/// Another method, target, key, time or kind of message than was signed.
#[test]
fn what_is_not_believed() {
    let (headers, _) = signed();
    let verify =
        |covered, by: &Signer, at| read(&headers).unwrap().verify(covered, &document(by), at).map(|_| ());
    let me = signer(1);
    for covered in [
        Covered::Request { method: "PUT", target: "/a?b=c" },
        Covered::Request { method: "POST", target: "/a" },
    ] {
        assert_eq!(verify(covered, &me, now()), Err(SignedError::BadSignature.into()));
    }
    let answer = Covered::Answer { status: 200, method: "POST", target: "/a?b=c" };
    assert_eq!(verify(answer, &me, now()), Err(Error::Form("Signature-Input")));
    assert_eq!(verify(COVERED, &signer(2), now()), Err(SignedError::OtherKey.into()));
    let over = now().plus(MAX_LIFE).plus(MAX_SKEW);
    assert_eq!(verify(COVERED, &me, over), Err(Error::Time));
    assert_eq!(verify(COVERED, &me, over.minus(Duration::from_secs(1))), Ok(()));
    let early = now().minus(MAX_SKEW);
    assert_eq!(verify(COVERED, &me, early), Ok(()));
    assert_eq!(verify(COVERED, &me, early.minus(Duration::from_secs(1))), Err(Error::Time));
    let revoked = VerificationKey::new(me.kid().clone(), *me.public()).revoked(now().plus(MAX_LIFE));
    let revoked = DidDocument::new(me.did().clone(), vec![revoked]);
    assert!(matches!(
        read(&headers).unwrap().verify(COVERED, &revoked, now()),
        Err(Error::Signature(SignedError::Revoked(_)))
    ));
}

/// A life that is longer than any may be is not believed of the key's own owner.
#[test]
fn a_signature_lives_a_minute() {
    let (me, nonce) = (signer(1), Nonce::new(&Seeded::new(3)));
    for (created, expires) in [(0, 61), (0, 0), (10, 9)] {
        let at = now().seconds();
        let parameters = Parameters {
            created: at + created,
            expires: at + expires,
            nonce: &nonce,
            kid: me.kid(),
            tag: TAG,
        };
        let parameters = format!("{OF_REQUEST}{parameters}");
        let digest = digest(BODY);
        let signature = me.signature(COVERED.base(&digest, &parameters).as_bytes());
        let headers = SignedHeaders {
            digest,
            input: format!("oap={parameters}"),
            signature: format!("oap=:{}:", STANDARD.encode(signature)),
        };
        let verified = read(&headers).unwrap().verify(COVERED, &document(&me), now());
        assert_eq!(verified.map(|_| ()), Err(Error::Time));
    }
}

/// Whatever is not of the one form is not read: every header with every change of it.
#[test]
fn one_form_alone_is_read() {
    let (headers, nonce) = signed();
    let input = |from: &str, to: &str| {
        let changed = headers.input.replacen(from, to, 1);
        assert_ne!(changed, headers.input, "{from}");
        read(&SignedHeaders { input: changed, ..headers.clone() }).map(|_| ())
    };
    let form = Err(Error::Form("Signature-Input"));
    for (from, to) in [
        ("oap=", "sig1="),
        ("\"@method\" ", ""),
        ("\"@method\"", "\"@path\""),
        ("(\"@method\" \"@request-target\"", "(\"@request-target\" \"@method\""),
        (";created=1", ";created=01"),
        (";created=1", ";created=-1"),
        (";created=", "; created="),
        (";expires=", ";alg=\"ed25519\";expires="),
        (nonce.as_str(), "short"),
        (nonce.as_str(), "a b c d e f g h i j k l m n"),
        ("keyid=\"did:", "keyid=\"dad:"),
        (";tag=\"test\"", ""),
        (";tag=\"test\"", ";tag=\"test\";more=1"),
    ] {
        let read = input(from, to);
        let is_tag = matches!(read, Err(Error::Tag(TAG)));
        assert!(read == form || is_tag, "{from} -> {to}: {read:?}");
    }
    assert_eq!(input("tag=\"test\"", "tag=\"tess\""), Err(Error::Tag(TAG)));
    let twice = [headers.input.as_str(), headers.input.as_str()];
    let (digest, signature) = ([headers.digest.as_str()], [headers.signature.as_str()]);
    let read = |input: &[&str]| {
        let headers = Headers { digest: &digest, input, signature: &signature };
        UnverifiedMessage::request(headers, TAG).map(|_| ())
    };
    assert_eq!(read(&twice), Err(Error::Header("Signature-Input")));
    assert_eq!(read(&[]), Err(Error::Header("Signature-Input")));
    let long = format!("{}{}", headers.input, " ".repeat(MAX_HEADER));
    assert_eq!(read(&[long.as_str()]), Err(Error::Header("Signature-Input")));
}

#[test]
fn other_digests_and_signatures_are_not_read() {
    let (headers, _) = signed();
    let upper = headers.digest.replace("sha-256", "sha-512");
    for digest in [upper.as_str(), "", "sha-256=::", "sha-256=:AAAA:"] {
        let read = read(&SignedHeaders { digest: digest.to_owned(), ..headers.clone() });
        assert_eq!(read.map(|_| ()), Err(Error::Form("Content-Digest")), "{digest}");
    }
    for signature in ["", "oap=::", "oap=:AAAA:", "oap=AAAA"] {
        let read = read(&SignedHeaders { signature: signature.to_owned(), ..headers.clone() });
        assert_eq!(read.map(|_| ()), Err(Error::Form("Signature")), "{signature}");
    }
}
