"""DID documents: whose key signed, and whether it was in force (docs/bytes.md 2)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from . import form
from .canonical import Json
from .errors import Refused, UsageError
from .form import DID, KID, TEXT, TIME, fits, hold, obj
from .keys import key_of_did, public_key
from .times import instant

MAX_METHODS = 256
"""Verification methods, and services, of a document."""

_JWK = obj({"kty": form.exactly("OKP"), "crv": form.exactly("Ed25519"), "x": TEXT}, closed=False)
_METHOD = obj(
    {
        "id": TEXT,
        "type": form.one_of("JsonWebKey2020", "JsonWebKey"),
        "controller": DID,
        "publicKeyJwk": _JWK,
    },
    {"expires": TIME, "revoked": TIME},
    closed=False,
)
_SERVICE = obj({"type": TEXT, "serviceEndpoint": TEXT}, closed=False)
_DOCUMENT = obj(
    {"id": DID, "verificationMethod": form.array(form.anything, 0, MAX_METHODS)},
    {"service": form.array(form.anything, 0, MAX_METHODS)},
    closed=False,
)


@dataclass(frozen=True)
class Key:
    """A verification key and how it ends, in nanoseconds since 1970."""

    kid: str
    raw: bytes
    expires: int | None = None
    revoked: int | None = None

    def in_force(self, at: int) -> bool:
        """Whether what the key signed at that time counts by itself.

        >>> Key("did:web:a.example#key-1", bytes(32), revoked=5).in_force(4)
        True
        """
        return not self.retired(at) and (self.revoked is None or at < self.revoked)

    def retired(self, at: int) -> bool:
        """Whether the key had ended by then, a compromise aside.

        >>> Key("did:web:a.example#key-1", bytes(32), expires=5).retired(5)
        True
        """
        return self.expires is not None and at >= self.expires


@dataclass(frozen=True)
class Document:
    """The keys and services of a DID."""

    did: str
    keys: dict[str, Key]
    services: dict[str, str]


def _time(value: Any) -> int | None:
    return instant(value) if isinstance(value, str) else None


def _key(method: dict[str, Any], did: str) -> Key | None:
    """The key of a verification method, where it is one that counts here: Ed25519 as a JWK, of the DID itself."""
    if not fits(_METHOD, method) or method["controller"] != did or "d" in method["publicKeyJwk"]:
        return None
    kid = did + method["id"] if method["id"].startswith("#") else method["id"]
    raw = public_key(method["publicKeyJwk"]["x"])
    if raw is None or not fits(KID, kid) or kid.partition("#")[0] != did:
        return None
    return Key(kid, raw, _time(method.get("expires")), _time(method.get("revoked")))


def document(value: Json) -> Document:
    """Reads a DID document. Methods and services of other kinds are left aside.

    >>> document({"id": "did:web:a.example", "verificationMethod": []}).did
    'did:web:a.example'
    """
    read = hold(_DOCUMENT, value, "document.malformed")
    keys: dict[str, Key] = {}
    for place, method in enumerate(read["verificationMethod"]):
        key = _key(method, read["id"])
        if key is None:
            continue
        if key.kid in keys:
            raise Refused("document.key", f"/verificationMethod/{place}/id", "must not stand twice")
        keys[key.kid] = key
    services = {one["type"]: one["serviceEndpoint"] for one in reversed(read.get("service", [])) if fits(_SERVICE, one)}
    return Document(read["id"], keys, services)


class Documents:
    """The DID documents that a reader trusts. A did:key is its own document; nothing is fetched.

    >>> Documents([{"id": "did:web:a.example", "verificationMethod": []}]).of("did:web:a.example").keys
    {}
    """

    def __init__(self, documents: Iterable[Json] = ()) -> None:
        """Reads the documents; one that is none is `Refused`, and so are two of one DID that differ.

        `missing` collects the DIDs that were asked for and are not at hand; `fetched` has those that came from the
        network, and when.
        """
        self._known: dict[str, Document] = {}
        self.missing: set[str] = set()
        self.fetched: dict[str, float] = {}
        if isinstance(documents, dict | str | bytes):
            raise UsageError("documents must be a list of DID documents", "documents")
        for value in documents:
            self.add(document(value))

    def add(self, one: Document) -> None:
        """Takes a document in.

        >>> known = Documents()
        >>> known.add(document({"id": "did:web:a.example", "verificationMethod": []}))
        >>> known.of("did:web:a.example").did
        'did:web:a.example'
        """
        if self._known.setdefault(one.did, one) != one:
            raise Refused("document.repeated", "/id", "must not be that of two different documents")

    def fetch(self, one: Document, at: float) -> None:
        """Takes in a document as it is published now, in place of one that was fetched before.

        >>> known = Documents()
        >>> known.fetch(document({"id": "did:web:a.example", "verificationMethod": []}), 10.0)
        >>> known.fetched
        {'did:web:a.example': 10.0}
        """
        self._known[one.did] = one
        self.fetched[one.did] = at

    def forget(self, before: float) -> None:
        """Forgets what was fetched before that.

        >>> known = Documents()
        >>> known.fetch(document({"id": "did:web:a.example", "verificationMethod": []}), 10.0)
        >>> known.forget(11.0)
        >>> known.of("did:web:a.example") is None
        True
        """
        for did in [did for did, at in self.fetched.items() if at < before]:
            del self.fetched[did], self._known[did]

    def copy(self) -> Documents:
        """The same documents, to which others may be added.

        >>> known = Documents()
        >>> known.copy().add(document({"id": "did:web:a.example", "verificationMethod": []}))
        >>> known.of("did:web:a.example") is None
        True
        """
        copy = Documents()
        copy._known, copy.missing = dict(self._known), self.missing
        return copy

    def of(self, did: str) -> Document | None:
        """The document of a DID, or `None`, which `missing` then names.

        >>> known = Documents()
        >>> known.of("did:web:a.example") is None, known.missing
        (True, {'did:web:a.example'})
        """
        if (known := self._known.get(did)) is not None:
            return known
        if (raw := key_of_did(did)) is not None:
            kid = f"{did}#{did[8:]}"
            return Document(did, {kid: Key(kid, raw)}, {})
        self.missing.add(did)
        return None

    def key(self, kid: str) -> Key | None:
        """The key of that name, or `None`.

        >>> did = "did:key:z6MkvDqGT54cXesYGvABpF1UapVNwjCqRcafi4Px6Thv5T3Z"
        >>> Documents().key(f"{did}#{did[8:]}").raw.hex()[:8]
        'ea4a6c63'
        """
        of = self.of(kid.partition("#")[0])
        return of.keys.get(kid) if of is not None else None
