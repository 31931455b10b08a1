//! How large an item's commitment becomes, told from the item alone and before anything is signed.
//!
//! Every member and element of an item is concealed with a salt, a digest and its place, so that a few bytes of JSON
//! become hundreds. The bounds here hold for every item that [`crate::Body::parse`] accepts: its commitment can be checked
//! by [`crate::evidence`], has at most [`COMMITTED_FREE`] bytes and [`COMMITTED_RATIO`] times the item's own, and every
//! document that an item stands in can be read.

use crate::detect::max_spans;
use crate::item::{Expected, ItemError, MAX_TEXT};
use crate::sd_jwt::{DECOY_STEP, MAX_DISCLOSURES};
use oap_identity::json;
use serde_json::Value;

/// Levels that documents around an item have at most: answers, lists, bundles, chunks, invocations.
pub const WRAPPING: usize = 16;
/// Deepest nesting of arrays and objects of an item, its own object included.
pub const MAX_DEPTH: usize = json::MAX_DEPTH - WRAPPING;
/// Most parts of an item: members and elements at every depth of everything but its text.
pub const MAX_PARTS: usize = 1792;
/// Bytes that the parts of an item of any size may take in its commitment.
pub const PARTS_FREE: usize = 16 << 10;
/// Beyond [`PARTS_FREE`], the parts may take so many times the bytes of their JSON.
pub const PARTS_RATIO: usize = 16;
/// Most bytes that the parts of an item may take in its commitment.
pub const MAX_PARTS_BYTES: usize = 2 << 20;
/// With [`COMMITTED_RATIO`]: most bytes of a commitment, as an SD-JWT that discloses everything.
pub const COMMITTED_FREE: usize = 64 << 10;
/// A commitment has at most [`COMMITTED_FREE`] bytes and so many for each byte of the item's JSON.
pub const COMMITTED_RATIO: usize = 24;

/// The members that every commitment has, or may have once: `content`, `text`, `kind` and the like.
const FIXED_PARTS: usize = 24;
// A text's segments are its spans, each with two parts, and the runs between them.
const _: () = assert!(FIXED_PARTS + MAX_PARTS + 3 * max_spans(MAX_TEXT) < MAX_DISCLOSURES);

/// Salt, brackets and quotes of a disclosure, and the lengths that it is stored with.
const DISCLOSURE: usize = 40;
/// A digest in an object, and one in an array.
const DIGEST: usize = 46;
const ELEMENT: usize = 54;
/// A step of a part's place, beside its name.
const STEP: usize = 4;

/// What members of an item take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Size {
    /// Members and elements, at every depth.
    parts: usize,
    /// Bytes in the commitment.
    committed: usize,
    /// Bytes of the JSON itself.
    json: usize,
}

impl std::ops::AddAssign for Size {
    fn add_assign(&mut self, other: Self) {
        self.parts += other.parts;
        self.committed += other.committed;
        self.json += other.json;
    }
}

/// Checks the members of an item that are made of parts; `members` has their places and values.
///
/// # Errors
/// [`ItemError::Member`], naming the member that takes most.
pub(crate) fn check(members: &[(&'static str, Value)]) -> Result<(), ItemError> {
    let sizes: Vec<Size> = members.iter().map(|(place, value)| size(value, place.len() + 2 * STEP)).collect();
    let mut whole = Size::default();
    sizes.iter().for_each(|size| whole += *size);
    let largest = sizes.iter().zip(members).max_by_key(|(size, _)| size.committed);
    let refuse = |expected: Expected| {
        let member = largest.map_or("item", |(_, (place, _))| *place).to_owned();
        Err(ItemError::Member { member, expected })
    };
    if whole.parts > MAX_PARTS {
        return refuse(Expected::Parts);
    }
    if whole.committed > (PARTS_FREE + PARTS_RATIO * whole.json).min(MAX_PARTS_BYTES) {
        return refuse(Expected::SmallParts);
    }
    Ok(())
}

/// The nesting of a value: 0 for a leaf.
pub(crate) fn depth(value: &Value) -> usize {
    match value {
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or_default(),
        Value::Array(array) => 1 + array.iter().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

/// What a value takes whose place has so many bytes.
fn size(value: &Value, place: usize) -> Size {
    let digests = |count: usize, digest: usize| Size {
        committed: count.next_multiple_of(DECOY_STEP) * digest + 2,
        json: count + 1,
        parts: count,
    };
    let part =
        |place: usize, name: usize| Size { committed: DISCLOSURE + place + name, json: name, parts: 0 };
    match value {
        Value::Object(map) if !map.is_empty() => {
            let mut whole = digests(map.len(), DIGEST);
            for (name, member) in map {
                let place = place + name.len() + STEP;
                whole += part(place, text(name) + 1);
                whole += size(member, place);
            }
            whole
        }
        Value::Array(array) if !array.is_empty() => {
            let mut whole = digests(array.len(), ELEMENT);
            for element in array {
                let place = place + STEP;
                whole += part(place, 0);
                whole += size(element, place);
            }
            whole
        }
        leaf => {
            let json = match leaf {
                Value::String(said) => text(said),
                leaf => leaf.to_string().len(),
            };
            Size { committed: json, json, parts: 0 }
        }
    }
}

/// Bytes of a text as JSON.
fn text(text: &str) -> usize {
    let byte = |byte: u8| match byte {
        b'"' | b'\\' | 8 | 9 | 10 | 12 | 13 => 2,
        0..0x20 => 6,
        _ => 1,
    };
    2 + text.bytes().map(byte).sum::<usize>()
}
