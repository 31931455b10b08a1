"""What a grantee's verifier checks of an item (docs/protocol.md section 4.2, docs/bytes.md section 4)."""

from typing import Any

from .canon import jcs, sha256
from .commit import read_commitment
from .keys import Documents, Invalid, check_detached
from .ledger import check_receipt, short
from .moments import read_time

_COMMITTING = {"capture", "correct", "relabel", "reseal", "merge"}
_LEADS = {"retract": "retracted", "restore": "current", "expire": "erased", "erase": "erased"}
_OUTSIDE = {"relevance", "epistemic", "embedding_ref", "integrity"}


def need(holds: bool, why: str) -> None:
    if not holds:
        raise Invalid(why)


def check_links(chain: Any, item_id: str, documents: Documents) -> None:
    """Number, `prev`, time, event, commitment and signature of every link."""
    need(isinstance(chain, list) and chain != [], "a chain begins with a capture")
    seen: set[str] = set()
    tip, last = "genesis", 0
    for seq, link in enumerate(chain):
        at = read_time(link["at"])
        need(link["item_id"] == item_id and link["seq"] == seq and link["prev"] == tip, "links stand in order")
        need(at >= last and (link["event"] in ("capture", "import", "merge")) == (seq == 0), "times and events")
        if link["event"] in _COMMITTING or seq == 0:
            need(link["commitment"] not in seen, "a new commitment")
        else:
            need(link["commitment"] == chain[seq - 1]["commitment"], "the commitment before")
        check_detached(link, documents, link["actor"], at)
        seen.add(link["commitment"])
        tip, last = sha256(jcs(link)), at


def check_item(item: Any, documents: Documents) -> None:
    """Refuses an item that is not a part of what its owner captured."""
    try:
        proof = item["integrity"]
        chain = proof["chain"]
        check_links(chain, item["item_id"], documents)
        clear, shown, commitment = read_commitment(proof["sd_jwt"], documents)
        link = next(one for one in reversed(chain) if one["event"] in _COMMITTING or one["seq"] == 0)
        need(commitment == link["commitment"], "the SD-JWT is of the version in force")
        for name in ("item_id", "seq", "event", "prev"):
            need(clear[name] == link[name], "the SD-JWT is of the link")
        first, receipt = chain[0], proof["capture_receipt"]
        check_receipt(receipt, documents)
        need(receipt["type"] == "invocation" and receipt["action_id"] == f"memory.{first['event']}", "a capture")
        need(receipt["receipt_id"] == first["receipt"] and short(first["receipt"]) == clear["receipt"], "its receipt")
        need(receipt["output_hash"] == first["commitment"], "its commitment")
        need(receipt["provenance_tags_out"] == [f"{item['item_id']}@{first['commitment']}"], "its tag")
        status = next((_LEADS[one["event"]] for one in reversed(chain) if one["event"] in _LEADS), "current")
        derived = {"item_id": clear["item_id"], "owner_did": clear["iss"], "version": link["seq"] + 1, "status": status}
        stated = {name: value for name, value in item.items() if name not in _OUTSIDE}
        need(jcs(stated) == jcs({**shown, **derived}), "the visible item is what is disclosed")
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise Invalid("the item does not hold") from error
