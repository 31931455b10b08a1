"""Letters between gateways, as far as whoever has a key of their own gets (docs/protocol.md sections 8.1, 13, 14 and 18).

This gateway writes none and has no grants of others: it takes requests and countersignatures, and tells everybody else that nobody asked.
"""

import re
from typing import Any

from .canon import Malformed, jcs, sha256
from .house import House, refuse
from .items import need
from .keys import Invalid, is_did, verify
from .ledger import receipt_bytes
from .moments import SKEW, is_id, read_time, write_time

MAX_LETTER = 65_536
MAX_LIFE = 600_000
MAX_LETTERS = 60
MAX_LINKS = 16
_MEMBERS = {"oap", "type", "id", "from", "to", "issued_at", "expires_at", "body", "signature"}
_METHODS = ("did:key:", "did:web:", "did:webvh:", "did:jwk:")
_ASK = {
    "purpose", "max_items", "expires_at", "operations", "purpose_codes", "filter", "redaction_profile", "trust_level",
    "budget", "delegable",
}  # fmt: skip

Outcome = dict[str, Any]


def _hash(value: Any) -> bool:
    return isinstance(value, str) and bool(re.fullmatch(r"sha256:[0-9a-f]{64}", value))


def _is_time(value: Any) -> bool:
    read_time(value)
    return True


def _is_ask(value: Any) -> bool:
    least = {"purpose", "max_items", "expires_at", "operations"}
    return isinstance(value, dict) and least <= set(value) <= _ASK and isinstance(value["purpose"], str)


def _is_statement(value: Any) -> bool:
    members = {"oap", "type", "receipt", "receipt_hash", "number", "of", "by", "at", "signature"}
    return isinstance(value, dict) and set(value) == members and _is_signature(value["signature"])


def _is_signature(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())


def _some(is_one: Any) -> Any:
    return lambda value: isinstance(value, list) and 1 <= len(value) <= 256 and all(map(is_one, value))


def _id(prefix: str) -> Any:
    return lambda value: is_id(prefix, value)


def _is_step(body: dict[str, Any]) -> bool:
    says = {"offer": "commitment", "reveal": "value", "grant": "grant"}.get(str(body.get("step")))
    return says is not None and set(body) == {"step", says}


# The members of each type's body, those that it may have marked.
_BODIES: dict[str, dict[str, Any]] = {
    "access_request": {"request": _id("ask_"), "ask": _is_ask},
    "access_status": {"request": _id("ask_"), "state": lambda one: isinstance(one, str), "word?": lambda one: isinstance(one, str)},
    "access_withdrawal": {"request": _id("ask_")},
    "grant_delivery": {"request": _id("ask_"), "grant": lambda one: isinstance(one, dict)},
    "revocation_notice": {"grants": _some(_hash), "revoked_at": _is_time},
    "deletion_notice": {"deletion": _id("urn:oap:deletion:"), "items": _some(_id("mem_")), "deleted_at": _is_time},
    "countersignature": {"receipt": _id("urn:oap:receipt:"), "receipt_hash": _hash, "signature": _is_signature},
    "acknowledgement": {"acknowledgement": _is_statement},
    "device_pairing": {"step": lambda one: isinstance(one, str), "commitment?": _hash, "value?": _hash, "grant?": lambda one: isinstance(one, dict)},
}  # fmt: skip


def _read(house: House, letter: Any) -> dict[str, Any]:
    """A letter for this gateway, in the order of section 13.1. Its signature is not yet checked."""
    need(isinstance(letter, dict) and set(letter) == _MEMBERS, "letter", "the members of a letter")
    need(letter["oap"] == "1.0", "oap", "1.0")
    need(is_id("ltr_", letter["id"]) and is_did(letter["from"]) and is_did(letter["to"]), "letter", "id, from and to")
    signature, kind, body = letter["signature"], letter["type"], letter["body"]
    need(isinstance(signature, dict) and set(signature) == {"alg", "kid", "value"}, "signature", "alg, kid, value")
    need(signature["alg"] == "EdDSA" and all(isinstance(one, str) for one in signature.values()), "signature", "EdDSA")
    need(signature["kid"].partition("#")[0] == letter["from"], "signature.kid", "a key of the sender's")
    need(kind in _BODIES and isinstance(body, dict), "type", "one that there is")
    named = {name.rstrip("?"): (holds, name.endswith("?")) for name, holds in _BODIES[kind].items()}
    need(set(body) <= set(named), "body", "no unknown member")
    need(all(name in body or maybe for name, (_, maybe) in named.items()), "body", "the members of its type")
    need(all(named[name][0](value) for name, value in body.items()), "body", "as its type has it")
    need(kind != "device_pairing" or _is_step(body), "body", "one step")
    need(letter["to"] == house.did, "to", "this principal")
    need(letter["from"] != house.did, "from", "another principal")
    begin, end, now = read_time(letter["issued_at"]), read_time(letter["expires_at"]), house.clock.now()
    need(begin < end <= begin + MAX_LIFE, "expires_at", "after issued_at, and ten minutes at most")
    need(begin <= now + SKEW * 1000 and now < end + SKEW * 1000, "expires_at", "a time that is not over")
    need(letter["from"].startswith(_METHODS), "from", "a DID that is resolved")
    return letter


def take(house: House, letter: Any) -> bytes:
    """`POST /oap/peer/letter`: the signed reply."""
    letter = _read(house, letter)
    signature, now = letter["signature"], house.clock.now()
    try:
        if not verify(house.documents.key(signature["kid"], now), jcs(letter, "signature"), signature["value"]):
            raise Invalid("the signature")
    except Invalid:
        # One text for all: that there is no document is told to nobody.
        raise Invalid("the sender is not proved") from None
    if not house.windows.take("letter", letter["from"], MAX_LETTERS, now):
        refuse("rate_limited", "too many letters", house.windows.room("letter", letter["from"], MAX_LETTERS, now))
    said, whole = sha256(jcs([letter["type"], letter["body"]])), sha256(jcs(letter))
    heard = house.heard.setdefault((letter["from"], letter["id"]), {"of": said, "replies": {}})
    if whole in heard["replies"]:
        return heard["replies"][whole]
    if heard["of"] != said:
        outcome = _refused("other_letter")
    else:
        outcome = heard.setdefault("outcome", None) or _TYPES[letter["type"]](house, letter["from"], letter["body"])
        heard["outcome"] = outcome
    reply = {"oap": "1.0", "type": "reply", "to": whole, "from": house.did, "at": write_time(now), **outcome}
    reply["signature"] = house.signer.envelope(reply)
    return heard["replies"].setdefault(whole, jcs(reply))


def _refused(reason: str) -> Outcome:
    return {"outcome": "refused", "reason": reason}


def _asked(house: House, who: str, body: dict[str, Any]) -> Outcome:
    """A request waits for the owner, who never looks at it."""
    house.asks[(who, body["request"])] = body["ask"]
    return {"outcome": "taken", "access": {"state": "pending"}}


def _withdrawn(house: House, who: str, body: dict[str, Any]) -> Outcome:
    house.asks.pop((who, body["request"]), None)
    return {"outcome": "taken"}


def _pairing(_: House, __: str, body: dict[str, Any]) -> Outcome:
    return {"outcome": "refused" if body["step"] == "grant" else "later", "reason": "not_asked"}


def _answered(house: House, who: str, receipt_id: Any, receipt_hash: Any) -> tuple[dict[str, Any] | None, str]:
    """The receipt of an answer that was given to somebody; without one, why not."""
    receipt = house.ledger.find(receipt_id)
    if receipt is None or receipt["agent_did"] != who or receipt["action_id"] != "memory.query":
        return None, "unknown"
    decision = receipt["policy_decisions"][0]
    if decision["outcome"] != "allow" or sha256(receipt_bytes(receipt)) != receipt_hash:
        return None, "unknown"
    grant = house.grants.get(decision["grant_hash"])
    if grant is None or any(one.revoked for one in grant.line):
        return None, "over"
    return receipt, ""


def _countersigned(house: House, who: str, body: dict[str, Any]) -> Outcome:
    receipt, why = _answered(house, who, body["receipt"], body["receipt_hash"])
    if receipt is None:
        return _refused(why)
    signature = body["signature"]
    try:
        x = house.documents.key(str(signature.get("by")), read_time(receipt["timestamp"]), voids=True)
    except Invalid:
        return _refused("unknown")
    is_of = set(signature) == {"by", "alg", "value"} and signature["by"].partition("#")[0] == who
    if not is_of or signature["alg"] != "EdDSA" or not verify(x, receipt_bytes(receipt), signature["value"]):
        return _refused("unknown")
    receipt["signatures"] = [receipt["signatures"][0], signature]
    house.links.setdefault(receipt["receipt_id"], [sha256(jcs(signature))])
    return {"outcome": "taken"}


def _acknowledged(house: House, who: str, body: dict[str, Any]) -> Outcome:
    """A further link: odd ones are the grantee's, and the granter here gives none."""
    statement = body["acknowledgement"]
    receipt, why = _answered(house, who, statement["receipt"], statement["receipt_hash"])
    if receipt is None:
        return _refused(why)
    signature, whole = statement["signature"], sha256(jcs(statement))
    try:
        x = house.documents.key(str(signature.get("kid")), house.clock.now())
        holds = verify(x, jcs(statement, "signature"), str(signature.get("value")))
    except (Invalid, Malformed):
        holds = False
    if not holds or statement["by"] != who or str(signature.get("kid")).partition("#")[0] != who:
        return _refused("unknown")
    links = house.links.get(receipt["receipt_id"], [])
    if whole in links:
        return {"outcome": "taken"}
    number = statement["number"]
    follows = links and number == len(links) + 1 <= MAX_LINKS and number % 2 and statement["of"] == links[-1]
    if not follows:
        return _refused("not_next")
    links.append(whole)
    return {"outcome": "taken"}


_TYPES = {
    "access_request": _asked,
    "access_withdrawal": _withdrawn,
    "access_status": lambda *_: _refused("not_asked"),
    "grant_delivery": lambda *_: _refused("not_asked"),
    "revocation_notice": lambda *_: _refused("unknown"),
    "deletion_notice": lambda *_: _refused("unknown"),
    "countersignature": _countersigned,
    "acknowledgement": _acknowledged,
    "device_pairing": _pairing,
}
