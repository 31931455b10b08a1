//! What `oap-memory verify` says: what was proved, what stands outside the proof, and what was not checked.
//!
//! One report for programs and people: both forms are made of [`Report`].

mod acks;
mod text;

pub(super) use acks::acks;

use oap_grants::Grant;
use oap_grants::bundle::{LineError, VerifiedBundle};
use oap_grants::evidence::VerifiedTerms;
use oap_grants::status::VerifiedList;
use oap_identity::ids::DeletionId;
use oap_identity::{Did, DidDocument, GrantId, Hash, ItemId, Kid, ReceiptId, ScopedDid, Timestamp};
use oap_memory::Status;
use oap_memory::bundle::{Counts, Header, Projection};
use oap_memory::deletion::{Cascade, VerifiedDeletion};
use oap_memory::evidence::{VerifiedAnswer, VerifiedItem, explain};
use oap_memory::receipt::VerifiedReceipt;
use oap_memory::unchecked::Unchecked;
use serde::Serialize;
use std::collections::BTreeSet;

/// What was found out about a document.
#[derive(Serialize)]
pub(super) struct Report {
    /// Whether it holds.
    verified: bool,
    /// What it is.
    what: &'static str,
    /// What was proved, in sentences.
    says: Vec<String>,
    unchecked: Vec<NotChecked>,
    #[serde(flatten)]
    of: Of,
}

/// What a report says of a document of its kind.
#[derive(Serialize)]
#[serde(untagged)]
enum Of {
    Answer(Box<AnswerReport>),
    Item { items: Vec<ItemReport> },
    Bundle(Box<BundleReport>),
    Grant(Box<GrantReport>),
    Receipt { receipt_id: ReceiptId, hash: Hash, countersigned_by: Option<Kid> },
    Acks(Box<acks::AcksReport>),
    Deletion(Box<DeletionReport>),
    Deletions { receipts: Vec<Report>, outside: Vec<String> },
    StatusList {},
    DidDocument { outside: Vec<String> },
}

/// What was not checked, by stable name and in words.
#[derive(Serialize)]
struct NotChecked {
    id: &'static str,
    what: String,
}

#[derive(Serialize)]
struct AnswerReport {
    revoked: Option<bool>,
    disclosed_by: Did,
    disclosed_to: Did,
    at: Timestamp,
    receipt_id: ReceiptId,
    grant: Under,
    items: Vec<ItemReport>,
}

/// The grant that an answer was given under.
#[derive(Serialize)]
struct Under {
    grant_id: GrantId,
    grant_hash: Hash,
    /// Whether it was at hand and holds.
    checked: bool,
    delegation: Vec<Hash>,
}

#[derive(Serialize)]
struct ItemReport {
    item_id: ItemId,
    held_by: Did,
    captured_by: Did,
    captured_at: Timestamp,
    version: u32,
    status: Status,
    proved: Vec<String>,
    derived: Vec<&'static str>,
    outside: Vec<&'static str>,
    unchecked: Vec<NotChecked>,
    story: Vec<String>,
}

#[derive(Serialize)]
struct BundleReport {
    principal: Did,
    projected: Option<Projection>,
    #[serde(flatten)]
    counts: Counts,
    /// Whether it holds as a whole.
    whole: bool,
    /// Why it does not.
    #[serde(flatten)]
    broken: Option<Broken>,
    /// The lines that are refused.
    wrong: Vec<WrongLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

/// Why a bundle does not hold as a whole.
#[derive(Serialize)]
struct Broken {
    check: &'static str,
    why: String,
}

/// A line of a bundle that is refused.
#[derive(Serialize)]
pub(super) struct WrongLine {
    line: usize,
    check: &'static str,
    reason: String,
}

impl WrongLine {
    pub(super) fn new(line: usize, reason: &LineError) -> Self {
        Self { line, check: reason.id(), reason: reason.to_string() }
    }
}

#[derive(Serialize)]
struct GrantReport {
    grant_id: GrantId,
    grant_hash: Hash,
    granter: ScopedDid,
    grantee: Did,
    signed_by: Did,
    delegation: Vec<Hash>,
    revoked: Option<bool>,
}

#[derive(Serialize)]
struct DeletionReport {
    receipt_id: DeletionId,
    hash: Hash,
    principal: Did,
    /// `<item_id>@<commitment>` of each version.
    deleted: Vec<String>,
    cascade: Cascade,
    /// The members that stand beside the receipt; of one of several, they are named once.
    #[serde(skip_serializing_if = "Option::is_none")]
    outside: Option<Vec<String>>,
}

impl Report {
    /// A report of a document that holds.
    fn new(what: &'static str, says: Vec<String>, unchecked: Vec<NotChecked>, of: Of) -> Self {
        Self { verified: true, what, says, unchecked, of }
    }
}

fn listed<'a>(unchecked: impl IntoIterator<Item = &'a Unchecked>) -> Vec<NotChecked> {
    unchecked.into_iter().map(|what| NotChecked { id: what.id(), what: what.to_string() }).collect()
}

fn of_item(item: &VerifiedItem) -> ItemReport {
    let first = item.chain.first();
    ItemReport {
        item_id: item.item_id,
        held_by: item.holder.clone(),
        captured_by: first.actor.clone(),
        captured_at: first.at,
        version: item.version,
        status: item.status,
        proved: item.proved.clone(),
        derived: item.derived.clone(),
        outside: item.outside.clone(),
        unchecked: listed(&item.unchecked),
        story: explain(item),
    }
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

pub(super) fn answer(
    answer: &VerifiedAnswer,
    under: Option<&VerifiedTerms>,
    revoked: Option<bool>,
) -> Report {
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
    let of = AnswerReport {
        revoked,
        disclosed_by: answer.discloser.clone(),
        disclosed_to: answer.grantee.clone(),
        at: answer.receipt.timestamp,
        receipt_id: answer.receipt.receipt_id,
        grant: Under {
            grant_id: said.grant_id,
            grant_hash: said.grant_hash,
            checked: under.is_some(),
            delegation: said.delegation.clone(),
        },
        items: answer.items.iter().map(of_item).collect(),
    };
    Report::new("answer", says, listed(&unchecked), Of::Answer(Box::new(of)))
}

pub(super) fn item(item: &VerifiedItem) -> Report {
    let whose = if item.chain.moves().next().is_some() { "an item that is claimed by" } else { "an item of" };
    let says =
        format!("{} is {whose} {}; nobody says here to whom it was disclosed.", item.item_id, item.holder);
    let mut unchecked = vec![Unchecked::ChainMayGoOn];
    unchecked.extend(item.outside.iter().map(|name| Unchecked::Member(name)));
    Report::new("item", vec![says], listed(&unchecked), Of::Item { items: vec![of_item(item)] })
}

/// What reading a bundle found, line by line and as a whole.
pub(super) struct ReadBundle<'a> {
    pub header: &'a Header,
    pub counts: Counts,
    pub whole: &'a Result<VerifiedBundle, LineError>,
    pub wrong: Vec<WrongLine>,
    /// Whether it was checked with the keys that it brings.
    pub own_keys: bool,
}

pub(super) fn bundle(read: ReadBundle<'_>) -> Report {
    let ReadBundle { header, counts, whole, wrong, own_keys } = read;
    let (says, unchecked, broken) = match whole {
        Ok(bundle) => (proved_of(bundle), listed(&bundle.unchecked), None),
        Err(why) => (
            vec![format!(
                "{} item(s) and {} receipt(s) of {}",
                counts.items, counts.receipts, header.principal
            )],
            Vec::new(),
            Some(Broken { check: why.id(), why: why.to_string() }),
        ),
    };
    let of = BundleReport {
        principal: header.principal.clone(),
        projected: header.projected.clone(),
        counts,
        whole: broken.is_none(),
        broken,
        wrong,
        note: own_keys.then_some("checked with the keys that the bundle brings"),
    };
    Report { verified: of.whole, ..Report::new("bundle", says, unchecked, Of::Bundle(Box::new(of))) }
}

/// What a bundle proves, in sentences.
fn proved_of(bundle: &VerifiedBundle) -> Vec<String> {
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
    says
}

pub(super) fn grant(terms: &VerifiedTerms, revoked: Option<bool>) -> Report {
    let grant: &Grant = terms.grant.grant();
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
    let of = GrantReport {
        grant_id: grant.grant_id,
        grant_hash: terms.grant.hash(),
        granter: grant.granter.clone(),
        grantee: grant.grantee.clone(),
        signed_by: terms.signer().clone(),
        delegation: terms.ancestors.clone(),
        revoked,
    };
    Report::new("grant", says, listed(&unchecked), Of::Grant(Box::new(of)))
}

pub(super) fn receipt(verified: &VerifiedReceipt) -> Report {
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
    let of = Of::Receipt {
        receipt_id: receipt.receipt_id,
        hash: verified.hash,
        countersigned_by: verified.countersigned.clone(),
    };
    Report::new("receipt", says, listed(&verified.unchecked), of)
}

/// Deletion Receipts, and the names of what stands beside them in the document.
pub(super) fn deletions(verified: &[VerifiedDeletion], outside: Vec<String>) -> Report {
    if let [one] = verified {
        return deletion(one, Some(outside));
    }
    let receipts: Vec<Report> = verified.iter().map(|one| deletion(one, None)).collect();
    let says = receipts.iter().flat_map(|one| one.says.iter().cloned()).collect();
    let unchecked: BTreeSet<&Unchecked> = verified.iter().flat_map(|one| &one.unchecked).collect();
    Report::new("deletion_receipts", says, listed(unchecked), Of::Deletions { receipts, outside })
}

fn deletion(verified: &VerifiedDeletion, outside: Option<Vec<String>>) -> Report {
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
    let of = DeletionReport {
        receipt_id: receipt.receipt_id,
        hash: verified.hash,
        principal: receipt.principal_did.clone(),
        deleted: receipt.scope.items.clone(),
        cascade: cascade.clone(),
        outside,
    };
    Report::new("deletion_receipt", says, listed(&verified.unchecked), Of::Deletion(Box::new(of)))
}

pub(super) fn status_list(list: &VerifiedList) -> Report {
    let says = format!(
        "{} says at {} that {} grant(s) are revoked, as of {}; good until {}.",
        list.issuer,
        list.address,
        list.revoked(),
        list.issued_at,
        list.expires_at
    );
    Report::new("status_list", vec![says], Vec::new(), Of::StatusList {})
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
) -> Report {
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
    Report::new("did_document", says, listed(unchecked), Of::DidDocument { outside })
}
