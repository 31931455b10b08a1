//! Keys: rotated, revoked (protocol section 2).

use crate::error::Error;
use crate::state::commits::{ANONYMOUS, Writing};
use crate::state::gateway::Gateway;
use crate::state::keyring::{KeyInfo, Keyring};
use crate::state::owner::act_under;
use crate::state::schema::{CHAINS, KEYS};
use oap_identity::Timestamp;
use oap_memory::receipt::Action;
use oap_store::Range;
use std::sync::Arc;
use std::time::Duration;

impl Gateway {
    /// Puts a new signing key into use; the former stays to verify what it signed.
    ///
    /// # Errors
    /// [`Error::Conflict`] for a did:key.
    pub async fn rotate_keys(self: &Arc<Self>) -> Result<Vec<KeyInfo>, Error> {
        let stored = self
            .commit(move |w| {
                let at = w.after_everything()?;
                let keys = w.keys.rotated(at, &*w.gateway.random)?;
                Ok((w.change_keys(keys, Action::RotateKey)?, w.keys.current().kid().clone()))
            })
            .await?;
        let (list, key) = stored;
        act_under(&key);
        Ok(list)
    }

    /// Marks a key as compromised since a time. Every grant that it signed is void at once.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown key; [`Error::Conflict`] for a did:key in use.
    pub async fn revoke_key(
        self: &Arc<Self>,
        fragment: String,
        since: Option<Timestamp>,
    ) -> Result<Vec<KeyInfo>, Error> {
        let stored = self
            .commit(move |w| {
                w.tx.use_reserve();
                let at = w.after_everything()?;
                let since = since.unwrap_or(at).min(at);
                let keys = w.keys.revoked(&fragment, since, at, &*w.gateway.random)?;
                Ok((w.change_keys(keys, Action::RevokeKey)?, w.keys.current().kid().clone()))
            })
            .await?;
        let (list, key) = stored;
        act_under(&key);
        Ok(list)
    }
}

impl Writing<'_, '_> {
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
        self.obligations_changed()?;
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
