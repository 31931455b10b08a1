//! Keys: rotated, revoked (protocol section 2).

pub use crate::api::keys::ChangedKeys;
use crate::error::Error;
use crate::service::Keys;
use crate::state::commits::{ANONYMOUS, Writing};
use crate::state::keyring::{KeyInfo, Keyring};
use crate::state::owner::Owner;
use crate::state::owner::mark::{Admin, Permits};
use crate::state::schema::{CHAINS, KEYS};
use oap_identity::Timestamp;
use oap_memory::receipt::Action;
use oap_store::Range;
use std::sync::Arc;
use std::time::Duration;

impl Keys<'_> {
    /// Every key, newest first.
    #[must_use]
    pub fn key_list(self, _: &Owner<impl Permits<Admin>>) -> Vec<KeyInfo> {
        self.0.keys().list()
    }

    /// Puts a new signing key into use; the former stays to verify what it signed.
    ///
    /// # Errors
    /// [`Error::Conflict`] for a did:key.
    pub async fn rotate_keys(self, owner: &Owner<impl Permits<Admin>>) -> Result<ChangedKeys, Error> {
        let by = owner.clone();
        let changed = self.0.commit_as(owner, move |w| {
            let at = w.after_everything()?;
            let keys = w.keys.rotated(at, &*w.gateway.random)?;
            w.change_keys_for(&by, keys, Action::RotateKey)
        });
        changed.await
    }

    /// Marks a key as compromised since a time. Every grant that it signed is void at once.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown key; [`Error::Conflict`] for a did:key in use.
    pub async fn revoke_key(
        self,
        owner: &Owner<impl Permits<Admin>>,
        fragment: String,
        since: Option<Timestamp>,
    ) -> Result<ChangedKeys, Error> {
        let by = owner.clone();
        let changed = self.0.commit_as(owner, move |w| {
            let keys = w.compromised(&fragment, since)?;
            w.change_keys_for(&by, keys, Action::RevokeKey)
        });
        changed.await
    }
}

impl Writing<'_, '_> {
    /// The keys once one is known as compromised since a time.
    pub(crate) fn compromised(&mut self, fragment: &str, since: Option<Timestamp>) -> Result<Keyring, Error> {
        self.tx.use_reserve();
        let at = self.after_everything()?;
        let since = since.unwrap_or(at).min(at);
        self.keys.revoked(fragment, since, at, &*self.gateway.random)
    }

    /// Changes the keys for an agent, whose token ends with that: its successor is signed by the key that is in use then.
    fn change_keys_for<P>(
        &mut self,
        owner: &Owner<P>,
        keys: Keyring,
        action: Action,
    ) -> Result<ChangedKeys, Error> {
        let keys = self.change_keys(keys, action)?;
        Ok(ChangedKeys { trust_token: self.gateway.renew_token(owner, &self.keys, self.tx)?, keys })
    }

    /// A time later than that of anything that was signed.
    pub(crate) fn after_everything(&mut self) -> Result<Timestamp, Error> {
        self.gateway.clock.believe()?;
        let mut latest = self.now;
        for name in CHAINS.keys(&self.gateway.store, Range::all()) {
            if let Some(chain) = CHAINS.get(self.tx, &name?)? {
                latest = latest.max(chain.at);
            }
        }
        Ok(latest.plus(Duration::from_millis(1)))
    }

    /// Stores the keys: what is signed from here on is signed with them. They are published once they are durable.
    pub(crate) fn change_keys(&mut self, keys: Keyring, action: Action) -> Result<Vec<KeyInfo>, Error> {
        let gateway = self.gateway.clone();
        let mut draft = gateway.draft(action, gateway.principal.as_str());
        draft.rules = vec!["principal".to_owned()];
        KEYS.put(self.tx, keys.encoded())?;
        // Bridges and items are judged by the keys: no answer from a view of before leaves.
        self.signatures_changed()?;
        let list = keys.list();
        self.ended.keys = true;
        self.keys = Arc::new(keys);
        let published = gateway.published_with(&self.keys)?;
        let keys = self.keys.clone();
        self.tx.on_commit(move || gateway.use_keys(keys, published));
        // The first thing that the new key signs, where everybody sees it.
        self.receipt(ANONYMOUS, draft)?;
        Ok(list)
    }
}
