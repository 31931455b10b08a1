//! The check of free space and the reserve, on a disk that is told how full it is.

use oap_identity::random::Seeded;
use oap_store::{
    BESIDE, Disk, Engine, FileVault, MIN_RESERVE, MemoryEngine, Op, Raw, Space, Store, StoreError, Table,
};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

const ITEMS: Table<Vec<u8>, Vec<u8>, Raw> = Table::new(9);
/// What a batch takes of the engine here, in bytes.
const ROOM: u64 = 10_000;

/// A disk of 16 MiB, whose reserve is then the smallest. `left` is what is free and in the reserve together.
#[derive(Debug, Clone)]
struct FakeDisk {
    left: Arc<AtomicU64>,
    held: Arc<AtomicU64>,
}

impl FakeDisk {
    fn new(left: u64) -> Self {
        Self { left: Arc::new(left.into()), held: Arc::default() }
    }
    fn held(&self) -> u64 {
        self.held.load(Ordering::SeqCst)
    }
}

impl Disk for FakeDisk {
    fn total(&self) -> io::Result<u64> {
        Ok(16 << 20)
    }
    fn free(&self) -> io::Result<u64> {
        Ok(self.left.load(Ordering::SeqCst) - self.held())
    }
    fn held(&self) -> io::Result<u64> {
        Ok(Self::held(self))
    }
    fn hold(&self, bytes: u64) -> io::Result<()> {
        if bytes > self.left.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.held.store(bytes, Ordering::SeqCst);
        Ok(())
    }
}

/// Notes how much the reserve held while each batch was written.
struct Watched(MemoryEngine, FakeDisk, Arc<Mutex<Vec<u64>>>);

impl Engine for Watched {
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
        self.2.lock().unwrap().push(self.1.held());
        self.0.apply(batch)
    }
    fn room(&self, _: usize, _: usize) -> u64 {
        ROOM
    }
}

fn open(disk: &FakeDisk) -> (Store, Arc<Mutex<Vec<u64>>>) {
    let noted = Arc::default();
    let engine = Watched(MemoryEngine::default(), disk.clone(), Arc::clone(&noted));
    let vault = FileVault::in_memory(&Seeded::new(1)).unwrap();
    let space = Space::on(disk.clone()).unwrap();
    (Store::open_in(space, engine, vault, Arc::new(Seeded::new(2))).unwrap(), noted)
}

fn examine(store: &Store) -> Result<Vec<String>, StoreError> {
    store.examine(|| Ok(()))
}

#[tokio::test]
async fn a_transaction_is_admitted_with_the_reserve_beside_it_and_refused_to_the_byte() {
    let enough = MIN_RESERVE + BESIDE + ROOM;
    let disk = FakeDisk::new(enough);
    let (store, _) = open(&disk);
    assert_eq!(disk.held(), MIN_RESERVE, "the reserve is filled when the store opens");
    store.transact(|tx| ITEMS.put(tx, &b"a".to_vec(), &b"1".to_vec())).await.unwrap();
    for missing in [1, 5_000, enough] {
        let disk = FakeDisk::new(enough - missing);
        let (store, _) = open(&disk);
        let refused = store.transact(|tx| ITEMS.put(tx, &b"a".to_vec(), &b"1".to_vec())).await;
        assert_eq!(refused, Err(StoreError::Full { missing }));
        assert_eq!(ITEMS.get(&store, &b"a".to_vec()), Ok(None));
        assert_eq!(store.revision(), 0);
        assert!(!store.is_stopped());
        // The disk grows: the store goes on, and the reserve is whole again.
        disk.left.store(enough, Ordering::SeqCst);
        store.transact(|tx| ITEMS.put(tx, &b"a".to_vec(), &b"2".to_vec())).await.unwrap();
        assert_eq!(ITEMS.get(&store, &b"a".to_vec()).unwrap().unwrap(), b"2");
        assert_eq!(disk.held(), MIN_RESERVE);
    }
}

#[tokio::test]
async fn an_erasure_has_the_reserve_and_gives_back_what_is_left() {
    let disk = FakeDisk::new(MIN_RESERVE + BESIDE + ROOM);
    let (store, noted) = open(&disk);
    let slot = store
        .transact(|tx| {
            let slot = tx.new_slot()?;
            ITEMS.put_in(tx, slot, &b"a".to_vec(), &b"1".to_vec())?;
            Ok::<_, StoreError>(slot)
        })
        .await
        .unwrap();
    disk.left.store(MIN_RESERVE, Ordering::SeqCst);
    store
        .transact(move |tx| {
            tx.use_reserve();
            ITEMS.delete(tx, &b"a".to_vec());
            tx.wipe(slot);
            Ok::<_, StoreError>(())
        })
        .await
        .unwrap();
    assert_eq!(ITEMS.get(&store, &b"a".to_vec()), Ok(None));
    assert_eq!(*noted.lock().unwrap(), [0, MIN_RESERVE, 0], "the schema, the item, the erasure");
    assert_eq!(disk.held(), (MIN_RESERVE - BESIDE) / 4096 * 4096);
    assert_eq!(examine(&store), Ok(Vec::new()));
}

/// Two transactions of one batch do not share the same free bytes.
#[tokio::test]
async fn a_batch_is_counted_as_a_whole() {
    let disk = FakeDisk::new(MIN_RESERVE + BESIDE + 2 * ROOM);
    let (store, _) = open(&disk);
    let store = Arc::new(store);
    let (go, wait) = std::sync::mpsc::channel::<()>();
    // Holds the writer, so that the others are in its batch.
    let first = tokio::spawn({
        let store = store.clone();
        async move {
            store
                .transact(move |tx| {
                    let _ = wait.recv();
                    ITEMS.put(tx, &b"0".to_vec(), &b"1".to_vec())
                })
                .await
        }
    });
    tokio::task::yield_now().await;
    let mut others: Vec<_> = (1..4_u8)
        .map(|n| {
            let store = store.clone();
            Box::pin(
                async move { store.transact(move |tx| ITEMS.put(tx, &[n].to_vec(), &b"1".to_vec())).await },
            )
        })
        .collect();
    // Sent before the writer goes on.
    for other in &mut others {
        assert!(futures_poll(other.as_mut()).is_none());
    }
    go.send(()).unwrap();
    let mut results = vec![first.await.unwrap()];
    for other in others {
        results.push(other.await);
    }
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 2, "{results:?}");
}

fn futures_poll<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Option<T> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.poll(&mut context) {
        std::task::Poll::Ready(value) => Some(value),
        std::task::Poll::Pending => None,
    }
}

#[test]
fn what_must_be_finished_is_tried_once_more_with_the_reserve_given_back() {
    let disk = FakeDisk::new(2 * MIN_RESERVE);
    let space = Space::on(disk.clone()).unwrap();
    space.refill();
    assert_eq!(disk.held(), MIN_RESERVE);
    let mut tries = Vec::new();
    let done = space.finish(|| {
        tries.push(disk.held());
        if tries.len() == 1 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(7) }
    });
    assert_eq!((done.unwrap(), tries), (7, vec![MIN_RESERVE, 0]));
    assert_eq!(disk.held(), MIN_RESERVE, "filled again");
    let mut tries = 0;
    let other = space.finish(|| {
        tries += 1;
        Err::<(), _>(io::ErrorKind::PermissionDenied.into())
    });
    assert_eq!((other.unwrap_err().kind(), tries), (io::ErrorKind::PermissionDenied, 1));
}
