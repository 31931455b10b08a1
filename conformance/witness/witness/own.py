"""Profiles of the owner's own: documents of five levels, maybe with five more for one type of entity (docs/protocol.md section 7)."""

from collections.abc import Callable
from typing import Any

from .canon import jcs, sha256
from .commit import Path, Segment, segments
from .detect import Span


def _reads(value: Any, wanted: str) -> bool:
    """Text, numbers as they are written, and truth values are compared; anything else equals nothing."""
    if isinstance(value, bool):
        return wanted == ("true" if value else "false")
    if isinstance(value, (int, float)):
        return jcs(value).decode() == wanted
    return isinstance(value, str) and value == wanted


def _places(path: str, item: Any) -> list[Path]:
    """The places of an item that a path names."""
    found: list[tuple[Path, Any]] = [((), item)]
    for step in [] if path == "*" else path.split("."):
        name, selects, selector = step.rstrip("]").partition("[")
        found = [((*at, name), value[name]) for at, value in found if isinstance(value, dict) and name in value]
        if selects:
            wanted = [one.partition("=") for one in selector.split(",") if one]
            found = [
                ((*at, place), element)
                for at, value in found
                if isinstance(value, list)
                for place, element in enumerate(value)
                if all(isinstance(element, dict) and _reads(element.get(a.strip()), b.strip()) for a, _, b in wanted)
            ]
    return [at for at, _ in found]


class Own:
    """One document."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.name, self.hash = document["name"], sha256(jcs(document))
        self.minimum_level = document.get("minimum_level", 0)
        entity = document.get("entity", {})
        self._type, self._entity, self._general = entity.get("type"), entity.get("level"), document["level"]

    def _levels(self, item: dict[str, Any], level: int) -> list[dict[str, Any]]:
        structured = item["content"].get("structured")
        is_of = self._entity and isinstance(structured, dict) and structured.get("entity_type") == self._type
        return (self._entity if is_of else self._general)[: level + 1]

    @staticmethod
    def _text(levels: list[dict[str, Any]]) -> Any:
        return [one["text"] for one in levels if "text" in one][-1]

    def redacted(self, level: int) -> int:
        """Of each table the entries of the levels above, and one where the text is hidden (section 6)."""
        tables = [table for table in (self._general, self._entity) if table]
        above = sum(len(one.get("fields", ())) for table in tables for one in table[level + 1 :])
        return above + sum(self._text(table[: level + 1]) == "hidden" for table in tables)

    def shows(self, level: int, item: dict[str, Any], spans: list[Span], embeddings: bool) -> Callable[[Path], bool]:
        """Which paths of an item are shown."""
        levels, parts = self._levels(item, level), segments(item["content"].get("text", ""), spans)
        text = self._text(levels)

        def holds(condition: str) -> bool:
            path, _, wanted = condition.partition("=")
            value: Any = item
            for name in path.strip().split("."):
                value = value.get(name) if isinstance(value, dict) else None
            return _reads(value, wanted.strip())

        places: list[Path] = [("provenance", "source_receipt")]
        for field in [field for one in levels for field in one.get("fields", ())]:
            said = {"path": field} if isinstance(field, str) else field
            if all(map(holds, said.get("when", ()))) and not any(map(holds, said.get("unless", ()))):
                places += _places(said["path"], item)

        def shown(path: Path) -> bool:
            if path[0] == "embedding" and not embeddings:
                return False
            if path[:2] == ("content", "text"):
                if isinstance(text, str):
                    return text == "full"
                part = parts[path[2]] if len(path) > 2 else ""
                return len(path) < 4 or (isinstance(part, Segment) and part.cls in text["spans"])
            return any(path[: len(place)] == place for place in places)

        return shown
