"""What the built-in profiles show of an item at a level (protocol section 7)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from .canonical import canonical
from .sdjwt import CLASSES

_PREFIX = "oap.profile.projection."


class Found(NamedTuple):
    """A span of a text that a detector found: from, to (characters, the end not included), class."""

    start: int
    end: int
    of: str


class Shown(NamedTuple):
    """A path that a level adds, and the condition that hides it again."""

    path: str
    when: str | None = None
    unless_private: bool = False


_THIRD = {"third_party", "secret", "url_credentials", "mixed"}
"""Classes that level 3 hides."""

_TABLES: dict[str, tuple[Sequence[Shown], ...]] = {
    "contact": (
        (Shown("names.given"), Shown("names.family")),
        (Shown("affiliations[].organization_id"), Shown("affiliations[].role")),
        (Shown("channels[type=email,primary=true]"), Shown("languages")),
        (Shown("channels"), Shown("addresses"), Shown("social"), Shown("skills")),
        (Shown("*"),),
    ),
    "calendar_event": (
        (Shown("start"), Shown("end"), Shown("transparency", when="busy")),
        (Shown("title", unless_private=True),),
        (Shown("participants_count"),),
        (Shown("participant_dids"), Shown("location_general")),
        (Shown("*"),),
    ),
    "task": (
        (Shown("status"),),
        (Shown("title"), Shown("due_at")),
        (Shown("priority"), Shown("assignee_dids")),
        (Shown("description"),),
        (Shown("*"),),
    ),
}
_ABSENT = object()
_STEP = re.compile(r"([^.\[\]]+)(\[([^\]]*)\])?")


def _text_value(value: Any) -> str:
    return value if isinstance(value, str) else canonical(value).decode()


def _chosen(value: Any, condition: str) -> bool:
    if not isinstance(value, dict):
        return condition == ""
    pairs = [pair.partition("=") for pair in condition.split(",") if pair]
    return all(name in value and _text_value(value[name]) == wanted for name, _, wanted in pairs)


def _marks(value: Any, steps: list[str], place: tuple[Any, ...], out: set[tuple[Any, ...]]) -> None:
    """The places of the whole that a path shows."""
    if not steps or steps == ["*"]:
        out.add(place)
        return
    match = _STEP.fullmatch(steps[0])
    if match is None or not isinstance(value, dict) or match[1] not in value:
        return
    inside, here = value[match[1]], (*place, match[1])
    if match[2] is None:
        _marks(inside, steps[1:], here, out)
    elif isinstance(inside, list):
        for index, element in enumerate(inside):
            if _chosen(element, match[3]):
                _marks(element, steps[1:], (*here, index), out)


def _cut(value: Any, place: tuple[Any, ...], marks: set[tuple[Any, ...]]) -> Any:
    """What is left of a value; arrays close up over hidden elements."""
    if place in marks:
        return value
    if isinstance(value, dict):
        kept = {
            name: left for name, member in value.items() if (left := _cut(member, (*place, name), marks)) is not _ABSENT
        }
        return kept or _ABSENT
    if isinstance(value, list):
        left = [_cut(element, (*place, index), marks) for index, element in enumerate(value)]
        return [element for element in left if element is not _ABSENT] or _ABSENT
    return _ABSENT


def _private(item: dict[str, Any], entity: dict[str, Any]) -> bool:
    return (
        entity.get("visibility") in ("private", "confidential")
        or entity.get("private") is True
        or item.get("sensitivity") == "restricted"
    )


def _entity(item: dict[str, Any], entity: dict[str, Any], table: Sequence[Sequence[Shown]], level: int) -> Any:
    marks: set[tuple[Any, ...]] = set()
    for shown in (one for added in table[: level + 1] for one in added):
        if shown.unless_private and _private(item, entity):
            continue
        if shown.when is not None and entity.get(shown.path) != shown.when:
            continue
        _marks(entity, shown.path.split("."), (), marks)
    return _cut(entity, (), marks)


def _projected_text(text: str, spans: Sequence[Found], hidden: set[str]) -> str:
    out, at = [], 0
    for span in sorted(spans):
        out.append(text[at : span.start])
        out.append(f"[{span.of}]" if span.of in hidden else text[span.start : span.end])
        at = span.end
    return "".join([*out, text[at:]])


def project(item: dict[str, Any], profile: str, level: int, spans: Sequence[Found] = ()) -> dict[str, Any] | None:
    """The members `kind`, `labels`, `subject_entity_id` and `content` that a built-in profile shows.

    `spans` are those that the commitment of the item has: the text of a span is hidden with its class. `None` where
    the profile is none of the built-in ones, or does not allow the level.

    >>> item = {"kind": "fact", "labels": ["tea"], "content": {"text": "write to a@b.example"}}
    >>> project(item, "oap.profile.projection.memory.v1", 2, [Found(9, 20, "email")])
    {'kind': 'fact', 'labels': ['tea'], 'content': {'text': 'write to [email]'}}
    """
    if not profile.startswith(_PREFIX) or not profile.endswith(".v1") or not 0 <= level <= 4:
        return None
    name = profile.removeprefix(_PREFIX).removesuffix(".v1")
    if name not in ("memory", "full", *_TABLES) or (name == "full" and level < 4):
        return None
    out: dict[str, Any] = {"kind": item.get("kind")}
    content = item.get("content", {})
    entity = content.get("structured")
    own = name in _TABLES and isinstance(entity, dict) and str(entity.get("entity_type", "")).endswith("." + name)
    if level == 4 or (level >= 1 and not own):
        out |= {member: item[member] for member in ("labels", "subject_entity_id") if member in item}
    shown: dict[str, Any] = {}
    if own:
        left = _entity(item, entity, _TABLES[name], level)
        if left is not _ABSENT:
            shown["structured"] = left
    elif level == 4 and entity is not None:
        shown["structured"] = entity
    if "text" in content and (level == 4 or (level >= 2 and not own)):
        hidden = set() if level == 4 else _THIRD if level == 3 else set(CLASSES)
        shown["text"] = _projected_text(content["text"], spans, hidden)
    if shown:
        out["content"] = shown
    return out
