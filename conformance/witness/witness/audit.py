"""The log for its three audiences, countersignatures, and whose a receipt is (docs/protocol.md section 8)."""

from typing import Any
from urllib.parse import parse_qsl, urlencode

from .grants import Grant
from .house import MAX_AUDITS, House, refuse
from .items import need
from .keys import Invalid, verify
from .ledger import receipt_bytes
from .moments import is_id, read_time

_LOOKED_AT = 2000
_FILTERS = {"since", "grantee", "grant_id", "item_id", "limit", "principal_did", "chain", "from"}


def _asked(query: str) -> dict[str, str]:
    pairs = parse_qsl(query, keep_blank_values=True)
    asked = dict(pairs)
    need(not set(asked) - _FILTERS, "query", "no unknown member")
    need(len(asked) == len(pairs), "query", "each member once")
    limit = asked.get("limit", "100")
    need(limit.isascii() and limit.isdecimal() and 1 <= int(limit[:5]) <= 1000, "limit", "1 to 1000")
    for name in ("grantee", "principal_did", "chain"):
        need(len(asked.get(name, "").encode()) <= 512, name, "at most 512 bytes")
    for name, prefix in (("grant_id", "mgr_"), ("item_id", "mem_")):
        need(name not in asked or is_id(prefix, asked[name]), name, f"{prefix} and a ULID")
    need(asked.get("from", "0").isascii() and asked.get("from", "0").isdecimal(), "from", "a number")
    if "since" in asked:
        read_time(asked["since"])
    return asked


def _fits(receipt: dict[str, Any], asked: dict[str, str]) -> bool:
    decision = receipt["policy_decisions"][0]
    tags = receipt.get("provenance_tags_out", ())
    return (
        ("since" not in asked or read_time(receipt["timestamp"]) >= read_time(asked["since"]))
        and ("grantee" not in asked or receipt["agent_did"] == asked["grantee"])
        and ("grant_id" not in asked or decision.get("consumed_grant_id") == asked["grant_id"])
        and ("item_id" not in asked or any(tag.startswith(asked["item_id"] + "@") for tag in tags))
    )


def of_grantee(house: House, grant: Grant, query: str) -> dict[str, Any]:
    """The receipts that name the grantee, newest first, among the newest 2000."""
    asked = _asked(query)
    if grant.state(house.clock.now()) != "active":
        refuse("policy_block", "the grant is not in force")
    if {"chain", "from", "principal_did"} & set(asked):
        refuse("policy_block", "the owner's alone")
    if not house.windows.take("audit", grant.line[0].hash, MAX_AUDITS, house.clock.now()):
        after = house.windows.room("audit", grant.line[0].hash, MAX_AUDITS, house.clock.now())
        refuse("rate_limited", "too many questions of the log", after)
    newest = house.ledger.newest[: -_LOOKED_AT - 1 : -1]
    own = [one for one in newest if one["agent_did"] == grant.grantee and _fits(one, asked)]
    if grant.bearer:
        # Whoever has the token can use it: it tells of its own grant alone.
        own = [one for one in own if one["policy_decisions"][0].get("grant_hash") == grant.hash]
    return {"receipts": own[: int(asked.get("limit", 100))]}


def of_owner(house: House, asked: Any) -> dict[str, Any]:
    """Everything, newest first; or the chain of a scope in its order, heads included."""
    need(isinstance(asked, dict) and all(isinstance(one, (str, int)) for one in asked.values()), "asked", "parameters")
    said = _asked(urlencode(asked))
    if "chain" in said:
        need("from" in said, "from", "with chain")
        entries = house.ledger.chains.get(house.shelf.chain_of(said["chain"]), [])
        return {"receipts": entries[int(said["from"]) :][: int(said.get("limit", 100))]}
    found = [one for one in reversed(house.ledger.newest) if _fits(one, said)]
    return {"receipts": found[: int(said.get("limit", 100))]}


def of_anybody(house: House, query: str) -> dict[str, Any]:
    """The last 100 receipts of anonymous calls, oldest first."""
    asked = _asked(query)
    if {"chain", "from"} & set(asked):
        refuse("auth_required", "the owner's alone")
    tail = [one for one in house.ledger.anonymous if _fits(one, asked)]
    if "principal_did" in asked:
        name = house.keyed(asked["principal_did"])
        tail = [one for one in tail if one["policy_decisions"][0].get("asserted_principal") == name]
    return {"receipts": tail[-int(asked.get("limit", 100)) :]}


def ack(house: House, body: Any) -> dict[str, Any]:
    """`POST /oap/memory/ack`: the agent countersigns. The signature says who it is."""
    need(isinstance(body, dict) and set(body) == {"receipt_id", "signature"}, "body", "receipt_id and signature")
    signature = body["signature"]
    need(isinstance(signature, dict) and set(signature) == {"by", "alg", "value"}, "signature", "by, alg, value")
    need(is_id("urn:oap:receipt:", body["receipt_id"]), "receipt_id", "the id of a receipt")
    need(all(isinstance(one, str) for one in signature.values()), "signature", "texts")
    receipt = house.ledger.find(body["receipt_id"])
    agent = signature["by"].partition("#")[0]
    if receipt is None or receipt["agent_did"] != agent or agent == house.did:
        refuse("not_found", "no such receipt")
    try:
        x = house.documents.key(signature["by"], read_time(receipt["timestamp"]), voids=True)
    except Invalid:
        x = ""
    if signature["alg"] != "EdDSA" or not verify(x, receipt_bytes(receipt), signature["value"]):
        # The same answer as for no receipt: who cannot sign for it does not learn that it is there.
        refuse("not_found", "no such receipt")
    receipt["signatures"] = [receipt["signatures"][0], signature]
    return {"receipt": receipt}


def ours(house: House, receipt: Any) -> dict[str, Any]:
    """`POST /oap/receipt/verify`."""
    need(isinstance(receipt, dict) and {"receipt_id", "signatures"} <= set(receipt), "body", "a receipt")
    if not house.ledger.is_ours(receipt):
        refuse("not_found", "no such receipt")
    return {"receipt_id": receipt["receipt_id"], "valid": True}
