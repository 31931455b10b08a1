//! How far the logs of did:webvh were seen, of the peers, the devices and those whose grants are in the wallet: what no restart forgets. Whoever has
//! such a host and waits for one shows a beginning of the log, or another end of it, in vain.

use crate::error::Error;
use crate::state::commits::Writing;
use crate::state::gateway::Gateway;
use crate::state::schema::{DEVICES, PEERS, TIPS, WALLET};
use oap_identity::Did;
use oap_identity::resolve::{KeepTips, Keeping, NotKept, Tip};
use oap_store::{Range, Store};
use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

/// Writes down what the resolver of a gateway saw.
struct Keeper(Weak<Gateway>);

impl KeepTips for Keeper {
    fn keep<'a>(&'a self, did: &'a Did, tip: &'a Tip) -> Keeping<'a> {
        Box::pin(async move {
            let gateway = self.0.upgrade().ok_or(NotKept)?;
            let (did, tip) = (did.clone(), tip.clone());
            gateway.commit_own(move |w| put(w, &did, &tip)).await.map_err(|error| {
                tracing::error!(%error, "how far a log was seen could not be written down");
                NotKept
            })
        })
    }
}

fn has_log(did: &Did) -> bool {
    did.log_url().is_some()
}

/// Takes a version in the place of an earlier one.
fn put(w: &mut Writing<'_, '_>, did: &Did, tip: &Tip) -> Result<(), Error> {
    if TIPS.get(w.tx, did)?.is_none_or(|kept| kept.number < tip.number) {
        TIPS.put(w.tx, did, tip)?;
    }
    Ok(())
}

/// The DIDs with a log that are held on to: at most as many as there are peers, devices and grants in the wallet.
fn held(store: &Store) -> Result<BTreeSet<Did>, Error> {
    let mut held: BTreeSet<Did> = PEERS.keys(store, Range::all()).collect::<Result<_, _>>()?;
    for row in WALLET.scan(store) {
        held.insert(row?.1.granter);
    }
    for row in DEVICES.scan(store) {
        let (did, device) = row?;
        held.extend(device.removed_at.is_none().then_some(did));
    }
    held.retain(has_log);
    Ok(held)
}

/// Has the resolver of a gateway hold on to what is stored, and keep what it sees from now on.
///
/// # Errors
/// [`Error::Store`].
pub(crate) fn load(gateway: &Arc<Gateway>) -> Result<(), Error> {
    for did in held(&gateway.store)? {
        let tip = TIPS.get(&gateway.store, &did)?;
        gateway.resolver.hold(did, tip);
    }
    gateway.resolver.keep_with(Arc::new(Keeper(Arc::downgrade(gateway))));
    Ok(())
}

/// Holds on to how far the log of a DID was seen, in the transaction that makes it a peer or a device, or takes a grant of its; nothing for
/// one that has no log.
///
/// # Errors
/// [`Error::Store`].
pub(crate) fn hold(w: &mut Writing<'_, '_>, did: &Did) -> Result<(), Error> {
    if !has_log(did) {
        return Ok(());
    }
    let tip = w.gateway.resolver.tip(did);
    if let Some(tip) = &tip {
        put(w, did, tip)?;
    }
    let (gateway, did) = (w.gateway.clone(), did.clone());
    w.tx.on_commit(move || gateway.resolver.hold(did, tip));
    Ok(())
}

/// Forgets what was seen of those who are no peers and no devices any more, and whose grants are gone; how many they were.
///
/// # Errors
/// [`Error::Store`].
pub(crate) async fn forget(gateway: &Arc<Gateway>) -> Result<usize, Error> {
    let kept: Vec<Did> = TIPS.keys(&gateway.store, Range::all()).collect::<Result<_, _>>()?;
    if kept.is_empty() || held(&gateway.store)?.is_superset(&kept.iter().cloned().collect()) {
        return Ok(0);
    }
    let forgotten = move |w: &mut Writing<'_, '_>| {
        let mut held = held(&w.gateway.store)?;
        // Those of earlier transactions of the batch.
        held.extend(PEERS.written(w.tx));
        for hash in WALLET.written(w.tx) {
            held.extend(WALLET.get(w.tx, &hash)?.map(|received| received.granter));
        }
        for did in DEVICES.written(w.tx) {
            let is_one = DEVICES.get(w.tx, &did)?.is_some_and(|device| device.removed_at.is_none());
            held.extend(is_one.then_some(did));
        }
        let over: Vec<Did> = kept.into_iter().filter(|did| !held.contains(did)).collect();
        over.iter().for_each(|did| TIPS.delete(w.tx, did));
        let (gateway, count) = (w.gateway.clone(), over.len());
        w.tx.on_commit(move || over.iter().for_each(|did| gateway.resolver.let_go(did)));
        Ok(count)
    };
    gateway.commit_own(forgotten).await
}
