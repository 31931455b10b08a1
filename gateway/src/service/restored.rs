//! What a restored backup is told of the time since: erased again, revoked again, removed again, and said in every receipt chain.

mod subscriptions;

use crate::api::Done;
use crate::error::{Error, Unavailable};
use crate::service::grants::facts;
use crate::service::{Agents, Backups, Grants};
use crate::state::commits::{AGENTS, ANONYMOUS, Writing, chain_of};
use crate::state::erasures::{ChainEnd, KeyState, Listed, Mark, Waiting, retracts};
use crate::state::gateway::Gateway;
use crate::state::grant_book::{GrantEntry, GrantKey};
use crate::state::holds::Hold;
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use crate::state::schema::{self, BRIDGES, CONSENTS, GRANTS, PAUSED, REVOKED};
use oap_identity::{BridgeId, GrantId, Hash, ItemId, ScopeId, Timestamp};
use oap_memory::chain::Event;
use oap_memory::receipt::Action;
use oap_memory::record::Status;
use serde::Serialize;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

/// Entries of a chain that one receipt makes: itself, and the head that follows it.
const ENTRIES: u64 = 2;
/// Ids that one transaction takes.
const BATCH: usize = 500;
/// Agents whose permission and role a restore tells.
const MAX_RIGHTS: usize = 100;

/// What a restored gateway was told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Replayed {
    /// Items that were erased again.
    pub erased: usize,
    /// Items that were taken back again.
    pub retracted: usize,
    /// Items that are again to be erased when their hold ends.
    pub waiting: usize,
    /// Grants that were revoked.
    pub grants: usize,
    /// Bridges that were taken back.
    pub bridges: usize,
    /// Consents that were taken back.
    pub consents: usize,
    /// Agents of the owner's that were removed.
    pub agents: usize,
    /// Subscriptions that were ended.
    pub subscriptions: usize,
    /// Signing keys that were revoked.
    pub keys: usize,
    /// Receipt chains that say that they were restored.
    pub chains: usize,
    /// Receipts that the list knows and the backup does not have.
    pub lost_receipts: u64,
    /// Whether grants answer nobody until the owner lets them.
    pub grants_paused: bool,
    /// What the list does not cover, or could not be done, and what the owner should do.
    pub warnings: Vec<String>,
}

/// What to do with grants, bridges and consents when no list says which were revoked since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    /// All are revoked.
    Revoke,
    /// All stay in force, as the owner wants.
    Keep,
}

impl Backups<'_> {
    /// Ends here what a list says was ended since a backup, and says in every receipt chain that it was restored. Doing it again does
    /// nothing more but for that.
    ///
    /// # Errors
    /// [`Error::Store`], [`Error::Corrupt`].
    pub async fn end_again(
        self,
        listed: &Listed,
        backup_at: Timestamp,
        unknown: Unknown,
    ) -> Result<Replayed, Error> {
        // Before anything is said here in a chain.
        let mut done = Replayed { lost_receipts: self.lost_receipts(listed)?, ..Replayed::default() };
        let is_older = listed.at.is_none_or(|at| at < backup_at);
        let is_unknown = listed.since.is_none() || is_older;
        let are_consents_unknown = is_unknown || listed.since.is_none_or(|since| since > backup_at);
        if is_unknown {
            let why = match (listed.at, listed.since) {
                (None, _) => "there is no list of what was ended since the backup",
                (_, None) => "the list is of an older program and tells of erasures alone",
                _ => "the list ends before the backup was made",
            };
            done.warnings.push(format!(
                "{why}: signing keys that were revoked since are in force again; revoke them with `keys revoke`"
            ));
        }
        if are_consents_unknown {
            done.warnings.push(match unknown {
                Unknown::Revoke if is_unknown => {
                    "which grants, bridges and consents were revoked since is not known: all were revoked now; issue again what is still meant"
                }
                Unknown::Revoke => {
                    "which consents were taken back is not known for all of the time since: all were taken back now"
                }
                Unknown::Keep => "grants, bridges and consents that were revoked since may be in force again, as asked",
            }.to_owned());
        }
        // Before anything is signed: nothing that is said here may be signed by a key that was compromised.
        done.keys = self.end_keys(&listed.keys, &mut done.warnings).await?;
        let revoke_all = unknown == Unknown::Revoke && is_unknown;
        for batch in listed.items.iter().copied().collect::<Vec<_>>().chunks(BATCH) {
            done.erased += self.erase_again(batch.to_vec()).await?;
        }
        let gone = listed.items.clone();
        let waiting = listed.waiting.values().copied().filter(|waiting| !gone.contains(&waiting.item));
        for batch in waiting.collect::<Vec<_>>().chunks(BATCH) {
            done.waiting += self.wait_again(batch.to_vec()).await?;
        }
        let marks =
            listed.marks.values().copied().filter(|mark| mark.retracted && !gone.contains(&mark.item));
        for batch in marks.collect::<Vec<_>>().chunks(BATCH) {
            done.retracted += self.retract_again(batch.to_vec()).await?;
        }
        if listed.marks_since.is_none() || is_older {
            done.warnings.push(
                "which items were retracted, and which deletions wait for the end of a hold, is not known for all of the time since: such items may be current again".to_owned(),
            );
        }
        let mut grants: BTreeSet<GrantId> = listed.grants.clone();
        if revoke_all {
            grants.extend(self.0.grant_book.all().iter().map(|entry| entry.key.id()));
        }
        for batch in grants.into_iter().collect::<Vec<_>>().chunks(BATCH) {
            done.grants += self.revoke_again(batch.to_vec()).await?;
        }
        done.bridges = self.take_back_bridges(listed.bridges.clone(), revoke_all).await?;
        done.agents = Agents(self.0).remove_again(listed.agents.clone()).await?;
        if is_unknown && Agents(self.0).are_there()? {
            done.warnings.push(
                "agents that were removed since may be there again: `agent list` shows them, `agent remove` ends one".to_owned(),
            );
        }
        done.subscriptions = self.unsubscribe_again(listed, is_unknown, &mut done.warnings).await?;
        let keys = Agents(self.0).end_keys().await?;
        if keys > 0 {
            done.warnings.push(format!(
                "which API keys of agents were ended since is not known: all {keys} were ended now; `agent rotate` makes new ones"
            ));
        }
        let mut rights = Agents(self.0).rights()?;
        if !rights.is_empty() {
            let more = rights.len().saturating_sub(MAX_RIGHTS);
            rights.truncate(MAX_RIGHTS);
            rights.extend((more > 0).then(|| format!("{more} more (`agent list`)")));
            done.warnings.push(format!(
                "what agents may do, and what namespaces let them, is what the backup has, whatever was changed since; `agent set` sets \
                 a permission or role: {}",
                rights.join(", ")
            ));
        }
        let drop_consents = unknown == Unknown::Revoke && are_consents_unknown;
        done.consents = self.take_back_consents(listed.clone(), drop_consents).await?;
        if done.lost_receipts > 0 {
            let lost = done.lost_receipts;
            done.grants_paused = unknown == Unknown::Revoke && !revoke_all;
            let then = match (unknown, done.grants_paused) {
                (Unknown::Keep, _) => "grants answer by what the backup has, as asked",
                (_, true) => "no grant answers until you have looked and say `oap-memory grant resume`",
                (_, false) => "look before you issue grants again",
            };
            done.warnings.push(format!(
                "{lost} receipts since the backup are lost, and what they told of: corrections, labels and other restrictions of items, \
                 contexts and holds may be what they were before; {then}"
            ));
        }
        if done.grants_paused {
            self.0.commit_own(|w| w.pause_grants()).await?;
        }
        done.chains = self.declare_restored(listed, backup_at).await?;
        self.0.views.clear();
        self.0.corpora.clear();
        self.0.concluded.clear();
        self.0.brains.clear();
        Ok(done)
    }

    async fn erase_again(self, items: Vec<ItemId>) -> Result<usize, Error> {
        let erased = self
            .0
            .commit_own(move |w| {
                let mut erased = 0;
                for item in items {
                    match schema::head(w.tx, item) {
                        Ok(_) => {
                            w.erase(item, Event::Erase)?;
                            erased += 1;
                        }
                        Err(Error::NotFound) => {}
                        Err(error) => return Err(error),
                    }
                }
                Ok(erased)
            })
            .await?;
        Ok(erased)
    }

    /// Puts items under the holds that their deletion waits for, and out of every view.
    async fn wait_again(self, items: Vec<Waiting>) -> Result<usize, Error> {
        let held = self
            .0
            .commit_own(move |w| {
                let mut held = 0;
                for Waiting { item, reason, until } in items {
                    match schema::head(w.tx, item) {
                        Ok(_) => {}
                        Err(Error::NotFound) => continue,
                        Err(error) => return Err(error),
                    }
                    let hold = Hold { reason, until, erase_after: true };
                    let is_new = w.hold_of(item)?.is_none_or(|hold| !hold.erase_after);
                    w.put_hold(item, &hold)?;
                    w.await_end(item)?;
                    held += usize::from(is_new);
                }
                Ok(held)
            })
            .await?;
        Ok(held)
    }

    /// Takes items back whose chain does not have the retraction that the list knows.
    async fn retract_again(self, marks: Vec<Mark>) -> Result<usize, Error> {
        let retracted = self
            .0
            .commit_own(move |w| {
                let mut retracted = 0;
                for Mark { item, link, .. } in marks {
                    match schema::head(w.tx, item) {
                        Ok((_, head)) if head.status == Status::Current => {}
                        Ok(_) | Err(Error::NotFound) => continue,
                        Err(error) => return Err(error),
                    }
                    // It was put back later, and the backup knows.
                    if retracts(w.tx, item, link)? {
                        continue;
                    }
                    w.mark(item, Event::Retract)?;
                    retracted += 1;
                }
                Ok(retracted)
            })
            .await?;
        Ok(retracted)
    }

    /// Every grant by the name that the list has for it.
    fn entries_by_id(self) -> BTreeMap<GrantId, GrantEntry> {
        self.0.grant_book.all().into_iter().map(|entry| (entry.key.id(), entry)).collect()
    }

    async fn revoke_again(self, grants: Vec<GrantId>) -> Result<usize, Error> {
        let gateway = self.0.clone();
        let known = self.entries_by_id();
        let revoked = self
            .0
            .commit_own(move |w| {
                let mut revoked = 0;
                for id in grants {
                    let key = GrantKey::named(id);
                    if REVOKED.get(w.tx, &key)?.is_some() {
                        continue;
                    }
                    // One that the backup does not know, too: a grantee may present its document again.
                    REVOKED.put(w.tx, &key, &w.now)?;
                    w.ended.grants.push(id);
                    if !GRANTS.contains(w.tx, &key)? {
                        continue;
                    }
                    revoked += 1;
                    if let Some(GrantEntry { record, .. }) = known.get(&id).cloned() {
                        let grant = record.grant.grant();
                        let agent = gateway.principal.as_str();
                        let mut draft = gateway.draft(Action::Revoke, agent);
                        draft.rules = vec!["restore.list".to_owned()];
                        draft.more = facts(grant, record.grant.hash(), &[]);
                        w.receipt(&chain_of(&grant.granter.scope), draft)?;
                        let (gateway, now) = (gateway.clone(), w.now);
                        w.tx.on_commit(move || gateway.grant_book.revoke(key, now));
                    }
                }
                Ok(revoked)
            })
            .await?;
        Ok(revoked)
    }

    async fn take_back_bridges(self, listed: BTreeSet<BridgeId>, all: bool) -> Result<usize, Error> {
        let gateway = self.0.clone();
        let ended = self
            .0
            .commit_own(move |w| {
                let mut ended = 0;
                for row in BRIDGES.scan(&gateway.store) {
                    let (id, mut stored) = row?;
                    if stored.revoked_at.is_some() || !(all || listed.contains(&id)) {
                        continue;
                    }
                    stored.revoked_at = Some(w.now);
                    BRIDGES.put(w.tx, &id, &stored)?;
                    w.ended.bridges.push(id);
                    let document = oap_identity::json::parse(stored.document.as_bytes())?;
                    let scope: ScopeId = oap_identity::json::from_value(document["from_scope"].clone())?;
                    w.owner_receipt(Action::BridgeRevoke, &scope, Hash::of_canonical(&document)?)?;
                    ended += 1;
                }
                if ended > 0 {
                    w.obligations_changed()?;
                }
                Ok(ended)
            })
            .await?;
        Ok(ended)
    }

    async fn take_back_consents(self, listed: Listed, all: bool) -> Result<usize, Error> {
        let gateway = self.0.clone();
        let known = self.entries_by_id();
        let ended = self
            .0
            .commit_own(move |w| {
                let mut ended = 0;
                for row in CONSENTS.scan(&gateway.store) {
                    let (key, given) = row?;
                    let grant = key.id();
                    if !all && listed.consents.get(&grant).is_none_or(|at| *at < given) {
                        continue;
                    }
                    w.withdraw(grant)?;
                    if let Some(GrantEntry { record, .. }) = known.get(&grant) {
                        let scope = record.grant.grant().granter.scope.clone();
                        w.owner_receipt(Action::ConsentWithdraw, &scope, record.grant.hash())?;
                    }
                    ended += 1;
                }
                if ended > 0 {
                    w.obligations_changed()?;
                }
                Ok(ended)
            })
            .await?;
        Ok(ended)
    }

    /// Revokes the keys that were revoked since. Where a newer key than the backup has was in use, its secret is lost: a fresh one under a
    /// name that none of them had takes its place.
    async fn end_keys(self, listed: &[KeyState], warnings: &mut Vec<String>) -> Result<usize, Error> {
        let here = self.0.keys().states();
        let mut revoked = 0;
        let knows = |fragment: &str| here.iter().any(|key| key.fragment == fragment);
        let revocable = self.0.principal.method() != "key";
        if revocable && listed.iter().any(|key| !knows(&key.fragment)) {
            let known = listed.to_vec();
            self.0
                .commit_own(move |w| {
                    let at = w.after_everything()?;
                    let keys = w.keys.rotated_past(&known, at, &*w.gateway.random)?;
                    w.change_keys(keys, Action::RotateKey)
                })
                .await?;
            warnings.push(
                "a signing key that is newer than the backup is lost: a fresh one was put in its place, and what the lost one signed \
                 can be checked with an older DID document alone"
                    .to_owned(),
            );
        }
        for key in listed {
            let stands = here.iter().find(|known| known.fragment == key.fragment);
            let (Some(since), Some(KeyState { revoked_at: None, .. })) = (key.revoked_at, stands) else {
                continue;
            };
            if !revocable {
                warnings.push(format!("the key {} was revoked, and a did:key has no other", key.fragment));
                continue;
            }
            let fragment = key.fragment.clone();
            self.0
                .commit_own(move |w| {
                    let keys = w.compromised(&fragment, Some(since))?;
                    w.change_keys(keys, Action::RevokeKey)
                })
                .await?;
            revoked += 1;
        }
        Ok(revoked)
    }

    /// How many receipts the list knows of that are not here: what changed the owner's memory since the backup is among them. Not counted
    /// are anonymous calls, what own agents were given, and the receipt of the backup itself, which follows what it has.
    fn lost_receipts(self, listed: &Listed) -> Result<u64, Error> {
        let here = self.0.chains()?;
        let mut lost = 0;
        for (name, ChainEnd { length, .. }) in &listed.chains {
            if name == ANONYMOUS || name == AGENTS {
                continue;
            }
            let known = here.iter().find(|(chain, _)| chain == name).map_or(0, |(_, chain)| chain.length);
            let own = u64::from(*name == chain_of(&self.0.config.default_scope)) * ENTRIES;
            lost += length.saturating_sub(known + own);
        }
        Ok(lost.div_ceil(ENTRIES))
    }

    /// Says in every chain from where it goes on, and how far it is known to have come: another entry at the same place is no secret then.
    async fn declare_restored(self, listed: &Listed, backup_at: Timestamp) -> Result<usize, Error> {
        let (gateway, known) = (self.0.clone(), listed.chains.clone());
        let said = self
            .0
            .commit_own(move |w| {
                let mut names: BTreeSet<String> = w.chain_names()?.into_iter().collect();
                let here = names.clone();
                names.extend(known.keys().cloned());
                for name in &names {
                    let agent = gateway.principal.as_str();
                    let mut draft = gateway.draft(Action::RestoreBackup, agent);
                    draft.rules = vec!["principal".to_owned()];
                    draft.more.insert("backup_at".to_owned(), json!(backup_at));
                    let before = if here.contains(name) {
                        let chain = w.chain(name)?;
                        json!({"length": chain.length, "tip": chain.tip})
                    } else {
                        json!({"length": 0})
                    };
                    draft.more.insert("continued_from".to_owned(), before);
                    if let Some(ChainEnd { length, tip, .. }) = known.get(name) {
                        draft.more.insert("known".to_owned(), json!({"length": length, "tip": tip}));
                    }
                    w.receipt(name, draft)?;
                }
                Ok(names.len())
            })
            .await?;
        Ok(said)
    }
}

impl Grants<'_> {
    /// Lets grants answer again, as they stand here: the owner has looked at what a restore brought back.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn resume(self, owner: &Owner<impl Permits<Admin>>) -> Result<Done, Error> {
        let gateway = self.0.clone();
        self.0
            .commit_as(owner, move |w| {
                if PAUSED.get(w.tx)? != Some(true) {
                    return Ok(());
                }
                PAUSED.put(w.tx, &false)?;
                let mut draft = gateway.draft(Action::RestoreBackup, gateway.principal.as_str());
                draft.rules = vec!["principal".to_owned()];
                draft.more.insert("grants_resumed".to_owned(), json!(true));
                w.receipt(&chain_of(&gateway.config.default_scope), draft)?;
                let gateway = gateway.clone();
                w.tx.on_commit(move || gateway.paused.store(false, Ordering::Release));
                Ok(())
            })
            .await?;
        Ok(Done {})
    }
}

impl Gateway {
    /// That grants answer: not after a restore, until the owner has looked.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub(crate) fn grants_answer(&self) -> Result<(), Error> {
        if self.paused.load(Ordering::Acquire) {
            Err(Error::Unavailable(Unavailable::Restored))
        } else {
            Ok(())
        }
    }
}

impl Writing<'_, '_> {
    /// Lets no grant answer until the owner says so.
    fn pause_grants(&mut self) -> Result<(), Error> {
        PAUSED.put(self.tx, &true)?;
        let gateway = self.gateway.clone();
        self.tx.on_commit(move || gateway.paused.store(true, Ordering::Release));
        Ok(())
    }
}
