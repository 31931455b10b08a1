"""Whether a document is one of oap-ccc.schema.json (docs/protocol.md section 7)."""

import re
from collections.abc import Callable
from typing import Any

from .canon import Malformed
from .items import need
from .keys import is_scope
from .moments import read_time

_CLASSES = {
    "none", "attorney_client_privileged", "medical_confidentiality", "tax_advisor_confidentiality", "auditor_confidentiality",
    "banking_secrecy", "journalist_source_protection", "confessional_seal", "therapeutic_privilege", "diplomatic_classified",
    "trade_secret",
}  # fmt: skip
_Form = Callable[[Any], bool]


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_text, value))


def _day(value: Any) -> bool:
    try:
        return _text(value) and len(value) == 10 and read_time(f"{value}T00:00:00Z") is not None
    except Malformed:
        return False


def _time(value: Any) -> bool:
    try:
        return _text(value) and read_time(value) is not None
    except Malformed:
        return False


def _one_of(*values: str) -> _Form:
    return lambda value: _text(value) and value in values


def _like(pattern: str) -> _Form:
    return lambda value: _text(value) and re.fullmatch(pattern, value) is not None


def _each(required: set[str], **members: _Form) -> _Form:
    """A list of objects with these members, and maybe others."""

    def holds(value: Any) -> bool:
        return isinstance(value, list) and all(
            isinstance(one, dict) and required <= set(one) and all(form(one[name]) for name, form in members.items() if name in one)
            for one in value
        )

    return holds


_MEMBERS: dict[str, _Form] = {
    "ccc_version": _one_of("1.0"),
    "scope_id": is_scope,
    "active_ndas": _each(
        {"id", "counterparties", "type", "valid_from", "valid_until", "jurisdiction", "document_hash"},
        id=_text, counterparties=_texts, type=_one_of("mutual", "one_way_inbound", "one_way_outbound"),
        covered_categories=_texts, valid_from=_day, valid_until=_day, jurisdiction=_like("[A-Z]{2}"),
        document_hash=_like("sha256:[a-f0-9]{64}"),
    ),
    "non_competes": _each(
        {"ex_employer", "valid_until", "scope"}, ex_employer=_text, valid_until=_day, scope=_text, covered_industries=_texts,
    ),
    "non_solicits": _each(set(), subject_did=_text, applies_to=_one_of("customers", "employees", "both"), valid_until=_day),
    "embargo_list": _texts,
    "chinese_walls": _each({"between", "reason"}, between=lambda value: _texts(value) and len(value) >= 2, reason=_text),
    "professional_codes": _texts,
    "fiduciary_duties": _texts,
    "regulatory_classification": _one_of(*_CLASSES),
    "insider_lists": _each(set(), issuer=_text, instrument=_text, added_on=_time),
    "sanctions_screening": lambda value: _texts(value) and set(value) <= {"ofac", "eu", "un", "uk_ofsi"},
    "export_control_classification": lambda value: value is None or _text(value),
    "security_clearance": _texts,
}  # fmt: skip


def check(context: Any) -> None:
    """Refuses what the schema does not have."""
    need(isinstance(context, dict) and {"ccc_version", "scope_id"} <= set(context), "context", "a document of oap-ccc")
    for name, value in context.items():
        need(name in _MEMBERS and _MEMBERS[name](value), f"context.{name}", "as oap-ccc.schema.json has it")
