"""Makes documents, genuine and not, with keys of its own: what a key's holder could sign."""

from __future__ import annotations

import hashlib
import json
import secrets
from typing import Any

from portable import now

from oap_memory import PrivateKey, canonical
from oap_memory.canonical import hash_of, sha256
from oap_memory.encoding import b64
from oap_memory.receipts import content

OWNER, GRANTEE, THIRD = PrivateKey.new(), PrivateKey.new(), PrivateKey.new()
BEGAN, LATER, ASKED = "2026-05-01T12:00:00.000Z", "2026-05-01T12:00:01.000Z", "2026-05-01T13:00:00.000Z"
_count = 0


def ulid() -> str:
    global _count
    _count += 1
    return f"01KQHPHXG0{_count:016d}"


def without_none(value: dict[str, Any]) -> dict[str, Any]:
    return {name: member for name, member in value.items() if member is not None}


def detached(document: dict[str, Any], key: PrivateKey, header: dict[str, Any] | None = None) -> dict[str, Any]:
    head = b64(canonical({"alg": "EdDSA", "kid": key.kid, **(header or {})}))
    payload = b64(canonical(document, "signature", "type"))
    return {**document, "signature": f"{head}..{key.sign(f'{head}.{payload}'.encode())}"}


def receipt(*signers: PrivateKey, **members: Any) -> dict[str, Any]:
    value = {
        "receipt_id": "urn:oap:receipt:" + ulid(),
        "type": "invocation",
        "timestamp": ASKED,
        "principal_did": OWNER.did,
        "agent_did": OWNER.did,
        "tool_did": OWNER.did,
        "action_id": "memory.boot",
        "previous_receipt_hash": "genesis",
        "policy_decisions": [{"id": "pol_" + ulid(), "outcome": "allow", "rules": []}],
    }
    value = without_none({**value, **members})
    signed = [{"by": key.kid, "alg": "EdDSA", "value": key.sign(content(value))} for key in signers or (OWNER,)]
    return {**value, "signatures": signed}


def _digests(values: list[str], least: int) -> list[str]:
    while len(values) < least or len(values) % 8:
        values.append(b64(secrets.token_bytes(32)))
    return values


def _conceal(disclosures: list[str], value: Any, *name: str) -> str:
    if isinstance(value, dict) and value:
        parts = [_conceal(disclosures, member, inner) for inner, member in value.items()]
        value = {"_sd": sorted(_digests(parts, 8))}
    elif isinstance(value, list) and value:
        value = [{"...": one} for one in _digests([_conceal(disclosures, element) for element in value], 8)]
    text = b64(canonical([b64(secrets.token_bytes(16)), *name, value]))
    disclosures.append(text)
    return b64(hashlib.sha256(text.encode()).digest())


def item(
    claims: dict[str, Any] | None = None,
    *events: tuple[Any, ...],
    link: dict[str, Any] | None = None,
    captured: dict[str, Any] | None = None,
    clear: dict[str, Any] | None = None,
    **visible: Any,
) -> dict[str, Any]:
    """An item with these claims; `events` follow its capture: event and, if not the owner, actor."""
    item_id, short = "mem_" + ulid(), ulid()
    provenance = {"captured_at": BEGAN, "source_receipt": "rec_" + short}
    shown: dict[str, Any] = {"kind": "fact", "content": {"text": "tea"}, "labels": ["a", "b"], "provenance": provenance}
    shown = without_none({**shown, **(claims or {})})
    hidden = dict(shown)
    if "text" in shown.get("content", {}):
        hidden["content"] = {**shown["content"], "text": [shown["content"]["text"]]}
    disclosures: list[str] = []
    digests = sorted(_digests([_conceal(disclosures, value, name) for name, value in hidden.items()], 16))
    payload = {
        "iss": OWNER.did,
        "iat": now(BEGAN) // 10**9,
        "item_id": item_id,
        "seq": 0,
        "event": "capture",
        "prev": "genesis",
        "receipt": "rec_" + short,
        "_sd_alg": "sha-256",
        "_sd": digests,
        **(clear or {}),
    }
    head = b64(canonical({"alg": "EdDSA", "kid": OWNER.kid, "typ": "oap-memory-item+sd-jwt"}))
    head += "." + b64(json.dumps(payload).encode())
    issuer = head + "." + OWNER.sign(head.encode())
    commitment = sha256(issuer.encode())
    first = {
        "item_id": item_id,
        "seq": 0,
        "event": "capture",
        "at": BEGAN,
        "actor": OWNER.did,
        "commitment": commitment,
        "prev": "genesis",
        "receipt": "urn:oap:receipt:" + short,
        **(link or {}),
    }
    chain = [detached(first, OWNER)]
    for event, *actors in events:
        actor, at = (*actors, OWNER)[0], LATER
        following = {**first, "seq": len(chain), "event": event, "at": at, "actor": actor.did}
        following |= {"prev": hash_of(chain[-1]), "receipt": "urn:oap:receipt:" + ulid()}
        chain.append(detached(following, actor))
    proof = {
        "receipt_id": first["receipt"],
        "timestamp": BEGAN,
        "action_id": "memory.capture",
        "output_hash": commitment,
        "provenance_tags_out": [f"{item_id}@{commitment}"],
        **(captured or {}),
    }
    integrity = {"sd_jwt": "~".join([issuer, *disclosures, ""]), "chain": chain, "capture_receipt": receipt(**proof)}
    wire = {**shown, "item_id": item_id, "owner_did": OWNER.did, "version": 1, "status": "current"}
    return without_none({**wire, "integrity": integrity, **visible})


def grant(signer: PrivateKey = OWNER, **members: Any) -> dict[str, Any]:
    value = {
        "grant_id": "mgr_" + ulid(),
        "granter": OWNER.did + "#personal",
        "grantee": GRANTEE.did,
        "purpose": "x",
        "filter": {},
        "max_items": 10,
        "issued_at": BEGAN,
        "expires_at": "2026-12-01T12:00:00.000Z",
        "redaction_profile": "oap.profile.projection.memory.v1",
        "trust_level": 2,
    }
    return detached(without_none({**value, **members}), signer)


def child(parent: dict[str, Any], **members: Any) -> dict[str, Any]:
    inherited = {name: member for name, member in parent.items() if name not in ("delegable", "signature")}
    inherited |= {"grant_id": "mgr_" + ulid(), "grantee": THIRD.did, "parent": hash_of(parent)}
    return detached(without_none({**inherited, **members}), GRANTEE)


def answer(
    under: dict[str, Any], items: list[dict[str, Any]], decision: dict[str, Any] | None = None, **members: Any
) -> dict[str, Any]:
    """An answer under a grant; `members` are those of its receipt."""
    items = [{"relevance": 1, "epistemic": "belief", **one} for one in items]
    level, response = under.get("trust_level", 0), ulid()
    projection = {"trust_level": level, "profile": under["redaction_profile"], "lawful_basis": "consent"}
    told = {
        "id": "pol_" + ulid(),
        "outcome": "allow",
        "rules": [],
        "consumed_grant_id": under["grant_id"],
        "grant_hash": hash_of(under),
        "scope_id": "personal",
        **projection,
        **(decision or {}),
    }
    told.setdefault("profile_hash", "sha256:fa9ad0c6d5a140b95fb48904495fd103811913ad5412fe1971eeb0a9dba337d6")
    tags = [f"{one['item_id']}@{one['integrity']['chain'][0]['commitment']}" for one in items]
    proof = {
        "agent_did": under["grantee"],
        "action_id": "memory.query",
        "input_hash": sha256(b""),
        "output_hash": hash_of({"items": items, "response_id": response}),
        "policy_decisions": [told],
        "provenance_tags_out": tags or None,
        **members,
    }
    wire = {
        "request_id": "01J9V8B7H1ZK4D2A0M9R8F0KQX",
        "response_id": response,
        "items": items,
        "next_cursor": None,
        "projection_applied": {**projection, "redacted_field_count": 1},
        "receipt": receipt(**proof),
    }
    signature = {"alg": "EdDSA", "kid": OWNER.kid, "value": OWNER.sign(canonical(wire, "items"))}
    return {**wire, "signature": signature}
