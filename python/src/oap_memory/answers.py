"""An answer, and an answer under its grant (docs/bytes.md 4.5, 5.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import form
from .canonical import Json, canonical, hash_of
from .errors import Refused
from .form import (
    COUNT,
    DID,
    GRANT_ID,
    HASH,
    LAWFUL_BASIS,
    REQUEST_ID,
    SCOPE,
    TEXT,
    TRUST_LEVEL,
    array,
    either,
    fits,
    hold,
    obj,
    text,
)
from .grants import admits_all, check_delegation, granter_of, scope_of, term
from .items import Item, check_item
from .keys import verify
from .receipts import check_receipt
from .report import Reader, Report
from .times import SKEW, instant

MAX_ITEMS = 100
"""Items of an answer."""

PROFILES = {
    "memory": "sha256:fa9ad0c6d5a140b95fb48904495fd103811913ad5412fe1971eeb0a9dba337d6",
    "full": "sha256:f2e3870b35e6d074b92fc1803315a5312fe46b10536600ed7e26f0c9e5ffd77e",
    "contact": "sha256:c38b8b314c01c753c738eafd2a52d98a9f9f5007b762d9a47a76ffe6ebc7cf03",
    "calendar_event": "sha256:d0b9e506175ae81452fb9c5b0040c90a68a62b14a3415ad170627b873ebab6f4",
    "task": "sha256:f963a26740848c3eb002766c4d65c4b52244614c9248672ea4fe3cd22529dd79",
}
"""The hashes of the built-in profiles."""

_PROJECTION = obj({"trust_level": TRUST_LEVEL, "profile": TEXT, "redacted_field_count": COUNT, "lawful_basis": TEXT})
_CURSOR = either(text(".*", "must be null or a cursor of at most 256 characters", 256), form.exactly(None))
_ANSWER = obj(
    {
        "request_id": REQUEST_ID,
        "response_id": REQUEST_ID,
        "items": array(form.anything),
        "projection_applied": _PROJECTION,
        "next_cursor": _CURSOR,
        "receipt": form.OPEN,
        "signature": obj({"alg": TEXT, "kid": TEXT, "value": TEXT}),
    }
)
_DECISION = obj(
    {
        "consumed_grant_id": GRANT_ID,
        "grant_hash": HASH,
        "scope_id": SCOPE,
        "trust_level": TRUST_LEVEL,
        "profile": form.PROFILE,
        "profile_hash": HASH,
        "lawful_basis": LAWFUL_BASIS,
    },
    {"delegation": array(HASH, 1, 5)},
    closed=False,
)


def _own_signature(answer: dict[str, Any], reader: Reader, principal: str, at: int) -> None:
    signature = answer["signature"]
    if signature["alg"] != "EdDSA":
        raise Refused("answer.signature", "/signature/alg", "must be EdDSA")
    if signature["kid"].partition("#")[0] != principal:
        raise Refused("answer.signer", "/signature/kid", "must be a key of the receipt's principal")
    key = reader.key(signature["kid"], principal, at, "answer.signature", "/signature")
    if not verify(key.raw, canonical(answer, "items", "signature"), signature["value"]):
        raise Refused("answer.signature", "/signature/value", "must be a signature of the answer")


def _receipt(answer: dict[str, Any], receipt: dict[str, Any]) -> dict[str, Any]:
    """What the receipt of a query says of it; the decision."""
    if receipt.get("action_id") != "memory.query":
        raise Refused("answer.action", "/receipt/action_id", "must be memory.query")
    if not fits(DID, receipt["agent_did"]):
        raise Refused("answer.grantee", "/receipt/agent_did", "must be the grantee's DID")
    if receipt.get("tool_did", receipt["principal_did"]) != receipt["principal_did"]:
        raise Refused("answer.tool", "/receipt/tool_did", "must be the principal")
    if "input_hash" not in receipt:
        raise Refused("answer.input_hash", "/receipt/input_hash", "must be there")
    wanted = hash_of({"items": answer["items"], "response_id": answer["response_id"]})
    if receipt.get("output_hash") != wanted:
        raise Refused("answer.output_hash", "/receipt/output_hash", "must be the hash of items and response_id")
    try:
        decision = hold(_DECISION, receipt["policy_decisions"][0], "answer.no_grant")
    except Refused as wrong:
        raise wrong.under("/receipt/policy_decisions/0") from None
    applied = answer["projection_applied"]
    for name in ("trust_level", "profile", "lawful_basis"):
        if applied[name] != decision[name]:
            raise Refused("answer.projection", "/projection_applied/" + name, "must be what the receipt says")
    return decision


def _items(answer: dict[str, Any], receipt: dict[str, Any], reader: Reader, report: Report) -> list[Item]:
    at = instant(receipt["timestamp"]) or 0
    if len(answer["items"]) > MAX_ITEMS:
        raise Refused("answer.too_many", "/items", f"must be {MAX_ITEMS} at most")
    items: list[Item] = []
    seen: set[str] = set()
    for place, value in enumerate(answer["items"]):
        where = f"/items/{place}"
        try:
            item = check_item(value, reader, report)
        except Refused as wrong:
            raise wrong.under(where) from None
        for name in ("relevance", "epistemic"):
            if name not in item.wire:
                raise Refused("item.member", f"{where}/{name}", "must be there in an answer")
        if item.item_id in seen:
            raise Refused("answer.repeated", where, "must not stand twice")
        seen.add(item.item_id)
        if item.chain.holder != receipt["principal_did"]:
            raise Refused("answer.copied", where, "must be held by who signs the answer")
        if item.chain.status != "current":
            raise Refused("answer.not_current", where + "/status", "must be current")
        if (instant(item.chain.links[-1]["at"]) or 0) > at + (SKEW if item.chain.moved else 0):
            raise Refused("answer.younger", where + "/integrity/chain", "must not be later than the answer's receipt")
        ends = item.ends()
        if ends is not None and ends <= at:
            raise Refused("answer.expired", where, "must not have ended when it was answered with")
        items.append(item)
    if receipt.get("provenance_tags_out", []) != [item.tag for item in items]:
        raise Refused("answer.tags", "/receipt/provenance_tags_out", "must name the items, in order")
    return items


def check_answer(value: Json, reader: Reader, report: Report) -> tuple[dict[str, Any], dict[str, Any], list[Item]]:
    """The answer, the decision of its receipt, and its items.

    >>> from .documents import Documents
    >>> check_answer({}, Reader(Documents(), 0), Report("answer"))
    Traceback (most recent call last):
    oap_memory.errors.Refused: answer.malformed: /request_id must be there
    """
    answer = hold(_ANSWER, value, "answer.malformed")
    try:
        receipt = check_receipt(answer["receipt"], reader, report)
    except Refused as wrong:
        raise wrong.under("/receipt") from None
    at = instant(receipt["timestamp"]) or 0
    _own_signature(answer, reader, receipt["principal_did"], at)
    decision = _receipt(answer, receipt)
    return answer, decision, _items(answer, receipt, reader, report)


def _under(
    grant: dict[str, Any],
    hashes: Sequence[str],
    receipt: dict[str, Any],
    decision: dict[str, Any],
    items: Sequence[Item],
    report: Report,
) -> None:
    """Whether the answer was given under the grant (docs/bytes.md 5.1)."""
    place = "/receipt/policy_decisions/0/"
    if granter_of(grant) != receipt["principal_did"]:
        raise Refused("grant.granter", "/receipt/principal_did", "must be the granter")
    if grant["grantee"] != receipt["agent_did"]:
        raise Refused("grant.grantee", "/receipt/agent_did", "must be the grantee")
    if decision["consumed_grant_id"] != grant["grant_id"] or decision["grant_hash"] != hash_of(grant):
        raise Refused("grant.other", place + "grant_hash", "must be the hash of the grant")
    at = instant(receipt["timestamp"]) or 0
    begins, ends = instant(term(grant, "not_before")) or 0, instant(grant["expires_at"]) or 0
    if not begins <= at < ends:
        raise Refused("grant.time", "/receipt/timestamp", "must be while the grant holds")
    if "query" not in term(grant, "operations"):
        raise Refused("grant.operation", "/grant/operations", "must name query")
    wanted = {
        "trust_level": term(grant, "trust_level"),
        "profile": grant["redaction_profile"],
        "lawful_basis": term(grant, "lawful_basis"),
    }
    for name, of_grant in wanted.items():
        if decision[name] != of_grant:
            raise Refused("grant.projection", place + name, "must be the grant's")
    if decision["scope_id"] != scope_of(grant):
        raise Refused("grant.scope", place + "scope_id", "must be the granter's scope")
    if decision.get("delegation", []) != list(hashes):
        raise Refused("grant.delegation", place + "delegation", "must be the grants that it was made from")
    codes, purpose = grant.get("purpose_codes"), decision.get("purpose")
    if codes and purpose is not None and purpose not in codes:
        raise Refused("grant.purpose", place + "purpose", "must be one of the grant's purpose codes")
    if len(items) > grant["max_items"]:
        raise Refused("grant.too_many", "/items", "must be at most max_items")
    profile = grant["redaction_profile"].removeprefix("oap.profile.projection.").removesuffix(".v1")
    known = PROFILES.get(profile) if grant["redaction_profile"].endswith(".v1") else None
    if known is not None and decision["profile_hash"] != known:
        raise Refused("grant.profile_hash", place + "profile_hash", "must be that of the built-in profile")
    for index, item in enumerate(items):
        if "embedding_ref" in item.wire and not term(grant, "embedding_access"):
            raise Refused("grant.embedding", f"/items/{index}/embedding_ref", "must be absent under this grant")
    admits_all(grant, ((f"/items/{index}", item.claims) for index, item in enumerate(items)))
    if known is None:
        report.note("profile", "what the profile shows: it is none of the built-in ones")
    report.note("projection", "that nothing was hidden or left out beyond the profile: what is shown cannot tell")


def verify_answer(value: Json, reader: Reader, grant: Json = None, ancestors: Sequence[Json] = ()) -> Report:
    """Verifies an answer; with its grant, that it was given under it.

    >>> from .documents import Documents
    >>> verify_answer({}, Reader(Documents(), 0))
    Traceback (most recent call last):
    oap_memory.errors.Refused: answer.malformed: /request_id must be there
    """
    report = Report("answer")
    answer, decision, items = check_answer(value, reader, report)
    receipt = answer["receipt"]
    report.note("query", "input_hash: the query is not part of the document")
    if grant is not None:
        held, hashes = check_delegation(grant, ancestors, reader)
        _under(held, hashes, receipt, decision, items, report)
        report.note("state", "whether the grant was revoked by then: its gateway answered under it")
    else:
        report.note("grant", "the grant that the answer names: it is not at hand")
        report.note("state", "whether the grant was revoked by then")
    report.facts.update(
        principal=receipt["principal_did"],
        grantee=receipt["agent_did"],
        grant_id=decision["consumed_grant_id"],
        timestamp=receipt["timestamp"],
        items=[item.item_id for item in items],
        trust_level=decision["trust_level"],
        profile=decision["profile"],
    )
    return report
