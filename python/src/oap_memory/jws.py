"""JWTs and detached JWS, EdDSA alone (docs/bytes.md 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .canonical import canonical, parse
from .encoding import b64, unb64
from .errors import Refused
from .form import KID, fits
from .keys import verify

MAX_HEADER = 4096
"""Characters of a header."""
_REFUSED = ("crit", "b64", "jku", "x5u", "x5c", "zip")


@dataclass(frozen=True)
class Signed:
    """A compact JWS, read and not yet verified."""

    kid: str
    typ: str | None
    payload: bytes
    signing_input: bytes
    signature: str

    def by(self, key: bytes) -> bool:
        """Whether the key signed it."""
        return verify(key, self.signing_input, self.signature)


def _header(encoded: str) -> tuple[str, str | None] | None:
    if len(encoded) > MAX_HEADER or (raw := unb64(encoded)) is None:
        return None
    try:
        header = parse(raw)
    except Refused:
        return None
    if not isinstance(header, dict) or header.get("alg") != "EdDSA" or any(name in header for name in _REFUSED):
        return None
    kid, typ = header.get("kid"), header.get("typ")
    if not isinstance(kid, str) or not fits(KID, kid) or not isinstance(typ, str | None):
        return None
    return kid, typ


def read_jwt(text: str, longest: int) -> Signed | None:
    """A JWT of at most `longest` characters whose header can be relied on once the signature verifies.

    >>> read_jwt("a.b.c", 16384) is None
    True
    """
    parts = text.split(".", 3) if len(text) <= longest else []
    if len(parts) != 3 or (header := _header(parts[0])) is None or (payload := unb64(parts[1])) is None:
        return None
    return Signed(*header, payload, f"{parts[0]}.{parts[1]}".encode(), parts[2])


def read_detached(signature: str, document: dict[str, Any], *without: str) -> Signed | None:
    """The detached JWS over the canonical form of `document` without `signature` and `without`.

    >>> read_detached("a..b", {}) is None
    True
    """
    parts = signature.split(".", 3) if len(signature) <= 2 * MAX_HEADER else []
    if len(parts) != 3 or parts[1] or (header := _header(parts[0])) is None:
        return None
    payload = canonical(document, "signature", *without)
    return Signed(*header, payload, f"{parts[0]}.{b64(payload)}".encode(), parts[2])
