"""Bundles, oap-memory-bundle/1 (docs/bundle-v1.md, docs/bytes.md 7)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from . import form
from .canonical import canonical, hash_of, parse
from .documents import document
from .errors import Refused
from .form import (
    BUNDLE_ID,
    COUNT,
    DID,
    GRANT_ID,
    HASH,
    SCOPE,
    TEXT,
    TRUST_LEVEL,
    array,
    either,
    hold,
    obj,
    one_of,
)
from .grants import MAX_DEPTH, check_delegation, granter_of
from .items import Item, check_commitment, check_item
from .jws import read_detached
from .receipts import Chain, check_receipt
from .report import Reader, Report, dated
from .sdjwt import read
from .times import instant

MAX_LINE = 16 * 1024 * 1024
"""Bytes of a line, its line feed aside."""
FORMAT = "oap-memory-bundle/1"

_TIME = form.text(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z",
    "must be a time in UTC with Z, to the millisecond",
)
_HEADER = obj(
    {
        "type": TEXT,
        "format": TEXT,
        "bundle_id": BUNDLE_ID,
        "principal": DID,
        "scopes": array(SCOPE, 0, 100_000),
        "created_at": _TIME,
        "items": COUNT,
        "documents": array(form.OPEN, 0, 10_000),
    },
    {
        "projected": obj(
            {"grant_id": GRANT_ID, "profile": TEXT, "trust_level": TRUST_LEVEL, "grantee": DID},
        )
    },
)
_RECORD = obj(
    {
        "author": DID,
        "tier": one_of("working", "episodic", "semantic"),
        "visibility": one_of("private", "local", "shared"),
        "human_verified": form.boolean,
        "needs_verification": form.boolean,
        "namespace": either(form.exactly(None), TEXT),
        "key": either(form.exactly(None), TEXT),
    },
    {"private_to": DID},
)
_LINES = {
    "header": _HEADER,
    "item": obj({"type": TEXT, "item": form.OPEN}, {"record": _RECORD, "superseded": array(TEXT, 1, 10_000)}),
    "grant": obj({"type": TEXT, "grant": form.OPEN}),
    "receipt": obj({"type": TEXT, "receipt": form.OPEN}),
    "trailer": obj(
        {
            "type": TEXT,
            "bundle_id": BUNDLE_ID,
            "counts": obj({"items": COUNT, "grants": COUNT, "receipts": COUNT}),
            "lines": COUNT,
            "hash": HASH,
            "finished_at": _TIME,
            "signature": TEXT,
        }
    ),
}


class _Bundle:
    """The state of one reading, line by line."""

    def __init__(self, reader: Reader, *, trust_documents: bool) -> None:
        self.reader = reader
        self.report = Report("bundle")
        self._trust = trust_documents
        self._header: dict[str, Any] | None = None
        self._trailer: dict[str, Any] | None = None
        self._hash = hashlib.sha256()
        self._lines = 0
        self._counts = {"items": 0, "grants": 0, "receipts": 0}
        self._items: dict[str, Item] = {}
        self._commitments: set[str] = set()
        self._grants: dict[str, tuple[int, dict[str, Any]]] = {}
        self._grant_ids: set[str] = set()
        self._receipts: dict[str, tuple[str | None, list[str], str | None]] = {}
        self._chain: Chain | None = None
        self._chains: set[str | None] = set()

    def line(self, raw: bytes) -> None:
        """Takes the next line, with its line feed."""
        if len(raw) > MAX_LINE + 1:
            raise Refused("bundle.too_long", "", f"must have {MAX_LINE} bytes at most")
        if not raw.endswith(b"\n"):
            raise Refused("bundle.line_feed", "", "must end with a line feed")
        try:
            value = parse(raw[:-1])
        except Refused as wrong:
            raise Refused("bundle.malformed", wrong.field, wrong.must) from None
        if canonical(value) != raw[:-1]:
            raise Refused("bundle.not_canonical", "", "must be the canonical form of what it says")
        if not isinstance(value, dict) or not isinstance(kind := value.get("type"), str) or kind not in _LINES:
            raise Refused("bundle.malformed", "/type", "must be header, item, grant, receipt or trailer")
        if self._trailer is not None:
            raise Refused("bundle.after_trailer", "", "must not follow the trailer")
        if (kind == "header") != (self._header is None):
            raise Refused("bundle.header", "/type", "must be header in the first line, and there alone")
        hold(_LINES[kind], value, "bundle.malformed")
        if kind != "receipt":
            self._end_chain()
        {
            "header": self._read_header,
            "item": self._read_item,
            "grant": self._read_grant,
            "receipt": self._read_receipt,
            "trailer": self._read_trailer,
        }[kind](value)
        self._hash.update(raw)
        self._lines += 1

    @property
    def head(self) -> dict[str, Any]:
        """The header; a bundle without one is cut."""
        if self._header is None:
            raise Refused("bundle.cut", "", "must have a header")
        return self._header

    def _not_projected(self) -> None:
        if "projected" in self.head:
            raise Refused("bundle.projected", "", "must not be in a grantee's bundle")

    def _read_header(self, header: dict[str, Any]) -> None:
        if header["format"] != FORMAT:
            raise Refused("bundle.format", "/format", f"must be {FORMAT}")
        self.reader.not_future(header["created_at"], "bundle.future", "/created_at")
        for place, value in enumerate(header["documents"]):
            try:
                brought = document(value)
            except Refused as wrong:
                raise Refused("bundle.documents", f"/documents/{place}{wrong.field}", wrong.must) from None
            known = self.reader.documents.of(brought.did)
            if known is None and self._trust:
                self.reader.documents.add(brought)
                self.report.note("documents", "the keys in documents that the bundle brings along: believed as asked")
            elif known is not None:
                for kid, key in brought.keys.items():
                    if kid in known.keys and known.keys[kid].raw != key.raw:
                        raise Refused("bundle.documents", f"/documents/{place}", "must have the published keys")
        self._header = header

    def _read_item(self, line: dict[str, Any]) -> None:
        header, projected = self.head, "projected" in self.head
        if projected and ("record" in line or "superseded" in line):
            raise Refused("bundle.whole_line", "", "must be an item alone in a grantee's bundle")
        try:
            item = check_item(line["item"], self.reader, self.report)
        except Refused as wrong:
            raise wrong.under("/item") from None
        if item.item_id in self._items:
            raise Refused("bundle.repeated_item", "/item/item_id", "must not stand twice")
        if item.chain.holder != header["principal"]:
            raise Refused("bundle.holder", "/item/integrity/chain", "must end with the principal")
        if "scope_id" in item.claims and item.claims["scope_id"] not in header["scopes"]:
            raise Refused("bundle.scope", "/item/scope_id", "must be one of the header's scopes")
        if item.claims.get("exportable") is False:
            raise Refused("bundle.not_exportable", "/item/exportable", "must not be false: such items do not leave")
        if projected and item.chain.status != "current":
            raise Refused("bundle.not_current", "/item/status", "must be current in a grantee's bundle")
        self._version(item.chain.committed["commitment"])
        for place, sd_jwt in enumerate(line.get("superseded", [])):
            try:
                self._superseded(item, sd_jwt)
            except Refused as wrong:
                raise wrong.under(f"/superseded/{place}") from None
        if "record" in line:
            self.report.note("records", "the records beside items: the trailer alone signs them")
        self._items[item.item_id] = item
        self._counts["items"] += 1

    def _version(self, commitment: str) -> None:
        if commitment in self._commitments:
            raise Refused("bundle.repeated_version", "", "must not stand twice")
        self._commitments.add(commitment)

    def _superseded(self, item: Item, sd_jwt: str) -> None:
        commitment = read(sd_jwt)
        link = next((link for link in item.chain.links if link["commitment"] == commitment.hash), None)
        if link is None or commitment.hash == item.chain.committed["commitment"]:
            raise Refused("bundle.superseded", "", "must be a version of the chain that was replaced")
        check_commitment(commitment, link, self.reader, self.report)
        self._version(commitment.hash)

    def _read_grant(self, line: dict[str, Any]) -> None:
        self._not_projected()
        grant, place = line["grant"], self._lines
        hashed = hash_of(grant)
        if hashed in self._grants or grant.get("grant_id") in self._grant_ids:
            raise Refused("bundle.repeated_grant", "/grant/grant_id", "must not stand twice")
        self._grants[hashed] = (place, grant)
        self._grant_ids.add(str(grant.get("grant_id")))
        self._counts["grants"] += 1

    def _check_grants(self) -> None:
        """Each by itself, and within its parent, which may stand before or after it."""
        for place, grant in self._grants.values():
            above: list[dict[str, Any]] = []
            parent = grant.get("parent")
            while isinstance(parent, str) and parent in self._grants and len(above) <= MAX_DEPTH:
                above.insert(0, self._grants[parent][1])
                parent = above[0].get("parent")
            try:
                held, _ = check_delegation(grant, above, self.reader)
            except Refused as wrong:
                raise wrong.under(f"/{place}/grant") from None
            if granter_of(held) != self.head["principal"]:
                raise Refused("bundle.granter", f"/{place}/grant/granter", "must be the principal")

    def _read_receipt(self, line: dict[str, Any]) -> None:
        self._not_projected()
        aside = Report("receipt")
        try:
            receipt = check_receipt(line["receipt"], self.reader, aside, in_chain=True)
        except Refused as wrong:
            check = "bundle.future" if wrong.check == "receipt.future" else wrong.check
            raise Refused(check, "/receipt" + wrong.field, wrong.must) from None
        self.report.unchecked += [one for one in aside.unchecked if one not in self.report.unchecked]
        if receipt["principal_did"] != self.head["principal"]:
            raise Refused("bundle.receipt_principal", "/receipt/principal_did", "must be the principal")
        if self._chain is None or receipt["previous_receipt_hash"] == "genesis":
            self._end_chain()
            self._chain = Chain()
        self._chain.add(receipt)
        if receipt["receipt_id"] in self._receipts:
            raise Refused("bundle.repeated_chain", "/receipt/receipt_id", "must not stand twice")
        self._receipts[receipt["receipt_id"]] = (
            receipt.get("action_id"),
            receipt.get("provenance_tags_out", []),
            receipt.get("output_hash"),
        )
        self._counts["receipts"] += 1

    def _end_chain(self) -> None:
        chain, self._chain = self._chain, None
        if chain is None:
            return
        chain.end()
        if chain.name in self._chains:
            raise Refused("bundle.repeated_chain", "", "must not stand twice")
        self._chains.add(chain.name)

    def _read_trailer(self, trailer: dict[str, Any]) -> None:
        header = self.head
        if trailer["bundle_id"] != header["bundle_id"]:
            raise Refused("bundle.other_bundle", "/bundle_id", "must be the header's")
        finished = self.reader.not_future(trailer["finished_at"], "bundle.future", "/finished_at")
        if finished < (instant(header["created_at"]) or 0):
            raise Refused("bundle.times", "/finished_at", "must not be before the bundle was begun")
        wanted = {"lines": self._lines, "counts": self._counts, "hash": "sha256:" + self._hash.hexdigest()}
        for name, value in wanted.items():
            if trailer[name] != value:
                raise Refused("bundle.changed", "/" + name, "must be that of the lines before")
        if header["items"] != self._counts["items"]:
            raise Refused("bundle.header_count", "/items", "of the header must be the number of items")
        jws = read_detached(trailer["signature"], trailer, "type")
        if jws is None:
            raise Refused("bundle.signature", "/signature", "must be a detached JWS with EdDSA")
        key = self.reader.key(jws.kid, header["principal"], finished, "bundle.signature", "/signature")
        if not jws.by(key.raw):
            raise Refused("bundle.signature", "/signature", "must be a signature of the trailer")
        dated(self.report, key, "the trailer")
        for item in self._items.values():
            if (instant(item.chain.links[-1]["at"]) or 0) > finished:
                raise Refused("bundle.late", "/finished_at", "must not be before the last link of an item")
        self._trailer = trailer

    def _link_receipts(self) -> None:
        """A link of the principal's whose receipt is here must be what that receipt is about."""
        missing = 0
        for item in self._items.values():
            for link in item.chain.links:
                found = self._receipts.get(link["receipt"]) if link["actor"] == self.head["principal"] else None
                if found is None:
                    # The receipt of the first link stands in the item itself.
                    missing += link["seq"] > 0
                    continue
                tag = f"{link['item_id']}@{link['commitment']}"
                if found != ("memory." + link["event"], [tag], link["commitment"]):
                    raise Refused("bundle.link_receipt", "", "must be the receipt of what the link says")
        if missing:
            self.report.note("link_receipts", f"{missing} links, whose receipts are not in the bundle")

    def end(self) -> Report:
        """The bundle is whole where it ends with a trailer."""
        self._end_chain()
        header, trailer = self.head, self._trailer
        if trailer is None:
            raise Refused("bundle.cut", "", "must end with a trailer")
        self._check_grants()
        self._link_receipts()
        projected = header.get("projected")
        if projected is not None:
            self.report.note("grant", "the grant that the header names: it is not in the bundle")
            self.report.note("projection", "that the profile was followed: the header says it, and nothing proves it")
        if projected is not None or self._grants:
            self.report.note("state", "whether grants were revoked")
        self.report.facts.update(
            principal=header["principal"],
            bundle_id=header["bundle_id"],
            created_at=header["created_at"],
            finished_at=trailer["finished_at"],
            projected=projected,
            **self._counts,
        )
        return self.report


def verify_bundle(lines: Iterable[bytes], reader: Reader, *, trust_documents: bool = False) -> Report:
    """Verifies a bundle, line by line, each with its line feed.

    With `trust_documents` the header's documents are believed of DIDs that the reader has none of.

    >>> from .documents import Documents
    >>> verify_bundle([], Reader(Documents(), 0))
    Traceback (most recent call last):
    oap_memory.errors.Refused: bundle.cut: / must have a header
    """
    own = Reader(reader.documents.copy(), reader.now)
    bundle = _Bundle(own, trust_documents=trust_documents)
    for number, line in enumerate(lines):
        try:
            bundle.line(line)
        except Refused as wrong:
            raise wrong.under(f"/{number}") from None
    return bundle.end()
