"""One definition of the tools: the gateway's. What the package ships, types and adapts is the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from gateway import Gateway

from oap_memory import Agent, definitions, facts
from oap_memory.adapters import anthropic, openai
from oap_memory.adapters.langchain import tools as langchain_tools

TAKES = {
    "memory_learn": (facts.Learn, {"content"}),
    "memory_recall": (facts.Recall, {"query"}),
    "memory_query": (facts.Query, set()),
    "memory_explain": (facts.Explain, {"item_id"}),
    "memory_correct": (facts.Correct, {"item_id", "content"}),
    "memory_forget": (facts.Forget, {"item_id"}),
    "memory_link": (facts.Link, {"item_id", "to", "relationship"}),
    "memory_diff": (facts.Diff, {"since"}),
    "memory_status": (None, set()),
    "memory_compact": (facts.Compact, set()),
}
GIVES = {
    "memory_learn": facts.Learned,
    "memory_recall": facts.Recalled,
    "memory_query": facts.Queried,
    "memory_explain": facts.Explained,
    "memory_correct": facts.Corrected,
    "memory_forget": facts.Forgotten,
    "memory_link": facts.Linked,
    "memory_diff": facts.Differs,
    "memory_status": facts.State,
    "memory_compact": facts.Compacted,
}
BY_NAME = {tool["name"]: tool for tool in definitions()}


@pytest.fixture(scope="module")
def agent(office: Gateway) -> Iterator[Agent]:
    with Agent(office.origin, office.agent("lister"), ca_file=office.ca_file) as agent:
        yield agent


def test_the_definitions_are_those_of_the_gateway(agent: Agent) -> None:
    # Where they differ: OAP_MEMORY=... python tests/write_tools.py
    assert agent.tools() == definitions()


@pytest.mark.parametrize("name", BY_NAME)
def test_what_the_tools_take_is_typed(name: str) -> None:
    schema = BY_NAME[name]["inputSchema"]
    shape, given = TAKES[name]
    hints = {} if shape is None else get_type_hints(shape)
    assert set(schema["properties"]) == {*hints, *given}
    assert set(schema.get("required", ())) == given
    for member, hint in hints.items():
        words = get_args(hint) if get_origin(hint) is Literal else ()
        within = get_args(hint)[0] if get_origin(hint) is list else None
        if get_origin(within) is Literal:
            words = get_args(within)
        if words:
            said = _words(schema["properties"][member])
            # What the owner alone may say is in the schema, and is not for agents.
            assert said - {"user_stated"} == set(words), member


def _words(schema: Any) -> set[str]:
    """All the texts that a schema admits, wherever it says so."""
    if isinstance(schema, list):
        return set().union(*map(_words, schema)) if schema else set()
    if not isinstance(schema, dict):
        return set()
    here = {one for one in schema.get("enum", ()) if one is not None}
    here |= {schema["const"]} if "const" in schema else set()
    return here | _words(schema.get("anyOf", [])) | _words(schema.get("oneOf", [])) | _words(schema.get("items"))


@pytest.mark.parametrize("name", BY_NAME)
def test_what_the_tools_give_is_typed(name: str) -> None:
    _same(GIVES[name], BY_NAME[name]["outputSchema"])


def _same(shape: Any, schema: dict[str, Any]) -> None:
    assert {one.name for one in fields(shape)} == set(schema["properties"]), shape
    needed = {one.name for one in fields(shape) if one.default is MISSING}
    assert needed == set(schema.get("required", ())), shape
    for member, hint in get_type_hints(shape).items():
        inner = next((one for one in (hint, *get_args(hint)) if is_dataclass(one)), None)
        if inner is not None:
            _same(inner, _object(schema["properties"][member]))


def _object(schema: dict[str, Any]) -> Any:
    """The schema of the object in it: of an optional one, or of the elements."""
    for one in (schema, schema.get("items", {}), *schema.get("anyOf", ())):
        if "properties" in one:
            return one
    raise AssertionError(schema)


def test_the_adapters_have_the_same_definitions(agent: Agent) -> None:
    ours = [(tool["name"], tool["description"], tool["inputSchema"]) for tool in definitions()]
    chat = [one["function"] for one in openai.chat_tools()]
    assert [(one["name"], one["description"], one["parameters"]) for one in chat] == ours
    assert [(one["name"], one["description"], one["parameters"]) for one in openai.response_tools()] == ours
    assert [(one["name"], one["description"], one["input_schema"]) for one in anthropic.tools()] == ours
    assert [(one.name, one.description, one.args_schema) for one in langchain_tools(agent)] == ours
