"""Items as their owner writes them, and their chains (docs/protocol.md sections 4 and 4.2)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from .canon import Malformed, jcs, sha256
from .commit import CONCEALED, Commitment, commit
from .detect import Contacts, Span, detect
from .keys import Signer, is_did, is_scope
from .ledger import Ledger, short
from .moments import Clock, is_id, read_time, ulid, write_time

KINDS = ("fact", "preference", "conversation_turn", "summary", "observation", "document_reference")
SENSITIVITIES = ("public", "internal", "confidential", "restricted")
DEFAULT_SCOPE = "personal"
DAY = 86_400_000
COMMITTING = ("capture", "correct", "relabel", "reseal")
_DOMAIN = re.compile(r"[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+")
_MAX_DEPTH = 48
_SKEW = 300_000
_MAX_PARTS = 1792
_BYTES = {"structured": 65536, "provenance": 16384, "embedding": 16384, "extensions": 16384}


def need(holds: bool, member: str, must: str) -> None:
    if not holds:
        raise Malformed(f"{member}: {must}")


def is_number(value: Any, low: float, high: float, whole: bool = False) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return low <= value <= high and (not whole or float(value).is_integer())


def _parts(value: Any, depth: int) -> int:
    need(depth <= _MAX_DEPTH, "item", f"nested at most {_MAX_DEPTH} levels")
    if isinstance(value, dict):
        need(not {"_sd", "...", "_sd_alg"} & set(value), "item", "no member with a name of RFC 9901")
        return len(value) + sum(_parts(inner, depth + 1) for inner in value.values())
    if isinstance(value, list):
        return len(value) + sum(_parts(inner, depth + 1) for inner in value)
    return 0


def _object(value: Any, member: str) -> None:
    need(isinstance(value, dict), member, "an object")
    need(len(jcs(value)) <= _BYTES[member], member, f"at most {_BYTES[member]} bytes")


def _short(value: Any) -> bool:
    return isinstance(value, str) and 1 <= len(value) <= 256


def _content(content: Any) -> None:
    need(isinstance(content, dict) and not set(content) - {"text", "structured"}, "content", "text or structured")
    need(bool(content.get("text") or content.get("structured")), "content", "text or structured, one of them at least")
    if "text" in content:
        text = content["text"]
        need(isinstance(text, str) and len(text.encode()) <= 65536, "content.text", "at most 65536 bytes")
    if "structured" in content:
        _object(content["structured"], "structured")


def _provenance(provenance: Any) -> None:
    _object(provenance, "provenance")
    need("source_receipt" not in provenance, "provenance.source_receipt", "absent: the gateway makes it")
    need(is_number(provenance.get("confidence", 1), 0, 1), "provenance.confidence", "0 to 1")
    if "captured_at" in provenance:
        read_time(provenance["captured_at"])


def _count(event: dict[str, Any]) -> None:
    """A calendar event that does not say how many take part: the longer of its two lists does (section 7)."""
    if event.get("entity_type") == "oap.entity.calendar_event" and "participants_count" not in event:
        lists = [event[name] for name in ("participants", "participant_dids") if isinstance(event.get(name), list)]
        if lists:
            event["participants_count"] = max(map(len, lists))


def written(given: Any, owner: str, now: int, known: int | None = None) -> dict[str, Any]:
    """The claims of an item as its owner writes it. An unknown member, or one that the gateway makes, is refused; a time to come, too, but for the one
    that the item has."""
    need(isinstance(given, dict), "item", "an object")
    item = dict(given)
    need(item.pop("owner_did", owner) == owner, "owner_did", "the owner")
    for member in item:
        need(member in CONCEALED, "item", "no member that is unknown or that the gateway makes")
    need(item.get("kind") in KINDS, "kind", "one of the six kinds")
    _content(item.get("content"))
    _provenance(item.get("provenance", {}))
    need(is_scope(item.setdefault("scope_id", DEFAULT_SCOPE)), "scope_id", "a scope")
    need("subject_entity_id" not in item or _short(item["subject_entity_id"]), "subject_entity_id", "1 to 256 characters")
    labels = item.get("labels", [])
    need(isinstance(labels, list) and len(labels) <= 64 and all(map(_short, labels)), "labels", "at most 64 texts")
    derived = item.get("derived_from", [])
    need(isinstance(derived, list) and len(derived) <= 1024, "derived_from", "at most 1024 ids")
    need(all(is_id("mem_", one) for one in derived), "derived_from", "ids of items")
    need("ttl_days" not in item or is_number(item["ttl_days"], 1, 36500, True), "ttl_days", "1 to 36500")
    need(isinstance(item.setdefault("exportable", True), bool), "exportable", "true or false")
    need(item.setdefault("sensitivity", "internal") in SENSITIVITIES, "sensitivity", "one of the four")
    for member in ("embedding", "extensions"):
        if member in item:
            _object(item[member], member)
    names = item.get("extensions", ())
    need(all(is_did(name) or _DOMAIN.fullmatch(name) for name in names), "extensions", "by DID or reverse domain")
    need(_parts({n: v for n, v in item.items() if n != "content"}, 1) <= _MAX_PARTS, "item", "fewer members")
    need(_parts(item["content"], 2) <= _MAX_PARTS, "content", "fewer members")
    item["content"] = {name: value for name, value in item["content"].items() if value != ""}
    _count(item["content"].get("structured", {}))
    for name in ("labels", "derived_from", "extensions"):
        if name in item and not item[name]:
            del item[name]
    provenance = {"confidence": 1, **item.get("provenance", {})}
    captured = read_time(provenance["captured_at"]) if "captured_at" in provenance else now
    need(captured == known or captured <= now + _SKEW, "provenance.captured_at", "not in the future")
    item["provenance"] = {**provenance, "captured_at": write_time(captured)}
    if "expires_at" in item:
        item["expires_at"] = write_time(read_time(item["expires_at"]))
    if "labels" in item:
        item["labels"] = sorted(set(labels))
    return item


@dataclass
class Item:
    """A version in force and the chain that led to it."""

    item_id: str
    claims: dict[str, Any]
    spans: list[Span]
    commitment: Commitment | None
    capture_receipt: dict[str, Any]
    chain: list[dict[str, Any]] = field(default_factory=list)
    status: str = "current"

    @property
    def tag(self) -> str:
        return f"{self.item_id}@{self.chain[-1]['commitment']}"

    @property
    def captured_at(self) -> int:
        return read_time(self.claims["provenance"]["captured_at"])

    @property
    def confidence(self) -> float:
        return self.claims["provenance"]["confidence"]

    @property
    def version(self) -> int:
        committing = [link["seq"] for link in self.chain if link["event"] in COMMITTING]
        return committing[-1] + 1

    def ends_at(self) -> int | None:
        """`expires_at` outranks `captured_at + ttl_days`."""
        if "expires_at" in self.claims:
            return read_time(self.claims["expires_at"])
        return self.captured_at + self.claims["ttl_days"] * DAY if "ttl_days" in self.claims else None

    def over(self, now: int) -> bool:
        """Whether its content is gone, or is to go."""
        end = self.ends_at() if self.status != "erased" else now
        return end is not None and now >= end

    def live(self, now: int) -> bool:
        return self.status == "current" and not self.over(now)


class Shelf:
    """All items. Every change is a link, a receipt and, where it commits, an SD-JWT."""

    def __init__(self, signer: Signer, clock: Clock, ledger: Ledger) -> None:
        self._signer, self._clock, self._ledger = signer, clock, ledger
        self.items: dict[str, Item] = {}
        self.contacts = Contacts()
        self.changes = 0

    def sign_with(self, signer: Signer) -> None:
        self._signer = signer

    def chain_of(self, scope: str) -> str:
        return f"{self._signer.did}#{scope}"

    def _link(self, item: Item, event: str, commitment: str, receipt_id: str, now: int) -> None:
        link = {
            "item_id": item.item_id,
            "seq": len(item.chain),
            "event": event,
            "at": write_time(now),
            "actor": self._signer.did,
            "commitment": commitment,
            "prev": sha256(jcs(item.chain[-1])) if item.chain else "genesis",
            "receipt": receipt_id,
        }
        item.chain.append({**link, "signature": self._signer.detached(link)})

    def _record(self, item: Item, event: str, commitment: str, receipt_id: str) -> dict[str, Any]:
        self.changes += 1
        return self._ledger.write(
            self.chain_of(item.claims["scope_id"]),
            f"memory.{event}",
            {"rules": ["principal"]},
            receipt_id=receipt_id,
            output_hash=commitment,
            provenance_tags_out=[f"{item.item_id}@{commitment}"],
        )

    def _commit(self, item: Item, event: str, claims: dict[str, Any]) -> None:
        now, receipt_id = self._clock.now(), self._ledger.fresh_id()
        first = item.chain[0]["receipt"] if item.chain else receipt_id
        claims["provenance"]["source_receipt"] = short(first)
        item.claims, item.spans = claims, detect(claims["content"].get("text", ""), self.contacts)
        clear = {
            "iss": self._signer.did,
            "iat": now // 1000,
            "item_id": item.item_id,
            "seq": len(item.chain),
            "event": event,
            "prev": sha256(jcs(item.chain[-1])) if item.chain else "genesis",
            "receipt": short(first),
        }
        item.commitment = commit(self._signer, claims, clear, item.spans)
        receipt = self._record(item, event, item.commitment.hash, receipt_id)
        item.capture_receipt = item.capture_receipt or receipt
        self._link(item, event, item.commitment.hash, receipt_id, now)

    def capture(self, given: Iterable[Any]) -> list[str]:
        """Takes in all of them or none. There is one capture receipt an item."""
        now = self._clock.now()
        claims = [written(one, self._signer.did, now) for one in given]
        for one in claims:
            self._meet(one)
        ids = []
        for one in claims:
            item = Item("mem_" + ulid(self._clock.now()), {}, [], None, {})
            item.claims = one
            self._commit(item, "capture", one)
            self.items[item.item_id] = item
            ids.append(item.item_id)
        self._reseal(set(ids))
        return ids

    def _current(self, item_id: str) -> Item:
        item = self.items.get(item_id)
        if item is None or not item.live(self._clock.now()):
            raise Malformed("item_id: an item that is current")
        return item

    def correct(self, item_id: str, changes: dict[str, Any]) -> None:
        """The members that change; of content and provenance, those inside. `null` takes one away."""
        item = self._current(item_id)
        need(isinstance(changes, dict), "item", "an object")
        old = {**item.claims, "provenance": dict(item.claims.get("provenance", {}))}
        old["provenance"].pop("source_receipt", None)
        new = {**old, **changes}
        for member in ("content", "provenance"):
            inner = changes.get(member, {})
            need(isinstance(inner, dict), member, "an object")
            new[member] = {name: value for name, value in {**old[member], **inner}.items() if value is not None}
        said, now = {n: v for n, v in new.items() if v is not None}, self._clock.now()
        claims = written(said, self._signer.did, now, item.captured_at)
        need(claims["scope_id"] == item.claims["scope_id"], "scope_id", "as it was")
        self._meet(claims)
        self._commit(item, "correct", claims)
        self._reseal({item_id})

    def relabel(self, item_id: str, labels: Any) -> None:
        """These labels, and no others."""
        item = self._current(item_id)
        claims = {**item.claims, "provenance": dict(item.claims["provenance"]), "labels": labels}
        del claims["provenance"]["source_receipt"]
        claims = written(claims, self._signer.did, self._clock.now(), item.captured_at)
        need(claims.get("labels", []) != item.claims.get("labels", []), "labels", "others than it has")
        self._commit(item, "relabel", claims)

    def mark(self, item_id: str, event: str) -> None:
        """`confirm`, `retract` and `restore` commit nothing anew (section 4.2)."""
        item = self.items.get(item_id)
        need(item is not None and not item.over(self._clock.now()), "item_id", "an item that is there")
        after = "retracted" if event == "restore" else "current"
        need(item.status == after, "item_id", f"an item that is {after}")
        commitment, receipt_id = item.chain[-1]["commitment"], self._ledger.fresh_id()
        self._record(item, event, commitment, receipt_id)
        self._link(item, event, commitment, receipt_id, self._clock.now())
        item.status = {"retract": "retracted", "restore": "current"}.get(event, item.status)

    def _meet(self, claims: dict[str, Any]) -> None:
        structured = claims["content"].get("structured", {})
        if structured.get("entity_type") == "oap.entity.contact":
            self.contacts.add(structured)
            self._new_contacts = True

    _new_contacts = False

    def _reseal(self, but: set[str]) -> None:
        """The same content with other spans, where there are new contacts."""
        if not self._new_contacts:
            return
        self._new_contacts = False
        for item in self.items.values():
            if item.item_id in but or item.status != "current" or "text" not in item.claims["content"]:
                continue
            if detect(item.claims["content"]["text"], self.contacts) != item.spans:
                claims = {**item.claims, "provenance": dict(item.claims["provenance"])}
                self._commit(item, "reseal", claims)

    def end(self, item: Item, event: str) -> None:
        """`expire` or `erase`: the content is gone, the links stay."""
        now, receipt_id = self._clock.now(), self._ledger.fresh_id()
        commitment = item.chain[-1]["commitment"]
        self._record(item, event, commitment, receipt_id)
        self._link(item, event, commitment, receipt_id, now)
        item.status, item.claims, item.spans, item.commitment = "erased", {}, [], None

    def sweep(self) -> None:
        """An expired item is erased within a minute, and in no view before."""
        now = self._clock.now()
        for item in self.items.values():
            if item.status != "erased" and item.over(now):
                self.end(item, "expire")
