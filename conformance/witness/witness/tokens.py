"""Grant proofs, tokens, DPoP, and the memory of used proofs (docs/protocol.md section 5.1, docs/bytes.md 5.3, RFC 9449)."""

import secrets
import threading
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from .canon import b64, digest
from .grants import Grant
from .keys import Documents, Invalid, Jwt, Signer, thumbprint
from .moments import SKEW

PROOF = "oap-grant-proof+jwt"
TOKEN = "oap-memory-grant+jwt"
DPOP = "dpop+jwt"
TOKEN_LIFE = 600
PROOF_LIFE = 60
REMEMBERED = 661


class Used:
    """Every proof is good once, and is remembered for as long as it could be fresh."""

    def __init__(self) -> None:
        self._until: dict[str, int] = {}
        self._lock = threading.Lock()

    def take(self, who: str, jti: str, now: int) -> None:
        """Uses a proof up; refuses it where it was used before."""
        name = digest(f"{who}\n{jti}")
        with self._lock:
            if len(self._until) > 4096:
                self._until = {one: until for one, until in self._until.items() if until >= now}
            if self._until.get(name, 0) >= now:
                raise Invalid("the proof was used before")
            self._until[name] = now + REMEMBERED


def _jti(jwt: Jwt) -> str:
    jti = jwt.claims.get("jti")
    if not isinstance(jti, str) or not 1 <= len(jti.encode()) <= 256:
        raise Invalid("jti must have 1 to 256 bytes")
    return jti


def _in_force(jwt: Jwt, now: int) -> None:
    """`exp` and `nbf` of RFC 7519, where they are there."""
    if "exp" in jwt.claims and jwt.seconds("exp") + SKEW <= now:
        raise Invalid("exp is over")
    if "nbf" in jwt.claims and jwt.seconds("nbf") > now + SKEW:
        raise Invalid("nbf is not yet")


def check_proof(text: object, documents: Documents, grantee: str, address: str, grant_hash: str, now: int) -> str:
    """Control of the grantee's DID, shown for this address: the key that signed, by its `x`."""
    jwt = Jwt.read(text, PROOF)
    claims, kid = jwt.claims, str(jwt.header.get("kid"))
    if claims.get("iss") != grantee or claims.get("sub") != grantee:
        raise Invalid("iss and sub must be the grantee")
    if kid.partition("#")[0] != grantee:
        raise Invalid("the key is not the grantee's")
    if claims.get("aud") != address:
        raise Invalid("aud must be this address")
    if claims.get("grant_hash", grant_hash) != grant_hash:
        raise Invalid("grant_hash must be the grant's")
    iat, exp = jwt.seconds("iat"), jwt.seconds("exp")
    if not iat < exp <= iat + PROOF_LIFE or iat > now + SKEW or exp + SKEW <= now:
        raise Invalid("the proof is not fresh")
    _in_force(jwt, now)
    _jti(jwt)
    x = documents.key(kid, now * 1000)
    jwt.signed_by(x)
    return x


def proof_name(text: str) -> str:
    return _jti(Jwt.read(text, PROOF))


def make_token(signer: Signer, grant: Grant, origin: str, x: str, now: int) -> tuple[str, int]:
    """The token and its life: ten minutes at most, never beyond the grant or those above it."""
    end = min([now + TOKEN_LIFE, *(one.expires_at // 1000 for one in grant.line)])
    claims: dict[str, Any] = {
        "iss": signer.did,
        "sub": grant.grantee,
        "aud": origin,
        "iat": now,
        "nbf": now,
        "exp": end,
        "jti": b64(secrets.token_bytes(16)),
        "grant_id": grant.grant_id,
        "grant_hash": grant.hash,
        "oap_scope": grant.scope,
    }
    if not grant.bearer:
        claims["cnf"] = {"jkt": thumbprint(x)}
    return signer.jwt(TOKEN, claims), end - now


@dataclass(frozen=True)
class Request:
    """What a credential is bound to."""

    method: str
    address: str
    authorization: list[str]
    dpop: list[str]


def check_token(request: Request, documents: Documents, did: str, origin: str, now: int) -> tuple[Jwt, str | None]:
    """The token of a request, whose proof holds, and the name under which the proof is used up."""
    if len(request.authorization) != 1:
        raise Invalid("one Authorization header")
    scheme, _, text = request.authorization[0].partition(" ")
    token = Jwt.read(text.strip(), TOKEN)
    claims, kid = token.claims, str(token.header.get("kid"))
    if kid.partition("#")[0] != did or claims.get("iss") != did or claims.get("aud") != origin:
        raise Invalid("the token is another's")
    token.signed_by(documents.key(kid, token.seconds("iat") * 1000))
    if not token.seconds("nbf") <= now < token.seconds("exp"):
        raise Invalid("the token does not hold now")
    if "cnf" not in claims:
        if scheme.lower() != "bearer":
            raise Invalid("the token is sent as Bearer")
        return token, None
    if scheme.lower() != "dpop":
        raise Invalid("the token is sent as DPoP, with a proof")
    return token, check_dpop(request, token, now)


def _same_address(left: object, right: str) -> bool:
    """`htu` without query and fragment, scheme and host in any case (RFC 9449 section 4.3)."""
    if not isinstance(left, str):
        return False
    try:
        a, b = urlsplit(left), urlsplit(right)
        ports = {"http": 80, "https": 443}
        return (a.scheme.lower(), a.hostname, a.port or ports.get(a.scheme.lower()), a.path or "/", a.username) == (
            b.scheme, b.hostname, b.port or ports.get(b.scheme), b.path or "/", None,
        )  # fmt: skip
    except ValueError:
        return False


def check_dpop(request: Request, token: Jwt, now: int) -> str:
    """A DPoP proof for this request and this token (RFC 9449 section 4.3)."""
    if len(request.dpop) != 1:
        raise Invalid("one DPoP header")
    proof = Jwt.read(request.dpop[0], DPOP)
    jwk = proof.header.get("jwk")
    if not isinstance(jwk, dict) or jwk.get("kty") != "OKP" or jwk.get("crv") != "Ed25519" or "d" in jwk:
        raise Invalid("jwk must be an Ed25519 public key")
    x = jwk.get("x")
    if not isinstance(x, str) or token.claims["cnf"].get("jkt") != thumbprint(x):
        raise Invalid("the proof is by another key")
    proof.signed_by(x)
    if proof.claims.get("htm") != request.method or not _same_address(proof.claims.get("htu"), request.address):
        raise Invalid("the proof is for another request")
    if proof.claims.get("ath") != digest(token.text):
        raise Invalid("the proof is for another token")
    if abs(now - proof.seconds("iat")) > SKEW or "nonce" in proof.claims:
        raise Invalid("the proof is not fresh, or has a nonce")
    _in_force(proof, now)
    return f"{x} {_jti(proof)}"


