"""The client that OpenIntent's RFC-0015 describes ("SDK Semantics") and its own package lacks: `client.memory`.

Versions are tracked: what was got or set last is what the next `set` replaces, and where another program changed it
since, `MemoryConflictError` has what is there. Fields and rules are in docs/openintent.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote, urlencode

from .calls import Caller, repeated
from .errors import Conflict, GatewayError, NotFound, NotPermitted, TooMany, UsageError
from .facts import State
from .flow import Flow, Response
from .reading import read
from .wire import Wire
from .working import Entry, _json, _Page

T = TypeVar("T")

MOST = 1000
"""Most entries of one `query`."""
_CHANGES = ("tags", "ttl", "expires_at", "pinned", "priority", "sensitivity")


class MemoryConflictError(Conflict):
    """409: another version is there by now.

    >>> error = MemoryConflictError(409, "conflict", "", None, {"current_version": 2, "current": {"value": {"n": 1}}})
    >>> error.current_version, error.current_value
    (2, {'n': 1})
    """

    @property
    def current_version(self) -> int | None:
        """The version that is there, where it may be seen."""
        return self.details.get("current_version")

    @property
    def current_value(self) -> dict[str, Any] | None:
        """What it says."""
        return (self.details.get("current") or {}).get("value")


class MemoryCapacityError(TooMany):
    """429: no room for one more.

    >>> error = MemoryCapacityError(429, "capacity_exceeded", "", None, {"current_count": 1, "max_capacity": 1})
    >>> error.current_count, error.max_capacity
    (1, 1)
    """

    @property
    def current_count(self) -> int | None:
        """How many there are."""
        return self.details.get("current_count")

    @property
    def max_capacity(self) -> int | None:
        """How many there may be."""
        return self.details.get("max_capacity")


class MemoryAccessError(NotPermitted):
    """403: the agent may not."""


class MemoryNotFoundError(NotFound):
    """404: not there, or not to be seen."""


_KINDS: dict[int, type[GatewayError]] = {
    403: MemoryAccessError,
    404: MemoryNotFoundError,
    409: MemoryConflictError,
}


def _as_memory(error: GatewayError) -> GatewayError:
    kind = _KINDS.get(error.status)
    if error.code == "capacity_exceeded":
        kind = MemoryCapacityError
    if kind is None:
        return error
    said = kind(error.status, error.code, error.message, error.request_id, error.details)
    said.retry_after = error.retry_after
    return said


@dataclass
class _Steps:
    """What is asked, and the version of each entry that was seen last."""

    caller: Caller
    name: str | None = None
    seen: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)

    def _self(self) -> Flow[str]:
        if self.name is None:
            told = yield from self.caller.call("memory_status", {})
            self.name = read(State, told.structured).agent
        return self.name

    def _kept(self, entry: Entry) -> Entry:
        self.seen[entry.namespace, entry.key] = entry.id, entry.version
        return entry

    def query(self, parameters: dict[str, str]) -> Flow[list[Entry]]:
        if not parameters.keys() & {"agent_id", "scope.task_id"} and parameters.get("memory_type") != "semantic":
            parameters = {"agent_id": (yield from self._self()), **parameters}
        try:
            asked = urlencode(parameters, quote_via=quote)
        except UnicodeEncodeError:
            raise UsageError("what is asked for must be text without lone surrogates") from None
        request = self.caller.request("GET", f"/api/v1/memory?{asked}", None, {})
        return list(read(_Page, _json((yield from repeated(request, reads=True)))).entries)

    def get(self, namespace: str, key: str) -> Flow[Entry | None]:
        # Its own first; else what is shared.
        for parameters in ({}, {"memory_type": "semantic"}):
            found = yield from self.query({"namespace": namespace, "key": key, **parameters})
            for entry in found:
                # A namespace that ends with * would be a prefix.
                if entry.namespace == namespace:
                    return self._kept(entry)
        self.seen.pop((namespace, key), None)
        return None

    def set(
        self, namespace: str, key: str, value: dict[str, Any], tier: str, version: int | None, more: dict[str, Any]
    ) -> Flow[Entry]:
        if (namespace, key) not in self.seen:
            yield from self.get(namespace, key)
        known = self.seen.get((namespace, key))
        if known is None:
            new = {"namespace": namespace, "key": key, "value": value, "memory_type": tier, **more}
            request = self.caller.request("POST", "/api/v1/memory", new, {})
        else:
            change = {"value": value, **{name: more[name] for name in _CHANGES if name in more}}
            match = {"If-Match": str(known[1] if version is None else version)}
            request = self.caller.request("PATCH", f"/api/v1/memory/{known[0]}", change, match)
        response: Response = yield from repeated(request, reads=False)
        if response.status == 404:
            self.seen.pop((namespace, key), None)
        return self._kept(read(Entry, _json(response)))

    def delete(self, namespace: str, key: str) -> Flow[bool]:
        entry = yield from self.get(namespace, key)
        if entry is None:
            return False
        self.seen.pop((namespace, key), None)
        request = self.caller.request("DELETE", f"/api/v1/memory/{entry.id}", None, {})
        _json((yield from repeated(request, reads=False)))
        return True


class Memory:
    """`client.memory`.

    >>> _ = client.memory.set("invoices", "state", {"total": 47, "completed": 23}, tags=["batch"])
    >>> client.memory.get("invoices", "state")
    {'total': 47, 'completed': 23}
    """

    def __init__(self, steps: _Steps, wire: Wire) -> None:
        """What a client has."""
        self._steps = steps
        self._wire = wire

    def _run(self, flow: Flow[T]) -> T:
        try:
            return self._wire.run(flow)
        except GatewayError as error:
            raise _as_memory(error) from None

    def get(self, namespace: str, key: str) -> dict[str, Any] | None:
        """The value, or `None`: of the agent's own entry, else of a semantic one."""
        entry = self._run(self._steps.get(namespace, key))
        return None if entry is None else entry.value

    def set(
        self,
        namespace: str,
        key: str,
        value: dict[str, Any],
        *,
        memory_type: str = "working",
        version: int | None = None,
        **more: Any,
    ) -> Entry:
        """Writes an entry: a new one, or over the version that was seen last, or over `version`.

        `more` is `tags`, `ttl`, `expires_at`, `pinned`, `priority`, `sensitivity`; of a new entry `scope` too.
        """
        return self._run(self._steps.set(namespace, key, value, memory_type, version, more))

    def query(
        self,
        namespace: str | None = None,
        *,
        tags: list[str] | None = None,
        memory_type: str | None = None,
        task_id: str | None = None,
        limit: int = 100,
    ) -> list[Entry]:
        """Entries that have all the tags, the last change first: at most `limit`, which is at most 1000.

        >>> _ = client.memory.set("invoices", "batch-2", {}, tags=["open"])
        >>> [entry.key for entry in client.memory.query("invoices", tags=["open"], memory_type="working")]
        ['batch-2']
        """
        if not 1 <= limit <= MOST:
            raise UsageError(f"limit must be 1 to {MOST}", "limit")
        given = {"namespace": namespace, "memory_type": memory_type, "scope.task_id": task_id, "limit": str(limit)}
        if tags:
            given["tags"] = ",".join(tags)
        return self._run(self._steps.query({name: value for name, value in given.items() if value is not None}))

    def delete(self, namespace: str, key: str) -> bool:
        """Erases an entry; whether there was one."""
        return self._run(self._steps.delete(namespace, key))


class Client:
    """A gateway's memory, for an agent with its API key.

    >>> with Client(*gateway_and_key, ca_file=ca_file) as other:
    ...     other.memory.get("nothing", "here") is None
    True
    """

    def __init__(self, server_url: str, api_key: str, *, ca_file: str | None = None) -> None:
        """`ca_file` is a certificate authority that is trusted in place of the usual ones."""
        self._wire = Wire(ca_file=ca_file, local=True)
        self.memory = Memory(_Steps(Caller(server_url, api_key)), self._wire)

    def close(self) -> None:
        """Closes the connections.

        >>> Client("https://memory.example.org", "oapk_" + "A" * 43).close()
        """
        self._wire.close()

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the connections."""
        self.close()
