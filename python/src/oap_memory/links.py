"""The chain of an item: links, their order, their signatures (protocol 4.2, docs/bytes.md 4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import form
from .canonical import Json, hash_of
from .documents import Key
from .errors import Refused
from .form import COUNT, DID, EVENT, HASH, ITEM_ID, PREVIOUS, RECEIPT_ID, TIME, hold, obj
from .jws import read_detached
from .receipts import COMMITTING
from .report import Reader, Report
from .times import instant

MAX_LINKS = 10_000
"""Links of a chain."""

LINK = obj(
    {
        "item_id": ITEM_ID,
        "seq": COUNT,
        "event": EVENT,
        "at": TIME,
        "actor": DID,
        "commitment": HASH,
        "prev": PREVIOUS,
        "receipt": RECEIPT_ID,
        "signature": form.TEXT,
    }
)

_CURRENT, _RETRACTED, _ERASED = "current", "retracted", "erased"
_FOLLOWS: dict[str, tuple[set[str | None], str | None]] = {
    "capture": ({None}, _CURRENT),
    "import": ({None, _CURRENT, _RETRACTED}, None),
    "merge": ({None, _CURRENT}, _CURRENT),
    "correct": ({_CURRENT}, _CURRENT),
    "relabel": ({_CURRENT}, _CURRENT),
    "reseal": ({_CURRENT, _RETRACTED}, None),
    "confirm": ({_CURRENT}, _CURRENT),
    "retract": ({_CURRENT}, _RETRACTED),
    "restore": ({_RETRACTED}, _CURRENT),
    "migrate": ({_CURRENT, _RETRACTED}, None),
    "expire": ({_CURRENT, _RETRACTED}, _ERASED),
    "erase": ({_CURRENT, _RETRACTED}, _ERASED),
}
"""What each event may follow, and what it leads to (`None`: as before)."""


@dataclass(frozen=True)
class ItemChain:
    """A chain that holds."""

    links: list[dict[str, Any]]
    status: str
    committed: dict[str, Any]
    """The link that committed last."""
    confirmed: bool
    actors: list[str]
    """Who held the item, one after the other."""

    @property
    def holder(self) -> str:
        """The actor of the last link."""
        return self.actors[-1]

    @property
    def moved(self) -> bool:
        """Whether the item changed house."""
        return len(self.actors) > 1

    @property
    def version(self) -> int:
        """One more than the number of the link that committed last."""
        return int(self.committed["seq"]) + 1


@dataclass
class _Signed:
    key: Key
    at: int
    counts: bool


def _commits(event: str, seq: int) -> bool:
    return event in COMMITTING - {"import"} or seq == 0


def _follow(links: list[dict[str, Any]]) -> ItemChain:
    """Order, times, events, commitments and actors of the links."""
    status: str | None = None
    first, committed, seen = links[0], links[0], set[str]()
    actors = [str(first["actor"])]
    confirmed = False
    prev, before, commitment = "genesis", None, ""
    for seq, link in enumerate(links):
        place, event = f"/{seq}", link["event"]
        if link["item_id"] != first["item_id"]:
            raise Refused("chain.other_item", place + "/item_id", "must be that of the first link")
        if link["seq"] != seq:
            raise Refused("chain.number", place + "/seq", "must be the number of the link, from 0")
        if link["prev"] != prev:
            raise Refused("chain.broken", place + "/prev", "must be the hash of the link before")
        at = instant(link["at"]) or 0
        if before is not None and at < before:
            raise Refused("chain.time", place + "/at", "must not be before the link before")
        after, leads = _FOLLOWS[event]
        if status not in after:
            check = "chain.state" if status is not None and event not in ("capture",) else "chain.event"
            raise Refused(check, place + "/event", "must be an event that may follow")
        if link["actor"] != actors[-1]:
            if event != "migrate":
                raise Refused("chain.actor", place + "/actor", "must be that of the link before, but at a migrate link")
            actors.append(link["actor"])
        if _commits(event, seq):
            if link["commitment"] in seen:
                raise Refused("chain.repeated_commitment", place + "/commitment", "must be new")
            commitment, committed = link["commitment"], link
            seen.add(commitment)
        elif link["commitment"] != commitment:
            raise Refused("chain.changed_commitment", place + "/commitment", "must be that of the link before")
        confirmed = confirmed or event == "confirm"
        status = leads or status or _CURRENT
        prev, before = hash_of(link), at
    return ItemChain(links, status or _CURRENT, committed, confirmed, actors)


def _signature(link: dict[str, Any], reader: Reader, place: str) -> _Signed:
    jws = read_detached(link["signature"], link)
    if jws is None:
        raise Refused("chain.signature", place + "/signature", "must be a detached JWS with EdDSA")
    if jws.kid.partition("#")[0] != link["actor"]:
        raise Refused("chain.signer", place + "/signature", "must be by the actor")
    key, at = reader.documents.key(jws.kid), instant(link["at"]) or 0
    if key is None or key.retired(at) or not jws.by(key.raw):
        raise Refused("chain.signature", place + "/signature", "must verify with a key of the actor in force")
    return _Signed(key, at, key.in_force(at))


def _vouched(links: list[dict[str, Any]], signed: list[_Signed]) -> list[bool]:
    """Of each link, whether a later `reseal` of the same house, by a key without any compromise, vouches for it."""
    out, voucher = [False] * len(links), False
    for seq in range(len(links) - 1, -1, -1):
        if seq + 1 < len(links) and links[seq + 1]["actor"] != links[seq]["actor"]:
            voucher = False
        out[seq] = voucher
        if links[seq]["event"] == "reseal" and signed[seq].key.revoked is None and signed[seq].counts:
            voucher = True
    return out


def check_chain(value: Json, reader: Reader, report: Report) -> ItemChain:
    """The chain, where every link holds: number, order, event, commitment, time and signature.

    >>> from .documents import Documents
    >>> check_chain([], Reader(Documents(), 0), Report("item"))
    Traceback (most recent call last):
    oap_memory.errors.Refused: chain.empty: / must be a list of one link at least
    """
    if not isinstance(value, list) or not value:
        raise Refused("chain.empty", "", "must be a list of one link at least")
    if len(value) > MAX_LINKS:
        raise Refused("chain.malformed", "", f"must have {MAX_LINKS} links at most")
    links = []
    for place, link in enumerate(value):
        try:
            links.append(hold(LINK, link, "chain.malformed"))
        except Refused as wrong:
            raise wrong.under(f"/{place}") from None
    chain = _follow(links)
    signed = [_signature(link, reader, f"/{place}") for place, link in enumerate(links)]
    for place, (one, vouched) in enumerate(zip(signed, _vouched(links, signed), strict=True)):
        if not one.counts and not vouched:
            raise Refused("chain.compromised", f"/{place}/signature", "must be by a key that was not compromised then")
        if one.counts and one.key.revoked is not None and not vouched:
            report.note(
                "dated_by_compromised_key",
                "the dates of links: their key was compromised later, and who has it dates back",
            )
    if chain.moved:
        report.note("move", "that the former house agreed to the move: the new one alone signed it")
    return chain
