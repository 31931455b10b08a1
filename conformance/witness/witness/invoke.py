"""Actions by envelope, and finding them (docs/protocol.md sections 3 and 12, docs/bytes.md section 8)."""

import re
from collections.abc import Callable
from typing import Any

from .canon import jcs, sha256
from .house import MAX_ANONYMOUS, House, refuse
from .items import need
from .keys import Invalid, is_did, verify
from .ledger import ANONYMOUS
from .moments import SKEW, is_request_id, read_time, ulid, write_time
from .published import declared, tool_manifest

_REQUIRED = {
    "oap_version", "request_id", "timestamp", "principal_did", "agent_did", "action", "input", "context", "signature",
}  # fmt: skip
_OPTIONAL = {"scope_id", "consent_receipt", "subscription_token", "idempotency_key", "policy_assertions"}
_CONTEXT = {
    "locale": r"[a-z]{2}(?:-[A-Z]{2})?",
    "currency": r"[A-Z]{3}",
    "jurisdiction_user": r"[A-Z]{2}",
    "jurisdiction_agent": r"[A-Z]{2}",
}
_MAX_TEXT = 1024


def action_of(body: Any) -> str:
    """The action is looked up first; both spellings are read."""
    need(isinstance(body, dict) and isinstance(body.get("action"), str), "action", "the name of an action")
    name = body["action"].replace(".", "_", 1)
    if name not in ("memory_describe", "memory_query", "memory_grant"):
        refuse("not_found", "no such action")
    return name


def check_envelope(body: dict[str, Any], now: int) -> None:
    need(_REQUIRED <= set(body) <= _REQUIRED | _OPTIONAL, "envelope", "the members of its schema")
    need(body["oap_version"] == "1.0", "oap_version", "1.0")
    need(is_request_id(body["request_id"]), "request_id", "26 characters of Crockford's alphabet")
    need(abs(read_time(body["timestamp"]) - now) <= SKEW * 1000, "timestamp", "now, by five minutes")
    for name in ("principal_did", "agent_did"):
        need(is_did(body[name]), name, "a DID")
    context = body["context"]
    need(isinstance(context, dict) and set(_CONTEXT) <= set(context), "context", "its four members")
    for name, form in _CONTEXT.items():
        need(isinstance(context[name], str) and bool(re.fullmatch(form, context[name])), f"context.{name}", "of its form")
    for name in ("scope_id", "consent_receipt", "subscription_token", "idempotency_key"):
        value = body.get(name, "")
        need(isinstance(value, str) and len(value.encode()) <= _MAX_TEXT, name, "at most 1024 bytes")
    assertions = body.get("policy_assertions", {})
    need(isinstance(assertions, dict) and len(jcs(assertions)) <= 16384, "policy_assertions", "at most 16384 bytes")
    signature = body["signature"]
    need(isinstance(signature, dict) and set(signature) == {"alg", "kid", "value"}, "signature", "alg, kid, value")
    need(all(isinstance(one, str) for one in signature.values()), "signature", "texts")


def check_headers(body: dict[str, Any], sent: Callable[[str], list[str]]) -> None:
    """Headers say what the envelope says (section 12)."""
    for header, name in (("OAP-Request-Id", "request_id"), ("OAP-Version", "oap_version")):
        need(all(value == body[name] for value in sent(header)), name, f"that of {header}")


def caller_of(house: House, body: dict[str, Any]) -> str | None:
    """The agent, where its key can be found. One that can be checked and is wrong is refused."""
    signature = body["signature"]
    if signature["kid"].partition("#")[0] != body["agent_did"]:
        return None
    try:
        x = house.documents.key(signature["kid"], house.clock.now())
    except Invalid:
        return None
    if signature["alg"] != "EdDSA" or not verify(x, jcs(body, "signature"), signature["value"]):
        raise Invalid("the signature does not verify")
    return body["agent_did"]


def enveloped(house: House, body: dict[str, Any], output: Any, receipt_id: str) -> dict[str, Any]:
    now = house.clock.now()
    answer = {
        "oap_version": "1.0",
        "request_id": body["request_id"],
        "response_id": ulid(now),
        "timestamp": write_time(now),
        "status": "ok",
        "output": output,
        "receipt": {"id": receipt_id},
        "receipt_id": receipt_id,
        "warnings": [],
    }
    return {**answer, "signature": house.signer.envelope(answer)}


def refused(house: House, body: Any, request_id: str, code: str, message: str) -> dict[str, Any]:
    """A refusal: an envelope with an error in place of output and receipt."""
    now = house.clock.now()
    named = body.get("request_id") if isinstance(body, dict) else None
    answer = {
        "oap_version": "1.0",
        "request_id": named if is_request_id(named) else request_id,
        "response_id": ulid(now),
        "timestamp": write_time(now),
        "status": "error",
        "error": {"code": code, "message": message},
    }
    return {**answer, "signature": house.signer.envelope(answer)}


def describe(house: House, body: dict[str, Any]) -> dict[str, Any]:
    """Free, read-only, and without input."""
    need(body["input"] in ({}, None), "input", "empty")
    agent = caller_of(house, body)
    if not house.windows.take("describe", "", MAX_ANONYMOUS, house.clock.now()):
        after = house.windows.room("describe", "", MAX_ANONYMOUS, house.clock.now())
        refuse("rate_limited", "too many anonymous calls", after)
    output = declared(house)
    receipt = house.ledger.write(
        ANONYMOUS,
        "memory.describe",
        {"asserted_principal": house.keyed(body["principal_did"]), "rules": ["anonymous.free_read"]},
        agent_did=agent or house.keyed(body["agent_did"]),
        output_hash=sha256(jcs(output)),
    )
    return enveloped(house, body, output, receipt["receipt_id"])


def discover(house: House, body: Any) -> dict[str, Any]:
    """`POST /oap/discover`: actions by the words of their intent."""
    need(isinstance(body, dict) and set(body) == {"intent"} and isinstance(body["intent"], str), "intent", "a text")
    need(len(body["intent"].encode()) <= 512, "intent", "at most 512 bytes")
    wanted = set(re.findall(r"\w+", body["intent"].lower()))
    actions = tool_manifest(house)["actions"]
    found = [one for one in actions if wanted & set(re.findall(r"[a-z]+", f"{one['id']} {one['summary']}".lower()))]
    return {"actions": found}
