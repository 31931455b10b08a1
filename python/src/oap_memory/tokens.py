"""What a grantee signs: grant proofs, DPoP proofs, countersignatures (docs/bytes.md 5.3, 6.2)."""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

from .canonical import Json, canonical
from .encoding import b64
from .keyfile import PrivateKey
from .receipts import content
from .times import SECOND

PROOF_LIFE = 60
"""Seconds that a grant proof is good for."""


def _jwt(key: PrivateKey, header: Json, claims: Json) -> str:
    head = f"{b64(canonical(header))}.{b64(canonical(claims))}"
    return f"{head}.{key.sign(head.encode())}"


def grant_proof(key: PrivateKey, audience: str, grant_hash: str, now: int) -> str:
    """A proof of the grantee's DID for the address that it is sent to. `now` is in nanoseconds since 1970.

    >>> grant_proof(PrivateKey.new(), "https://a.example/oap/memory/grant", "sha256:00", 0).count(".")
    2
    """
    at = now // SECOND
    return _jwt(
        key,
        {"alg": "EdDSA", "kid": key.kid, "typ": "oap-grant-proof+jwt"},
        {
            "iss": key.did,
            "sub": key.did,
            "aud": audience,
            "jti": secrets.token_hex(16),
            "iat": at,
            "exp": at + PROOF_LIFE,
            "grant_hash": grant_hash,
        },
    )


def dpop_proof(key: PrivateKey, method: str, url: str, token: str, now: int) -> str:
    """A DPoP proof (RFC 9449) for one request with a token; the address without its query.

    `now` is in nanoseconds since 1970, as `times.clock()` gives it. A gateway takes a proof once, and within five
    minutes of its own time.

    >>> dpop_proof(PrivateKey.new(), "POST", "https://a.example/oap/memory/query", "token", 0).count(".")
    2
    """
    return _jwt(
        key,
        {"alg": "EdDSA", "typ": "dpop+jwt", "jwk": key.public_jwk()},
        {
            "htm": method,
            "htu": url.partition("?")[0],
            "iat": now // SECOND,
            "ath": b64(hashlib.sha256(token.encode()).digest()),
            "jti": secrets.token_urlsafe(16),
        },
    )


def countersignature(key: PrivateKey, receipt: dict[str, Any]) -> dict[str, str]:
    """The agent's signature of a receipt, which makes it a joint one.

    >>> sorted(countersignature(PrivateKey.new(), {"type": "invocation"}))
    ['alg', 'by', 'value']
    """
    return {"alg": "EdDSA", "by": key.kid, "value": key.sign(content(receipt))}
