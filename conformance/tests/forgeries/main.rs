//! Forgeries, each with who could make it and what the verifier says, and every single-byte change of every kind of
//! document.
//!
//! The forger holds no key, one of its own, or the owner's. With the owner's key nothing but the stated defect is wrong:
//! everything is signed anew. A verdict is the stable name of the check that refuses, or of what the verifier names as
//! standing outside the proof.

#[path = "../../../gateway/tests/common/mod.rs"]
mod common;

mod alone;
mod answers;
mod bundles;
mod documents;
mod entities;
mod fixture;
mod forge;
mod items;
#[allow(dead_code, reason = "the cases are run by grants/tests/portable")]
#[path = "../../../grants/tests/portable/judge.rs"]
mod judge;
mod mutations;
#[path = "../../../grants/tests/portable/patch.rs"]
mod patch;
mod portable;
mod receipts;
mod reseals;
mod table;

use fixture::Fixture;
use std::collections::BTreeSet;
use table::{By, Table};

#[tokio::test]
async fn every_forgery_gets_its_verdict() {
    let fixture = Fixture::new().await;
    let mut table = Table::new(&fixture);
    items::forge(&mut table);
    answers::forge(&mut table);
    bundles::forge(&mut table);
    receipts::forge(&mut table);
    documents::forge(&mut table);
    reseals::forge(&mut table);
    alone::forge(&mut table);
    let mut wrong = Vec::new();
    for base in table.bases() {
        if let Err(check) = base.judge(&fixture.reader) {
            wrong.push(format!("the base {} does not hold: {check}", base.name()));
        }
    }
    for forgery in table.forgeries() {
        let found = forgery.judge(&fixture.reader);
        if !forgery.verdict.fits(&found) {
            wrong
                .push(format!("{} ({:?}): {:?}, not {:?}", forgery.name, forgery.by, found, forgery.verdict));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), table.forgeries().len(), wrong.join("\n"));

    let names: BTreeSet<&str> = table.forgeries().iter().map(|forgery| forgery.name.as_str()).collect();
    assert_eq!(names.len(), table.forgeries().len(), "a name stands twice");
    let count = |by: By| table.forgeries().iter().filter(|forgery| forgery.by == by).count();
    println!(
        "{} forgeries: {} without a key, {} with one of the forger's own, {} with the owner's",
        names.len(),
        count(By::Nobody),
        count(By::Mallory),
        count(By::Owner)
    );
    assert!(names.len() >= 230, "{}", names.len());
    assert!([By::Nobody, By::Mallory, By::Owner].into_iter().all(|by| count(by) >= 10));
}
