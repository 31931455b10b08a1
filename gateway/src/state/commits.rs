//! Receipts: appended to their chain in the transaction that they attest to (protocol section 8).

use crate::error::{Corrupt, Error, Unavailable};
use crate::state::erasures::Ended;
use crate::state::gateway::Gateway;
use crate::state::keyring::Keyring;
use crate::state::owner::{Acting, Owner};
use crate::state::schema::{
    self, CHAIN_COUNT, CHAINS, KEYS, RECEIPT_PLACES, RECEIPTS, RECEIPTS_OF, ReceiptPlace, agent,
};
use crate::state::sources::Tag;
use oap_exchange::Durable;
use oap_identity::json::canonical;
use oap_identity::{DecisionId, Did, Hash, ItemId, ReceiptId, ScopeId, Timestamp};
use oap_memory::receipt::{Action, Decision, GENESIS, Outcome, Receipt, UnsignedReceipt};
use oap_store::{Rows, Tx};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::future::Future;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

/// The name of the chain of anonymous calls. No scope can have it.
pub const ANONYMOUS: &str = "@anonymous";

/// The name of the chain of what the owner's agents were given. No scope can have it.
pub const AGENTS: &str = "@agents";

/// What a running transaction appended to its chain. [`Writing::receipt`] alone makes one, and it does not outlive the
/// transaction: whether that becomes durable is not known yet.
#[derive(Debug)]
pub struct Appended<'tx, T> {
    value: T,
    transaction: PhantomData<fn(&'tx ()) -> &'tx ()>,
}

impl<T> Deref for Appended<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

/// What was appended in a transaction that is durable. [`Gateway::record`] alone makes one.
#[derive(Debug)]
pub struct Stored<T>(T);

impl<T> Stored<T> {
    /// What was recorded.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Stored<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl Durable for Stored<Receipt> {
    fn receipt(&self) -> &Receipt {
        &self.0
    }
}

/// The state of a chain.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Chain {
    /// Its number, the first part of its receipts' keys.
    pub index: u32,
    /// Its entries, heads included.
    pub length: u64,
    /// The hash of its last entry.
    pub tip: Option<Hash>,
    /// The time of its last entry.
    pub at: Timestamp,
}

/// A receipt that is about to be made.
#[derive(Debug, Clone)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Draft {
    /// Its id, where something names it already.
    pub id: Option<ReceiptId>,
    /// What was done, which says its type.
    pub action: Action,
    /// Who did it.
    pub agent: String,
    pub decision: DecisionId,
    pub outcome: Outcome,
    /// The rules that it rests on.
    pub rules: Vec<String>,
    /// What else the decision says.
    pub more: Map<String, Value>,
    /// The hash of what came in.
    pub input_hash: Option<Hash>,
    /// The hash of what went out.
    pub output_hash: Option<Hash>,
    /// What was disclosed or captured.
    pub tags: Vec<String>,
}

impl Gateway {
    /// A draft of an allowed action.
    #[must_use]
    pub fn draft(&self, action: Action, agent: &str) -> Draft {
        Draft {
            id: None,
            action,
            agent: agent.to_owned(),
            decision: DecisionId::new(self.clock.now(), &*self.random),
            outcome: Outcome::Allow,
            rules: Vec::new(),
            more: Map::new(),
            input_hash: None,
            output_hash: None,
            tags: Vec::new(),
        }
    }

    /// Runs a transaction of somebody whose standing it reads again; what it returns is durable when it is returned. During a lockdown
    /// there is none. What the owner asks for is committed by [`Gateway::commit_as`], what the house does by itself by
    /// [`Gateway::commit_own`].
    ///
    /// What a receipt rests on is read again inside, through [`Writing::tx`]: what is in memory can be behind by the
    /// transactions that are not durable yet. One that finds itself overtaken returns [`Error::Overtaken`], and its
    /// caller starts again.
    ///
    /// # Errors
    /// The transaction's own; [`Error::LockedDown`]; [`Error::Store`].
    pub async fn commit<T: Send + 'static>(
        self: &Arc<Self>,
        run: impl FnOnce(&mut Writing) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.commit_for(Acting::Caller, run).await
    }

    /// The same for the house itself: its sweeps, its start, a restore. It goes on during a lockdown.
    ///
    /// # Errors
    /// The transaction's own, or [`Error::Store`].
    pub async fn commit_own<T: Send + 'static>(
        self: &Arc<Self>,
        run: impl FnOnce(&mut Writing) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.commit_for(Acting::House, run).await
    }

    /// The same for the owner: whether the credential still holds is judged in the transaction.
    ///
    /// # Errors
    /// As [`Gateway::commit_own`]; [`Error::Owner`] where a rotation or a lockdown ended the credential, or its time is over.
    pub async fn commit_as<P, T: Send + 'static>(
        self: &Arc<Self>,
        owner: &Owner<P>,
        run: impl FnOnce(&mut Writing) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.commit_for(owner.into(), run).await
    }

    pub(crate) async fn commit_for<T: Send + 'static>(
        self: &Arc<Self>,
        acting: Acting,
        run: impl FnOnce(&mut Writing) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let gateway = self.clone();
        let actor = acting.agent().cloned();
        let transaction = move |tx: &mut Tx| {
            let (now, clock) = gateway.clock.now_in(tx)?;
            let keys = gateway.keys_in(tx)?;
            acting.still_may(&keys, clock)?;
            acting.stands(tx)?;
            let mut writing = Writing {
                tx,
                gateway: &gateway,
                keys,
                now,
                ended: Ended::default(),
                sources: None,
                contacts_changed: false,
                actor: actor.clone(),
                quiet: false,
            };
            let value = run(&mut writing)?;
            if writing.contacts_changed {
                writing.count_contacts()?;
            }
            let (ended, now) = (std::mem::take(&mut writing.ended), writing.now);
            gateway.clock.keep(tx, now)?;
            if !schema::AGENTS.written(tx).is_empty() {
                let gateway = gateway.clone();
                tx.on_commit(move || gateway.agent_keys.reload(&gateway.store));
            }
            if !ended.is_empty() {
                let gateway = gateway.clone();
                tx.on_commit(move || gateway.record_ended(ended, now));
            }
            Ok(value)
        };
        self.store.transact(transaction).await
    }

    /// Runs a transaction that appends a receipt which something rests on that leaves. What else it returns comes along.
    ///
    /// # Errors
    /// As [`Gateway::commit`].
    pub async fn record<T: Send + 'static>(
        self: &Arc<Self>,
        run: impl for<'tx> FnOnce(&mut Writing<'_, 'tx>) -> Result<(Appended<'tx, Receipt>, T), Error>
        + Send
        + 'static,
    ) -> Result<(Stored<Receipt>, T), Error> {
        self.record_for(Acting::Caller, run).await
    }

    /// The same for the owner, as [`Gateway::commit_as`].
    ///
    /// # Errors
    /// As [`Gateway::commit_as`].
    pub async fn record_as<P, T: Send + 'static>(
        self: &Arc<Self>,
        owner: &Owner<P>,
        run: impl for<'tx> FnOnce(&mut Writing<'_, 'tx>) -> Result<(Appended<'tx, Receipt>, T), Error>
        + Send
        + 'static,
    ) -> Result<(Stored<Receipt>, T), Error> {
        self.record_for(owner.into(), run).await
    }

    /// The same, for whoever acts.
    ///
    /// # Errors
    /// As [`Gateway::commit_as`]; those of an agent that is not there any more.
    pub(crate) async fn record_for<T: Send + 'static>(
        self: &Arc<Self>,
        acting: Acting,
        run: impl for<'tx> FnOnce(&mut Writing<'_, 'tx>) -> Result<(Appended<'tx, Receipt>, T), Error>
        + Send
        + 'static,
    ) -> Result<(Stored<Receipt>, T), Error> {
        let (receipt, more) = self
            .commit_for(acting, move |w| {
                let (appended, more) = run(w)?;
                Ok((appended.value, more))
            })
            .await?;
        Ok((Stored(receipt), more))
    }
}

impl Gateway {
    /// The keys as they are stored at this point of the order of commits: those in memory may be older.
    pub(crate) fn keys_in(&self, rows: &impl Rows) -> Result<Arc<Keyring>, Error> {
        let stored = KEYS.get(rows)?.ok_or(Corrupt::NoKeys)?;
        let known = self.keys();
        if known.is_stored_as(&stored) {
            return Ok(known);
        }
        Ok(Arc::new(Keyring::read(&self.principal, &stored)?))
    }
}

/// Times something is done again because another commit overtook it, before its caller is told to come back later.
const ATTEMPTS: usize = 64;

/// Does something until no other commit overtakes it between what it rests on and its own commit.
///
/// # Errors
/// Its own; [`Error::Unavailable`] when it is overtaken again and again.
pub async fn until_it_holds<T, F: Future<Output = Result<T, Error>>>(
    mut attempt: impl FnMut() -> F,
) -> Result<T, Error> {
    for _ in 0..ATTEMPTS {
        match attempt().await {
            Err(Error::Overtaken) => metrics::counter!("oap_commits_overtaken_total").increment(1),
            done => return done,
        }
    }
    Err(Error::Unavailable(Unavailable::Overtaken))
}

/// A running transaction of the gateway.
#[allow(missing_docs, reason = "the names say it")]
pub struct Writing<'a, 'tx> {
    /// The store's side.
    pub tx: &'a mut Tx<'tx>,
    pub gateway: &'a Arc<Gateway>,
    /// The keys in use, as they are stored at this point.
    pub keys: Arc<Keyring>,
    /// The gateway's clock, read once.
    pub now: Timestamp,
    /// What was ended for good, for the list that stands apart from backups.
    pub(crate) ended: Ended,
    /// The sources of items that this batch has written, once they were asked for.
    pub(crate) sources: Option<HashMap<Tag, ItemId>>,
    /// Whether the people of a contact changed.
    pub(crate) contacts_changed: bool,
    /// The agent of the owner's that it is made for, if it is one.
    pub(crate) actor: Option<Did>,
    /// Whether what becomes of entries is told of all together, and not one by one.
    pub(crate) quiet: bool,
}

impl<'tx> Writing<'_, 'tx> {
    /// Appends a receipt and the head that follows it. The last head of a group of commits is signed, before any of them is
    /// acknowledged.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Json`].
    pub fn receipt(&mut self, chain: &str, draft: Draft) -> Result<Appended<'tx, Receipt>, Error> {
        let mut state = self.chain(chain)?;
        self.append(chain, &mut state, draft)
    }

    /// The same for an event of an item, whose receipt nobody is given: it is signed when the batch is written, beside the transactions.
    ///
    /// # Errors
    /// As [`Writing::receipt`].
    pub(crate) fn receipt_beside(&mut self, chain: &str, draft: Draft) -> Result<ReceiptId, Error> {
        let mut state = self.chain(chain)?;
        let mut entry = self.entry(&state, draft);
        let unsigned = entry.unsigned()?;
        let (hash, written, keys) = (unsigned.hash(), unsigned.written(), self.keys.clone());
        let place = (state.index, state.length);
        RECEIPTS.put_later(self.tx, &place, &written, move |_| unsigned.signed(keys.current()))?;
        self.follow(chain, &mut state, &entry, hash)?;
        Ok(entry.receipt_id)
    }

    pub(crate) fn append(
        &mut self,
        chain: &str,
        state: &mut Chain,
        draft: Draft,
    ) -> Result<Appended<'tx, Receipt>, Error> {
        let mut entry = self.entry(state, draft);
        let hash = entry.sign(self.keys.current())?;
        RECEIPTS.put(self.tx, &(state.index, state.length), &canonical(&entry)?)?;
        self.follow(chain, state, &entry, hash)?;
        Ok(Appended { value: entry, transaction: PhantomData })
    }

    /// Makes a receipt of what is the next entry of a chain.
    fn entry(&self, state: &Chain, draft: Draft) -> Receipt {
        let gateway = self.gateway;
        let timestamp = self.now.max(state.at);
        Receipt {
            receipt_id: draft.id.unwrap_or_else(|| ReceiptId::new(timestamp, &*gateway.random)),
            kind: draft.action.kind(),
            timestamp,
            principal_did: gateway.principal.clone(),
            agent_did: draft.agent,
            tool_did: Some(gateway.principal.clone()),
            action_id: Some(draft.action.to_string()),
            input_hash: draft.input_hash,
            output_hash: draft.output_hash,
            policy_decisions: vec![Decision {
                id: draft.decision,
                outcome: draft.outcome,
                rules: draft.rules,
                more: draft.more,
            }],
            provenance_tags_out: draft.tags,
            previous_receipt_hash: state.tip.map_or_else(|| GENESIS.to_owned(), |tip| tip.to_string()),
            signatures: Vec::new(),
        }
    }

    /// Notes where an entry stands that was written, and appends its head.
    fn follow(&mut self, chain: &str, state: &mut Chain, entry: &Receipt, hash: Hash) -> Result<(), Error> {
        let place = (state.index, state.length);
        RECEIPT_PLACES.put(self.tx, &entry.receipt_id, &place)?;
        RECEIPTS_OF.put(self.tx, &(agent(&entry.agent_did), place), &())?;
        let gateway = self.gateway;
        let name = format!("{}#{chain}", gateway.principal);
        let head = entry.head(hash, &name, state.length + 1, &*gateway.random).unsigned()?;
        let place = (state.index, state.length + 1);
        RECEIPTS.put(self.tx, &place, &head.written())?;
        state.tip = Some(head.hash());
        state.length += 2;
        state.at = entry.timestamp;
        CHAINS.put(self.tx, &chain.to_owned(), state)?;
        self.sign_last(chain, place, head);
        Ok(())
    }

    /// Signs a head with the group of commits, unless another of the chain comes after it in the group.
    fn sign_last(&mut self, chain: &str, place: ReceiptPlace, head: UnsignedReceipt) {
        let keys = self.keys.clone();
        self.tx.at_last(chain, move |tx| RECEIPTS.put(tx, &place, &head.signed(keys.current())));
    }

    /// The state of a chain. A new one is opened by the gateway's own boot entry, so that no receipt that a
    /// counterparty may see follows `genesis`: that would say that nothing was captured before it.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Json`].
    pub fn chain(&mut self, name: &str) -> Result<Chain, Error> {
        if let Some(state) = CHAINS.get(self.tx, &name.to_owned())? {
            return Ok(state);
        }
        let index = u32::try_from(CHAIN_COUNT.count(self.tx)?).map_err(|_| Corrupt::TooManyChains)?;
        let mut state = Chain { index, length: 0, tip: None, at: Timestamp::from_millis(i64::MIN) };
        let boot = self.gateway.draft(Action::Boot, self.gateway.principal.as_str());
        self.append(name, &mut state, boot)?;
        Ok(state)
    }
}

/// The chain of a scope.
#[must_use]
pub fn chain_of(scope: &ScopeId) -> String {
    scope.to_string()
}
