//! Keys of rows: bytes whose order is the order of the rows, and back.

use oap_identity::ids::IncidentId;
use oap_identity::{
    AskId, BridgeId, DecisionId, DeletionId, Did, GrantId, Hash, IntentId, ItemId, LetterId, ReceiptId,
    ScopeId, SubscriptionId, TaskId,
};

/// A key of a table's rows.
///
/// Two keys that are equal have the same bytes, and no others have them. Numbers are big-endian, so that the order of
/// bytes is theirs.
pub trait Key: Sized {
    /// Appends the key's bytes.
    fn write(&self, to: &mut Vec<u8>);

    /// Takes a key from the front of bytes. One whose length is not fixed takes all, and is the last part of a key.
    fn read(from: &mut &[u8]) -> Option<Self>;

    /// The key's bytes.
    fn to_key(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(32);
        self.write(&mut bytes);
        bytes
    }

    /// The key that these bytes are, all of them.
    fn from_key(mut bytes: &[u8]) -> Option<Self> {
        let key = Self::read(&mut bytes)?;
        bytes.is_empty().then_some(key)
    }
}

impl<const N: usize> Key for [u8; N] {
    fn write(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(self);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let (key, rest) = from.split_first_chunk::<N>()?;
        *from = rest;
        Some(*key)
    }
}

impl Key for Vec<u8> {
    fn write(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(self);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        Some(std::mem::take(from).to_vec())
    }
}

impl Key for String {
    fn write(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(self.as_bytes());
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        Some(std::str::from_utf8(std::mem::take(from)).ok()?.to_owned())
    }
}

macro_rules! text {
    ($($name:ident),*) => {$(
        impl Key for $name {
            fn write(&self, to: &mut Vec<u8>) {
                to.extend_from_slice(self.as_str().as_bytes());
            }

            fn read(from: &mut &[u8]) -> Option<Self> {
                std::str::from_utf8(std::mem::take(from)).ok()?.parse().ok()
            }
        }
    )*};
}

text!(Did, ScopeId);

macro_rules! number {
    ($($name:ident),*) => {$(
        impl Key for $name {
            fn write(&self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_be_bytes());
            }

            fn read(from: &mut &[u8]) -> Option<Self> {
                Key::read(from).map(Self::from_be_bytes)
            }
        }
    )*};
}

number!(u32, u64);

macro_rules! identifier {
    ($($name:ident),*) => {$(
        impl Key for $name {
            fn write(&self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_bytes());
            }

            fn read(from: &mut &[u8]) -> Option<Self> {
                Key::read(from).map(Self::from_bytes)
            }
        }
    )*};
}

identifier!(
    AskId,
    BridgeId,
    DecisionId,
    DeletionId,
    GrantId,
    IncidentId,
    IntentId,
    ItemId,
    LetterId,
    ReceiptId,
    SubscriptionId,
    TaskId
);

impl Key for Hash {
    fn write(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(self.as_bytes());
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        Key::read(from).map(Self::from_bytes)
    }
}

impl<A: Key, B: Key> Key for (A, B) {
    fn write(&self, to: &mut Vec<u8>) {
        self.0.write(to);
        self.1.write(to);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        Some((A::read(from)?, B::read(from)?))
    }
}

impl<A: Key, B: Key, C: Key> Key for (A, B, C) {
    fn write(&self, to: &mut Vec<u8>) {
        self.0.write(to);
        self.1.write(to);
        self.2.write(to);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        Some((A::read(from)?, B::read(from)?, C::read(from)?))
    }
}
