//! The audit log and its three audiences (protocol section 8).

mod newest;

use crate::api::Document;
use crate::api::audit::Receipts;
pub use crate::api::audit::{AuditQuery, ChainInfo};
use crate::error::{Corrupt, Error, MemberError};
use crate::service::Audit;
use crate::state::commits::{AGENTS, ANONYMOUS, Chain};
use crate::state::gateway::Gateway;
use crate::state::jobs::Progress;
use crate::state::keyring::Keyring;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use crate::state::schema::{self, CHAINS, RECEIPT_PLACES, RECEIPTS, RECEIPTS_OF, ReceiptPlace};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, Mac};
use newest::Newest;
use oap_federation::ack::Countersignature;
use oap_identity::{Did, Hash, ItemId, ReceiptId};
use oap_memory::receipt::{Action, Receipt, ReceiptSignature, VerifiedReceipts, verify_chain};
use oap_store::{Range, Store, StoreError};
use serde_json::Value;
use sha2::Sha256;
use std::collections::BTreeMap;

impl AuditQuery {
    /// Checks what the types do not.
    fn check(&self) -> Result<(), Error> {
        let texts =
            [("grantee", &self.grantee), ("principal_did", &self.principal_did), ("chain", &self.chain)];
        match texts.into_iter().find(|(_, text)| text.as_ref().is_some_and(|t| t.len() > MAX_AUDIT_TEXT)) {
            Some((name, _)) => Err(Error::Member(name, MemberError::TooLong(MAX_AUDIT_TEXT))),
            None if !(1..=MAX_AUDITED).contains(&self.limit()) => {
                Err(Error::Member("limit", MemberError::Number { most: MAX_AUDITED, of: "receipts" }))
            }
            None => Ok(()),
        }
    }

    fn limit(&self) -> usize {
        self.limit.unwrap_or(100)
    }

    fn admits(&self, receipt: &Receipt) -> bool {
        let decision = receipt.policy_decisions.first();
        let grant = || decision.and_then(|d| d.more.get("consumed_grant_id")).and_then(Value::as_str);
        let about = |item: ItemId| {
            let prefix = format!("{item}@");
            receipt.provenance_tags_out.iter().any(|tag| tag.starts_with(&prefix))
        };
        receipt.head_length().is_none()
            && self.since.is_none_or(|since| receipt.timestamp >= since)
            && self.grantee.as_ref().is_none_or(|grantee| receipt.agent_did == *grantee)
            && self.grant_id.is_none_or(|id| grant() == Some(&id.to_string()))
            && self.item_id.is_none_or(about)
    }
}

/// Receipts that were asked for.
#[derive(Debug)]
pub struct Listed {
    /// The receipts.
    pub receipts: Vec<Receipt>,
    /// The last one that was looked at, where there is more behind it.
    pub next: Option<ReceiptId>,
}

impl Receipts {
    /// Receipts as they are answered.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for one that has no JSON form; none in practice.
    pub(crate) fn of(Listed { receipts, next }: Listed) -> Result<Self, Error> {
        let document = |receipt| Ok(Document::of(serde_json::to_value(&receipt)?, receipt));
        let receipts = receipts.into_iter().map(document).collect::<Result<_, Error>>()?;
        Ok(Self { receipts, next })
    }
}

impl From<Vec<Receipt>> for Listed {
    fn from(receipts: Vec<Receipt>) -> Self {
        Self { receipts, next: None }
    }
}

impl<'a> Audit<'a> {
    /// What the owner sees: everything, newest first; or one chain's entries in order, with its heads. At most [`MAX_LOOKED_AT`] receipts
    /// are looked at.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown chain; [`Error::Member`] for an unknown place to go on from.
    pub fn audit_owner(self, _: &Owner<impl Permits<Admin>>, query: &AuditQuery) -> Result<Listed, Error> {
        query.check()?;
        if let (Some(name), Some(from)) = (&query.chain, query.from) {
            let (_, chain) = self.chain(name)?;
            let receipts = self.entries(&chain, from).take(query.limit()).collect::<Result<_, _>>()?;
            return Ok(Listed { receipts, next: None });
        }
        let wanted = |name: &str| query.chain.as_ref().is_none_or(|wanted| *wanted == name);
        let (mut receipts, mut last) = (Vec::new(), None);
        for (looked_at, receipt) in Newest::new(self, wanted, query.before)?.enumerate() {
            let receipt = receipt?;
            if query.since.is_some_and(|since| receipt.timestamp < since) {
                break;
            }
            if looked_at == MAX_LOOKED_AT || receipts.len() == query.limit() {
                return Ok(Listed { receipts, next: last });
            }
            last = Some(receipt.receipt_id);
            if query.admits(&receipt) {
                receipts.push(receipt);
            }
        }
        Ok(Listed { receipts, next: None })
    }

    /// The receipt of the last query of a grantee, among the last [`MAX_LOOKED_AT`] receipts of each scope.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub(crate) fn last_query(self) -> Result<Option<Receipt>, Error> {
        let mut last: Option<Receipt> = None;
        for (_, chain) in self.0.chains()?.into_iter().filter(|(name, _)| name != ANONYMOUS && name != AGENTS)
        {
            for receipt in self.newest(&chain, None).take(MAX_LOOKED_AT) {
                let receipt = receipt?;
                if last.as_ref().is_some_and(|last| last.timestamp >= receipt.timestamp) {
                    break;
                }
                if receipt.action_id.as_deref() == Some(Action::Query.as_str()) {
                    last = Some(receipt);
                    break;
                }
            }
        }
        Ok(last)
    }

    /// What a grantee sees: the receipts that name it in all chains, newest first; of these where `only` names a grant those under it.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub fn audit_grantee(
        self,
        grantee: &Did,
        only: Option<Hash>,
        query: &AuditQuery,
    ) -> Result<Vec<Receipt>, Error> {
        let only = only.map(|grant| grant.to_string());
        let is_under = |receipt: &Receipt| {
            let decision = receipt.policy_decisions.first();
            let grant = decision.and_then(|decision| decision.more.get("grant_hash")).and_then(Value::as_str);
            only.is_none() || only.as_deref() == grant
        };
        query.check()?;
        // The newest of each chain that was not looked at, and what is before it there.
        let (mut newest, mut read) = (Vec::new(), 0);
        for (_, chain) in self.0.chains()? {
            let mut before = places_of(&self.0.store, grantee, &chain);
            if let Some(receipt) = self.first_of(grantee, &mut before, &mut read)? {
                newest.push((receipt, before));
            }
        }
        let (mut found, mut looked_at) = (Vec::new(), 0);
        while found.len() < query.limit() && looked_at < MAX_LOOKED_AT {
            let last = newest.iter().enumerate().max_by_key(|(_, (receipt, _))| receipt.timestamp);
            let Some((chain, _)) = last else { break };
            let (receipt, mut before) = newest.swap_remove(chain);
            if let Some(next) = self.first_of(grantee, &mut before, &mut read)? {
                newest.push((next, before));
            }
            if !is_under(&receipt) {
                continue;
            }
            looked_at += 1;
            if query.admits(&receipt) {
                found.push(receipt);
            }
        }
        Ok(found)
    }

    /// The first receipt of an agent in places that may be another's, too; none once so many are read as may be.
    fn first_of(
        self,
        agent: &Did,
        places: &mut impl Iterator<Item = Result<ReceiptPlace, StoreError>>,
        read: &mut usize,
    ) -> Result<Option<Receipt>, Error> {
        for place in places.by_ref() {
            if *read == MAX_READ {
                return Ok(None);
            }
            *read += 1;
            let receipt = self.receipt_at(place?)?;
            if receipt.agent_did == agent.as_str() {
                return Ok(Some(receipt));
            }
        }
        Ok(None)
    }

    /// What anybody sees: of the last [`MAX_PUBLIC`] receipts of the anonymous chain those of calls that claimed a principal, or all
    /// without one; the newest of them, oldest first.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub fn audit_public(self, query: &AuditQuery) -> Result<Vec<Receipt>, Error> {
        query.check()?;
        let chain = CHAINS.get(&self.0.store, &ANONYMOUS.to_owned())?.ok_or(Error::NotFound)?;
        let claimed = query.principal_did.as_ref().map(|did| self.pseudonym(did));
        let mut found = Vec::new();
        for receipt in self.newest(&chain, None).take(MAX_PUBLIC) {
            let receipt = receipt?;
            let fits = match &claimed {
                None => true,
                Some(claimed) => receipt.policy_decisions.first().is_some_and(|decision| {
                    decision.more.get("asserted_principal").and_then(Value::as_str) == Some(claimed)
                }),
            };
            if fits && query.since.is_none_or(|since| receipt.timestamp >= since) {
                found.push(receipt);
            }
            if found.len() == query.limit() {
                break;
            }
        }
        found.reverse();
        Ok(found)
    }

    /// The receipt of an id, with nobody's right to it checked.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub(crate) fn receipt(self, id: ReceiptId) -> Result<Receipt, Error> {
        let place = RECEIPT_PLACES.get(&self.0.store, &id)?.ok_or(Error::NotFound)?;
        self.receipt_at(place)
    }

    /// Whether a receipt is one of this gateway's, as it stands in the log: to the byte, with at least one signature and
    /// none that the log does not have. A forged, changed or stripped one is told like one that never was.
    ///
    /// # Errors
    /// [`Error::Member`] for what is no receipt; [`Error::NotFound`].
    pub fn verify_receipt(self, given: &Value) -> Result<ReceiptId, Error> {
        let parsed = given["receipt_id"].as_str().and_then(|id| id.parse::<ReceiptId>().ok());
        let id = parsed.ok_or_else(|| Error::Member("receipt_id", MemberError::NoReceiptId))?;
        let signatures = given["signatures"].as_array().filter(|signatures| !signatures.is_empty());
        let signatures = signatures.ok_or_else(|| Error::Member("signatures", MemberError::NoSignature))?;
        let mut stored = serde_json::to_value(self.receipt(id)?).map_err(|_| Error::NotFound)?;
        let known = stored["signatures"].as_array().cloned().unwrap_or_default();
        stored["signatures"] = given["signatures"].clone();
        if stored == *given && signatures.iter().all(|signature| known.contains(signature)) {
            return Ok(id);
        }
        Err(Error::NotFound)
    }

    /// Adds a grantee's signature to a receipt that names it: a joint receipt (RFC 0010 A.7.1). The receipt's hash
    /// does not cover signatures, so the chain stays as it is. By a letter it is judged alike ([`Countersignature::verify`]).
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown receipt, another's, or a signature that does not verify: the same answer.
    pub async fn countersign(self, id: ReceiptId, signature: ReceiptSignature) -> Result<Receipt, Error> {
        let receipt = self.receipt(id)?;
        if receipt.agent_did != signature.by.did().as_str() {
            return Err(Error::NotFound);
        }
        let grantee = self.0.document(signature.by.did()).await.map_err(|_| Error::NotFound)?;
        let signed = Countersignature { receipt: id, receipt_hash: receipt.hash()?, signature };
        signed.verify(&receipt, &grantee).map_err(|_| Error::NotFound)?;
        let signature = signed.signature;
        let stored = self
            .0
            .commit(move |w| {
                let place = RECEIPT_PLACES.get(w.tx, &id)?.ok_or(Error::NotFound)?;
                let bytes = RECEIPTS.get(w.tx, &place)?.ok_or(Error::NotFound)?;
                let mut receipt: Receipt = serde_json::from_slice(&bytes)?;
                if !receipt.signatures.iter().any(|known| known.by.did() == signature.by.did()) {
                    receipt.signatures.push(signature);
                    RECEIPTS.put(w.tx, &place, &oap_identity::json::canonical(&receipt)?)?;
                }
                Ok(receipt)
            })
            .await?;
        Ok(stored)
    }

    /// Verifies every chain from its first entry to its last.
    ///
    /// # Errors
    /// [`Error::Corrupt`], naming the chain and the entry; [`Error::Cancelled`].
    pub fn verify_audit(
        self,
        _: &Owner<impl Permits<Admin>>,
        progress: &Progress,
    ) -> Result<Vec<ChainInfo>, Error> {
        let info = |(chain, verified): (String, VerifiedReceipts)| ChainInfo {
            chain,
            length: verified.length,
            tip: Some(verified.tip),
            at: verified.at,
        };
        Ok(self.verified_chains(progress)?.into_iter().map(info).collect())
    }

    /// The same, for whoever looks the house over.
    ///
    /// # Errors
    /// As [`Audit::verify_audit`].
    pub(crate) fn verified_chains(
        self,
        progress: &Progress,
    ) -> Result<BTreeMap<String, VerifiedReceipts>, Error> {
        let chains = self.0.chains()?;
        // After the chains: these know whoever signed of them, and a key in memory may be behind.
        let mut keys = Gateway::stored_keys(&self.0.store, &self.0.principal)?;
        for (_, chain) in &chains {
            progress.expect(usize::try_from(chain.length).unwrap_or(usize::MAX));
        }
        let mut verified = BTreeMap::new();
        for (name, chain) in chains {
            let result = loop {
                match self.verified_chain(&name, &chain, &keys, progress) {
                    // What it has may have been signed anew meanwhile, with a key that is new.
                    Err(Error::Corrupt(fault @ Corrupt::Chain(..))) => {
                        let now = Gateway::stored_keys(&self.0.store, &self.0.principal)?;
                        if now.encoded() == keys.encoded() {
                            return Err(fault.into());
                        }
                        keys = now;
                    }
                    result => break result?,
                }
            };
            verified.insert(name, result);
        }
        Ok(verified)
    }

    /// Verifies the entries that a chain had when it was read; it may have grown since.
    fn verified_chain(
        self,
        name: &str,
        chain: &Chain,
        keys: &Keyring,
        progress: &Progress,
    ) -> Result<VerifiedReceipts, Error> {
        let mut failed = None;
        let length = usize::try_from(chain.length).unwrap_or(usize::MAX);
        let entries = self.entries(chain, 0).take(length).map(|entry| progress.step().and(entry));
        let entries = entries.map_while(|entry| match entry {
            Ok(entry) => serde_json::to_value(entry).ok(),
            Err(error) => {
                failed = Some(error);
                None
            }
        });
        let result = verify_chain(entries, keys.document());
        if let Some(error) = failed {
            return Err(error);
        }
        let result = result.map_err(|e| Corrupt::Chain(name.to_owned(), e))?;
        let is_whole = result.length == chain.length && Some(result.tip) == chain.tip;
        if !is_whole || self.has_more_than_it_says(name, chain)? {
            return Err(Corrupt::ChainLength(name.to_owned()).into());
        }
        Ok(result)
    }

    /// Whether entries follow the one that is the last of a chain. The last entry is read first: a chain only grows, and says so
    /// in the commit that it grows with.
    fn has_more_than_it_says(self, name: &str, chain: &Chain) -> Result<bool, Error> {
        let last =
            RECEIPTS.keys(&self.0.store, Range::under(&chain.index).descending()).next().transpose()?;
        let says = CHAINS.get(&self.0.store, &name.to_owned())?.map_or(0, |now| now.length);
        Ok(last.is_some_and(|(_, number)| number >= says))
    }

    /// Every chain.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub fn chain_list(self, _: &Owner<impl Permits<Admin>>) -> Result<Vec<ChainInfo>, Error> {
        let info = |(chain, state): (String, Chain)| ChainInfo {
            chain,
            length: state.length,
            tip: state.tip,
            at: state.at,
        };
        Ok(self.0.chains()?.into_iter().map(info).collect())
    }

    /// The keyed hash under which an asserted, unproven DID is written down.
    #[must_use]
    pub fn pseudonym(self, did: &str) -> String {
        let keys = self.0.keys();
        let mut mac = <Hmac<Sha256> as Mac>::new_from_slice(keys.pseudonym_key())
            .unwrap_or_else(|_| unreachable!("HMAC takes a key of any length"));
        mac.update(did.as_bytes());
        format!("hmac-sha256:{}", URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()))
    }

    fn chain(self, name: &str) -> Result<(String, Chain), Error> {
        let name = name.to_owned();
        let found = CHAINS.get(&self.0.store, &name)?;
        found.map(|chain| (name, chain)).ok_or(Error::NotFound)
    }

    /// The entries of a chain from a number on, heads included.
    fn entries(self, chain: &Chain, from: u64) -> impl Iterator<Item = Result<Receipt, Error>> {
        let range = Range::under(&chain.index).from(&(chain.index, from));
        let pairs = RECEIPTS.range(&self.0.store, range);
        pairs.map(|pair| Ok(serde_json::from_slice(&pair?.1)?))
    }

    /// The receipts of a chain, or of so many of its first entries, newest first, heads left out.
    fn newest(
        self,
        chain: &Chain,
        entries: Option<u64>,
    ) -> impl Iterator<Item = Result<Receipt, Error>> + use<'a> {
        let range = Range::under(&chain.index).descending();
        let range = match entries {
            None => Some(range),
            Some(entries) => entries.checked_sub(1).map(|last| range.from(&(chain.index, last))),
        };
        let pairs = range.map(|range| RECEIPTS.range(&self.0.store, range)).into_iter().flatten();
        pairs.map(|pair| Ok(serde_json::from_slice(&pair?.1)?)).filter(|entry: &Result<Receipt, Error>| {
            entry.as_ref().map_or(true, |receipt| receipt.head_length().is_none())
        })
    }

    pub(crate) fn receipt_at(self, place: ReceiptPlace) -> Result<Receipt, Error> {
        let bytes = RECEIPTS.get(&self.0.store, &place)?.ok_or(Error::NotFound)?;
        Ok(serde_json::from_slice(&bytes)?)
    }
}

/// Where the receipts of an agent are in a chain, the last one first.
fn places_of<'a>(
    store: &'a Store,
    agent: &Did,
    chain: &Chain,
) -> impl Iterator<Item = Result<ReceiptPlace, StoreError>> + use<'a> {
    let (agent, index) = (schema::agent(agent.as_str()), chain.index);
    let range = Range::under(&agent).from(&(agent, (index, u64::MAX))).descending();
    let places = RECEIPTS_OF.keys(store, range).map(|key| Ok(key?.1));
    places.take_while(move |place| place.as_ref().map_or(true, |(chain, _)| *chain == index))
}

/// How many receipts of the end of the public log anybody may read: so many are looked at, whatever is asked for.
pub const MAX_PUBLIC: usize = 100;
/// How many of its receipts a grantee's question looks at, newest first: where the caller is shown one grant's alone, of those. How many
/// receipts one of the owner's looks at, which goes on behind the last of them; the owner's question for the last query, of each scope.
pub const MAX_LOOKED_AT: usize = 2_000;
/// How many receipts are read for a grantee's question at most, whatever is looked at.
pub const MAX_READ: usize = 20_000;
/// Most receipts of one answer; a question for more, or for none, is refused.
pub const MAX_AUDITED: usize = 1_000;
/// Longest text of a question, in bytes: that of a DID or the name of a chain.
pub const MAX_AUDIT_TEXT: usize = 512;
