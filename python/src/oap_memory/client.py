"""The grantee's client, sync and async."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Self

from .canonical import Json
from .documents import Documents
from .errors import UsageError
from .form import KIND, fits
from .grantee import Answer, Bundle, Grantee
from .keyfile import PrivateKey
from .wire import AsyncWire, Wire

MAX_PAGES = 10_000
"""Pages that `pages` follows at most."""


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
    if len(text.encode("utf-8", "replace")) > 4096:
        raise UsageError("query must have 4096 bytes at most")
    if max_results is not None and not 1 <= max_results <= 100:
        raise UsageError("max_results must be from 1 to 100")
    if any(not fits(KIND, kind) for kind in kinds or ()):
        raise UsageError("kinds must be kinds of items")
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
    known = documents if isinstance(documents, Documents) else Documents(documents)
    return Grantee(grant, key, ancestors, known, gateway, local)


class Client:
    """Asks under one grant, and verifies what comes back.

    >>> grant = {"grant_id": "mgr_1"}
    >>> with Client(grant, PrivateKey.new()) as client:
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
        return self._wire.run(self._grantee.query(asked))

    def pages(self, text: str = "", **conditions: Any) -> Iterator[Answer]:
        """All pages of an answer; `conditions` are those of `query`."""
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            answer = self.query(text, **{**conditions, "cursor": cursor})
            yield answer
            if (cursor := answer.next_cursor) is None:
                return

    def export(self) -> Bundle:
        """Fetches everything that the grant shows; the grant must allow exports."""
        return self._wire.run(self._grantee.export())

    def audit(self, *, since: str | None = None, limit: int | None = None) -> list[dict[str, Any]]:
        """The receipts of the granter's log that name the grantee, newest first."""
        return self._wire.run(self._grantee.audit({"since": since, "limit": limit}))

    def ack(self, receipt: dict[str, Any]) -> dict[str, Any]:
        """Countersigns a receipt, and returns the joint one."""
        return self._wire.run(self._grantee.ack(receipt))

    def state(self) -> str:
        """What the gateway says of the grant: `draft`, `active`, `expired` or `revoked`."""
        return self._wire.run(self._grantee.state())

    def revoked(self) -> bool:
        """Whether the granter's status list marks the grant as revoked."""
        return self._wire.run(self._grantee.revoked())

    def manifest(self) -> dict[str, Any]:
        """The granter's memory manifest."""
        return self._wire.run(self._grantee.discover())

    def close(self) -> None:
        """Closes the connections."""
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
    >>> async def ask() -> None:
    ...     async with AsyncClient({"grant_id": "mgr_1"}, PrivateKey.new()) as client:
    ...         await client.query("preferred meeting times")
    >>> asyncio.run(ask())
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

    async def pages(self, text: str = "", **conditions: Any) -> AsyncIterator[Answer]:
        """All pages of an answer; `conditions` are those of `query`."""
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            answer = await self.query(text, **{**conditions, "cursor": cursor})
            yield answer
            if (cursor := answer.next_cursor) is None:
                return

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
