"""The grantee's client, sync and async."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Self, TypedDict, Unpack

from .canonical import Json
from .documents import Documents
from .errors import UsageError
from .form import KIND, fits
from .grantee import Answer, Bundle, Grantee
from .keyfile import PrivateKey
from .wire import AsyncWire, Wire

MAX_PAGES = 10_000
"""Pages that `pages` follows at most."""


class Conditions(TypedDict, total=False):
    """What `pages` takes besides the words, as `query` does."""

    max_results: int | None
    kinds: Sequence[str] | None
    labels_any: Sequence[str] | None
    min_confidence: float | None
    purpose: str | None
    cursor: str | None
    include_embeddings: bool


def _query(
    text: str,
    max_results: int | None,
    kinds: Sequence[str] | None,
    labels_any: Sequence[str] | None,
    min_confidence: float | None,
    purpose: str | None,
    cursor: str | None,
    *,
    include_embeddings: bool,
) -> dict[str, Any]:
    """The members of a query (docs/bytes.md 4.5), within their bounds."""
    if not isinstance(text, str) or len(text.encode("utf-8", "replace")) > 4096:
        raise UsageError("query must be a text, of 4096 bytes at most", "query")
    if max_results is not None and not (isinstance(max_results, int) and 1 <= max_results <= 100):
        raise UsageError("max_results must be from 1 to 100", "max_results")
    if isinstance(kinds, str) or any(not fits(KIND, kind) for kind in kinds or ()):
        raise UsageError("kinds must be a list of kinds of items", "kinds")
    if isinstance(labels_any, str) or any(not isinstance(label, str) for label in labels_any or ()):
        raise UsageError("labels_any must be a list of texts", "labels_any")
    if min_confidence is not None and not (isinstance(min_confidence, int | float) and 0 <= min_confidence <= 1):
        raise UsageError("min_confidence must be from 0 to 1", "min_confidence")
    return {
        "query": text,
        "max_results": max_results,
        "kinds": None if kinds is None else list(kinds),
        "labels_any": None if labels_any is None else list(labels_any),
        "min_confidence": min_confidence,
        "purpose": purpose,
        "cursor": cursor,
        "include_embeddings": True if include_embeddings else None,
    }


def _grantee(
    grant: Json,
    key: PrivateKey,
    ancestors: Sequence[Json],
    documents: Documents | Iterable[Json],
    gateway: str | None,
    *,
    local: bool,
) -> Grantee:
    if not isinstance(key, PrivateKey):
        raise UsageError("key must be a PrivateKey, as PrivateKey.load reads it", "key")
    known = documents if isinstance(documents, Documents) else Documents(documents)
    return Grantee(grant, key, ancestors, known, gateway, local)


class Client:
    """Asks under one grant, and verifies what comes back: what does not hold is `Refused`.

    What a gateway refuses is a `GatewayError`: `NotPermitted` where the grant is not in force, `TooMany` where requests
    or a budget are used up. Nothing is asked again by itself, for each question costs of the budget.

    >>> with Client(grant, key, ca_file=ca_file, allow_local_dids=True) as client:
    ...     client.query("preferred meeting times").texts
    ['Meetings on Tuesday mornings, write to [email]']
    >>> with Client({"grant_id": "mgr_1"}, key) as client:
    ...     client.query("preferred meeting times")
    Traceback (most recent call last):
    oap_memory.errors.Refused: grant.document: /granter must be there
    """

    def __init__(
        self,
        grant: Json,
        key: PrivateKey,
        *,
        ancestors: Sequence[Json] = (),
        documents: Documents | Iterable[Json] = (),
        gateway: str | None = None,
        ca_file: str | None = None,
        allow_local_dids: bool = False,
    ) -> None:
        """`grant` as its granter handed it over; `ancestors` are the grants above a delegated one, the first one first.

        `gateway` is needed only where the grant does not lead to it. `ca_file` is a further authority (PEM).
        `allow_local_dids` is for development: private addresses, and plain http on loopback.
        """
        self._grantee = _grantee(grant, key, ancestors, documents, gateway, local=allow_local_dids)
        self._wire = Wire(ca_file=ca_file, local=allow_local_dids)

    def query(
        self,
        text: str = "",
        *,
        max_results: int | None = None,
        kinds: Sequence[str] | None = None,
        labels_any: Sequence[str] | None = None,
        min_confidence: float | None = None,
        purpose: str | None = None,
        cursor: str | None = None,
        include_embeddings: bool = False,
    ) -> Answer:
        """Asks; without words the newest items are listed.

        >>> client.query("when is the tea?").texts
        ['Tea at nine']
        >>> client.query("tea", max_results=500)
        Traceback (most recent call last):
        oap_memory.errors.UsageError: max_results must be from 1 to 100
        """
        asked = _query(
            text,
            max_results,
            kinds,
            labels_any,
            min_confidence,
            purpose,
            cursor,
            include_embeddings=include_embeddings,
        )
        return self._wire.run(self._grantee.query(asked))

    def pages(self, text: str = "", **conditions: Unpack[Conditions]) -> Iterator[Answer]:
        """All pages of an answer; `conditions` are those of `query`, and a `cursor` is where it begins.

        >>> [len(page.items) for page in client.pages(max_results=2)]
        [2, 1]
        """
        asked = conditions.copy()
        for _ in range(MAX_PAGES):
            answer = self.query(text, **asked)
            yield answer
            if answer.next_cursor is None:
                return
            asked["cursor"] = answer.next_cursor

    def export(self) -> Bundle:
        """Fetches everything that the grant shows; the grant must allow exports.

        >>> len(client.export().items)
        3
        """
        return self._wire.run(self._grantee.export())

    def audit(self, *, since: str | None = None, limit: int | None = None) -> list[dict[str, Any]]:
        """The receipts of the granter's log that name the grantee, newest first.

        >>> _ = client.query("tea")
        >>> client.audit(limit=1)[0]["action_id"]
        'memory.query'
        """
        return self._wire.run(self._grantee.audit({"since": since, "limit": limit}))

    def ack(self, receipt: dict[str, Any]) -> dict[str, Any]:
        """Countersigns a receipt, and returns the joint one.

        >>> joint = client.ack(client.query("tea").wire["receipt"])
        >>> [signature["by"] == key.kid for signature in joint["signatures"]]
        [False, True]
        """
        return self._wire.run(self._grantee.ack(receipt))

    def state(self) -> str:
        """What the gateway says of the grant: `draft`, `active`, `expired` or `revoked`.

        >>> client.state()
        'active'
        """
        return self._wire.run(self._grantee.state())

    def revoked(self) -> bool:
        """Whether the granter's status list marks the grant as revoked.

        >>> client.revoked()
        False
        """
        return self._wire.run(self._grantee.revoked())

    def authorization(self, method: str, url: str) -> dict[str, str]:
        """The headers of one request under the grant that another program sends, such as a message to `/mcp`.

        They are the token and a fresh proof, which counts once. They are for the grant's own gateway: whoever is sent
        them has the token.

        >>> sorted(client.authorization("POST", "https://memory.example.org/mcp"))
        ['Authorization', 'DPoP']
        """
        return self._wire.run(self._grantee.authorization(method, url))

    def manifest(self) -> dict[str, Any]:
        """The granter's memory manifest.

        >>> client.manifest()["memory_exchange"]["max_grant_duration_days"]
        180
        """
        return self._wire.run(self._grantee.discover())

    def close(self) -> None:
        """Closes the connections.

        >>> Client(grant, key).close()
        """
        self._wire.close()

    def __enter__(self) -> Self:
        """The client itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the connections."""
        self.close()


class AsyncClient:
    """The same for asyncio.

    >>> import asyncio
    >>> async def ask() -> list[str]:
    ...     async with AsyncClient(grant, key, ca_file=ca_file, allow_local_dids=True) as client:
    ...         return (await client.query("preferred meeting times")).texts
    >>> asyncio.run(ask())
    ['Meetings on Tuesday mornings, write to [email]']
    """

    def __init__(
        self,
        grant: Json,
        key: PrivateKey,
        *,
        ancestors: Sequence[Json] = (),
        documents: Documents | Iterable[Json] = (),
        gateway: str | None = None,
        ca_file: str | None = None,
        allow_local_dids: bool = False,
    ) -> None:
        """As those of `Client`."""
        self._grantee = _grantee(grant, key, ancestors, documents, gateway, local=allow_local_dids)
        self._wire = AsyncWire(ca_file=ca_file, local=allow_local_dids)

    async def query(
        self,
        text: str = "",
        *,
        max_results: int | None = None,
        kinds: Sequence[str] | None = None,
        labels_any: Sequence[str] | None = None,
        min_confidence: float | None = None,
        purpose: str | None = None,
        cursor: str | None = None,
        include_embeddings: bool = False,
    ) -> Answer:
        """Asks; without words the newest items are listed."""
        asked = _query(
            text,
            max_results,
            kinds,
            labels_any,
            min_confidence,
            purpose,
            cursor,
            include_embeddings=include_embeddings,
        )
        return await self._wire.run(self._grantee.query(asked))

    async def pages(self, text: str = "", **conditions: Unpack[Conditions]) -> AsyncIterator[Answer]:
        """All pages of an answer; `conditions` are those of `query`, and a `cursor` is where it begins."""
        asked = conditions.copy()
        for _ in range(MAX_PAGES):
            answer = await self.query(text, **asked)
            yield answer
            if answer.next_cursor is None:
                return
            asked["cursor"] = answer.next_cursor

    async def export(self) -> Bundle:
        """Fetches everything that the grant shows; the grant must allow exports."""
        return await self._wire.run(self._grantee.export())

    async def audit(self, *, since: str | None = None, limit: int | None = None) -> list[dict[str, Any]]:
        """The receipts of the granter's log that name the grantee, newest first."""
        return await self._wire.run(self._grantee.audit({"since": since, "limit": limit}))

    async def ack(self, receipt: dict[str, Any]) -> dict[str, Any]:
        """Countersigns a receipt, and returns the joint one."""
        return await self._wire.run(self._grantee.ack(receipt))

    async def state(self) -> str:
        """What the gateway says of the grant: `draft`, `active`, `expired` or `revoked`."""
        return await self._wire.run(self._grantee.state())

    async def revoked(self) -> bool:
        """Whether the granter's status list marks the grant as revoked."""
        return await self._wire.run(self._grantee.revoked())

    async def authorization(self, method: str, url: str) -> dict[str, str]:
        """The headers of one request under the grant that another program sends."""
        return await self._wire.run(self._grantee.authorization(method, url))

    async def manifest(self) -> dict[str, Any]:
        """The granter's memory manifest."""
        return await self._wire.run(self._grantee.discover())

    async def close(self) -> None:
        """Closes the connections."""
        await self._wire.close()

    async def __aenter__(self) -> Self:
        """The client itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the connections."""
        await self.close()
