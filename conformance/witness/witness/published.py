"""What the principal publishes (docs/protocol.md sections 2, 3 and 5)."""

import zlib
from functools import lru_cache
from typing import Any

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from .canon import b64, jcs, sha256
from .house import PLACES, House
from .items import KINDS
from .keys import Signer
from .moments import write_time
from .profiles import HASHES, OWN
from .vectors import DIMENSIONS, MODEL

_STATUS_LIFE = 300
_MANIFESTS = "urn:oap-memory-gateway:a2a:manifests:1"
_ACTIONS = {
    "memory_describe": "What this memory holds in kind, and how it may be asked.",
    "memory_query": "Asks the memory under a grant.",
    "memory_grant": "Exchanges a grant for a token.",
}

# What an output has at least.
_OUTPUTS = {
    "memory_describe": ["principal", "belief_threshold", "kinds_supported", "memory_exchange", "projections"],
    "memory_query": ["request_id", "response_id", "items", "projection_applied", "receipt", "signature"],
    "memory_grant": ["memory_grant_jwt", "expires_in", "token_type", "receipt_id"],
}


@lru_cache
def _agreement(_: str) -> str:
    return b64(X25519PrivateKey.generate().public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))


def did_document(house: House) -> dict[str, Any]:
    """`GET /.well-known/did.json`: the Ed25519 keys, newest first, an X25519 key, three services."""
    did, origin = house.did, house.origin

    def method(name: str, curve: str, x: str, expires: int | None = None) -> dict[str, Any]:
        jwk = {"kty": "OKP", "crv": curve, "x": x}
        end = {} if expires is None else {"expires": write_time(expires)}
        return {"id": name, "type": "JsonWebKey2020", "controller": did, "publicKeyJwk": jwk, **end}

    methods = [method(house.signer.kid, "Ed25519", house.signer.x)]
    methods += [method(one.kid, "Ed25519", one.x, end) for one, end in reversed(house.retired)]
    kids = [one["id"] for one in methods]

    services = {
        "OAPInvocationEndpoint": "/oap/invoke",
        "OAPRevocationStatus": "/oap/memory/status",
        "OAPMemoryExchange": "/.well-known/oap-memory.json",
    }
    return {
        "@context": ["https://www.w3.org/ns/did/v1", "https://w3id.org/security/suites/jws-2020/v1"],
        "id": did,
        "verificationMethod": methods,
        "authentication": kids,
        "assertionMethod": kids,
        "keyAgreement": [method(f"{did}#agree-1", "X25519", _agreement(did))],
        "service": [
            {"id": f"{did}#{name}", "type": name, "serviceEndpoint": origin + path} for name, path in services.items()
        ],
    }


def handover(former: Signer, new: Signer, now: int) -> dict[str, Any]:
    """The former key says which one follows it (section 2)."""
    said = {
        "type": "key_handover",
        "principal": former.did,
        "kid": new.kid,
        "jwk": {"kty": "OKP", "crv": "Ed25519", "x": new.x},
        "issued_at": write_time(now),
    }
    return {**said, "signature": former.detached(said)}


def agent_card(house: House) -> dict[str, Any]:
    """`GET /.well-known/agent-card.json`: an A2A card that leads to the manifests (section 15)."""
    origin = house.origin
    params = {
        "principal": house.did,
        "memory_manifest": f"{origin}/.well-known/oap-memory.json",
        "tool_manifest": f"{origin}/.well-known/oap-tool.json",
    }
    card = {
        "name": "Witness",
        "description": "A memory gateway in memory alone, which does not speak A2A.",
        "version": "0.1.0",
        "protocolVersion": "0.3.0",
        "url": origin,
        "preferredTransport": _MANIFESTS,
        "supportedInterfaces": [{"url": origin, "protocolBinding": _MANIFESTS, "protocolVersion": "1.0"}],
        "capabilities": {"extensions": [{"uri": _MANIFESTS, "required": True, "params": params}]},
        "defaultInputModes": ["application/json"],
        "defaultOutputModes": ["application/json"],
        "skills": [],
    }
    head, _, value = house.signer.detached(card).partition("..")
    return {**card, "signatures": [{"protected": head, "signature": value}]}


def _action(name: str, summary: str) -> dict[str, Any]:
    return {
        "id": name,
        "version": "1.0.0",
        "summary": summary,
        "description_for_agents": summary,
        "input_schema": {"type": "object"},
        "output_schema": {"type": "object", "required": _OUTPUTS[name]},
        "side_effects": "read",
        "idempotent": name == "memory_describe",
        "rate_limit": {"rpm": 600, "concurrent": 8},
        "data_classes_in": [],
        "data_classes_out": ["memory_item"] if name == "memory_query" else [],
        "examples": [{"input": {}, "output": {}}],
        "idempotency_window_seconds": 0,
        "cost": {"type": "free"},
    }


def tool_manifest(house: House) -> dict[str, Any]:
    """`GET /.well-known/oap-tool.json` (OAP-CORE 6)."""
    origin = house.origin
    text = "A memory gateway in memory alone, for trying a suite of probes."
    return {
        "oap_version": "1.0",
        "tool": {
            "id": "oap-witness",
            "did": house.did,
            "name": "Witness",
            "version": "0.1.0",
            "publisher": {"did": house.did, "legal_name": "Witness", "verified": False},
            "categories": ["memory"],
            "description_for_humans": text,
            "description_for_agents": text,
        },
        "endpoints": {
            "invoke": f"{origin}/oap/invoke",
            "audit": f"{origin}/oap/audit",
            "data_delete": f"{origin}/oap/data/delete",
            "data_export": f"{origin}/oap/memory/export",
            "incident": f"{origin}/oap/incident",
            "discover": f"{origin}/oap/discover",
        },
        "auth": [{"method": "anonymous"}, {"method": "oap_trust_token"}],
        "actions": [_action(name, summary) for name, summary in _ACTIONS.items()],
        "sla": {
            "uptime_target": 0,
            "latency_p95_ms": 1000,
            "max_call_duration_ms": 30000,
            "regions": ["local"],
            "incident_disclosure_within_hours": 72,
        },
        "trust": {"publisher_verified": False, "data_residency": [], "gdpr_compliant": True},
        "data_policy": {
            "stores_principal_data": True,
            "retention_days": 0,
            "shares_with_third_parties": False,
            "training_on_principal_data": "never",
            "deletion_endpoint": f"{origin}/oap/data/delete",
            "export_endpoint": f"{origin}/oap/memory/export",
            "lawful_bases": ["consent"],
        },
        "risk_class": "minimal",
        "jurisdictions": ["DE"],
        "governance": {
            "dispute_resolution_url": f"{origin}/oap/incident",
            "contact_email": "owner@witness.example",
            "revocation_status_url": f"{origin}/oap/memory/status",
        },
    }


def declared(house: House) -> dict[str, Any]:
    """What `memory.describe` answers, which the memory manifest says too."""
    profiles = [*HASHES, *OWN]
    return {
        "principal": house.did,
        "belief_threshold": house.belief_threshold,
        "kinds_supported": list(KINDS),
        "memory_exchange": {
            "supported": True,
            "max_grant_duration_days": house.max_days,
            "max_grant_size_items": house.max_items,
            "supported_redaction_profiles": profiles,
        },
        "projections": {
            "supported": True,
            "default_trust_level_for_unknown_did": 0,
            "supported_profiles": profiles,
            "trust_evidence_accepted": [],
        },
    }


class Published:
    """The signed documents, made once for each key that signs and each set of profiles."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._of: tuple[str, int] = ("", 0)

    def _current(self) -> None:
        now = (self._house.signer.kid, len(OWN))
        if self._of != now:
            self._of = now
            self.published_at = write_time(self._house.clock.now())
            self._manifest = self._memory_manifest()
            scopes = {"principal": self._house.did, "scopes": [], "published_at": self.published_at}
            self._scopes = self._signed(scopes)

    @property
    def memory_manifest(self) -> dict[str, Any]:
        self._current()
        return self._manifest

    @property
    def scopes(self) -> dict[str, Any]:
        self._current()
        return self._scopes

    def _signed(self, document: dict[str, Any]) -> dict[str, Any]:
        return {**document, "signature": self._house.signer.detached(document)}

    def _memory_manifest(self) -> dict[str, Any]:
        house, origin = self._house, self._house.origin
        tool = sha256(jcs(tool_manifest(house)))
        return self._signed(
            {
                **declared(house),
                "scopes": [],
                "embedding_profiles": [{"model": MODEL, "dimensions": DIMENSIONS}] if house.has_model else [],
                "endpoints": {
                    "query": f"{origin}/oap/memory/query",
                    "grant": f"{origin}/oap/memory/grant",
                    "export": f"{origin}/oap/memory/export",
                    "revocation": f"{origin}/oap/memory/status",
                    "peer": f"{origin}/oap/peer/letter",
                },
                "max_grant_size_items": house.max_items,
                "confidentiality": {"memorization_audit": {"status": "not_performed"}},
                "formats": ["oap-memory-bundle/1"],
                "tool_manifest": {"uri": f"{origin}/.well-known/oap-tool.json", "hash": tool},
                "published_at": self.published_at,
            }
        )

    def status_list(self) -> str:
        """`GET /oap/memory/status`: one bit for each place, the lowest of a byte first; `1` is revoked."""
        house, bits = self._house, bytearray(PLACES // 8)
        for grant in house.grants.values():
            if any(one.revoked for one in grant.line):
                bits[grant.place // 8] |= 1 << grant.place % 8
        now = house.clock.now() // 1000
        claims = {
            "iss": house.did,
            "sub": f"{house.origin}/oap/memory/status",
            "iat": now,
            "exp": now + _STATUS_LIFE,
            "ttl": _STATUS_LIFE,
            "status_list": {"bits": 1, "lst": b64(zlib.compress(bytes(bits), 9))},
        }
        return house.signer.jwt("statuslist+jwt", claims)
