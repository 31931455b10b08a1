"""The errors of this package. Each names the member and what it must be; none holds content, keys or tokens."""

from __future__ import annotations

import re
from typing import Any

_FIELD = re.compile(
    r"""(?:(?:arguments|query):\ (?=not\ acceptable|unknown\ member|[a-z_]+(?:\.[a-z_]+|\[\d+\])*:\ ))?
    (?:not\ acceptable\ JSON:\ )?
    (?:([a-z_]+(?:\.[a-z_]+|\[\d+\])*):\ )?(?:unknown\ member\ "([a-z_]+)"|missing\ field\ `([a-z_]+)`)?""",
    re.X,
)
"""How a message of a gateway names the member that is wrong: where it is, and what is not known or missing there."""


class OapError(Exception):
    """What every error of this package is."""


class Refused(OapError):
    """A document does not hold.

    >>> str(Refused("grant.document", "/trust_level", "must be a whole number from 0 to 4"))
    'grant.document: /trust_level must be a whole number from 0 to 4'
    """

    def __init__(self, check: str, field: str, must: str) -> None:
        """`check` is the class of the reason, `field` a JSON Pointer, `must` what the field has to be."""
        self.check = check
        self.field = field
        self.must = must
        super().__init__(f"{check}: {field or '/'} {must}")

    def under(self, prefix: str) -> Refused:
        """The same refusal of a document that stands at `prefix` of another.

        >>> Refused("receipt.malformed", "/agent_did", "must be there").under("/receipt").field
        '/receipt/agent_did'
        """
        return Refused(self.check, prefix + self.field, self.must)


class UsageError(OapError):
    """A file, an argument or a key of the caller's own cannot be used.

    >>> UsageError("max_results must be from 1 to 100", "max_results").field
    'max_results'
    """

    def __init__(self, why: str, field: str | None = None) -> None:
        """`field` is the argument that is wrong, where it is one."""
        self.field = field
        super().__init__(why)


class GatewayError(OapError):
    """A gateway refused a request (protocol section 1)."""

    retry_after: int | None = None
    """Seconds until the gateway has room again, where it says so: of a 429 `rate_limited`."""

    def __init__(
        self, status: int, code: str, message: str, request_id: str | None, details: dict[str, Any] | None = None
    ) -> None:
        """`status` is the HTTP status, `code` the member `error` of the answer, `details` all of its members."""
        self.details = details or {}
        self.status = status
        self.code = code
        self.message = message
        self.request_id = request_id
        super().__init__(f"{status} {code}: {message}")

    @property
    def field(self) -> str | None:
        """The member that is wrong, where the message begins with one: `limit`, `source.type`.

        >>> GatewayError(400, "invalid_input", "limit: must be 1 to 100", None).field
        'limit'
        """
        named = _FIELD.match(self.message)
        return ".".join(filter(None, named.groups())) or None if named else None


class InvalidInput(GatewayError):
    """400, 413, 422: a member is out of its bounds; `field` names it."""


class Unauthenticated(GatewayError):
    """401: the credential does not hold, or was ended."""


class NotPermitted(GatewayError):
    """403: the credential holds and does not permit this."""


class NotFound(GatewayError):
    """404: not there, or not to be seen."""


class Conflict(GatewayError):
    """409: it changed meanwhile, or cannot be done as things stand. Of an entry, `details["current"]` is what it is."""


class TooMany(GatewayError):
    """429: too many requests (`retry_after` says how long), or a budget is spent (until the owner refills it)."""


class Unavailable(GatewayError):
    """503, 504, 507: it cannot be done now; `code` says why."""


_OF_STATUS: dict[int, type[GatewayError]] = {
    400: InvalidInput,
    401: Unauthenticated,
    403: NotPermitted,
    404: NotFound,
    409: Conflict,
    413: InvalidInput,
    422: InvalidInput,
    429: TooMany,
    503: Unavailable,
    504: Unavailable,
    507: Unavailable,
}


def refusal(
    status: int,
    code: str,
    message: str,
    request_id: str | None,
    details: dict[str, Any] | None = None,
    retry_after: int | None = None,
) -> GatewayError:
    """The error of a status.

    >>> refusal(404, "not_found", "nothing of that name here", None)
    NotFound('404 not_found: nothing of that name here')
    """
    error = _OF_STATUS.get(status, GatewayError)(status, code, message, request_id, details)
    error.retry_after = retry_after
    return error


class Unreachable(OapError):
    """A gateway was not reached, or what it sent is no answer."""

    def __init__(self, why: str, *, passing: bool = False, sent: bool = True) -> None:
        """`passing`: the connection failed, and the same may succeed later. `sent`: the gateway may have got it."""
        self.passing = passing
        self.sent = sent
        super().__init__(why)
