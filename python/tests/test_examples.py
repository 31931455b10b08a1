"""Every public function has an example, which pytest runs (`--doctest-modules`)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from portable import ROOT

MODULES = sorted((ROOT / "python" / "src" / "oap_memory").glob("*.py"))


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_every_public_function_has_an_example(module: Path) -> None:
    tree = ast.parse(module.read_text(encoding="utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]
    assert [one.name for one in functions if ">>>" not in (ast.get_docstring(one) or "")] == []
