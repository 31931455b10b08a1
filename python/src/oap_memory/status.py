"""The status list: which grants were revoked (docs/bytes.md 5.4)."""

from __future__ import annotations

import zlib

from .canonical import parse
from .encoding import unb64
from .errors import Refused
from .form import DID, TEXT, hold, integer, obj
from .jws import read_jwt
from .report import Reader, Report
from .times import SECOND, SKEW

PLACES = 131_072
"""Places of a list, one bit each."""
MAX_LIST = 65_536
"""Characters of a status list."""

_SECONDS = integer(-(2**53) + 1)
_CLAIMS = obj(
    {
        "iss": DID,
        "sub": TEXT,
        "iat": _SECONDS,
        "exp": _SECONDS,
        "ttl": _SECONDS,
        "status_list": obj({"bits": integer(1, 8), "lst": TEXT}),
    }
)


def _unpacked(packed: str) -> bytes:
    raw, whole = unb64(packed), PLACES // 8
    stream = zlib.decompressobj()
    try:
        bits = stream.decompress(raw or b"", whole + 1)
    except zlib.error:
        bits = b""
    if len(bits) != whole or not stream.eof or stream.unused_data:
        raise Refused("status.malformed", "/status_list/lst", f"must be {PLACES} bits, packed with zlib")
    return bits


class StatusList:
    """A status list in force.

    >>> StatusList(bytes([4]) + bytes(16383)).revoked(2)
    True
    """

    def __init__(self, bits: bytes) -> None:
        """`bits` has the lowest bit of a byte first."""
        self._bits = bits

    def revoked(self, idx: int) -> bool:
        """Whether the grant at that place is revoked."""
        if not 0 <= idx < len(self._bits) * 8:
            raise Refused("status.place", "/status/status_list/idx", f"must be below {PLACES}")
        return bool(self._bits[idx // 8] >> idx % 8 & 1)


def read_status_list(value: object, reader: Reader) -> tuple[StatusList, Report]:
    """Verifies a status list and unpacks it.

    >>> from .documents import Documents
    >>> read_status_list("", Reader(Documents(), 0))
    Traceback (most recent call last):
    oap_memory.errors.Refused: status.jwt: / must be a JWT with EdDSA, of typ statuslist+jwt
    """
    jws = read_jwt(value, MAX_LIST) if isinstance(value, str) else None
    if jws is None or jws.typ != "statuslist+jwt":
        raise Refused("status.jwt", "", "must be a JWT with EdDSA, of typ statuslist+jwt")
    try:
        payload = parse(jws.payload)
    except Refused:
        raise Refused("status.jwt", "", "must hold claims in strict JSON") from None
    claims = hold(_CLAIMS, payload, "status.jwt")
    key = reader.key(jws.kid, claims["iss"], claims["iat"] * SECOND, "status.jwt", "")
    if not jws.by(key.raw):
        raise Refused("status.jwt", "", "must be a signature of its issuer")
    issuer = reader.documents.of(claims["iss"])
    address = issuer.services.get("OAPRevocationStatus") if issuer is not None else None
    if address is not None and claims["sub"] != address:
        raise Refused("status.claim", "/sub", "must be the address that the issuer's DID document names")
    if claims["iat"] * SECOND > reader.now + SKEW:
        raise Refused("status.claim", "/iat", "must not be in the future")
    if claims["exp"] * SECOND <= reader.now or claims["exp"] <= claims["iat"]:
        raise Refused("status.claim", "/exp", "must not be over, and be after iat")
    if claims["status_list"]["bits"] != 1:
        raise Refused("status.malformed", "/status_list/bits", "must be 1")
    report = Report("status list")
    report.facts.update(issuer=claims["iss"], uri=claims["sub"], iat=claims["iat"], exp=claims["exp"])
    if address is None:
        report.note("address", "that the issuer publishes its list there: its DID document names no place")
    return StatusList(_unpacked(claims["status_list"]["lst"])), report


def verify_status_list(value: object, reader: Reader) -> Report:
    """Verifies a status list.

    >>> from .documents import Documents
    >>> verify_status_list("", Reader(Documents(), 0))
    Traceback (most recent call last):
    oap_memory.errors.Refused: status.jwt: / must be a JWT with EdDSA, of typ statuslist+jwt
    """
    return read_status_list(value, reader)[1]
