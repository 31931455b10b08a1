//! A gateway of a history: on a store in memory that outlives it, as one that is killed leaves it.

use super::wire::Wire;
use crate::common::*;
use oap_exchange::gate::Sanctions;
use oap_gateway::embedding::EmbeddingModel;
use oap_gateway::service::{Asks, Deletions, Grants, Letters, Recalls, Wallet};
use oap_gateway::state::keyring::StoredKeys;
use oap_gateway::state::owner::Owner;
use oap_gateway::state::owner::mark::Admin;
use oap_gateway::{Config, Gateway};
use oap_identity::random::Seeded;
use oap_identity::{Random, Timestamp};
use oap_store::{Engine, FileVault, Master, MemoryEngine, Op, OwnedPairs, Pairs, Store, StoreError};
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// A store in memory whose disk can end.
struct Disk {
    memory: Arc<MemoryEngine>,
    /// Batches that it takes yet.
    left: Arc<AtomicI64>,
}

impl Engine for Disk {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.memory.get(key)
    }

    fn scan<'a>(&'a self, prefix: &[u8], from: &[u8], descending: bool) -> Pairs<'a> {
        self.memory.scan(prefix, from, descending)
    }

    fn apply(&self, batch: Vec<Op>) -> Result<(), StoreError> {
        if self.left.fetch_sub(1, Ordering::SeqCst) <= 0 {
            return Err(StoreError::Stopped);
        }
        self.memory.apply(batch)
    }

    fn snapshot(&self) -> Result<OwnedPairs, StoreError> {
        self.memory.snapshot()
    }
}

/// How a gateway stands, as its owner sees it.
pub(super) struct View {
    pub(super) inbox: Vec<Value>,
    pub(super) asked: Vec<Value>,
    pub(super) received: Vec<Value>,
    pub(super) grants: Vec<Value>,
}

pub(super) struct House {
    pub(super) did: String,
    world: Option<World>,
    owner: Owner<Admin>,
    memory: Arc<MemoryEngine>,
    left: Arc<AtomicI64>,
    vault: PathBuf,
    random: Arc<dyn Random>,
    opened: u64,
}

fn master() -> Master {
    Master::KeyFile([7; 32].into())
}

fn config() -> Config {
    Config { allow_local_dids: true, plain_http: true, epsilon_per_grantee: 1e9, ..Config::default() }
}

fn store(memory: &Arc<MemoryEngine>, left: &Arc<AtomicI64>, vault: &Path, random: &Arc<dyn Random>) -> Store {
    left.store(i64::MAX, Ordering::SeqCst);
    let disk = Disk { memory: memory.clone(), left: left.clone() };
    Store::open(disk, FileVault::open(vault, &master()).unwrap(), random.clone()).unwrap()
}

async fn opened(did: &str, store: Store, random: &Arc<dyn Random>, at: Timestamp) -> World {
    let none: Option<Box<dyn EmbeddingModel>> = None;
    World::by_clock(did, store, config(), random.clone(), Sanctions::new(), none, at).await
}

fn list(of: &impl Serialize, name: &str) -> Vec<Value> {
    serde_json::to_value(of).unwrap()[name].as_array().unwrap().clone()
}

impl House {
    pub(super) async fn new(
        number: usize,
        seed: u64,
        wire: &Arc<Wire>,
        folder: &Path,
        now: Timestamp,
    ) -> Self {
        let random: Arc<dyn Random> = Arc::new(Seeded::new(1 + seed * 8 + number as u64));
        let vault = folder.join(format!("vault-{number}"));
        FileVault::create(&vault, &master(), &*random).unwrap();
        let (memory, left) = (Arc::<MemoryEngine>::default(), Arc::new(AtomicI64::new(0)));
        let store = store(&memory, &left, &vault, &random);
        Gateway::init(&store, &StoredKeys::generate(&*random, now)).await.unwrap();
        let did = wire.listen(number).await;
        let world = opened(&did, store, &random, now).await;
        wire.stands(number, world.router.clone(), world.gateway.clone());
        let owner = world.proved().await;
        Self { did, world: Some(world), owner, memory, left, vault, random, opened: 0 }
    }

    pub(super) fn world(&self) -> &World {
        self.world.as_ref().unwrap()
    }

    /// Its disk takes so many batches yet.
    pub(super) fn ends_after(&self, batches: u8) {
        self.left.store(i64::from(batches), Ordering::SeqCst);
    }

    /// Its owner goes on with another token.
    pub(super) async fn renew(&mut self, token: &str) {
        let world = self.world.as_mut().unwrap();
        world.token = token.to_owned();
        self.owner = world.proved().await;
    }

    /// It is gone with all that it had in memory, and started anew on what its store has.
    pub(super) async fn kill(&mut self, number: usize, wire: &Wire, now: Timestamp) {
        wire.falls(number);
        let before = self.world.take().unwrap();
        let held = Arc::downgrade(&before.gateway);
        drop(before);
        let ended = async {
            while held.strong_count() > 0 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), ended).await.expect("somebody has the gateway yet");
        self.opened += 1;
        let store = store(&self.memory, &self.left, &self.vault, &self.random);
        let world = opened(&self.did, store, &self.random, now).await;
        // Proofs that none before it has used.
        world.proofs.store(100_000 * self.opened, Ordering::SeqCst);
        self.owner = world.proved().await;
        wire.stands(number, world.router.clone(), world.gateway.clone());
        self.world = Some(world);
    }

    /// Its letters to others.
    pub(super) fn letters(&self) -> Vec<Value> {
        list(&Letters(&self.world().gateway).list(&self.owner).unwrap(), "letters")
    }

    pub(super) fn view(&self) -> View {
        let (gateway, owner) = (&self.world().gateway, &self.owner);
        let grants = serde_json::to_value(Grants(gateway).grant_list(owner)).unwrap();
        View {
            inbox: list(&Asks(gateway).list(owner).unwrap(), "asks"),
            asked: list(&Wallet(gateway).all_asked(owner).unwrap(), "asked"),
            received: list(&Wallet(gateway).received(owner).unwrap(), "received"),
            grants: grants.as_array().unwrap().clone(),
        }
    }

    /// Who was told of a deletion, as its owner is told.
    pub(super) fn report(&self, deletion: &str) -> Vec<Value> {
        let told = Deletions(&self.world().gateway).told(&self.owner, deletion.parse().unwrap());
        list(&told.unwrap(), "grantees")
    }

    /// What others said that is not so.
    pub(super) fn lies(&self) -> Vec<Value> {
        list(&Recalls(&self.world().gateway).lies(&self.owner).unwrap(), "lies")
    }
}
