//! How versions of items are stored: what one of this house was made of, and others as they were read.
//!
//! | byte | then |
//! |---|---|
//! | 4 | length of what was made of it ([`Fixed`], postcard), that, length of its claims (LEB128 each), the claims compressed |
//! | 3 | the same, the claims as they are |
//! | any other | as [`Packed`] has it: an SD-JWT with its disclosures, as other houses and earlier versions of the program have them |
//!
//! Of an SD-JWT of this house three quarters are digests, salts and decoys, which are a function of a seed
//! ([`Made`]). So a row holds none of them, and the SD-JWT is made when somebody asks for it: byte for byte the one that was signed,
//! which its commitment says.

use crate::state::packed::{OfVersions, Packed, length, put_length, take};
use oap_identity::{Hash, ItemId, Kid, ReceiptId, Timestamp, json};
use oap_memory::chain::Event;
use oap_memory::commitment::{Committed, Made, Place};
use oap_store::{Codec, Compact, padded};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The form with compressed claims, and the one without.
const COMPRESSED: u8 = 4;
const PLAIN: u8 = 3;
/// Claims of made-up items. It never changes: another one is another form.
const DICTIONARY: &[u8] = include_bytes!("packed/claims.dict");
/// Longest claims, in bytes: more than an item may have.
const MAX_CLAIMS: usize = 1 << 20;

/// A version with everything that it says.
#[derive(Debug)]
pub enum VersionRow {}

/// What a version was made of, beside its claims. Members may be added at the end.
#[derive(Serialize, Deserialize)]
struct Fixed {
    kid: Kid,
    item_id: ItemId,
    seq: u32,
    event: Event,
    at: Timestamp,
    prev: Option<Hash>,
    receipt: ReceiptId,
    seed: [u8; 32],
    signature: [[u8; 32]; 2],
    commitment: Hash,
}

impl Codec<Committed> for VersionRow {
    fn encode(version: &Committed) -> Result<Cow<'_, [u8]>, postcard::Error> {
        match version.made().and_then(written) {
            Some(row) => Ok(Cow::Owned(row)),
            None => Packed::<Compact, OfVersions>::encode(version),
        }
    }

    fn finish(row: Vec<u8>) -> Vec<u8> {
        if row.first() != Some(&PLAIN) {
            return <Packed<Compact, OfVersions> as Codec<Committed>>::finish(row);
        }
        let Some((fixed, claims)) = parts(&row) else { return row };
        let compressed = lz4_flex::block::compress_with_dict(claims, DICTIONARY);
        if compressed.len() >= claims.len() {
            row
        } else {
            joined(COMPRESSED, fixed, claims.len(), &compressed)
        }
    }

    fn decode(row: Vec<u8>) -> Result<Committed, postcard::Error> {
        match row.first() {
            Some(&(PLAIN | COMPRESSED)) => read(&row).ok_or(postcard::Error::DeserializeBadEncoding),
            // Which would be read as a version without anything.
            None => Err(postcard::Error::DeserializeUnexpectedEnd),
            _ => Packed::<Compact, OfVersions>::decode(row),
        }
    }
}

fn joined(form: u8, fixed: &[u8], length: usize, claims: &[u8]) -> Vec<u8> {
    let mut row = Vec::with_capacity(11 + fixed.len() + claims.len());
    row.push(form);
    put_length(&mut row, fixed.len());
    row.extend(fixed);
    put_length(&mut row, length);
    row.extend(claims);
    row
}

/// What a row has beside its claims, and its claims as they stand in it.
fn parts(row: &[u8]) -> Option<(&[u8], &[u8])> {
    let (fixed, _, claims) = cut(row)?;
    Some((fixed, claims))
}

/// The same, with the length of the claims.
fn cut(row: &[u8]) -> Option<(&[u8], usize, &[u8])> {
    let (_, mut left) = row.split_first()?;
    let fixed = length(&mut left)?;
    let fixed = take(&mut left, fixed)?;
    let claims = length(&mut left).filter(|length| *length <= MAX_CLAIMS)?;
    Some((fixed, claims, left))
}

/// A version as it is stored; none where its claims would not come back as they are.
fn written(made: &Made) -> Option<Vec<u8>> {
    let claims = json::canonical(&made.claims).ok()?;
    if claims.len() > MAX_CLAIMS || read_claims(&claims)? != made.claims {
        return None;
    }
    let Place { item_id, seq, event, at, prev, receipt } = made.place;
    let (first, second) = made.signature.split_at(32);
    let fixed = Fixed {
        kid: made.kid.clone(),
        item_id,
        seq,
        event,
        at,
        prev,
        receipt,
        seed: made.seed,
        signature: [first.try_into().ok()?, second.try_into().ok()?],
        commitment: made.commitment,
    };
    let fixed = postcard::to_stdvec(&fixed).ok()?;
    Some(joined(PLAIN, &fixed, claims.len(), &claims))
}

fn read_claims(claims: &[u8]) -> Option<Map<String, Value>> {
    match json::parse(claims).ok()? {
        Value::Object(claims) => Some(claims),
        _ => None,
    }
}

fn read(row: &[u8]) -> Option<Committed> {
    let (fixed, length, claims) = cut(row)?;
    let claims = match row.first() {
        Some(&COMPRESSED) => {
            let claims = lz4_flex::block::decompress_with_dict(claims, length, DICTIONARY).ok()?;
            (claims.len() == length).then(|| read_claims(&claims))??
        }
        _ => (claims.len() == length).then(|| read_claims(claims))??,
    };
    let Fixed { kid, item_id, seq, event, at, prev, receipt, seed, signature: [first, second], commitment } =
        padded(fixed).ok()?;
    let mut signature = [0; 64];
    signature[..32].copy_from_slice(&first);
    signature[32..].copy_from_slice(&second);
    let place = Place { item_id, seq, event, at, prev, receipt };
    Some(Made { kid, place, claims, seed, signature, commitment }.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use oap_identity::random::Seeded;
    use oap_identity::{Signer, random};
    use oap_memory::commitment::CommitmentError;
    use oap_memory::detect::{People, segments};
    use oap_memory::item::{Body, Defaults};
    use proptest::prelude::*;
    use serde_json::json;

    fn signer() -> Signer {
        Signer::did_key(&[9; 32]).unwrap()
    }

    fn version(item: &Value, seed: u64, prev: Option<Hash>) -> Committed {
        let (signer, random) = (signer(), Seeded::new(seed));
        let (scope, now) = ("personal".parse().unwrap(), Timestamp::from_millis(1_700_000_000_123));
        let body = Body::parse(item, &Defaults { principal: signer.did(), scope: &scope, now }).unwrap();
        let (item_id, receipt) = (ItemId::new(now, &random), ReceiptId::new(now, &random));
        let event = if prev.is_some() { Event::Correct } else { Event::Capture };
        let place = Place { item_id, seq: u32::from(prev.is_some()), event, at: now, prev, receipt };
        let cut = segments(body.text.as_deref().unwrap_or_default(), &People::none());
        Committed::sign(&body, &cut, &place, &signer, &random).unwrap()
    }

    fn row(version: &Committed) -> Vec<u8> {
        VersionRow::finish(VersionRow::encode(version).unwrap().into_owned())
    }

    fn again(version: &Committed) -> Committed {
        VersionRow::decode(row(version)).unwrap()
    }

    fn same(one: &Committed, other: &Committed) {
        assert_eq!(one.whole().unwrap(), other.whole().unwrap());
        assert_eq!(one.commitment(), other.commitment());
        assert_eq!(one.claims().unwrap(), other.claims().unwrap());
        assert_eq!(one.disclosures().unwrap(), other.disclosures().unwrap());
        assert!(other.is_signed_by(signer().kid()));
    }

    fn leaf() -> impl Strategy<Value = Value> {
        prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            (-1e6..1e6f64).prop_map(|f| json::parse(f.to_string().as_bytes()).unwrap()),
            Just(json::parse(b"1e21").unwrap()),
            ".{0,20}".prop_map(Value::from),
        ]
    }

    fn item() -> impl Strategy<Value = Value> {
        let part = leaf().prop_recursive(3, 20, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map(".{1,6}", inner, 0..5)
                    .prop_map(|m| Value::Object(m.into_iter().collect())),
            ]
        });
        let text = prop_oneof![
            Just(String::new()),
            ".{1,80}",
            Just("call +43 1 234 56 78 or write to ann@b.example, ann@c.example".to_owned()),
        ];
        (prop::collection::btree_map("[a-z]{1,8}", part, 1..5), text, prop::collection::vec("[a-z]{1,8}", 0..12))
            .prop_map(|(structured, text, labels)| {
                let structured: Map<String, Value> = structured.into_iter().collect();
                let mut content = json!({"structured": structured});
                if !text.is_empty() {
                    content["text"] = text.into();
                }
                json!({"kind": "observation", "content": content, "labels": labels, "extensions": {"did:web:a.example": {"x": [1, "y"]}}})
            })
    }

    proptest! {
        /// Whatever an item says, the SD-JWT that is made of its row is the one that was signed.
        #[test]
        fn a_version_comes_back_as_it_was_signed(item in item(), seed in any::<u64>(), follows in any::<bool>()) {
            let version = version(&item, seed, follows.then(|| Hash::of(b"before")));
            let row = row(&version);
            prop_assert!(matches!(row[0], PLAIN | COMPRESSED));
            same(&version, &again(&version));
            // One that a bundle brought has no seed, and comes back too.
            let read = Committed::read(&version.whole().unwrap()).unwrap();
            prop_assert!(read.made().is_none());
            same(&version, &again(&read));
        }

        #[test]
        fn other_bytes_are_no_row(form in 0..6_u8, bytes in prop::collection::vec(any::<u8>(), 0..300), cut in any::<prop::sample::Index>()) {
            let _ = VersionRow::decode([&[form], bytes.as_slice()].concat());
            let row = row(&version(&json!({"kind": "fact", "content": {"text": "x"}}), 1, None));
            prop_assert!(VersionRow::decode(row[..cut.index(row.len())].to_vec()).is_err());
        }
    }

    /// A row of this form, and the SD-JWT that was signed: whoever changes how versions are concealed changes what is stored.
    #[test]
    fn the_form_never_changes() {
        let item = json!({"kind": "preference", "labels": ["tea"], "provenance": {"confidence": 0.9},
            "content": {"text": "Green tea, says ann@b.example", "structured": {"cups": [1, {"a": 2}]}}});
        let version = version(&item, 7, None);
        assert_eq!(Hash::of(version.whole().unwrap().as_bytes()).to_string(), WHOLE);
        assert_eq!(Hash::of(&row(&version)).to_string(), ROW);
    }

    const WHOLE: &str = "sha256:a24d1712de2c1cdc531ff88c46435a310a1136b61c1acb0bb88d88812f9ac788";
    const ROW: &str = "sha256:a08016f2b2d9ab4a720b810dbd1388beff43fa74b5ab2a7ef0740bf0bbf5b13a";

    /// A row that says another thing than what was signed is none, when the SD-JWT is asked for.
    #[test]
    fn what_is_made_is_what_was_signed() {
        let version = version(&json!({"kind": "fact", "content": {"text": "x"}}), 1, None);
        let mut made = version.made().unwrap().clone();
        made.seed = random::bytes(&Seeded::new(8));
        assert_eq!(Committed::from(made).whole(), Err(CommitmentError::OtherVersion));
        let mut made = version.made().unwrap().clone();
        made.signature = [0; 64];
        assert_eq!(Committed::from(made).whole(), Err(CommitmentError::OtherVersion));
        let mut made = version.made().unwrap().clone();
        made.claims.insert("kind".to_owned(), json!("preference"));
        assert_eq!(Committed::from(made).whole(), Err(CommitmentError::OtherVersion));
    }
}
