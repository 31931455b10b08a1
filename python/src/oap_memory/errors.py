"""The errors of this package. Each names the member and what it must be; none holds content, keys or tokens."""

from __future__ import annotations


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
        """The same refusal of a document that stands at `prefix` of another."""
        return Refused(self.check, prefix + self.field, self.must)


class UsageError(OapError):
    """A file, an argument or a key of the caller's own cannot be used."""


class GatewayError(OapError):
    """A gateway refused a request (protocol section 1)."""

    def __init__(self, status: int, code: str, message: str, request_id: str | None) -> None:
        """`status` is the HTTP status, `code` the member `error` of the answer."""
        self.status = status
        self.code = code
        self.message = message
        self.request_id = request_id
        super().__init__(f"{status} {code}: {message}")


class Unreachable(OapError):
    """A gateway was not reached, or what it sent is no answer."""
