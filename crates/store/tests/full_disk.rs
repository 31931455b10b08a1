//! Two hundred disks that fill up, each at a random level, in random ways and in the midst of random work: what was acknowledged
//! is there, what was refused is not, a full disk is read and erased from, and one that grew takes everything.
//!
//! Each is a tmpfs, see `mount`. `OAP_FULL_DISK_LEVELS` sets the number of levels (200), `OAP_FULL_DISK_SEED` the
//! first seed, `OAP_FULL_DISK_ENGINE=sled` shows why sled is not the default.

mod mount;

use mount::{Mount, on_a_disk};
use oap_identity::random::Seeded;
use oap_identity::{Random, random};
use oap_store::{Disk, EngineKind, FileVault, Master, Raw, Slot, Space, Store, StoreError, Table};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;

const NAME: &str = "two_hundred_disks_that_fill_up";
const ITEMS: Table<Vec<u8>, Vec<u8>, Raw> = Table::new(9);
const PLAIN: Table<Vec<u8>, Vec<u8>, Raw> = Table::new(10);

/// A disk that says that there is room when there is none: as if somebody else filled it after every check.
#[derive(Debug)]
struct Liar;

impl Disk for Liar {
    fn total(&self) -> io::Result<u64> {
        Ok(1 << 30)
    }
    fn free(&self) -> io::Result<u64> {
        Ok(1 << 30)
    }
    fn held(&self) -> io::Result<u64> {
        Ok(0)
    }
    fn hold(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::StorageFull.into())
    }
}

struct Dice(Seeded);

impl Dice {
    fn roll(&self, below: u64) -> u64 {
        u64::from_le_bytes(random::bytes(&self.0)) % below.max(1)
    }
    fn value(&self) -> Vec<u8> {
        let most = [60, 3_000, 40_000][self.roll(3) as usize];
        let mut value = vec![0; self.roll(most) as usize];
        self.0.fill(&mut value);
        value
    }
}

/// What was acknowledged: values with a key of their own, and plain ones.
#[derive(Default, Clone)]
struct Model {
    items: BTreeMap<u64, (Slot, Vec<u8>)>,
    plain: BTreeMap<u64, Vec<u8>>,
}

impl Model {
    #[track_caller]
    fn check(&self, store: &Store, when: &str) {
        let items: Vec<_> = ITEMS.scan(store).map(Result::unwrap).collect();
        let plain: Vec<_> = PLAIN.scan(store).map(Result::unwrap).collect();
        let expected: Vec<_> =
            self.items.iter().map(|(k, (_, v))| (k.to_be_bytes().to_vec(), v.clone())).collect();
        assert!(items == expected, "{when}: {} items instead of {}", items.len(), expected.len());
        let expected: Vec<_> =
            self.plain.iter().map(|(k, v)| (k.to_be_bytes().to_vec(), v.clone())).collect();
        assert!(plain == expected, "{when}: {} values instead of {}", plain.len(), expected.len());
        assert_eq!(store.examine(|| Ok::<_, StoreError>(())).unwrap(), [""; 0], "{when}");
    }
}

fn kind() -> EngineKind {
    match std::env::var("OAP_FULL_DISK_ENGINE").as_deref() {
        Ok("sled") => EngineKind::Sled,
        _ => EngineKind::Redb,
    }
}

fn open(home: &Path, lies: bool) -> Result<Store, StoreError> {
    let master = Master::KeyFile([3; 32].into());
    let space = if lies { Space::on(Liar)? } else { Space::of(home)? };
    let engine = kind().open(&home.join("store"), &space)?;
    if !home.join("vault").exists() {
        FileVault::create(&home.join("vault"), &master, &Seeded::new(2))?;
    }
    Store::open_in(space, engine, FileVault::open(&home.join("vault"), &master)?, Arc::new(Seeded::new(1)))
}

/// Leaves so many bytes free, as near as blocks allow.
fn leave(mount: &Mount, bytes: u64) {
    let ballast = File::options().create(true).append(true).open(mount.0.join("ballast")).unwrap();
    let found = rustix::fs::fstatvfs(&ballast).unwrap();
    let (free, length) = (found.f_bavail * found.f_frsize, ballast.metadata().unwrap().len());
    if free > bytes {
        let _ = rustix::fs::fallocate(&ballast, rustix::fs::FallocateFlags::empty(), length, free - bytes);
    } else {
        ballast.set_len(length.saturating_sub(bytes - free)).unwrap();
    }
}

/// Does one random thing. Whether it was acknowledged.
async fn act(store: &Store, model: &mut Model, dice: &Dice, number: u64) -> Result<(), StoreError> {
    let key = dice.roll(40);
    match dice.roll(10) {
        0..5 => {
            let values: Vec<(u64, Vec<u8>)> =
                (0..=dice.roll(4)).map(|_| (dice.roll(40), dice.value())).collect();
            let written = values.clone();
            let slots = store
                .transact(move |tx| {
                    written
                        .into_iter()
                        .map(|(key, value)| {
                            if let Some((old, _)) = ITEMS.get_with_slot(tx, &key.to_be_bytes().to_vec())? {
                                tx.wipe(old);
                            }
                            let slot = tx.new_slot()?;
                            ITEMS.put_in(tx, slot, &key.to_be_bytes().to_vec(), &value)?;
                            Ok::<_, StoreError>(slot)
                        })
                        .collect::<Result<Vec<_>, _>>()
                })
                .await?;
            for ((key, value), slot) in values.into_iter().zip(slots) {
                model.items.insert(key, (slot, value));
            }
        }
        5..7 => {
            let value = dice.value();
            let written = value.clone();
            store.transact(move |tx| PLAIN.put(tx, &number.to_be_bytes().to_vec(), &written)).await?;
            model.plain.insert(number, value);
        }
        7 => {
            store
                .transact(move |tx| {
                    tx.new_slot()?;
                    Err::<(), _>(StoreError::Locked)
                })
                .await
                .or_else(|error| if error == StoreError::Locked { Ok(()) } else { Err(error) })?;
        }
        _ => erase(store, model, key).await?,
    }
    Ok(())
}

async fn erase(store: &Store, model: &mut Model, key: u64) -> Result<(), StoreError> {
    let Some((slot, _)) = model.items.get(&key).cloned() else { return Ok(()) };
    store
        .transact(move |tx| {
            tx.use_reserve();
            ITEMS.delete(tx, &key.to_be_bytes().to_vec());
            tx.wipe(slot);
            PLAIN.put(tx, &u64::MAX.to_be_bytes().to_vec(), &b"a receipt".to_vec())
        })
        .await?;
    model.items.remove(&key);
    model.plain.insert(u64::MAX, b"a receipt".to_vec());
    Ok(())
}

/// One disk. Refusals, and erasures that a full disk took.
async fn level(seed: u64, scratch: &Path) -> (usize, usize) {
    let dice = Dice(Seeded::new(seed));
    let mount = Mount::new(5_000_000 + dice.roll(8_000_000)).unwrap();
    let home = mount.0.join("home");
    std::fs::create_dir(&home).unwrap();
    let lies = dice.roll(4) == 0;
    let (mut model, mut refused, mut erased) = (Model::default(), 0, 0);
    let mut store = open(&home, lies).unwrap();
    if dice.roll(2) == 0 {
        leave(&mount, dice.roll(4_000_000));
    }
    let refusal = |error: &StoreError| {
        assert!(matches!(error, StoreError::Full { missing: 1.. }), "seed {seed}: {error}")
    };
    for number in 0..150 {
        if dice.roll(30) == 0 {
            let few = [1, 100_000, 1_000_000][dice.roll(3) as usize];
            leave(&mount, dice.roll(few));
        }
        if let Err(error) = act(&store, &mut model, &dice, number).await {
            refusal(&error);
            refused += 1;
            if dice.roll(3) == 0 {
                break;
            }
        }
        if dice.roll(60) == 0 {
            drop(store);
            store = open(&home, lies).unwrap_or_else(|e| panic!("seed {seed}: reopening: {e}"));
        }
    }
    model.check(&store, &format!("seed {seed}: working"));

    // As it stands, without an end, on another disk: what kill -9 leaves.
    let killed = scratch.join("killed");
    assert!(
        Command::new("cp")
            .args(["-r", "--sparse=always"])
            .arg(&home)
            .arg(&killed)
            .status()
            .unwrap()
            .success()
    );
    model.check(&open(&killed, false).unwrap(), &format!("seed {seed}: killed"));
    std::fs::remove_dir_all(&killed).unwrap();

    // Full to the last block, or nearly.
    leave(&mount, [0, 5_000][dice.roll(2) as usize]);
    drop(store);
    let store = open(&home, lies).unwrap_or_else(|e| panic!("seed {seed}: opening on a full disk: {e}"));
    model.check(&store, &format!("seed {seed}: full"));
    let put = |value: Vec<u8>| store.transact(move |tx| PLAIN.put(tx, &b"12345678".to_vec(), &value));
    refusal(&put(vec![0; 3_000_000]).await.unwrap_err());
    for key in 0..3 {
        match erase(&store, &mut model, key).await {
            Ok(()) => erased += 1,
            Err(error) => refusal(&error),
        }
    }
    model.check(&store, &format!("seed {seed}: erased from"));
    drop(store);

    mount.grow(64 << 20);
    let store = open(&home, false).unwrap_or_else(|e| panic!("seed {seed}: opening when it grew: {e}"));
    model.check(&store, &format!("seed {seed}: grown"));
    let value = vec![1; 3_000_000];
    let written = value.clone();
    store.transact(move |tx| PLAIN.put(tx, &7_u64.to_be_bytes().to_vec(), &written)).await.unwrap();
    model.plain.insert(7, value);
    assert_eq!(store.space().missing(0), Ok(0), "seed {seed}");
    for key in 0..40 {
        erase(&store, &mut model, key).await.unwrap();
    }
    model.check(&store, &format!("seed {seed}: at the end"));
    (refused, erased)
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(otherwise)
}

fn main() -> ExitCode {
    on_a_disk(NAME, || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let scratch = Mount::new(256 << 20).unwrap();
        let (levels, first) = (number("OAP_FULL_DISK_LEVELS", 200), number("OAP_FULL_DISK_SEED", 1));
        let (mut refused, mut erased) = (0, 0);
        for seed in first..first + levels {
            let (r, e) = runtime.block_on(level(seed, &scratch.0));
            refused += r;
            erased += e;
        }
        assert!(
            levels < 50 || (refused > levels as usize && erased > levels as usize),
            "too little was tried"
        );
        format!(" ({levels} levels, {refused} refusals, {erased} erasures on full disks)")
    })
}
