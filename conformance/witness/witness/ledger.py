"""Receipts in chains, each followed by its head (docs/protocol.md section 8, docs/bytes.md section 6)."""

from collections import defaultdict, deque
from typing import Any

from .canon import jcs, sha256
from .keys import Documents, Invalid, Signer, verify
from .moments import Clock, read_time, ulid, write_time

ANONYMOUS = "@anonymous"
_CONSENT = {"memory.grant", "memory.revoke", "memory.delegate"}
_DELETION = {"memory.delete", "memory.expire", "memory.erase"}
_PREFIX = "urn:oap:receipt:"


def receipt_bytes(receipt: dict[str, Any]) -> bytes:
    """What is hashed and signed: the canonical form without `signatures` and `anchors`."""
    return jcs(receipt, "signatures", "anchors")


def short(receipt_id: str) -> str:
    """`rec_` and the same ULID."""
    return "rec_" + receipt_id.removeprefix(_PREFIX)


class Ledger:
    """One chain a scope and one for anonymous calls."""

    def __init__(self, signer: Signer, clock: Clock) -> None:
        self._signer, self._clock = signer, clock
        self._tips: dict[str, tuple[str, int]] = {}
        self._by_id: dict[str, dict[str, Any]] = {}
        self.chains: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)  # with their heads
        self.newest: list[dict[str, Any]] = []
        self.anonymous: deque[dict[str, Any]] = deque(maxlen=100)

    def sign_with(self, signer: Signer) -> None:
        self._signer = signer

    def fresh_id(self) -> str:
        return _PREFIX + ulid(self._clock.now())

    def _append(self, chain: str, action: str, decision: dict[str, Any], **said: Any) -> dict[str, Any]:
        now = self._clock.now()
        receipt_id = said.pop("receipt_id", None) or self.fresh_id()
        tip, length = self._tips.get(chain, ("genesis", 0))
        kind = "consent" if action in _CONSENT else "deletion" if action in _DELETION else "invocation"
        receipt = {
            "receipt_id": receipt_id,
            "type": kind,
            "timestamp": write_time(now),
            "principal_did": self._signer.did,
            "tool_did": self._signer.did,
            "agent_did": self._signer.did,
            "action_id": action,
            "policy_decisions": [{"id": "pol_" + ulid(now), "outcome": "allow", "rules": [], **decision}],
            "previous_receipt_hash": tip,
            **{name: value for name, value in said.items() if value is not None},
        }
        signed = receipt_bytes(receipt)
        value = self._signer.raw(signed)
        receipt["signatures"] = [{"by": self._signer.kid, "alg": "EdDSA", "value": value}]
        self._tips[chain] = (sha256(signed), length + 1)
        self._by_id[receipt["receipt_id"]] = receipt
        self.chains[chain].append(receipt)
        return receipt

    def _head(self, chain: str) -> None:
        length = self._tips[chain][1]
        self._append(chain, "memory.chain_head", {"chain": chain, "length": length, "rules": ["chain.head"]})

    def write(self, chain: str, action: str, decision: dict[str, Any], **said: Any) -> dict[str, Any]:
        """A receipt and the head after it. A chain begins with its boot entry and a head."""
        if chain not in self._tips:
            self._append(chain, "memory.boot", {})
            self._head(chain)
        receipt = self._append(chain, action, decision, **said)
        self._head(chain)
        self.newest.append(receipt)
        if chain == ANONYMOUS:
            self.anonymous.append(receipt)
        return receipt

    def find(self, receipt_id: object) -> dict[str, Any] | None:
        return self._by_id.get(receipt_id) if isinstance(receipt_id, str) else None

    def is_ours(self, receipt: Any) -> bool:
        """Whether a receipt is one of this gateway's, to the byte, countersigned or as it was written."""
        ours = self.find(receipt.get("receipt_id")) if isinstance(receipt, dict) else None
        if ours is None:
            return False
        return jcs(receipt) in (jcs(ours), jcs({**ours, "signatures": ours["signatures"][:1]}))


# -- reading ---------------------------------------------------------------------------------------------------------

_MEMBERS = {
    "receipt_id", "type", "timestamp", "principal_did", "tool_did", "agent_did", "action_id", "policy_decisions",
    "previous_receipt_hash", "signatures", "anchors", "input_hash", "output_hash", "provenance_tags_out",
}  # fmt: skip


def check_receipt(receipt: Any, documents: Documents, least: int = 1) -> None:
    """Refuses a receipt that its principal did not sign as it stands, or that has fewer signatures."""
    if not isinstance(receipt, dict) or set(receipt) - _MEMBERS:
        raise Invalid("a receipt has no such member")
    try:
        at, signatures = read_time(receipt["timestamp"]), receipt["signatures"]
        if not isinstance(signatures, list) or not least <= len(signatures) <= 2:
            raise Invalid("a receipt is signed")
        for place, signature in enumerate(signatures):
            did = receipt["agent_did"] if place else receipt["principal_did"]
            if set(signature) != {"by", "alg", "value"} or signature["alg"] != "EdDSA":
                raise Invalid("a signature of another form")
            if signature["by"].partition("#")[0] != did:
                raise Invalid("the principal signs, the agent may countersign")
            if not verify(documents.key(signature["by"], at), receipt_bytes(receipt), signature["value"]):
                raise Invalid("a signature does not verify")
    except (KeyError, TypeError, ValueError) as error:
        raise Invalid("the receipt does not hold") from error


def check_chain(entries: Any, documents: Documents) -> None:
    """Refuses a chain that is not whole: from its boot entry and `genesis` to a signed head (section 8)."""
    if not isinstance(entries, list) or not entries:
        raise Invalid("a chain has its boot entry")
    tip = "genesis"
    for place, entry in enumerate(entries):
        # What comes after a head is signed and names its hash: only the last one has to be signed itself.
        check_receipt(entry, documents, 0 if place % 2 and place + 1 < len(entries) else 1)
        if entry["previous_receipt_hash"] != tip:
            raise Invalid("entries follow each other")
        tip = sha256(receipt_bytes(entry))
        decision = entry["policy_decisions"][0]
        if (entry["action_id"] == "memory.chain_head") != bool(place % 2):
            raise Invalid("every entry is followed by its head")
        if place % 2 and (decision.get("length") != place or not decision.get("chain")):
            raise Invalid("a head states its chain and length")
    if entries[0]["action_id"] != "memory.boot" or len(entries) % 2:
        raise Invalid("from the boot entry to a head")
