"""Exchanges with gateways without input and output: a flow yields requests and is sent responses.

So the same steps serve the sync and the async client.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import TypeVar

from .canonical import Json, parse
from .errors import Refused, Unreachable, refusal
from .form import REQUEST_ID, TEXT, hold, obj

T = TypeVar("T")

MAX_ANSWER = 67_108_864
"""Bytes of an answer."""
MAX_BUNDLE = 536_870_912
"""Bytes of a bundle."""
WHOLE = 120.0
"""Seconds for request and answer."""
WHOLE_BUNDLE = 900.0
"""Seconds for request and bundle."""


@dataclass(frozen=True)
class Request:
    """A request, with the bounds of its answer."""

    method: str
    url: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    limit: int = MAX_ANSWER
    seconds: float = WHOLE
    after: float = 0.0
    """Seconds to wait before it is sent."""


@dataclass(frozen=True)
class Response:
    """An answer, read to its end."""

    status: int
    body: bytes
    retry_after: int | None = None
    """Seconds until it is worth to ask again, as its header `Retry-After` says."""


Flow = Generator[Request, Response, T]

_ERROR = obj({"error": TEXT, "message": TEXT}, {"request_id": REQUEST_ID}, closed=False)


def read_json(response: Response) -> Json:
    """The JSON of an answer; a refusal is a `GatewayError`.

    >>> read_json(Response(200, b"{}"))
    {}
    >>> read_json(Response(404, b'{"error": "not_found", "message": "no such grant"}'))
    Traceback (most recent call last):
    oap_memory.errors.NotFound: 404 not_found: no such grant
    """
    accepted(response)
    try:
        return parse(response.body)
    except Refused as wrong:
        raise Unreachable(f"the gateway's answer {wrong.must}") from None


def accepted(response: Response) -> None:
    """Raises `GatewayError` where the answer is a refusal.

    >>> accepted(Response(500, b"oops"))
    Traceback (most recent call last):
    oap_memory.errors.GatewayError: 500 unknown: the gateway gave no reason
    """
    if response.status == 200:
        return
    status, after = response.status, response.retry_after
    try:
        said = hold(_ERROR, parse(response.body[:65_536]), "error")
    except Refused:
        raise refusal(status, "unknown", "the gateway gave no reason", None, retry_after=after) from None
    raise refusal(status, said["error"], said["message"], said.get("request_id"), said, after)
