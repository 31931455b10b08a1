//! Whose keys a proof is checked with.

use super::{CliError, Global, output};
use crate::system::config::Config;
use crate::system::home::resolver;
use oap_client::ClientError;
use oap_identity::{Did, DidDocument};
use oap_memory::bundle::Header;
use serde_json::Value;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

/// Documents, by DID.
pub(super) type Known = BTreeMap<Did, Arc<DidDocument>>;

/// What the caller believes.
#[derive(clap::Args)]
pub(super) struct Trust {
    /// A DID document to check with, instead of the published one; may be given several times
    #[arg(long, value_name = "FILE")]
    pub(super) did_document: Vec<PathBuf>,
    /// Of bundles: believe the DID documents that it brings along, where they cannot be resolved
    #[arg(long)]
    pub(super) trust_bundle: bool,
}

impl Trust {
    /// Whether the caller says anything.
    pub(super) fn is_given(&self) -> bool {
        self.trust_bundle || !self.did_document.is_empty()
    }

    /// The documents that the bundle is checked with: given ones, then resolved ones, then, where the owner says so, those
    /// that it brings.
    pub(super) async fn documents(
        &self,
        global: &Global,
        header: &Header,
    ) -> Result<(Vec<Value>, Known), CliError> {
        let mut given = BTreeMap::new();
        for path in &self.did_document {
            let document = output::read_json(path)?;
            given.insert(document["id"].as_str().unwrap_or_default().to_owned(), document);
        }
        let config = Config::load(global.home().path(), &global.flags())?;
        let resolver = resolver(&config, Arc::new(crate::system::clock::SystemClock))?;
        let (mut documents, mut known) = (Vec::new(), BTreeMap::new());
        for brought in &header.documents {
            let id = brought["id"].as_str().unwrap_or_default();
            let did: Did = id.parse().map_err(|_| CliError::Proof(format!("{id:?} is no DID")))?;
            let parse = |document: &Value| {
                DidDocument::parse(document.to_string().as_bytes(), &did)
                    .map_err(|e| CliError::Proof(format!("the document of {did}: {e}")))
            };
            let (raw, parsed) = if let Some(document) = given.get(id) {
                (document.clone(), Arc::new(parse(document)?))
            } else {
                match resolver.resolve(&did).await {
                    // What was resolved is what counts; the former house's own document is kept in its form.
                    Ok(resolved) if same_keys(&resolved, &parse(brought)?) => (brought.clone(), resolved),
                    Ok(_) => {
                        return Err(CliError::Proof(format!(
                            "{did} publishes other keys than the bundle says; name the document that you trust with \
                             --did-document"
                        )));
                    }
                    Err(_) if self.trust_bundle => (brought.clone(), Arc::new(parse(brought)?)),
                    Err(error) => {
                        return Err(CliError::Other(format!(
                            "{error}; name its document with --did-document, or believe the bundle with --trust-bundle"
                        )));
                    }
                }
            };
            documents.push(raw);
            known.insert(did, parsed);
        }
        Ok((documents, known))
    }
}

/// The documents of those who signed something: given ones, then resolved ones.
pub(super) async fn resolved(
    global: &Global,
    given: &[PathBuf],
    dids: BTreeSet<Did>,
) -> Result<Known, CliError> {
    if dids.is_empty() {
        return Err(CliError::Proof("it names no principal".to_owned()));
    }
    let mut known = Known::new();
    for path in given {
        let bytes = output::read(path)?;
        let refused = |e: String| CliError::File(path.clone(), e);
        let raw = oap_identity::json::parse(&bytes).map_err(|e| refused(e.to_string()))?;
        let did: Did = raw["id"].as_str().unwrap_or_default().parse().map_err(|_| refused("no id".into()))?;
        let document = DidDocument::parse(&bytes, &did).map_err(|e| refused(e.to_string()))?;
        known.insert(did, Arc::new(document));
    }
    if dids.iter().all(|did| known.contains_key(did)) {
        return Ok(known);
    }
    let config = Config::load(global.home().path(), &global.flags())?;
    let resolver = resolver(&config, Arc::new(crate::system::clock::SystemClock))?;
    for did in dids {
        if let Entry::Vacant(place) = known.entry(did) {
            let document = resolver.resolve(place.key()).await.map_err(|error| {
                let error = ClientError::from(error);
                CliError::Other(format!("{error}; --did-document FILE names a document to check with"))
            })?;
            place.insert(document);
        }
    }
    Ok(known)
}

/// Adds the documents of those whose signature may stay unchecked, where they can be had.
pub(super) async fn optional(
    global: &Global,
    known: &mut Known,
    dids: BTreeSet<Did>,
) -> Result<(), CliError> {
    if dids.iter().all(|did| known.contains_key(did)) {
        return Ok(());
    }
    let config = Config::load(global.home().path(), &global.flags())?;
    let resolver = resolver(&config, Arc::new(crate::system::clock::SystemClock))?;
    for did in dids {
        if let Entry::Vacant(place) = known.entry(did)
            && let Ok(document) = resolver.resolve(place.key()).await
        {
            place.insert(document);
        }
    }
    Ok(())
}

/// Whether the bundle's document has no key that the published one does not have.
fn same_keys(published: &DidDocument, brought: &DidDocument) -> bool {
    brought
        .keys()
        .iter()
        .all(|key| published.key(key.kid()).is_some_and(|known| known.public() == key.public()))
}
