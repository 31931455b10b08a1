"""Where the portable cases are."""

import json
from pathlib import Path
from typing import Any

CASES = Path(__file__).parents[2] / "cases"
DOCS = Path(__file__).parents[3] / "docs"


def cases(name: str) -> dict[str, Any]:
    return json.loads((CASES / name).read_text())
