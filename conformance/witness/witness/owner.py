"""The owner's side for a suite of probes (docs/probes.md, "The owner's side"), and erasure (docs/protocol.md section 8)."""

from typing import Any

from . import own_form
from .audit import of_owner
from .canon import Malformed, jcs, sha256
from .grants import Grant, check_form
from .house import House, Refused, refuse
from .items import DAY, DEFAULT_SCOPE, Item, need
from .keys import Documents, Invalid, Signer, is_scope, key_of_did
from .ledger import ANONYMOUS
from .moments import is_id, read_time, ulid, write_time
from .own import Own
from .profiles import HASHES, OWN, allows
from .published import did_document, handover
from .view import view

_DRAFT = {
    "grantee", "purpose", "filter", "max_items", "expires_at", "redaction_profile", "trust_level", "not_before",
    "operations", "purpose_codes", "lawful_basis", "embedding_access", "bearer", "delegable", "budget", "scope",
}  # fmt: skip


def issue(house: House, draft: Any) -> dict[str, Any]:
    """Signs a grant. Nothing goes beyond what the manifest declares (section 5)."""
    need(isinstance(draft, dict) and not set(draft) - _DRAFT, "draft", "no unknown member")
    if house.locked_down:
        refuse("conflict", "a lockdown lasts")
    now = house.clock.now()
    place = house.fresh_place()
    scope = draft.get("scope", DEFAULT_SCOPE)
    need(is_scope(scope), "scope", "a scope")
    document: dict[str, Any] = {
        "version": 1,
        "grant_id": "mgr_" + ulid(now),
        "granter": f"{house.did}#{scope}",
        "issued_at": write_time(now),
        "revocable": True,
        "trust_level": 0,
        "lawful_basis": "consent",
        "operations": ["query"],
        "embedding_access": False,
        "bearer": False,
        "status": {"status_list": {"idx": place, "uri": f"{house.origin}/oap/memory/status"}},
        "filter": {},
        **{name: value for name, value in draft.items() if name != "scope"},
    }
    for holder in (document, document.get("filter")):
        for name in ("expires_at", "not_before", "captured_after", "captured_before"):
            if isinstance(holder, dict) and name in holder:
                holder[name] = write_time(read_time(holder[name]))
    document["signature"] = house.signer.detached(document)
    check_form(document)
    grant = Grant(document, place=place)
    need(document["max_items"] <= house.max_items, "max_items", "at most what the manifest declares")
    need(grant.expires_at > max(now, grant.not_before), "expires_at", "after it begins")
    need(grant.expires_at <= grant.not_before + house.max_days * DAY, "expires_at", "within what the manifest declares")
    need(allows(grant.profile, grant.trust_level), "redaction_profile", "one that is named and allows the level")
    scopes = grant.filter.get("scopes", [grant.scope])
    others = [one for one in scopes if one != grant.scope]
    need(all(house.gates.leads(one, grant.scope, now) for one in others), "filter.scopes", "scopes with a bridge")
    if grant.grantee != house.did:
        key_of_did(grant.grantee)
    house.keep(grant)
    house.ledger.write(
        house.shelf.chain_of(grant.scope), "memory.grant", {**grant.decision(), "rules": ["principal"]},
        output_hash=grant.hash,
    )  # fmt: skip
    return {"grant": document}


def revoke(house: House, grant_id: str) -> dict[str, Any]:
    """Takes effect before the next answer leaves; what was made from it is revoked with it."""
    grants = house.named(grant_id)
    need(grants != [], "grant_id", "a grant that is known here")
    for grant in grants:
        grant.revoked = True
        decision = {**grant.decision(), "rules": ["principal"]}
        house.ledger.write(house.shelf.chain_of(grant.scope), "memory.revoke", decision)
    return {}


def rotate(house: House) -> dict[str, Any]:
    """A new key takes the place of the one in use, which stays to verify what it signed (section 2)."""
    need(house.did.startswith("did:web:"), "did", "a did:web, for a did:key is its one key")
    # Later than anything that it signed.
    former, now = house.signer, house.clock.now()
    house.retired.append((former, now + 1))
    house.use(Signer.new(house.did, number=len(house.retired) + 1))
    house.handovers.append(handover(former, house.signer, now))
    house.documents = Documents(did_document(house))
    house.ledger.write(ANONYMOUS, "keys.rotate", {"rules": ["principal"]})
    return {}


def bridge(house: House, draft: Any) -> dict[str, Any]:
    """Signs a Cross Scope Bridge (section 7)."""
    members = {"from_scope", "to_scope", "data_categories", "valid_until"}
    need(isinstance(draft, dict) and set(draft) == members, "draft", "the members of a bridge")
    now = house.clock.now()
    document: dict[str, Any] = {
        "bridge_id": "brg_" + ulid(now),
        "principal": house.did,
        "issued_at": write_time(now),
        "revocable": True,
        **draft,
    }
    house.gates.check(document, now)
    document["signature"] = house.signer.detached(document)
    house.gates.bridges[document["bridge_id"]] = document
    house.ledger.write(house.shelf.chain_of(draft["from_scope"]), "scope.bridge", {"rules": ["principal"]})
    return {"bridge": document}


def _derived(house: House, named: list[str]) -> list[str]:
    """What was made from them, and from that, follows."""
    gone, found = set(named), []
    changed = True
    while changed:
        changed = False
        for item in house.shelf.items.values():
            if item.status in ("current", "retracted") and item.item_id not in gone and gone & set(item.claims.get("derived_from", ())):
                gone.add(item.item_id)
                found.append(item.item_id)
                changed = True
    return sorted(found)


def selected(house: House, selection: Any) -> list[str]:
    """The items that there are and that a selection selects; nothing selected is refused."""
    known = {"items", "labels", "subjects", "scopes", "provenance_tags", "captured_after", "captured_before"}
    need(isinstance(selection, dict) and bool(selection) and not set(selection) - known, "selection", "selectors")
    after, before = (read_time(selection[n]) if n in selection else None for n in ("captured_after", "captured_before"))

    def is_selected(item: Item) -> bool:
        if item.status not in ("current", "retracted"):
            return False
        claims, provenance = item.claims, item.claims["provenance"]
        tags = {f"{name}={value}" for name, value in provenance.items() if isinstance(value, str)}
        held: dict[str, set[Any]] = {
            "items": {item.item_id},
            "labels": set(claims.get("labels", ())),
            "subjects": {claims.get("subject_entity_id")},
            "scopes": {claims["scope_id"]},
            "provenance_tags": tags,
        }
        return (
            all(held[name] & set(selection[name]) for name in held if name in selection)
            and (after is None or item.captured_at >= after)
            and (before is None or item.captured_at < before)
        )

    return [item.item_id for item in house.shelf.items.values() if is_selected(item)]


def delete(house: House, item_ids: Any) -> dict[str, Any]:
    """Erases items and what was derived from them, and says so in a signed Deletion Receipt."""
    need(isinstance(item_ids, list) and item_ids != [], "item_ids", "a list of one at least")
    need(all(is_id("mem_", one) for one in item_ids), "item_ids", "ids of items")
    received = write_time(house.clock.now())
    known = [one for one in dict.fromkeys(item_ids) if one in house.shelf.items]
    need(known != [], "item_ids", "items of this memory")
    named = sorted(one for one in known if house.shelf.items[one].status in ("current", "retracted"))
    derived = _derived(house, named)
    gone = [house.shelf.items[one] for one in [*named, *derived]]
    before = {one.hash: {item.item_id for item in view(house, one)} for one in house.grants.values()}
    tags = sorted(item.tag for item in gone)
    for item in gone:
        house.shelf.end(item, "erase")
    ids = {item.item_id for item in gone}
    shrunk = sorted({house.grants[name].grant_id for name, held in before.items() if held & ids})
    receipt: dict[str, Any] = {
        "receipt_id": "urn:oap:deletion:" + ulid(house.clock.now()),
        "tool_did": house.did,
        "principal_did": house.did,
        "request_received_at": received,
        "completed_at": write_time(house.clock.now()),
        "method": "cryptographic_erasure",
        "scope": {
            "items": tags,
            "data_classes": ["memory_item"],
            "provenance_tags": [],
            "subprocessors_propagated_to": [],
            "cascade": {
                "named": named,
                "derived": derived,
                "held": [],
                "not_found": sorted(set(item_ids) - set(named)),
                "grants_shrunk": shrunk,
                "remaining": 0,
            },
        },
    }
    receipt["signature"] = house.signer.envelope(receipt)
    house.ledger.write(
        house.shelf.chain_of(DEFAULT_SCOPE),
        "memory.delete",
        {"deletion_receipt": receipt["receipt_id"], "rules": ["principal"]},
        output_hash=sha256(jcs(receipt)),
    )
    return {"deletion_receipt": receipt}


def take_profile(document: Any) -> dict[str, Any]:
    """A profile of the owner's own, which grants can name from now on."""
    own_form.check(document)
    need(document["name"] not in HASHES, "profile.name", "none of the protocol's")
    OWN[document["name"]] = Own(document)
    return {}


def screen(house: House, name: Any, named: Any) -> dict[str, Any]:
    """A sanctions list is at hand, or is not any more."""
    need(name in ("ofac", "eu", "un", "uk_ofsi"), "list", "one of the lists")
    if named is None:
        house.gates.lists.pop(name, None)
    else:
        need(isinstance(named, list) and all(isinstance(one, str) for one in named), "named", "DIDs")
        house.gates.lists[name] = named
    return {}


def lock_down(house: House) -> dict[str, Any]:
    """Ends every grant, and nobody is answered until it is lifted (section 10)."""
    for grant in house.grants.values():
        grant.revoked = True
    house.locked_down = True
    house.ledger.write(house.shelf.chain_of(DEFAULT_SCOPE), "memory.lockdown", {"rules": ["principal"]})
    return {}


def command(house: House, said: Any) -> dict[str, Any]:
    """One command of the fixture protocol. `{"error": "why"}` where it is refused, `{"lacks": "what"}` where there is none."""
    try:
        need(isinstance(said, dict), "command", "an object")
        with house.lock, house.clock.instant():
            house.shelf.sweep()
            match said.get("do"):
                case "capture":
                    need(isinstance(said.get("items"), list), "items", "a list")
                    return {"item_ids": house.shelf.capture(said["items"])}
                case "grant":
                    return issue(house, said.get("draft"))
                case "revoke":
                    return revoke(house, str(said.get("grant_id")))
                case "correct":
                    house.shelf.correct(str(said.get("item_id")), said.get("item", {}))
                    return {}
                case "wait":
                    need(house.clock.stands, "do", "of a clock that stands")
                    return {"now": write_time(house.clock.advance(int(said.get("millis", 0))))}
                case "relabel":
                    house.shelf.relabel(str(said.get("item_id")), said.get("labels"))
                    return {}
                case "confirm" | "retract" | "restore" as event:
                    house.shelf.mark(str(said.get("item_id")), event)
                    return {}
                case "context":
                    house.gates.set(said.get("context"))
                    return {}
                case "bridge":
                    return bridge(house, said.get("draft"))
                case "unbridge":
                    need(said.get("bridge_id") in house.gates.bridges, "bridge_id", "a bridge of this memory")
                    del house.gates.bridges[said["bridge_id"]]
                    return {}
                case "consent":
                    house.gates.consented.add(str(said.get("grant_id")))
                    return {}
                case "rotate":
                    return rotate(house)
                case "profile":
                    return take_profile(said.get("profile"))
                case "sanctions":
                    return screen(house, said.get("list"), said.get("named"))
                case "audit":
                    return of_owner(house, said.get("asked"))
                case "lockdown":
                    return lock_down(house)
                case "unlock":
                    house.locked_down = False
                    return {}
                case "delete":
                    return delete(house, said.get("item_ids"))
                case "delete_selected":
                    return delete(house, selected(house, said.get("selection")))
        return {"lacks": str(said.get("do"))}
    except (Malformed, Invalid, Refused) as error:
        return {"error": str(error)}
