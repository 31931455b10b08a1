//! The owner's yes and no, and the taking back of a yes.

use crate::api::oauth::{
    ConsentCode, ConsentId, ConsentInfo, ConsentList, NewConsent, WaitingId, WaitingInfo,
};
use crate::error::{Conflict, Error};
use crate::oauth::{ApprovalKey, ClientId, RESOURCE};
use crate::service::Clients;
use crate::state::agents;
use crate::state::approvals::{MAX_APPROVALS, StoredApproval};
use crate::state::owner::mark::{Admin, Permits};
use crate::state::owner::{Owner, Permission};
use crate::state::schema::{AGENTS, APPROVALS, CLIENTS, EPOCH};
use crate::state::waiting::Said;
use oap_store::{Store, Tx};

/// Every approval as it stands in a transaction, those that count no more with them.
pub(super) fn all(store: &Store, tx: &Tx) -> Result<Vec<(ApprovalKey, StoredApproval)>, Error> {
    let mut known: Vec<_> = APPROVALS.scan(store).collect::<Result<_, _>>()?;
    for key in APPROVALS.written(tx) {
        known.retain(|(known, _)| *known != key);
        known.extend(APPROVALS.get(tx, &key)?.map(|approval| (key, approval)));
    }
    Ok(known.into_iter().map(|(key, approval)| (ApprovalKey(key), approval)).collect())
}

impl Clients<'_> {
    /// The clients that wait, and those that have a yes that counts.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn consents(self, _: &Owner<impl Permits<Admin>>) -> Result<ConsentList, Error> {
        let (store, now) = (&self.0.store, self.0.clock.now());
        let mut given = Vec::new();
        for row in APPROVALS.scan(store) {
            let (key, approval) = row?;
            if approval.counts(store, self.0, now)? {
                given.push(approval.info(ApprovalKey(key), store)?);
            }
        }
        given.sort_by_key(|info| (info.given_at, info.consent));
        Ok(ConsentList { waiting: self.0.waiting.list(now), given })
    }

    /// Who waits under the code that a page shows.
    ///
    /// # Errors
    /// [`Error::Conflict`], where no page shows it.
    pub fn show(self, _: &Owner<impl Permits<Admin>>, code: ConsentCode) -> Result<WaitingInfo, Error> {
        Ok(self.0.waiting.shown(code, self.0.clock.now()).ok_or(Conflict::ConsentOver)?)
    }

    /// Says yes to the client whose page shows a code.
    ///
    /// # Errors
    /// [`Error::NoAgent`]; [`Error::Conflict`], for a code that no page shows and an agent without an API key too.
    pub async fn approve(
        self,
        owner: &Owner<impl Permits<Admin>>,
        code: ConsentCode,
        new: NewConsent,
    ) -> Result<ConsentInfo, Error> {
        let (asked, name) = self.0.waiting.find(code, self.0.clock.now()).ok_or(Conflict::ConsentOver)?;
        let NewConsent { agent, permission } = new;
        let did = match agents::find(&self.0.store, &agent) {
            Ok((did, found)) if found.is_there() => did,
            Ok(_) | Err(Error::NotFound) => return Err(Error::NoAgent(agent)),
            Err(error) => return Err(error),
        };
        let (gateway, key) = (self.0.clone(), ApprovalKey::new(&*self.0.random));
        let info = self
            .0
            .commit_as(owner, move |w| {
                w.gives_access()?;
                let stored = AGENTS.get(w.tx, &did)?.filter(agents::StoredAgent::is_there);
                let stored = stored.ok_or(Error::NoAgent(agent))?;
                let (agent_key, _) = stored.key.ok_or(Error::Conflict(Conflict::AgentKeyless))?;
                // A client that the owner removed meanwhile is none, also where another one got its name.
                if let ClientId::Named(name) = &asked.client {
                    let known = CLIENTS.get(w.tx, &name.to_string())?.and_then(|stored| stored.of(name).ok());
                    if known.is_none_or(|known| known.owns(&asked.redirect).is_err()) {
                        return Err(Error::Conflict(Conflict::ConsentOver));
                    }
                }
                let most = asked.permission.min(stored.permission);
                if permission.is_some_and(|permission| permission > most) {
                    return Err(Error::Conflict(Conflict::ConsentTooMuch));
                }
                let mut count = 0;
                for (key, approval) in all(&gateway.store, w.tx)? {
                    if approval.counts(w.tx, &gateway, w.now)? {
                        count += 1;
                    } else {
                        APPROVALS.delete(w.tx, &key.0);
                    }
                }
                if count >= MAX_APPROVALS {
                    return Err(Error::Conflict(Conflict::ManyApprovals));
                }
                let approval = StoredApproval {
                    agent: did,
                    agent_key: Some(agent_key),
                    epoch: EPOCH.get(w.tx)?,
                    resource: gateway.url(RESOURCE),
                    client: asked.client.to_string(),
                    name: name.to_string(),
                    host: asked.redirect.host(),
                    // The most is given where the owner says so, and by no default.
                    permission: permission.unwrap_or(most.min(Permission::Write)),
                    jkt: asked.jkt,
                    given_at: w.now,
                    used_at: None,
                    refresh: None,
                    access: Vec::new(),
                };
                APPROVALS.put(w.tx, &key.0, &approval)?;
                approval.info(key, w.tx)
            })
            .await?;
        if self.0.waiting.answer(code, Said::Yes(key), self.0.clock.now()) {
            return Ok(info);
        }
        self.drop_approval(key).await?;
        Err(Error::Conflict(Conflict::ConsentOver))
    }

    /// Says no to the client whose page shows a code.
    ///
    /// # Errors
    /// [`Error::Conflict`].
    pub fn decline(self, _: &Owner<impl Permits<Admin>>, code: ConsentCode) -> Result<(), Error> {
        let answered = self.0.waiting.answer(code, Said::No, self.0.clock.now());
        if answered { Ok(()) } else { Err(Conflict::ConsentOver.into()) }
    }

    /// Says no to a client that waits, by its id.
    ///
    /// # Errors
    /// [`Error::Conflict`].
    pub fn decline_waiting(self, _: &Owner<impl Permits<Admin>>, id: WaitingId) -> Result<(), Error> {
        let answered = self.0.waiting.refuse(id, self.0.clock.now());
        if answered { Ok(()) } else { Err(Conflict::ConsentOver.into()) }
    }

    /// Takes a yes back, with every token of it.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn end(self, owner: &Owner<impl Permits<Admin>>, consent: ConsentId) -> Result<(), Error> {
        let gateway = self.0.clone();
        self.0
            .commit_as(owner, move |w| {
                w.tx.use_reserve();
                let known = all(&gateway.store, w.tx)?;
                let named: Vec<_> = known.iter().filter(|(key, _)| key.id() == consent).collect();
                if named.is_empty() {
                    return Err(Error::NotFound);
                }
                for (key, _) in named {
                    APPROVALS.delete(w.tx, &key.0);
                }
                Ok(())
            })
            .await
    }

    /// Ends an approval whose tokens are no longer only its client's, or that nobody is left to use.
    pub(super) async fn drop_approval(self, key: ApprovalKey) -> Result<(), Error> {
        self.0
            .commit_own(move |w| {
                APPROVALS.delete(w.tx, &key.0);
                Ok(())
            })
            .await
    }
}
