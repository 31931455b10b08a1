"""A grantee's key: a private JWK (RFC 8037) whose `kid` is the verification method."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from . import form
from .canonical import Json, canonical, parse
from .encoding import b64, unb64
from .errors import Refused, UsageError
from .form import KID, hold, obj, text
from .keys import did_key, key_of_did

MAX_FILE = 65_536
"""Bytes of a key file."""

_32 = text("[A-Za-z0-9_-]{43}", "must be 32 bytes in base64url")
_JWK = obj({"kty": form.exactly("OKP"), "crv": form.exactly("Ed25519"), "x": _32, "d": _32, "kid": KID}, closed=False)


@dataclass(frozen=True, repr=False)
class PrivateKey:
    """A private key and the name of its public one.

    >>> key = PrivateKey.new()
    >>> key.did.startswith("did:key:z6Mk"), key
    (True, PrivateKey(kid=...))
    """

    kid: str
    _secret: Ed25519PrivateKey

    @classmethod
    def new(cls) -> PrivateKey:
        """A new did:key.

        >>> PrivateKey.new().kid != PrivateKey.new().kid
        True
        """
        secret = Ed25519PrivateKey.generate()
        did = did_key(secret.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))
        return cls(f"{did}#{did[8:]}", secret)

    @classmethod
    def from_jwk(cls, value: Json) -> PrivateKey:
        """The key of a private JWK.

        >>> key = PrivateKey.new()
        >>> PrivateKey.from_jwk(key.jwk()).kid == key.kid
        True
        """
        try:
            jwk = hold(_JWK, value, "key.malformed")
        except Refused as wrong:
            raise UsageError(f"the key file: {wrong.field or '/'} {wrong.must}") from None
        secret = unb64(jwk["d"])
        if secret is None:
            raise UsageError("the key file: /d must be 32 bytes in base64url")
        key = cls(jwk["kid"], Ed25519PrivateKey.from_private_bytes(secret))
        if b64(key.public) != jwk["x"]:
            raise UsageError("the key file: /x must be the public key of /d")
        of_did = key_of_did(key.did)
        if key.did.startswith("did:key:") and (of_did != key.public or key.kid != f"{key.did}#{key.did[8:]}"):
            raise UsageError("the key file: /kid must be the did:key of /x")
        return key

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PrivateKey:
        """Reads a key file.

        >>> PrivateKey.load("/nowhere")
        Traceback (most recent call last):
        oap_memory.errors.UsageError: the key file cannot be read: No such file or directory
        """
        try:
            with Path(path).open("rb") as file:
                data = file.read(MAX_FILE + 1)
        except OSError as wrong:
            raise UsageError(f"the key file cannot be read: {wrong.strerror}") from None
        if len(data) > MAX_FILE:
            raise UsageError("the key file is no private JWK")
        try:
            return cls.from_jwk(parse(data))
        except Refused:
            raise UsageError("the key file is no private JWK") from None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a key file, for its owner alone (0600); never over a file that is there.

        >>> from tempfile import TemporaryDirectory
        >>> key = PrivateKey.new()
        >>> with TemporaryDirectory() as folder:
        ...     key.save(folder + "/my.key")
        ...     PrivateKey.load(folder + "/my.key").kid == key.kid
        True
        """
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as wrong:
            raise UsageError(f"the key file cannot be written: {wrong.strerror}") from None
        with os.fdopen(handle, "wb") as file:
            file.write(canonical(self.jwk()) + b"\n")

    @property
    def did(self) -> str:
        """Whose key it is."""
        return self.kid.partition("#")[0]

    @property
    def public(self) -> bytes:
        """The public key."""
        return self._secret.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)

    def public_jwk(self) -> dict[str, str]:
        """The public key as a JWK.

        >>> sorted(PrivateKey.new().public_jwk())
        ['crv', 'kty', 'x']
        """
        return {"crv": "Ed25519", "kty": "OKP", "x": b64(self.public)}

    def jwk(self) -> dict[str, str]:
        """The private JWK: keep it secret.

        >>> sorted(PrivateKey.new().jwk())
        ['crv', 'd', 'kid', 'kty', 'x']
        """
        return {**self.public_jwk(), "d": b64(self._secret.private_bytes_raw()), "kid": self.kid}

    def sign(self, message: bytes) -> str:
        """An Ed25519 signature, base64url.

        >>> len(PrivateKey.new().sign(b"message"))
        86
        """
        return b64(self._secret.sign(message))

    def __repr__(self) -> str:
        """Never the secret."""
        return "PrivateKey(kid=...)"
