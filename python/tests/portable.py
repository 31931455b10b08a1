"""Reads the portable cases of `conformance/cases/`, as its README says."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oap_memory.documents import Documents
from oap_memory.grants import verify_grant
from oap_memory.items import verify_item
from oap_memory.receipts import verify_receipt, verify_receipt_chain
from oap_memory.report import Reader
from oap_memory.times import instant

ROOT = Path(__file__).resolve().parents[2]
LATER = 2_000_000_000 * 1_000_000_000
CASES = ROOT / "conformance" / "cases"


@dataclass
class Case:
    file: str
    id: str
    valid: bool
    input: Any
    reader: Reader
    check: str | None
    names: str | None


def _place(document: Any, path: str) -> tuple[Any, str]:
    *steps, last = [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]
    for step in steps:
        document = document[int(step)] if isinstance(document, list) else document[step]
    return document, last


def patched(document: Any, patch: list[dict[str, Any]]) -> Any:
    """JSON Patch (RFC 6902): add, remove, replace."""
    document = copy.deepcopy(document)
    for step in patch:
        value = copy.deepcopy(step.get("value"))
        if step["path"] == "":
            document = value
            continue
        inside, last = _place(document, step["path"])
        if isinstance(inside, dict):
            if step["op"] == "remove":
                del inside[last]
            else:
                inside[last] = value
        elif step["op"] == "add":
            inside.insert(len(inside) if last == "-" else int(last), value)
        elif step["op"] == "remove":
            del inside[int(last)]
        else:
            inside[int(last)] = value
    return document


def now(text: str) -> int:
    at = instant(text)
    assert at is not None
    return at


def proofs(file: str) -> Iterator[Case]:
    """The cases of a `proof-*.json`."""
    page = json.loads((CASES / file).read_text())
    known = Documents(page["documents"])
    for case in page["cases"]:
        own = Documents(case["documents"]) if "documents" in case else known
        yield Case(
            file,
            case["id"],
            case["valid"],
            patched(page["bases"][case["base"]], case["patch"]),
            Reader(own, now(page["now"])),
            case.get("check"),
            case.get("names"),
        )


JUDGES = {
    "chains.json": verify_receipt_chain,
    "grants.json": verify_grant,
    "grants-signed-anew.json": verify_grant,
    "items.json": verify_item,
    "receipts.json": verify_receipt,
}


def simple(file: str) -> Iterator[Case]:
    """The cases of the files whose key to trust is one; the time of a grant is its `issued_at`."""
    page = json.loads((CASES / file).read_text())
    known = Documents([page["document"]])
    for case in page["cases"]:
        at = instant(str(case["input"].get("issued_at"))) if isinstance(case["input"], dict) else None
        yield Case(file, case["id"], case["valid"], case["input"], Reader(known, at or LATER), None, None)
