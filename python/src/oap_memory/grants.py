"""Grants and their delegation (protocol section 5, docs/bytes.md 5)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from . import form
from .canonical import Json, hash_of
from .documents import Key
from .errors import Refused
from .form import (
    CONFIDENCE,
    COUNT,
    DID,
    GRANT_ID,
    HASH,
    KIND,
    LAWFUL_BASIS,
    PROFILE,
    SCOPE,
    SCOPED_DID,
    SENSITIVITY,
    TEXT,
    TIME,
    TRUST_LEVEL,
    Form,
    array,
    hold,
    integer,
    number,
    obj,
    one_of,
    text,
)
from .jws import read_detached
from .report import Reader, Report
from .times import SECOND, instant

MAX_LIST = 256
"""Elements of a list in a filter."""
MAX_DEPTH = 5
"""Grants below the first one."""
MAX_DAYS = 36_500
"""Days that a grant may last, whatever its granter's manifest declares."""

_SHORT = text(".*", "must be a text of at most 256 characters", 256)
_LIST_OF: dict[str, Form] = {
    "subject_entity_ids": _SHORT,
    "kinds": KIND,
    "labels_any": _SHORT,
    "labels_all": _SHORT,
    "exclude_labels": _SHORT,
    "scopes": SCOPE,
    "sensitivities": SENSITIVITY,
}
_FILTER = obj(
    {},
    {
        **{name: array(of, 0, MAX_LIST) for name, of in _LIST_OF.items()},
        "captured_after": TIME,
        "captured_before": TIME,
        "min_confidence": CONFIDENCE,
    },
)
STATUS = obj({"status_list": obj({"idx": COUNT, "uri": TEXT})})
GRANT = obj(
    {
        "grant_id": GRANT_ID,
        "granter": SCOPED_DID,
        "grantee": DID,
        "purpose": text(r".*\S.*", "must be 1 to 1000 characters, not all of them blank", 1000),
        "filter": _FILTER,
        "max_items": integer(1, 2**32 - 1),
        "issued_at": TIME,
        "expires_at": TIME,
        "redaction_profile": PROFILE,
        "signature": TEXT,
    },
    {
        "version": form.exactly(1),
        "not_before": TIME,
        "revocable": form.exactly(True),
        "purpose_codes": array(text("[a-z0-9_.-]+", "must be 1 to 64 of a-z 0-9 _ . -", 64), 0, 16),
        "trust_level": TRUST_LEVEL,
        "lawful_basis": LAWFUL_BASIS,
        "operations": array(one_of("query", "export", "subscribe"), 1, 3, once=True),
        "embedding_access": form.boolean,
        "bearer": form.boolean,
        "delegable": obj({"max_depth": integer(1, MAX_DEPTH)}),
        "parent": HASH,
        "budget": obj({}, {"queries": integer(1), "epsilon": number(5e-324, 1.8e308)}),
        "status": STATUS,
    },
)

_DEFAULTS: dict[str, Any] = {
    "revocable": True,
    "trust_level": 0,
    "lawful_basis": "consent",
    "operations": ["query"],
    "embedding_access": False,
    "bearer": False,
}


def term(grant: dict[str, Any], name: str) -> Any:
    """A member of a grant, or what it is where it is absent.

    >>> term({"issued_at": "2026-05-01T12:00:00.000Z"}, "trust_level")
    0
    """
    if name == "not_before":
        return grant.get(name, grant["issued_at"])
    return grant.get(name, _DEFAULTS.get(name))


def scope_of(grant: dict[str, Any]) -> str:
    """The scope that the grant is given under.

    >>> scope_of({"granter": "did:web:a.example#personal"})
    'personal'
    """
    return str(grant["granter"]).partition("#")[2]


def granter_of(grant: dict[str, Any]) -> str:
    """The DID of the granter.

    >>> granter_of({"granter": "did:web:a.example#personal"})
    'did:web:a.example'
    """
    return str(grant["granter"]).partition("#")[0]


def _at(grant: dict[str, Any], name: str) -> int:
    return instant(term(grant, name)) or 0


def _limits(grant: dict[str, Any], reader: Reader) -> None:
    reader.not_future(grant["issued_at"], "grant.future", "/issued_at")
    begins, ends = _at(grant, "not_before"), _at(grant, "expires_at")
    if ends <= begins or ends <= _at(grant, "issued_at"):
        raise Refused("grant.limit", "/expires_at", "must be after it begins")
    if ends - begins > MAX_DAYS * 86_400 * SECOND:
        raise Refused("grant.limit", "/expires_at", f"must be within {MAX_DAYS} days")
    asked = grant["filter"]
    after, before = (instant(asked.get(name, "")) for name in ("captured_after", "captured_before"))
    if after is not None and before is not None and before <= after:
        raise Refused("grant.limit", "/filter/captured_before", "must be after captured_after")
    if grant.get("budget") == {}:
        raise Refused("grant.limit", "/budget", "must have queries or epsilon")
    if "parent" in grant and "status" in grant:
        raise Refused("grant.document", "/status", "must be absent in a delegated grant")


def _signed(grant: dict[str, Any], signer: str, reader: Reader) -> Key:
    if reader.documents.of(signer) is None:
        raise Refused("grant.no_document", "/signature", "must be by a DID whose document is at hand")
    jws = read_detached(grant["signature"], grant)
    if jws is None:
        raise Refused("grant.document", "/signature", "must be a detached JWS with EdDSA")
    key = reader.key(jws.kid, signer, _at(grant, "issued_at"), "grant.document", "/signature")
    if key.revoked is not None:
        raise Refused("grant.document", "/signature", "must not be by a key that was compromised, whenever")
    if not jws.by(key.raw):
        raise Refused("grant.document", "/signature", "must be a signature of the grant")
    return key


def _within_list(child: Any, parent: Any) -> bool:
    return parent is None or (child is not None and set(child) <= set(parent))


def _within_filter(child: dict[str, Any], parent: dict[str, Any], scope: str) -> str | None:
    """The member of the filter that is not decidably narrower, or `None`."""
    for name in ("subject_entity_ids", "kinds", "labels_any"):
        if not _within_list(child.get(name), parent.get(name)):
            return name
    if not set(child.get("scopes", [scope])) <= set(parent.get("scopes", [scope])):
        return "scopes"
    usual = ["public", "internal", "confidential"]
    if not set(child.get("sensitivities", usual)) <= set(parent.get("sensitivities", usual)):
        return "sensitivities"
    if parent.get("labels_all") == [] != child.get("labels_all"):
        return "labels_all"
    for name in ("labels_all", "exclude_labels"):
        if name in parent and not (name in child and set(parent[name]) <= set(child[name])):
            return name
    if "min_confidence" in parent and child.get("min_confidence", -1) < parent["min_confidence"]:
        return "min_confidence"
    for name, sign in (("captured_after", 1), ("captured_before", -1)):
        mine, theirs = instant(child.get(name, "")), instant(parent.get(name, ""))
        if theirs is not None and (mine is None or sign * mine < sign * theirs):
            return name
    return None


def _within_budget(child: dict[str, Any], parent: dict[str, Any]) -> bool:
    return all(name in child and child[name] <= limit for name, limit in parent.items())


def _wider(child: dict[str, Any], parent: dict[str, Any]) -> str | None:
    """The member that is not decidably narrower than the parent's, or `None`."""
    for name in ("granter", "redaction_profile", "lawful_basis"):
        if term(child, name) != term(parent, name):
            return name
    if child["max_items"] > parent["max_items"]:
        return "max_items"
    if _at(child, "not_before") < _at(parent, "not_before"):
        return "not_before"
    if _at(child, "expires_at") > _at(parent, "expires_at"):
        return "expires_at"
    if term(child, "trust_level") > term(parent, "trust_level"):
        return "trust_level"
    if not set(term(child, "operations")) <= set(term(parent, "operations")):
        return "operations"
    for name in ("embedding_access", "bearer"):
        if term(child, name) and not term(parent, name):
            return name
    codes = parent.get("purpose_codes")
    if codes and not (child.get("purpose_codes") and set(child["purpose_codes"]) <= set(codes)):
        return "purpose_codes"
    if not _within_budget(child.get("budget", {}), parent.get("budget", {})):
        return "budget"
    if "delegable" not in parent:
        return "delegable"
    if child.get("delegable", {"max_depth": 0})["max_depth"] >= parent["delegable"]["max_depth"]:
        return "delegable/max_depth"
    wider = _within_filter(child["filter"], parent["filter"], scope_of(parent))
    return None if wider is None else "filter/" + wider


def within(child: dict[str, Any], parent: dict[str, Any]) -> None:
    """Refuses a child that is not decidably within its parent (protocol 5.2).

    >>> times = {"issued_at": "2026-05-01T12:00:00Z", "expires_at": "2026-06-01T12:00:00Z"}
    >>> parent = {**times, "granter": "did:web:a.example#x", "redaction_profile": "p", "max_items": 5, "filter": {}}
    >>> within({**parent, "max_items": 6}, parent)
    Traceback (most recent call last):
    oap_memory.errors.Refused: grant.wider: /max_items must be within the grant above
    """
    if (member := _wider(child, parent)) is not None:
        raise Refused("grant.wider", "/" + member, "must be within the grant above")


def check_grant(value: Json, reader: Reader, parent: dict[str, Any] | None = None) -> dict[str, Any]:
    """The grant, where it can be one and is signed: by its granter, or by the grantee of its parent.

    >>> from .documents import Documents
    >>> check_grant({}, Reader(Documents(), 0))
    Traceback (most recent call last):
    oap_memory.errors.Refused: grant.document: /grant_id must be there
    """
    grant = hold(GRANT, value, "grant.document")
    if ("parent" in grant) != (parent is not None):
        check = "grant.no_parent" if parent is None else "grant.parent"
        raise Refused(check, "/parent", "must be the hash of the grant above it, which must be at hand")
    if parent is not None and grant["parent"] != hash_of(parent):
        raise Refused("grant.parent", "/parent", "must be the hash of the grant above it")
    _signed(grant, granter_of(grant) if parent is None else parent["grantee"], reader)
    _limits(grant, reader)
    if parent is not None:
        within(grant, parent)
    return grant


def check_delegation(value: Json, ancestors: Sequence[Json], reader: Reader) -> tuple[dict[str, Any], list[str]]:
    """The grant, and the hashes of those that it was made from, the first one first.

    >>> from .documents import Documents
    >>> check_delegation({}, [{}] * 6, Reader(Documents(), 0))
    Traceback (most recent call last):
    oap_memory.errors.Refused: grant.depth: /parent must be at most 5 grants below the first one
    """
    if len(ancestors) > MAX_DEPTH:
        raise Refused("grant.depth", "/parent", f"must be at most {MAX_DEPTH} grants below the first one")
    above: dict[str, Any] | None = None
    hashes = []
    for place, ancestor in enumerate(ancestors):
        try:
            above = check_grant(ancestor, reader, above)
        except Refused as wrong:
            raise wrong.under(f"/ancestors/{place}") from None
        hashes.append(hash_of(above))
    return check_grant(value, reader, above), hashes


def state_by_time(grant: dict[str, Any], now: int) -> str:
    """`draft`, `active` or `expired`, by the clock alone: a revocation is the gateway's to tell.

    >>> state_by_time({"issued_at": "2026-05-01T12:00:00Z", "expires_at": "2026-05-02T12:00:00Z"}, 0)
    'draft'
    """
    if now < _at(grant, "not_before"):
        return "draft"
    return "active" if now < _at(grant, "expires_at") else "expired"


def verify_grant(value: Json, reader: Reader, ancestors: Sequence[Json] = ()) -> Report:
    """Verifies a grant; a delegated one with the grants that it was made from, the first one first.

    >>> from .documents import Documents
    >>> verify_grant({}, Reader(Documents(), 0))
    Traceback (most recent call last):
    oap_memory.errors.Refused: grant.document: /grant_id must be there
    """
    grant, hashes = check_delegation(value, ancestors, reader)
    report = Report("grant")
    report.note("state", "whether the grant, or one above it, was revoked: its gateway and its status list say so")
    report.facts.update(
        grant_id=grant["grant_id"],
        grant_hash=hash_of(grant),
        granter=grant["granter"],
        grantee=grant["grantee"],
        expires_at=grant["expires_at"],
        state_by_time=state_by_time(grant, reader.now),
        delegation=hashes,
    )
    return report


def _admits(asked: dict[str, Any], claims: dict[str, Any], scope: str, *, own: bool) -> str | None:
    """The condition of a filter that a visible item does not meet, or `None`. What is hidden decides nothing."""
    if any(asked.get(name) == [] for name in _LIST_OF if name != "exclude_labels"):
        return "an empty list"
    for name, of in (("subject_entity_ids", "subject_entity_id"), ("kinds", "kind")):
        if name in asked and of in claims and claims[of] not in asked[name]:
            return name
    if "scope_id" in claims and claims["scope_id"] not in asked.get("scopes", [scope]):
        return "scopes"
    if "labels" in claims:
        labels = set(claims["labels"])
        if "labels_any" in asked and not labels & set(asked["labels_any"]):
            return "labels_any"
        if not labels >= set(asked.get("labels_all", [])):
            return "labels_all"
        if labels & set(asked.get("exclude_labels", [])):
            return "exclude_labels"
    provenance = claims.get("provenance", {})
    captured = instant(provenance.get("captured_at", ""))
    after, before = (instant(asked.get(name, "")) for name in ("captured_after", "captured_before"))
    if captured is not None and after is not None and captured < after:
        return "captured_after"
    if captured is not None and before is not None and captured >= before:
        return "captured_before"
    if provenance.get("confidence", 1) < asked.get("min_confidence", 0):
        return "min_confidence"
    sensitivity = claims.get("sensitivity")
    allowed = asked.get("sensitivities", ["public", "internal", "confidential"])
    if sensitivity is not None and sensitivity not in allowed:
        return "sensitivities"
    if claims.get("exportable") is False and not own:
        return "exportable"
    return None


def admits_all(grant: dict[str, Any], items: Iterable[tuple[str, dict[str, Any]]]) -> None:
    """Refuses an item that the filter of the grant does not admit; items come with their places.

    >>> grant = {"granter": "did:web:a.example#x", "grantee": "did:web:b.example", "filter": {"kinds": ["fact"]}}
    >>> admits_all(grant, [("/items/0", {"kind": "summary"})])
    Traceback (most recent call last):
    oap_memory.errors.Refused: grant.filter: /items/0 must be admitted by the filter of the grant (kinds)
    """
    own = grant["grantee"] == granter_of(grant)
    for place, claims in items:
        if (condition := _admits(grant["filter"], claims, scope_of(grant), own=own)) is not None:
            raise Refused("grant.filter", place, f"must be admitted by the filter of the grant ({condition})")
