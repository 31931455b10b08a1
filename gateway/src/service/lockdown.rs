//! Lockdown: begun, carried to its end, shown, lifted. What it is is in [`crate::state::lockdown`].

use crate::api::lockdown::{Lockdown, LockdownOrder, LockdownState, LockedDown};
use crate::error::{Error, MemberError};
use crate::service::doctor::Finding;
use crate::service::{Lockdowns, notices};
use crate::state::commits::until_it_holds;
use crate::state::grant_book::GrantEntry;
use crate::state::lockdown::{self, StoredLockdown};
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use crate::state::schema::LOCKDOWN;
use crate::system::tasks::joined;
use oap_memory::item::{MAX_SHORT, short_text};

/// Grants that one transaction revokes: its receipts are some hundred milliseconds of work, for which nobody else has to wait longer.
pub const REVOKED_AT_ONCE: usize = 200;

impl Lockdowns<'_> {
    /// Locks the gateway down. When this returns nobody but the owner is answered, and that is durable.
    ///
    /// # Errors
    /// [`Error::Member`] for a reason that is none; [`Error::Owner`]; [`Error::Store`].
    pub async fn begin(
        self,
        owner: &Owner<impl Permits<Admin>>,
        order: LockdownOrder,
    ) -> Result<LockedDown, Error> {
        let checked = order.reason.as_deref().map(short_text).transpose();
        let reason = checked.map_err(|_| Error::Member("reason", MemberError::Words(MAX_SHORT)))?;
        let by = owner.clone();
        let locked = self.0.commit_as(owner, move |w| {
            let stored = w.lock_down(reason)?;
            // Signed with what the lockdown drew: every other token is of what was before.
            let trust_token = w.gateway.renew_token(&by, &w.keys, w.tx)?;
            Ok((stored, trust_token))
        });
        let (stored, trust_token) = locked.await?;
        metrics::counter!("oap_lockdowns_total").increment(1);
        // Whether the caller waits for it or not. It holds already; what fails here the sweeper does.
        let gateway = self.0.clone();
        let rest = tokio::spawn(async move { Lockdowns(&gateway).carry_on().await });
        if let Err(error) = joined(rest).await {
            tracing::error!(%error, "the grants of a lockdown could not all be revoked yet");
        }
        Ok(LockedDown { lockdown: self.info(stored), trust_token })
    }

    /// Lets the gateway answer again, once every grant is revoked that the lockdown ended.
    ///
    /// # Errors
    /// [`Error::Conflict`] where none lasts; [`Error::Owner`]; [`Error::Store`].
    pub async fn lift(self, owner: &Owner<impl Permits<Admin>>) -> Result<LockdownState, Error> {
        until_it_holds(|| async {
            self.carry_on().await?;
            self.0.commit_as(owner, |w| w.lift_lockdown()).await
        })
        .await?;
        self.show(owner)
    }

    /// How the gateway stands.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn show(self, _: &Owner<impl Permits<Admin>>) -> Result<LockdownState, Error> {
        let last = LOCKDOWN.get(&self.0.store)?;
        let locked_down = last.as_ref().is_some_and(StoredLockdown::lasts);
        Ok(LockdownState { locked_down, last: last.map(|stored| self.info(stored)) })
    }

    /// The lockdown that lasts.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub(crate) fn lasting(self) -> Result<Option<Lockdown>, Error> {
        let lasting = LOCKDOWN.get(&self.0.store)?.filter(StoredLockdown::lasts);
        Ok(lasting.map(|stored| self.info(stored)))
    }

    /// A word on the lockdown that lasts, for `doctor` and `status`.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub(crate) fn finding(self) -> Result<Option<Finding>, Error> {
        let Some(lockdown) = self.lasting()? else { return Ok(None) };
        let mut soon = vec![format!("locked down since {}: nobody but you is answered", lockdown.since)];
        if lockdown.left > 0 {
            soon.push(format!("{} grant(s) count no more and have no receipt of that yet", lockdown.left));
        }
        Ok(Some(Finding {
            part: "lockdown".into(),
            looked_at: 1,
            wrong: Vec::new(),
            soon,
            fix: "find out what happened; then `lockdown lift`, and give grants and keys anew to whom still needs them"
                .into(),
            note: None,
        }))
    }

    /// Revokes what grants a lockdown that lasts has left, in steps, each with its receipt; how many.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub(crate) async fn carry_on(self) -> Result<usize, Error> {
        if !lockdown::lasts(&self.0.store)? {
            return Ok(0);
        }
        let mut revoked = 0;
        for batch in self.left().chunks(REVOKED_AT_ONCE) {
            let batch = batch.to_vec();
            revoked += self
                .0
                .commit_own(move |w| {
                    w.tx.use_reserve();
                    // Lifted meanwhile: then they are all revoked.
                    if !lockdown::lasts(w.tx)? {
                        return Ok(0);
                    }
                    let mut revoked = Vec::new();
                    for entry in &batch {
                        revoked.extend(w.revoke_grant(entry, &["principal", "lockdown"])?.then_some(entry));
                    }
                    let count = revoked.len();
                    notices::tell_revoked(w, revoked)?;
                    Ok(count)
                })
                .await?;
        }
        metrics::counter!("oap_grants_revoked_total").increment(revoked as u64);
        Ok(revoked)
    }

    /// The grants that are not revoked.
    fn left(self) -> Vec<GrantEntry> {
        let all = self.0.grant_book.all().into_iter();
        all.filter(|entry| entry.record.revoked_at.is_none()).collect()
    }

    fn info(self, stored: StoredLockdown) -> Lockdown {
        let left = if stored.lasts() { self.left().len() } else { 0 };
        let StoredLockdown { since, lifted_at, reason, receipt, grants, agents, clients } = stored;
        Lockdown { since, lifted_at, reason, receipt_id: receipt, grants, agents, clients, left }
    }
}
