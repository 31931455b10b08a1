"""What three gateways wrote down of the same, held against each other: each receipt has its counterpart.

No gateway sees another one's log. What is compared is what each keeps for itself: its receipts, its wallet of grants,
its letters, and what its owner kept of answers.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from gateways import Gateway

from oap_memory import canonical, verify

TERMS = ("consumed_grant_id", "grant_hash", "delegation", "scope_id", "trust_level", "profile", "lawful_basis")
"""What a receipt says of a grant."""
Receipt = dict[str, Any]


class Mismatch(Exception):
    """A receipt without its counterpart."""


@dataclass
class Books:
    """What one gateway has in writing."""

    did: str
    document: Any
    log: list[Receipt]
    received: list[dict[str, Any]]
    letters: list[dict[str, Any]]
    answers: list[dict[str, Any]] = field(default_factory=list)
    """Answers that the owner kept, as they came."""
    given: list[dict[str, Any]] = field(default_factory=list)
    """What the gateway's own agents were given, by their receipts."""
    told: list[dict[str, Any]] = field(default_factory=list)
    """The owner's Deletion Receipts, each with what became of it at the grantees."""
    exchanges: Counter[str] = field(default_factory=Counter)
    """How often this gateway showed a grant for a token, by the grant's hash."""
    refusals: Counter[str] = field(default_factory=Counter)
    """How often it was refused one."""

    @classmethod
    def of(cls, gateway: Gateway) -> Books:
        """Everything but what the story alone knows."""
        log = gateway.json("audit", "--limit", "1000")["receipts"]
        received = gateway.json("grant", "received")["received"]
        letters = gateway.json("peer", "outbox")["letters"]
        return cls(gateway.did, gateway.document(), log, received, letters)

    def of_action(self, action: str, outcome: str = "allow") -> Iterator[Receipt]:
        """The receipts of an action."""
        return (one for one in self.log if one["action_id"] == action and decision(one)["outcome"] == outcome)

    def grant(self, grant: str) -> dict[str, Any]:
        """A grant of the wallet."""
        kept = (one for one in self.received if one["hash"] == grant)
        found: dict[str, Any] = only(f"{grant} in the wallet of {self.did}", kept)
        return found


def decision(receipt: Receipt) -> dict[str, Any]:
    """What a receipt says beside what every receipt of the protocol says."""
    first: dict[str, Any] = receipt["policy_decisions"][0]
    return first


def only(what: str, found: Iterable[Any]) -> Any:
    """The one that there is to be."""
    all_found = list(found)
    if len(all_found) != 1:
        raise Mismatch(f"{what}: {len(all_found)} of them")
    return all_found[0]


def same(what: str, one: Any, other: Any) -> None:
    """Two that are to say the same."""
    if one != other:
        raise Mismatch(f"{what}: {one} and {other}")


def unsigned(receipt: Receipt) -> Receipt:
    """What a receipt says; signatures may be added to it later."""
    return {name: value for name, value in receipt.items() if name not in ("signatures", "anchors")}


def hash_of(document: Any) -> str:
    """The hash of a document in its canonical form."""
    return "sha256:" + hashlib.sha256(canonical(document)).hexdigest()


def compare(granter: Books, grantees: dict[str, Books]) -> int:
    """Compares a granter's log with what its grantees wrote down; how many receipts were matched.

    `grantees` are by the hash of the grant of each. `Mismatch` names the first one without a counterpart, on any side.
    """
    matched = [_grants(granter, grantees), _answers(granter, grantees), _ends(granter, grantees)]
    kept = {grant for books in grantees.values() for grant in (one["hash"] for one in books.received)}
    same("the grants that there are", kept, set(grantees))
    # Whatever else stands in a log under one of the grants is of none of the kinds that were looked at.
    known = {"memory." + name for name in ("grant", "delegate", "exchange", "query", "revoke")}
    for books in (granter, *grantees.values()):
        for receipt in books.log:
            if decision(receipt).get("grant_hash") in grantees and receipt["action_id"] not in known:
                raise Mismatch(f"{receipt['action_id']} at {books.did}: it has no counterpart anywhere")
        for letter in books.letters:
            same(f"a letter from {books.did}, {letter['kind']}", letter["state"], "delivered")
    return sum(matched)


def _grants(granter: Books, grantees: dict[str, Books]) -> int:
    """Each grant was signed by one of the three, and is in the wallet of whom it is for."""
    number = 0
    for grant, grantee in grantees.items():
        kept = grantee.grant(grant)
        same("the hash of a grant", hash_of(kept["grant"]), grant)
        same("for whom a grant is", kept["grant"]["grantee"], grantee.did)
        above = [hash_of(one) for one in kept.get("above", [])]
        if not above:
            signed = (one for one in granter.of_action("memory.grant") if one["output_hash"] == grant)
            said = [only(f"the receipt of the signing of {grant}", signed)]
        else:
            # Who passed it on wrote it down when it was signed, the granter when it was first used.
            maker = grantees[above[-1]]
            said = [
                only(
                    f"the receipt of {grant} at {books.did}",
                    (one for one in books.of_action("memory.delegate") if decision(one)["grant_hash"] == grant),
                )
                for books in (granter, maker)
            ]
            same("who passed it on", [one["agent_did"] for one in said], [maker.did] * 2)
            for term in TERMS:
                same(f"{term} of {grant}", decision(said[0]).get(term), decision(said[1]).get(term))
        for one in said:
            same(f"what {grant} was made from", decision(one).get("delegation", []), above)
            same("the id of a grant", decision(one)["consumed_grant_id"], kept["grant"]["grant_id"])
        number += len(said)
    made = sum(bool(one.get("above")) for books in grantees.values() for one in books.received)
    for books in (granter, *grantees.values()):
        at_all = len(list(books.of_action("memory.delegate")))
        mine = sum(one["agent_did"] == books.did for one in books.of_action("memory.delegate"))
        same(f"receipts of delegation at {books.did}", at_all, made if books is granter else mine)
    same("grants of the granter's own", len(list(granter.of_action("memory.grant"))), len(grantees) - made)
    return number


def _answers(granter: Books, grantees: dict[str, Books]) -> int:
    """Each answer that left was received and counted, item by item; each refusal was met."""
    number = 0
    for grant, grantee in grantees.items():
        reading = grantee.grant(grant)["reading"]
        answers = [one for one in granter.of_action("memory.query") if decision(one).get("grant_hash") == grant]
        same(f"answers under {grant}", len(answers), reading["answers"])
        shown = [tag for one in answers for tag in one.get("provenance_tags_out", [])]
        same(f"items under {grant}", len(shown), reading["items"])
        for action, counted in (("allow", grantee.exchanges), ("block", grantee.refusals)):
            tokens = granter.of_action("memory.exchange", action)
            under = [one for one in tokens if decision(one)["grant_hash"] == grant]
            same(f"tokens under {grant} ({action})", len(under), counted[grant])
            same("who asked for them", {one["agent_did"] for one in under} - {grantee.did}, set())
            number += len(under)
        same("whom it was answered", {one["agent_did"] for one in answers} - {grantee.did}, set())
        # Answers that were kept have the very receipt that stands in the granter's log.
        by_id = {one["receipt_id"]: unsigned(one) for one in answers}
        for answer in grantee.answers:
            receipt = answer["receipt"]
            if decision(receipt)["grant_hash"] == grant:
                same("the receipt of an answer that was kept", unsigned(receipt), by_id.get(receipt["receipt_id"]))
        # What an agent was given of it was shown: item and version.
        own = {one["receipt_id"] for one in grantee.log}
        for given in grantee.given:
            same("the receipt of what an agent was given", given["receipt_id"] in own, True)
            for item in given.get("foreign", []):
                if grant in [via["grant"] for via in item["shown_by"]]:
                    tag = f"{item['item_id']}@{item['commitment']}"
                    same(f"{tag} in what {granter.did} showed", tag in shown, True)
            number += 1
        number += len(answers)
    return number


def _ends(granter: Books, grantees: dict[str, Books]) -> int:
    """Each deletion was confirmed by whoever was shown what it erased, each revocation arrived."""
    number = 0
    for told in granter.told:
        deletion = told["receipt"]
        deleted = only(
            "the receipt of a deletion",
            (one for one in granter.of_action("memory.delete") if one["output_hash"] == hash_of(deletion)),
        )
        verify(deletion, documents=[granter.document])
        same("who was told", sorted(deletion["scope"]["subprocessors_propagated_to"]), sorted(told["shown_to"]))
        for grantee in grantees.values():
            line = only("a line of the report", (one for one in told["grantees"] if one["grantee"] == grantee.did))
            confirmed = line["deletion_receipt"]
            verify(confirmed, documents=[grantee.document])
            own = only(
                f"the receipt of {confirmed['receipt_id']} at {grantee.did}",
                (one for one in grantee.of_action("memory.delete") if one["output_hash"] == hash_of(confirmed)),
            )
            same("what it confirms", decision(own)["granter_deletion"], deletion["receipt_id"])
            same("the items of it", confirmed["scope"]["cascade"]["not_found"], line["items"])
            number += 1
        same("the receipt of a deletion is later than what it deleted", deleted["agent_did"], granter.did)
        number += 1
    for books in (granter, *grantees.values()):
        same(f"deletions at {books.did}", len(list(books.of_action("memory.delete"))), len(granter.told))
    revoked = [decision(one)["grant_hash"] for one in granter.of_action("memory.revoke")]
    for grant, grantee in grantees.items():
        kept = grantee.grant(grant)
        above = [hash_of(one) for one in kept.get("above", [])]
        by = [one for one in (*above, grant) if one in revoked]
        same(f"{grant} is revoked", (kept["state"], bool(by)), ("revoked", True))
    same("revocations", all(one in grantees for one in revoked), True)
    return number + len(revoked)


def notices_each(granter: Books, grantees: dict[str, Books]) -> int:
    """That the comparison can fail: with any one receipt left out, on whichever side, it does; how many were tried.

    The receipts are those about the grants, of deletions, and of what agents were given.
    """
    tried = 0
    houses = [granter, *grantees.values()]
    for place, books in enumerate(houses):
        for number, receipt in enumerate(books.log):
            is_about = decision(receipt).get("grant_hash") in grantees or receipt["action_id"] == "memory.delete"
            if not is_about and receipt["receipt_id"] not in [given["receipt_id"] for given in books.given]:
                continue
            without = [deepcopy(one) if at == place else one for at, one in enumerate(houses)]
            del without[place].log[number]
            tried += 1
            try:
                compare(without[0], dict(zip(grantees, without[1:], strict=True)))
            except Mismatch:
                continue
            raise Mismatch(f"nobody misses {receipt['action_id']} {receipt['receipt_id']} of {books.did}")
    return tried
