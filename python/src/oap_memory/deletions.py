"""Deletion Receipts (docs/bytes.md 6.3)."""

from __future__ import annotations

from datetime import date
from typing import Any

from .canonical import Json, canonical
from .errors import Refused
from .form import (
    COUNT,
    DELETION_ID,
    DID,
    GRANT_ID,
    ITEM_ID,
    KID,
    SCOPE,
    TAG,
    TEXT,
    TIME,
    array,
    fits,
    hold,
    obj,
    one_of,
    text,
)
from .keys import verify
from .report import Reader, Report, dated
from .times import instant

_IDS = array(ITEM_ID, 0, 100_000)
_CASCADE = obj(
    {
        "named": _IDS,
        "derived": _IDS,
        "held": _IDS,
        "not_found": _IDS,
        "grants_shrunk": array(GRANT_ID, 0, 100_000),
        "remaining": COUNT,
    }
)
_TEXTS = array(TEXT, 0, 100_000)
_SCOPE = obj(
    {"items": _TEXTS, "cascade": _CASCADE},
    {"data_classes": _TEXTS, "provenance_tags": _TEXTS, "subprocessors_propagated_to": _TEXTS},
)
_EXCEPTION = obj({"reason": one_of("legal_hold", "regulatory_retention", "ongoing_dispute"), "retention_until": TEXT})
_RECEIPT = obj(
    {
        "receipt_id": DELETION_ID,
        "tool_did": DID,
        "principal_did": DID,
        "request_received_at": TIME,
        "completed_at": TIME,
        "method": one_of("cryptographic_erasure", "physical_overwrite", "logical_purge", "tombstone"),
        "scope": _SCOPE,
        "signature": obj({"alg": TEXT, "kid": KID, "value": TEXT}),
    },
    {"scope_id": SCOPE, "exceptions": array(_EXCEPTION, 0, 100_000)},
)
_DAY = text(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", "must be a day")


def _is_day(value: str) -> bool:
    if not fits(_DAY, value):
        return False
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return True


def _scope(receipt: dict[str, Any]) -> None:
    items = receipt["scope"]["items"]
    for place, tag in enumerate(items):
        if not fits(TAG, tag):
            raise Refused("deletion.items", f"/scope/items/{place}", "must be an item's id, @ and a commitment")
        if place and tag.partition("@")[0] <= items[place - 1].partition("@")[0]:
            raise Refused("deletion.items", f"/scope/items/{place}", "must be of a greater id than the one before")
    cascade = receipt["scope"]["cascade"]
    listed = [*cascade["named"], *cascade["derived"]]
    if len({*listed, *cascade["held"]}) != len(listed) + len(cascade["held"]):
        raise Refused("deletion.cascade", "/scope/cascade", "must not name an item twice")
    if set(listed) != {tag.partition("@")[0] for tag in items}:
        raise Refused("deletion.cascade", "/scope/cascade", "must name the items that were destroyed, and no others")
    exceptions = receipt.get("exceptions", [])
    if cascade["held"] and not exceptions:
        raise Refused("deletion.exceptions", "/exceptions", "must say why items are held")
    for place, one in enumerate(exceptions):
        if not _is_day(one["retention_until"]):
            raise Refused("deletion.until", f"/exceptions/{place}/retention_until", "must be a day")


def verify_deletion_receipt(value: Json, reader: Reader) -> Report:
    """Verifies a Deletion Receipt.

    >>> from .documents import Documents
    >>> verify_deletion_receipt({"signature": {}}, Reader(Documents(), 0))
    Traceback (most recent call last):
    oap_memory.errors.Refused: deletion.malformed: /receipt_id must be there
    """
    if isinstance(value, dict) and "signature" not in value:
        raise Refused("deletion.unsigned", "/signature", "must be there")
    receipt = hold(_RECEIPT, value, "deletion.malformed")
    signature, principal = receipt["signature"], receipt["principal_did"]
    at = instant(receipt["completed_at"]) or 0
    if signature["kid"].partition("#")[0] != principal:
        raise Refused("deletion.signer", "/signature/kid", "must be a key of the principal")
    key = reader.key(signature["kid"], principal, at, "deletion.signature", "/signature")
    if signature["alg"] != "EdDSA" or not verify(key.raw, canonical(receipt, "signature"), signature["value"]):
        raise Refused("deletion.signature", "/signature", "must be an Ed25519 signature of the receipt")
    if receipt["tool_did"] != principal:
        raise Refused("deletion.tool", "/tool_did", "must be the principal")
    reader.not_future(receipt["completed_at"], "deletion.future", "/completed_at")
    if at < (instant(receipt["request_received_at"]) or 0):
        raise Refused("deletion.times", "/completed_at", "must not be before the request")
    _scope(receipt)
    report = Report("deletion receipt")
    dated(report, key, "the Deletion Receipt")
    report.note("absence", "that the items are gone: their keys were the gateway's, and who saw them may keep a copy")
    report.facts.update(
        principal=principal,
        receipt_id=receipt["receipt_id"],
        completed_at=receipt["completed_at"],
        items=len(receipt["scope"]["items"]),
        held=len(receipt["scope"]["cascade"]["held"]),
    )
    return report
