"""An agent's requests: a call of a memory tool, the list of them (protocol section 10). Flows, as in `flow`.

A tool is called by `POST /oap/agent/call`, which is `/mcp` but for the refusals: those have a status and a code here,
and in MCP words alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .errors import Unreachable, UsageError
from .flow import Flow, Request, Response, read_json
from .reading import read

PAUSES = (0.25, 1.0, 4.0)
"""Seconds before each further attempt of a request that may be repeated."""
LONGEST = 10
"""Seconds that a gateway may ask to wait (`Retry-After`) before such an attempt; beyond it the error says how long."""
MCP = "2026-07-28"
"""The revision of MCP that is spoken: it knows no session and no handshake."""

_KEY = re.compile(r"oapk_[A-Za-z0-9_-]{43}")
_READS = frozenset({"memory_recall", "memory_query", "memory_explain", "memory_diff", "memory_status"})
_BUSY = frozenset({503, 504})


@dataclass(frozen=True)
class Told:
    """What a tool answers: `structured` for programs, `text` for models, with each item in an element of its own."""

    structured: dict[str, Any]
    text: str


@dataclass(frozen=True)
class _Result:
    tools: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class _Listed:
    id: int
    result: _Result


@dataclass(frozen=True)
class Caller:
    """Which gateway, and the API key of the agent."""

    gateway: str
    api_key: str = field(repr=False)

    def __post_init__(self) -> None:
        """Checks the key: what is none is not sent anywhere."""
        if not isinstance(self.gateway, str):
            raise UsageError("gateway must be an address: https://memory.example.org", "gateway")
        if not isinstance(self.api_key, str) or not _KEY.fullmatch(self.api_key):
            raise UsageError("api_key must be as `oap-memory agent add` printed it: oapk_ and 43 characters", "api_key")

    def request(self, method: str, path: str, body: Any, headers: Mapping[str, str]) -> Request:
        """A request with the key; a body of `None` is none."""
        told = {"Authorization": "Bearer " + self.api_key, **headers}
        data = None
        if body is not None:
            told["Content-Type"] = "application/json"
            try:
                data = json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
            except (TypeError, ValueError):
                raise UsageError("what is sent must be JSON") from None
        return Request(method, self.gateway.rstrip("/") + path, told, data)

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Flow[Told]:
        """Calls a tool. An argument that is `None` is left out."""
        if not isinstance(arguments, Mapping):
            raise UsageError("arguments must be an object", "arguments")
        given = {name: value for name, value in arguments.items() if value is not None}
        request = self.request("POST", "/oap/agent/call", {"tool": tool, "arguments": given}, {})
        response = yield from repeated(request, reads=tool in _READS)
        return read(Told, read_json(response))

    def tools(self) -> Flow[list[dict[str, Any]]]:
        """The definitions of the tools, by MCP's `tools/list`."""
        about = {
            "io.modelcontextprotocol/protocolVersion": MCP,
            "io.modelcontextprotocol/clientInfo": {"name": "oap-memory-py", "version": "0.1.0"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": about}}
        headers = {
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": MCP,
            "Mcp-Method": "tools/list",
        }
        response = yield from repeated(self.request("POST", "/mcp", asked, headers), reads=True)
        return list(read(_Listed, read_json(response)).result.tools)


def repeated(request: Request, *, reads: bool) -> Flow[Response]:
    """Sends what may be sent again until it is answered: what changes nothing, and what surely was not sent.

    >>> flow = repeated(Request("GET", "https://memory.example.org"), reads=True)
    >>> next(flow).after, flow.send(Response(503, b"")).after, flow.send(Response(429, b"", retry_after=3)).after
    (0.0, 0.25, 3)
    """
    for pause in PAUSES:
        asked: float = 0
        try:
            response = yield request
        except Unreachable as wrong:
            if not (wrong.passing and (reads or not wrong.sent)):
                raise
        else:
            if not (reads and _passes(response)):
                return response
            asked = response.retry_after or 0
        request = replace(request, after=max(pause, asked))
    return (yield request)


def _passes(response: Response) -> bool:
    """Whether the same may be answered soon. A budget that is spent has no `Retry-After`."""
    if response.retry_after is None:
        return response.status in _BUSY
    return response.status in _BUSY | {429} and response.retry_after <= LONGEST
