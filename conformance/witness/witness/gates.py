"""The two gates before projection (docs/protocol.md section 7): other scopes, and what the owner owes to others."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import contexts
from .items import DAY, Item, need
from .keys import is_scope
from .moments import is_id, read_time

if TYPE_CHECKING:
    from .grants import Grant

_PRIVILEGES = {
    "attorney_client_privileged", "tax_advisor_confidentiality", "auditor_confidentiality", "banking_secrecy",
    "journalist_source_protection", "confessional_seal",
}  # fmt: skip
_HEALTH = {"medical_confidentiality", "therapeutic_privilege"}
_SECRET = "diplomatic_classified"


def _day(text: str) -> int:
    return read_time(f"{text}T00:00:00Z")


def _is_of(entry: str, did: str) -> bool:
    """An entry that is a did:web covers the DIDs below it. The names of hosts have no case."""
    entry = entry.strip()
    if not entry.lower().startswith("did:web:"):
        return entry == did
    entry, did = entry.lower(), did.lower()
    rest = did.removeprefix(entry)
    return did.startswith(entry) and (not rest or rest.startswith((":", "%3a")))


def _covers(words: list[str], item: Item) -> bool:
    """Whether a list names a label of the item, or its kind."""
    return bool(set(words) & {*item.claims.get("labels", ()), item.claims["kind"]})


@dataclass
class Gates:
    """Contexts by scope, bridges by id, the grants to which the owner consented, and sanctions lists with whom they name."""

    contexts: dict[str, dict[str, Any]] = field(default_factory=dict)
    bridges: dict[str, dict[str, Any]] = field(default_factory=dict)
    consented: set[str] = field(default_factory=set)
    lists: dict[str, list[str]] = field(default_factory=dict)

    def set(self, context: Any) -> None:
        contexts.check(context)
        self.contexts[context["scope_id"]] = context

    def check(self, bridge: dict[str, Any], now: int) -> None:
        need(is_id("brg_", bridge["bridge_id"]) and is_scope(bridge["from_scope"]), "bridge", "a bridge")
        need(is_scope(bridge["to_scope"]), "to_scope", "a scope")
        need(bridge["from_scope"] != bridge["to_scope"], "to_scope", "another than from_scope")
        categories = bridge["data_categories"]
        need(isinstance(categories, list) and all(isinstance(one, str) for one in categories), "data_categories", "texts")
        need(bool(categories), "data_categories", "one at least")
        need(read_time(bridge["valid_until"]) > now, "valid_until", "later than now")
        need(not self._is_privileged(bridge["from_scope"]), "from_scope", "no privileged scope")

    def _class(self, scope: str) -> str:
        return self.contexts.get(scope, {}).get("regulatory_classification", "none")

    def _is_privileged(self, scope: str) -> bool:
        return self._class(scope) in _PRIVILEGES | _HEALTH | {_SECRET}

    def leads(self, from_scope: str, to_scope: str, now: int) -> list[dict[str, Any]]:
        """The bridges from one scope to another that are in force."""
        return [
            one
            for one in self.bridges.values()
            if (one["from_scope"], one["to_scope"]) == (from_scope, to_scope)
            and read_time(one["issued_at"]) <= now < read_time(one["valid_until"])
        ]

    def passes(self, item: Item, grant: "Grant", owner: str, now: int) -> bool:
        scope = item.claims["scope_id"]
        if scope != grant.scope and not self._crosses(item, scope, grant.scope, now):
            return False
        if all(one.grantee == owner for one in grant.line):
            return True
        if self._walled(scope, grant):
            return False
        context = self.contexts.get(scope)
        return context is None or all(self._may(context, item, one.grantee, grant, now) for one in grant.line)

    def _crosses(self, item: Item, scope: str, to: str, now: int) -> bool:
        if self._is_privileged(scope):
            return False
        cleared = self.contexts.get(to, {}).get("security_clearance")
        if cleared is not None and not set(item.claims.get("labels", ())) <= set(cleared):
            return False
        return any(_covers(one["data_categories"], item) for one in self.leads(scope, to, now))

    def _walled(self, scope: str, grant: "Grant") -> bool:
        walls = [wall["between"] for one in self.contexts.values() for wall in one.get("chinese_walls", ())]
        for sides in walls:
            others = [side for side in sides if side != scope]
            if len(others) < len(sides) and any(
                side == grant.scope or any(_is_of(side, one.grantee) for one in grant.line) for side in others
            ):
                return True
        return False

    def _may(self, context: dict[str, Any], item: Item, grantee: str, grant: "Grant", now: int) -> bool:
        """What the context of the item's scope says before one grantee."""
        if any(_is_of(one, grantee) for one in context.get("embargo_list", ())):
            return False
        if any(self._binds(nda, item, now) for nda in context.get("active_ndas", ()) if not any(
            _is_of(one, grantee) for one in nda["counterparties"]
        )):  # fmt: skip
            return False
        secrecy = context.get("regulatory_classification", "none")
        if secrecy == _SECRET:
            return False
        for name in context.get("sanctions_screening", ()):
            if name not in self.lists or any(_is_of(one, grantee) for one in self.lists[name]):
                return False
        if context.get("export_control_classification") is not None:
            return False
        if grant.grant_id in self.consented:
            return True
        if self._needs_consent(context, item, grantee, now) or secrecy in _PRIVILEGES | {"trade_secret"}:
            return False
        return secrecy not in _HEALTH or _anonymous(item, grant)

    @staticmethod
    def _binds(nda: dict[str, Any], item: Item, now: int) -> bool:
        if nda["type"] == "one_way_outbound" or not _day(nda["valid_from"]) <= now < _day(nda["valid_until"]) + DAY:
            return False
        return "covered_categories" not in nda or _covers(nda["covered_categories"], item)

    @staticmethod
    def _needs_consent(context: dict[str, Any], item: Item, grantee: str, now: int) -> bool:
        subject, labels = item.claims.get("subject_entity_id"), item.claims.get("labels", ())

        def holds(promise: dict[str, Any]) -> bool:
            return "valid_until" not in promise or now < _day(promise["valid_until"]) + DAY

        for one in filter(holds, context.get("non_competes", ())):
            covered = "covered_industries" not in one or _covers(one["covered_industries"], item)
            if covered and not _is_of(one["ex_employer"], grantee):
                return True
        for one in filter(holds, context.get("non_solicits", ())):
            whom = one.get("subject_did")
            if whom is None or subject == whom or _is_of(whom, grantee):
                return True
        for one in context.get("insider_lists", ()):
            named = [one[name] for name in ("issuer", "instrument") if name in one]
            if not named or any(word in labels or word == subject for word in named):
                return True
        return bool(context.get("professional_codes") or context.get("fiduciary_duties"))


def _anonymous(item: Item, grant: "Grant") -> bool:
    """Whether what is shown identifies nobody: no structured content, no personal span, no subject."""
    shows_subject = grant.trust_level >= 1 and "subject_entity_id" in item.claims
    return grant.profile == "oap.profile.projection.memory.v1" and grant.trust_level <= 2 and not shows_subject
