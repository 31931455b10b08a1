//! Lockdown (OAP-CORE 22.3, protocol section 10): one row says whether the gateway answers nobody but its owner.
//!
//! The row is read in every transaction. So there is one moment, in the order of commits, from which on nothing is recorded for a
//! grantee, an agent or a stranger, however many grants there are; and what is not recorded does not leave. That the grants are revoked
//! one by one, each with its receipt, is done in steps after that moment, and before a lockdown can be lifted.

use crate::error::{Conflict, Error};
use crate::state::commits::{Writing, chain_of};
use crate::state::gateway::Gateway;
use crate::state::grant_book::GrantKey;
use crate::state::schema::{AGENTS, APPROVALS, EPOCH, GRANTS, LOCKDOWN, REVOKED};
use oap_identity::{Hash, ReceiptId, Timestamp, random};
use oap_memory::receipt::Action;
use oap_store::{Range, Rows};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

/// The last lockdown, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredLockdown {
    /// Since when.
    pub(crate) since: Timestamp,
    /// When the owner lifted it.
    pub(crate) lifted_at: Option<Timestamp>,
    /// The owner's own words. They are told to nobody else, and are in no receipt.
    pub(crate) reason: Option<String>,
    /// The receipt of it.
    pub(crate) receipt: ReceiptId,
    /// Grants that were not revoked before.
    pub(crate) grants: u32,
    /// Agents whose API keys it ended.
    pub(crate) agents: u32,
    /// Clients of OAuth whose approvals it ended.
    pub(crate) clients: u32,
}

impl StoredLockdown {
    /// Whether it lasts.
    pub(crate) const fn lasts(&self) -> bool {
        self.lifted_at.is_none()
    }
}

/// Whether a lockdown lasts.
pub(crate) fn lasts(rows: &impl Rows) -> Result<bool, Error> {
    Ok(LOCKDOWN.get(rows)?.is_some_and(|lockdown| lockdown.lasts()))
}

/// That others than the owner are answered.
///
/// # Errors
/// [`Error::LockedDown`].
pub(crate) fn is_open(rows: &impl Rows) -> Result<(), Error> {
    if lasts(rows)? { Err(Error::LockedDown) } else { Ok(()) }
}

impl Gateway {
    /// Whether a lockdown lasts, as last committed: what is decided by it is decided again in a transaction.
    #[must_use]
    pub fn is_locked_down(&self) -> bool {
        self.locked_down.load(Ordering::Acquire)
    }

    /// That others than the owner are answered, where no transaction says so.
    ///
    /// # Errors
    /// [`Error::LockedDown`].
    pub(crate) fn is_open(&self) -> Result<(), Error> {
        if self.is_locked_down() { Err(Error::LockedDown) } else { Ok(()) }
    }
}

impl Writing<'_, '_> {
    /// That something may be made that gives access: nothing is while a lockdown lasts.
    ///
    /// # Errors
    /// [`Conflict::LockedDown`].
    pub(crate) fn gives_access(&self) -> Result<(), Error> {
        if lasts(self.tx)? { Err(Conflict::LockedDown.into()) } else { Ok(()) }
    }

    /// Locks the gateway down: from this transaction on nobody but the owner is answered. Every trust token, API key and approval is
    /// ended here; the grants count no more, and are revoked one by one afterwards. A lockdown that lasts already ends what is there again.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub(crate) fn lock_down(&mut self, reason: Option<String>) -> Result<StoredLockdown, Error> {
        // What ends credentials is not held up by a full disk.
        self.tx.use_reserve();
        let before = LOCKDOWN.get(self.tx)?.filter(StoredLockdown::lasts);
        let agents = self.end_api_keys()?;
        let clients = self.end_approvals()?;
        self.end_devices()?;
        let grants = self.not_revoked()?;
        // Whoever restores a backup from before revokes them, whether the steps came to their end here or not.
        self.ended.grants.extend(grants.iter().map(|key| key.id()));
        let gateway = self.gateway.clone();
        EPOCH.put(self.tx, &Hash::of(&random::bytes::<32>(&*gateway.random)))?;
        let mut draft = gateway.draft(Action::Lockdown, gateway.principal.as_str());
        draft.rules = vec!["principal".to_owned()];
        let counts = [("grants", grants.len()), ("agents", agents), ("clients", clients)];
        draft.more.extend(counts.map(|(name, count)| (name.to_owned(), json!(count))));
        let receipt = self.receipt(&chain_of(&gateway.config.default_scope), draft)?.receipt_id;
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let stored = match before {
            None => StoredLockdown {
                since: self.now,
                lifted_at: None,
                reason,
                receipt,
                grants: number(grants.len()),
                agents: number(agents),
                clients: number(clients),
            },
            Some(before) => StoredLockdown {
                reason: reason.or(before.reason),
                receipt,
                agents: before.agents.saturating_add(number(agents)),
                clients: before.clients.saturating_add(number(clients)),
                ..before
            },
        };
        LOCKDOWN.put(self.tx, &stored)?;
        self.tx.on_commit(move || {
            gateway.locked_down.store(true, Ordering::Release);
            gateway.jobs.cancel_all();
            gateway.views.clear();
            gateway.corpora.clear();
            gateway.concluded.clear();
            gateway.brains.clear();
            if let Some(home) = &gateway.home {
                home.credential_ended(&gateway);
            }
        });
        Ok(stored)
    }

    /// Lets the gateway answer again. Nothing that was ended comes back.
    ///
    /// # Errors
    /// [`Conflict::NotLockedDown`]; [`Error::Overtaken`] where a grant is not revoked yet.
    pub(crate) fn lift_lockdown(&mut self) -> Result<StoredLockdown, Error> {
        let lasting = LOCKDOWN.get(self.tx)?.filter(StoredLockdown::lasts);
        let mut stored = lasting.ok_or(Conflict::NotLockedDown)?;
        if !self.not_revoked()?.is_empty() {
            return Err(Error::Overtaken);
        }
        stored.lifted_at = Some(self.now);
        LOCKDOWN.put(self.tx, &stored)?;
        let gateway = self.gateway.clone();
        let mut draft = gateway.draft(Action::LiftLockdown, gateway.principal.as_str());
        draft.rules = vec!["principal".to_owned()];
        draft.more.insert("lockdown".to_owned(), json!(stored.receipt));
        self.receipt(&chain_of(&gateway.config.default_scope), draft)?;
        self.tx.on_commit(move || gateway.locked_down.store(false, Ordering::Release));
        Ok(stored)
    }

    /// The grants that are not revoked, as they stand here.
    fn not_revoked(&self) -> Result<Vec<GrantKey>, Error> {
        let stored = GRANTS.keys(&self.gateway.store, Range::all());
        let mut known: BTreeSet<GrantKey> = stored.collect::<Result<_, _>>()?;
        known.extend(GRANTS.written(self.tx));
        let mut left = Vec::new();
        for key in known {
            if GRANTS.contains(self.tx, &key)? && !REVOKED.contains(self.tx, &key)? {
                left.push(key);
            }
        }
        Ok(left)
    }

    /// Ends the API key of every agent; of how many.
    fn end_api_keys(&mut self) -> Result<usize, Error> {
        let stored = AGENTS.keys(&self.gateway.store, Range::all());
        let mut known: BTreeSet<_> = stored.collect::<Result<_, _>>()?;
        known.extend(AGENTS.written(self.tx));
        let mut ended = 0;
        for did in known {
            let Some(mut agent) = AGENTS.get(self.tx, &did)? else { continue };
            if agent.key.take().is_some() {
                AGENTS.put(self.tx, &did, &agent)?;
                ended += 1;
            }
        }
        Ok(ended)
    }

    /// Ends every approval of a client, with its tokens; how many.
    fn end_approvals(&mut self) -> Result<usize, Error> {
        let stored = APPROVALS.keys(&self.gateway.store, Range::all());
        let mut known: BTreeSet<[u8; 16]> = stored.collect::<Result<_, _>>()?;
        known.extend(APPROVALS.written(self.tx));
        let mut ended = 0;
        for key in known {
            if APPROVALS.contains(self.tx, &key)? {
                APPROVALS.delete(self.tx, &key);
                ended += 1;
            }
        }
        Ok(ended)
    }
}
