"""Every public function has an example, which pytest runs (`--doctest-modules`); and each method of what users hold."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest
from portable import ROOT

import oap_memory

SOURCES = ROOT / "python" / "src" / "oap_memory"
MODULES = sorted(SOURCES.rglob("*.py"))
HELD = {*oap_memory.__all__, "_Notes", "Working", "AsyncWorking", "MemoryRetriever", "MemoryStore"}
"""The classes that users have in hand; `_Notes` is what both sessions have."""


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
    for one in [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name in HELD]:
        # The methods for asyncio are those of the class of the same name; the class has an example.
        told = one.body if not one.name.startswith("Async") else []
        assert lacking(told) == [], one.name
        assert not one.name.startswith("Async") or ">>>" in (ast.get_docstring(one) or "")


@pytest.mark.parametrize("name", ["Agent", "Client", "Session", "Window"])
def test_what_users_begin_with_has_an_example(name: str) -> None:
    assert ">>>" in (getattr(oap_memory, name).__doc__ or "")


@pytest.mark.parametrize("name", ["Agent", "Client", "Session"])
def test_asyncio_has_the_same_methods(name: str) -> None:
    sync, other = getattr(oap_memory, name), getattr(oap_memory, "Async" + name)
    ours = {method for method in dir(sync) if not method.startswith("_")}
    assert ours == {method for method in dir(other) if not method.startswith("_")}
    for method in ours:
        if callable(function := getattr(sync, method)):
            assert inspect.signature(function).parameters == inspect.signature(getattr(other, method)).parameters


def test_the_readme_says_what_there_is() -> None:
    page = (ROOT / "python" / "README.md").read_text(encoding="utf-8")
    errors = {name for name in oap_memory.__all__ if name in vars(oap_memory.errors)}
    methods = {name for held in (oap_memory.Agent, oap_memory.Client, oap_memory.Session) for name in dir(held)}
    for name in {*errors, *(name for name in methods if not name.startswith("_"))}:
        assert re.search(rf"\b{name}\b", page), name
    for code in re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S):
        compile(code, "README.md", "exec")
