"""Both verifiers on documents that no portable case has: what this one was found to read otherwise, and near it.

Each stands here with the verdict that the pages ask for. Where the gateway's program gives another one, it says so.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from forge import GRANTEE, LATER, OWNER, THIRD, answer, child, detached, grant, item, receipt
from gateway import BINARY
from portable import now

from oap_memory import Refused, verify
from oap_memory.canonical import sha256
from oap_memory.times import written

DAY = 86_400 * 10**9
NO = "no"
ACCEPTED = "the program accepts it: told to its makers"

HASH = sha256(b"")
PARENT = {"delegable": {"max_depth": 1}}


def later(seconds: int, of: str = LATER) -> str:
    return written(now(of) + seconds * 10**9)


def under(terms: dict[str, Any], **claims: Any) -> tuple[Any, Any, list[Any]]:
    held = grant(**terms)
    return answer(held, [item(claims or None)]), held, []


def within(above: dict[str, Any], **terms: Any) -> tuple[Any, Any, list[Any]]:
    parent = grant(**{**PARENT, **above})
    return child(parent, **terms), None, [parent]


def alone(value: Any) -> tuple[Any, Any, list[Any]]:
    return value, None, []


# Name: document, grant, grants above it; verdict; and where the program differs.
CASES: dict[str, tuple[tuple[Any, Any, list[Any]], str | None, str | None]] = {
    "an item": (alone(item()), None, None),
    "bounds are the writer's": (alone(item({"labels": ["a" * 300], "ttl_days": 0})), None, None),
    "empty containers": (alone(item({"content": {}, "labels": []})), None, None),
    "nothing shown": (alone(item(dict.fromkeys(("kind", "content", "labels", "provenance")))), None, None),
    "times without milliseconds": (alone(item({"expires_at": "2030-01-01T00:00:00Z"})), None, None),
    "a time of another zone": (alone(item({"expires_at": "2030-01-01T00:00:00+01:00"})), NO, None),
    "captured in the future": (alone(item({"provenance": {"captured_at": "2090-01-01T00:00:00Z"}})), NO, None),
    "a receipt after the link": (alone(item(captured={"timestamp": later(DAY // 10**9)})), None, None),
    "a receipt before it, by the skew": (alone(item(captured={"timestamp": later(-301)})), None, None),
    "a receipt before that": (alone(item(captured={"timestamp": later(-302)})), NO, None),
    "another second": (alone(item(clear={"iat": 1})), NO, None),
    "confirmed": (alone(item(None, ("confirm",), epistemic="knowledge")), None, None),
    "moved": (alone(item(None, ("migrate", THIRD), ("confirm", THIRD))), None, None),
    "moved back without a word": (alone(item(None, ("migrate", THIRD), ("confirm", OWNER))), NO, None),
    "ended": (alone(item(None, ("erase",), status="erased")), NO, None),
    "a receipt": (alone(receipt()), None, None),
    "joint, the agent first": (alone(receipt(GRANTEE, OWNER, agent_did=GRANTEE.did)), None, None),
    "an agent that is no DID": (alone(receipt(agent_did="bob")), NO, ACCEPTED),
    "a context": (alone(receipt(action_id="memory.ccc", type="consent", output_hash=HASH)), None, None),
    "a context as invocation": (alone(receipt(action_id="memory.ccc_remove", output_hash=HASH)), NO, None),
    "a rotation with an output": (alone(receipt(action_id="keys.rotate", type="consent", output_hash=HASH)), NO, None),
    "an unknown action on keys": (alone(receipt(action_id="keys.sell", output_hash=HASH)), None, None),
    "a grant": (alone(grant()), None, None),
    "for a hundred years": (alone(grant(expires_at=written(now("2026-05-01T12:00:00Z") + 36_500 * DAY))), None, None),
    "and a day": (alone(grant(expires_at=written(now("2026-05-01T12:00:00Z") + 36_501 * DAY))), NO, None),
    "of very many items": (alone(grant(max_items=2**32)), NO, None),
    "to an address": (alone(grant(grantee="did:web:127.0.0.1")), NO, None),
    "to a path that leads elsewhere": (alone(grant(grantee="did:web:a.example:..")), NO, None),
    "of a long label": (alone(grant(filter={"labels_any": ["a" * 257]})), NO, None),
    "of no purpose but blanks": (alone(grant(purpose="\u00a0\n")), NO, None),
    "a header that says more": (alone(detached(grant(), OWNER, {"typ": "x", "x5t": "y"})), None, None),
    "a header with zip": (alone(detached(grant(), OWNER, {"zip": "DEF"})), NO, None),
    "a header with x5c": (alone(detached(grant(), OWNER, {"x5c": []})), NO, None),
    "null in a filter": (alone(grant(filter={"kinds": None})), NO, ACCEPTED),
    "an operation twice": (alone(grant(operations=["query", "query"])), NO, ACCEPTED),
    "an answer": (under({}), None, None),
    "of an empty labels_all": (under({"filter": {"labels_all": []}}), NO, None),
    "of an empty exclude_labels": (under({"filter": {"exclude_labels": []}}), None, None),
    "of an item captured at captured_before": (
        under({"filter": {"captured_before": "2026-05-01T12:00:00Z"}}),
        NO,
        None,
    ),
    "captured at captured_after": (
        under({"filter": {"captured_after": "2026-05-01T12:00:00Z"}}),
        None,
        None,
    ),
    "of another scope": (under({}, scope_id="work"), NO, None),
    "of a scope that is named": (under({"filter": {"scopes": ["work"]}}, scope_id="work"), None, None),
    "of a hidden subject": (under({"filter": {"subject_entity_ids": ["x"]}}), None, None),
    "a child": (within({}), None, None),
    "a child with a place of its own": (
        within({}, status={"status_list": {"idx": 1, "uri": "https://a.example/"}}),
        NO,
        ACCEPTED,
    ),
    "sensitivities left out": (within({"filter": {"sensitivities": ["public"]}}, filter={}), NO, None),
    "the usual sensitivities left out": (
        within({"filter": {"sensitivities": ["public", "internal", "confidential"]}}, filter={}),
        None,
        None,
    ),
    "restricted added": (within({"filter": {}}, filter={"sensitivities": ["restricted"]}), NO, None),
    "the granter's scope left out": (within({"filter": {"scopes": ["personal", "work"]}}, filter={}), None, None),
    "another scope added": (within({"filter": {}}, filter={"scopes": ["work"]}), NO, None),
    "an empty list left out": (within({"filter": {"labels_any": []}}, filter={}), NO, None),
    "a label for an empty labels_all": (
        within({"filter": {"labels_all": []}}, filter={"labels_all": ["x"]}),
        NO,
        ACCEPTED,
    ),
    "an empty exclude_labels left out": (within({"filter": {"exclude_labels": []}}, filter={}), NO, None),
    "any purpose where codes were empty": (within({"purpose_codes": []}, purpose_codes=["a"]), None, None),
    "no budget where there was one": (within({"budget": {"queries": 5}}, budget=None), NO, None),
    "a budget of another kind": (within({"budget": {"queries": 5}}, budget={"epsilon": 1}), NO, None),
}


@pytest.mark.parametrize("name", CASES)
def test_ours(name: str) -> None:
    (value, held, above), verdict, _ = CASES[name]
    try:
        verify(value, grant=held, ancestors=above)
    except Refused as wrong:
        assert verdict == NO, wrong
    else:
        assert verdict is None


@pytest.mark.parametrize("name", CASES)
def test_the_programs(name: str, tmp_path: Path) -> None:
    if not BINARY.exists() and "OAP_MEMORY" not in os.environ:
        pytest.skip("no oap-memory")
    (value, held, above), verdict, differs = CASES[name]
    written_to = []
    for place, one in enumerate([value, held, *above]):
        (tmp_path / str(place)).write_text(json.dumps(one))
        written_to.append(str(tmp_path / str(place)))
    command = [str(BINARY), "--home", str(tmp_path), "verify", written_to[0]]
    command += ["--grant", written_to[1]] if held is not None else []
    command += [part for path in written_to[2:] for part in ("--chain", path)]
    done = subprocess.run(command, capture_output=True, timeout=60)
    accepted = {0: True, 4: False}[done.returncode]
    if differs is None:
        assert accepted == (verdict is None)
