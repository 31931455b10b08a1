"""Whether a document is a profile of the owner's own (docs/protocol.md section 7)."""

import re
from typing import Any

from .items import need

_NAME = re.compile(r"oap\.profile\.projection\.[^.]+\.v[0-9]+")
# Dots lead to members, `a[]` is every element of `a`, `a[x=1,y=true]` those whose members have these values.
_STEP = re.compile(r"[^.\[\]]+(?:\[(?:[^=,\[\]]*[^=,\[\]\s][^=,\[\]]*=[^,\[\]]*(?:,[^=,\[\]]*[^=,\[\]\s][^=,\[\]]*=[^,\[\]]*)*)?\])?")
# All but `mixed`, which is shown only where the text is shown whole.
_CLASSES = {
    "url_credentials", "secret", "iban", "card", "national_id", "email", "ip", "phone", "date_of_birth", "street_address",
    "third_party",
}  # fmt: skip
_EVERY_ENTITY = {
    "entity_type", "id", "owner_did", "created_at", "updated_at", "external_ids", "labels", "extensions",
}  # fmt: skip
_ENTITIES = {
    "oap.entity.contact": {
        "names", "affiliations", "channels", "languages", "addresses", "social", "skills", "birthday", "notes", "photo",
    },
    "oap.entity.calendar_event": {
        "start", "end", "transparency", "title", "visibility", "private", "participants", "participants_count",
        "participant_dids", "location_general", "location_precise", "description", "attachments", "recurrence", "status",
        "all_day", "timezone",
    },
    "oap.entity.task": {
        "status", "title", "due_at", "priority", "assignee_dids", "description", "linked_entities", "parent", "completed_at",
        "project",
    },
}  # fmt: skip


def _steps(path: str) -> list[str]:
    """A path at its dots, but for those in brackets."""
    return re.split(r"\.(?![^\[]*\])", path)


def _path(path: Any, entity: str | None) -> None:
    need(isinstance(path, str), "path", "text")
    if path == "*":
        return
    steps = _steps(path)
    need(all(_STEP.fullmatch(step) for step in steps), "path", "members with dots between them")
    if steps[:2] == ["content", "structured"] and len(steps) > 2 and entity in _ENTITIES:
        member = steps[2].partition("[")[0]
        need(member in _EVERY_ENTITY | _ENTITIES[entity], "path", "of members that the entity has")


def _field(field: Any, entity: str | None) -> None:
    said = {"path": field} if isinstance(field, str) else field
    need(isinstance(said, dict) and not set(said) - {"path", "when", "unless"}, "field", "a path, or path, when and unless")
    _path(said.get("path"), entity)
    for conditions in (said.get("when", []), said.get("unless", [])):
        need(isinstance(conditions, list), "condition", "in a list")
        for condition in conditions:
            need(isinstance(condition, str) and "=" in condition, "condition", "path=value")
            _path(condition.partition("=")[0].strip(), None)


def _shown(text: Any) -> set[str]:
    """What a rule of the text shows: the classes of spans, and all of it where it is whole."""
    if text in ("hidden", "full"):
        return set() if text == "hidden" else {"", *_CLASSES, "mixed"}
    spans = text.get("spans") if isinstance(text, dict) and set(text) == {"spans"} else None
    need(isinstance(spans, list) and all(isinstance(one, str) and one in _CLASSES for one in spans), "text", "classes of spans")
    return {"", *spans}


def _table(levels: Any, entity: str | None) -> None:
    need(isinstance(levels, list) and len(levels) == 5, "level", "five of them")
    below: set[str] = set()
    for number, level in enumerate(levels):
        need(isinstance(level, dict) and not set(level) - {"fields", "text"}, "level", "fields and text")
        fields = level.get("fields", [])
        need(isinstance(fields, list), "fields", "a list")
        for field in fields:
            _field(field, entity)
        need("text" in level or number > 0, "text", "at the first level")
        shown = _shown(level["text"]) if "text" in level else below
        # Levels are cumulative.
        need(below <= shown, "text", "no less than the level below shows")
        below = shown


def check(document: Any) -> None:
    """Refuses what is no profile."""
    known = {"name", "description", "minimum_level", "entity", "level"}
    need(isinstance(document, dict) and not set(document) - known, "profile", "no other member")
    name, least = document.get("name"), document.get("minimum_level", 0)
    need(isinstance(name, str) and _NAME.fullmatch(name) is not None, "name", "oap.profile.projection.<x>.v<n>")
    need(isinstance(document.get("description"), str), "description", "text")
    need(type(least) is int and 0 <= least <= 4, "minimum_level", "a level")
    _table(document.get("level"), None)
    if "entity" in document:
        entity = document["entity"]
        need(isinstance(entity, dict) and set(entity) == {"type", "level"}, "entity", "its type and levels")
        need(isinstance(entity["type"], str), "entity.type", "text")
        _table(entity["level"], entity["type"])
