"""Queries and exports (docs/protocol.md sections 6 and 8, docs/bytes.md sections 4.5 and 7, docs/bundle-v1.md)."""

from typing import Any

from . import vectors
from .canon import jcs, sha256
from .grants import Grant
from .house import House, refuse
from .items import KINDS, Item, is_number, need
from .moments import is_request_id, ulid, write_time
from .profiles import hash_of, redacted_field_count
from .published import did_document
from .rank import captured, scores, text_of
from .view import COST, Room, affords, charge, cost, rendered, seen, view

MAX_ANSWER = 16_777_216
_MEMBERS = {
    "query", "max_results", "include_embeddings", "kinds", "labels_any", "min_confidence", "cursor", "integrity",
    "purpose", "request_id",
}  # fmt: skip
_NOT_NULL = {"query", "include_embeddings", "integrity"}


def read_query(body: Any, request_id: str) -> dict[str, Any]:
    """The query as it was read: nulls are absent, three members and the name are written out (docs/bytes.md 4.5)."""
    need(isinstance(body, dict) and not set(body) - _MEMBERS, "query", "no unknown member")
    need(not any(name in body and body[name] is None for name in _NOT_NULL), "query", "no null there")
    asked = {name: value for name, value in body.items() if value is not None}
    asked = {"query": "", "include_embeddings": False, "integrity": "full", "request_id": request_id, **asked}
    need(isinstance(asked["query"], str) and len(asked["query"].encode()) <= 4096, "query", "at most 4096 bytes")
    need(is_number(asked.get("max_results", 20), 1, 100, True), "max_results", "1 to 100")
    need(isinstance(asked["include_embeddings"], bool), "include_embeddings", "true or false")
    need(asked["integrity"] in ("full", "chain"), "integrity", "full or chain")
    need(is_request_id(asked["request_id"]), "request_id", "26 characters of Crockford's alphabet")
    need(is_number(asked.get("min_confidence", 0), 0, 1), "min_confidence", "0 to 1")
    for name in ("kinds", "labels_any"):
        values = asked.get(name, [])
        need(isinstance(values, list) and len(values) <= 256, name, "a list of at most 256")
        need(all(isinstance(one, str) and len(one.encode()) <= 256 for one in values), name, "texts of at most 256 bytes")
    need(set(asked.get("kinds", ())) <= set(KINDS), "kinds", "kinds of items")
    for name, most in (("cursor", 256), ("purpose", 64)):
        need(isinstance(asked.get(name, ""), str), name, "a text")
        need(len(asked.get(name, "").encode()) <= most, name, f"at most {most} bytes")
    if "max_results" in asked:
        asked["max_results"] = int(asked["max_results"])
    return asked


def permit(house: House, grant: Grant, operation: str) -> None:
    """The grant with all above it, and the operation (403)."""
    action = f"memory.{operation}"
    if grant.state(house.clock.now()) != "active":
        house.block(grant, action, "grant.active", "policy_block", "the grant is not in force")
    if operation not in grant.operations:
        house.block(grant, action, "grant.operation", "policy_block", "the grant does not permit this operation")


def _condition(asked: dict[str, Any], visible: dict[str, Any]) -> bool:
    """The query's conditions work on the view: one on what is hidden admits nothing."""
    if "kinds" in asked and visible.get("kind") not in asked["kinds"]:
        return False
    if "labels_any" in asked and not set(visible.get("labels", ())) & set(asked["labels_any"]):
        return False
    confidence = visible.get("provenance", {}).get("confidence")
    return "min_confidence" not in asked or (confidence is not None and confidence >= asked["min_confidence"])


def _ordered(house: House, grant: Grant, asked: dict[str, Any]) -> list[tuple[float, Item, float]]:
    """Key, item and relevance, best first; ties by item id."""
    shelf = view(house, grant)
    embeddings = asked["include_embeddings"]
    shown = {item.item_id: seen(house, grant, item, embeddings) for item in shelf}
    chosen = [item for item in shelf if _condition(asked, shown[item.item_id])]
    if not asked["query"].strip():
        listed = [(-float(captured(shown[item.item_id])), item, 1.0) for item in chosen]
    else:
        texts = {name: text_of(one) for name, one in shown.items()}
        score = scores(asked["query"], texts, shown)
        if house.has_model:
            score = vectors.fused(asked["query"], texts, score)
        hits = [item for item in chosen if item.item_id in score]
        best = max((score[item.item_id] for item in hits), default=1.0)
        relevant = [(round(score[item.item_id] / best, 4), item) for item in hits]
        listed = [(-relevance, item, relevance) for relevance, item in relevant]
    return sorted(listed, key=lambda one: (one[0], one[1].item_id))


def _bound_to(grant: Grant, asked: dict[str, Any]) -> str:
    return grant.hash + sha256(jcs(asked, "max_results", "integrity", "request_id", "cursor"))


def query(house: House, grant: Grant, asked: dict[str, Any]) -> dict[str, Any]:
    """`POST /oap/memory/query`, judged in the order of section 6."""
    permit(house, grant, "query")
    if asked["include_embeddings"] and not grant.embedding_access:
        house.block(grant, "memory.query", "grant.embedding_access", "policy_block", "include_embeddings: not permitted")
    codes = grant.document.get("purpose_codes")
    if codes and "purpose" in asked and asked["purpose"] not in codes:
        house.block(grant, "memory.query", "grant.purpose", "policy_block", "purpose: one of the grant's")
    if not affords(house, grant, COST):
        house.block(grant, "memory.query", "grant.budget", "budget_exhausted", "the budget is spent")
    listed, bound = _ordered(house, grant, asked), _bound_to(grant, asked)
    if "cursor" in asked:
        key, last = house.cursors.open(bound, asked["cursor"])
        listed = [one for one in listed if (one[0], one[1].item_id) > (key, last)]
    page, more = _page(house, grant, asked, listed)
    chosen = [item for _, item, _ in page]
    price = cost(grant, chosen)
    if not affords(house, grant, price):
        house.block(grant, "memory.query", "grant.budget", "budget_exhausted", "the budget is spent")
    charge(house, grant, chosen, price)
    items = [
        {**rendered(house, grant, item, asked["integrity"], asked["include_embeddings"]), "relevance": relevance}
        for _, item, relevance in page
    ]
    cursor = house.cursors.seal(bound, page[-1][0], page[-1][1].item_id) if more else None
    return _sealed(house, grant, asked, items, [item.tag for item in chosen], cursor)


def _page(
    house: House, grant: Grant, asked: dict[str, Any], listed: list[tuple[float, Item, float]]
) -> tuple[list[tuple[float, Item, float]], bool]:
    room, page, size = Room(grant), [], 0
    for one in listed:
        item = one[1]
        if not room.admits(item):
            continue
        size += len(jcs(rendered(house, grant, item, asked["integrity"])))
        if len(page) == asked.get("max_results", 20) or (page and size > MAX_ANSWER):
            return page, True
        page.append(one)
        room.add(item)
    return page, False


def _sealed(
    house: House, grant: Grant, asked: dict[str, Any], items: list[Any], tags: list[str], cursor: str | None
) -> dict[str, Any]:
    response_id = ulid(house.clock.now())
    decision = {
        **grant.decision(),
        "profile_hash": hash_of(grant.profile),
        "rules": ["grant.active", "grant.filter", "projection.profile"],
    }
    if "purpose" in asked:
        decision["purpose"] = asked["purpose"]
    receipt = house.ledger.write(
        house.shelf.chain_of(grant.scope),
        "memory.query",
        decision,
        agent_did=grant.grantee,
        input_hash=sha256(jcs(asked)),
        output_hash=sha256(jcs({"items": items, "response_id": response_id})),
        provenance_tags_out=tags or None,
    )
    answer = {
        "request_id": asked["request_id"],
        "response_id": response_id,
        "items": items,
        "projection_applied": {
            "trust_level": grant.trust_level,
            "profile": grant.profile,
            "redacted_field_count": redacted_field_count(grant.profile, grant.trust_level),
            "lawful_basis": grant.lawful_basis,
        },
        "next_cursor": cursor,
        "receipt": receipt,
    }
    return {**answer, "signature": house.signer.envelope(answer, "items")}


def export(house: House, grant: Grant) -> bytes:
    """`POST /oap/memory/export`: header, the items of the whole view by id, a signed trailer."""
    permit(house, grant, "export")
    if not affords(house, grant, COST):
        house.block(grant, "memory.export", "grant.budget", "budget_exhausted", "the budget is spent")
    room, chosen = Room(grant), []
    for item in sorted(view(house, grant), key=lambda one: one.item_id):
        if item.claims["exportable"] and room.admits(item):
            chosen.append(item)
            room.add(item)
    price = cost(grant, chosen)
    if not affords(house, grant, price):
        house.block(grant, "memory.export", "grant.budget", "budget_exhausted", "the budget is spent")
    charge(house, grant, chosen, price)
    now = house.clock.now()
    bundle_id = "bdl_" + ulid(now)
    header = {
        "type": "header",
        "format": "oap-memory-bundle/1",
        "bundle_id": bundle_id,
        "principal": house.did,
        "scopes": [grant.scope],
        "created_at": write_time(now),
        "items": len(chosen),
        "documents": [did_document(house)],
        "projected": {
            "grant_id": grant.grant_id,
            "profile": grant.profile,
            "trust_level": grant.trust_level,
            "grantee": grant.grantee,
        },
    }
    lines = [header, *({"type": "item", "item": rendered(house, grant, item, "full")} for item in chosen)]
    bundle = b"".join(jcs(line) + b"\n" for line in lines)
    receipt = house.ledger.write(
        house.shelf.chain_of(grant.scope),
        "memory.export",
        {
            **grant.decision(),
            "profile_hash": hash_of(grant.profile),
            "bundle_id": bundle_id,
            "rules": ["grant.active", "grant.operation", "projection.profile"],
        },
        agent_did=grant.grantee,
        output_hash=sha256(bundle),
        provenance_tags_out=[item.tag for item in chosen] or None,
    )
    trailer: dict[str, Any] = {
        "type": "trailer",
        "bundle_id": bundle_id,
        "counts": {"items": len(chosen), "grants": 0, "receipts": 0},
        "lines": len(lines),
        "hash": sha256(bundle),
        "finished_at": receipt["timestamp"],
    }
    trailer["signature"] = house.signer.detached(trailer, "type")
    return bundle + jcs(trailer) + b"\n"


def vector(house: House, grant: Grant, item_id: str) -> bytes:
    """`GET /oap/memory/vec/{item_id}`: of an item that was disclosed before, to whoever may have it; anything else is not there."""
    permit(house, grant, "query")
    if not grant.embedding_access:
        refuse("policy_block", "the grant does not permit embeddings")
    item = next((one for one in view(house, grant) if one.item_id == item_id), None)
    had = all(item_id in one.disclosed for one in grant.line)
    if item is None or not had or not house.has_model or grant.trust_level < vectors.SHOWN_FROM:
        refuse("not_found", "no such vector")
    price = cost(grant, [item])
    if not affords(house, grant, price):
        house.block(grant, "memory.vector", "grant.budget", "budget_exhausted", "the budget is spent")
    charge(house, grant, [item], price)
    said = vectors.written(text_of(seen(house, grant, item)))
    house.ledger.write(
        house.shelf.chain_of(grant.scope),
        "memory.vector",
        {**grant.decision(), "profile_hash": hash_of(grant.profile), "rules": ["grant.active", "grant.embedding_access"]},
        agent_did=grant.grantee,
        output_hash=sha256(said),
        provenance_tags_out=[item.tag],
    )
    return said
