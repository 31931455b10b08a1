"""Working memory by key: an agent's own entries in the dialect of OpenIntent RFC-0015 (docs/openintent.md).

What is under way, such as how far a batch is: private to the agent, changed in place, and no former version is kept.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, TypedDict, Unpack
from urllib.parse import quote, urlencode

from .calls import Caller, repeated
from .errors import NotFound, Unreachable, UsageError
from .facts import State
from .flow import Flow, Request, Response, accepted
from .reading import read
from .wire import AsyncWire, Wire


@dataclass(frozen=True)
class Scope:
    """The task and the intent that an entry is bound to."""

    task_id: str | None = None
    intent_id: str | None = None


@dataclass(frozen=True)
class Entry:
    """An entry as it is."""

    id: str
    agent_id: str
    namespace: str
    key: str
    value: dict[str, Any]
    memory_type: str
    version: int
    tags: tuple[str, ...]
    scope: Scope
    created_at: str
    updated_at: str
    ttl: str | None = None
    expires_at: str | None = None


class Entered(TypedDict, total=False):
    """What `set` takes besides the value. What is left out stays as it is; the scope is that of a new entry."""

    tags: list[str]
    ttl: str | None
    expires_at: str | None
    scope: dict[str, str]


@dataclass(frozen=True)
class _Page:
    entries: tuple[Entry, ...]
    total: int


def _json(response: Response) -> Any:
    accepted(response)
    try:
        # A value is opaque: it may hold what our own documents may not, such as larger numbers.
        return json.loads(response.body)
    except (ValueError, RecursionError):
        raise Unreachable("the gateway's answer must be JSON") from None


@dataclass
class _Entries:
    """The steps, and the version of each entry that was seen last."""

    caller: Caller
    name: str | None = None
    seen: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)

    def _kept(self, entry: Entry) -> Entry:
        self.seen[entry.namespace, entry.key] = entry.id, entry.version
        return entry

    def _query(self, parameters: dict[str, str]) -> Flow[_Page]:
        if self.name is None:
            told = yield from self.caller.call("memory_status", {})
            self.name = read(State, told.structured).agent
        try:
            asked = urlencode({"agent_id": self.name, "memory_type": "working", **parameters}, quote_via=quote)
        except UnicodeEncodeError:
            raise UsageError("namespace and key must be text without lone surrogates", "key") from None
        request = self.caller.request("GET", f"/api/v1/memory?{asked}", None, {})
        return read(_Page, _json((yield from repeated(request, reads=True))))

    def get(self, namespace: str, key: str) -> Flow[Entry | None]:
        # A namespace that ends with * would be a prefix.
        page = yield from self._query({"namespace": namespace, "key": key})
        found = [entry for entry in page.entries if entry.namespace == namespace]
        if not found:
            self.seen.pop((namespace, key), None)
            return None
        return self._kept(found[0])

    def list(self, namespace: str) -> Flow[list[Entry]]:
        entries: list[Entry] = []
        while True:
            page = yield from self._query({"namespace": namespace, "limit": "1000", "offset": str(len(entries))})
            entries += [self._kept(entry) for entry in page.entries]
            if not page.entries or len(entries) >= page.total:
                return entries

    def set(self, namespace: str, key: str, value: dict[str, Any], version: int | None, more: Entered) -> Flow[Entry]:
        if (namespace, key) not in self.seen:
            yield from self.get(namespace, key)
        known = self.seen.get((namespace, key))
        if known is None and version is not None:
            raise NotFound(404, "not_found", "no entry of this namespace and key has a version", None)
        if known is None:
            new = {"namespace": namespace, "key": key, "value": value, "memory_type": "working", **more}
            request = self.caller.request("POST", "/api/v1/memory", new, {})
        else:
            change = {"value": value, **{name: member for name, member in more.items() if name != "scope"}}
            match = {"If-Match": str(known[1] if version is None else version)}
            request = self.caller.request("PATCH", f"/api/v1/memory/{known[0]}", change, match)
        return self._kept(read(Entry, _json((yield from self._written(request, namespace, key)))))

    def _written(self, request: Request, namespace: str, key: str) -> Flow[Response]:
        response = yield from repeated(request, reads=False)
        if response.status == 404:
            # It ended meanwhile: the next `set` makes it anew.
            self.seen.pop((namespace, key), None)
        return response

    def delete(self, namespace: str, key: str) -> Flow[bool]:
        entry = yield from self.get(namespace, key)
        if entry is None:
            return False
        request = self.caller.request("DELETE", f"/api/v1/memory/{entry.id}", None, {})
        self.seen.pop((namespace, key), None)
        try:
            accepted((yield from repeated(request, reads=False)))
        except NotFound:
            return False
        return True


class Working:
    """An agent's working memory, as `agent.working`.

    >>> entry = agent.working.set("invoices", "progress", {"total": 47, "completed": 23})
    >>> agent.working.get("invoices", "progress").value["completed"], entry.version
    (23, 1)
    """

    def __init__(self, caller: Caller, wire: Wire) -> None:
        """What an agent has."""
        self._entries = _Entries(caller)
        self._wire = wire

    def get(self, namespace: str, key: str) -> Entry | None:
        """The entry, or `None`.

        >>> agent.working.get("invoices", "nothing") is None
        True
        """
        return self._wire.run(self._entries.get(namespace, key))

    def set(
        self,
        namespace: str,
        key: str,
        value: dict[str, Any],
        *,
        version: int | None = None,
        **more: Unpack[Entered],
    ) -> Entry:
        """Writes an entry: a new one, or over the version that was seen here last.

        Where another program changed it since, it is a `Conflict`, whose `details` have `current` and
        `current_version`: `get` it again, or give the `version` that is to be replaced.

        >>> for done in (1, 2):
        ...     entry = agent.working.set("orders", "progress", {"completed": done}, tags=["batch"])
        >>> entry.version, entry.value, entry.tags
        (2, {'completed': 2}, ('batch',))
        """
        return self._wire.run(self._entries.set(namespace, key, value, version, more))

    def list(self, namespace: str) -> list[Entry]:
        """All entries of a namespace, or of all whose names begin as one that ends with `*`; the last change first.

        >>> for name in ("one", "two"):
        ...     _ = agent.working.set("tasks.today", name, {})
        >>> [entry.key for entry in agent.working.list("tasks.*")]
        ['two', 'one']
        """
        return self._wire.run(self._entries.list(namespace))

    def delete(self, namespace: str, key: str) -> bool:
        """Erases an entry; whether there was one.

        >>> _ = agent.working.set("drafts", "letter", {"text": "Dear Ann"})
        >>> agent.working.delete("drafts", "letter"), agent.working.delete("drafts", "letter")
        (True, False)
        """
        return self._wire.run(self._entries.delete(namespace, key))


class AsyncWorking:
    """The same for asyncio.

    >>> import asyncio
    >>> from oap_memory import AsyncAgent
    >>> async def work() -> dict[str, Any]:
    ...     async with AsyncAgent(*gateway_and_key, ca_file=ca_file) as agent:
    ...         return (await agent.working.set("letters", "progress", {"completed": 1})).value
    >>> asyncio.run(work())
    {'completed': 1}
    """

    def __init__(self, caller: Caller, wire: AsyncWire) -> None:
        """What an agent has."""
        self._entries = _Entries(caller)
        self._wire = wire

    async def get(self, namespace: str, key: str) -> Entry | None:
        """The entry, or `None`."""
        return await self._wire.run(self._entries.get(namespace, key))

    async def set(
        self,
        namespace: str,
        key: str,
        value: dict[str, Any],
        *,
        version: int | None = None,
        **more: Unpack[Entered],
    ) -> Entry:
        """Writes an entry: a new one, or over the version that was seen here last."""
        return await self._wire.run(self._entries.set(namespace, key, value, version, more))

    async def list(self, namespace: str) -> list[Entry]:
        """All entries of a namespace, or of all whose names begin as one that ends with `*`; the last change first."""
        return await self._wire.run(self._entries.list(namespace))

    async def delete(self, namespace: str, key: str) -> bool:
        """Erases an entry; whether there was one."""
        return await self._wire.run(self._entries.delete(namespace, key))
