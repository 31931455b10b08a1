"""The memory tools for Anthropic's API.

The package `anthropic` is needed for its types alone. Uses of tools that are not the memory's are passed over: they are
the caller's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..agent import Agent, AsyncAgent
from ..tools import Outcome, definitions, names, use, use_async

if TYPE_CHECKING:
    from anthropic.types import Message, ToolParam, ToolResultBlockParam


def tools() -> list[ToolParam]:
    """For `messages.create(tools=...)`.

    >>> tools()[0]["name"]
    'memory_learn'
    """
    return [
        {"name": tool["name"], "description": tool["description"], "input_schema": tool["inputSchema"]}
        for tool in definitions()
    ]


def _uses(message: Message) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (block.id, block.name, dict(block.input))
        for block in message.content
        if block.type == "tool_use" and block.name in names()
    ]


def _result(use_id: str, outcome: Outcome) -> ToolResultBlockParam:
    return {
        "type": "tool_result",
        "tool_use_id": use_id,
        "content": outcome.text,
        "is_error": outcome.is_error,
    }


def answers(agent: Agent, message: Message) -> list[ToolResultBlockParam]:
    """Does what a message asks of the memory; the content of the `user` message that answers it.

    >>> from anthropic.types import ToolUseBlock
    >>> from types import SimpleNamespace as Of
    >>> block = ToolUseBlock(id="1", type="tool_use", name="memory_recall", input={"query": "tea", "limit": 0})
    >>> answers(agent, Of(content=[block]))[0]["content"]
    'limit: must be 1 to 100'
    """
    return [_result(use_id, use(agent, name, given)) for use_id, name, given in _uses(message)]


async def answers_async(agent: AsyncAgent, message: Message) -> list[ToolResultBlockParam]:
    """The same for asyncio, one use after the other.

    >>> import asyncio
    >>> from types import SimpleNamespace as Of
    >>> async def talk() -> list[ToolResultBlockParam]:
    ...     async with AsyncAgent(*gateway_and_key, ca_file=ca_file) as agent:
    ...         return await answers_async(agent, Of(content=[]))
    >>> asyncio.run(talk())
    []
    """
    return [_result(use_id, await use_async(agent, name, given)) for use_id, name, given in _uses(message)]
