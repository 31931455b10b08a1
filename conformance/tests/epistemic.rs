//! The theorems of RFC 0010 appendix A, on random finite models.

use oap_conformance::epistemic::update::{acknowledge, grant, joint_receipt};
use oap_conformance::epistemic::{Formula, Model, Partition};
use oap_federation::ack::{Chain, Taken};
use oap_identity::{DidDocument, ReceiptId, Signer, Timestamp, VerificationKey};
use oap_memory::receipt::Receipt;
use proptest::prelude::*;
use serde_json::json;

const A: &str = "did:web:granter.example";
const B: &str = "did:web:grantee.example";
const C: &str = "did:web:other.example";
const PAIR: [&str; 2] = [A, B];

/// Two to seven worlds, three agents, three propositions.
fn model() -> impl Strategy<Value = Model> {
    (2..8usize).prop_flat_map(|worlds| {
        let partition = || prop::collection::vec(0..3usize, worlds);
        let holds = || prop::collection::vec(any::<bool>(), worlds);
        (partition(), partition(), partition(), holds(), holds(), holds()).prop_map(
            move |(a, b, c, p, q, r)| {
                Model::new(worlds)
                    .agent(A, Partition::new(a))
                    .agent(B, Partition::new(b))
                    .agent(C, Partition::new(c))
                    .proposition("p", p)
                    .proposition("q", q)
                    .proposition("r", r)
            },
        )
    })
}

/// Every combination of so many independent propositions, and a granter who sees it all.
fn product(names: &[&str]) -> Model {
    let worlds = 1 << names.len();
    let model = Model::new(worlds)
        .agent(A, Partition::seeing(worlds))
        .agent(B, Partition::blind(worlds))
        .agent(C, Partition::blind(worlds));
    names.iter().enumerate().fold(model, |model, (bit, name)| {
        model.proposition(name, (0..worlds).map(|w| w >> bit & 1 == 1).collect())
    })
}

fn p() -> Formula {
    Formula::holds("p")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// S5: what is known is true, is known to be known, and what is not known is known not to be. KD45 for belief.
    #[test]
    fn the_modalities_are_what_they_say(model in model(), confidence in 0..=100u32) {
        let model = model.deliver(B, "q", f64::from(confidence) / 100.0);
        for formula in [p(), p().negated(), Formula::holds("q").known_by(A)] {
            let known = formula.clone().known_by(B);
            for w in 0..model.worlds() {
                prop_assert!(!model.is_true(&known, w) || model.is_true(&formula, w));
                prop_assert_eq!(model.is_true(&known, w), model.is_true(&known.clone().known_by(B), w));
                prop_assert_eq!(model.is_true(&known.clone().negated(), w), model.is_true(&known.clone().negated().known_by(B), w));
                let believed = formula.clone().believed_by(B);
                let both = Formula::And(Box::new(believed.clone()), Box::new(formula.clone().negated().believed_by(B)));
                prop_assert!(!model.is_true(&both, w), "nobody believes a thing and its contrary");
                prop_assert!(!model.is_true(&believed, w) || model.is_true(&believed.clone().believed_by(B), w));
            }
        }
    }

    /// Theorem 1: what the granter knew and the grant disclosed, the grantee knows.
    #[test]
    fn soundness_of_exchange(model in model()) {
        let after = model.clone().deliver(B, "p", 1.0);
        let (delivered, actual) = model.after(&grant(B, &["p"], "got"));
        for (w, now) in actual.iter().enumerate() {
            if model.is_true(&p().known_by(A), w) {
                prop_assert!(after.is_true(&p().known_by(B), w));
                prop_assert!(delivered.is_true(&p().known_by(B), now.unwrap()));
            }
        }
        // Nobody else learns anything, and nobody unlearns.
        prop_assert_eq!(after.relation(C), model.relation(C));
        prop_assert!(after.relation(B).refines(&model.relation(B)));
    }

    /// Corollary A.6.1: what the grant left out is known as before, where it is independent of what it disclosed.
    #[test]
    fn no_spurious_knowledge(disclosed in prop::sample::subsequence(vec!["q", "r", "s"], 0..=3)) {
        let model = product(&["p", "q", "r", "s"]);
        let names: Vec<&str> = disclosed.clone();
        let after = model.clone().discriminate(B, &names);
        for formula in [p(), p().negated()] {
            prop_assert_eq!(after.truth(&formula.clone().known_by(B)), model.truth(&formula.known_by(B)));
        }
    }

    /// Corollary A.6.2: belief is passed on as belief, and never becomes knowledge; below the threshold it is possession.
    #[test]
    fn no_knowledge_from_belief(model in model(), hundredths in 0..100u32) {
        let confidence = f64::from(hundredths) / 100.0;
        let after = model.clone().deliver(B, "p", confidence);
        prop_assert_eq!(after.truth(&p().known_by(B)), model.truth(&p().known_by(B)));
        prop_assert!(after.possesses(B, "p") && !after.possesses(C, "p"));
        for w in 0..model.worlds() {
            let open = !model.is_true(&p().known_by(B), w) && !model.is_true(&p().negated().known_by(B), w);
            if open {
                let believes = after.is_true(&p().believed_by(B), w);
                prop_assert_eq!(believes, confidence > 0.5, "at {}", confidence);
            }
        }
    }

    /// Theorem 2: everyone knows, and it is not common knowledge, for the granter cannot tell that it arrived.
    #[test]
    fn no_common_knowledge_from_a_single_grant(model in model()) {
        let (after, actual) = model.after(&grant(B, &["p"], "got"));
        for (w, now) in actual.iter().enumerate() {
            let now = now.unwrap();
            // Where it was open to the grantee before.
            if model.is_true(&p().known_by(A), w) && !model.is_true(&p().known_by(B), w) {
                prop_assert!(after.is_true(&p().known_by_all(&PAIR, 1), now));
                prop_assert!(!after.is_true(&p().known_by(B).known_by(A), now));
                prop_assert!(!after.is_true(&p().common_to(&PAIR), now));
            }
        }
    }

    /// A.8: acknowledgements raise the order of mutual knowledge, one by one, and never reach common knowledge.
    #[test]
    fn acknowledgements_never_suffice(count in 1..4usize) {
        let mut model = product(&["p"]);
        let mut world = 1;
        let (after, actual) = model.after(&grant(B, &["p"], "got 0"));
        (model, world) = (after, actual[world].unwrap());
        for number in 0..count {
            let receiver = if number % 2 == 0 { A } else { B };
            let event = acknowledge(receiver, &format!("got {number}"), &format!("got {}", number + 1));
            let (after, actual) = model.after(&event);
            (model, world) = (after, actual[world].unwrap());
        }
        prop_assert!(model.is_true(&p().known_by_all(&PAIR, count + 1), world));
        prop_assert!(!model.is_true(&p().common_to(&PAIR), world));
        prop_assert!(!model.is_true(&p().known_by_all(&PAIR, count + 3), world));
    }

    /// Corollary A.7.1: a joint receipt makes it common knowledge, at once and at every order.
    #[test]
    fn a_joint_receipt_is_common_knowledge(model in model(), order in 1..6usize) {
        let (after, actual) = model.after(&joint_receipt(&PAIR, &["p"]));
        for (w, now) in actual.iter().enumerate() {
            if model.holds("p", w) {
                prop_assert!(after.is_true(&p().common_to(&PAIR), now.unwrap()));
                prop_assert!(after.is_true(&p().known_by_all(&PAIR, order), now.unwrap()));
            }
        }
    }

    /// Common knowledge is what is known at every order.
    #[test]
    fn common_knowledge_is_the_limit(model in model()) {
        let common = model.truth(&p().common_to(&PAIR));
        let limit = model.truth(&p().known_by_all(&PAIR, model.worlds() + 1));
        prop_assert_eq!(common, limit);
    }
}

/// What a gateway's audit says of a chain of acknowledgements is known to its owner, in the model: of each of the two, the order that is proved, and
/// not one more. Nothing of it is common knowledge.
#[test]
fn the_order_that_the_audit_shows_is_known_and_no_more() {
    let signer = |did: &str| Signer::from_seed(format!("{did}#key-1").parse().unwrap(), &[7; 32]).unwrap();
    let document = |did: &str| {
        let key = VerificationKey::new(signer(did).kid().clone(), *signer(did).public());
        DidDocument::new(did.parse().unwrap(), vec![key])
    };
    let now = Timestamp::from_seconds(1_777_636_800);
    let mut receipt: Receipt = serde_json::from_value(json!({
        "receipt_id": ReceiptId::from_bytes([7; 16]), "type": "invocation", "timestamp": now, "principal_did": A, "agent_did": B,
        "action_id": "memory.query", "previous_receipt_hash": "genesis",
    }))
    .unwrap();
    let hash = receipt.sign(&signer(A)).unwrap();
    let new = || Chain::new(receipt.receipt_id, hash, A.parse().unwrap(), B.parse().unwrap());
    let (mut granters, mut grantees) = (new(), new());

    let (mut model, actual) = product(&["p"]).after(&grant(B, &["p"], "got 0"));
    let mut world = actual[1].unwrap();
    for count in 0..4 {
        for (did, chain) in [(A, &granters), (B, &grantees)] {
            let order = chain.order(&did.parse().unwrap());
            assert_eq!(
                order,
                if (count % 2 == 1) == (did == A) { count + 1 } else { count },
                "{did}: {count}"
            );
            let known = |order: usize| {
                let claimed = if order == 0 { p() } else { p().known_by_all(&PAIR, order) };
                model.is_true(&claimed.known_by(did), world)
            };
            assert!(known(order) && !known(order + 1), "{did}: {count} acknowledgements, order {order}");
        }
        assert!(!model.is_true(&p().common_to(&PAIR), world));
        // One more that arrives: of the grantee, then of the granter, in turn.
        let (from, to, by) = if count % 2 == 0 {
            (&mut grantees, &mut granters, B)
        } else {
            (&mut granters, &mut grantees, A)
        };
        let link = if count == 0 {
            from.countersign(&receipt, &signer(by), now).unwrap().verify(&receipt, &document(by)).unwrap()
        } else {
            from.sign_next(&signer(by), now).unwrap().verify(&document(by), now).unwrap()
        };
        assert_eq!(to.take(&link, now), Taken::Next);
        let receiver = if by == B { A } else { B };
        let event = acknowledge(receiver, &format!("got {count}"), &format!("got {}", count + 1));
        let (after, actual) = model.after(&event);
        (model, world) = (after, actual[world].unwrap());
    }
}

/// A.6.1 needs its condition: where the grantee knows that `q` implies `p`, disclosing `q` discloses `p`.
#[test]
fn what_is_entailed_is_disclosed_too() {
    let model = Model::new(3)
        .agent(A, Partition::seeing(3))
        .agent(B, Partition::blind(3))
        .proposition("q", vec![true, false, false])
        .proposition("p", vec![true, true, false]);
    assert!(!model.is_true(&p().known_by(B), 0));
    assert!(model.discriminate(B, &["q"]).is_true(&p().known_by(B), 0), "the filter left p out");
}

/// Theorem 2 needs its condition: in the update as A.5 writes it down everybody knows that the grant arrived, and then
/// a single one makes common knowledge.
#[test]
fn a_grant_that_surely_arrives_is_a_joint_receipt() {
    let model = product(&["p"]).discriminate(B, &["p"]);
    assert!(model.is_true(&p().common_to(&PAIR), 1));
}
