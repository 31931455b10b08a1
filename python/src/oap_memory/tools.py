"""The definitions of the memory tools, and what a model is told of a call.

`tools.json` is what the gateway lists (MCP's `tools/list`); a test holds it against the real program, which writes it
anew: `python -m tests.write_tools`. Every adapter makes its definitions of these.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from .agent import Agent, AsyncAgent
from .errors import GatewayError, Unauthenticated, UsageError


@cache
def _stored() -> str:
    return files("oap_memory").joinpath("tools.json").read_text(encoding="utf-8")


def definitions() -> list[dict[str, Any]]:
    """The tools as MCP lists them: `name`, `title`, `description`, `inputSchema`, `outputSchema`, `annotations`.

    >>> [tool["name"] for tool in definitions()][:3]
    ['memory_learn', 'memory_recall', 'memory_query']
    """
    tools: list[dict[str, Any]] = json.loads(_stored())
    return tools


@cache
def names() -> frozenset[str]:
    """The names of the tools.

    >>> "memory_learn" in names()
    True
    """
    return frozenset(tool["name"] for tool in definitions())


@dataclass(frozen=True)
class Outcome:
    """What a model is told of its call."""

    text: str
    is_error: bool


def _arguments(given: str | Mapping[str, Any]) -> Mapping[str, Any] | None:
    if not isinstance(given, str):
        return given
    try:
        read = json.loads(given or "{}")
    except ValueError:
        return None
    return read if isinstance(read, dict) else None


_NO_OBJECT = Outcome("arguments: must be a JSON object", True)


def _refused(wrong: GatewayError) -> Outcome:
    if isinstance(wrong, Unauthenticated):
        raise wrong
    return Outcome(wrong.message, True)


def use(agent: Agent, tool: str, arguments: str | Mapping[str, Any]) -> Outcome:
    """Calls a tool for a model, with arguments as the model gave them.

    A refusal is told to the model, which may mend it. A gateway that is not reached, or takes the key no more, is an
    error of the program.

    >>> use(agent, "memory_learn", '{"content": ""}')
    Outcome(text='content: must have words, at most 65536 bytes', is_error=True)
    """
    read = _arguments(arguments)
    if read is None:
        return _NO_OBJECT
    try:
        return Outcome(agent.call(tool, read).text, False)
    except UsageError as wrong:
        return Outcome(str(wrong), True)
    except GatewayError as wrong:
        return _refused(wrong)


async def use_async(agent: AsyncAgent, tool: str, arguments: str | Mapping[str, Any]) -> Outcome:
    """The same for asyncio.

    >>> import asyncio
    >>> async def learn() -> Outcome:
    ...     async with AsyncAgent(*gateway_and_key, ca_file=ca_file) as agent:
    ...         return await use_async(agent, "memory_learn", "no JSON")
    >>> asyncio.run(learn())
    Outcome(text='arguments: must be a JSON object', is_error=True)
    """
    read = _arguments(arguments)
    if read is None:
        return _NO_OBJECT
    try:
        return Outcome((await agent.call(tool, read)).text, False)
    except UsageError as wrong:
        return Outcome(str(wrong), True)
    except GatewayError as wrong:
        return _refused(wrong)
