"""The memory manifest: what a principal publishes of its gateway (protocol section 3)."""

from __future__ import annotations

from typing import Any

from .canonical import Json
from .errors import Refused
from .form import COUNT, DID, HASH, OPEN, TEXT, TIME, URL, anything, array, hold, obj
from .jws import read_detached
from .report import Reader, Report, dated

_MANIFEST = obj(
    {
        "principal": DID,
        "scopes": array(TEXT, 0, 10_000),
        "embedding_profiles": array(OPEN, 0, 1000),
        "kinds_supported": array(TEXT, 0, 1000),
        "endpoints": obj({"query": URL, "grant": URL, "export": URL, "revocation": URL}, closed=False),
        "max_grant_size_items": COUNT,
        "memory_exchange": OPEN,
        "formats": array(TEXT, 0, 1000),
        "tool_manifest": obj({"uri": URL, "hash": HASH}),
        "published_at": TIME,
        "signature": TEXT,
    },
    {"belief_threshold": anything, "projections": OPEN, "confidentiality": OPEN},
    closed=False,
)


def check_manifest(value: Json, reader: Reader, report: Report) -> dict[str, Any]:
    """The manifest, where its principal signed it.

    >>> from .documents import Documents
    >>> check_manifest({}, Reader(Documents(), 0), Report("manifest"))
    Traceback (most recent call last):
    oap_memory.errors.Refused: manifest.malformed: /principal must be there
    """
    manifest = hold(_MANIFEST, value, "manifest.malformed")
    at = reader.not_future(manifest["published_at"], "manifest.future", "/published_at")
    jws = read_detached(manifest["signature"], manifest)
    if jws is None:
        raise Refused("manifest.signature", "/signature", "must be a detached JWS with EdDSA")
    key = reader.key(jws.kid, manifest["principal"], at, "manifest.signature", "/signature")
    if not jws.by(key.raw):
        raise Refused("manifest.signature", "/signature", "must be a signature of the manifest")
    dated(report, key, "the manifest")
    return manifest


def verify_manifest(value: Json, reader: Reader) -> Report:
    """Verifies a memory manifest.

    >>> from .documents import Documents
    >>> verify_manifest({}, Reader(Documents(), 0))
    Traceback (most recent call last):
    oap_memory.errors.Refused: manifest.malformed: /principal must be there
    """
    report = Report("memory manifest")
    manifest = check_manifest(value, reader, report)
    report.note("tool_manifest", "the tool manifest, of which it has the hash")
    report.facts.update(
        principal=manifest["principal"], published_at=manifest["published_at"], endpoints=manifest["endpoints"]
    )
    return report
