"""The view of a grant, its caps and its budgets (docs/protocol.md sections 0, 5 and 6)."""

from decimal import Decimal
from typing import Any

from . import vectors
from .grants import Grant
from .house import House
from .items import Item
from .profiles import shows, visible

COST = 10


def view(house: House, grant: Grant) -> list[Item]:
    """The items that the grant and all above it admit. Once `max_items` were disclosed, only those."""
    now = house.clock.now()
    found = [item for item in house.shelf.items.values() if item.status == "current" and item.live(now)]
    found = [item for item in found if all(one.admits(item, house.did) for one in grant.line)]
    found = [item for item in found if house.gates.passes(item, grant, house.did, now)]
    for one in grant.line:
        if len(one.disclosed) >= one.document["max_items"]:
            found = [item for item in found if item.item_id in one.disclosed]
    return found


def seen(house: House, grant: Grant, item: Item, embeddings: bool = False) -> dict[str, Any]:
    """The item as the profile shows it at the grant's level."""
    key = (item.item_id, item.chain[-1]["seq"], grant.profile, grant.trust_level, embeddings)
    if key not in house.seen:
        if len(house.seen) > 50_000:
            house.seen.clear()
        shown = shows(grant.profile, grant.trust_level, item.claims, item.spans, embeddings)
        house.seen[key] = visible(item.claims, item.spans, shown)
    return house.seen[key]


def epistemic(house: House, item: Item) -> str:
    """Shown at every level, and never more than the granter has (RFC 0010 A.2, A.6.2)."""
    if item.confidence == 1 and any(link["event"] == "confirm" for link in item.chain):
        return "knowledge"
    return "belief" if item.confidence >= house.belief_threshold else "possession"


def rendered(house: House, grant: Grant, item: Item, integrity: str, embeddings: bool = False) -> dict[str, Any]:
    """An item as it is returned, with its proof."""
    proof: dict[str, Any] = {"chain": item.chain, "capture_receipt": item.capture_receipt}
    if integrity == "full" and item.commitment:
        shown = shows(grant.profile, grant.trust_level, item.claims, item.spans, embeddings)
        proof["sd_jwt"] = item.commitment.show(shown)
    refers = {}
    if embeddings and house.has_model and grant.trust_level >= vectors.SHOWN_FROM:
        url = f"{house.origin}/oap/memory/vec/{item.item_id}"
        refers = {"embedding_ref": {"model": vectors.MODEL, "dimensions": vectors.DIMENSIONS, "vector_url": url}}
    return {
        **seen(house, grant, item, embeddings),
        **refers,
        "item_id": item.item_id,
        "owner_did": house.did,
        "version": item.version,
        "status": item.status,
        "epistemic": epistemic(house, item),
        "integrity": proof,
    }


class Room:
    """How many new items an answer may still have, by every grant of the line."""

    def __init__(self, grant: Grant) -> None:
        self._line = grant.line
        self._new: list[set[str]] = [set() for _ in self._line]

    def admits(self, item: Item) -> bool:
        for one, new in zip(self._line, self._new, strict=True):
            known = item.item_id in one.disclosed or item.item_id in new
            if not known and len(one.disclosed) + len(new) >= one.document["max_items"]:
                return False
        return True

    def add(self, item: Item) -> None:
        for one, new in zip(self._line, self._new, strict=True):
            if item.item_id not in one.disclosed:
                new.add(item.item_id)


def cost(grant: Grant, chosen: list[Item]) -> int:
    """Thousandths of an ε: ten, and as much again for each ten items that the grantee got before under the grant.

    The page does not say what one such item costs: a tenth of what ten do.
    """
    return COST + sum(item.item_id in grant.disclosed for item in chosen)


def affords(house: House, grant: Grant, price: int) -> bool:
    """Whether grant, those above it, and everybody through whose hands it came can pay."""
    if any(house.accounts[who] + price > house.epsilon_per_grantee * 1000 for who in {g.grantee for g in grant.line}):
        return False
    for one in grant.line:
        budget = one.document.get("budget", {})
        if "queries" in budget and one.queries >= budget["queries"]:
            return False
        if "epsilon" in budget and one.spent + price > Decimal(str(budget["epsilon"])) * 1000:
            return False
    return True


def charge(house: House, grant: Grant, chosen: list[Item], price: int) -> None:
    """Limits are shared: everything is charged to every grant of the line."""
    for who in {one.grantee for one in grant.line}:
        house.accounts[who] += price
    for one in grant.line:
        one.queries += 1
        one.spent += price
        one.disclosed.update(item.item_id for item in chosen)
