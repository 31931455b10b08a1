"""What a verification found: what holds, and what no proof covers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .documents import Documents, Key
from .errors import Refused
from .times import SKEW, instant


@dataclass(frozen=True)
class Unchecked:
    """Something that the proof does not cover: a stable name and the reason."""

    name: str
    why: str


@dataclass
class Report:
    """What a document is, whose, and what was not checked. It exists only of a document that holds."""

    kind: str
    facts: dict[str, Any] = field(default_factory=dict)
    unchecked: list[Unchecked] = field(default_factory=list)

    def note(self, name: str, why: str) -> None:
        """Names something as unchecked, once.

        >>> report = Report("grant")
        >>> report.note("state", "whether it was revoked since")
        >>> report.unchecked[0].why
        'whether it was revoked since'
        """
        if (one := Unchecked("unchecked." + name, why)) not in self.unchecked:
            self.unchecked.append(one)

    def names(self) -> set[str]:
        """The names of what was not checked.

        >>> report = Report("grant")
        >>> report.note("state", "whether it was revoked since")
        >>> report.names()
        {'unchecked.state'}
        """
        return {one.name for one in self.unchecked}


@dataclass(frozen=True)
class Reader:
    """Who verifies: the documents that it trusts, and its clock in nanoseconds since 1970."""

    documents: Documents
    now: int

    def not_future(self, text: str, check: str, place: str) -> int:
        """The time, which is not later than the reader's by more than the skew.

        >>> Reader(Documents(), 0).not_future("2026-05-01T12:00:00Z", "grant.time", "/issued_at")
        Traceback (most recent call last):
        oap_memory.errors.Refused: grant.time: /issued_at must not be in the future
        """
        at = instant(text)
        if at is None:
            raise Refused(check, place, "must be a time")
        if at > self.now + SKEW:
            raise Refused(check, place, "must not be in the future")
        return at

    def key(self, kid: str, did: str, at: int, check: str, place: str) -> Key:
        """The key of that name, of that DID, in force at that time.

        >>> Reader(Documents(), 0).key("did:web:a.example#key-1", "did:web:b.example", 0, "grant.signature", "")
        Traceback (most recent call last):
        oap_memory.errors.Refused: grant.signature: / must be by a key of its signer
        """
        if kid.partition("#")[0] != did:
            raise Refused(check, place, "must be by a key of its signer")
        key = self.documents.key(kid)
        if key is None:
            raise Refused(check, place, "must be by a key of a DID document that is at hand")
        if not key.in_force(at):
            raise Refused(check, place, "must be by a key in force at that time")
        return key


def dated(report: Report, key: Key, what: str) -> None:
    """Names what counts only because its date is before its key was compromised.

    >>> report = Report("receipt")
    >>> dated(report, Key("did:web:a.example#key-1", bytes(32), revoked=1), "the receipt")
    >>> report.names()
    {'unchecked.dated_by_compromised_key'}
    """
    if key.revoked is not None:
        report.note(
            "dated_by_compromised_key", f"the date of {what}: its key was compromised later, and who has it dates back"
        )
