"""Every portable case of `conformance/cases/`: the verdict is ours, and what is not covered is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from portable import CASES, JUDGES, Case, proofs, simple

from oap_memory.answers import verify_answer
from oap_memory.bundles import verify_bundle
from oap_memory.deletions import verify_deletion_receipt
from oap_memory.errors import Refused
from oap_memory.grants import verify_grant
from oap_memory.items import verify_item
from oap_memory.projection import Found, project
from oap_memory.receipts import verify_receipt, verify_receipt_chain
from oap_memory.report import Reader, Report
from oap_memory.status import verify_status_list

Judge = Callable[[Any, Reader], Report]

PROOFS: dict[str, tuple[int, Judge]] = {
    "proof-items.json": (478, verify_item),
    "proof-answers.json": (144, verify_answer),
    "proof-answers-under-grants.json": (
        43,
        lambda value, reader: verify_answer(value["answer"], reader, value["grant"]),
    ),
    "proof-bundles.json": (136, lambda value, reader: verify_bundle((line.encode() for line in value), reader)),
    "proof-grants.json": (51, verify_grant),
    "proof-delegations.json": (53, lambda value, reader: verify_grant(value["grant"], reader, value["ancestors"])),
    "proof-receipts.json": (297, verify_receipt),
    "proof-receipt-chains.json": (27, verify_receipt_chain),
    "proof-deletion-receipts.json": (51, verify_deletion_receipt),
    "proof-status-lists.json": (19, verify_status_list),
}


def judged(judge: Judge, case: Case) -> str | None:
    """How the verdict differs from the case's, or `None`."""
    try:
        report = judge(case.input, case.reader)
    except Refused as wrong:
        return f"{case.id}: refused, {wrong}" if case.valid else None
    if not case.valid:
        return f"{case.id}: accepted, and it is {case.check}"
    if case.names is not None and case.names not in report.names():
        return f"{case.id}: does not name {case.names}"
    return None


@pytest.mark.parametrize("file", PROOFS)
def test_proofs(file: str) -> None:
    least, judge = PROOFS[file]
    cases = list(proofs(file))
    assert len(cases) >= least
    assert [wrong for case in cases if (wrong := judged(judge, case))] == []


@pytest.mark.parametrize("file", JUDGES)
def test_single_files(file: str) -> None:
    cases = list(simple(file))
    assert [wrong for case in cases if (wrong := judged(JUDGES[file], case))] == []


def test_no_file_is_left_out() -> None:
    assert {file.name for file in CASES.glob("*.json")} == {*PROOFS, *JUDGES, "projections.json"}


# The cases do not say where the spans are; a detector is the gateway's.
SPANS = {"+49 30 901820": "phone", "ann@b.example": "email", "AKIAIOSFODNN7EXAMPLE": "secret"}


def test_projections() -> None:
    page = json.loads((CASES / "projections.json").read_text())
    for case in page["cases"]:
        asked = case["input"]
        text = asked["item"]["content"].get("text", "")
        spans = [Found(at, at + len(found), of) for found, of in SPANS.items() if (at := text.find(found)) >= 0]
        shown = project(asked["item"], asked["profile"], asked["level"], spans)
        assert (shown == asked["visible"]) == case["valid"], case["id"]
