"""The examples of docs/bytes.md and the golden bundles of docs/bundle-v1 hold."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from portable import ROOT, now

from oap_memory import Refused, verify
from oap_memory.documents import Documents
from oap_memory.report import Reader, Report
from oap_memory.verifying import _not_revoked

PAGE = (ROOT / "docs" / "bytes.md").read_text()
BLOCKS = dict(re.findall(r"^```(?:json|text|jsonl) (\S+)\n(.*?)^```$", PAGE, re.M | re.S))
OPEN = "receipt-boot-head"
"""A head that more comes after: it stands unsigned, and counts in its chain alone (protocol section 8)."""
NOW = now("2026-05-01T12:00:16.000Z")


def block(name: str) -> Any:
    return json.loads(BLOCKS[name])


def check(value: Any, **more: Any) -> Report:
    return verify(value, documents=[block("did-document")], now=NOW, **more)


@pytest.mark.parametrize(
    "name",
    [
        "did-document",
        "did-document-rotated",
        "memory-manifest",
        "answer",
        "grant",
        "revoked-grant",
        "ack-response",
        "deletion-receipt",
        *(name for name in BLOCKS if name.startswith("receipt-") and name != OPEN),
    ],
)
def test_the_examples_hold(name: str) -> None:
    check(BLOCKS[name])


def test_an_open_head_counts_in_its_chain_alone() -> None:
    with pytest.raises(Refused, match=r"^receipt\.unsigned"):
        check(block(OPEN))
    chain = [block(name) for name in ("receipt-boot", OPEN, "receipt-capture", "receipt-capture-head")]
    assert check(chain).facts["length"] == 4
    with pytest.raises(Refused):
        check(chain[:2])


def test_the_answer_was_given_under_its_grant() -> None:
    assert check(block("answer"), grant=block("grant")).names() == {
        "unchecked.agent",
        "unchecked.query",
        "unchecked.projection",
        "unchecked.state",
    }
    with pytest.raises(Refused, match=r"^grant\.grantee"):
        check(block("answer"), grant=block("revoked-grant"))


def test_the_child_is_within_its_parent() -> None:
    assert check(block("child-grant"), ancestors=[block("grant")]).facts["delegation"]


def test_the_bundle_is_whole() -> None:
    assert check(BLOCKS["bundle"]).facts["items"] == 1


def test_the_status_list_tells_which_grant_is_revoked() -> None:
    assert check(BLOCKS["status-list"]).kind == "status list"
    listed = BLOCKS["status-list"].strip()
    report = check(block("grant"), status_list=listed)
    assert (report.facts["revoked"], report.names()) == (False, set())
    assert check(block("revoked-grant"), status_list=listed).facts["revoked"] is True
    with pytest.raises(Refused, match=r"^status\.claim"):
        other = block("revoked-grant") | {"status": {"status_list": {"idx": 1, "uri": "https://x.example/"}}}
        _not_revoked(other, [], listed, Reader(Documents([block("did-document")]), NOW), Report("grant"))


def test_a_reseal_vouches_for_what_a_compromised_key_signed() -> None:
    resealed = block("resealed")
    # The example leaves out the disclosures: the item shows nothing but what follows from the chain.
    claims = {"item_id": resealed["chain"][0]["item_id"], "owner_did": "did:web:user.example", "version": 2}
    item = {**claims, "status": "current", "integrity": {**resealed, "sd_jwt": resealed["sd_jwt"].strip("~") + "~"}}
    known = Documents([block("did-document-rotated")])
    assert verify(item, documents=known, now=NOW).names() == {"unchecked.chain_end"}
    del item["integrity"]["chain"][1]
    item["version"] = 1
    with pytest.raises(Refused, match=r"^chain\.compromised"):
        verify(item, documents=known, now=NOW)


def test_the_golden_bundles() -> None:
    folder = ROOT / "docs" / "bundle-v1"
    assert verify((folder / "whole.jsonl").read_bytes()).facts["items"] == 2
    for name, check_of in {"cut": r"^bundle\.cut", "changed": r"^item\.visible"}.items():
        with pytest.raises(Refused, match=check_of):
            verify((folder / f"{name}.jsonl").read_bytes())
