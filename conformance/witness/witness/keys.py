"""DIDs, Ed25519 keys, detached signatures and JWTs (docs/protocol.md sections 2 and 3, docs/bytes.md 2, 3)."""

import re
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from .canon import Malformed, b64, digest, jcs, read, unb64
from .moments import read_time

MAX_DID = 512
MAX_JWT = 16384
_DID = re.compile(r"did:[a-z0-9]+:[A-Za-z0-9._:%-]+")
_SCOPE = re.compile(r"(?!key-)[A-Za-z0-9._~-]{1,64}")
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_PRIME = 2**255 - 19
_ORDER_8 = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD83D3D706A17C7
_SMALL = {0, 1, _PRIME - 1, _ORDER_8, _PRIME - _ORDER_8}
_REFUSED = {"crit", "b64", "jku", "x5u", "x5c", "zip"}


class Invalid(ValueError):
    """A credential or a signed document that does not hold."""


def is_did(text: object) -> bool:
    return isinstance(text, str) and len(text) <= MAX_DID and bool(_DID.fullmatch(text))


def is_scope(text: object) -> bool:
    return isinstance(text, str) and bool(_SCOPE.fullmatch(text))


def base58(data: bytes) -> str:
    number, text = int.from_bytes(data), ""
    while number:
        number, rest = divmod(number, 58)
        text = _BASE58[rest] + text
    return "1" * (len(data) - len(data.lstrip(b"\0"))) + text


def unbase58(text: str) -> bytes:
    number = 0
    for letter in text:
        if letter not in _BASE58:
            raise Invalid("no base58")
        number = number * 58 + _BASE58.index(letter)
    return b"\0" * (len(text) - len(text.lstrip("1"))) + number.to_bytes((number.bit_length() + 7) // 8)


def did_key(x: str) -> str:
    """The did:key of an Ed25519 public key: multicodec 0xed01, base58btc."""
    return "did:key:z" + base58(b"\xed\x01" + unb64(x))


def key_of_did(did: str) -> str:
    """The public key that a did:key is."""
    if not did.startswith("did:key:z") or len(did) > 80:
        raise Invalid("this DID has no document here")
    data = unbase58(did.removeprefix("did:key:z"))
    if len(data) != 34 or data[:2] != b"\xed\x01" or not sound_point(data[2:]):
        raise Invalid("no Ed25519 key")
    return b64(data[2:])


def sound_point(point: bytes) -> bool:
    """One encoding a point, and none of small order."""
    y = int.from_bytes(point, "little") & (2**255 - 1)
    return len(point) == 32 and y < _PRIME and y not in _SMALL


def verify(x: str, message: bytes, signature: str) -> bool:
    """Strict Ed25519 (docs/bytes.md section 1)."""
    try:
        key, value = unb64(x), unb64(signature)
        if len(value) != 64 or not sound_point(key) or not sound_point(value[:32]):
            return False
        Ed25519PublicKey.from_public_bytes(key).verify(value, message)
    except (InvalidSignature, Malformed, ValueError):
        return False
    return True


def thumbprint(x: str) -> str:
    """RFC 7638: what `cnf.jkt` says."""
    return digest(jcs({"crv": "Ed25519", "kty": "OKP", "x": x}).decode())


class Documents:
    """The DID documents that a reader has. A did:key is its own; nothing is fetched."""

    def __init__(self, *documents: dict[str, Any]) -> None:
        self._known = {document["id"]: document for document in documents}

    def key(self, kid: str, at: int, voids: bool = False) -> str:
        """The key of a `kid` that is in force at a time, which the signed thing states (section 2).

        A key that bears `revoked` voids some of what it signed, whatever time that states: grants.
        """
        did = kid.partition("#")[0]
        if did not in self._known:
            if kid != f"{did}#{did.removeprefix('did:key:')}":
                raise Invalid("no such key")
            return key_of_did(did)
        for method in self._known[did]["verificationMethod"]:
            if method["id"] == kid and method["publicKeyJwk"].get("crv") == "Ed25519":
                if voids and "revoked" in method:
                    raise Invalid("the key is compromised")
                for end in ("expires", "revoked"):
                    if end in method and at >= read_time(method[end]):
                        raise Invalid("the key had ended")
                return method["publicKeyJwk"]["x"]
        raise Invalid("no such key")


@dataclass(frozen=True)
class Signer:
    """A private key with its name."""

    private: Ed25519PrivateKey
    did: str
    kid: str

    @property
    def x(self) -> str:
        return b64(self.private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))

    @classmethod
    def new(cls, did: str | None = None, private: Ed25519PrivateKey | None = None, number: int = 1) -> "Signer":
        """A did:key, or key-1 of the DID that is named, or another of its keys."""
        private = private or Ed25519PrivateKey.generate()
        own = did_key(b64(private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)))
        return cls(private, did or own, f"{did}#key-{number}" if did else f"{own}#{own.removeprefix('did:key:')}")

    def raw(self, message: bytes) -> str:
        return b64(self.private.sign(message))

    def detached(self, document: dict[str, Any], *without: str) -> str:
        """The compact JWS without its payload: the document without `signature`."""
        header = b64(jcs({"alg": "EdDSA", "kid": self.kid}))
        payload = b64(jcs(document, "signature", *without))
        return f"{header}..{self.raw(f'{header}.{payload}'.encode())}"

    def jwt(self, typ: str, claims: dict[str, Any]) -> str:
        head = b64(jcs({"typ": typ, "alg": "EdDSA", "kid": self.kid}))
        body = b64(jcs(claims))
        return f"{head}.{body}.{self.raw(f'{head}.{body}'.encode())}"

    def envelope(self, document: dict[str, Any], *without: str) -> dict[str, str]:
        """`{alg, kid, value}`: raw Ed25519 over the document without `signature`."""
        return {"alg": "EdDSA", "kid": self.kid, "value": self.raw(jcs(document, "signature", *without))}


def header_of(text: str) -> dict[str, Any]:
    """A JOSE header: EdDSA and nothing that names keys or changes what is signed."""
    header = read(unb64(text))
    if not isinstance(header, dict) or header.get("alg") != "EdDSA" or _REFUSED & set(header):
        raise Invalid("the header is refused")
    return header


def check_detached(
    document: dict[str, Any], documents: Documents, signer: str, at: int, voids: bool = False
) -> None:
    """Refuses a document whose detached signature is not by a key of the signer in force at that time."""
    try:
        head, payload, value = str(document.get("signature")).split(".")
        header = header_of(head)
        kid = header.get("kid")
        if payload or not isinstance(kid, str) or kid.partition("#")[0] != signer:
            raise Invalid("the signature is not the signer's")
        message = f"{head}.{b64(jcs(document, 'signature'))}".encode()
        if not verify(documents.key(kid, at, voids), message, value):
            raise Invalid("the signature does not verify")
    except (Malformed, ValueError) as error:
        raise Invalid("the signature does not hold") from error


@dataclass(frozen=True)
class Jwt:
    """A JWT taken apart, its signature not yet checked."""

    text: str
    header: dict[str, Any]
    claims: dict[str, Any]

    @classmethod
    def read(cls, text: object, typ: str) -> "Jwt":
        try:
            if not isinstance(text, str) or len(text) > MAX_JWT or text.count(".") != 2:
                raise Invalid("no JWT")
            head, body, _ = text.split(".")
            header, claims = header_of(head), read(unb64(body))
            if header.get("typ") != typ or not isinstance(claims, dict):
                raise Invalid("no JWT of this kind")
            return cls(text, header, claims)
        except Malformed as error:
            raise Invalid("no JWT") from error

    def signed_by(self, x: str) -> None:
        message, _, value = self.text.rpartition(".")
        if not verify(x, message.encode(), value):
            raise Invalid("the signature does not verify")

    def seconds(self, name: str) -> int:
        value = self.claims.get(name)
        if isinstance(value, bool) or not isinstance(value, int):
            raise Invalid(f"{name} must be a whole number of seconds")
        return value
