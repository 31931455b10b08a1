"""How each memory is spoken to."""

import asyncio
import collections
import itertools
import json
import re
import time
from typing import Any

from mcp import Client

OURS = "oap-memory"
IDENTITY_SCOPE_PROOF_RECEIPT = (True, True, True, True)
NONE_OF_THEM = (False, False, False, False)
IDLE = 4
"""Seconds after which a connection is made anew: the gateway closes one that is still for ten."""
TITLE = re.compile(r"turn[ -](\d{5})")


def title(number: int) -> str:
    """What a turn is called, where it needs a name."""
    return f"turn {number:05}"


class Connection:
    """HTTP/1.1 over one connection that stays: a client that takes as little of the machine as can be."""

    def __init__(self, port: int, key: str) -> None:
        self.port = port
        self.head = (
            f"POST /oap/agent/call HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {key}\r\n".encode()
        )
        self.way: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self.used = 0.0

    async def call(self, tool: str, **arguments: Any) -> Any:
        """What a tool answers for programs."""
        if self.way and time.monotonic() - self.used > IDLE:
            self.way[1].close()
            self.way = None
        if not self.way:
            self.way = await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = self.way
        body = json.dumps({"tool": tool, "arguments": arguments}).encode()
        writer.write(self.head + b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = re.search(rb"\r\ncontent-length: (\d+)", head)
        assert length, head
        answer = json.loads(await reader.readexactly(int(length[1])))
        assert head.startswith(b"http/1.1 200"), answer
        self.used = time.monotonic()
        return answer["structured"]


class Ours:
    """This gateway, however it is reached."""

    columns = IDENTITY_SCOPE_PROOF_RECEIPT

    def __init__(self) -> None:
        self.turns: dict[str, int] = {}

    async def call(self, tool: str, **arguments: Any) -> Any:
        """What a tool answers for programs."""
        raise NotImplementedError

    async def add(self, number: int, text: str) -> None:
        """`memory_learn`."""
        learned = await self.call("memory_learn", content=text, kind="conversation_turn", topic="locomo")
        self.turns[learned["item_id"]] = number

    async def search(self, question: str) -> list[int]:
        """`memory_recall`."""
        recalled = await self.call("memory_recall", query=question, limit=10)
        return [self.turns[fact["item_id"]] for fact in recalled["facts"]]


class OurGateway(Ours):
    """Agents with API keys, over HTTP: `POST /oap/agent/call`. They take turns: each may only ask so often a minute."""

    def __init__(self, port: int, keys: list[str], callers: int) -> None:
        super().__init__()
        self.name, self.callers = f"{OURS}, HTTP", callers
        each = itertools.islice(itertools.cycle(keys), max(callers, len(keys)))
        self.free = collections.deque(Connection(port, key) for key in each)

    async def call(self, tool: str, **arguments: Any) -> Any:
        """By the connection that was free for longest."""
        connection = self.free.popleft()
        answer = await connection.call(tool, **arguments)
        self.free.append(connection)
        return answer


class OverMcp:
    """A memory that is a server of MCP, over standard input and output."""

    callers = 1

    def __init__(self, client: Client) -> None:
        self.client = client

    async def call(self, tool: str, **arguments: Any) -> Any:
        """What a tool answers for programs."""
        answer = await self.client.call_tool(tool, arguments)
        assert not answer.is_error, answer
        return answer.structured_content


class OurMcp(OverMcp, Ours):
    """As an assistant starts it."""

    name = f"{OURS}, MCP"

    def __init__(self, client: Client) -> None:
        OverMcp.__init__(self, client)
        Ours.__init__(self)


class BasicMemory(OverMcp):
    """A note for each turn."""

    columns = NONE_OF_THEM

    def __init__(self, client: Client, version: str) -> None:
        super().__init__(client)
        self.name = f"basic-memory {version}, MCP"

    async def add(self, number: int, text: str) -> None:
        """`write_note`."""
        await self.call("write_note", title=title(number), content=text, directory="locomo", output_format="json")

    async def search(self, question: str) -> list[int]:
        """`search_notes`; a question with a mark in it is syntax to its index."""
        words = " ".join(re.findall(r"\w+", question))
        found = (await self.call("search_notes", query=words, page_size=10, output_format="json"))["result"]["results"]
        return [int(name[1]) for one in found if (name := TITLE.search(one["title"]))]


class ServerMemory(OverMcp):
    """An entity for each turn, with one observation."""

    columns = NONE_OF_THEM

    def __init__(self, client: Client, version: str) -> None:
        super().__init__(client)
        self.name = f"server-memory {version}, MCP"

    async def add(self, number: int, text: str) -> None:
        """`create_entities`."""
        entity = {"name": title(number), "entityType": "conversation_turn", "observations": [text]}
        await self.call("create_entities", entities=[entity])

    async def search(self, question: str) -> list[int]:
        """`search_nodes`: what has the question in it, letter by letter."""
        found = (await self.call("search_nodes", query=question))["entities"]
        return [int(TITLE.search(one["name"])[1]) for one in found]


class Mem0:
    """The library, in a process of its own (mem0_side.py), one call at a time."""

    callers, columns = 1, NONE_OF_THEM

    def __init__(self, process: asyncio.subprocess.Process, version: str) -> None:
        self.name, self.process = f"mem0 {version}, library", process

    async def _ask(self, what: dict[str, Any]) -> Any:
        self.process.stdin.write(json.dumps(what).encode() + b"\n")
        return json.loads(await self.process.stdout.readline())

    async def add(self, number: int, text: str) -> None:
        """`Memory.add(..., infer=False)`."""
        await self._ask({"add": text, "number": number})

    async def search(self, question: str) -> list[int]:
        """`Memory.search(..., top_k=10)`."""
        return await self._ask({"search": question})
