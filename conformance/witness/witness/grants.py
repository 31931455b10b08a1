"""Grants: their form, their filter, and what a child may be (docs/protocol.md sections 5 and 5.2)."""

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from .canon import Malformed, jcs, sha256
from .items import KINDS, SENSITIVITIES, Item, is_number, need
from .keys import Documents, Invalid, check_detached, is_did, is_scope
from .moments import SKEW, is_id, read_time

BASES = ("consent", "contract", "legal_obligation", "vital_interests", "public_task", "legitimate_interests")
OPERATIONS = ("query", "export", "subscribe")
MAX_LIST = 256
MAX_DEPTH = 5
MAX_BELOW = 100
_REQUIRED = {
    "grant_id", "granter", "grantee", "purpose", "filter", "max_items", "expires_at", "redaction_profile", "issued_at",
    "signature",
}  # fmt: skip
_OPTIONAL = {
    "version", "not_before", "revocable", "purpose_codes", "trust_level", "lawful_basis", "operations",
    "embedding_access", "bearer", "delegable", "parent", "budget", "status",
}  # fmt: skip
_LISTS = ("subject_entity_ids", "kinds", "labels_any", "labels_all", "exclude_labels", "scopes", "sensitivities")
_TIMES = ("captured_after", "captured_before")
_PROFILE = re.compile(r"oap\.profile\.projection\..+\.v[0-9]+", re.DOTALL)
_HASH = re.compile(r"sha256:[0-9a-f]{64}")
_CODE = re.compile(r"[a-z0-9_.-]{1,64}")


def check_filter(given: Any) -> None:
    """An unknown member makes the grant invalid; lists have at most 256 elements of at most 256 characters."""
    need(isinstance(given, dict), "filter", "an object")
    need(not set(given) - {*_LISTS, *_TIMES, "min_confidence"}, "filter", "no unknown member")
    for name in _LISTS:
        values = given.get(name, [])
        need(isinstance(values, list) and len(values) <= MAX_LIST, f"filter.{name}", "a list of at most 256")
        texts = all(isinstance(value, str) and len(value) <= MAX_LIST for value in values)
        need(texts, f"filter.{name}", "texts of at most 256 characters")
    need(set(given.get("kinds", ())) <= set(KINDS), "filter.kinds", "kinds of items")
    need(set(given.get("sensitivities", ())) <= set(SENSITIVITIES), "filter.sensitivities", "sensitivities")
    need(all(map(is_scope, given.get("scopes", ()))), "filter.scopes", "scopes")
    need(is_number(given.get("min_confidence", 0), 0, 1), "filter.min_confidence", "0 to 1")
    times = [read_time(given[name]) for name in _TIMES if name in given]
    need(len(times) < 2 or times[0] < times[1], "filter.captured_before", "after captured_after")


def _check_small(grant: dict[str, Any]) -> None:
    """The members that a grant may have, each by its table."""
    need(grant.get("version", 1) == 1 and not isinstance(grant.get("version"), bool), "version", "1")
    need(grant.get("revocable", True) is True, "revocable", "true")
    codes = grant.get("purpose_codes", [])
    need(isinstance(codes, list) and len(codes) <= 16, "purpose_codes", "at most 16")
    need(all(isinstance(code, str) and _CODE.fullmatch(code) for code in codes), "purpose_codes", "a-z 0-9 _ . -")
    need(is_number(grant.get("trust_level", 0), 0, 4, True), "trust_level", "0 to 4")
    need(grant.get("lawful_basis", "consent") in BASES, "lawful_basis", "one of the six")
    operations = grant.get("operations", ["query"])
    need(isinstance(operations, list) and operations != [], "operations", "a list of one at least")
    need(all(one in OPERATIONS for one in operations), "operations", "of query, export, subscribe")
    need(len(set(operations)) == len(operations), "operations", "each once")
    for name in ("embedding_access", "bearer"):
        need(isinstance(grant.get(name, False), bool), name, "true or false")
    if "delegable" in grant:
        delegable = grant["delegable"]
        need(isinstance(delegable, dict) and set(delegable) == {"max_depth"}, "delegable", "max_depth")
        need(is_number(delegable["max_depth"], 1, MAX_DEPTH, True), "delegable.max_depth", "1 to 5")
    need(bool(_HASH.fullmatch(str(grant.get("parent", "sha256:" + 64 * "0")))), "parent", "a grant_hash")
    if "budget" in grant:
        budget = grant["budget"]
        need(isinstance(budget, dict) and not set(budget) - {"queries", "epsilon"}, "budget", "queries, epsilon")
        need(bool(budget), "budget", "queries or epsilon")
        need(is_number(budget.get("queries", 1), 1, 2**53, True), "budget.queries", "positive")
        need(is_number(budget.get("epsilon", 1), 0, 1e300) and budget.get("epsilon", 1) > 0, "budget.epsilon", "positive")
    if "status" in grant:
        place = grant["status"].get("status_list") if isinstance(grant["status"], dict) else None
        need(isinstance(place, dict) and set(place) == {"idx", "uri"} and len(grant["status"]) == 1, "status", "a place")
        need(is_number(place["idx"], 0, 2**53, True) and isinstance(place["uri"], str), "status", "a place")


def check_form(grant: Any) -> None:
    """Refuses what is not the form of section 5, naming the member."""
    need(isinstance(grant, dict), "grant", "an object")
    need(not set(grant) - _REQUIRED - _OPTIONAL, "grant", "no unknown member")
    for name in sorted(_REQUIRED):
        need(name in grant, name, "there")
    need(is_id("mgr_", grant["grant_id"]), "grant_id", "mgr_ and a ULID")
    did, _, scope = str(grant["granter"]).partition("#")
    need(is_did(did) and is_scope(scope), "granter", "a DID and a scope")
    need(is_did(grant["grantee"]), "grantee", "a DID")
    need(isinstance(grant["purpose"], str) and 1 <= len(grant["purpose"].strip()) <= 1000, "purpose", "1 to 1000 characters")
    need(is_number(grant["max_items"], 1, 2**53, True), "max_items", "a whole number of one at least")
    profile = grant["redaction_profile"]
    need(isinstance(profile, str) and bool(_PROFILE.fullmatch(profile)), "redaction_profile", "a name of a profile")
    check_filter(grant["filter"])
    _check_small(grant)
    begins = read_time(grant.get("not_before", grant["issued_at"]))
    need(max(begins, read_time(grant["issued_at"])) < read_time(grant["expires_at"]), "expires_at", "after it begins")


def check_grant(grant: Any, documents: Documents, now: int | None = None) -> None:
    """Refuses a first grant that its granter did not sign as it stands."""
    try:
        check_form(grant)
        need("parent" not in grant, "parent", "absent in a first grant")
        need(now is None or read_time(grant["issued_at"]) <= now + SKEW * 1000, "issued_at", "not in the future")
        granter = grant["granter"].partition("#")[0]
        check_detached(grant, documents, granter, read_time(grant["issued_at"]), voids=True)
    except Malformed as error:
        raise Invalid(str(error)) from error


@dataclass
class Grant:
    """A grant that is known here, with what was disclosed and spent under it."""

    document: dict[str, Any]
    parents: list["Grant"] = field(default_factory=list)
    revoked: bool = False
    place: int = 0
    disclosed: set[str] = field(default_factory=set)
    queries: int = 0
    spent: int = 0

    @cached_property
    def hash(self) -> str:
        return sha256(jcs(self.document))

    @property
    def grant_id(self) -> str:
        return self.document["grant_id"]

    @property
    def grantee(self) -> str:
        return self.document["grantee"]

    @property
    def scope(self) -> str:
        return self.document["granter"].partition("#")[2]

    @property
    def filter(self) -> dict[str, Any]:
        return self.document["filter"]

    @property
    def profile(self) -> str:
        return self.document["redaction_profile"]

    @property
    def trust_level(self) -> int:
        return self.document.get("trust_level", 0)

    @property
    def lawful_basis(self) -> str:
        return self.document.get("lawful_basis", "consent")

    @property
    def operations(self) -> list[str]:
        return self.document.get("operations", ["query"])

    @property
    def embedding_access(self) -> bool:
        return self.document.get("embedding_access", False)

    @property
    def bearer(self) -> bool:
        return self.document.get("bearer", False)

    @property
    def not_before(self) -> int:
        return read_time(self.document.get("not_before", self.document["issued_at"]))

    @property
    def expires_at(self) -> int:
        return read_time(self.document["expires_at"])

    @property
    def line(self) -> list["Grant"]:
        """The grants that it was made from, first one first, and itself."""
        return [*self.parents, self]

    def _own_state(self, now: int) -> str:
        if self.revoked:
            return "revoked"
        if now >= self.expires_at:
            return "expired"
        return "draft" if now < self.not_before else "active"

    def state(self, now: int) -> str:
        """Judged with all grants above it."""
        states = [one._own_state(now) for one in self.line]
        return next((s for s in ("revoked", "expired", "draft") if s in states), "active")

    def decision(self) -> dict[str, Any]:
        """What a receipt under the grant says of it (section 8)."""
        said = {
            "consumed_grant_id": self.grant_id,
            "grant_hash": self.hash,
            "scope_id": self.scope,
            "trust_level": self.trust_level,
            "profile": self.profile,
            "lawful_basis": self.lawful_basis,
        }
        return {**said, "delegation": [one.hash for one in self.parents]} if self.parents else said

    def admits(self, item: Item, owner: str) -> bool:
        """The filter and what is never admitted (section 5)."""
        claims, conditions = item.claims, self.filter
        labels, sensitivity = set(claims.get("labels", ())), claims["sensitivity"]
        if not claims["exportable"] and self.grantee != owner:
            return False
        if sensitivity == "restricted" and "restricted" not in conditions.get("sensitivities", ()):
            return False
        if claims["scope_id"] not in conditions.get("scopes", [self.scope]):
            return False
        one_of = {"subject_entity_ids": claims.get("subject_entity_id"), "kinds": claims["kind"], "sensitivities": sensitivity}
        if any(name in conditions and value not in conditions[name] for name, value in one_of.items()):
            return False
        if "labels_any" in conditions and not labels & set(conditions["labels_any"]):
            return False
        # An empty list admits nothing, of the labels that all must be there too.
        if "labels_all" in conditions and not (conditions["labels_all"] and set(conditions["labels_all"]) <= labels):
            return False
        if labels & set(conditions.get("exclude_labels", ())):
            return False
        if "captured_after" in conditions and item.captured_at < read_time(conditions["captured_after"]):
            return False
        if "captured_before" in conditions and item.captured_at >= read_time(conditions["captured_before"]):
            return False
        return item.confidence >= conditions.get("min_confidence", 0)


def _narrower_filter(child: dict[str, Any], parent: dict[str, Any], scope: str) -> None:
    for name in ("subject_entity_ids", "kinds", "labels_any"):
        if name in parent:
            need(name in child and set(child[name]) <= set(parent[name]), f"filter.{name}", "within the parent's")
    scopes = set(parent.get("scopes", [scope]))
    need(set(child.get("scopes", [scope])) <= scopes, "filter.scopes", "within the parent's")
    open_ones = [one for one in SENSITIVITIES if one != "restricted"]
    theirs, own = parent.get("sensitivities", open_ones), child.get("sensitivities", open_ones)
    need(set(own) <= set(theirs), "filter.sensitivities", "within the parent's")
    if "labels_all" in parent:
        holds = set(parent["labels_all"]) <= set(child.get("labels_all", ()))
        need(holds and (parent["labels_all"] != [] or child.get("labels_all") == []), "filter.labels_all", "within the parent's")
    excluded = set(parent.get("exclude_labels", ()))
    need(excluded <= set(child.get("exclude_labels", ())), "filter.exclude_labels", "within the parent's")
    if "captured_after" in parent:
        holds = "captured_after" in child and read_time(child["captured_after"]) >= read_time(parent["captured_after"])
        need(holds, "filter.captured_after", "within the parent's")
    if "captured_before" in parent:
        holds = "captured_before" in child and read_time(child["captured_before"]) <= read_time(parent["captured_before"])
        need(holds, "filter.captured_before", "within the parent's")
    need(child.get("min_confidence", 0) >= parent.get("min_confidence", 0), "filter.min_confidence", "within the parent's")


def check_child(child: Grant, parent: Grant) -> None:
    """Refuses what is not decidably within the grant above, naming the member (section 5.2)."""
    own, above = child.document, parent.document
    need("delegable" in above, "parent", "a grant that may be passed on")
    need("status" not in own, "status", "absent in a delegated grant")
    need(own.get("parent") == parent.hash, "parent", "the hash of the grant above")
    for name in ("granter", "redaction_profile"):
        need(own[name] == above[name], name, "as in the grant above")
    need(child.lawful_basis == parent.lawful_basis, "lawful_basis", "as in the grant above")
    need(own["max_items"] <= above["max_items"], "max_items", "within the parent's")
    need(child.not_before >= parent.not_before, "not_before", "within the parent's")
    need(child.expires_at <= parent.expires_at, "expires_at", "within the parent's")
    need(child.trust_level <= parent.trust_level, "trust_level", "within the parent's")
    need(set(child.operations) <= set(parent.operations), "operations", "within the parent's")
    need(child.embedding_access <= parent.embedding_access, "embedding_access", "within the parent's")
    need(child.bearer <= parent.bearer, "bearer", "within the parent's")
    codes = set(own.get("purpose_codes", ()))
    if above.get("purpose_codes"):
        need(bool(codes) and codes <= set(above["purpose_codes"]), "purpose_codes", "within the parent's")
    for name, most in above.get("budget", {}).items():
        mine = own.get("budget", {}).get(name)
        need(mine is not None and mine <= most, f"budget.{name}", "within the parent's")
    if "delegable" in own:
        deeper = own["delegable"]["max_depth"] < above["delegable"]["max_depth"]
        need(deeper, "delegable.max_depth", "smaller than the parent's")
    _narrower_filter(child.filter, parent.filter, child.scope)


def check_line(line: list[Grant], documents: Documents) -> list[Grant]:
    """A first grant and those that were made from it, one from the other, each signed by the delegator."""
    need(1 <= len(line) <= MAX_DEPTH + 1, "chain", "at most five below the first one")
    need("parent" not in line[0].document, "chain", "the first grant first")
    for place, grant in enumerate(line[1:], 1):
        check_form(grant.document)
        parent = line[place - 1]
        try:
            at = read_time(grant.document["issued_at"])
            check_detached(grant.document, documents, parent.grantee, at, voids=True)
        except Invalid as error:
            raise Malformed("signature: the delegator's") from error
        check_child(grant, parent)
        grant.parents = line[:place]
    return line
