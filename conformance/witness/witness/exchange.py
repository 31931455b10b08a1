"""From grant to token, children taken in, and the state of a grant (docs/protocol.md sections 5.1 and 5.2)."""

from typing import Any

from .canon import Malformed
from .grants import MAX_BELOW, MAX_DEPTH, Grant, check_form, check_line
from .house import MAX_EXCHANGES, House, refuse
from .items import need
from .keys import Invalid
from .moments import SKEW, read_time
from .tokens import check_proof, make_token, proof_name


def _known(house: House, document: Any) -> Grant:
    """A first grant that was issued here, to the byte."""
    check_form(document)
    grant = house.grants.get(Grant(document).hash)
    if grant is None or grant.parents:
        refuse("invalid_input", "grant: one that is known here")
    return grant


def _child(house: House, document: dict[str, Any], above: Any) -> Grant:
    """A delegated grant, judged against each that it was made from. It is not stored yet."""
    need(isinstance(above, list) and 0 < len(above) <= MAX_DEPTH, "chain", "the grants above, 1 to 5")
    first = _known(house, above[0])
    below = [*above[1:], document]
    for one in below:
        check_form(one)
    line = check_line([first, *(house.grants.get(Grant(one).hash, Grant(one)) for one in below)], house.documents)
    for place, grant in enumerate(line[1:], 1):
        parent = line[place - 1]
        same = [one for one in house.named(grant.grant_id) if one.parents and one.parents[-1].hash == parent.hash]
        need(grant.hash in house.grants or not same, "grant_id", "one that this parent's children do not have yet")
    return house.grants.get(line[-1].hash, line[-1])


def _take_in(house: House, grant: Grant) -> list[Grant]:
    """Stores a child and those between it and the first grant, with a place in the status list each."""
    new = [one for one in grant.line if one.hash not in house.grants]
    root = grant.line[0]
    below = sum(1 for one in house.grants.values() if one.parents and one.parents[0] is root)
    need(below + len(new) <= MAX_BELOW, "grant", "one of at most 100 that are made from one")
    for one in new:
        one.parents = [house.grants.get(p.hash, p) for p in one.parents]
        one.place = house.fresh_place()
        house.keep(one)
        house.ledger.write(
            house.shelf.chain_of(one.scope),
            "memory.delegate",
            {**one.decision(), "rules": ["grant.delegation"]},
            agent_did=one.parents[-1].grantee,
        )
    return new


def exchange(house: House, body: Any, address: str) -> dict[str, Any]:
    """`POST /oap/memory/grant`."""
    need(isinstance(body, dict) and not set(body) - {"grant", "chain", "proof"}, "body", "grant, chain, proof")
    need("grant" in body and isinstance(body.get("proof"), str), "body", "grant and proof")
    document, above = body["grant"], body.get("chain", [])
    check_form(document)
    now = house.clock.now()
    need(read_time(document["issued_at"]) <= now + SKEW * 1000, "issued_at", "not in the future")
    if "parent" in document:
        grant = _child(house, document, above)
    else:
        need(above == [], "chain", "absent: the grant is a first one")
        grant = _known(house, document)
    try:
        x = check_proof(body["proof"], house.documents, grant.grantee, address, grant.hash, now // 1000)
        if not house.windows.take("exchange", grant.line[0].hash, MAX_EXCHANGES, now):
            after = house.windows.room("exchange", grant.line[0].hash, MAX_EXCHANGES, now)
            refuse("rate_limited", "too many exchanges of this grant", after)
        house.used.take(grant.grantee, proof_name(body["proof"]), now // 1000)
    except Malformed as error:
        raise Invalid("the proof does not hold") from error
    state = grant.state(now)
    if state != "active":
        house.block(grant, "memory.exchange", "grant.active", "policy_block", "the grant is not in force")
    if grant.hash not in house.grants:
        _take_in(house, grant)
        grant = house.grants[grant.hash]
    token, life = make_token(house.signer, grant, house.origin, x, now // 1000)
    receipt = house.ledger.write(
        house.shelf.chain_of(grant.scope),
        "memory.exchange",
        {**grant.decision(), "rules": ["grant.active", "grant.proof"]},
        agent_did=grant.grantee,
    )
    answer: dict[str, Any] = {
        "memory_grant_jwt": token,
        "expires_in": life,
        "token_type": "Bearer" if grant.bearer else "DPoP",
        "receipt_id": receipt["receipt_id"],
    }
    if grant.parents:
        uri = f"{house.origin}/oap/memory/status"
        answer["status"] = {"status_list": {"idx": grant.place, "uri": uri}}
    return answer


def state(house: House, grant_id: str, authorization: list[str], address: str) -> dict[str, Any]:
    """`GET /oap/memory/grant/{grant_id}`: for the grantee alone, anybody else gets 404."""
    now = house.clock.now()
    for grant in house.named(grant_id):
        try:
            if len(authorization) != 1:
                break
            scheme, _, proof = authorization[0].partition(" ")
            if scheme.lower() != "oap-proof":
                break
            check_proof(proof.strip(), house.documents, grant.grantee, address, grant.hash, now // 1000)
            house.used.take(grant.grantee, proof_name(proof.strip()), now // 1000)
        except (Invalid, Malformed):
            continue
        return {"grant_id": grant_id, "state": grant.state(now)}
    refuse("not_found", "no such grant")
