"""Sending requests over https: public addresses alone, no redirect, every answer bounded in bytes and seconds."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
import ssl
import time
from collections.abc import Iterable
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx

from .errors import Unreachable, UsageError
from .flow import Flow, Request, Response

T = TypeVar("T")

CONNECT = 10.0
"""Seconds for connecting."""
SILENCE = 45.0
"""Seconds without a byte of an answer."""


def trust(ca_file: str | None) -> ssl.SSLContext:
    """TLS 1.3, with the usual authorities and those of a PEM file.

    >>> trust(None).minimum_version.name
    'TLSv1_3'
    """
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    if ca_file is not None:
        try:
            context.load_verify_locations(ca_file)
        except (OSError, ssl.SSLError):
            raise UsageError("the file of a further authority must be a certificate in PEM", "ca_file") from None
    return context


def _target(request: Request, *, local: bool) -> tuple[str, int]:
    """Host and port, where the address may be used at all."""
    try:
        parts = urlsplit(request.url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise Unreachable("the address is no address") from None
    plain = parts.scheme == "http" and local
    if not host or (parts.scheme != "https" and not plain) or parts.username is not None:
        raise Unreachable("the address must be https")
    return host, port or (443 if parts.scheme == "https" else 80)


def _chosen(found: Iterable[Any], scheme: str, *, local: bool) -> str:
    """The address to connect to: the first, where every one is allowed."""
    addresses = [str(one[4][0]).partition("%")[0] for one in found]
    if not addresses:
        raise Unreachable("the host has no address")
    for address in addresses:
        ip = ipaddress.ip_address(address)
        ip = getattr(ip, "ipv4_mapped", None) or ip
        if not local and (not ip.is_global or ip.is_multicast):
            raise Unreachable("the host is at no public address")
        if scheme == "http" and not ip.is_loopback:
            raise Unreachable("plain http is for loopback alone")
    return addresses[0]


def _pinned(request: Request, host: str, port: int, address: str) -> dict[str, Any]:
    """The request to the address that was checked, in the name of its host."""
    parts = urlsplit(request.url)
    shown = f"[{address}]" if ":" in address else address
    usual = port == (443 if parts.scheme == "https" else 80)
    named = f"[{host}]" if ":" in host else host
    query = f"?{parts.query}" if parts.query else ""
    return {
        "method": request.method,
        "url": f"{parts.scheme}://{shown}:{port}{parts.path or '/'}{query}",
        "headers": {**request.headers, "Host": named if usual else f"{named}:{port}"},
        "content": request.body,
        "timeout": httpx.Timeout(min(SILENCE, request.seconds), connect=min(CONNECT, request.seconds)),
        "extensions": {"sni_hostname": host} if parts.scheme == "https" else {},
    }


def _broken(wrong: Exception) -> Unreachable:
    never = isinstance(wrong, httpx.ConnectError | httpx.ConnectTimeout | httpx.InvalidURL | socket.gaierror)
    why = type(wrong).__name__
    cause: BaseException | None = wrong
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            why = f"its certificate is not trusted: {cause.verify_message}; `ca_file` names a further authority"
        cause = cause.__cause__ or cause.__context__
    return Unreachable(f"the gateway was not reached ({why})", passing=True, sent=not never)


class _Body:
    """An answer as it comes, within its bounds."""

    def __init__(self, request: Request) -> None:
        self._limit = request.limit
        self._end = time.monotonic() + request.seconds
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._limit:
            raise Unreachable("the answer is too long")
        if time.monotonic() > self._end:
            raise Unreachable("the answer took too long")
        self._parts.append(part)

    def whole(self) -> bytes:
        return b"".join(self._parts)


def _response(response: httpx.Response, body: _Body) -> Response:
    # A date in place of seconds is by a clock that is not ours.
    after = response.headers.get("Retry-After", "")
    return Response(response.status_code, body.whole(), int(after) if re.fullmatch("[0-9]{1,9}", after) else None)


_CLOSED = "it is closed: what is asked comes before close()"
_PLAIN = {"Accept-Encoding": "identity"}


class Wire:
    """Sends requests, one after the other."""

    def __init__(self, *, ca_file: str | None = None, local: bool = False) -> None:
        """`local` allows private addresses, and plain http on loopback, for development."""
        self._local = local
        self._client = httpx.Client(verify=trust(ca_file), trust_env=False, follow_redirects=False, headers=_PLAIN)

    def run(self, flow: Flow[T]) -> T:
        """Takes a flow to its end."""
        try:
            request = next(flow)
            while True:
                try:
                    response = self.send(request)
                except Unreachable as wrong:
                    request = flow.throw(wrong)
                else:
                    request = flow.send(response)
        except StopIteration as end:
            done: T = end.value
            return done

    def send(self, request: Request) -> Response:
        """The answer, or `Unreachable`."""
        if self._client.is_closed:
            raise UsageError(_CLOSED)
        if request.after:
            time.sleep(request.after)
        host, port = _target(request, local=self._local)
        body = _Body(request)
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            address = _chosen(found, urlsplit(request.url).scheme, local=self._local)
            with self._client.stream(**_pinned(request, host, port, address)) as response:
                for part in response.iter_raw():
                    body.add(part)
                return _response(response, body)
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as wrong:
            raise _broken(wrong) from None

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()


class AsyncWire:
    """Sends requests, as many at a time as there are."""

    def __init__(self, *, ca_file: str | None = None, local: bool = False) -> None:
        """`local` allows private addresses, and plain http on loopback, for development."""
        self._local = local
        self._client = httpx.AsyncClient(verify=trust(ca_file), trust_env=False, follow_redirects=False, headers=_PLAIN)

    async def run(self, flow: Flow[T]) -> T:
        """Takes a flow to its end."""
        try:
            request = next(flow)
            while True:
                try:
                    response = await self.send(request)
                except Unreachable as wrong:
                    request = flow.throw(wrong)
                else:
                    request = flow.send(response)
        except StopIteration as end:
            done: T = end.value
            return done

    async def send(self, request: Request) -> Response:
        """The answer, or `Unreachable`."""
        if self._client.is_closed:
            raise UsageError(_CLOSED)
        if request.after:
            await asyncio.sleep(request.after)
        try:
            async with asyncio.timeout(request.seconds):
                return await self._send(request)
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as wrong:
            raise _broken(wrong) from None

    async def _send(self, request: Request) -> Response:
        host, port = _target(request, local=self._local)
        loop, body = asyncio.get_running_loop(), _Body(request)
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        address = _chosen(found, urlsplit(request.url).scheme, local=self._local)
        async with self._client.stream(**_pinned(request, host, port, address)) as response:
            async for part in response.aiter_raw():
                body.add(part)
            return _response(response, body)

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.aclose()
