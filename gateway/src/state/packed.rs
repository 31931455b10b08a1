//! The compact form of stored documents, which gives back their exact bytes.
//!
//! What is random in a document (hashes, salts, signatures, ids) is kept as bytes and not as text; the rest, nearly the same
//! in every document, is compressed (LZ4) with a dictionary that knows it. The compressor is one in Rust that keeps nothing: what
//! an item says is in no buffer that our allocator does not overwrite.
//!
//! | byte | then |
//! |---|---|
//! | 2 | length of the rest, length of the compressed rest (LEB128 each), the compressed rest, the random bytes |
//! | 1 | the same, compressed with the one dictionary that earlier versions had |
//! | any other | the value as the first versions wrote it, this byte included |
//!
//! In the rest a random part stands as `FF`, its kind, and its length; `FF 00` is the byte `FF`. A JWT's parts are base64url
//! of JSON, so that a part can hold parts.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use data_encoding::HEXLOWER;
use oap_store::Codec;
use std::borrow::Cow;
use std::marker::PhantomData;

/// The form with the dictionary of its table; another dictionary is another form.
const FORM: u8 = 2;
/// The form with the one dictionary of before.
const FORMER: u8 = 1;
const ESCAPE: u8 = 0xff;
/// Rests of receipts, links and versions of made-up items, one of each kind after the other. It never changes.
const FORMER_DICTIONARY: &[u8] = include_bytes!("packed/former.dict");
/// Most bytes that one of a compressed value stands for, about.
const MAX_RATIO: usize = 255;
/// Longest value, in bytes; longer ones are stored as they are.
pub const MAX_PACKED: usize = 64 << 20;
/// Fewest characters that are looked at as base64url: a salt has 22.
const MIN_BASE64: usize = 22;
/// Characters of a hash in hexadecimal, and of an id.
const HASH: usize = 64;
const ID: usize = 26;
/// How deeply parts hold parts: disclosures within a document that holds an SD-JWT.
const MAX_DEPTH: usize = 3;

/// Kinds of random parts.
mod kind {
    pub const ESCAPED: u8 = 0;
    pub const BASE64: u8 = 1;
    pub const HEX: u8 = 2;
    pub const ID: u8 = 3;
    pub const NESTED: u8 = 4;
}

/// Rests of the documents of a table, made up and one of each sort: few bytes, for a compressor reads all of them for each document. It
/// never changes.
pub trait Dictionary {
    /// Its bytes.
    const BYTES: &'static [u8];
}

/// Links of items.
#[derive(Debug)]
pub enum OfLinks {}

impl Dictionary for OfLinks {
    const BYTES: &'static [u8] = include_bytes!("packed/links.dict");
}

/// Receipts.
#[derive(Debug)]
pub enum OfReceipts {}

impl Dictionary for OfReceipts {
    const BYTES: &'static [u8] = include_bytes!("packed/receipts.dict");
}

/// SD-JWTs of other houses, with their disclosures.
#[derive(Debug)]
pub enum OfVersions {}

impl Dictionary for OfVersions {
    const BYTES: &'static [u8] = include_bytes!("packed/versions.dict");
}

/// What another codec writes, in the compact form.
#[derive(Debug)]
pub struct Packed<C, D>(PhantomData<(C, D)>);

impl<V, C: Codec<V>, D: Dictionary> Codec<V> for Packed<C, D> {
    fn encode(value: &V) -> Result<Cow<'_, [u8]>, postcard::Error> {
        let plain = C::encode(value)?;
        // What begins as the compact form does is in it from the start.
        if is_packed(&plain) {
            return pack(&plain, D::BYTES).map(Cow::Owned).ok_or(postcard::Error::SerializeBufferFull);
        }
        Ok(plain)
    }

    fn finish(bytes: Vec<u8>) -> Vec<u8> {
        if is_packed(&bytes) {
            return bytes;
        }
        pack(&bytes, D::BYTES).filter(|packed| packed.len() <= bytes.len()).unwrap_or(bytes)
    }

    fn decode(bytes: Vec<u8>) -> Result<V, postcard::Error> {
        if !is_packed(&bytes) {
            return C::decode(bytes);
        }
        C::decode(unpack(&bytes, D::BYTES).ok_or(postcard::Error::DeserializeBadEncoding)?)
    }
}

fn is_packed(bytes: &[u8]) -> bool {
    matches!(bytes.first(), Some(&(FORM | FORMER)))
}

/// The compact form, where nothing is lost: whatever a document looks like.
fn pack(plain: &[u8], dictionary: &[u8]) -> Option<Vec<u8>> {
    if plain.len() > MAX_PACKED {
        return None;
    }
    let (mut rest, mut random) = (Vec::with_capacity(plain.len()), Vec::with_capacity(plain.len() / 2));
    split(plain, &mut rest, &mut random, 0);
    let mut left = random.as_slice();
    if join(&rest, &mut left, 0).is_none_or(|again| again != *plain || !left.is_empty()) {
        return None;
    }
    let compressed = lz4_flex::block::compress_with_dict(&rest, dictionary);
    let mut packed = Vec::with_capacity(11 + compressed.len() + random.len());
    packed.push(FORM);
    put_length(&mut packed, rest.len());
    put_length(&mut packed, compressed.len());
    packed.extend(compressed);
    packed.extend(random);
    Some(packed)
}

fn unpack(packed: &[u8], dictionary: &[u8]) -> Option<Vec<u8>> {
    let (&form, mut left) = packed.split_first()?;
    let dictionary = match form {
        FORM => dictionary,
        FORMER => FORMER_DICTIONARY,
        _ => return None,
    };
    let (length, compressed) = (length(&mut left)?, length(&mut left)?);
    let (compressed, mut random) = left.split_at_checked(compressed)?;
    // No part is longer than what stands for it and its random bytes say, but for two marks that escape a byte.
    let most = MAX_PACKED.checked_mul(2)?.min(compressed.len().checked_mul(MAX_RATIO)?);
    if length > most {
        return None;
    }
    let rest = lz4_flex::block::decompress_with_dict(compressed, length, dictionary).ok()?;
    let plain = join(&rest, &mut random, 0)?;
    (rest.len() == length && random.is_empty()).then_some(plain)
}

/// Takes the random parts out of a text.
fn split(text: &[u8], rest: &mut Vec<u8>, random: &mut Vec<u8>, depth: usize) {
    let mut left = text;
    while !left.is_empty() {
        let start = left.iter().position(|byte| is_base64(*byte)).unwrap_or(left.len());
        let (between, tail) = left.split_at(start);
        for part in between.split_inclusive(|byte| *byte == ESCAPE) {
            rest.extend(part);
            if part.last() == Some(&ESCAPE) {
                rest.push(kind::ESCAPED);
            }
        }
        let end = tail.iter().position(|byte| !is_base64(*byte)).unwrap_or(tail.len());
        let (run, after) = tail.split_at(end);
        split_run(run, rest, random, depth);
        left = after;
    }
}

/// The same, of characters that base64url may have.
fn split_run(run: &[u8], rest: &mut Vec<u8>, random: &mut Vec<u8>, depth: usize) {
    if run.len() == HASH
        && let Ok(bytes) = HEXLOWER.decode(run)
    {
        return put_part(rest, random, kind::HEX, &bytes);
    }
    // An id, after its prefix.
    if let Some(start) = run.len().checked_sub(ID)
        && let Some((prefix, id)) = run.split_at_checked(start)
        && prefix.last().is_none_or(|byte| *byte == b'_')
        && let Some(bytes) = id_bytes(id)
    {
        rest.extend(prefix);
        return put_part(rest, random, kind::ID, &bytes);
    }
    let is_mixed = run.iter().any(u8::is_ascii_uppercase)
        && run.iter().any(u8::is_ascii_lowercase)
        && run.iter().any(u8::is_ascii_digit);
    if run.len() >= MIN_BASE64
        && is_mixed
        && let Ok(bytes) = URL_SAFE_NO_PAD.decode(run)
    {
        if depth < MAX_DEPTH && (bytes.starts_with(b"{") || bytes.starts_with(b"[")) {
            let mut nested = Vec::new();
            split(&bytes, &mut nested, random, depth + 1);
            rest.push(ESCAPE);
            rest.push(kind::NESTED);
            put_length(rest, nested.len());
            rest.extend(nested);
        } else {
            put_part(rest, random, kind::BASE64, &bytes);
        }
        return;
    }
    rest.extend(run);
}

/// The bytes of an id, where it is written as ids are.
fn id_bytes(id: &[u8]) -> Option<[u8; 16]> {
    let text = std::str::from_utf8(id).ok()?;
    let id = ulid::Ulid::from_string(text).ok()?;
    (id.to_string() == text).then(|| id.to_bytes())
}

fn put_part(rest: &mut Vec<u8>, random: &mut Vec<u8>, kind: u8, bytes: &[u8]) {
    rest.push(ESCAPE);
    rest.push(kind);
    if kind == kind::BASE64 {
        put_length(rest, bytes.len());
    }
    random.extend(bytes);
}

/// Puts the random parts back.
fn join(rest: &[u8], random: &mut &[u8], depth: usize) -> Option<Vec<u8>> {
    let mut text = Vec::with_capacity(rest.len() + 2 * random.len());
    let mut left = rest;
    while !left.is_empty() {
        let plain = left.iter().position(|byte| *byte == ESCAPE).unwrap_or(left.len());
        text.extend(take(&mut left, plain)?);
        let Some((_, tail)) = left.split_first() else { break };
        let (&kind, tail) = tail.split_first()?;
        left = tail;
        match kind {
            kind::ESCAPED => text.push(ESCAPE),
            kind::HEX => text.extend(HEXLOWER.encode(take(random, HASH / 2)?).into_bytes()),
            kind::ID => {
                let bytes = *take(random, 16)?.first_chunk::<16>()?;
                text.extend(ulid::Ulid::from_bytes(bytes).to_string().into_bytes());
            }
            kind::BASE64 => {
                let bytes = length(&mut left)?;
                text.extend(URL_SAFE_NO_PAD.encode(take(random, bytes)?).into_bytes());
            }
            kind::NESTED if depth <= MAX_DEPTH => {
                let bytes = length(&mut left)?;
                let nested = join(take(&mut left, bytes)?, random, depth + 1)?;
                text.extend(URL_SAFE_NO_PAD.encode(nested).into_bytes());
            }
            _ => return None,
        }
    }
    Some(text)
}

/// The characters of base64url, by byte.
const BASE64: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0_usize;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric() || byte as u8 == b'-' || byte as u8 == b'_';
        byte += 1;
    }
    table
};

const fn is_base64(byte: u8) -> bool {
    BASE64[byte as usize]
}

pub(super) fn take<'a>(from: &mut &'a [u8], bytes: usize) -> Option<&'a [u8]> {
    let (taken, left) = from.split_at_checked(bytes)?;
    *from = left;
    Some(taken)
}

pub(super) fn put_length(to: &mut Vec<u8>, mut length: usize) {
    while length >= 0x80 {
        to.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    to.push(length as u8);
}

pub(super) fn length(from: &mut &[u8]) -> Option<usize> {
    let mut length = 0_usize;
    for shift in (0..35).step_by(7) {
        let byte = *take(from, 1)?.first()?;
        length |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(length);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::schema::{LINKS, RECEIPTS, VERSIONS};
    use oap_identity::random::Seeded;
    use oap_store::{EngineKind, FileVault, Master, Raw, Space, Store, Table};
    use proptest::prelude::*;
    use std::sync::Arc;

    /// Longest dictionary, in bytes.
    const MAX_DICTIONARY: usize = 4 << 10;
    type Receipts = Packed<Raw, OfReceipts>;

    fn again(plain: &[u8]) {
        let plain = plain.to_vec();
        let packed = <Receipts as Codec<Vec<u8>>>::encode(&plain).unwrap().into_owned();
        let packed = <Receipts as Codec<Vec<u8>>>::finish(packed);
        assert_eq!(<Receipts as Codec<Vec<u8>>>::decode(packed).unwrap(), plain);
    }

    fn pack(plain: &[u8]) -> Option<Vec<u8>> {
        super::pack(plain, OfReceipts::BYTES)
    }

    fn unpack(packed: &[u8]) -> Option<Vec<u8>> {
        super::unpack(packed, OfReceipts::BYTES)
    }

    /// Pieces that look like what is taken out, and nearly.
    fn piece() -> impl Strategy<Value = Vec<u8>> {
        let text =
            |pattern: &str| proptest::string::string_regex(pattern).unwrap().prop_map(String::into_bytes);
        prop_oneof![
            text("[A-Za-z0-9_-]{0,90}"),
            text("[0-9a-f]{62,66}"),
            text("(mem_|rec_|x|)[0-9A-HJKMNP-TV-Z]{25,27}"),
            text("[\"{}:,\\[\\]. a-z]{0,20}"),
            proptest::collection::vec(any::<u8>(), 0..40),
            proptest::collection::vec(any::<u8>(), 0..60)
                .prop_map(|b| URL_SAFE_NO_PAD.encode(b).into_bytes()),
            text("[\\[{][\"a-zA-Z0-9_:-]{0,60}[\\]}]").prop_map(|b| URL_SAFE_NO_PAD.encode(b).into_bytes()),
        ]
    }

    proptest! {
        /// Whatever is stored comes back byte for byte, through a second time of being taken apart too.
        #[test]
        fn every_value_comes_back(pieces in proptest::collection::vec(piece(), 0..12)) {
            let plain = pieces.concat();
            prop_assume!(!is_packed(&plain));
            again(&plain);
            let nested = [b"{".as_slice(), URL_SAFE_NO_PAD.encode([b"{".as_slice(), &plain].concat()).as_bytes()].concat();
            again(&nested);
            let (packed, most) = (pack(&plain).unwrap(), unpack(&pack(&plain).unwrap()).unwrap());
            prop_assert_eq!(most, plain);
            prop_assert_eq!(packed[0], FORM);
        }

        /// What is no packed value is refused, and nothing panics.
        #[test]
        fn other_bytes_are_no_value(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = unpack(&[&[FORM], bytes.as_slice()].concat());
            let _ = unpack(&[&[FORMER], bytes.as_slice()].concat());
            let _ = join(&bytes, &mut [0; 50].as_slice(), 0);
        }

        /// Every packed value that is cut or goes on is refused.
        #[test]
        fn a_cut_value_is_refused(pieces in proptest::collection::vec(piece(), 1..6), at in any::<prop::sample::Index>()) {
            let packed = pack(&pieces.concat()).unwrap();
            prop_assert!(unpack(&packed[..at.index(packed.len())]).is_none());
            prop_assert!(unpack(&[packed.as_slice(), b"x"].concat()).is_none());
        }
    }

    /// The documents of a table in a store of an earlier version.
    fn documents(table: u8) -> Vec<Vec<u8>> {
        let kept = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stores/45312c9");
        let home = tempfile::tempdir().unwrap();
        let unpacked = |file: &str| {
            zstd::decode_all(&std::fs::read(kept.join(format!("{file}.zst"))).unwrap()[..]).unwrap()
        };
        std::fs::write(home.path().join("vault"), unpacked("vault")).unwrap();
        std::fs::create_dir(home.path().join("store")).unwrap();
        std::fs::write(home.path().join("store/store.redb"), unpacked("store")).unwrap();
        let vault = FileVault::open(&home.path().join("vault"), &Master::KeyFile([3; 32].into())).unwrap();
        let engine = EngineKind::Redb.open(&home.path().join("store"), &Space::endless()).unwrap();
        let store = Store::open(engine, vault, Arc::new(Seeded::new(1))).unwrap();
        let rows = Table::<Vec<u8>, Vec<u8>, Raw>::new(table).scan(&store).map(|row| row.unwrap().1);
        // Of the former form, which needs no dictionary of now.
        rows.map(|row| if is_packed(&row) { unpack(&row).unwrap() } else { row }).collect()
    }

    fn rest(plain: &[u8]) -> Vec<u8> {
        let mut rest = Vec::new();
        split(plain, &mut rest, &mut Vec::new(), 0);
        rest
    }

    /// Rests of which none is much like those before it, the shortest last.
    fn chosen(documents: &[Vec<u8>]) -> Vec<u8> {
        let mut rests: Vec<Vec<u8>> = documents.iter().map(|plain| rest(plain)).collect();
        rests.sort_by_key(|rest| std::cmp::Reverse(rest.len()));
        let mut chosen = Vec::new();
        for rest in rests.into_iter().rev() {
            let longer = [rest.as_slice(), &chosen].concat();
            let is_new = lz4_flex::block::compress_with_dict(&rest, &chosen).len() * 4 > rest.len();
            if is_new && longer.len() <= MAX_DICTIONARY {
                chosen = longer;
            }
        }
        chosen
    }

    /// The rows of a store of an earlier version: what the dictionaries were made of. `OAP_WRITE_DICTIONARY=1` makes them anew,
    /// which asks for another [`FORM`].
    #[test]
    fn documents_become_small() {
        let of = [
            ("links", LINKS.number(), OfLinks::BYTES),
            ("receipts", RECEIPTS.number(), OfReceipts::BYTES),
            ("versions", VERSIONS.number(), OfVersions::BYTES),
        ];
        for (name, table, dictionary) in of {
            let documents = documents(table);
            if std::env::var_os("OAP_WRITE_DICTIONARY").is_some() {
                let place = format!("{}/src/state/packed/{name}.dict", env!("CARGO_MANIFEST_DIR"));
                std::fs::write(place, chosen(&documents)).unwrap();
                continue;
            }
            let (mut before, mut after) = (0, 0);
            for plain in &documents {
                let packed = super::pack(plain, dictionary).unwrap();
                assert_eq!(super::unpack(&packed, dictionary).as_ref(), Some(plain));
                (before, after) = (before + plain.len(), after + packed.len());
            }
            println!("{name}: {} of {before} bytes become {after}", documents.len());
            assert!(dictionary.len() <= MAX_DICTIONARY);
            // Signatures, hashes and salts are most of what is left.
            assert!(after * 5 < before * 3, "{name}: {before} bytes became {after}");
        }
    }

    /// What an earlier version wrote is read as it stands.
    #[test]
    fn a_former_value_is_read() {
        for plain in [b"{\"a\":1}".to_vec(), Vec::new(), vec![0x93, 0x0f, 1, 2]] {
            assert_eq!(<Receipts as Codec<Vec<u8>>>::decode(plain.clone()).unwrap(), plain);
        }
    }
}
