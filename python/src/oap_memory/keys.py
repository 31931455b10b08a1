"""Ed25519 keys (RFC 8032) and the DIDs that are keys (did:key)."""

from __future__ import annotations

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from .encoding import base58, unb64, unbase58

_P = 2**255 - 19
_SIGN = 1 << 255
_ED25519 = b"\xed\x01"
"""The multicodec of an Ed25519 public key."""

# The y coordinates of the eight points of small order: 0, 1, -1 and those of order eight.
_SMALL = {
    0,
    1,
    _P - 1,
    int.from_bytes(bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "little"),
    int.from_bytes(bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"), "little"),
}


def _strict_point(encoded: bytes) -> bool:
    """Whether 32 bytes are the one encoding of a point, and that is not of small order."""
    y = int.from_bytes(encoded, "little") & (_SIGN - 1)
    return y < _P and y not in _SMALL


def public_key(x: str) -> bytes | None:
    """The 32 bytes of a public key in base64url, or `None` where they are no key that counts.

    >>> public_key("AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA") is None  # a point of small order
    True
    """
    data = unb64(x)
    return data if data is not None and len(data) == 32 and _strict_point(data) else None


def verify(key: bytes, message: bytes, signature: str) -> bool:
    """Whether the signature (64 bytes in base64url) is one of the key. Strict: one encoding a signature.

    >>> verify(bytes(32), b"message", "A" * 86)
    False
    """
    raw = unb64(signature)
    if raw is None or len(raw) != 64 or len(key) != 32 or not _strict_point(key) or not _strict_point(raw[:32]):
        return False
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(raw, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def did_key(key: bytes) -> str:
    """The did:key of a public key.

    >>> did_key(bytes(32))[:18]
    'did:key:z6MkeTG3bF'
    """
    return "did:key:z" + base58(_ED25519 + key)


def key_of_did(did: str) -> bytes | None:
    """The public key that a did:key is, or `None` where it is none of Ed25519.

    >>> key_of_did("did:key:z6MkvDqGT54cXesYGvABpF1UapVNwjCqRcafi4Px6Thv5T3Z").hex()[:8]
    'ea4a6c63'
    >>> key_of_did("did:web:a.example") is None
    True
    """
    if not did.startswith("did:key:z") or len(did) > 512:
        return None
    data = unbase58(did[9:])
    if data is None or len(data) != 34 or data[:2] != _ED25519 or did_key(data[2:]) != did:
        return None
    return data[2:] if _strict_point(data[2:]) else None
