"""An item's SD-JWT (RFC 9901): its form, and what it discloses (docs/bytes.md 4.1)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from . import form
from .canonical import Json, parse, sha256
from .encoding import b64, unb64
from .errors import Refused
from .form import COUNT, DID, EVENT, ITEM_ID, PREVIOUS, SHORT_RECEIPT_ID, array, hold, integer, obj, text
from .jws import Signed, read_jwt

MAX_DISCLOSURES = 4096
"""Disclosures of an SD-JWT."""
MAX_ISSUER_JWT = 4 * 1024 * 1024
"""Characters of the issuer-signed part."""
TYP = "oap-memory-item+sd-jwt"

CLASSES = (
    "url_credentials",
    "secret",
    "iban",
    "card",
    "national_id",
    "email",
    "ip",
    "phone",
    "date_of_birth",
    "street_address",
    "third_party",
    "mixed",
)
"""The classes of spans."""

_CLEAR = obj(
    {
        "iss": DID,
        "iat": integer(-(2**53) + 1),
        "item_id": ITEM_ID,
        "seq": COUNT,
        "event": EVENT,
        "prev": PREVIOUS,
        "receipt": SHORT_RECEIPT_ID,
        "_sd": array(text(".*", "must be a text"), 0, MAX_DISCLOSURES * 8),
        "_sd_alg": form.TEXT,
    }
)
_CLEAR_NAMES = {"iss", "iat", "item_id", "seq", "event", "prev", "receipt"}
CONCEALED = {
    "scope_id",
    "kind",
    "subject_entity_id",
    "content",
    "embedding",
    "provenance",
    "labels",
    "ttl_days",
    "expires_at",
    "exportable",
    "sensitivity",
    "derived_from",
    "extensions",
}
"""The claims of an item that are concealed, each with a salt of its own."""
_NEVER = {
    "owner_did",
    "version",
    "status",
    "updated_at",
    "relevance",
    "epistemic",
    "embedding_ref",
    "integrity",
}
_RESERVED = {"_sd", "_sd_alg", "..."}


@dataclass(frozen=True)
class Commitment:
    """An SD-JWT that was read: its clear claims, what it discloses, and its hash. The signature is not checked yet."""

    hash: str
    jws: Signed
    clear: dict[str, Any]
    claims: dict[str, Any]


@dataclass
class _Disclosure:
    name: str | None
    value: Any
    used: bool = False


def _disclosure(encoded: str, place: str) -> _Disclosure:
    raw = unb64(encoded)
    if raw is None:
        raise Refused("sd_jwt.disclosure", place, "must be base64url")
    try:
        value = parse(raw)
    except Refused:
        raise Refused("sd_jwt.json", place, "must be JSON") from None
    if not isinstance(value, list) or len(value) not in (2, 3) or not isinstance(value[0], str):
        raise Refused("sd_jwt.disclosure", place, "must be [salt, name, value] or [salt, value]")
    salt = unb64(value[0])
    if salt is None or len(salt) != 16:
        raise Refused("form.salt", place + "/0", "must be 16 bytes in base64url")
    if len(value) == 2:
        return _Disclosure(None, value[1])
    if not isinstance(value[1], str):
        raise Refused("sd_jwt.disclosure", place + "/1", "must be a name")
    if value[1] in _RESERVED:
        raise Refused("sd_jwt.reserved", place + "/1", "must not be a name that SD-JWT reserves")
    return _Disclosure(value[1], value[2])


class _Opening:
    """Puts the disclosures where the digests ask for them, and checks the form on the way."""

    def __init__(self, disclosures: dict[str, _Disclosure]) -> None:
        self._disclosures = disclosures
        self._seen: set[str] = set()

    def _asked(self, digest: Any, place: str) -> _Disclosure | None:
        raw = unb64(digest) if isinstance(digest, str) else None
        if raw is None or len(raw) != 32:
            raise Refused("form.digest", place, "must be 32 bytes in base64url")
        if digest in self._seen:
            raise Refused("sd_jwt.repeated_digest", place, "must not stand twice")
        self._seen.add(digest)
        if (one := self._disclosures.get(digest)) is not None:
            one.used = True
        return one

    def members(self, digests: Any, place: str, least: int, depth: int) -> dict[str, Any]:
        """What an `_sd` array discloses."""
        if not isinstance(digests, list):
            raise Refused("form.digest", place, "must be a list of digests")
        if len(digests) < least or len(digests) % 8:
            raise Refused("form.padding", place, f"must have {least} digests at least, and a multiple of 8")
        out: dict[str, Any] = {}
        previous = ""
        for index, digest in enumerate(digests):
            where = f"{place}/{index}"
            one = self._asked_sorted(digest, previous, where)
            previous = digest
            if one is None:
                continue
            if one.name is None:
                raise Refused("sd_jwt.disclosures", where, "must be the digest of a member")
            if one.name in out:
                raise Refused("sd_jwt.disclosures", where, "must not disclose a member twice")
            out[one.name] = self.value(one.value, f"{where}/{one.name}", depth + 1)
        return out

    def _asked_sorted(self, digest: Any, previous: str, place: str) -> _Disclosure | None:
        if isinstance(digest, str) and digest <= previous:
            raise Refused("form.unsorted", place, "must be greater than the digest before")
        return self._asked(digest, place)

    def elements(self, digests: list[Any], place: str, depth: int) -> list[Any]:
        """What a concealed array discloses, in its order."""
        if len(digests) % 8:
            raise Refused("form.padding", place, "must have a multiple of 8 digests")
        out = []
        for index, element in enumerate(digests):
            where = f"{place}/{index}"
            if not isinstance(element, dict) or set(element) != {"..."}:
                raise Refused("form.plain", where, "must be concealed by itself")
            one = self._asked(element["..."], where)
            if one is None:
                continue
            if one.name is not None:
                raise Refused("sd_jwt.disclosures", where, "must be the digest of an element")
            out.append(self.value(one.value, where, depth + 1))
        return out

    def value(self, value: Any, place: str, depth: int) -> Any:
        """A disclosed value, with what is disclosed of its parts."""
        if depth > 64:
            raise Refused("form.plain", place, "must not be nested so deep")
        if isinstance(value, list):
            return self.elements(value, place, depth) if value else []
        if not isinstance(value, dict) or not value:
            return value
        if set(value) == {"_sd"}:
            return self.members(value["_sd"], place, 8, depth)
        if set(value) == {"t", "_sd"}:
            return Span(value["t"], self._hidden_text(value["_sd"], place, depth))
        raise Refused("form.plain", place, "must have every member concealed by itself")

    def _hidden_text(self, digests: Any, place: str, depth: int) -> str | None:
        if isinstance(digests, list) and len(digests) != 8:
            raise Refused("form.padding", place, "must have 8 digests")
        members = self.members(digests, place, 8, depth)
        if not members:
            return None
        if set(members) != {"v"} or not isinstance(members["v"], str):
            raise Refused("commitment.claim", place, "must disclose a text, its v, alone")
        return members["v"]


@dataclass(frozen=True)
class Span:
    """A span of a text that a detector found: its class, and its text where that is disclosed."""

    of: Any
    v: str | None


def _root(claims: dict[str, Any], disclosed: dict[str, Any]) -> None:
    """Which claims stand in the clear, and which are concealed."""
    for names, concealed in ((set(claims) - {"_sd", "_sd_alg"}, False), (set(disclosed), True)):
        for name in sorted(names):
            place = "/" + name
            if name in _NEVER:
                raise Refused("form.never_claimed", place, "must not be a claim")
            if name in _CLEAR_NAMES:
                if concealed:
                    raise Refused("form.not_in_the_clear", place, "must be in the clear")
            elif name not in CONCEALED:
                raise Refused("form.unknown_claim", "", "must have no other claims")
            elif not concealed:
                raise Refused("form.in_the_clear", place, "must be concealed")
    for name in sorted(_CLEAR_NAMES):
        if name not in claims:
            raise Refused("form.not_in_the_clear", "/" + name, "must be in the clear")


def read(sd_jwt: str) -> Commitment:
    """Reads an SD-JWT: its form, and every disclosure asked for by a digest.

    >>> read("a.b.c")
    Traceback (most recent call last):
    oap_memory.errors.Refused: sd_jwt.malformed: / must be a JWT and disclosures, each followed by ~
    """
    issuer, *rest = sd_jwt.split("~", MAX_DISCLOSURES + 2)
    if not rest:
        raise Refused("sd_jwt.malformed", "", "must be a JWT and disclosures, each followed by ~")
    if rest[-1]:
        check = "sd_jwt.disclosures" if len(rest) > MAX_DISCLOSURES else "sd_jwt.key_binding"
        raise Refused(check, "", f"must end with ~, without key binding, after {MAX_DISCLOSURES} disclosures at most")
    jws = read_jwt(issuer, MAX_ISSUER_JWT)
    if jws is None or jws.typ != TYP:
        raise Refused("commitment.signature", "", f"must be signed with EdDSA as {TYP}")
    try:
        payload = parse(jws.payload)
    except Refused:
        raise Refused("sd_jwt.malformed", "", "must hold claims in strict JSON") from None
    if not isinstance(payload, dict):
        raise Refused("sd_jwt.malformed", "", "must hold claims")
    disclosures: dict[str, _Disclosure] = {}
    for place, encoded in enumerate(rest[:-1]):
        digest = b64(hashlib.sha256(encoded.encode()).digest())
        if digest in disclosures:
            raise Refused("sd_jwt.repeated_disclosure", f"/{place}", "must not be given twice")
        disclosures[digest] = _disclosure(encoded, f"/{place}")
    opening = _Opening(disclosures)
    disclosed = opening.members(payload.get("_sd"), "/_sd", 16, 0)
    _root(payload, disclosed)
    clear = hold(_CLEAR, payload, "commitment.claim")
    if clear["_sd_alg"] != "sha-256":
        raise Refused("sd_jwt.algorithm", "/_sd_alg", "must be sha-256")
    for place, one in enumerate(disclosures.values()):
        if not one.used:
            raise Refused("sd_jwt.disclosures", f"/{place}", "must be asked for by a digest")
    return Commitment(sha256(issuer.encode()), jws, clear, disclosed)


def as_json(value: Any) -> Json:
    """A disclosed value as it is visible outside of the text: no span may be in it.

    >>> as_json({"a": [1]})
    {'a': [1]}
    """
    if isinstance(value, Span):
        raise Refused("form.plain", "", "must not have a span outside of content.text")
    if isinstance(value, list):
        return [as_json(element) for element in value]
    if isinstance(value, dict):
        return {name: as_json(member) for name, member in value.items()}
    plain: Json = value
    return plain


def visible_text(segments: Any) -> str:
    """The text that segments say: a hidden span reads `[class]`.

    >>> visible_text(["write to ", Span("email", None)])
    'write to [email]'
    """
    if not isinstance(segments, list):
        raise Refused("commitment.claim", "/content/text", "must be segments")
    out = []
    for segment in segments:
        if isinstance(segment, Span):
            if segment.of not in CLASSES:
                raise Refused("commitment.claim", "/content/text", "must have spans of known classes alone")
            out.append(f"[{segment.of}]" if segment.v is None else segment.v)
        elif isinstance(segment, str):
            out.append(segment)
        else:
            raise Refused("commitment.claim", "/content/text", "must be segments of text")
    return "".join(out)
