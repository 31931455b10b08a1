"""Every public function has an example, which pytest runs (`--doctest-modules`); on the agent's side each method."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from portable import ROOT

SOURCES = ROOT / "python" / "src" / "oap_memory"
MODULES = sorted(SOURCES.rglob("*.py"))
AGENTS = {"agent.py", "packing.py", "session.py", "window.py", "tools.py", "langchain.py", "working.py"}


def lacking(nodes: list[ast.stmt]) -> list[str]:
    public = [
        node
        for node in nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_")
    ]
    # A property that says what it is in its line has an example in its class.
    functions = [node for node in public if not any(isinstance(one, ast.Name) for one in node.decorator_list)]
    return [one.name for one in functions if ">>>" not in (ast.get_docstring(one) or "")]


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(SOURCES)))
def test_every_public_function_has_an_example(module: Path) -> None:
    tree = ast.parse(module.read_text(encoding="utf-8"))
    assert lacking([node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]) == []
    if module.name in AGENTS:
        for one in [node for node in tree.body if isinstance(node, ast.ClassDef)]:
            # The methods for asyncio are those of the class of the same name; the class has an example.
            told = one.body if not one.name.startswith(("Async", "_")) else []
            assert lacking(told) == [], one.name
            assert not one.name.startswith("Async") or ">>>" in (ast.get_docstring(one) or "")
