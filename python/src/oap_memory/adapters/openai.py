"""The memory tools for OpenAI's API, by chat completions and by responses, and for whatever speaks the same.

The package `openai` is needed for its types alone. Calls of tools that are not the memory's are passed over: they are
the caller's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..agent import Agent, AsyncAgent
from ..tools import definitions, names, use, use_async

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletionFunctionToolParam, ChatCompletionMessage, ChatCompletionToolMessageParam
    from openai.types.responses import FunctionToolParam, Response
    from openai.types.responses.response_input_item_param import FunctionCallOutput


def chat_tools() -> list[ChatCompletionFunctionToolParam]:
    """For `chat.completions.create(tools=...)`.

    >>> chat_tools()[0]["function"]["name"]
    'memory_learn'
    """
    return [
        {
            "type": "function",
            "function": {
                "name": tool["name"],
                "description": tool["description"],
                "parameters": tool["inputSchema"],
            },
        }
        for tool in definitions()
    ]


def _chat_calls(message: ChatCompletionMessage) -> list[tuple[str, str, str]]:
    calls = []
    for call in message.tool_calls or ():
        if call.type == "function" and call.function.name in names():
            calls.append((call.id, call.function.name, call.function.arguments))
    return calls


def chat_answers(agent: Agent, message: ChatCompletionMessage) -> list[ChatCompletionToolMessageParam]:
    """Does what a message asks of the memory; the messages that answer it.

    >>> from openai.types.chat import ChatCompletionMessage
    >>> call = {"id": "1", "type": "function", "function": {"name": "memory_status", "arguments": "{}"}}
    >>> message = ChatCompletionMessage.model_validate({"role": "assistant", "tool_calls": [call]})
    >>> chat_answers(agent, message)[0]["content"]
    'You are scout and may do memory.write. ...'
    """
    return [
        {"role": "tool", "tool_call_id": call, "content": use(agent, name, arguments).text}
        for call, name, arguments in _chat_calls(message)
    ]


async def chat_answers_async(agent: AsyncAgent, message: ChatCompletionMessage) -> list[ChatCompletionToolMessageParam]:
    """The same for asyncio, one call after the other.

    >>> import asyncio
    >>> from openai.types.chat import ChatCompletionMessage
    >>> async def talk() -> list[ChatCompletionToolMessageParam]:
    ...     async with AsyncAgent(*gateway_and_key, ca_file=ca_file) as agent:
    ...         return await chat_answers_async(agent, ChatCompletionMessage(role="assistant", content="Hello"))
    >>> asyncio.run(talk())
    []
    """
    return [
        {"role": "tool", "tool_call_id": call, "content": (await use_async(agent, name, arguments)).text}
        for call, name, arguments in _chat_calls(message)
    ]


def response_tools() -> list[FunctionToolParam]:
    """For `responses.create(tools=...)`.

    >>> response_tools()[1]["name"]
    'memory_recall'
    """
    return [
        {
            "type": "function",
            "name": tool["name"],
            "description": tool["description"],
            "parameters": tool["inputSchema"],
            # Strict schemas have no optional members.
            "strict": False,
        }
        for tool in definitions()
    ]


def _response_calls(response: Response) -> list[tuple[str, str, str]]:
    calls = []
    for call in response.output:
        if call.type == "function_call" and call.name in names():
            calls.append((call.call_id, call.name, call.arguments))
    return calls


def response_answers(agent: Agent, response: Response) -> list[FunctionCallOutput]:
    """Does what a response asks of the memory; the input items that answer it.

    >>> from types import SimpleNamespace as Of
    >>> call = Of(type="function_call", call_id="1", name="memory_recall", arguments='{"query": "tea", "limit": 0}')
    >>> response_answers(agent, Of(output=[call]))
    [{'type': 'function_call_output', 'call_id': '1', 'output': 'limit: must be 1 to 100'}]
    """
    return [
        {"type": "function_call_output", "call_id": call, "output": use(agent, name, arguments).text}
        for call, name, arguments in _response_calls(response)
    ]


async def response_answers_async(agent: AsyncAgent, response: Response) -> list[FunctionCallOutput]:
    """The same for asyncio, one call after the other.

    >>> import asyncio
    >>> from types import SimpleNamespace as Of
    >>> async def talk() -> list[FunctionCallOutput]:
    ...     async with AsyncAgent(*gateway_and_key, ca_file=ca_file) as agent:
    ...         return await response_answers_async(agent, Of(output=[]))
    >>> asyncio.run(talk())
    []
    """
    return [
        {"type": "function_call_output", "call_id": call, "output": (await use_async(agent, name, arguments)).text}
        for call, name, arguments in _response_calls(response)
    ]
