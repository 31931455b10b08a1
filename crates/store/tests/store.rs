//! What a store promises: atomic, durable, sealed, and forgetful when told to.

use oap_identity::random::Seeded;
use oap_store::{
    Engine, EngineError, FileVault, Master, MemoryEngine, OLDEST_SCHEMA, Op, Raw, RedbEngine, SCHEMA, Space,
    Store, StoreError, Table, Vault,
};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const ITEMS: Table<Vec<u8>, Vec<u8>, Raw> = Table::new(9);

fn random() -> Arc<Seeded> {
    Arc::new(Seeded::new(1))
}

fn master() -> Master {
    Master::KeyFile([3; 32].into())
}

/// The default engine; `contract.rs` runs all.
fn engine(folder: &Path) -> Result<RedbEngine, StoreError> {
    RedbEngine::open(&folder.join("store"), &Space::endless())
}

fn open(folder: &Path) -> Result<Store, StoreError> {
    let vault = folder.join("vault");
    if !vault.exists() {
        FileVault::create(&vault, &master(), &Seeded::new(2)).unwrap();
    }
    let vault = FileVault::open(&vault, &master())?;
    Store::open(engine(folder)?, vault, random())
}

async fn put(store: &Store, key: &'static [u8], value: &'static [u8]) -> u32 {
    store
        .transact(move |tx| {
            let slot = tx.new_slot()?;
            ITEMS.put_in(tx, slot, &key.to_vec(), &value.to_vec())?;
            Ok::<_, StoreError>(slot)
        })
        .await
        .unwrap()
}

fn examine(store: &Store) -> Result<Vec<String>, StoreError> {
    store.examine(|| Ok(()))
}

#[tokio::test]
async fn what_was_acknowledged_is_there_after_reopening() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    put(&store, b"a", b"one").await;
    let revision = store.revision();
    drop(store);
    let store = open(folder.path()).unwrap();
    assert_eq!(ITEMS.get(&store, &b"a".to_vec()).unwrap().unwrap(), b"one");
    assert_eq!(store.revision(), revision);
}

#[tokio::test]
async fn a_failed_transaction_leaves_nothing() {
    let store = Store::in_memory(random()).unwrap();
    let failed: Result<(), StoreError> = store
        .transact(|tx| {
            let slot = tx.new_slot()?;
            ITEMS.put_in(tx, slot, &b"a".to_vec(), &b"one".to_vec())?;
            ITEMS.put(tx, &b"b".to_vec(), &b"two".to_vec())?;
            Err(StoreError::Locked)
        })
        .await;
    assert_eq!(failed, Err(StoreError::Locked));
    assert_eq!(ITEMS.get(&store, &b"a".to_vec()).unwrap(), None);
    assert_eq!(ITEMS.get(&store, &b"b".to_vec()).unwrap(), None);
}

#[tokio::test]
async fn transactions_are_serial() {
    let store = Arc::new(Store::in_memory(random()).unwrap());
    let add = |store: Arc<Store>| async move {
        store
            .transact(|tx| {
                let before =
                    ITEMS.get(tx, &b"n".to_vec())?.map_or(0, |v| u64::from_le_bytes(v.try_into().unwrap()));
                ITEMS.put(tx, &b"n".to_vec(), &(before + 1).to_le_bytes().to_vec())
            })
            .await
            .unwrap();
    };
    let tasks: Vec<_> = (0..500).map(|_| tokio::spawn(add(store.clone()))).collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(ITEMS.get(&*store, &b"n".to_vec()).unwrap().unwrap(), 500u64.to_le_bytes());
}

#[tokio::test]
async fn hooks_run_after_the_commit_and_before_the_answer() {
    let store = Store::in_memory(random()).unwrap();
    let ran = Arc::new(AtomicBool::new(false));
    let seen = ran.clone();
    store
        .transact(move |tx| {
            ITEMS.put(tx, &b"a".to_vec(), &b"1".to_vec())?;
            tx.on_commit(move || seen.store(true, Ordering::SeqCst));
            Ok::<_, StoreError>(())
        })
        .await
        .unwrap();
    assert!(ran.load(Ordering::SeqCst));
}

/// What a batch writes once is written with it: the last one asked for, with what that transaction and those before it wrote.
#[tokio::test]
async fn what_a_batch_writes_once_is_that_of_its_last_transaction() {
    let store = Arc::new(Store::in_memory(random()).unwrap());
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let add = |number: u8, wait: Option<std::sync::mpsc::Receiver<()>>, fails: bool| {
        let store = store.clone();
        async move {
            store
                .transact(move |tx| {
                    if let Some(wait) = wait {
                        let _ = wait.recv();
                    }
                    ITEMS.put(tx, &vec![number], &b"one".to_vec())?;
                    tx.at_last("sum", move |tx| {
                        let all: Vec<u8> =
                            (0..9).filter(|n| ITEMS.contains(tx, &vec![*n]).unwrap()).collect();
                        ITEMS.put(tx, &vec![number], &all)
                    });
                    if fails { Err(StoreError::Locked) } else { Ok(()) }
                })
                .await
        }
    };
    let mut all: Vec<_> = [(0, Some(wait), false), (1, None, false), (2, None, false), (3, None, true)]
        .into_iter()
        .map(|(number, wait, fails)| Box::pin(add(number, wait, fails)))
        .collect();
    // Sent before the writer goes on, so that they are one batch.
    for one in &mut all {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(one.as_mut().poll(&mut context).is_pending());
    }
    go.send(()).unwrap();
    for (number, one) in all.into_iter().enumerate() {
        assert_eq!(one.await.is_ok(), number != 3);
    }
    let stored = |number: u8| ITEMS.get(&*store, &vec![number]).unwrap();
    assert_eq!((stored(0), stored(1)), (Some(b"one".to_vec()), Some(b"one".to_vec())));
    assert_eq!((stored(2), stored(3)), (Some(vec![0, 1, 2]), None));
}

/// Where it cannot be made, nothing of the batch is there.
#[tokio::test]
async fn a_batch_that_cannot_be_finished_is_none() {
    let why = || StoreError::Key { table: 9 };
    for panics in [false, true] {
        let store = Store::in_memory(random()).unwrap();
        let done = store
            .transact(move |tx| {
                ITEMS.put(tx, &b"a".to_vec(), &b"one".to_vec())?;
                tx.at_last("sum", move |_| {
                    assert!(!panics, "a fault of the program");
                    Err(why())
                });
                Ok::<_, StoreError>(())
            })
            .await;
        assert_eq!(done, Err(if panics { StoreError::Panicked } else { why() }));
        assert_eq!(ITEMS.get(&store, &b"a".to_vec()), Ok(None));
        assert!(store.is_stopped());
    }
}

#[tokio::test]
async fn values_are_sealed_and_bound_to_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    put(&store, b"a", b"a marker that must not be on disk").await;
    drop(store);
    for file in files(folder.path()) {
        let bytes = std::fs::read(&file).unwrap();
        assert!(!contains(&bytes, b"a marker that must not"), "{}", file.display());
    }
    // A value moved to another key does not open.
    let engine = engine(folder.path()).unwrap();
    let moved = engine.get(&[9, b'a']).unwrap().unwrap();
    engine.apply(vec![Op::Put(vec![9, b'b'], moved.clone())]).unwrap();
    let mut changed = moved;
    *changed.last_mut().unwrap() ^= 1;
    engine.apply(vec![Op::Put(vec![9, b'a'], changed)]).unwrap();
    drop(engine);
    let store = open(folder.path()).unwrap();
    assert_eq!(ITEMS.get(&store, &b"b".to_vec()), Err(StoreError::Tampered));
    assert_eq!(ITEMS.get(&store, &b"a".to_vec()), Err(StoreError::Tampered));
}

#[tokio::test]
async fn a_wiped_key_opens_nothing_any_more() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let slot = put(&store, b"a", b"one").await;
    put(&store, b"b", b"two").await;
    drop(store);
    let before = engine(folder.path()).unwrap().get(&[9, b'a']).unwrap().unwrap();
    let store = open(folder.path()).unwrap();
    store
        .transact(move |tx| {
            ITEMS.delete(tx, &b"a".to_vec());
            tx.wipe(slot);
            Ok::<_, StoreError>(())
        })
        .await
        .unwrap();
    assert_eq!(ITEMS.get(&store, &b"a".to_vec()).unwrap(), None);
    drop(store);
    // The log may keep the sealed bytes; with the vault as it is now they are noise.
    let engine = engine(folder.path()).unwrap();
    engine.apply(vec![Op::Put(vec![9, b'a'], before)]).unwrap();
    drop(engine);
    let store = open(folder.path()).unwrap();
    assert_eq!(ITEMS.get(&store, &b"a".to_vec()), Err(StoreError::Erased));
    assert_eq!(ITEMS.get(&store, &b"b".to_vec()).unwrap().unwrap(), b"two");
}

/// A crash after the batch and before the overwriting: opening the store finishes the work.
#[tokio::test]
async fn opening_wipes_keys_that_are_not_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let slot = put(&store, b"a", b"one").await;
    put(&store, b"b", b"two").await;
    drop(store);
    let engine = engine(folder.path()).unwrap();
    let mark = [&[1], slot.to_be_bytes().as_slice()].concat();
    engine.apply(vec![Op::Delete(mark)]).unwrap();
    drop(engine);
    let store = open(folder.path()).unwrap();
    assert_eq!(ITEMS.get(&store, &b"a".to_vec()), Err(StoreError::Erased));
    assert_eq!(ITEMS.get(&store, &b"b".to_vec()).unwrap().unwrap(), b"two");
}

/// More keys and rows than are read at once when a store is opened, some of them gone: what is there stays there.
#[tokio::test]
async fn many_keys_and_rows_are_found_when_a_store_is_opened() {
    const ROWS: u32 = 9_000;
    let folder = tempfile::tempdir().unwrap();
    let row = |number: u32| (number.to_be_bytes().to_vec(), number.to_string().into_bytes());
    let write = move |tx: &mut oap_store::Tx, numbers: std::ops::Range<u32>| {
        let mut slots = Vec::new();
        for number in numbers {
            let (slot, (key, value)) = (tx.new_slot()?, row(number));
            ITEMS.put_in(tx, slot, &key, &value)?;
            slots.push(slot);
        }
        Ok::<_, StoreError>(slots)
    };
    let store = open(folder.path()).unwrap();
    let slots = store.transact(move |tx| write(tx, 0..ROWS)).await.unwrap();
    let goes = |number: &u32| number % 7 == 3;
    let wiped = slots.clone();
    let wipe = move |tx: &mut oap_store::Tx| {
        for number in (0..ROWS).filter(goes) {
            ITEMS.delete(tx, &row(number).0);
            tx.wipe(wiped[number as usize]);
        }
        Ok::<_, StoreError>(())
    };
    store.transact(wipe).await.unwrap();
    drop(store);

    let used = FileVault::open(&folder.path().join("vault"), &master()).unwrap().used();
    assert!((0..ROWS).zip(&slots).all(|(number, slot)| used.binary_search(slot).is_ok() != goes(&number)));
    let store = open(folder.path()).unwrap();
    let expected: Vec<_> = (0..ROWS).filter(|number| !goes(number)).map(row).collect();
    let scanned = || ITEMS.scan_on_all_cores(&store).collect::<Result<Vec<_>, _>>();
    assert_eq!(scanned().unwrap(), expected);
    assert_eq!(ITEMS.scan(&store).collect::<Result<Vec<_>, _>>().unwrap(), expected);
    // What is free is what was wiped, and behind the end: no key of a row is written over.
    let more = store.transact(move |tx| write(tx, ROWS..ROWS + 2_000)).await.unwrap();
    let kept = |slot: &u32| slots.iter().zip(0..).any(|(of, number)| of == slot && !goes(&number));
    assert!(!more.iter().any(kept));
    assert_eq!(scanned().unwrap().len(), expected.len() + 2_000);
    assert_eq!(scanned().unwrap()[..expected.len()], expected);
}

/// Of the keys that are ready ahead none is in a copy: whoever gets it, and is erased, was never in that copy.
#[test]
fn a_copy_of_the_vault_has_no_key_that_nobody_has() {
    let folder = tempfile::tempdir().unwrap();
    let (first, copy) = (folder.path().join("first"), folder.path().join("copy"));
    FileVault::create(&first, &master(), &Seeded::new(2)).unwrap();
    let vault = FileVault::open(&first, &master()).unwrap();
    let taken = [1, 2].map(|_| vault.allocate(&*random()).unwrap().0);
    std::fs::write(&copy, vault.image().unwrap()).unwrap();
    let later = vault.allocate(&*random()).unwrap().0;
    let copied = FileVault::open(&copy, &master()).unwrap();
    assert_eq!(copied.used(), taken);
    assert_eq!(copied.key(later), Err(StoreError::Erased));
    assert!([0, taken[0], taken[1]].iter().all(|slot| copied.key(*slot).is_ok()));
}

#[tokio::test]
async fn slots_are_used_again_after_wiping() {
    let store = Store::in_memory(random()).unwrap();
    let first = put(&store, b"a", b"one").await;
    store
        .transact(move |tx| {
            ITEMS.delete(tx, &b"a".to_vec());
            tx.wipe(first);
            Ok::<_, StoreError>(())
        })
        .await
        .unwrap();
    // Those whose keys are ready come before it.
    for _ in 0..600 {
        if put(&store, b"b", b"two").await == first {
            return;
        }
    }
    panic!("it was not used again");
}

#[test]
fn a_store_of_another_version_is_refused() {
    let engine = MemoryEngine::default();
    engine.apply(vec![Op::Put(vec![0, 0], (SCHEMA + 1).to_le_bytes().to_vec())]).unwrap();
    let opened = Store::open(engine, FileVault::in_memory(&Seeded::new(1)).unwrap(), random());
    assert_eq!(opened.err(), Some(StoreError::Schema { found: SCHEMA + 1, known: SCHEMA }));

    // One that is brought forward is of this version from then on.
    let engine = Arc::new(MemoryEngine::default());
    for found in OLDEST_SCHEMA..=SCHEMA {
        engine.apply(vec![Op::Put(vec![0, 0], found.to_le_bytes().to_vec())]).unwrap();
        assert!(
            Store::open(engine.clone(), FileVault::in_memory(&Seeded::new(1)).unwrap(), random()).is_ok()
        );
        assert_eq!(engine.get(&[0, 0]).unwrap().unwrap(), SCHEMA.to_le_bytes());
    }

    let engine = MemoryEngine::default();
    engine.apply(vec![Op::Put(vec![9, 0], vec![1])]).unwrap();
    let opened = Store::open(engine, FileVault::in_memory(&Seeded::new(1)).unwrap(), random());
    assert!(opened.err().unwrap().to_string().contains("schema version 0"));
}

#[test]
fn a_store_is_open_once() {
    let folder = tempfile::tempdir().unwrap();
    let _store = open(folder.path()).unwrap();
    assert_eq!(open(folder.path()).err(), Some(StoreError::Locked));
}

#[test]
fn the_vault_opens_with_its_own_master_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vault");
    let passphrase = |text: &str| Master::Passphrase(text.to_owned().into());
    FileVault::create(&path, &passphrase("correct horse"), &Seeded::new(1)).unwrap();
    assert!(FileVault::open(&path, &passphrase("correct horse")).is_ok());
    assert_eq!(FileVault::open(&path, &passphrase("battery staple")).err(), Some(StoreError::WrongKey));
    assert!(matches!(FileVault::open(&path, &master()), Err(StoreError::Vault(_))));
    assert!(FileVault::create(&path, &master(), &Seeded::new(1)).is_err(), "never over an existing vault");
    std::fs::write(&path, b"short").unwrap();
    assert!(matches!(FileVault::open(&path, &master()), Err(StoreError::Vault(_))));
}

/// A disk that fails: nothing is acknowledged, and nothing is taken afterwards.
#[tokio::test]
async fn a_failed_commit_stops_the_store() {
    struct Failing(MemoryEngine, Arc<AtomicBool>);
    impl Engine for Failing {
        fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
            self.0.get(key)
        }
        fn scan<'a>(
            &'a self,
            prefix: &[u8],
            from: &[u8],
            descending: bool,
        ) -> Box<dyn Iterator<Item = Result<(Vec<u8>, Vec<u8>), StoreError>> + 'a> {
            self.0.scan(prefix, from, descending)
        }
        fn apply(&self, batch: Vec<Op>) -> Result<(), StoreError> {
            if self.1.load(Ordering::SeqCst) {
                return Err(StoreError::Engine(EngineError::File(Arc::new(std::io::Error::other(
                    "no space",
                )))));
            }
            self.0.apply(batch)
        }
    }
    let broken = Arc::new(AtomicBool::new(false));
    let engine = Failing(MemoryEngine::default(), broken.clone());
    let store = Store::open(engine, FileVault::in_memory(&Seeded::new(1)).unwrap(), random()).unwrap();
    broken.store(true, Ordering::SeqCst);
    let result = store.transact(|tx| ITEMS.put(tx, &b"a".to_vec(), &b"1".to_vec())).await;
    assert_eq!(
        result,
        Err(StoreError::Engine(EngineError::File(Arc::new(std::io::Error::other("no space")))))
    );
    broken.store(false, Ordering::SeqCst);
    assert_eq!(
        store.transact(|tx| ITEMS.put(tx, &b"a".to_vec(), &b"1".to_vec())).await,
        Err(StoreError::Stopped)
    );
    assert!(store.is_stopped());
}

#[tokio::test]
async fn what_waits_for_the_writer_is_counted() {
    let store = Store::in_memory(random()).unwrap();
    let (begun, begins) = tokio::sync::oneshot::channel();
    let (go, wait) = std::sync::mpsc::channel();
    let held = store.transact(move |_| {
        let _ = begun.send(());
        let _ = wait.recv();
        Ok::<_, StoreError>(())
    });
    let others = async {
        begins.await.unwrap();
        // The one that runs does not wait.
        assert_eq!(store.waiting(), 0);
        let release = async {
            // All of them are polled between two looks.
            for _ in 0..10_000 {
                if store.waiting() == 3 {
                    break;
                }
                tokio::task::yield_now().await;
            }
            let waited = store.waiting();
            go.send(()).unwrap();
            assert_eq!(waited, 3);
        };
        tokio::join!(put(&store, b"a", b"1"), store.snapshot(|| ()), put(&store, b"b", b"2"), release)
    };
    let (held, (_, snapshot, _, ())) = tokio::join!(held, others);
    held.unwrap();
    snapshot.unwrap();
    assert_eq!(store.waiting(), 0);
}

#[tokio::test]
async fn a_panic_is_the_failure_of_one_transaction() {
    let store = Store::in_memory(random()).unwrap();
    let panics = store.transact(|tx| {
        ITEMS.put(tx, &b"a".to_vec(), &b"1".to_vec())?;
        let slot = tx.new_slot()?;
        ITEMS.put_in(tx, slot, &b"b".to_vec(), &b"2".to_vec())?;
        if ITEMS.contains(tx, &b"a".to_vec())? {
            panic!("a fault in the program");
        }
        Ok(())
    });
    assert_eq!(panics.await, Err::<(), _>(StoreError::Panicked));
    assert!(!store.is_stopped());
    store.transact(|tx| ITEMS.put(tx, &b"c".to_vec(), &b"3".to_vec())).await.unwrap();
    assert_eq!(ITEMS.get(&store, &b"a".to_vec()), Ok(None));
    assert_eq!(ITEMS.get(&store, &b"b".to_vec()), Ok(None));
    assert_eq!(ITEMS.get(&store, &b"c".to_vec()), Ok(Some(b"3".to_vec())));
    assert_eq!(examine(&store).unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn a_panic_after_the_commit_stops_the_writer() {
    let store = Store::in_memory(random()).unwrap();
    let written = store.transact(|tx| {
        tx.on_commit(|| panic!("a fault in the program"));
        ITEMS.put(tx, &b"a".to_vec(), &b"1".to_vec())
    });
    // It is durable, and said to be.
    assert_eq!(written.await, Ok(()));
    assert_eq!(
        store.transact(|tx| ITEMS.put(tx, &b"b".to_vec(), &b"2".to_vec())).await,
        Err(StoreError::Stopped)
    );
    assert!(store.is_stopped());
    assert_eq!(ITEMS.get(&store, &b"a".to_vec()), Ok(Some(b"1".to_vec())));
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

fn contains(bytes: &[u8], marker: &[u8]) -> bool {
    bytes.windows(marker.len()).any(|window| window == marker)
}

/// What is much is sealed on all cores: each value opens at its own place, the last one that was written there.
#[tokio::test]
async fn many_values_are_sealed_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let key = |number: u32| number.to_be_bytes().to_vec();
    let value = |number: u32| format!("value {number}").into_bytes();
    let wrote = store.transact(move |tx| {
        for number in 0..300 {
            let slot = tx.new_slot()?;
            ITEMS.put_in(tx, slot, &key(number), &value(number))?;
        }
        ITEMS.put(tx, &key(7), &b"another".to_vec())?;
        assert_eq!(ITEMS.get(tx, &key(7))?, Some(b"another".to_vec()));
        assert_eq!(ITEMS.get(tx, &key(8))?, Some(value(8)));
        ITEMS.delete(tx, &key(9));
        ITEMS.get(tx, &key(9))
    });
    assert_eq!(wrote.await.unwrap(), None);
    drop(store);
    let store = open(folder.path()).unwrap();
    for number in 0..300 {
        let expected = match number {
            7 => Some(b"another".to_vec()),
            9 => None,
            other => Some(value(other)),
        };
        assert_eq!(ITEMS.get(&store, &key(number)).unwrap(), expected, "{number}");
    }
    assert!(examine(&store).unwrap().is_empty());
}
