//! What `oap-memory verify` says: what was proved, what stands outside the proof, and what was not checked.
//!
//! One report for programs and people: the text is made of the JSON.

use super::output;
use oap_grants::bundle::VerifiedBundle;
use oap_grants::evidence::VerifiedTerms;
use oap_grants::status::VerifiedList;
use oap_identity::DidDocument;
use oap_memory::deletion::VerifiedDeletion;
use oap_memory::evidence::{VerifiedAnswer, VerifiedItem, explain};
use oap_memory::receipt::VerifiedReceipt;
use oap_memory::unchecked::Unchecked;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A report of a document that holds.
fn report(what: &str, says: Vec<String>, unchecked: &[Unchecked]) -> Value {
    json!({"verified": true, "what": what, "says": says, "unchecked": listed(unchecked)})
}

/// What was not checked, by stable name and in words.
fn listed<'a>(unchecked: impl IntoIterator<Item = &'a Unchecked>) -> Value {
    unchecked.into_iter().map(|what| json!({"id": what.id(), "what": what.to_string()})).collect()
}

fn of_item(item: &VerifiedItem) -> Value {
    let first = item.chain.first();
    json!({
        "item_id": item.item_id, "held_by": item.holder, "captured_by": first.actor, "captured_at": first.at,
        "version": item.version, "status": item.status, "proved": item.proved, "derived": item.derived,
        "outside": item.outside, "unchecked": listed(&item.unchecked), "story": explain(item),
    })
}

/// What a status list says of a grant, and that it was asked.
fn state(revoked: Option<bool>, unchecked: &mut Vec<Unchecked>) -> Option<String> {
    let revoked = revoked?;
    unchecked.retain(|what| !matches!(what, Unchecked::State(_)));
    Some(format!(
        "The status list says that the grant is {}.",
        if revoked { "revoked" } else { "not revoked" }
    ))
}

pub(super) fn answer(answer: &VerifiedAnswer, under: Option<&VerifiedTerms>, revoked: Option<bool>) -> Value {
    let said = &answer.disclosure;
    let moved = answer.items.iter().filter(|item| item.chain.moves().next().is_some()).count();
    let whose = match (answer.items.len(), moved) {
        (all, 0) => format!("{all} item(s) of its own"),
        (all, moved) => {
            format!("{all} item(s), {moved} of which it only claims came to it from another house,")
        }
    };
    let mut says = vec![format!(
        "{} disclosed {whose} to {} on {}, under grant {}, at level {} of {}.",
        answer.discloser,
        answer.grantee,
        answer.receipt.timestamp,
        said.grant_id,
        said.trust_level.get(),
        said.profile
    )];
    let mut unchecked = answer.unchecked.clone();
    if let Some(terms) = under {
        says.push(format!("The grant holds, allows this, and is signed by {}.", terms.signer()));
        unchecked.retain(|what| !matches!(what, Unchecked::Grant(_)));
        unchecked.extend(terms.unchecked.iter().cloned());
    } else {
        unchecked.push(Unchecked::State(said.grant_id));
    }
    says.extend(state(revoked, &mut unchecked));
    let mut report = report("answer", says, &unchecked);
    report["revoked"] = json!(revoked);
    report["disclosed_by"] = json!(answer.discloser);
    report["disclosed_to"] = json!(answer.grantee);
    report["at"] = json!(answer.receipt.timestamp);
    report["receipt_id"] = json!(answer.receipt.receipt_id);
    report["grant"] = json!({
        "grant_id": said.grant_id, "grant_hash": said.grant_hash, "checked": under.is_some(),
        "delegation": said.delegation,
    });
    report["items"] = answer.items.iter().map(of_item).collect();
    report
}

pub(super) fn item(item: &VerifiedItem) -> Value {
    let whose = if item.chain.moves().next().is_some() { "an item that is claimed by" } else { "an item of" };
    let says =
        format!("{} is {whose} {}; nobody says here to whom it was disclosed.", item.item_id, item.holder);
    let mut unchecked = vec![Unchecked::ChainMayGoOn];
    unchecked.extend(item.outside.iter().map(|name| Unchecked::Member(name)));
    let mut report = report("item", vec![says], &unchecked);
    report["items"] = json!([of_item(item)]);
    report
}

pub(super) fn bundle(bundle: &VerifiedBundle) -> Value {
    let header = &bundle.header;
    let counts = bundle.trailer.counts;
    let mut says = vec![format!(
        "{} wrote {} item(s), {} grant(s) and {} receipt(s) on {}.",
        header.principal, counts.items, counts.grants, counts.receipts, bundle.trailer.finished_at
    )];
    if let Some(projection) = &header.projected {
        says.push(format!(
            "It is what {} shows at level {} to {} under grant {}.",
            projection.profile,
            projection.trust_level.get(),
            projection.grantee,
            projection.grant_id
        ));
    }
    if bundle.chains > 0 {
        says.push(format!("The receipts are {} chain(s), each from genesis to a head.", bundle.chains));
    }
    says.push(
        "Every signature, disclosure, chain and receipt in it holds, and no line that its trailer counts is missing."
            .to_owned(),
    );
    let mut report = report("bundle", says, &[]);
    report["unchecked"] = listed(&bundle.unchecked);
    report
}

pub(super) fn grant(terms: &VerifiedTerms, revoked: Option<bool>) -> Value {
    let grant = terms.grant.grant();
    let mut says = vec![format!(
        "{} grants {} at most {} item(s) of scope {} at level {} of {}, from {} until {}; signed by {}.",
        grant.granter.principal,
        grant.grantee,
        grant.max_items,
        grant.granter.scope,
        grant.trust_level.get(),
        grant.redaction_profile,
        grant.begins(),
        grant.expires_at,
        terms.signer()
    )];
    let mut unchecked = terms.unchecked.clone();
    says.extend(state(revoked, &mut unchecked));
    let mut report = report("grant", says, &unchecked);
    report["grant_id"] = json!(grant.grant_id);
    report["grant_hash"] = json!(terms.grant.hash());
    report["granter"] = json!(grant.granter);
    report["grantee"] = json!(grant.grantee);
    report["signed_by"] = json!(terms.signer());
    report["delegation"] = json!(terms.ancestors);
    report["revoked"] = json!(revoked);
    report
}

pub(super) fn receipt(verified: &VerifiedReceipt) -> Value {
    let receipt = &verified.receipt;
    let mut says = vec![format!(
        "{} says that on {} {} did {} ({}).",
        receipt.principal_did,
        receipt.timestamp,
        receipt.agent_did,
        receipt.action_id.as_deref().unwrap_or("something"),
        receipt.kind
    )];
    if let Some(kid) = &verified.countersigned {
        says.push(format!("{} countersigned it.", kid.did()));
    }
    let mut report = report("receipt", says, &verified.unchecked);
    report["receipt_id"] = json!(receipt.receipt_id);
    report["hash"] = json!(verified.hash);
    report["countersigned_by"] = json!(verified.countersigned);
    report
}

/// Deletion Receipts, and the names of what stands beside them in the document.
pub(super) fn deletions(verified: &[VerifiedDeletion], outside: Vec<String>) -> Value {
    let mut all: Vec<Value> = verified.iter().map(deletion).collect();
    let mut report = if all.len() == 1 {
        all.remove(0)
    } else {
        let says = all.iter().flat_map(|one| one["says"].as_array().cloned().unwrap_or_default());
        let says = says.map(|said| output::text(&said, "")).collect();
        let unchecked: BTreeSet<&Unchecked> = verified.iter().flat_map(|one| &one.unchecked).collect();
        let mut report = report("deletion_receipts", says, &[]);
        report["unchecked"] = listed(unchecked);
        report["receipts"] = json!(all);
        report
    };
    report["outside"] = json!(outside);
    report
}

fn deletion(verified: &VerifiedDeletion) -> Value {
    let receipt = &verified.receipt;
    let cascade = &receipt.scope.cascade;
    let says = vec![
        format!(
            "{} says that on {} the keys of {} item(s) were destroyed ({}): {} selected, {} made from them.",
            receipt.tool_did,
            receipt.completed_at,
            receipt.scope.items.len(),
            receipt.method,
            cascade.named.len(),
            cascade.derived.len()
        ),
        format!(
            "{} item(s) are held, {} were not there, {} remain; {} grant(s) became smaller.",
            cascade.held.len(),
            cascade.not_found.len(),
            cascade.remaining,
            cascade.grants_shrunk.len()
        ),
    ];
    let mut report = report("deletion_receipt", says, &verified.unchecked);
    report["receipt_id"] = json!(receipt.receipt_id);
    report["hash"] = json!(verified.hash);
    report["principal"] = json!(receipt.principal_did);
    report["deleted"] = json!(receipt.scope.items);
    report["cascade"] = json!(cascade);
    report
}

pub(super) fn status_list(list: &VerifiedList) -> Value {
    let says = format!(
        "{} says at {} that {} grant(s) are revoked, as of {}; good until {}.",
        list.issuer,
        list.address,
        list.revoked(),
        list.issued_at,
        list.expires_at
    );
    report("status_list", vec![says], &[])
}

/// What a DID document was compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compared {
    /// The one that its DID publishes.
    Published,
    /// The one that `--did-document` names.
    Given,
}

pub(super) fn did_document(
    document: &DidDocument,
    compared: Option<Compared>,
    outside: Vec<String>,
) -> Value {
    let mut says = vec![format!("{} has {} signing key(s).", document.id(), document.keys().len())];
    for key in document.keys() {
        let state = match (key.revoked_at(), key.retired_at()) {
            (Some(at), _) => format!("compromised since {at}"),
            (_, Some(at)) => format!("retired on {at}"),
            _ => "in force".to_owned(),
        };
        says.push(format!("{}: {state}.", key.kid()));
    }
    match compared {
        Some(Compared::Published) => says.push("It has the keys that its DID publishes.".to_owned()),
        Some(Compared::Given) => {
            says.push(
                "It has the keys of the document given with --did-document; its DID was not asked."
                    .to_owned(),
            );
        }
        None => {}
    }
    let unchecked = [Unchecked::Document];
    let unchecked: &[Unchecked] = if compared == Some(Compared::Published) { &[] } else { &unchecked };
    let mut report = report("did_document", says, unchecked);
    report["outside"] = json!(outside);
    report
}

/// The report in words.
pub(super) fn text(report: &Value) -> String {
    let list = |value: &Value| -> Vec<Value> { value.as_array().cloned().unwrap_or_default() };
    let names = |value: &Value| {
        let names: Vec<String> = list(value).iter().filter_map(|v| v.as_str().map(str::to_owned)).collect();
        if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
    };
    let mut lines: Vec<String> = list(&report["says"]).iter().map(|said| output::text(said, "")).collect();
    for item in list(&report["items"]) {
        for (number, line) in list(&item["story"]).iter().enumerate() {
            lines.push(format!("{}{}", if number == 0 { "" } else { "  " }, output::text(line, "")));
        }
        lines.push(format!(
            "  proved: {}; derived from the proof: {}; outside the proof: {}",
            names(&item["proved"]),
            names(&item["derived"]),
            names(&item["outside"])
        ));
        for what in list(&item["unchecked"]) {
            lines.push(format!("  not checked: {}", output::text(&what, "/what")));
        }
    }
    if report["outside"].as_array().is_some_and(|outside| !outside.is_empty()) {
        lines.push(format!("outside the proof: {}", names(&report["outside"])));
    }
    for what in list(&report["unchecked"]) {
        lines.push(format!("not checked: {}", output::text(&what, "/what")));
    }
    lines.join("\n")
}
