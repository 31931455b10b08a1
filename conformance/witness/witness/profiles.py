"""Profiles, their tables, and what they show of an item (docs/protocol.md section 7)."""

from collections.abc import Callable
from typing import Any

from .commit import Path, Segment, segments
from .detect import Span
from .own import Own

PREFIX = "oap.profile.projection."
# SHA-256 of the canonical documents of the built-in profiles (docs/bytes.md section 5.1).
HASHES = {
    PREFIX + "memory.v1": "sha256:fa9ad0c6d5a140b95fb48904495fd103811913ad5412fe1971eeb0a9dba337d6",
    PREFIX + "full.v1": "sha256:f2e3870b35e6d074b92fc1803315a5312fe46b10536600ed7e26f0c9e5ffd77e",
    PREFIX + "contact.v1": "sha256:c38b8b314c01c753c738eafd2a52d98a9f9f5007b762d9a47a76ffe6ebc7cf03",
    PREFIX + "calendar_event.v1": "sha256:d0b9e506175ae81452fb9c5b0040c90a68a62b14a3415ad170627b873ebab6f4",
    PREFIX + "task.v1": "sha256:f963a26740848c3eb002766c4d65c4b52244614c9248672ea4fe3cd22529dd79",
}
ENTITIES = {
    PREFIX + "contact.v1": "oap.entity.contact",
    PREFIX + "calendar_event.v1": "oap.entity.calendar_event",
    PREFIX + "task.v1": "oap.entity.task",
}
# Profiles of the owner's own, by their names.
OWN: dict[str, Own] = {}
# Fields that each level adds, 0 to 3. Level 4 shows everything.
_MEMORY = (
    ("kind", "provenance.captured_at"),
    ("labels", "subject_entity_id"),
    ("content.text",),
    (),
)
_CONTACT = (
    ("names.given", "names.family"),
    ("affiliations[].organization_id", "affiliations[].role"),
    ("channels[type=email,primary=true]", "languages"),
    ("channels", "addresses", "social", "skills"),
)
_EVENT = (
    ("start", "end", "transparency"),
    ("title",),
    ("participants_count",),
    ("participant_dids", "location_general"),
)
_TASK = (("status",), ("title", "due_at"), ("priority", "assignee_dids"), ("description",))
_TABLES = {PREFIX + "contact.v1": _CONTACT, PREFIX + "calendar_event.v1": _EVENT, PREFIX + "task.v1": _TASK}
_HIDDEN_AT_3 = {"third_party", "secret", "url_credentials", "mixed"}


def allows(profile: str, level: int) -> bool:
    """Whether the profile is one that is named and allows the level."""
    if profile in OWN:
        return level >= OWN[profile].minimum_level
    return profile in HASHES and (profile != PREFIX + "full.v1" or level == 4)


def hash_of(profile: str) -> str:
    """The hash of a profile's document."""
    return OWN[profile].hash if profile in OWN else HASHES[profile]


def redacted_field_count(profile: str, level: int) -> int:
    """A property of profile and level: of the general table and that of an entity, the entries that higher levels would add.

    `everything` of level 4 is one; hidden text is one more. Level 2 of the general table says how text is shown, which is no field.
    """
    if profile in OWN:
        return OWN[profile].redacted(level)
    if level == 4:
        return 0
    general = 1 + sum(len(fields) for fields in (_MEMORY[0], _MEMORY[1])[level + 1 :]) + (level < 2)
    if profile not in _TABLES:
        return general
    return general + 1 + sum(map(len, _TABLES[profile][level + 1 :])) + 1


def _is_true(value: Any) -> bool:
    """Conditions compare texts."""
    return value is True or value == "true"


def _private(item: dict[str, Any], event: dict[str, Any]) -> bool:
    return (
        event.get("visibility") in ("private", "confidential")
        or _is_true(event.get("private"))
        or item.get("sensitivity") == "restricted"
    )


def _contact_shows(entity: dict[str, Any], level: int, path: Path) -> bool:
    top, rest = path[0], path[1:]
    if top == "names":
        return rest[:1] in (("given",), ("family",))
    if top == "affiliations":
        return level >= 1 and isinstance(entity["affiliations"], list) and rest[1:2] in (("organization_id",), ("role",))
    if top == "channels" and level == 2:
        channels = entity["channels"]
        channel = channels[rest[0]] if isinstance(channels, list) and rest else None
        return isinstance(channel, dict) and channel.get("type") == "email" and _is_true(channel.get("primary"))
    return (top == "languages" and level >= 2) or (top in _CONTACT[3] and level >= 3)


def _event_shows(item: dict[str, Any], event: dict[str, Any], level: int, path: Path) -> bool:
    top = path[0]
    if top == "transparency":
        return event["transparency"] == "busy"
    if top == "title":
        return level >= 1 and not _private(item, event)
    return any(top in _EVENT[each] for each in range(level + 1))


def _entity_shows(profile: str, item: dict[str, Any], level: int, path: Path) -> bool:
    entity = item["content"]["structured"]
    if not path:
        return False
    if profile == PREFIX + "contact.v1":
        return _contact_shows(entity, level, path)
    if profile == PREFIX + "calendar_event.v1":
        return _event_shows(item, entity, level, path)
    return any(path[0] in _TASK[each] for each in range(level + 1))


def is_entity(profile: str, item: dict[str, Any]) -> bool:
    """Whether an item is of the kind that an entity profile is made for."""
    structured = item["content"].get("structured")
    return isinstance(structured, dict) and profile in ENTITIES and structured.get("entity_type") == ENTITIES[profile]


def _span_shown(level: int, cls: str) -> bool:
    return level == 4 or (level == 3 and cls not in _HIDDEN_AT_3)


def shows(
    profile: str, level: int, item: dict[str, Any], spans: list[Span], embeddings: bool
) -> Callable[[Path], bool]:
    """Which paths of an item are shown. A container that is not shown stands around what is."""
    if profile in OWN:
        return OWN[profile].shows(level, item, spans, embeddings)
    parts = segments(item["content"].get("text", ""), spans)
    entity = is_entity(profile, item)

    def shown(path: Path) -> bool:
        if path[0] == "embedding":
            return level == 4 and embeddings
        if path[:2] == ("provenance", "source_receipt") or level == 4:
            return True
        if path in (("kind",), ("provenance", "captured_at")):
            return True
        if entity:
            return path[:2] == ("content", "structured") and _entity_shows(profile, item, level, path[2:])
        if path[0] in ("labels", "subject_entity_id"):
            return level >= 1
        if path[:2] == ("content", "text") and level >= 2:
            part = parts[path[2]] if len(path) > 2 else ""
            return len(path) < 4 or (isinstance(part, Segment) and _span_shown(level, part.cls))
        return False

    return shown


def visible(item: dict[str, Any], spans: list[Span], shown: Callable[[Path], bool]) -> dict[str, Any]:
    """The item as the disclosed claims say it, and nothing more (docs/bytes.md section 4.4)."""
    absent = object()

    def text(path: Path) -> Any:
        run = []
        for place, part in enumerate(segments(item["content"]["text"], spans)):
            here = (*path, place)
            if isinstance(part, str):
                run.append(part)
            else:
                run.append(part.text if shown((*here, "v")) else f"[{part.cls}]")
        return "".join(run) if shown(path) else absent

    def take(value: Any, path: Path) -> Any:
        if path == ("content", "text"):
            return text(path)
        if isinstance(value, dict) and value:
            inner = {name: take(each, (*path, name)) for name, each in value.items()}
            kept = {name: each for name, each in inner.items() if each is not absent}
            return kept if kept or shown(path) else absent
        if isinstance(value, list) and value:
            kept = [each for place, one in enumerate(value) if (each := take(one, (*path, place))) is not absent]
            return kept if kept or shown(path) else absent
        return value if shown(path) else absent

    taken = {name: take(value, (name,)) for name, value in item.items()}
    return {name: value for name, value in taken.items() if value is not absent}
