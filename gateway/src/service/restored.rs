//! What a restored backup is told of the time since: erased again, revoked again, and said in every receipt chain.

use crate::error::Error;
use crate::service::Backups;
use crate::service::grants::facts;
use crate::state::commits::chain_of;
use crate::state::erasures::{ChainEnd, KeyState, Listed};
use crate::state::grant_book::{GrantEntry, GrantKey};
use crate::state::schema::{self, BRIDGES, CONSENTS, GRANTS, REVOKED};
use oap_identity::{BridgeId, GrantId, Hash, ItemId, ScopeId, Timestamp};
use oap_memory::chain::Event;
use oap_memory::receipt::Action;
use serde::Serialize;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// Ids that one transaction takes.
const BATCH: usize = 500;

/// What a restored gateway was told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Replayed {
    /// Items that were erased again.
    pub erased: usize,
    /// Grants that were revoked.
    pub grants: usize,
    /// Bridges that were taken back.
    pub bridges: usize,
    /// Consents that were taken back.
    pub consents: usize,
    /// Signing keys that were revoked.
    pub keys: usize,
    /// Receipt chains that say that they were restored.
    pub chains: usize,
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
        let mut done = Replayed::default();
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
        let mut grants: BTreeSet<GrantId> = listed.grants.clone();
        if revoke_all {
            grants.extend(self.0.grant_book.all().iter().map(|entry| entry.key.id()));
        }
        for batch in grants.into_iter().collect::<Vec<_>>().chunks(BATCH) {
            done.grants += self.revoke_again(batch.to_vec()).await?;
        }
        done.bridges = self.take_back_bridges(listed.bridges.clone(), revoke_all).await?;
        let drop_consents = unknown == Unknown::Revoke && are_consents_unknown;
        done.consents = self.take_back_consents(listed.clone(), drop_consents).await?;
        done.chains = self.declare_restored(listed, backup_at).await?;
        self.0.views.clear();
        Ok(done)
    }

    async fn erase_again(self, items: Vec<ItemId>) -> Result<usize, Error> {
        let erased = self
            .0
            .commit(move |w| {
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

    /// Every grant by the name that the list has for it.
    fn entries_by_id(self) -> BTreeMap<GrantId, GrantEntry> {
        self.0.grant_book.all().into_iter().map(|entry| (entry.key.id(), entry)).collect()
    }

    async fn revoke_again(self, grants: Vec<GrantId>) -> Result<usize, Error> {
        let gateway = self.0.clone();
        let known = self.entries_by_id();
        let revoked = self
            .0
            .commit(move |w| {
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
            .commit(move |w| {
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
            .commit(move |w| {
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
                .commit(move |w| {
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
                .commit(move |w| {
                    let keys = w.compromised(&fragment, Some(since))?;
                    w.change_keys(keys, Action::RevokeKey)
                })
                .await?;
            revoked += 1;
        }
        Ok(revoked)
    }

    /// Says in every chain from where it goes on, and how far it is known to have come: another entry at the same place is no secret then.
    async fn declare_restored(self, listed: &Listed, backup_at: Timestamp) -> Result<usize, Error> {
        let (gateway, known) = (self.0.clone(), listed.chains.clone());
        let said = self
            .0
            .commit(move |w| {
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
