use super::*;
use oap_identity::VerificationKey;
use serde_json::json;
use std::time::Duration;

fn now() -> Timestamp {
    Timestamp::from_seconds(1_777_636_800)
}

fn signer(seed: u8) -> Signer {
    Signer::did_key(&[seed; 32]).unwrap()
}

fn document(of: &Signer) -> DidDocument {
    DidDocument::new(of.did().clone(), vec![VerificationKey::new(of.kid().clone(), *of.public())])
}

fn granter() -> Signer {
    signer(1)
}

fn grantee() -> Signer {
    signer(2)
}

/// A receipt of the granter's that names an agent.
fn receipt(number: u8, agent: &Signer) -> Receipt {
    let mut receipt: Receipt = serde_json::from_value(json!({
        "receipt_id": ReceiptId::from_bytes([number; 16]), "type": "invocation", "timestamp": now(),
        "principal_did": granter().did(), "agent_did": agent.did(), "action_id": "memory.query",
        "previous_receipt_hash": "genesis",
    }))
    .unwrap();
    receipt.sign(&granter()).unwrap();
    receipt
}

fn chain(receipt: &Receipt) -> Chain {
    let hash = receipt.hash().unwrap();
    Chain::new(receipt.receipt_id, hash, granter().did().clone(), grantee().did().clone())
}

/// Both sides of a conversation: what each keeps, so many links in.
fn conversation(links: usize) -> (Receipt, Chain, Chain) {
    let receipt = receipt(7, &grantee());
    let (mut theirs, mut mine) = (chain(&receipt), chain(&receipt));
    if links == 0 {
        return (receipt, theirs, mine);
    }
    let first = mine.countersign(&receipt, &grantee(), now()).unwrap();
    let first = first.verify(&receipt, &document(&grantee())).unwrap();
    assert_eq!(theirs.take(&first, now()), Taken::Next);
    for number in 2..=links {
        let (from, to, by) = if number % 2 == 0 {
            (&mut theirs, &mut mine, granter())
        } else {
            (&mut mine, &mut theirs, grantee())
        };
        let link = from.sign_next(&by, now()).unwrap().verify(&document(&by), now()).unwrap();
        assert_eq!((link.number(), to.take(&link, now())), (number, Taken::Next));
    }
    (receipt, theirs, mine)
}

/// Each signature that arrives is one order more, to whom it arrives; none is to whoever signed it.
#[test]
fn orders_of_mutual_knowledge() {
    let orders = |links: usize| {
        let (_, theirs, mine) = conversation(links);
        (theirs.order(granter().did()), mine.order(grantee().did()))
    };
    assert_eq!(
        [orders(0), orders(1), orders(2), orders(3), orders(4)],
        [(0, 1), (2, 1), (2, 3), (4, 3), (4, 5)]
    );
    let (_, theirs, mine) = conversation(MAX_LINKS);
    assert_eq!(theirs, mine);
    assert!(!theirs.is_turn_of(granter().did()) && !theirs.is_turn_of(grantee().did()));
    // However long it is, it has an end, and its order a number.
    assert_eq!(theirs.order(grantee().did()), MAX_LINKS + 1);
    assert_eq!(theirs.clone().sign_next(&grantee(), now()), Err(AckError::OtherKey));
}

/// The same again changes nothing; what does not follow is not taken.
#[test]
fn links_follow_each_other() {
    let (receipt, theirs, mine) = conversation(3);
    let read = |place: usize| Acknowledgement {
        acknowledgement: json::parse(mine.links()[place].document.as_bytes()).unwrap(),
    };
    let third = read(2).verify(&document(&grantee()), now()).unwrap();
    let mut again = theirs.clone();
    assert_eq!((again.take(&third, now()), &again), (Taken::Before, &theirs));
    // Replayed into a chain that is not so far.
    let (_, mut short, _) = conversation(1);
    assert_eq!(short.take(&third, now()), Taken::DoesNotFollow);
    // Of another receipt, out of turn, over another link.
    let mut other = chain(&self::receipt(8, &grantee()));
    assert_eq!(other.take(&third, now()), Taken::DoesNotFollow);
    let (_, mut mine_at_two, _) = conversation(2);
    assert_eq!(mine_at_two.clone().sign_next(&granter(), now()), Err(AckError::OtherKey));
    let later = now().plus(Duration::from_secs(1));
    let mut forked = conversation(1).1;
    let fork = forked.sign_next(&granter(), later).unwrap().verify(&document(&granter()), later).unwrap();
    assert_eq!(mine_at_two.take(&fork, later), Taken::DoesNotFollow);
    let over_fork = {
        let mut theirs = conversation(1).2;
        assert_eq!(theirs.take(&fork, later), Taken::Next);
        theirs.sign_next(&grantee(), later).unwrap().verify(&document(&grantee()), later).unwrap()
    };
    assert_eq!(mine_at_two.take(&over_fork, later), Taken::DoesNotFollow);
    // A countersignature where there is one already, by another key of the same number.
    let first = Countersignature::sign(&receipt, &grantee()).unwrap();
    let first = first.verify(&receipt, &document(&grantee())).unwrap();
    assert_eq!(again.take(&first, now()), Taken::Before);
}

/// What is countersigned is the receipt that names who countersigns, to the byte.
#[test]
fn what_a_countersignature_is_of() {
    let (mine, strange) = (receipt(7, &grantee()), receipt(7, &signer(3)));
    let signed = Countersignature::sign(&mine, &grantee()).unwrap();
    let verify =
        |signed: &Countersignature, receipt: &Receipt, by: &Signer| signed.verify(receipt, &document(by));
    assert!(verify(&signed, &mine, &grantee()).is_ok());
    assert_eq!(verify(&signed, &strange, &grantee()), Err(AckError::OtherReceipt));
    assert_eq!(verify(&signed, &receipt(8, &grantee()), &grantee()), Err(AckError::OtherReceipt));
    assert_eq!(verify(&signed, &mine, &signer(3)), Err(AckError::OtherReceipt));
    // Somebody else's signature under a receipt that names another.
    let theirs = Countersignature::sign(&mine, &signer(3)).unwrap();
    assert_eq!(verify(&theirs, &mine, &grantee()), Err(AckError::OtherKey));
    let borrowed = Countersignature {
        signature: ReceiptSignature { by: signed.signature.by.clone(), ..theirs.signature },
        ..signed.clone()
    };
    assert_eq!(verify(&borrowed, &mine, &grantee()), Err(AckError::Signature(SignedError::BadSignature)));
    let revoked = VerificationKey::new(grantee().kid().clone(), *grantee().public())
        .revoked(now().plus(Duration::from_secs(1)));
    let document = DidDocument::new(grantee().did().clone(), vec![revoked]);
    assert!(matches!(signed.verify(&mine, &document), Err(AckError::Signature(SignedError::Revoked(_)))));
    let mut chain = chain(&mine);
    assert_eq!(chain.countersign(&receipt(8, &grantee()), &grantee(), now()), Err(AckError::OtherReceipt));
    assert_eq!(chain.countersign(&mine, &granter(), now()), Err(AckError::OtherKey));
    assert!(chain.countersign(&mine, &grantee(), now()).is_ok());
    assert_eq!(chain.countersign(&mine, &grantee(), now()), Err(AckError::OtherKey));
}

#[test]
fn a_statement_that_was_changed_is_none() {
    let (_, mut theirs, _) = conversation(1);
    let good = theirs.sign_next(&granter(), now()).unwrap();
    let bent = |name: &str, value: Value| {
        let mut other = good.clone();
        other.acknowledgement[name] = value;
        (other.check(), other.verify(&document(&granter()), now()))
    };
    assert!(good.verify(&document(&granter()), now()).is_ok());
    for (name, value) in
        [("oap", json!("2.0")), ("type", json!("reply")), ("number", json!(1)), ("number", json!(17))]
    {
        assert_eq!(bent(name, value), (Err(AckError::Form), Err(AckError::Form)), "{name}");
    }
    for (name, value) in [
        ("number", json!(4)),
        ("of", json!(Hash::of(b"x"))),
        ("receipt_hash", json!(Hash::of(b"x"))),
        ("receipt", json!(ReceiptId::from_bytes([9; 16]))),
        ("at", json!(now().minus(Duration::from_secs(1)))),
    ] {
        let refused = (Ok(()), Err(AckError::Signature(SignedError::BadSignature)));
        assert_eq!(bent(name, value), refused, "{name}");
    }
    assert_eq!(bent("by", json!(grantee().did())).1, Err(AckError::OtherKey));
    assert!(matches!(bent("more", json!(1)).0, Err(AckError::Json(_))));
    assert!(matches!(bent("signature", json!("x")).0, Err(AckError::Json(_))));
    let early = good.verify(&document(&granter()), now().minus(Duration::from_secs(600)));
    assert_eq!(early, Err(AckError::Early));
    assert_eq!(good.verify(&document(&grantee()), now()), Err(AckError::OtherKey));
}
