"""Where the portable cases are."""

import json
from pathlib import Path
from typing import Any

CASES = Path(__file__).parents[2] / "cases"
DOCS = Path(__file__).parents[3] / "docs"


def cases(name: str) -> dict[str, Any]:
    return json.loads((CASES / name).read_text())


def patched(base: Any, patch: list[dict[str, Any]]) -> Any:
    """RFC 6902 of `add`, `remove` and `replace`."""
    held = [json.loads(json.dumps(base))]
    for step in patch:
        target: Any = held
        names = ["0", *(name.replace("~1", "/").replace("~0", "~") for name in step["path"].split("/")[1:])]
        for name in names[:-1]:
            target = target[int(name)] if isinstance(target, list) else target[name]
        last: Any = names[-1]
        if isinstance(target, list):
            last = len(target) if last == "-" else int(last)
            if step["op"] == "add" and target is not held:
                target.insert(last, step["value"])
                continue
        if step["op"] == "remove":
            del target[last]
        else:
            target[last] = step["value"]
    return held[0]
