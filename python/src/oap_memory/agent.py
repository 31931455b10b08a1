"""The owner's own agents: their memory, sync and async."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from .calls import Caller, Told
from .facts import (
    Compact,
    Compacted,
    Correct,
    Corrected,
    Diff,
    Differs,
    Explain,
    Explained,
    Forget,
    Forgotten,
    Learn,
    Learned,
    Link,
    Linked,
    Queried,
    Query,
    Recall,
    Recalled,
    State,
)
from .reading import read
from .wire import AsyncWire, Wire
from .working import AsyncWorking, Working

T = TypeVar("T")


class Agent:
    """An agent of the owner's, by its API key (`oap-memory agent add NAME` prints it once).

    A gateway refuses with a `GatewayError`: `InvalidInput` names the `field`; `NotFound`, `NotPermitted`, `Conflict`
    and so on say what it is. What changes nothing is asked again where the connection fails or the gateway is busy;
    what writes, only where it surely was not sent. Each answer leaves a receipt in the owner's log.

    >>> with Agent("https://memory.example.org", "hunter2") as agent:
    ...     agent.recall("tea")
    Traceback (most recent call last):
    oap_memory.errors.UsageError: api_key must be as `oap-memory agent add` printed it: oapk_ and 43 characters
    """

    def __init__(self, gateway: str, api_key: str, *, ca_file: str | None = None) -> None:
        """`gateway` is its origin; plain http is for loopback alone. `ca_file` is a further authority (PEM)."""
        self._caller = Caller(gateway, api_key)
        self._wire = Wire(ca_file=ca_file, local=True)
        self.working = Working(self._caller, self._wire)

    def _asked(self, shape: type[T], tool: str, arguments: Mapping[str, Any]) -> T:
        return read(shape, self.call(tool, arguments).structured)

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Told:
        """Calls a tool by its name, as a model does.

        >>> agent.call("memory_learn", {"content": "Ann is the designer"}).text.startswith("Remembered as mem_")
        True
        """
        return self._wire.run(self._caller.call(tool, arguments))

    def tools(self) -> list[dict[str, Any]]:
        """The definitions of the tools, as the gateway lists them (MCP's `tools/list`).

        >>> [tool["name"] for tool in agent.tools()][:2]
        ['memory_learn', 'memory_recall']
        """
        return self._wire.run(self._caller.tools())

    def learn(self, content: str, **more: Unpack[Learn]) -> Learned:
        """Writes something down: one statement that stands for itself.

        >>> learned = agent.learn("The site goes live in June", topic="website", confidence=0.9)
        >>> learned.level, learned.confidence, learned.needs_verification
        ('agent_inferred', 0.6, True)
        >>> agent.learn("Tea", confidence=1.5)
        Traceback (most recent call last):
        oap_memory.errors.InvalidInput: 400 invalid_input: ...
        """
        return self._asked(Learned, "memory_learn", {"content": content, **more})

    def correct(self, item_id: str, content: str, **more: Unpack[Correct]) -> Corrected:
        """Replaces what an item says; `version` is the one that is corrected, whichever is in force without it.

        `source` is where the new words come from: where the former ones came from says nothing of these.

        >>> learned = agent.learn("The logo is blue")
        >>> agent.correct(learned.item_id, "The logo is green", version=1).version
        2
        """
        return self._asked(Corrected, "memory_correct", {"item_id": item_id, "content": content, **more})

    def forget(self, item_id: str, **more: Unpack[Forget]) -> Forgotten:
        """Takes an item back; the owner can put it back until it is erased.

        >>> learned = agent.learn("The font is Garamond")
        >>> agent.forget(learned.item_id).item_id == learned.item_id
        True
        """
        return self._asked(Forgotten, "memory_forget", {"item_id": item_id, **more})

    def link(self, item_id: str, to: str, relationship: str, **more: Unpack[Link]) -> Linked:
        """Says how an item relates to another one, or to an address elsewhere (an absolute IRI).

        >>> rain, road = agent.learn("It rains"), agent.learn("The road is wet")
        >>> linked = agent.link(rain.item_id, road.item_id, "causes")
        >>> agent.explain(road.item_id).fact.links == (linked,)
        True
        """
        asked = {"item_id": item_id, "to": to, "relationship": relationship, **more}
        return self._asked(Linked, "memory_link", asked)

    def compact(self, **more: Unpack[Compact]) -> Compacted:
        """Says what would be tidied up; with the `plan` that this gives, has it done. Needs `memory.admin`.

        >>> agent.compact()
        Traceback (most recent call last):
        oap_memory.errors.NotPermitted: 403 policy_block: ...
        """
        return self._asked(Compacted, "memory_compact", more)

    def recall(self, query: str, **more: Unpack[Recall]) -> Recalled:
        """Searches by words, the best match first.

        >>> _ = agent.learn("Meetings are on Tuesday mornings")
        >>> [fact.content for fact in agent.recall("when are the meetings?").facts]
        ['Meetings are on Tuesday mornings']
        """
        return self._asked(Recalled, "memory_recall", {"query": query, **more})

    def query(self, **conditions: Unpack[Query]) -> Queried:
        """Lists by what items are, the newest first.

        >>> _ = agent.learn("Invoices go to Ben", topic="invoices")
        >>> [fact.content for fact in agent.query(topic="invoices").facts]
        ['Invoices go to Ben']
        """
        return self._asked(Queried, "memory_query", conditions)

    def pages(self, **conditions: Unpack[Query]) -> Iterator[Queried]:
        """All pages of `query`.

        >>> for name in ("Ann", "Ben"):
        ...     _ = agent.learn(f"{name} is in the team", topic="team")
        >>> [page.facts[0].content for page in agent.pages(topic="team", limit=1)]
        ['Ben is in the team', 'Ann is in the team']
        """
        asked = conditions.copy()
        while True:
            page = self.query(**asked)
            yield page
            if page.next is None:
                return
            asked["before"] = page.next

    def explain(self, item_id: str, **more: Unpack[Explain]) -> Explained:
        """Says where an item comes from, and what it said before; with `as_of`, as it was remembered then.

        >>> learned = agent.learn("The logo is red")
        >>> [step.event for step in agent.explain(learned.item_id).chain]
        ['capture']
        """
        return self._asked(Explained, "memory_explain", {"item_id": item_id, **more})

    def diff(self, since: str, **more: Unpack[Diff]) -> Differs:
        """Says what was learned, corrected and taken back since a time (RFC 3339, UTC).

        >>> agent.diff("2026-01-01T00:00:00Z", until="2026-01-02T00:00:00Z").learned
        ()
        """
        return self._asked(Differs, "memory_diff", {"since": since, **more})

    def status(self) -> State:
        """Says how much there is, by whom and about what.

        >>> agent.status().permission
        'memory.write'
        """
        return self._asked(State, "memory_status", {})

    def close(self) -> None:
        """Closes the connections.

        >>> Agent("https://memory.example.org", "oapk_" + "A" * 43).close()
        """
        self._wire.close()

    def __enter__(self) -> Self:
        """The agent itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the connections."""
        self.close()


class AsyncAgent:
    """The same for asyncio.

    >>> import asyncio
    >>> async def ask() -> None:
    ...     async with AsyncAgent("https://memory.example.org", "hunter2") as agent:
    ...         await agent.recall("tea")
    >>> asyncio.run(ask())
    Traceback (most recent call last):
    oap_memory.errors.UsageError: api_key must be as `oap-memory agent add` printed it: oapk_ and 43 characters
    """

    def __init__(self, gateway: str, api_key: str, *, ca_file: str | None = None) -> None:
        """As those of `Agent`."""
        self._caller = Caller(gateway, api_key)
        self._wire = AsyncWire(ca_file=ca_file, local=True)
        self.working = AsyncWorking(self._caller, self._wire)

    async def _asked(self, shape: type[T], tool: str, arguments: Mapping[str, Any]) -> T:
        return read(shape, (await self.call(tool, arguments)).structured)

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Told:
        """Calls a tool by its name, as a model does."""
        return await self._wire.run(self._caller.call(tool, arguments))

    async def tools(self) -> list[dict[str, Any]]:
        """The definitions of the tools, as the gateway lists them (MCP's `tools/list`)."""
        return await self._wire.run(self._caller.tools())

    async def learn(self, content: str, **more: Unpack[Learn]) -> Learned:
        """Writes something down: one statement that stands for itself."""
        return await self._asked(Learned, "memory_learn", {"content": content, **more})

    async def correct(self, item_id: str, content: str, **more: Unpack[Correct]) -> Corrected:
        """Replaces what an item says; `version` is the one that is corrected, whichever is in force without it."""
        return await self._asked(Corrected, "memory_correct", {"item_id": item_id, "content": content, **more})

    async def forget(self, item_id: str, **more: Unpack[Forget]) -> Forgotten:
        """Takes an item back; the owner can put it back until it is erased."""
        return await self._asked(Forgotten, "memory_forget", {"item_id": item_id, **more})

    async def link(self, item_id: str, to: str, relationship: str, **more: Unpack[Link]) -> Linked:
        """Says how an item relates to another one, or to an address elsewhere (an absolute IRI)."""
        asked = {"item_id": item_id, "to": to, "relationship": relationship, **more}
        return await self._asked(Linked, "memory_link", asked)

    async def compact(self, **more: Unpack[Compact]) -> Compacted:
        """Says what would be tidied up; with the `plan` that this gives, has it done. Needs `memory.admin`."""
        return await self._asked(Compacted, "memory_compact", more)

    async def recall(self, query: str, **more: Unpack[Recall]) -> Recalled:
        """Searches by words, the best match first."""
        return await self._asked(Recalled, "memory_recall", {"query": query, **more})

    async def query(self, **conditions: Unpack[Query]) -> Queried:
        """Lists by what items are, the newest first."""
        return await self._asked(Queried, "memory_query", conditions)

    async def pages(self, **conditions: Unpack[Query]) -> AsyncIterator[Queried]:
        """All pages of `query`."""
        asked = conditions.copy()
        while True:
            page = await self.query(**asked)
            yield page
            if page.next is None:
                return
            asked["before"] = page.next

    async def explain(self, item_id: str, **more: Unpack[Explain]) -> Explained:
        """Says where an item comes from, and what it said before; with `as_of`, as it was remembered then."""
        return await self._asked(Explained, "memory_explain", {"item_id": item_id, **more})

    async def diff(self, since: str, **more: Unpack[Diff]) -> Differs:
        """Says what was learned, corrected and taken back since a time (RFC 3339, UTC)."""
        return await self._asked(Differs, "memory_diff", {"since": since, **more})

    async def status(self) -> State:
        """Says how much there is, by whom and about what."""
        return await self._asked(State, "memory_status", {})

    async def close(self) -> None:
        """Closes the connections."""
        await self._wire.close()

    async def __aenter__(self) -> Self:
        """The agent itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the connections."""
        await self.close()
