//! What typed tables promise: the bytes that keys and values have on disk, order, and that a counter is no row.

use oap_identity::random::Seeded;
use oap_identity::{Hash, ItemId};
use oap_store::{AsKey, Codec, Compact, Counter, Key, Range, Raw, Single, Store, StoreError, Table};
use std::sync::Arc;

const NAMES: Table<String, u32> = Table::new(9);
const COUNT: Counter = Counter::new(9);
const LINKS: Table<(ItemId, u32), Vec<u8>, Raw> = Table::new(10);
const PLACES: Table<u32, (u32, u64), AsKey> = Table::new(11);
const ONE: Single<(u32, String)> = Single::new(12);

/// The bytes of a table as they are stored, whatever they mean.
const fn raw(number: u8) -> Table<Vec<u8>, Vec<u8>, Raw> {
    Table::new(number)
}

fn store() -> Store {
    Store::in_memory(Arc::new(Seeded::new(1))).unwrap()
}

fn item(number: u8) -> ItemId {
    ItemId::from_bytes([number; 16])
}

#[test]
fn keys_are_their_bytes_and_come_back() {
    fn there_and_back<K: Key + PartialEq + std::fmt::Debug>(key: K, bytes: &[u8]) {
        assert_eq!(key.to_key(), bytes);
        assert_eq!(K::from_key(bytes), Some(key));
        assert_eq!(K::from_key(&[bytes, &[0]].concat()).map(|key| key.to_key()).unwrap_or_default(), {
            // Text takes what there is; what has a length takes no more.
            let longer = [bytes, &[0]].concat();
            if K::from_key(&longer).is_some() { longer } else { Vec::new() }
        });
    }
    there_and_back(7_u32, &[0, 0, 0, 7]);
    there_and_back(1_u64 << 40, &[0, 0, 1, 0, 0, 0, 0, 0]);
    there_and_back(item(3), &[3; 16]);
    there_and_back(Hash::from_bytes([4; 32]), &[4; 32]);
    there_and_back([5_u8; 16], &[5; 16]);
    there_and_back("name".to_owned(), b"name");
    there_and_back((item(3), 258_u32), &[[3; 16].as_slice(), &[0, 0, 1, 2]].concat());
    there_and_back(([1_u8; 2], 2_u32, "x".to_owned()), &[1, 1, 0, 0, 0, 2, b'x']);
    assert_eq!(u32::from_key(&[1, 2, 3]), None);
    assert_eq!(u32::from_key(&[1, 2, 3, 4, 5]), None);
    assert_eq!(ItemId::from_key(&[1; 15]), None);
    assert_eq!(String::from_key(&[0xff]), None);
    assert_eq!("did:key:zz".parse::<oap_identity::Did>().ok(), oap_identity::Did::from_key(b"did:key:zz"));
}

#[tokio::test]
async fn values_are_their_bytes() {
    let store = store();
    store
        .transact(|tx| {
            NAMES.put(tx, &"a".to_owned(), &300)?;
            LINKS.put(tx, &(item(1), 2), &b"{}".to_vec())?;
            PLACES.put(tx, &7, &(1, 2))?;
            ONE.put(tx, &(1, "x".to_owned()))?;
            COUNT.count(tx)
        })
        .await
        .unwrap();
    let found = |number: u8, key: &[u8]| raw(number).get(&store, &key.to_vec()).unwrap().unwrap();
    assert_eq!(found(9, b"a"), [0xac, 2], "a varint");
    assert_eq!(found(10, &[[1; 16].as_slice(), &[0, 0, 0, 2]].concat()), b"{}");
    assert_eq!(found(11, &[0, 0, 0, 7]), [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2]);
    assert_eq!(ONE.get(&store), Ok(Some((1, "x".to_owned()))));
    assert_eq!(COUNT.get(&store), Ok(1));
}

/// The counter of a table stands in its place without a key: no reader of rows sees it, and none of the counter a row.
#[tokio::test]
async fn a_counter_is_no_row() {
    let store = store();
    let counted = store.transact(|tx| {
        assert_eq!((COUNT.count(tx)?, COUNT.count(tx)?), (0, 1));
        NAMES.put(tx, &"a".to_owned(), &1)?;
        assert!(NAMES.written(tx).iter().eq(["a"]));
        assert_eq!(NAMES.put(tx, &String::new(), &5), Err(StoreError::Key { table: 9 }));
        NAMES.delete(tx, &String::new());
        COUNT.get(tx)
    });
    assert_eq!(counted.await, Ok(2));
    assert_eq!(NAMES.get(&store, &String::new()), Err(StoreError::Key { table: 9 }));
    for range in [Range::all(), Range::all().descending()] {
        let rows: Result<Vec<_>, _> = NAMES.range(&store, range).collect();
        assert_eq!(rows, Ok(vec![("a".to_owned(), 1)]));
    }
    assert_eq!(COUNT.get(&store), Ok(2));
}

#[tokio::test]
async fn a_row_of_another_type_is_told_and_the_rest_follows() {
    let store = store();
    let written = store.transact(|tx| {
        raw(9).put(tx, &vec![b'a'], &vec![1, 2])?;
        raw(9).put(tx, &vec![0xff], &vec![1])?;
        NAMES.put(tx, &"b".to_owned(), &2)
    });
    written.await.unwrap();
    assert!(matches!(NAMES.get(&store, &"a".to_owned()), Err(StoreError::Value { table: 9, .. })));
    let rows: Vec<_> = NAMES.scan(&store).collect();
    assert!(matches!(rows[0], Err(StoreError::Value { table: 9, .. })), "{rows:?}");
    assert_eq!(rows[1..], [Ok(("b".to_owned(), 2)), Err(StoreError::Key { table: 9 })]);
    // Keys alone need no value.
    let keys: Vec<_> = NAMES.keys(&store, Range::all()).collect();
    assert_eq!(keys[..2], [Ok("a".to_owned()), Ok("b".to_owned())]);
}

/// A type gets members at its end: rows of before have none of them, and rows of later are no rows of before.
#[test]
fn a_type_grows_at_its_end() {
    type Before = (u32, String);
    type Later = (u32, String, Option<String>, bool, Vec<u8>, u64);
    let (before, later): (Before, Later) =
        ((7, "a".to_owned()), (7, "a".to_owned(), Some("b".to_owned()), true, vec![1], 9));
    let row = |value: &Before| Compact::encode(value).unwrap().into_owned();
    let grown: Later = Compact::decode(row(&before)).unwrap();
    assert_eq!(grown, (7, "a".to_owned(), None, false, Vec::new(), 0));
    let row = <Compact as Codec<Later>>::encode(&later).unwrap().into_owned();
    assert_eq!(<Compact as Codec<Later>>::decode(row.clone()), Ok(later));
    assert!(<Compact as Codec<Before>>::decode(row).is_err(), "what it would lose is not read");
    // One that had nothing to say may say something, too.
    assert_eq!(<Compact as Codec<Option<u32>>>::decode(Vec::new()), Ok(None));
    assert!(<Compact as Codec<String>>::decode(vec![200, 200, 1, b'a']).is_err());
}

#[tokio::test]
async fn ranges() {
    let store = store();
    let written = store.transact(|tx| {
        for (number, seq) in [(1, 0), (1, 1), (1, 256), (2, 0), (2, u32::MAX)] {
            LINKS.put(tx, &(item(number), seq), &vec![number])?;
        }
        Ok::<_, StoreError>(())
    });
    written.await.unwrap();
    let found = |range| -> Vec<(u8, u32)> {
        let rows = LINKS.range(&store, range).map(Result::unwrap);
        rows.map(|((item, seq), _)| (item.to_bytes()[0], seq)).collect()
    };
    assert_eq!(found(Range::all()), [(1, 0), (1, 1), (1, 256), (2, 0), (2, u32::MAX)]);
    assert_eq!(found(Range::under(&item(1))), [(1, 0), (1, 1), (1, 256)]);
    assert_eq!(found(Range::under(&item(1)).descending()), [(1, 256), (1, 1), (1, 0)]);
    assert_eq!(found(Range::under(&item(1)).from(&(item(1), 1))), [(1, 1), (1, 256)]);
    assert_eq!(found(Range::under(&item(1)).from(&(item(1), 255)).descending()), [(1, 1), (1, 0)]);
    assert_eq!(found(Range::all().from(&(item(1), 2))), [(1, 256), (2, 0), (2, u32::MAX)]);
    assert_eq!(found(Range::under(&item(2)).descending()), [(2, u32::MAX), (2, 0)]);
    assert_eq!(found(Range::under(&item(3))), []);
}
