//! The portable cases of proofs (`conformance/cases/proof-*.json`): our verifiers run the files that other
//! implementations run. `conformance/tests/forgeries/portable.rs` writes them; `conformance/rogues/checks.py` removes our
//! checks one by one and runs this against each.

mod judge;
mod patch;

use std::collections::BTreeSet;

/// Checks that no case reaches, because another stands before them or because the input cannot be written as JSON.
const UNREACHED: &[&str] = &[];

#[test]
fn every_case_is_judged_as_its_file_says() {
    let outcome = judge::run();
    let (verdicts, reasons) = (&outcome.verdicts, &outcome.reasons);
    println!("disagree: {} verdicts, {} reasons", verdicts.len(), reasons.len());
    assert!(verdicts.is_empty() && reasons.is_empty(), "{}\n{}", verdicts.join("\n"), reasons.join("\n"));
    assert!(outcome.count >= 500 && outcome.valid >= 40, "{} cases, {} valid", outcome.count, outcome.valid);
    let all: BTreeSet<&str> = oap_memory::evidence::checks().chain(oap_grants::evidence::checks()).collect();
    let missing: Vec<_> =
        all.difference(&outcome.refusing).filter(|check| !UNREACHED.contains(check)).collect();
    println!(
        "{} cases, {} valid; refused by {} of {} checks; by none: {missing:?}",
        outcome.count,
        outcome.valid,
        outcome.refusing.len(),
        all.len()
    );
}
