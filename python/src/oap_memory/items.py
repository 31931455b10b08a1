"""An item with its proofs: SD-JWT, chain, capture receipt, and what is visible (docs/bytes.md 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import form
from .canonical import Json, canonical
from .errors import Refused
from .form import (
    CONFIDENCE,
    COUNT,
    ITEM_ID,
    KIND,
    SCOPE,
    SENSITIVITY,
    SHORT_RECEIPT_ID,
    TEXT,
    TIME,
    array,
    hold,
    number,
    obj,
    one_of,
)
from .links import ItemChain, check_chain
from .receipts import check_receipt
from .report import Reader, Report, dated
from .sdjwt import CONCEALED, Commitment, as_json, read, visible_text
from .times import SECOND, SKEW, instant

_EMBEDDING_REF = obj({"model": TEXT, "dimensions": COUNT, "vector_url": TEXT})
_INTEGRITY = obj({"chain": form.anything, "capture_receipt": form.anything}, {"sd_jwt": TEXT})
_OUTSIDE = obj(
    {
        "item_id": ITEM_ID,
        "integrity": form.OPEN,
    },
    {
        "relevance": number(0, 1),
        "epistemic": one_of("knowledge", "belief", "possession"),
        "embedding_ref": _EMBEDDING_REF,
    },
    closed=False,
)
# Types alone: how long and how many is a bound of the gateway where an item is written.
_CLAIMS = obj(
    {},
    {
        "scope_id": SCOPE,
        "kind": KIND,
        "subject_entity_id": TEXT,
        "content": obj({}, {"text": TEXT, "structured": form.OPEN}),
        "embedding": form.OPEN,
        "provenance": obj(
            {}, {"captured_at": TIME, "confidence": CONFIDENCE, "source_receipt": SHORT_RECEIPT_ID}, closed=False
        ),
        "labels": array(TEXT),
        "ttl_days": COUNT,
        "expires_at": TIME,
        "exportable": form.boolean,
        "sensitivity": SENSITIVITY,
        "derived_from": array(ITEM_ID),
        "extensions": form.OPEN,
    },
)
_BESIDE = ("relevance", "epistemic", "embedding_ref", "integrity")


@dataclass(frozen=True)
class Item:
    """An item that holds."""

    item_id: str
    chain: ItemChain
    claims: dict[str, Any]
    """The disclosed claims, as they are visible."""
    wire: dict[str, Any]
    """The item as it came."""

    @property
    def tag(self) -> str:
        """How receipts name the version."""
        return f"{self.item_id}@{self.chain.committed['commitment']}"

    @property
    def content(self) -> dict[str, Any]:
        """The visible content."""
        shown: dict[str, Any] = self.claims.get("content", {})
        return shown

    def ends(self) -> int | None:
        """When it ends, as far as that is shown: nanoseconds since 1970."""
        claims = self.claims
        if "expires_at" in claims:
            return instant(claims["expires_at"])
        captured = instant(claims.get("provenance", {}).get("captured_at", ""))
        if captured is None or "ttl_days" not in claims:
            return None
        return captured + int(claims["ttl_days"]) * 86_400 * SECOND


def _visible_claims(commitment: Commitment) -> dict[str, Any]:
    claims = dict(commitment.claims)
    content = claims.get("content")
    text = None
    if isinstance(content, dict) and "text" in content:
        text = visible_text(content["text"])
        claims["content"] = {name: member for name, member in content.items() if name != "text"}
    shown = as_json(claims)
    if text is not None and isinstance(shown, dict) and isinstance(shown["content"], dict):
        shown["content"]["text"] = text
    return hold(_CLAIMS, shown, "commitment.claim")


def check_commitment(commitment: Commitment, link: dict[str, Any], reader: Reader, report: Report) -> dict[str, Any]:
    """The visible claims of an SD-JWT whose link is given: signature, clear claims, types.

    >>> from .documents import Documents
    >>> from .jws import Signed
    >>> signed = Signed("did:web:a.example#key-1", None, b"", b"", "")
    >>> commitment = Commitment("", signed, {"iss": "did:web:b.example", "iat": 0}, {})
    >>> check_commitment(commitment, {}, Reader(Documents(), 0), Report("item"))
    Traceback (most recent call last):
    oap_memory.errors.Refused: commitment.issuer: /iss must be who signed
    """
    clear = commitment.clear
    at = clear["iat"] * SECOND
    if commitment.jws.kid.partition("#")[0] != clear["iss"]:
        raise Refused("commitment.issuer", "/iss", "must be who signed")
    key = reader.key(commitment.jws.kid, clear["iss"], at, "commitment.signature", "")
    if not commitment.jws.by(key.raw):
        raise Refused("commitment.signature", "", "must be a signature of its issuer")
    dated(report, key, "the commitment")
    if clear["iss"] != link["actor"]:
        raise Refused("item.place", "/iss", "must be the actor of the link that committed it")
    for name in ("item_id", "seq", "event", "prev"):
        if clear[name] != link[name]:
            raise Refused("item.place", "/" + name, "must be that of the link that committed it")
    if clear["iat"] != (instant(link["at"]) or 0) // SECOND:
        raise Refused("item.place", "/iat", "must be the second of the link that committed it")
    return _visible_claims(commitment)


def _capture(value: Json, chain: ItemChain, reader: Reader, report: Report) -> dict[str, Any]:
    aside = Report("receipt")
    receipt, first = check_receipt(value, reader, aside), chain.links[0]
    report.unchecked += [one for one in aside.unchecked if one not in report.unchecked]
    wanted = {
        "action_id": ("capture.action", "memory." + first["event"]),
        "receipt_id": ("capture.receipt", first["receipt"]),
        "output_hash": ("capture.item", first["commitment"]),
        "principal_did": ("capture.principal", first["actor"]),
        "agent_did": ("capture.agent", first["actor"]),
        "tool_did": ("capture.tool", first["actor"]),
    }
    for name, (check, value_of) in wanted.items():
        if receipt.get(name) != value_of and not (name == "tool_did" and name not in receipt):
            raise Refused(check, "/" + name, "must be what the first link says")
    if (instant(receipt["timestamp"]) or 0) < (instant(first["at"]) or 0) - SKEW:
        raise Refused("capture.time", "/timestamp", "must not be before the first link, but for the skew")
    if receipt.get("provenance_tags_out") != [f"{first['item_id']}@{first['commitment']}"]:
        raise Refused("capture.item", "/provenance_tags_out", "must name the item and its first commitment alone")
    if "input_hash" in receipt:
        raise Refused("capture.input_hash", "/input_hash", "must be absent")
    return receipt


def _visible(item: dict[str, Any], commitment: Commitment, claims: dict[str, Any], chain: ItemChain) -> None:
    """The visible item is what the claims and the chain say, and nothing more."""
    derived = {
        "owner_did": ("item.owner", commitment.clear["iss"]),
        "version": ("item.version", chain.version),
        "status": ("item.status", chain.status),
    }
    for name, (check, value) in derived.items():
        if item.get(name) != value or isinstance(item.get(name), bool):
            raise Refused(check, "/" + name, "must be what the proof says")
    shown = {name: member for name, member in item.items() if name not in (*_BESIDE, *derived)}
    proved = {**claims, "item_id": commitment.clear["item_id"]}
    for name in sorted({*shown, *proved}):
        if name not in shown or name not in proved or canonical(shown[name]) != canonical(proved[name]):
            place = "/" + name if name in _NAMES else ""
            raise Refused("item.visible", place, "must be what the disclosed claims say")


_NAMES = CONCEALED | {"item_id", "updated_at"}


def _beside(item: dict[str, Any], claims: dict[str, Any], chain: ItemChain) -> None:
    """What stands outside the proof is checked for what it can be."""
    if item.get("epistemic") == "knowledge":
        confidence = claims.get("provenance", {}).get("confidence", 1)
        if not chain.confirmed or confidence != 1:
            raise Refused(
                "item.epistemic", "/epistemic", "must not be knowledge without a confirm link and confidence 1"
            )


def check_item(value: Json, reader: Reader, report: Report) -> Item:
    """The item, where it is a part of what its owner captured, and nothing more.

    >>> from .documents import Documents
    >>> check_item({}, Reader(Documents(), 0), Report("item"))
    Traceback (most recent call last):
    oap_memory.errors.Refused: item.member: /item_id must be there
    """
    item = hold(_OUTSIDE, value, "item.member")
    integrity = item["integrity"]
    if any(name not in ("chain", "capture_receipt", "sd_jwt") for name in integrity):
        raise Refused("item.unknown_member", "/integrity", "must have chain, capture_receipt and sd_jwt alone")
    hold(_INTEGRITY, integrity, "item.member")
    try:
        chain = check_chain(integrity["chain"], reader, report)
    except Refused as wrong:
        raise wrong.under("/integrity/chain") from None
    if chain.links[0]["item_id"] != item["item_id"]:
        raise Refused("chain.other_item", "/integrity/chain/0/item_id", "must be the item's")
    reader.not_future(chain.links[-1]["at"], "item.future", "/integrity/chain")
    if chain.status == "erased":
        raise Refused("item.ended", "/integrity/chain", "must not be the chain of an item that ended")
    if "sd_jwt" not in integrity:
        raise Refused("item.unproved", "/integrity/sd_jwt", "must be there: without it nothing that is shown is proved")
    try:
        commitment = read(integrity["sd_jwt"])
        if commitment.hash != chain.committed["commitment"]:
            raise Refused("item.commitment", "", "must be the commitment in force")
        claims = check_commitment(commitment, chain.committed, reader, report)
    except Refused as wrong:
        raise wrong.under("/integrity/sd_jwt") from None
    try:
        receipt = _capture(integrity["capture_receipt"], chain, reader, report)
    except Refused as wrong:
        raise wrong.under("/integrity/capture_receipt") from None
    short = "rec_" + receipt["receipt_id"].removeprefix("urn:oap:receipt:")
    if commitment.clear["receipt"] != short or claims.get("provenance", {}).get("source_receipt", short) != short:
        raise Refused("commitment.source_receipt", "/integrity/sd_jwt/receipt", "must be the capture receipt")
    if "captured_at" in claims.get("provenance", {}):
        reader.not_future(claims["provenance"]["captured_at"], "item.future", "/provenance/captured_at")
    _visible(item, commitment, claims, chain)
    _beside(item, claims, chain)
    return Item(item["item_id"], chain, claims, item)


def verify_item(value: Json, reader: Reader) -> Report:
    """Verifies an item by itself, with full integrity.

    >>> from .documents import Documents
    >>> verify_item({}, Reader(Documents(), 0))
    Traceback (most recent call last):
    oap_memory.errors.Refused: item.member: /item_id must be there
    """
    report = Report("item")
    item = check_item(value, reader, report)
    report.note(
        "chain_end", "that nothing happened to the item since: an item by itself does not say where its chain ends"
    )
    for name in ("relevance", "epistemic", "embedding_ref"):
        if name in item.wire:
            report.note("member", f"{name}: nobody signed it; only an answer as a whole vouches for it")
    report.facts.update(
        item_id=item.item_id,
        owner=item.wire["owner_did"],
        holder=item.chain.holder,
        version=item.chain.version,
        status=item.chain.status,
        since=item.chain.links[0]["at"],
    )
    return report
