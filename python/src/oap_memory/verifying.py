"""Verifies any document of the protocol: finds out what it is, and checks it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .answers import verify_answer
from .bundles import MAX_LINE, verify_bundle
from .canonical import Json, hash_of, parse
from .deletions import verify_deletion_receipt
from .documents import Documents, document
from .errors import Refused, UsageError
from .grants import granter_of, verify_grant
from .items import verify_item
from .manifests import verify_manifest
from .receipts import verify_receipt, verify_receipt_chain
from .report import Reader, Report
from .status import read_status_list, verify_status_list
from .times import clock

MAX_FILE = 512 * 1024 * 1024
"""Bytes of a file: a bundle."""
MAX_DOCUMENT = 64 * 1024 * 1024
"""Bytes of a document that is no bundle."""


def _kind(value: dict[str, Any]) -> str:
    """What an object says it is."""
    if value.get("type") == "header":
        return "bundle"
    for kind, members in {
        "answer": ("items", "receipt", "response_id"),
        "grant": ("grantee", "granter"),
        "item": ("item_id", "integrity"),
        "manifest": ("principal", "endpoints", "memory_exchange"),
        "deletion": ("completed_at", "request_received_at"),
        "joint": ("receipt",),
        "receipt": ("principal_did", "receipt_id"),
        "document": ("verificationMethod",),
    }.items():
        if all(member in value for member in members):
            return kind
    return "unknown"


def _verify_document(value: Json) -> Report:
    known = document(value)
    report = Report("DID document", facts={"did": known.did, "keys": sorted(known.keys), "hash": hash_of(value)})
    report.note("document", "who made it: nothing signs a DID document but where it was found")
    return report


def verify(
    data: bytes | str | Json,
    *,
    documents: Documents | Iterable[Json] = (),
    grant: Json = None,
    ancestors: Sequence[Json] = (),
    status_list: str | None = None,
    trust_bundle: bool = False,
    now: int | None = None,
) -> Report:
    """Verifies a document, as bytes, text or parsed.

    An answer, an item, a bundle, a grant, a receipt, a chain of receipts, a Deletion Receipt, a status list, a memory
    manifest or a DID document. `documents` are the DID documents to trust; a did:key needs none. `grant` (and the
    grants above it, `ancestors`, the first one first) is what an answer must have been given under. `status_list` is
    the granter's: what it says of the grant stands in `facts["revoked"]`. `now` is the reader's clock in nanoseconds
    since 1970. What does not hold is `Refused`; the report says what holds, and names what was not checked.

    >>> verify({"grant_id": "mgr_1", "grantee": "did:web:b.example", "granter": "did:web:a.example#personal"})
    Traceback (most recent call last):
    oap_memory.errors.Refused: grant.document: /purpose must be there
    """
    known = documents if isinstance(documents, Documents) else Documents(documents)
    reader = Reader(known, clock() if now is None else now)
    report = _verify(data, reader, grant, ancestors, trust_bundle=trust_bundle)
    if status_list is not None:
        held = grant if report.kind == "answer" else parse(data) if isinstance(data, bytes | str) else data
        if report.kind not in ("answer", "grant") or not isinstance(held, dict):
            raise UsageError("a status list tells of grants, and of answers with their grant, alone", "status_list")
        _not_revoked(held, ancestors, status_list, reader, report)
    return report


def _not_revoked(
    grant: dict[str, Any], ancestors: Sequence[Json], status_list: str, reader: Reader, report: Report
) -> None:
    """Looks the grant, or the first one above it, up in the granter's status list."""
    first = ancestors[0] if ancestors and isinstance(ancestors[0], dict) else grant
    listed, aside = read_status_list(status_list, reader)
    place = first.get("status", {}).get("status_list")
    if place is None or aside.facts["issuer"] != granter_of(first) or aside.facts["uri"] != place["uri"]:
        raise Refused("status.claim", "/sub", "must be the list that the grant names, by its granter")
    report.facts["revoked"] = listed.revoked(place["idx"])
    if not ancestors:
        report.unchecked = [one for one in report.unchecked if one.name != "unchecked.state"]


def _verify(
    data: bytes | str | Json, reader: Reader, grant: Json, ancestors: Sequence[Json], *, trust_bundle: bool
) -> Report:
    text = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    if isinstance(text, bytes):
        if len(text) > MAX_FILE:
            raise UsageError(f"the file must have {MAX_FILE} bytes at most")
        if text[:4] == b"\x28\xb5\x2f\xfd" or text.startswith(b"age-encryption.org/"):
            raise UsageError("the bundle is packed: unpack it first (zstd -d, age -d)")
        first, feed, _ = text[: MAX_LINE + 1].partition(b"\n")
        if feed and b'"type":"header"' in first:
            return verify_bundle(split_lines(text), reader, trust_documents=trust_bundle)
        if len(text) > MAX_DOCUMENT:
            raise UsageError(f"a document must have {MAX_DOCUMENT} bytes at most")
        stripped = text.strip()
        if stripped[:2] == b"ey" and stripped.count(b".") == 2:
            return verify_status_list(stripped.decode("ascii", "replace"), reader)
        data = parse(text)
    if isinstance(data, list):
        return verify_receipt_chain(data, reader)
    if not isinstance(data, dict):
        raise Refused("unknown", "", "must be a document of the protocol")
    kind = _kind(data)
    if kind == "answer":
        return verify_answer(data, reader, grant, ancestors)
    if grant is not None:
        raise UsageError("a grant is compared with an answer alone", "grant")
    if kind == "grant":
        return verify_grant(data, reader, ancestors)
    if kind == "bundle":
        raise Refused("bundle.cut", "", "must be a bundle as text, line by line")
    if kind == "item":
        return verify_item(data, reader)
    if kind == "deletion":
        return verify_deletion_receipt(data.get("deletion_receipt", data), reader)
    if kind == "receipt":
        return verify_receipt(data, reader)
    if kind == "joint" and set(data) == {"receipt"}:
        return verify_receipt(data["receipt"], reader)
    if kind == "manifest":
        return verify_manifest(data, reader)
    if kind == "document":
        return _verify_document(data)
    raise Refused("unknown", "", "must be a document of the protocol")


def split_lines(text: bytes) -> Iterable[bytes]:
    """The lines of a text, each with the line feed that it has.

    >>> list(split_lines(b"a\\nb"))
    [b'a\\n', b'b']
    """
    start = 0
    while start < len(text):
        end = text.find(b"\n", start) + 1 or len(text)
        yield text[start:end]
        start = end
