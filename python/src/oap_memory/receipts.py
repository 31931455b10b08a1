"""Receipts and their chains (docs/bytes.md 6)."""

from __future__ import annotations

from typing import Any

from . import form
from .canonical import Json, canonical, sha256
from .errors import Refused
from .form import (
    COUNT,
    DECISION_ID,
    DID,
    HASH,
    KID,
    RECEIPT_ID,
    TAG,
    TEXT,
    TIME,
    array,
    either,
    fits,
    hold,
    integer,
    obj,
    one_of,
    text,
)
from .keys import verify
from .report import Reader, Report, dated
from .times import instant

MAX_TAGS = 100_000
"""Tags of a receipt: an export has one for each item."""
MAX_DECISIONS = 64
"""Decisions of a receipt."""

COMMITTING = {"capture", "correct", "relabel", "reseal", "merge", "import"}
"""Events that bring a commitment of their own."""

_ANCHOR = obj({}, {"log_id": TEXT, "log_index": integer(-(2**53) + 1), "inclusion_proof": TEXT})
_DECISION = obj(
    {
        "id": DECISION_ID,
        "outcome": one_of("allow", "allow_with_conditions", "require_consent", "require_anonymization", "block"),
        "rules": array(TEXT, 0, 1024),
    },
    closed=False,
)
_UNWRITTEN = (
    "action_version",
    "model_version",
    "cost",
    "provenance_tags_in",
    "consumption_proof",
    "citations",
    "commerce_primitive",
    "irreversibility",
    "escalation",
    "zkp",
)
"""Members of the schema that no gateway of this protocol writes."""
_SIGNATURE = obj({"by": TEXT, "alg": TEXT, "value": TEXT})
RECEIPT = obj(
    {
        "receipt_id": RECEIPT_ID,
        "type": one_of("invocation", "consent", "deletion", "incident", "kill_switch"),
        "timestamp": TIME,
        "principal_did": DID,
        "agent_did": either(DID, text("hmac-sha256:[A-Za-z0-9_-]{43}", "must be a DID or a keyed hash of one")),
        "previous_receipt_hash": form.PREVIOUS,
        "signatures": array(_SIGNATURE),
    },
    {
        "tool_did": DID,
        "action_id": text(".*", "must be a text", 1024),
        "input_hash": HASH,
        "output_hash": HASH,
        "policy_decisions": array(_DECISION, 0, MAX_DECISIONS),
        "provenance_tags_out": array(TEXT, 0, MAX_TAGS),
        "anchors": array(_ANCHOR, 0, 64),
        **dict.fromkeys(_UNWRITTEN, form.anything),
    },
)

_ITEM_EVENTS = {
    "memory." + event for event in (*COMMITTING, "confirm", "retract", "restore", "migrate", "expire", "erase")
}
_HANDED_OUT = {"memory.query", "memory.export", "memory.vector"}
_REFUSABLE = {"memory.exchange", *_HANDED_OUT}
_DOCUMENTS = {
    "memory." + name for name in ("bridge", "bridge_revoke", "ccc", "ccc_remove", "consent", "consent_withdraw")
}
_CONSENT = {
    *_DOCUMENTS,
    *("memory." + name for name in ("grant", "revoke", "delegate", "refill", "hold", "clock_accept", "restore_backup")),
    *("memory." + name for name in ("lockdown", "lockdown_lift", "device_add", "device_remove")),
    "keys.rotate",
    "keys.revoke",
}
_DELETION = {"memory.delete", "memory.expire", "memory.erase"}
_WITH_OUTPUT = {
    *_ITEM_EVENTS,
    *_HANDED_OUT,
    *_DOCUMENTS,
    *("memory." + name for name in ("grant", "delete", "describe", "backup", "attest", "audit_memorization")),
    "memory.device_sync",
    "incident.report",
}
_WITHOUT_OUTPUT = {
    *("memory." + name for name in ("boot", "chain_head", "exchange", "delegate", "revoke", "refill", "hold")),
    *("memory." + name for name in ("clock_accept", "restore_backup", "lockdown", "lockdown_lift")),
    *("memory." + name for name in ("device_add", "device_remove")),
    "keys.rotate",
    "keys.revoke",
}


def _type_of(action: str) -> str | None:
    """The type that a receipt of the action has, or `None` of an unknown one."""
    if action in _CONSENT:
        return "consent"
    if action in _DELETION:
        return "deletion"
    if action == "incident.report":
        return "incident"
    return "invocation" if action in _WITH_OUTPUT | _WITHOUT_OUTPUT else None


def content(receipt: dict[str, Any]) -> bytes:
    """The bytes that are hashed and signed.

    >>> content({"type": "invocation", "signatures": [], "anchors": []})
    b'{"type":"invocation"}'
    """
    return canonical(receipt, "signatures", "anchors")


def _by_action(receipt: dict[str, Any], report: Report) -> None:
    """What a receipt of its action must be (docs/bytes.md 6.1)."""
    action = receipt.get("action_id")
    wanted = _type_of(action) if action is not None else None
    if action is None or wanted is None:
        report.note("action", "what a receipt of its action must hold: the action is not known here")
        return
    if receipt["type"] != wanted:
        raise Refused("receipt.type", "/type", f"must be {wanted} for its action")
    decisions, tags = receipt.get("policy_decisions", []), receipt.get("provenance_tags_out", [])
    if not decisions:
        raise Refused("receipt.decision", "/policy_decisions", "must have a decision")
    outcomes = {decision["outcome"] for decision in decisions}
    refusal = outcomes == {"block"} and action in _REFUSABLE
    if outcomes != {"allow"} and not refusal:
        raise Refused("receipt.outcome", "/policy_decisions", "must have the outcome allow")
    for place, tag in enumerate(tags):
        if not fits(TAG, tag):
            raise Refused("receipt.tag", f"/provenance_tags_out/{place}", "must be an item's id, @ and a commitment")
    # A Migration Receipt is of a bundle: it has an input and no item.
    bundle = action == "memory.migrate" and not tags
    output, of_item = receipt.get("output_hash"), action in _ITEM_EVENTS and not bundle
    if of_item and len(tags) != 1:
        raise Refused("receipt.tags", "/provenance_tags_out", "must name the one item of the event")
    if tags and (refusal or not (of_item or action in _HANDED_OUT)):
        raise Refused("receipt.tags", "/provenance_tags_out", "must be absent for its action")
    has_output = action in _WITH_OUTPUT and not refusal and not bundle
    if has_output != (output is not None):
        raise Refused("receipt.output_hash", "/output_hash", "must be there" if has_output else "must be absent")
    if of_item and tags[0].partition("@")[2] != output:
        raise Refused("receipt.output_hash", "/output_hash", "must be the commitment of the item")
    if bundle and "input_hash" not in receipt:
        raise Refused("receipt.input_hash", "/input_hash", "must be there in a Migration Receipt")
    if refusal:
        report.facts["refusal"] = True


def is_open_head(receipt: dict[str, Any]) -> bool:
    """Whether it is a head without a signature, which only another entry after it makes good (docs/bytes.md 6).

    >>> is_open_head({"action_id": "memory.chain_head", "signatures": []})
    True
    """
    return receipt.get("action_id") == "memory.chain_head" and not receipt["signatures"]


def _signatures(receipt: dict[str, Any], reader: Reader, at: int, report: Report) -> None:
    principal, agent = receipt["principal_did"], receipt["agent_did"]
    message, signers = content(receipt), []
    if len(receipt["signatures"]) > 2:
        raise Refused("receipt.signatures", "/signatures", "must be two at most")
    for place, one in enumerate(receipt["signatures"]):
        where = f"/signatures/{place}"
        if one["alg"] != "EdDSA":
            raise Refused("receipt.algorithm", where + "/alg", "must be EdDSA")
        by = one["by"]
        did = by.partition("#")[0] if fits(KID, by) else ""
        if did in signers:
            raise Refused("receipt.repeated_signer", where + "/by", "must not sign twice")
        signers.append(did)
        if did == principal:
            key = reader.key(by, principal, at, "receipt.signature", where)
            if not verify(key.raw, message, one["value"]):
                raise Refused("receipt.signature", where + "/value", "must be a signature of the receipt")
            dated(report, key, "the receipt")
        elif did and did == agent:
            if reader.documents.of(did) is None:
                report.note("countersignature", "the agent's signature: its DID document is not at hand")
                continue
            key = reader.key(by, agent, at, "receipt.countersignature", where)
            if not verify(key.raw, message, one["value"]):
                raise Refused("receipt.countersignature", where + "/value", "must be a signature of the receipt")
        else:
            raise Refused("receipt.stranger", where + "/by", "must be the principal or the agent")
    if principal not in signers:
        raise Refused("receipt.unsigned", "/signatures", "must have the principal's signature")
    if agent not in (principal, *signers):
        report.note("agent", "that the agent took part: it has not countersigned")


def check_receipt(value: Json, reader: Reader, report: Report, *, in_chain: bool = False) -> dict[str, Any]:
    """The receipt, where it is one that its principal signed and is what its action asks for.

    In a chain a head may lack a signature: `Chain` asks for that of the last one.

    >>> from .documents import Documents
    >>> check_receipt({}, Reader(Documents(), 0), Report("receipt"))
    Traceback (most recent call last):
    oap_memory.errors.Refused: receipt.malformed: /receipt_id must be there
    """
    receipt = hold(RECEIPT, value, "receipt.malformed")
    at = reader.not_future(receipt["timestamp"], "receipt.future", "/timestamp")
    _by_action(receipt, report)
    if not (in_chain and is_open_head(receipt)):
        _signatures(receipt, reader, at, report)
    if unwritten := [name for name in _UNWRITTEN if name in receipt]:
        report.note("members", "what these members say, which no gateway writes: " + ", ".join(unwritten))
    if receipt.get("anchors"):
        report.note("anchors", "the anchors: no log was asked")
    return receipt


def verify_receipt(value: Json, reader: Reader) -> Report:
    """Verifies one receipt.

    >>> from .documents import Documents
    >>> verify_receipt({}, Reader(Documents(), 0))
    Traceback (most recent call last):
    oap_memory.errors.Refused: receipt.malformed: /receipt_id must be there
    """
    report = Report("receipt")
    receipt = check_receipt(value, reader, report)
    report.facts.update(
        principal=receipt["principal_did"],
        agent=receipt["agent_did"],
        action=receipt.get("action_id"),
        timestamp=receipt["timestamp"],
        receipt_id=receipt["receipt_id"],
    )
    return report


class Chain:
    """The entries of a chain as they come, oldest first (docs/bytes.md 6).

    >>> Chain().end()
    Traceback (most recent call last):
    oap_memory.errors.Refused: receipt.cut: / must end with a head
    """

    def __init__(self) -> None:
        """A chain without entries."""
        self.length = 0
        self.name: str | None = None
        self.principal: str | None = None
        self._tip = "genesis"
        self._head = False
        self._open = False
        self._at = 0

    def add(self, receipt: dict[str, Any]) -> None:
        """Takes the next entry, which was checked as a receipt."""
        place, action = self.length, receipt.get("action_id")
        if receipt["previous_receipt_hash"] != self._tip:
            raise Refused("receipt.broken", f"/{place}/previous_receipt_hash", "must be the hash of the entry before")
        if place == 0 and action != "memory.boot":
            raise Refused("receipt.boot", "/0/action_id", "must be memory.boot, with which every chain begins")
        self.principal = self.principal or receipt["principal_did"]
        if receipt["principal_did"] != self.principal:
            raise Refused("receipt.other_chain", f"/{place}/principal_did", "must be that of the entries before")
        at = instant(receipt["timestamp"]) or 0
        if place and at < self._at:
            raise Refused("receipt.time", f"/{place}/timestamp", "must not be before the entry before")
        is_head = action == "memory.chain_head"
        if is_head != (place % 2 == 1):
            raise Refused("receipt.head", f"/{place}/action_id", "must be such that a head follows every receipt")
        if is_head:
            self._check_head(receipt, place)
        self._tip, self._head, self._at, self.length = sha256(content(receipt)), is_head, at, place + 1
        self._open = is_open_head(receipt)

    def _check_head(self, receipt: dict[str, Any], place: int) -> None:
        decision, where = receipt["policy_decisions"][0], f"/{place}/policy_decisions/0"
        name, length = decision.get("chain"), decision.get("length")
        if not isinstance(name, str) or not name:
            raise Refused("receipt.head", where + "/chain", "must be the name of the chain")
        if not fits(COUNT, length) or length != place:
            raise Refused("receipt.head", where + "/length", "must be the number of entries before")
        self.name = self.name or name
        if name != self.name:
            raise Refused("receipt.other_chain", where + "/chain", "must be that of the heads before")

    def end(self) -> None:
        """The chain is whole where it ends with a signed head."""
        if not self._head:
            raise Refused("receipt.cut", "", "must end with a head")
        if self._open:
            raise Refused("receipt.unsigned", f"/{self.length - 1}/signatures", "must have the principal's signature")


def verify_receipt_chain(value: Json, reader: Reader) -> Report:
    """Verifies a chain of receipts, from its boot entry to its head.

    >>> from .documents import Documents
    >>> verify_receipt_chain([], Reader(Documents(), 0))
    Traceback (most recent call last):
    oap_memory.errors.Refused: receipt.cut: / must end with a head
    """
    if not isinstance(value, list):
        raise Refused("receipt.malformed", "", "must be a list of receipts")
    report, chain, aside = Report("receipt chain"), Chain(), Report("receipt")
    for place, entry in enumerate(value):
        try:
            receipt = check_receipt(entry, reader, aside, in_chain=True)
        except Refused as wrong:
            raise wrong.under(f"/{place}") from None
        chain.add(receipt)
    chain.end()
    report.unchecked = aside.unchecked
    report.facts.update(principal=chain.principal, chain=chain.name, length=chain.length)
    return report
