"""Times: RFC 3339 in UTC with `Z` on the wire, whole nanoseconds since 1970 here."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

SECOND = 1_000_000_000
"""Nanoseconds."""
SKEW = 300 * SECOND
"""The clock skew that is forgiven: five minutes."""

_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.([0-9]{1,64}))?Z", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def instant(text: str) -> int | None:
    """Nanoseconds since 1970, or `None` where the text is no time of the wire.

    >>> instant("1970-01-01T00:00:01.500Z")
    1500000000
    >>> instant("2026-02-30T00:00:00Z") is None
    True
    """
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    try:
        whole = datetime.fromisoformat(match[1] + "+00:00")
    except ValueError:
        return None
    return (whole - _EPOCH) // timedelta(seconds=1) * SECOND + int((match[2] or "").ljust(9, "0")[:9])


def written(at: int) -> str:
    """A time as the wire has it, to the millisecond.

    >>> written(1500000000)
    '1970-01-01T00:00:01.500Z'
    """
    return (_EPOCH + timedelta(microseconds=at // 1000)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def clock() -> int:
    """The machine's own time.

    >>> clock() > instant("2026-01-01T00:00:00Z")
    True
    """
    return (datetime.now(UTC) - _EPOCH) // timedelta(microseconds=1) * 1000
