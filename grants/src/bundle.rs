//! A whole bundle, checked line by line and as a whole (protocol section 8, `docs/bundle-v1.md`).

use crate::evidence::{self, TermsError};
use crate::grant::UnverifiedGrant;
use oap_identity::json::JsonError;
use oap_identity::time::MAX_SKEW;
use oap_identity::{Did, Documents, GrantId, Hash, ItemId, ReceiptId, Timestamp};
use oap_memory::bundle::{BundleError, Counts, Header, ItemLine, Line, Reader, Trailer};
use oap_memory::evidence::{EvidenceError, VerifiedItem};
use oap_memory::receipt::{Action, Receipt, ReceiptError, UnverifiedChain, item_tag};
use oap_memory::record::Status;
use oap_memory::unchecked::Unchecked;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

oap_memory::reasons! {
    /// Why a bundle, or a line of it, was refused.
    LineError {
        /// Another's item.
        #[error("item {0} is held by {1}, not by the bundle's principal")]
        Holder(ItemId, Did) = "bundle.holder",
        /// An item twice.
        #[error("item {0} appears twice")]
        RepeatedItem(ItemId) = "bundle.repeated_item",
        /// An item that must not leave.
        #[error("item {0}: exportable is false")]
        NotExportable(ItemId) = "bundle.not_exportable",
        /// An item of a scope that the header does not name.
        #[error("item {0}: its scope is not one of the header's")]
        Scope(ItemId) = "bundle.scope",
        /// Of a projected bundle: an item that is in no view.
        #[error("item {0} is {1}: a projected bundle has current items alone")]
        NotCurrent(ItemId, Status) = "bundle.not_current",
        /// Of a projected bundle: what its grantee must not have.
        #[error("item {0}: a projected bundle has no record and no superseded versions")]
        Whole(ItemId) = "bundle.whole_line",
        /// A replaced version that its chain does not have, or has as the one in force.
        #[error("item {0}: superseded: a version that its chain does not have replaced")]
        Superseded(ItemId) = "bundle.superseded",
        /// A replaced version twice.
        #[error("item {0}: superseded: a version appears twice")]
        RepeatedVersion(ItemId) = "bundle.repeated_version",
        /// A grant of another.
        #[error("grant {0} was not given by the bundle's principal")]
        Granter(GrantId) = "bundle.granter",
        /// A grant twice.
        #[error("grant {0} appears twice")]
        RepeatedGrant(GrantId) = "bundle.repeated_grant",
        /// A receipt of another.
        #[error("a receipt of another principal")]
        Principal = "bundle.receipt_principal",
        /// A link that another receipt of the bundle speaks against.
        #[error("item {0}: a link names a receipt that is about something else")]
        LinkReceipt(ItemId) = "bundle.link_receipt",
        /// A chain of receipts twice.
        #[error("the chain of receipts {0} appears twice")]
        RepeatedChain(String) = "bundle.repeated_chain",
        /// An item that changed after the bundle was finished.
        #[error("item {0}: its last link is later than finished_at")]
        Late(ItemId) = "bundle.late",
        /// From the future.
        #[error("{0} is in the future")]
        Future(&'static str) = "bundle.future",
        /// A line of a whole bundle in a projected one.
        #[error("a projected bundle has no {0}")]
        Projected(&'static str) = "bundle.projected",
        /// Lines that were refused.
        #[error("{0} line(s) were refused")]
        Lines(u64) = "bundle.lines",
    }
    within {
        /// The line, or the whole.
        #[error("{0}")]
        Bundle(#[from] BundleError),
        #[error("{0}")]
        Evidence(#[from] EvidenceError),
        #[error("{0}")]
        Grant(#[from] TermsError),
        #[error("{0}")]
        Receipt(#[from] ReceiptError),
    }
}

/// A bundle that was read to its end, and of which every line and the whole hold. Only
/// [`UnverifiedBundle::finish`] makes one.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the names say it")]
pub struct VerifiedBundle {
    pub header: Header,
    pub trailer: Trailer,
    /// Chains of receipts that came whole, each from `genesis` to a head.
    pub chains: u64,
    /// What was not checked, each once.
    pub unchecked: BTreeSet<Unchecked>,
}

/// A bundle that is being read.
pub struct UnverifiedBundle<'a> {
    documents: &'a dyn Documents,
    now: Timestamp,
    reader: Reader,
    counts: Counts,
    items: BTreeSet<ItemId>,
    /// Hash by hash, with the delegated ones that wait for their parents.
    grants: BTreeMap<Hash, Value>,
    delegated: Vec<Value>,
    names: BTreeSet<GrantId>,
    receipts: Option<UnverifiedChain>,
    chains: BTreeSet<String>,
    /// The receipts that the principal's links name, with what they must be about: action and tag.
    named: BTreeMap<(ReceiptId, ItemId, usize), (Action, String)>,
    /// The receipts that came along: action, and the tag of those that are about one version of an item.
    told: BTreeMap<ReceiptId, (String, String)>,
    /// Later links of other houses, whose receipts are not the principal's.
    foreign: usize,
    /// The last link of all, the skew of other houses' clocks taken off.
    latest: Option<(Timestamp, ItemId)>,
    records: u64,
    agents: u64,
    wrong: u64,
    unchecked: BTreeSet<Unchecked>,
}

impl<'a> UnverifiedBundle<'a> {
    /// A bundle that is checked with these documents, as of now.
    #[must_use]
    pub fn new(documents: &'a dyn Documents, now: Timestamp) -> Self {
        Self {
            documents,
            now,
            reader: Reader::default(),
            counts: Counts::default(),
            items: BTreeSet::new(),
            grants: BTreeMap::new(),
            delegated: Vec::new(),
            names: BTreeSet::new(),
            receipts: None,
            chains: BTreeSet::new(),
            named: BTreeMap::new(),
            told: BTreeMap::new(),
            foreign: 0,
            latest: None,
            records: 0,
            agents: 0,
            wrong: 0,
            unchecked: BTreeSet::new(),
        }
    }

    /// How many items, grants and receipts were read.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Reads a line with its line feed; `None` is one that was too long. Whatever it is, the bundle goes on.
    ///
    /// # Errors
    /// [`LineError`]; a bundle with such a line is never a [`VerifiedBundle`].
    pub fn line(&mut self, line: Option<&[u8]>) -> Result<(), LineError> {
        let checked = self.check(line);
        if checked.is_err() {
            self.wrong += 1;
        }
        checked
    }

    fn check(&mut self, line: Option<&[u8]>) -> Result<(), LineError> {
        let line = self.reader.take(line)?;
        let header = self.reader.header().ok_or(BundleError::Header)?.clone();
        match line {
            Line::Header(header) => {
                let late = header.created_at > self.now.plus(MAX_SKEW);
                if late { Err(LineError::Future("created_at")) } else { Ok(()) }
            }
            Line::Item(line) => {
                self.counts.items += 1;
                self.item(&line, &header)
            }
            Line::Grant { grant } => {
                self.counts.grants += 1;
                self.grant(grant, &header)
            }
            Line::Receipt { receipt } => {
                self.counts.receipts += 1;
                self.receipt(&receipt, &header)
            }
            Line::Trailer(_) => Ok(()),
        }
    }

    fn item(&mut self, line: &ItemLine, header: &Header) -> Result<(), LineError> {
        let item = oap_memory::evidence::item(&line.item, self.documents);
        let item = item.and_then(VerifiedItem::proved).and_then(|item| item.as_of(self.now))?;
        let id = item.item_id;
        if item.holder != header.principal {
            return Err(LineError::Holder(id, item.holder));
        }
        if !self.items.insert(id) {
            return Err(LineError::RepeatedItem(id));
        }
        let scope = line.item["scope_id"].as_str();
        if scope.is_some_and(|scope| !header.scopes.iter().any(|known| known.as_str() == scope)) {
            return Err(LineError::Scope(id));
        }
        if header.projected.is_some() {
            if line.record.is_some() || !line.superseded.is_empty() {
                return Err(LineError::Whole(id));
            }
            if item.status != Status::Current {
                return Err(LineError::NotCurrent(id, item.status));
            }
        } else if line.item["exportable"] == false {
            return Err(LineError::NotExportable(id));
        }
        let mut seen = BTreeSet::new();
        for text in &line.superseded {
            let seq = evidence_of(text, &item, self.documents)?;
            if seq == item.chain.version() {
                return Err(LineError::Superseded(id));
            }
            if !seen.insert(seq) {
                return Err(LineError::RepeatedVersion(id));
            }
        }
        self.links(&item, header);
        self.records += u64::from(line.record.is_some());
        self.unchecked
            .extend(item.unchecked.into_iter().filter(|what| !matches!(what, Unchecked::LinkReceipts(_))));
        Ok(())
    }

    /// Notes which receipts the links of an item name, and when the last one was made.
    fn links(&mut self, item: &VerifiedItem, header: &Header) {
        // One house has one clock; only the links of a former house are of another.
        let skew = if item.chain.moves().next().is_some() { MAX_SKEW } else { Duration::ZERO };
        let last = (item.chain.last().at.minus(skew), item.item_id);
        self.latest = Some(self.latest.map_or(last, |latest| latest.max(last)));
        for (number, link) in item.chain.links().iter().enumerate() {
            if link.actor == header.principal {
                let about = (Action::from(link.event), item_tag(item.item_id, link.commitment));
                self.named.insert((link.receipt, item.item_id, number), about);
            } else {
                self.foreign += usize::from(number > 0);
            }
        }
    }

    /// How many later links name a receipt that did not come along; those that did are about the link.
    fn link_receipts(&self) -> Result<usize, LineError> {
        let mut missing = self.foreign;
        for ((receipt, item, number), (action, tag)) in &self.named {
            let told = self.told.get(receipt);
            if told.is_some_and(|told| (told.0.as_str(), &told.1) != (action.as_str(), tag)) {
                return Err(LineError::LinkReceipt(*item));
            }
            // The first link's receipt stands beside it.
            missing += usize::from(told.is_none() && *number > 0);
        }
        Ok(missing)
    }

    fn grant(&mut self, document: Value, header: &Header) -> Result<(), LineError> {
        if header.projected.is_some() {
            return Err(LineError::Projected("grants"));
        }
        let unverified = UnverifiedGrant::parse(document.clone()).map_err(TermsError::from)?;
        let grant = unverified.unverified();
        let id = grant.grant_id;
        if grant.granter.principal != header.principal {
            return Err(LineError::Granter(id));
        }
        if !self.names.insert(id) {
            return Err(LineError::RepeatedGrant(id));
        }
        if grant.parent.is_some() {
            self.delegated.push(document.clone());
        } else {
            evidence::grant(&document, &[], self.documents, self.now)?;
        }
        let hash = Hash::of_canonical(&document).map_err(|e: JsonError| BundleError::from(e))?;
        self.grants.insert(hash, document);
        self.unchecked.insert(Unchecked::State(id));
        Ok(())
    }

    fn receipt(&mut self, receipt: &Value, header: &Header) -> Result<(), LineError> {
        if header.projected.is_some() {
            return Err(LineError::Projected("receipts"));
        }
        if receipt["previous_receipt_hash"] == oap_memory::receipt::GENESIS {
            self.end_chain()?;
        }
        let chain = self.receipts.get_or_insert_default();
        let verified = chain.push(receipt, self.documents)?;
        if verified.receipt.principal_did != header.principal {
            return Err(LineError::Principal);
        }
        if verified.receipt.timestamp > self.now.plus(MAX_SKEW) {
            return Err(LineError::Future("timestamp"));
        }
        let Receipt { receipt_id, action_id, mut provenance_tags_out, .. } = verified.receipt;
        let tag = if provenance_tags_out.len() == 1 { provenance_tags_out.pop() } else { None };
        self.told.insert(receipt_id, (action_id.unwrap_or_default(), tag.unwrap_or_default()));
        let (agents, others): (Vec<_>, Vec<_>) =
            verified.unchecked.into_iter().partition(|what| matches!(what, Unchecked::Agents(_)));
        self.agents += agents.len() as u64;
        self.unchecked.extend(others);
        Ok(())
    }

    fn end_chain(&mut self) -> Result<(), LineError> {
        if let Some(chain) = self.receipts.take() {
            let chain = chain.finish()?.chain;
            if self.chains.contains(&chain) {
                return Err(LineError::RepeatedChain(chain));
            }
            self.chains.insert(chain);
        }
        Ok(())
    }

    /// A delegated grant with its ancestors, which must have come along.
    fn delegated(&self, document: &Value) -> Result<(), LineError> {
        let mut ancestors = Vec::new();
        let mut next = document;
        while let Some(parent) = next["parent"].as_str() {
            let parent = parent.parse::<Hash>().ok().and_then(|hash| self.grants.get(&hash));
            next = parent.ok_or(TermsError::NoParent)?;
            ancestors.push(next.clone());
            if ancestors.len() > usize::from(crate::limits::MAX_DEPTH) {
                return Err(TermsError::Depth.into());
            }
        }
        ancestors.reverse();
        evidence::grant(document, &ancestors, self.documents, self.now)?;
        Ok(())
    }

    /// Checks the whole: that no line is missing, that every line held, and that receipts and links agree.
    ///
    /// # Errors
    /// [`LineError`].
    pub fn finish(mut self) -> Result<VerifiedBundle, LineError> {
        let chains = self.end_chain();
        let delegated: Result<(), LineError> =
            self.delegated.iter().try_for_each(|document| self.delegated(document));
        let header = self.reader.header().cloned();
        self.unchecked.extend(self.reader.dated(self.documents));
        let receipts = self.link_receipts();
        let trailer = self.reader.finish(self.documents)?;
        if trailer.finished_at > self.now.plus(MAX_SKEW) {
            return Err(LineError::Future("finished_at"));
        }
        chains?;
        delegated?;
        if self.wrong > 0 {
            return Err(LineError::Lines(self.wrong));
        }
        if let Some((at, item)) = self.latest
            && at > trailer.finished_at
        {
            return Err(LineError::Late(item));
        }
        let header = header.ok_or(BundleError::Header)?;
        let missing = receipts?;
        if missing > 0 {
            self.unchecked.insert(Unchecked::LinkReceipts(missing));
        }
        if let Some(projected) = &header.projected {
            self.unchecked.insert(Unchecked::Grant(projected.grant_id));
            self.unchecked.insert(Unchecked::State(projected.grant_id));
            self.unchecked.insert(Unchecked::Projection(projected.profile.clone()));
        }
        if self.records > 0 {
            self.unchecked.insert(Unchecked::Records(self.records));
        }
        if self.agents > 0 {
            self.unchecked.insert(Unchecked::Agents(self.agents));
        }
        let chains = self.chains.len() as u64;
        Ok(VerifiedBundle { header, trailer, chains, unchecked: self.unchecked })
    }
}

/// The place of a replaced version, once it is found to be one of the item's chain.
fn evidence_of(text: &str, item: &VerifiedItem, documents: &dyn Documents) -> Result<u32, LineError> {
    let claims = oap_memory::commitment::verify(text, documents).map_err(EvidenceError::from)?;
    oap_memory::evidence::check_place(&claims, item.chain.links())
        .map_err(|_| LineError::Superseded(item.item_id))?;
    Ok(claims.place().seq)
}
