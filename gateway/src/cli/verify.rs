//! `oap-memory verify`

mod acks;

use super::proved::{Compared, ReadBundle, Report, WrongLine};
use super::trust::{Known, Trust, optional, resolved};
use super::{CliError, Global, output, proved};
use crate::system::bundle_file;
use crate::system::clock::SystemClock;
use oap_client::grantee::{countersigners, signers};
use oap_formats::sources::peek;
use oap_grants::bundle::UnverifiedBundle;
use oap_grants::evidence::{self as terms, VerifiedTerms};
use oap_grants::grant::UnverifiedGrant;
use oap_grants::status;
use oap_identity::{Clock, Did, DidDocument, ScopedDid, Timestamp};
use oap_memory::bundle::{Header, Line, MAX_LINE, Reader};
use oap_memory::evidence::{self, EvidenceError, VerifiedItem};
use oap_memory::lines::whole_lines;
use oap_memory::{deletion, receipt};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Check a document offline: answer, item, bundle, grant, receipt, acknowledgements, Deletion Receipt, status list, DID document
#[derive(clap::Args)]
#[command(after_help = "Examples:
  oap-memory verify answer.json --did-document did.json
  oap-memory verify answer.json --grant grant.json  (also: given under that grant; resolves the owner's DID)
  oap-memory verify grant.json --status-list list.jwt
  oap-memory verify deletion.json
  oap-memory verify memory.bundle --trust-bundle    (with the keys that the bundle brings)

An answer is what `oap-memory query --save` keeps; an item is one of its items; a bundle is what `oap-memory export`
writes. What is printed is what was proved, what stands outside the proof, and what was not checked.
A receipt is judged by its action: type, outcome, tags and hashes. An agent that has not signed it is named. Of what `audit acks show
--json` prints, each signature is checked, the grantee's under the receipt and every one over the one before.
With --grant the scope and the built-in profile are compared too; what a projection hid cannot be seen, and is named.

Exit status: 0 it holds; 4 it does not, or it is no such document (broken JSON, a member that stands twice, an empty
file); 1 nothing was found out: a file cannot be read, or the DID document of a signer cannot be had; 2 wrong usage.")]
pub(super) struct Verify {
    /// The document; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    trust: Trust,
    /// Of answers: the grant that it was given under
    #[arg(long, value_name = "FILE")]
    grant: Option<PathBuf>,
    /// The grants that a delegated grant was made from, first one first
    #[arg(long, value_name = "FILE")]
    chain: Vec<PathBuf>,
    /// Of grants, and of answers with --grant: the granter's status list, to see whether the grant is revoked
    #[arg(long, value_name = "FILE")]
    status_list: Option<PathBuf>,
    /// Of encrypted bundles: your age identity
    #[arg(long, value_name = "FILE")]
    identity: Option<PathBuf>,
}

fn refused(error: impl std::fmt::Display) -> CliError {
    CliError::Proof(error.to_string())
}

/// A document that another one is checked with.
fn part(path: &Path) -> Result<Value, CliError> {
    let document = oap_identity::json::parse(&output::read(path)?);
    document.map_err(|e| refused(format!("{}: {e}", path.display())))
}

/// A file that cannot be read, or whose compression breaks off.
fn unread(path: &Path, error: &std::io::Error) -> CliError {
    match error.kind() {
        ErrorKind::UnexpectedEof => refused(format!("{}: the file is cut short", path.display())),
        ErrorKind::InvalidData => refused(format!("{}: {error}", path.display())),
        _ => CliError::File(path.to_owned(), error.to_string()),
    }
}

/// What a member of a document says, before anything of it is checked: whose keys it has to be checked with. One that is no such
/// name is refused by the check.
fn named<T: DeserializeOwned>(document: &Value, member: &str) -> Option<T> {
    oap_identity::json::from_value(document.get(member)?.clone()).ok()
}

impl Verify {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        if self.file != Path::new("-") && is_bundle(&self.file, self.identity.as_deref())? {
            self.uses(&[], "a bundle")?;
            return self.bundle(global).await;
        }
        let bytes = output::read(&self.file)?;
        let now = SystemClock.now();
        let report = if bytes.trim_ascii_start().starts_with(b"{") {
            let document = oap_identity::json::parse(&bytes).map_err(refused)?;
            self.document(global, &document, now).await?
        } else if bytes.trim_ascii_start().starts_with(b"[") {
            let document = oap_identity::json::parse(&bytes).map_err(refused)?;
            let receipts: Vec<&Value> = document.as_array().into_iter().flatten().collect();
            self.deletions(global, &receipts, Vec::new(), now).await?
        } else if bytes.trim_ascii().is_empty() {
            return Err(refused("the document is empty"));
        } else {
            self.uses(&[], "a status list")?;
            let text = String::from_utf8_lossy(&bytes).trim().to_owned();
            proved::status_list(&self.list(global, &text, now).await?)
        };
        output::print(global.json, &report, Report::text);
        Ok(())
    }

    async fn known(&self, global: &Global, dids: BTreeSet<Did>) -> Result<Known, CliError> {
        resolved(global, &self.trust.did_document, dids).await
    }

    async fn document(&self, global: &Global, value: &Value, now: Timestamp) -> Result<Report, CliError> {
        let has = |member: &str| value.get(member).is_some();
        if has("deletion_receipt") || has("deletion_receipts") {
            // What `delete` answers has the receipts inside.
            let (receipts, outside) = inside(value)?;
            return self.deletions(global, &receipts, outside, now).await;
        }
        if has("items") && has("response_id") {
            if self.grant.is_none() {
                self.uses(
                    &[],
                    "an answer alone: it names its grant, and the grant its place in the list; add --grant",
                )?;
            }
            let mut known = self.known(global, signers(value)).await?;
            optional(global, &mut known, countersigners(value)).await?;
            let answer = evidence::answer(value, &known).map_err(refused)?;
            let mut answer = answer.proved().and_then(|answer| answer.as_of(now)).map_err(refused)?;
            let under = match &self.grant {
                None => None,
                Some(path) => Some(self.terms(global, &part(path)?, now).await?),
            };
            if let Some(under) = &under {
                let items = value["items"].as_array().map(Vec::as_slice).unwrap_or_default();
                answer.unchecked.extend(terms::under(&answer, items, under).map_err(refused)?);
            }
            let revoked = match &under {
                Some(terms) => self.revoked(global, terms, now).await?,
                None => None,
            };
            Ok(proved::answer(&answer, under.as_ref(), revoked))
        } else if acks::is_acks(value) {
            self.acks(global, value, now).await
        } else if has("item_id") {
            self.uses(&[], "an item")?;
            let mut known = self.known(global, signers(value)).await?;
            optional(global, &mut known, countersigners(value)).await?;
            let item = evidence::item(value, &known).and_then(VerifiedItem::proved);
            let item: Result<_, EvidenceError> = item.and_then(|item| item.as_of(now));
            Ok(proved::item(&item.map_err(refused)?))
        } else if deletion::is_deletion(value) {
            self.deletions(global, &[value], Vec::new(), now).await
        } else if has("grant_id") && has("granter") {
            self.uses(&["--chain", "--status-list"], "a grant")?;
            let terms = self.terms(global, value, now).await?;
            let revoked = self.revoked(global, &terms, now).await?;
            Ok(proved::grant(&terms, revoked))
        } else if has("verificationMethod") {
            self.uses(&[], "a DID document")?;
            self.did_document(global, value).await
        } else if has("receipt_id") {
            self.uses(&[], "a receipt")?;
            let mut known = self.known(global, named(value, "principal_did").into_iter().collect()).await?;
            optional(global, &mut known, countersigners(value)).await?;
            let receipt = receipt::verify(value, &known).and_then(|receipt| receipt.as_of(now));
            Ok(proved::receipt(&receipt.map_err(refused)?))
        } else {
            let why = "it is no answer, item, bundle, grant, receipt, list of acknowledgements, Deletion Receipt, status list or DID document";
            Err(refused(why))
        }
    }

    /// Refuses a flag that this kind of document has no use for.
    fn uses(&self, flags: &[&str], of: &str) -> Result<(), CliError> {
        let given = [
            ("--grant", self.grant.is_some()),
            ("--chain", !self.chain.is_empty()),
            ("--status-list", self.status_list.is_some()),
        ];
        match given.iter().find(|(flag, given)| *given && !flags.contains(flag)) {
            Some((flag, _)) => Err(CliError::Usage(format!("{flag}: nothing is compared with it for {of}"))),
            None => Ok(()),
        }
    }

    /// Deletion Receipts, each by itself, and the names of the members that stand beside them.
    async fn deletions(
        &self,
        global: &Global,
        receipts: &[&Value],
        outside: Vec<String>,
        now: Timestamp,
    ) -> Result<Report, CliError> {
        self.uses(&[], "a Deletion Receipt")?;
        if receipts.is_empty() || !receipts.iter().all(|receipt| deletion::is_deletion(receipt)) {
            return Err(refused("a list of documents must be one of Deletion Receipts"));
        }
        let principals = receipts.iter().filter_map(|receipt| named(receipt, "tool_did")).collect();
        let known = self.known(global, principals).await?;
        let verify = |receipt: &&Value| deletion::verify(receipt, &known, now).map_err(refused);
        let verified = receipts.iter().map(verify).collect::<Result<Vec<_>, _>>()?;
        Ok(proved::deletions(&verified, outside))
    }

    /// A grant with those that it was made from.
    async fn terms(&self, global: &Global, grant: &Value, now: Timestamp) -> Result<VerifiedTerms, CliError> {
        let chain = self.chain.iter().map(|path| part(path)).collect::<Result<Vec<_>, _>>()?;
        let granter = named(grant, "granter").map(|granter: ScopedDid| granter.principal);
        let delegators = chain.iter().filter_map(|above| named(above, "grantee"));
        let signers: BTreeSet<Did> = delegators.chain(granter).collect();
        let known = self.known(global, signers).await?;
        terms::grant(grant, &chain, &known, now).map_err(refused)
    }

    async fn revoked(
        &self,
        global: &Global,
        terms: &VerifiedTerms,
        now: Timestamp,
    ) -> Result<Option<bool>, CliError> {
        let Some(path) = &self.status_list else { return Ok(None) };
        let list = String::from_utf8_lossy(&output::read(path)?).trim().to_owned();
        let list = self.list(global, &list, now).await?;
        let grant = terms.grant.grant();
        // A delegated grant bears no place: the first grant above it does, and ends it when it is revoked.
        let first = match self.chain.first().filter(|_| !terms.ancestors.is_empty()) {
            Some(path) => Some(UnverifiedGrant::parse(part(path)?).map_err(refused)?),
            None => None,
        };
        let status = first.as_ref().map_or(&grant.status, |first| &first.unverified().status);
        let place = status.as_ref().map(|status| &status.status_list);
        let place = place.filter(|place| place.uri == list.address && grant.granter.principal == list.issuer);
        let place = place.ok_or_else(|| refused("the grant's status is not in this list"))?;
        let revoked = list.is_revoked(place.idx).map_err(refused)?;
        // Whether the delegated grant itself was revoked stands at a place that the gateway told its grantee.
        Ok(Some(revoked).filter(|revoked| *revoked || first.is_none()))
    }

    async fn list(
        &self,
        global: &Global,
        text: &str,
        now: Timestamp,
    ) -> Result<status::VerifiedList, CliError> {
        let issuer = status::claimed_issuer(text).map_err(refused)?;
        let known = self.known(global, BTreeSet::from([issuer])).await?;
        status::read(text, &known, now).map_err(refused)
    }

    /// A DID document against the one that its DID publishes, where that can be had.
    async fn did_document(&self, global: &Global, value: &Value) -> Result<Report, CliError> {
        let did = named::<Did>(value, "id").ok_or_else(|| refused("id: is no DID"))?;
        let document = DidDocument::parse(value.to_string().as_bytes(), &did).map_err(refused)?;
        let known = self.known(global, BTreeSet::from([did.clone()])).await.ok();
        let other = known.as_ref().and_then(|known| known.get(&did));
        let is_it = |path: &PathBuf| {
            output::read_json(path).is_ok_and(|given| named(&given, "id").as_ref() == Some(&did))
        };
        let given = self.trust.did_document.iter().any(is_it);
        if other.is_some_and(|other| !other.has_keys_of(&document)) {
            return Err(refused(if given {
                "the document given with --did-document has other keys, or other states of them"
            } else {
                "the DID publishes other keys, or other states of them"
            }));
        }
        let compared = if given { Compared::Given } else { Compared::Published };
        Ok(proved::did_document(&document, other.map(|_| compared), beside_keys(value, &document)))
    }

    async fn bundle(&self, global: &Global) -> Result<(), CliError> {
        let failed = |e| unread(&self.file, &e);
        let open = || bundle_file::open(&self.file, self.identity.as_deref()).map_err(failed);
        let header = header(open()?)?;
        let (_, known) = self.trust.documents(global, &header).await?;
        let mut bundle = UnverifiedBundle::new(&known, SystemClock.now());
        let mut wrong = Vec::new();
        whole_lines(open()?, MAX_LINE, |number, line| {
            if let Err(reason) = bundle.line(line) {
                wrong.push(WrongLine::new(number, &reason));
            }
            ControlFlow::Continue(())
        })
        .map_err(failed)?;
        let counts = bundle.counts();
        let whole = bundle.finish();
        let own_keys = self.trust.trust_bundle;
        let report = proved::bundle(ReadBundle { header: &header, counts, whole: &whole, wrong, own_keys });
        output::print(global.json, &report, Report::text);
        whole.map(drop).map_err(|why| CliError::Proof(format!("the bundle as a whole: {why}")))
    }
}

/// The Deletion Receipts in what `delete` answers, each once, and the names of the members beside them.
fn inside(value: &Value) -> Result<(Vec<&Value>, Vec<String>), CliError> {
    let mut receipts: Vec<&Value> = match value.get("deletion_receipts") {
        None => Vec::new(),
        Some(Value::Array(all)) => all.iter().collect(),
        Some(_) => return Err(refused("deletion_receipts: must be a list")),
    };
    let first = value.get("deletion_receipt").filter(|first| !receipts.contains(first));
    receipts.extend(first);
    let members = value.as_object().into_iter().flat_map(|members| members.keys());
    let outside = members.filter(|name| !["deletion_receipt", "deletion_receipts"].contains(&name.as_str()));
    Ok((receipts, outside.cloned().collect()))
}

/// The members of a DID document that are compared with nothing: all but its id and its signing keys.
fn beside_keys(value: &Value, document: &DidDocument) -> Vec<String> {
    let known = ["id", "type", "controller", "publicKeyJwk", "publicKeyMultibase", "expires", "revoked"];
    let is_known = |method: &Value| {
        method.as_object().is_some_and(|method| method.keys().all(|name| known.contains(&name.as_str())))
    };
    let methods = value["verificationMethod"].as_array().map(Vec::as_slice).unwrap_or_default();
    let only_keys = methods.len() == document.keys().len() && methods.iter().all(is_known);
    let members = value.as_object().into_iter().flat_map(|members| members.keys());
    members.filter(|name| *name != "id" && !(only_keys && *name == "verificationMethod")).cloned().collect()
}

/// Whether a file is a bundle.
pub(super) fn is_bundle(path: &Path, identity: Option<&Path>) -> Result<bool, CliError> {
    let failed = |e| unread(path, &e);
    let reader = bundle_file::open(path, identity).map_err(failed)?;
    let (head, _) = peek(reader, 64 << 10).map_err(failed)?;
    // The canonical form begins with the id; the format stands behind the documents, which may be long.
    let head = String::from_utf8_lossy(&head);
    Ok(head.starts_with("{\"bundle_id\":\"") || head.contains("\"format\":\"oap-memory-bundle/"))
}

/// The header, which is a bundle's first line.
pub(super) fn header(reader: impl std::io::Read) -> Result<Header, CliError> {
    let mut first = None;
    let read = Reader::read_all(reader, |_, _, line| {
        first = Some(line);
        ControlFlow::Break(())
    });
    read.map_err(|e| CliError::Other(e.to_string()))?;
    match first {
        Some(Ok(Line::Header(header))) => Ok(header),
        Some(Ok(_)) => Err(CliError::Proof("a bundle begins with its header".to_owned())),
        Some(Err(error)) => Err(CliError::Proof(error.to_string())),
        None => Err(CliError::Proof("it is empty".to_owned())),
    }
}
