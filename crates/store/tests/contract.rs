//! What every engine must do, run on each of them.

use oap_identity::random::Seeded;
use oap_store::{
    Engine, EngineKind, FileVault, Master, MemoryEngine, Op, Range, Raw, Space, Store, StoreError, Table,
};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

fn put(key: &[u8], value: &[u8]) -> Op {
    Op::Put(key.to_vec(), value.to_vec())
}

fn keys(engine: &dyn Engine, prefix: &[u8], from: &[u8], descending: bool) -> Vec<Vec<u8>> {
    engine.scan(prefix, from, descending).map(|pair| pair.unwrap().0).collect()
}

/// Keys in order, prefixes, batches, on an engine that is empty.
fn an_ordered_map(engine: &dyn Engine) {
    assert_eq!(engine.get(b"a").unwrap(), None);
    assert!(keys(engine, &[], &[], false).is_empty());
    engine.apply(Vec::new()).unwrap();

    // A batch: the last of two writes of a key counts; values may be empty, and larger than a page.
    let large = vec![7; 100_000];
    engine
        .apply(vec![put(&[2, 1], b"one"), put(&[2, 1], b"two"), put(&[2, 2], b""), put(&[2, 3], &large)])
        .unwrap();
    assert_eq!(engine.get(&[2, 1]).unwrap().unwrap(), b"two");
    assert_eq!(engine.get(&[2, 2]).unwrap().unwrap(), b"");
    assert_eq!(engine.get(&[2, 3]).unwrap().unwrap(), large);
    engine.apply(vec![put(&[2, 4], b"x"), Op::Delete(vec![2, 4]), Op::Delete(vec![2, 9])]).unwrap();
    assert_eq!(engine.get(&[2, 4]).unwrap(), None, "a removal after a write, and one of nothing");

    // Keys in order, within their prefix, from a place on, both ways.
    engine.apply(vec![put(&[1, 0xff], b""), put(&[3], b""), put(&[2], b""), put(&[2, 1, 0], b"")]).unwrap();
    let all: Vec<Vec<u8>> = vec![vec![2], vec![2, 1], vec![2, 1, 0], vec![2, 2], vec![2, 3]];
    assert_eq!(keys(engine, &[2], &[2], false), all);
    let back: Vec<Vec<u8>> = all.iter().rev().cloned().collect();
    assert_eq!(keys(engine, &[2], &[2, 0xff, 0xff], true), back);
    assert_eq!(keys(engine, &[2], &[2, 1, 0], false), all[2..]);
    assert_eq!(keys(engine, &[2], &[2, 1, 0], true), [vec![2, 1, 0], vec![2, 1], vec![2]]);
    assert_eq!(keys(engine, &[2, 1], &[2, 1], false), [vec![2, 1], vec![2, 1, 0]]);
    assert_eq!(keys(engine, &[], &[], false).len(), 7);

    // Removing while something reads: the reader goes on.
    let mut reading = engine.scan(&[2], &[2], false);
    assert_eq!(reading.next().unwrap().unwrap().0, [2]);
    engine.apply(vec![Op::Delete(vec![3]), Op::Delete(vec![1, 0xff])]).unwrap();
    assert!(reading.all(|pair| pair.is_ok()));
    assert_eq!(engine.get(&[3]).unwrap(), None);
    assert!(engine.room(100, 100_000) <= engine.room(200, 100_000));
    assert!(engine.room(100, 100_000) <= engine.room(100, 200_000));
    let all: Vec<_> = engine.scan(&[], &[], false).map(|pair| Op::Delete(pair.unwrap().0)).collect();
    engine.apply(all).unwrap();
    assert!(keys(engine, &[], &[], false).is_empty());
}

/// A snapshot is what was there when it was taken, whatever is applied while it is read; and nothing waits for its end.
fn snapshots_stand_still(engine: &dyn Engine) {
    let key = |number: u32| [b"s".as_slice(), &number.to_be_bytes()].concat();
    let now = || -> Vec<_> { engine.scan(&[], &[], false).map(Result::unwrap).collect() };
    assert!(engine.snapshot().unwrap().next().is_none());
    // More than an engine reads at once.
    engine.apply((0..2_500).map(|number| put(&key(2 * number), b"before")).collect()).unwrap();
    let before = now();
    let (mut begun, untouched) = (engine.snapshot().unwrap(), engine.snapshot().unwrap());
    let mut read: Vec<_> = begun.by_ref().take(1_200).map(Result::unwrap).collect();
    // Changed, removed, new, and changed twice: where it was read already, at the end of a piece, and beyond.
    for at in [0, 2, 1_998, 2_000, 2_002, 2_398, 2_400, 3_998, 4_000, 4_002, 4_996, 4_998] {
        engine
            .apply(vec![put(&key(at), b"after"), put(&key(at + 1), b"new"), Op::Delete(key(at + 2))])
            .unwrap();
        engine.apply(vec![put(&key(at), b"once more"), Op::Delete(key(at + 1))]).unwrap();
    }
    engine.apply(vec![put(b"a", b"first"), put(b"z", b"last")]).unwrap();
    read.extend(begun.by_ref().take(1_000).map(Result::unwrap));
    engine.apply((1_000..5_000).map(|number| Op::Delete(key(number))).collect()).unwrap();
    read.extend(begun.map(Result::unwrap));
    assert!(read == before);
    assert!(untouched.map(Result::unwrap).eq(before));
    let after = now();
    assert!(engine.snapshot().unwrap().map(Result::unwrap).eq(after.iter().cloned()));
    engine.apply(after.into_iter().map(|(key, _)| Op::Delete(key)).collect()).unwrap();
}

/// A reader of two keys that are always written together never finds the second older than the first.
fn batches_are_whole(engine: &Arc<dyn Engine>) {
    let done = Arc::new(AtomicBool::new(false));
    let reader = std::thread::spawn({
        let (engine, done) = (engine.clone(), done.clone());
        move || {
            while !done.load(Ordering::Acquire) {
                let number = |key: &[u8]| {
                    engine.get(key).unwrap().map_or(0, |v| u64::from_le_bytes(v.try_into().unwrap()))
                };
                let first = number(b"first");
                assert!(number(b"second") >= first);
            }
        }
    });
    for number in 1..200_u64 {
        engine
            .apply(vec![put(b"first", &number.to_le_bytes()), put(b"second", &number.to_le_bytes())])
            .unwrap();
    }
    done.store(true, Ordering::Release);
    reader.join().unwrap();
    engine.apply(vec![Op::Delete(b"first".to_vec()), Op::Delete(b"second".to_vec())]).unwrap();
}

/// Bytes of the largest value that a store is asked to hold: more than any document of the gateway may have.
const LARGEST: usize = 8 << 20;

/// What every engine must do. `make` opens the same place each time, which is empty at first.
fn contract(make: impl Fn() -> Arc<dyn Engine>) {
    an_ordered_map(&*make());
    batches_are_whole(&make());
    snapshots_stand_still(&*make());
    values_come_back_whole(&make);
    a_store_works_on_it(&make);
}

/// Values of every length that matters, after closing and opening, too.
fn values_come_back_whole(make: &impl Fn() -> Arc<dyn Engine>) {
    let value = |length: usize| -> Vec<u8> { (0..length).map(|at| (at % 251) as u8).collect() };
    let lengths = [0, 1, 255, 4095, 4096, 4097, 65_536, 1 << 20, LARGEST];
    let key = |length: usize| [b"length".as_slice(), &(length as u64).to_be_bytes()].concat();
    let engine = make();
    let batch = lengths.iter().map(|length| Op::Put(key(*length), value(*length))).collect();
    engine.apply(batch).unwrap();
    // Larger is made smaller, and smaller larger, in its place.
    engine.apply(vec![Op::Put(key(1), value(9_999)), Op::Put(key(LARGEST), value(3))]).unwrap();
    drop(engine);
    let engine = make();
    for (length, holds) in lengths.iter().map(|length| (*length, *length)) {
        let holds = match holds {
            1 => 9_999,
            LARGEST => 3,
            holds => holds,
        };
        assert_eq!(engine.get(&key(length)).unwrap(), Some(value(holds)), "{length}");
    }
    let long = vec![b'k'; 1_000];
    engine.apply(vec![Op::Put(long.clone(), b"a long key".to_vec())]).unwrap();
    assert_eq!(keys(&*engine, &long, &long, false), [long]);
    let all: Vec<_> = engine.scan(&[], &[], false).map(|pair| Op::Delete(pair.unwrap().0)).collect();
    engine.apply(all).unwrap();
    assert!(keys(&*engine, &[], &[], false).is_empty());
}

const ROWS: Table<u32, Vec<u8>, Raw> = Table::new(9);

/// What the store builds on an engine: serial transactions, hooks in order, values that can be erased, snapshots.
fn a_store_works_on_it(make: &impl Fn() -> Arc<dyn Engine>) {
    let folder = tempfile::tempdir().unwrap();
    let master = || Master::KeyFile([3; 32].into());
    FileVault::create(&folder.path().join("vault"), &master(), &Seeded::new(2)).unwrap();
    let open = || {
        let vault = FileVault::open(&folder.path().join("vault"), &master()).unwrap();
        Store::open(make(), vault, Arc::new(Seeded::new(4))).unwrap()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (slot, order) = runtime.block_on(async {
        let store = Arc::new(open());
        let order = Arc::new(Mutex::new(Vec::new()));
        // Sent together, so that they go into one batch or several: hooks run in the order of transactions, and
        // each transaction sees those before it.
        let writes = (0..50_u32).map(|number| {
            let (store, order) = (store.clone(), order.clone());
            tokio::spawn(async move {
                let write = store.transact(move |tx| {
                    assert!(number == 0 || ROWS.contains(tx, &(number - 1))?);
                    ROWS.put(tx, &number, &number.to_be_bytes().to_vec())?;
                    tx.on_commit(move || order.lock().unwrap().push(number));
                    Ok::<_, StoreError>(())
                });
                write.await.unwrap();
            })
        });
        for write in writes.collect::<Vec<_>>() {
            write.await.unwrap();
        }
        // One that fails leaves nothing, and its hook does not run.
        let unseen = order.clone();
        let failed: Result<(), StoreError> = store
            .transact(move |tx| {
                ROWS.put(tx, &50, &Vec::new())?;
                tx.on_commit(move || unseen.lock().unwrap().push(50));
                Err(StoreError::Locked)
            })
            .await;
        assert_eq!(failed, Err(StoreError::Locked));
        assert_eq!(ROWS.get(&*store, &50), Ok(None));
        let erasable = store.transact(|tx| {
            let slot = tx.new_slot()?;
            ROWS.put_in(tx, slot, &1_000, &b"to be erased".to_vec())?;
            Ok::<_, StoreError>(slot)
        });
        let slot = erasable.await.unwrap();
        // A snapshot is as of one commit: pairs that are written together are there together.
        let together = store.transact(|tx| {
            ROWS.put(tx, &2_000, &Vec::new())?;
            ROWS.put(tx, &2_001, &Vec::new())
        });
        let (written, taken) = tokio::join!(together, store.snapshot(|| ()));
        written.unwrap();
        let (taken, ()) = taken.unwrap();
        let pairs: Vec<Vec<u8>> = taken.pairs.map(|pair| pair.unwrap().0).collect();
        let has = |row: u32| pairs.contains(&[&[9], row.to_be_bytes().as_slice()].concat());
        assert!(has(49) && has(1_000) && has(2_000) == has(2_001) && !taken.vault.is_empty());
        writes_do_not_wait_for_readers(&store).await;
        (slot, order)
    });
    assert!(order.lock().unwrap().iter().copied().eq(0..50));

    // What was acknowledged is there when it is opened anew, in order; an erased value opens no more.
    runtime.block_on(async {
        let store = open();
        assert!(store.revision() > 0);
        let rows: Vec<u32> = ROWS.keys(&store, Range::all()).map(Result::unwrap).collect();
        assert!(rows.iter().copied().eq((0..50).chain([1_000, 2_000, 2_001])));
        assert_eq!(ROWS.get(&store, &1_000), Ok(Some(b"to be erased".to_vec())));
        let wiped = store.transact(move |tx| {
            tx.wipe(slot);
            Ok::<_, StoreError>(())
        });
        wiped.await.unwrap();
        assert_eq!(ROWS.get(&store, &1_000), Err(StoreError::Erased));
        drop(store);
        let store = open();
        assert_eq!(ROWS.get(&store, &1_000), Err(StoreError::Erased));
        // In a scan it is an error in its place, and the rest follows.
        let rows: Vec<bool> = ROWS.scan(&store).map(|row| row.is_ok()).collect();
        assert_eq!((rows.len(), rows.iter().filter(|ok| !**ok).count(), rows[50]), (53, 1, false));
    });
}

/// A snapshot and an examination that are under way hold no write up, and see nothing of it: neither an erasure nor a value that
/// is new.
async fn writes_do_not_wait_for_readers(store: &Arc<Store>) {
    let put = |row: u32| {
        store.transact(move |tx| {
            let slot = tx.new_slot()?;
            ROWS.put_in(tx, slot, &row, &b"kept for a while".to_vec())?;
            Ok::<_, StoreError>(slot)
        })
    };
    // A value with the key of this very slot, once nothing uses it.
    let put_with = |row: u32, slot: u32| {
        store.transact(move |tx| {
            loop {
                let new = tx.new_slot()?;
                if new == slot {
                    return ROWS.put_in(tx, slot, &row, &b"kept for a while".to_vec());
                }
                tx.wipe(new);
            }
        })
    };
    let take = |row: u32, slot: u32| {
        move |tx: &mut oap_store::Tx<'_>| {
            ROWS.delete(tx, &row);
            tx.wipe(slot);
            Ok::<_, StoreError>(())
        }
    };
    let slot = put(3_000).await.unwrap();
    let (mut taken, at) = store.snapshot(|| 7).await.unwrap();
    assert_eq!(at, 7);
    let first = taken.pairs.next().unwrap().unwrap();
    store.transact(take(3_000, slot)).await.unwrap();
    // The slot is another value's by now.
    put_with(3_001, slot).await.unwrap();
    let engine = Arc::new(MemoryEngine::default());
    let rest = taken.pairs.map(|pair| pair.map(|(key, value)| Op::Put(key, value)));
    let mut all: Vec<Op> = rest.collect::<Result<_, _>>().unwrap();
    all.push(Op::Put(first.0, first.1));
    engine.apply(all).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let vault = folder.path().join("vault");
    std::fs::write(&vault, &taken.vault).unwrap();
    let vault = FileVault::open(&vault, &Master::KeyFile([3; 32].into())).unwrap();
    let copy = Store::open(engine, vault, Arc::new(Seeded::new(6))).unwrap();
    assert_eq!(ROWS.get(&copy, &3_000), Ok(Some(b"kept for a while".to_vec())));
    assert_eq!(ROWS.get(&copy, &3_001), Ok(None));
    assert_eq!(copy.examine(|| Ok::<_, StoreError>(())).unwrap(), [""; 0]);

    // Between two steps, a value that was not looked at yet is erased, and its slot given to another.
    let mut interleaved = 0;
    let found = store.examine(|| {
        interleaved += 1;
        if interleaved == 1 {
            let write = || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                runtime.block_on(async {
                    store.transact(take(3_001, slot)).await.unwrap();
                    put_with(3_002, slot).await.unwrap();
                    let more = put(3_003).await.unwrap();
                    store.transact(take(3_003, more)).await.unwrap();
                });
            };
            std::thread::scope(|threads| threads.spawn(write).join().unwrap());
        }
        Ok::<_, StoreError>(())
    });
    assert_eq!(found, Ok(Vec::new()));
    store.transact(take(3_002, slot)).await.unwrap();
    assert_eq!(store.examine(|| Err(StoreError::Locked)), Err(StoreError::Locked));
}

fn on_disk(kind: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    let store: &Path = &folder.path().join("store");
    let space = Space::of(folder.path()).unwrap();
    let open = || kind.open(store, &space);
    contract(|| open().unwrap());
    let engine = open().unwrap();
    assert_eq!(engine.name(), kind.name());
    assert_eq!(open().err(), Some(StoreError::Locked));
    let before: Vec<_> = engine.scan(&[], &[], false).map(Result::unwrap).collect();
    assert!(before.len() > 50);

    // As it stands on disk, without an end: what kill -9 leaves.
    let killed = folder.path().join("killed");
    std::fs::create_dir(&killed).unwrap();
    copy(store, &killed);
    let found = EngineKind::of(&killed).unwrap().open(&killed, &Space::endless()).unwrap();
    assert!(found.scan(&[], &[], false).map(Result::unwrap).eq(before.iter().cloned()));

    // Closed and opened, whatever the caller would make of an empty folder.
    drop(engine);
    for other in [EngineKind::Redb, EngineKind::Sled] {
        let engine = other.open(store, &space).unwrap();
        assert_eq!(engine.name(), kind.name());
        assert!(engine.scan(&[], &[], false).map(Result::unwrap).eq(before.iter().cloned()));
    }
}

fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            std::fs::create_dir(&to).unwrap();
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

#[test]
fn memory() {
    // Opened anew, it is the same map.
    let engine: Arc<dyn Engine> = Arc::new(MemoryEngine::default());
    contract(move || engine.clone());
}

#[test]
fn redb() {
    on_disk(EngineKind::Redb);
}

#[test]
fn sled() {
    on_disk(EngineKind::Sled);
}
