"""Times, the clock and identifiers (docs/protocol.md section 1)."""

import contextlib
import re
import secrets
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime

from .canon import Malformed

SKEW = 300
ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_FORM = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(\.[0-9]+)?Z")
_NAME = re.compile(rf"[{ALPHABET}]{{26}}")
_ULID = re.compile(rf"[0-7][{ALPHABET}]{{25}}")


def read_time(text: object) -> int:
    """Milliseconds since 1970 of an RFC 3339 time in UTC with `Z`."""
    match = _FORM.fullmatch(text) if isinstance(text, str) else None
    if not match:
        raise Malformed("must be a time of RFC 3339 in UTC, with Z")
    try:
        whole = datetime(*(int(match[n]) for n in range(1, 7)), tzinfo=UTC)
    except ValueError as error:
        raise Malformed("must be a time of RFC 3339 in UTC, with Z") from error
    return int(whole.timestamp()) * 1000 + int(((match[7] or ".0")[1:4]).ljust(3, "0"))


def write_time(milliseconds: int) -> str:
    """The same time to the millisecond."""
    whole = datetime.fromtimestamp(milliseconds // 1000, UTC)
    return f"{whole:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03}Z"


class Clock:
    """The gateway's own clock, in milliseconds. It never goes back (section 2). One that stands goes on by `advance` alone."""

    def __init__(self, stands_at: int | None = None) -> None:
        self._stands_at = stands_at
        self._last = self._ahead = 0
        self._lock = threading.Lock()
        self._held = threading.local()

    @contextlib.contextmanager
    def instant(self) -> Iterator[None]:
        """What this thread does meanwhile happens at one time: no item of an answer ends before its receipt."""
        self._held.now = None
        self._held.now = self.now()
        try:
            yield
        finally:
            self._held.now = None

    def now(self) -> int:
        held = getattr(self._held, "now", None)
        if held is not None:
            return held
        return self.advance(0)

    @property
    def stands(self) -> bool:
        """Whether it goes on by `advance` alone."""
        return self._stands_at is not None

    def advance(self, milliseconds: int) -> int:
        """Time passes, for tests that do not wait. What it shows then."""
        with self._lock:
            self._ahead += milliseconds
            now = time.time_ns() // 1_000_000 if self._stands_at is None else self._stands_at
            self._last = max(self._last, now + self._ahead)
            return self._last


def ulid(milliseconds: int) -> str:
    """26 characters: 48 bits of time, 80 of randomness."""
    number = milliseconds << 80 | secrets.randbits(80)
    return "".join(ALPHABET[number >> 5 * place & 31] for place in range(25, -1, -1))


def is_request_id(text: object) -> bool:
    """Any 26 characters of the alphabet."""
    return isinstance(text, str) and bool(_NAME.fullmatch(text))


def is_id(prefix: str, text: object) -> bool:
    """A prefix and a ULID."""
    return isinstance(text, str) and text.startswith(prefix) and bool(_ULID.fullmatch(text[len(prefix) :]))
