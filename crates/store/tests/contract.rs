//! What every engine must do, run on each of them.

use oap_store::{Engine, EngineKind, MemoryEngine, Op, Space, StoreError};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn put(key: &[u8], value: &[u8]) -> Op {
    Op::Put(key.to_vec(), value.to_vec())
}

fn keys(engine: &dyn Engine, prefix: &[u8], from: &[u8], descending: bool) -> Vec<Vec<u8>> {
    engine.scan(prefix, from, descending).map(|pair| pair.unwrap().0).collect()
}

/// The contract of [`Engine`], on an engine that is empty.
fn contract(engine: &dyn Engine) {
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
}

fn on_disk(kind: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    let store: &Path = &folder.path().join("store");
    let space = Space::of(folder.path()).unwrap();
    let open = || kind.open(store, &space);
    let engine = open().unwrap();
    assert_eq!(engine.name(), kind.name());
    assert_eq!(open().err(), Some(StoreError::Locked));
    contract(&*engine);
    batches_are_whole(&engine);
    let before: Vec<_> = engine.scan(&[], &[], false).map(Result::unwrap).collect();

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
    contract(&MemoryEngine::default());
    let engine: Arc<dyn Engine> = Arc::new(MemoryEngine::default());
    batches_are_whole(&engine);
}

#[test]
fn redb() {
    on_disk(EngineKind::Redb);
}

#[test]
fn sled() {
    on_disk(EngineKind::Sled);
}
