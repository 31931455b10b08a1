//! The second part: what a contractor can check, and what a changed copy gives.

use super::house::House;
use super::screen::Screen;
use super::{CliError, other};
use crate::api::audit::ChainInfo;
use crate::api::jobs::JobRequest;
use crate::cli::job::{self, follow};
use oap_client::ClientError;
use oap_identity::{DidDocument, ItemId};
use oap_memory::evidence::{self, EvidenceError};
use serde_json::{Value, json};

/// A receipt that is not there.
const EXAMPLE_RECEIPT: &str = "urn:oap:receipt:01J9V8B7H1ZK4D2A0M9R8F0KQX";

/// What was proved.
pub(super) struct Proved {
    /// What was changed, and what the check said.
    pub(super) refusals: Vec<[String; 2]>,
    /// The chains of Alice's log.
    pub(super) chains: Vec<ChainInfo>,
}

/// Tells what holds of an answer, and of one of its items.
pub(super) async fn tell(
    alice: &mut House,
    answer: &Value,
    item_id: ItemId,
    screen: Screen,
) -> Result<Proved, CliError> {
    let items = answer["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    // Items of one moment come in the order of their ids, which are fresh.
    let (one, others): (Vec<&Value>, Vec<&Value>) =
        items.iter().partition(|item| item["item_id"] == json!(item_id));
    let pair = one.first().copied().zip(others.first().copied());
    let (one, another) = pair.ok_or_else(|| CliError::Proof("the answer lacks a note".to_owned()))?;
    let document = serde_json::to_vec(&alice.gateway.published().did).map_err(other)?;
    let document = DidDocument::parse(&document, &alice.did).map_err(other)?;
    let verified = evidence::answer(answer, &document).map_err(ClientError::from)?;
    screen.text(&format!(
        "The contractor's answer holds, checked offline with Alice's public key alone: its signature, its receipt, and for \
         each of its {} notes what was captured, when, and that nothing but details was left out (an SD-JWT, a chain of \
         signed links, a capture receipt). Of the first note that says:",
        verified.items.len()
    ));
    screen.gap();
    if let Some(first) = verified.items.iter().find(|item| item_id == item.item_id) {
        for line in evidence::explain(first) {
            screen.text(&line);
        }
    }
    screen.gap();
    screen.text("A copy that was changed does not hold:");
    screen.gap();
    let refusals = tampered(answer, [one, another], &document)?;
    screen.columns(["What was changed", "What the check says"], &refusals);
    screen.gap();

    let request = JobRequest::VerifyAudit {};
    let verified = follow(&alice.owner, screen.quiet, &request, job::verify_audit).await?;
    let chains = verified.chains;
    screen.text(
        "Alice's log has a signed receipt of every grant, every answer and every refusal. Each entry names the hash of the \
         one before:",
    );
    screen.gap();
    let row = |chain: &ChainInfo| [format!("the log {}", chain.chain), "every entry verified".to_owned()];
    screen.pairs(&chains.iter().map(row).collect::<Vec<_>>());
    Ok(Proved { refusals, chains })
}

/// Changes one thing at a time, checks the copy, and returns what was changed and what the check says. An item is
/// checked on its own too, as one who got it without the answer's signature would.
fn tampered(
    answer: &Value,
    [one, another]: [&Value; 2],
    owner_key: &DidDocument,
) -> Result<Vec<[String; 2]>, CliError> {
    let mut refusals = Vec::new();
    let mut refused = |what: &str, result: Result<(), EvidenceError>| match result {
        Ok(()) => Err(CliError::Proof(format!("{what}: was accepted"))),
        Err(refusal) => {
            refusals.push([what.to_owned(), refusal.to_string()]);
            Ok(())
        }
    };
    let whole = |change: &dyn Fn(&mut Value)| {
        let mut copy = answer.clone();
        change(&mut copy);
        evidence::answer(&copy, owner_key).map(drop)
    };
    refused("an item left out", whole(&|copy| drop(copy["items"].as_array_mut().map(|i| i.pop()))))?;
    refused("another receipt id", whole(&|copy| copy["receipt"]["receipt_id"] = json!(EXAMPLE_RECEIPT)))?;
    let item = |change: &dyn Fn(&mut Value)| {
        let mut copy = one.clone();
        change(&mut copy);
        evidence::item(&copy, owner_key).map(drop)
    };
    refused(
        "another confidence in what it shows",
        item(&|copy| copy["provenance"]["confidence"] = json!(1)),
    )?;
    refused(
        "a disclosure left out",
        item(&|copy| {
            let sd_jwt = copy["integrity"]["sd_jwt"].as_str().unwrap_or_default().to_owned();
            let cut = sd_jwt.trim_end_matches('~').rsplit_once('~').map_or("", |(rest, _)| rest);
            copy["integrity"]["sd_jwt"] = json!(format!("{cut}~"));
        }),
    )?;
    refused(
        "an earlier date in its chain",
        item(&|copy| {
            copy["integrity"]["chain"][0]["at"] = json!("2020-01-01T00:00:00.000Z");
        }),
    )?;
    refused(
        "the chain of another item",
        item(&|copy| {
            copy["integrity"]["chain"] = another["integrity"]["chain"].clone();
        }),
    )?;
    Ok(refusals)
}
