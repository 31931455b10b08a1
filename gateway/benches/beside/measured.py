"""What is measured of a memory."""

import asyncio
import dataclasses
import itertools
import statistics
import time
from typing import Any, Protocol

FIRST = 10
"""How many results a search is asked for."""


class Left(Exception):
    """A memory that cannot be had, and why."""


class Memory(Protocol):
    """A memory that is ready."""

    name: str
    callers: int
    """How many ask at once."""
    columns: tuple[bool, bool, bool, bool]
    """Whether it has identity, scope, proof, receipt (README.md)."""

    async def add(self, number: int, text: str) -> None:
        """Writes one turn."""

    async def search(self, question: str) -> list[int]:
        """The numbers of the turns that are found, the best first."""


@dataclasses.dataclass
class Times:
    """Of many calls."""

    median: float
    """Milliseconds of one."""
    rate: float
    """Of all callers, a second."""


@dataclasses.dataclass
class Measured:
    """The figures of one memory."""

    name: str
    callers: int
    columns: tuple[bool, bool, bool, bool]
    turns: int
    """Written within the time that there was."""
    add: Times
    search: Times
    found: float
    """The share of the turns that answer a question, of those that were written, that are among the first ten."""

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return dataclasses.asdict(self)


async def timed(calls: list[Any], callers: int, seconds: float) -> tuple[Times, list[Any]]:
    """Makes calls, so many at once, until they are made or the time is over; what they gave, in their order."""
    taken: list[float] = []
    given: dict[int, Any] = {}
    todo = enumerate(calls)
    began = time.perf_counter()

    async def caller() -> None:
        for n, call in todo:
            if time.perf_counter() - began > seconds:
                return
            before = time.perf_counter()
            given[n] = await call()
            taken.append(time.perf_counter() - before)

    await asyncio.gather(*(caller() for _ in range(callers)))
    rate = len(taken) / (time.perf_counter() - began)
    return Times(statistics.median(taken) * 1e3, rate), [
        given[n] for n in itertools.takewhile(given.__contains__, itertools.count())
    ]


async def measure(memory: Memory, texts: list[str], asked: list[tuple[str, set[int]]], seconds: float) -> Measured:
    """Writes every turn once, and asks every question once."""
    add, written = await timed(
        [lambda n=n, text=text: memory.add(n, text) for n, text in enumerate(texts)], memory.callers, seconds
    )
    search, answers = await timed([lambda q=q: memory.search(q) for q, _ in asked], memory.callers, seconds)
    shares = []
    for (_, evidence), answer in zip(asked, answers, strict=False):
        if there := {turn for turn in evidence if turn < len(written)}:
            shares.append(len(there & set(answer[:FIRST])) / len(there))
    found = statistics.fmean(shares) if shares else 0.0
    return Measured(memory.name, memory.callers, memory.columns, len(written), add, search, found)
