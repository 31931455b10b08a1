"""A conversation with memory: loaded at its start, conclusions written back at its end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self, Unpack

from .agent import Agent, AsyncAgent
from .errors import UsageError
from .facts import Fact, Learn, Learned
from .packing import Count, Packed, estimate, pack
from .window import Window

MIN_CONFIDENCE = 0.3
"""A hypothesis below it is not kept."""


class _Notes:
    """What a session holds, and what it is yet to write."""

    def __init__(self, max_tokens: int, count: Count, window: Window | None) -> None:
        self._max_tokens = max_tokens
        self._count = count
        self.window = window
        self.facts: tuple[Fact, ...] = ()
        self.written: list[Learned] = []
        self.pending: list[tuple[str, Learn]] = []
        self._summary = ""

    def _load(self, *found: Iterable[Fact]) -> None:
        every = {fact.item_id: fact for facts in found for fact in facts}
        self.facts = tuple(every.values())

    @property
    def context(self) -> Packed:
        """What was loaded, for the model, as far as the budget lets it in.

        >>> with Session(agent, max_tokens=100) as session:
        ...     session.context.tokens <= 100
        True
        """
        return pack(self.facts, self._max_tokens, count=self._count)

    def conclude(self, content: str, **more: Unpack[Learn]) -> None:
        """Notes what is to be remembered; it is written by `save`, or at the end.

        >>> with Session(agent, max_tokens=100) as session:
        ...     session.conclude("Ann signs the contract", topic="contract")
        >>> [fact.content for fact in agent.query(topic="contract").facts]
        ['Ann signs the contract']
        """
        self.pending.append((content, more))

    def suppose(self, content: str, confidence: float, *, topic: str | None = None, tags: Sequence[str] = ()) -> None:
        """Notes a hypothesis, with the label `hypothesis`; one below `MIN_CONFIDENCE` is not kept.

        >>> with Session(agent, max_tokens=100) as session:
        ...     session.suppose("Ann prefers mornings", 0.4, topic="guesses")
        ...     session.suppose("Ann prefers tea", 0.1, topic="guesses")
        >>> [(fact.content, fact.confidence) for fact in agent.query(tags=["hypothesis"], topic="guesses").facts]
        [('Ann prefers mornings', 0.4)]
        """
        if isinstance(tags, str):
            raise UsageError("tags must be a list of texts", "tags")
        if confidence >= MIN_CONFIDENCE:
            more: Learn = {"confidence": confidence, "tags": [*tags, "hypothesis"]}
            if topic is not None:
                more["topic"] = topic
            self.pending.append((content, more))

    def _note_summary(self) -> None:
        if self.window is not None and self.window.summary not in ("", self._summary):
            self._summary = self.window.summary
            self.pending.append((self._summary, {"kind": "summary", "level": "recalled", "tags": ["session"]}))


class Session(_Notes):
    """Memory for one conversation.

    At its start it holds what `about` recalls, then the newest; at its end it writes what was concluded, and the
    summary of its `window` if it has one. Where the block ends with an error, nothing more is written than `save` was
    called for.

    >>> _ = agent.learn("Deliveries come to the back door", topic="deliveries")
    >>> with Session(agent, "where do deliveries come?", max_tokens=500) as session:
    ...     print(session.facts[0].content)
    ...     session.conclude("The back door is open from eight", topic="deliveries")
    Deliveries come to the back door
    >>> agent.query(topic="deliveries").matched
    2
    """

    def __init__(
        self,
        agent: Agent,
        about: str | None = None,
        *,
        max_tokens: int,
        count: Count = estimate,
        window: Window | None = None,
    ) -> None:
        """`max_tokens` is the budget of `context`, `count` counts the tokens of a text."""
        super().__init__(max_tokens, count, window)
        self._agent = agent
        self._about = about

    def save(self) -> list[Learned]:
        """Writes what is yet to be written, as at a milestone; what was written.

        What an error stops stays in `pending`. After `Unreachable` the first of it may have been written.

        >>> with Session(agent, max_tokens=100) as session:
        ...     session.conclude("The invoice is paid")
        ...     len(session.save()), len(session.pending)
        (1, 0)
        """
        before = len(self.written)
        while self.pending:
            content, more = self.pending[0]
            self.written.append(self._agent.learn(content, **more))
            del self.pending[0]
        return self.written[before:]

    def __enter__(self) -> Self:
        """Loads."""
        recalled = self._agent.recall(self._about).facts if self._about else ()
        self._load(recalled, self._agent.query().facts)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Writes back."""
        if error is None:
            self._note_summary()
            self.save()


class AsyncSession(_Notes):
    """The same for asyncio.

    >>> import asyncio
    >>> async def talk() -> int:
    ...     async with AsyncAgent(*gateway_and_key, ca_file=ca_file) as agent:
    ...         async with AsyncSession(agent, max_tokens=100) as session:
    ...             session.conclude("The lift is repaired", topic="lift")
    ...         return (await agent.query(topic="lift")).matched
    >>> asyncio.run(talk())
    1
    """

    def __init__(
        self,
        agent: AsyncAgent,
        about: str | None = None,
        *,
        max_tokens: int,
        count: Count = estimate,
        window: Window | None = None,
    ) -> None:
        """As those of `Session`."""
        super().__init__(max_tokens, count, window)
        self._agent = agent
        self._about = about

    async def save(self) -> list[Learned]:
        """Writes what is yet to be written, as at a milestone; what was written."""
        before = len(self.written)
        while self.pending:
            content, more = self.pending[0]
            self.written.append(await self._agent.learn(content, **more))
            del self.pending[0]
        return self.written[before:]

    async def __aenter__(self) -> Self:
        """Loads."""
        recalled = (await self._agent.recall(self._about)).facts if self._about else ()
        self._load(recalled, (await self._agent.query()).facts)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Writes back."""
        if error is None:
            self._note_summary()
            await self.save()
