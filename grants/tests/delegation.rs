//! Delegation: the refusals of the UCAN 1.0 invocation fixtures (`tests/vectors/ucan.json`, by name), ported to
//! grants, and the property *attenuation*.

#[path = "../../crates/identity/tests/support/beside.rs"]
mod beside;
mod support;

use oap_grants::attenuate::{self, Wider};
use oap_grants::grant::{Delegable, UnverifiedGrant};
use oap_grants::limits::{LimitError, MAX_DEPTH};
use oap_grants::verify::{DelegationError, Refused, delegate, live};
use oap_grants::{Grant, GrantBook, GrantRecord, GrantState, Limits, SignedGrant};
use oap_identity::time::MAX_SKEW;
use oap_identity::{DidDocument, GrantId, Hash, ScopeId, Signer, Timestamp};
use oap_memory::item::{Confidence, Sensitivity};
use oap_memory::record::{Few, Head, Meta, Status};
use oap_memory::{Filter, Kind, Profile};
use proptest::prelude::*;
use std::sync::Arc;
use support::*;

const LIMITS: Limits = Limits { max_items: 10_000, max_duration_days: 180 };

fn parent() -> SignedGrant {
    SignedGrant::sign(delegable(agent(2).did(), 3), &owner()).unwrap()
}

fn child_of(parent: &SignedGrant, grantee: &Signer) -> Grant {
    Grant {
        grant_id: GrantId::new(now(), &oap_identity::random::Seeded::new(7)),
        grantee: grantee.did().clone(),
        parent: Some(parent.hash()),
        delegable: None,
        ..parent.grant().clone()
    }
}

fn accept(
    parent: &SignedGrant,
    child: Grant,
    by: &Signer,
    at: Timestamp,
) -> Result<SignedGrant, DelegationError> {
    let signed = SignedGrant::sign(child, by).unwrap();
    let unverified = UnverifiedGrant::parse(signed.document().clone()).unwrap();
    delegate(parent, unverified, &document(by), &LIMITS, at)
}

/// A member and a change that widens it.
type Change<'a> = (&'a str, &'a dyn Fn(&mut Grant));

fn live_hashes(
    record: &GrantRecord,
    book: &dyn GrantBook,
    own: &DidDocument,
    now: Timestamp,
) -> Result<Vec<Hash>, Refused> {
    Ok(live(record, book, own, now)?.iter().map(|grant| grant.hash()).collect())
}

/// The refusals of the fixtures, each with the test here that ports it.
fn ported() -> Vec<(String, String)> {
    let vectors: Vec<serde_json::Value> =
        serde_json::from_slice(&std::fs::read(beside::own("ucan.json")).unwrap()).unwrap();
    let text = |vector: &serde_json::Value, member: &str| vector[member].as_str().unwrap().to_owned();
    vectors.iter().map(|vector| (text(vector, "refusal"), text(vector, "test"))).collect()
}

#[test]
fn every_ucan_refusal_is_ported() {
    let source = include_str!("delegation.rs");
    let ported = ported();
    for (refusal, test) in &ported {
        assert!(source.contains(&format!("#[test]\nfn {test}()")), "{refusal}: there is no test {test}");
    }
    assert_eq!(ported.len(), 13);
}

#[test]
#[ignore = "needs the public vectors (OAP_SHARED or ../shared): vectors/ucan"]
fn the_refusals_are_those_of_the_fixtures() {
    let file = beside::json("vectors/ucan/invocation.json");
    let names: Vec<&str> =
        file["invalid"].as_array().unwrap().iter().map(|case| case["name"].as_str().unwrap()).collect();
    assert_eq!(names, ported().iter().map(|(refusal, _)| refusal.as_str()).collect::<Vec<_>>());
}

#[test]
fn a_narrower_child_is_accepted() {
    let parent = parent();
    let child = accept(&parent, child_of(&parent, &agent(3)), &agent(2), now()).unwrap();
    let book = Book::with([parent.clone(), child.clone()]);
    let record = book.0[&child.grant().grant_id].clone();
    assert_eq!(live_hashes(&record, &book, &document(&owner()), now()), Ok(vec![parent.hash()]));
}

#[test]
fn no_proof_and_missing_proof() {
    let parent = parent();
    let orphan = Grant { parent: None, ..child_of(&parent, &agent(3)) };
    assert_eq!(accept(&parent, orphan, &agent(2), now()).unwrap_err(), DelegationError::Broken);
    let child = accept(&parent, child_of(&parent, &agent(3)), &agent(2), now()).unwrap();
    let book = Book::with([child.clone()]);
    let record = book.0[&child.grant().grant_id].clone();
    assert_eq!(live_hashes(&record, &book, &document(&owner()), now()), Err(Refused::UnknownGrant));
}

#[test]
fn expired_and_inactive_proof() {
    let ends = Grant { expires_at: later(100), ..delegable(agent(2).did(), 1) };
    let parent = SignedGrant::sign(ends, &owner()).unwrap();
    let child = accept(&parent, child_of(&parent, &agent(3)), &agent(2), now()).unwrap();
    let book = Book::with([parent.clone(), child.clone()]);
    let record = book.0[&child.grant().grant_id].clone();
    let own = document(&owner());
    assert!(live(&record, &book, &own, later(99)).is_ok());
    assert_eq!(live_hashes(&record, &book, &own, later(100)), Err(Refused::Inactive(GrantState::Expired)));

    let begins = Grant { not_before: Some(later(100)), ..delegable(agent(2).did(), 1) };
    let parent = SignedGrant::sign(begins, &owner()).unwrap();
    let early = Grant { not_before: None, ..child_of(&parent, &agent(3)) };
    assert_eq!(
        accept(&parent, early, &agent(2), now()).unwrap_err(),
        DelegationError::Wider(Wider("not_before"))
    );
}

#[test]
fn principals_must_align() {
    let parent = parent();
    // Signed by somebody who is not the parent's grantee.
    let error = accept(&parent, child_of(&parent, &agent(3)), &agent(4), now()).unwrap_err();
    assert!(matches!(error, DelegationError::Grant(_)), "{error}");
    // Signed by the granter in the grantee's stead.
    assert!(accept(&parent, child_of(&parent, &agent(3)), &owner(), now()).is_err());
}

#[test]
fn subjects_must_align() {
    let parent = parent();
    for granter in ["did:web:other.example#personal", "did:web:user.example#work"] {
        let other = Grant { granter: granter.parse().unwrap(), ..child_of(&parent, &agent(3)) };
        let error = accept(&parent, other, &agent(2), now()).unwrap_err();
        assert_eq!(error, DelegationError::Wider(Wider("granter")), "{granter}");
    }
}

#[test]
fn expired_invocation() {
    let parent = parent();
    let child = Grant { expires_at: later(10), ..child_of(&parent, &agent(3)) };
    assert!(accept(&parent, child.clone(), &agent(2), later(9)).is_ok());
    assert!(matches!(accept(&parent, child, &agent(2), later(10)), Err(DelegationError::Limit(_))));
}

#[test]
fn signatures_must_verify() {
    let parent = parent();
    let signed = SignedGrant::sign(child_of(&parent, &agent(3)), &agent(2)).unwrap();
    let mut changed = signed.document().clone();
    changed["max_items"] = serde_json::json!(1);
    let unverified = UnverifiedGrant::parse(changed).unwrap();
    let error = delegate(&parent, unverified, &document(&agent(2)), &LIMITS, now()).unwrap_err();
    assert!(matches!(error, DelegationError::Grant(_)), "{error}");

    let mut unsigned = signed.document().clone();
    unsigned.as_object_mut().unwrap().remove("signature");
    let unverified = UnverifiedGrant::parse(unsigned).unwrap();
    assert!(delegate(&parent, unverified, &document(&agent(2)), &LIMITS, now()).is_err());
}

/// There is no grant without a granter: a "powerline" has no form here.
#[test]
fn invalid_powerline() {
    let mut document = parent().document().clone();
    for granter in
        [serde_json::Value::Null, serde_json::json!("did:web:user.example"), serde_json::json!("*")]
    {
        document["granter"] = granter;
        assert!(UnverifiedGrant::parse(document.clone()).is_err());
    }
}

#[test]
fn policy_violation_in_each_member() {
    let parent = SignedGrant::sign(
        Grant {
            purpose_codes: vec!["briefing".into()],
            budget: Some(oap_grants::grant::Budget { queries: Some(10), epsilon: Some(1.0) }),
            filter: Filter {
                kinds: Some(vec![Kind::Fact]),
                subject_entity_ids: Some(vec!["a".into()]),
                labels_any: Some(vec!["x".into(), "y".into()]),
                labels_all: Some(vec!["z".into()]),
                exclude_labels: Some(vec!["private".into()]),
                captured_after: Some(now()),
                captured_before: Some(later(100)),
                min_confidence: Some(0.5.try_into().unwrap()),
                scopes: None,
                sensitivities: None,
            },
            ..delegable(agent(2).did(), 2)
        },
        &owner(),
    )
    .unwrap();
    let check = |change: &dyn Fn(&mut Grant)| {
        let mut child = child_of(&parent, &agent(3));
        change(&mut child);
        attenuate::check(parent.grant(), &child).map_err(|Wider(member)| member)
    };
    assert_eq!(check(&|_| {}), Ok(()));
    let scope: ScopeId = "work".parse().unwrap();
    let wider: &[Change] = &[
        ("max_items", &|g| g.max_items += 1),
        ("expires_at", &|g| g.expires_at = later(86_401)),
        ("trust_level", &|g| g.trust_level = 3.try_into().unwrap()),
        ("redaction_profile", &|g| g.redaction_profile = "oap.profile.projection.full.v1".into()),
        ("lawful_basis", &|g| g.lawful_basis = oap_grants::LawfulBasis::Contract),
        ("operations", &|g| g.operations = [oap_grants::Operation::Export].into()),
        ("embedding_access", &|g| g.embedding_access = true),
        ("bearer", &|g| g.bearer = true),
        ("delegable", &|g| g.delegable = Some(Delegable { max_depth: 2 })),
        ("purpose_codes", &|g| g.purpose_codes = vec!["marketing".into()]),
        ("purpose_codes", &|g| g.purpose_codes.clear()),
        ("budget", &|g| g.budget = None),
        ("budget", &|g| g.budget.as_mut().unwrap().queries = Some(11)),
        ("budget", &|g| g.budget.as_mut().unwrap().epsilon = None),
        ("filter.scopes", &|g| g.filter.scopes = Some(vec![scope.clone()])),
        ("filter.kinds", &|g| g.filter.kinds = None),
        ("filter.kinds", &|g| g.filter.kinds = Some(vec![Kind::Summary])),
        ("filter.subject_entity_ids", &|g| g.filter.subject_entity_ids = None),
        ("filter.labels_any", &|g| g.filter.labels_any = Some(vec!["w".into()])),
        ("filter.labels_all", &|g| g.filter.labels_all = None),
        ("filter.labels_all", &|g| g.filter.labels_all = Some(vec!["x".into()])),
        ("filter.exclude_labels", &|g| g.filter.exclude_labels = None),
        ("filter.captured_after", &|g| g.filter.captured_after = None),
        ("filter.captured_before", &|g| g.filter.captured_before = Some(later(101))),
        ("filter.min_confidence", &|g| g.filter.min_confidence = Some(0.4.try_into().unwrap())),
        ("filter.sensitivities", &|g| g.filter.sensitivities = Some(vec![Sensitivity::Restricted])),
    ];
    for (member, change) in wider {
        assert_eq!(check(change), Err(*member));
    }
    // What admits nothing has nothing within it but itself.
    let mut nothing = parent.grant().clone();
    nothing.filter.labels_all = Some(Vec::new());
    let nothing = SignedGrant::sign(nothing, &owner()).unwrap();
    let mut child = child_of(&nothing, &agent(3));
    assert_eq!(attenuate::check(nothing.grant(), &child), Ok(()));
    child.filter.labels_all = Some(vec!["z".into()]);
    assert_eq!(attenuate::check(nothing.grant(), &child), Err(Wider("filter.labels_all")));
    let sealed = SignedGrant::sign(grant_to(agent(2).did()), &owner()).unwrap();
    let child = child_of(&sealed, &agent(3));
    assert_eq!(attenuate::check(sealed.grant(), &child), Err(Wider("parent")));
}

#[test]
fn five_steps_and_no_sixth() {
    let mut above = SignedGrant::sign(delegable(agent(2).did(), 5), &owner()).unwrap();
    let mut book = Book::with([above.clone()]);
    for step in 0..5u8 {
        let mut child = child_of(&above, &agent(step + 3));
        child.grant_id = GrantId::new(now(), &oap_identity::random::Seeded::new(100 + u64::from(step)));
        child.delegable = (step < 4).then_some(Delegable { max_depth: 4 - step });
        above = accept(&above, child, &agent(step + 2), now()).unwrap();
        book = Book::with(book.0.values().map(|r| (*r.grant).clone()).chain([above.clone()]));
    }
    let record = book.0[&above.grant().grant_id].clone();
    assert_eq!(live_hashes(&record, &book, &document(&owner()), now()).unwrap().len(), 5);
    let sixth = child_of(&above, &agent(20));
    assert!(accept(&above, sixth, &agent(7), now()).is_err());
}

#[test]
fn revoking_a_parent_revokes_what_hangs_below() {
    let parent = parent();
    let child = accept(&parent, child_of(&parent, &agent(3)), &agent(2), now()).unwrap();
    let mut book = Book::with([parent.clone(), child.clone()]);
    book.revoke(parent.grant().grant_id);
    let record = book.0[&child.grant().grant_id].clone();
    let error = live_hashes(&record, &book, &document(&owner()), now()).unwrap_err();
    assert_eq!(error, Refused::Ancestor(GrantState::Revoked));
}

// --- the property ---

fn list<T: std::fmt::Debug + Clone + 'static>(values: Vec<T>) -> impl Strategy<Value = Option<Vec<T>>> {
    prop::option::of(prop::sample::subsequence(values.clone(), 0..=values.len()))
}

fn filters() -> impl Strategy<Value = Filter> {
    let words = || vec!["a".to_owned(), "b".to_owned(), "c".to_owned()];
    let scopes: Vec<ScopeId> = vec!["personal".parse().unwrap(), "work".parse().unwrap()];
    (
        (list(scopes), list(words()), list(Kind::ALL.to_vec()), list(Sensitivity::ALL.to_vec())),
        (list(words()), list(words()), list(words())),
        (prop::option::of(0..4u64), prop::option::of(0..4u64), prop::option::of(0..=4u8)),
    )
        .prop_map(
            |((scopes, subjects, kinds, sensitivities), (any, all, out), (after, before, sure))| Filter {
                scopes,
                subject_entity_ids: subjects,
                kinds,
                labels_any: any,
                labels_all: all,
                exclude_labels: out,
                captured_after: after.map(later),
                captured_before: before.map(later),
                min_confidence: sure.map(|n| (f64::from(n) / 4.0).try_into().unwrap()),
                sensitivities,
            },
        )
}

fn heads() -> impl Strategy<Value = Head> {
    let words = vec!["a".to_owned(), "b".to_owned(), "c".to_owned()];
    (
        (any::<bool>(), prop::sample::select(Kind::ALL), prop::sample::select(Sensitivity::ALL)),
        (prop::option::of(prop::sample::select(words.clone())), prop::sample::subsequence(words, 0..=3)),
        (0..4u64, 0..=4u8),
    )
        .prop_map(|((work, kind, sensitivity), (subject, labels), (at, sure))| Head {
            item_id: oap_identity::ItemId::new(now(), &random()),
            seq: 0,
            version_seq: 0,
            status: Status::Current,
            scope_id: Arc::new(if work { "work" } else { "personal" }.parse().unwrap()),
            kind,
            subject_entity_id: subject.map(Arc::new),
            labels: Arc::new(labels),
            captured_at: later(at),
            confidence: Confidence::try_from(f64::from(sure) / 4.0).unwrap(),
            end_of_life: None,
            exportable: true,
            sensitivity,
            meta: Meta::owner(owner().did().clone(), false),
            ended_at: None,
            replaced: [].into(),
            few: Few::default(),
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// Whatever passes for narrower admits no item that the parent does not admit.
    #[test]
    fn attenuation(parent in filters(), child in filters(), heads in prop::collection::vec(heads(), 1..12)) {
        let grant = |filter: &Filter| Grant { filter: filter.clone(), ..delegable(agent(2).did(), 1) };
        let child_grant = Grant { delegable: None, ..grant(&child) };
        if attenuate::check(&grant(&parent), &child_grant).is_ok() {
            let scope: ScopeId = "personal".parse().unwrap();
            for head in &heads {
                if child.admits(head, &scope, false, now()) {
                    prop_assert!(parent.admits(head, &scope, false, now()), "{head:?}");
                }
            }
        }
    }

    /// A filter is within itself, and anything else that is accepted both ways admits the same.
    #[test]
    fn narrowing_is_an_order(a in filters(), b in filters(), head in heads()) {
        let grant = |filter: &Filter, delegable| Grant { filter: filter.clone(), delegable, ..grant_to(agent(2).did()) };
        let above = Some(Delegable { max_depth: 1 });
        prop_assert!(attenuate::check(&grant(&a, above), &grant(&a, None)).is_ok());
        let both = attenuate::check(&grant(&a, above), &grant(&b, None)).is_ok()
            && attenuate::check(&grant(&b, above), &grant(&a, None)).is_ok();
        if both {
            let scope: ScopeId = "personal".parse().unwrap();
            prop_assert_eq!(a.admits(&head, &scope, false, now()), b.admits(&head, &scope, false, now()));
        }
    }
}

/// Naive reading of protocol section 5, against which the filter is compared.
fn oracle(filter: &Filter, head: &Head) -> bool {
    let mut ok = true;
    let scopes = filter.scopes.clone().unwrap_or(vec!["personal".parse().unwrap()]);
    ok &= scopes.contains(&head.scope_id);
    if let Some(kinds) = &filter.kinds {
        ok &= kinds.contains(&head.kind);
    }
    if let Some(subjects) = &filter.subject_entity_ids {
        ok &= subjects.iter().any(|s| Some(s) == head.subject_entity_id.as_deref());
    }
    if let Some(any) = &filter.labels_any {
        ok &= any.iter().filter(|l| head.labels.contains(l)).count() > 0;
    }
    if let Some(all) = &filter.labels_all {
        ok &= !all.is_empty() && all.iter().filter(|l| head.labels.contains(l)).count() == all.len();
    }
    if let Some(out) = &filter.exclude_labels {
        ok &= out.iter().filter(|l| head.labels.contains(l)).count() == 0;
    }
    if let Some(after) = filter.captured_after {
        ok &= head.captured_at.millis() >= after.millis();
    }
    if let Some(before) = filter.captured_before {
        ok &= head.captured_at.millis() < before.millis();
    }
    if let Some(least) = filter.min_confidence {
        ok &= head.confidence.get() >= least.get();
    }
    ok & match &filter.sensitivities {
        Some(named) => named.contains(&head.sensitivity),
        None => head.sensitivity != Sensitivity::Restricted,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn filter_soundness(filter in filters(), head in heads()) {
        let scope: ScopeId = "personal".parse().unwrap();
        prop_assert_eq!(filter.admits(&head, &scope, false, now()), oracle(&filter, &head));
    }
}

#[test]
fn hash_names_the_signed_document() {
    let grant = parent();
    assert_eq!(Hash::of_canonical(grant.document()).unwrap(), grant.hash());
}

/// A delegator's clock may be ahead as far as clocks may be apart; the owner's own is the gateway's.
#[test]
fn a_grant_is_not_issued_later_than_now() {
    let issued = |ahead: u64| {
        let at = Timestamp::from_millis(now().millis() + i64::try_from(ahead).unwrap());
        Grant { issued_at: at, ..grant_to(agent(2).did()) }
    };
    let skew = u64::try_from(MAX_SKEW.as_millis()).unwrap();
    assert_eq!(LIMITS.check_delegated(&issued(skew), now()), Ok(()));
    assert_eq!(LIMITS.check_delegated(&issued(skew + 1), now()), Err(LimitError::IssuedLater));
    let memory = &Profile::built_in()[0];
    let check = |grant: &Grant| LIMITS.check(grant, owner().did(), Some(memory), now());
    assert_eq!(check(&issued(0)), Ok(()));
    assert_eq!(check(&issued(1)), Err(LimitError::IssuedLater));
    let ended = |expires_at: Timestamp| Grant { expires_at, ..issued(0) };
    assert_eq!(check(&ended(Timestamp::from_millis(now().millis() + 1))), Ok(()));
    assert_eq!(check(&ended(now())), Err(LimitError::Ended));
    // What is made from a grant is its grantee's to make.
    assert_eq!(check(&child_of(&parent(), &agent(3))), Err(LimitError::Parent));
}

/// A refusal names the member, and the fix.
#[test]
fn a_wider_grant_is_refused_with_the_fix() {
    for (member, fix) in [
        ("parent", "the grant may not be passed on, or no further"),
        ("max_items", "a delegated grant must be within the one that it was made from"),
        ("filter.labels_any", "what more an item must have is labels_all"),
    ] {
        let text = Wider(member).to_string();
        assert!(text.starts_with(&format!("{member}: ")) && text.ends_with(fix), "{text}");
    }
}

/// A chain is as long as the protocol allows, and no longer, whoever recorded it.
#[test]
fn a_chain_of_grants_has_an_end() {
    let chain = |below: u8| {
        let mut grants = vec![parent()];
        for number in 0..below {
            let above = grants.last().unwrap();
            let grant_id = GrantId::new(now(), &oap_identity::random::Seeded::new(u64::from(number)));
            let child = Grant { grant_id, ..child_of(above, &agent(3)) };
            grants.push(SignedGrant::sign(child, &owner()).unwrap());
        }
        let last = GrantRecord { grant: Arc::new(grants.last().unwrap().clone()), revoked_at: None };
        live_hashes(&last, &Book::with(grants), &document(&owner()), now()).map(|above| above.len())
    };
    assert_eq!(chain(0), Ok(0));
    assert_eq!(chain(MAX_DEPTH), Ok(usize::from(MAX_DEPTH)));
    assert_eq!(chain(MAX_DEPTH + 1), Err(Refused::UnknownGrant));
}
