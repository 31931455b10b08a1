//! Judges a portable case: JSON in, what is named as not covered or the check that refuses out.

use crate::patch;
use oap_grants::bundle::UnverifiedBundle;
use oap_grants::{evidence as terms, status};
use oap_identity::{Did, DidDocument, Timestamp, json as strict};
use oap_memory::evidence::{self, VerifiedAnswer, VerifiedItem};
use oap_memory::unchecked::Unchecked;
use oap_memory::{deletion, receipt};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

/// The kinds of documents, each with the question that its file answers.
pub const KINDS: [(&str, &str); 10] = [
    ("items", "Is this item what its owner captured, and in force? Nobody says where its chain ends."),
    ("answers", "Was this answer given by who signs it, of items of theirs?"),
    ("answers-under-grants", "Was the answer given under the grant?"),
    ("bundles", "Does every line of the bundle hold, and is it whole?"),
    ("grants", "Is this a grant that its granter signed, and that can be one?"),
    ("delegations", "Is the grant within those that it was made from, the first one first?"),
    ("receipts", "Is this a receipt that its principal signed?"),
    ("receipt-chains", "Is this a chain of receipts, from genesis to a head?"),
    ("deletion-receipts", "Is this a Deletion Receipt of the principal's?"),
    ("status-lists", "Is this a status list in force?"),
];

/// What a case's reader has.
pub struct Holds {
    pub documents: BTreeMap<Did, Arc<DidDocument>>,
    pub now: Timestamp,
}

pub fn path(kind: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../conformance/cases").join(format!("proof-{kind}.json"))
}

pub fn documents(published: &[Value]) -> BTreeMap<Did, Arc<DidDocument>> {
    let document = |value: &Value| {
        let did: Did = value["id"].as_str().unwrap().parse().unwrap();
        let document = DidDocument::parse(value.to_string().as_bytes(), &did).unwrap();
        (did, Arc::new(document))
    };
    published.iter().map(document).collect()
}

type Verdict = Result<Vec<&'static str>, &'static str>;

fn names<'u>(unchecked: impl IntoIterator<Item = &'u Unchecked>) -> Vec<&'static str> {
    unchecked.into_iter().map(Unchecked::id).collect()
}

fn answered(answer: &Value, holds: &Holds) -> Result<VerifiedAnswer, &'static str> {
    evidence::answer(answer, &holds.documents)
        .and_then(VerifiedAnswer::proved)
        .and_then(|answer| answer.as_of(holds.now))
        .map_err(|e| e.id())
}

fn granted(grant: &Value, ancestors: &[Value], holds: &Holds) -> Result<terms::VerifiedTerms, &'static str> {
    terms::grant(grant, ancestors, &holds.documents, holds.now).map_err(|e| e.id())
}

/// What is named as not covered, or the check that refuses.
pub fn judge(kind: &str, input: &Value, holds: &Holds) -> Verdict {
    let list = input.as_array().map(Vec::as_slice).unwrap_or_default();
    match kind {
        "items" => {
            let item = evidence::item(input, &holds.documents)
                .and_then(VerifiedItem::proved)
                .and_then(|item| item.as_of(holds.now))
                .map_err(|e| e.id())?;
            // A lone item: nobody says where the chain ends.
            let mut named = vec!["unchecked.chain_end"];
            named.extend(names(&item.unchecked));
            named.extend(item.outside);
            Ok(named)
        }
        "answers" => Ok(names(&answered(input, holds)?.unchecked)),
        "answers-under-grants" => {
            let terms = granted(&input["grant"], &[], holds)?;
            let answer = &input["answer"];
            let verified = answered(answer, holds)?;
            let items = answer["items"].as_array().unwrap();
            let unchecked = terms::under(&verified, items, &terms).map_err(|e| e.id())?;
            Ok(names(unchecked.iter().chain(&terms.unchecked)))
        }
        "bundles" => {
            let bytes = list.iter().filter_map(Value::as_str).collect::<String>().into_bytes();
            let mut bundle = UnverifiedBundle::new(&holds.documents, holds.now);
            for line in bytes.split_inclusive(|byte| *byte == b'\n') {
                bundle.line(Some(line)).map_err(|e| e.id())?;
            }
            Ok(names(&bundle.finish().map_err(|e| e.id())?.unchecked))
        }
        "grants" => Ok(names(&granted(input, &[], holds)?.unchecked)),
        "delegations" => {
            let ancestors = input["ancestors"].as_array().unwrap();
            Ok(names(&granted(&input["grant"], ancestors, holds)?.unchecked))
        }
        "receipts" => {
            let receipt = receipt::verify(input, &holds.documents).and_then(|r| r.as_of(holds.now));
            Ok(names(&receipt.map_err(|e| e.id())?.unchecked))
        }
        "receipt-chains" => {
            receipt::verify_chain(list.iter().cloned(), &holds.documents).map_err(|e| e.id())?;
            Ok(Vec::new())
        }
        "deletion-receipts" => {
            let deletion = deletion::verify(input, &holds.documents, holds.now).map_err(|e| e.id())?;
            Ok(names(&deletion.unchecked))
        }
        "status-lists" => {
            status::read(input.as_str().unwrap(), &holds.documents, holds.now).map_err(|e| e.id())?;
            Ok(Vec::new())
        }
        other => panic!("{other}"),
    }
}

/// What the files and our verifiers say of all cases.
#[derive(Default)]
pub struct Outcome {
    pub count: usize,
    pub valid: usize,
    /// Cases where the verdict is another.
    pub verdicts: Vec<String>,
    /// Cases that are refused too, by another check than the file names.
    pub reasons: Vec<String>,
    /// The checks that refused a case.
    pub refusing: BTreeSet<&'static str>,
}

pub fn run() -> Outcome {
    let mut outcome = Outcome::default();
    // `conformance/rogues/checks.py` has removed a check: one verdict that changes is what it asks for.
    let one_is_enough = std::env::var_os("OAP_REMOVED").is_some_and(|number| number != "0");
    let array = |value: &Value| value.as_array().cloned().unwrap_or_default();
    for (kind, _) in KINDS {
        let file = strict::parse(&std::fs::read(path(kind)).unwrap()).unwrap();
        let now = file["now"].as_str().unwrap().parse().unwrap();
        let holds = Holds { documents: documents(&array(&file["documents"])), now };
        let mut ids = BTreeSet::new();
        for case in file["cases"].as_array().unwrap() {
            let id = case["id"].as_str().unwrap();
            assert!(ids.insert(id), "{kind}: {id} stands twice");
            let input = patch::apply(&file["bases"][case["base"].as_str().unwrap()], &array(&case["patch"]));
            let found = match case.get("documents") {
                Some(others) => judge(kind, &input, &Holds { documents: documents(&array(others)), now }),
                None => judge(kind, &input, &holds),
            };
            outcome.count += 1;
            outcome.valid += usize::from(found.is_ok());
            outcome.refusing.extend(found.as_ref().err());
            let says = format!("{kind}/{id}: {found:?}");
            if found.is_ok() != (case["valid"] == true) {
                outcome.verdicts.push(says);
                if one_is_enough {
                    return outcome;
                }
            } else if found.err().is_some_and(|check| case["check"] != check) {
                outcome.reasons.push(says);
            }
        }
    }
    outcome
}
