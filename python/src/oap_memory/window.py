"""A conversation within a budget of tokens: what is older gives way to a summary."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .errors import UsageError
from .packing import Count, escaped, estimate


@dataclass(frozen=True)
class Message:
    """One turn."""

    role: str
    content: str


Summarize = Callable[[str, Sequence[Message]], str]
"""Makes one summary of the one before (empty at first) and the messages that give way, the oldest first."""

_SENTENCE = re.compile(r"\s*(.*?(?:[.!?](?=\s|$)|\n|$))", re.S)


def extract(former: str, messages: Sequence[Message]) -> str:
    """A summary without a model: the first sentence of each message, below what was there.

    >>> extract("", [Message("user", "Meet on Tuesday. Not earlier."), Message("assistant", "Noted.")])
    'user: Meet on Tuesday.\\nassistant: Noted.'
    """
    lines = [former] if former else []
    for message in messages:
        first = _SENTENCE.match(message.content)
        lines.append(f"{message.role}: {' '.join((first[1] if first else '').split())}")
    return "\n".join(lines)


class Window:
    """The last messages whole, and a summary of those before them; together never more than `max_tokens`.

    >>> window = Window(24)
    >>> for turn in ("Meet on Tuesday. Ann comes, too.", "The logo is with Ann. She is on leave until May."):
    ...     window.add("user", turn)
    >>> window.summary
    'user: Meet on Tuesday.'
    >>> window.tokens <= 24
    True
    """

    def __init__(self, max_tokens: int, *, summarize: Summarize = extract, count: Count = estimate) -> None:
        """`summarize` is where a model comes in; `count` counts the tokens of a text, without roles and framing."""
        self._max = max_tokens
        self._summarize = summarize
        self._count = count
        self.summary = ""
        self.kept: list[Message] = []

    @property
    def tokens(self) -> int:
        """Of the summary and the messages."""
        return self._of_summary() + sum(self._count(message.content) for message in self.kept)

    def _of_summary(self) -> int:
        return self._count(self.summary) if self.summary else 0

    def add(self, role: str, content: str) -> None:
        """Adds a message; older ones give way, half of them at a time.

        >>> Window(4).add("user", "far too long for this window")
        Traceback (most recent call last):
        oap_memory.errors.UsageError: content must have 4 tokens at most, as the window has
        """
        if self._count(content) > self._max:
            raise UsageError(f"content must have {self._max} tokens at most, as the window has", "content")
        self.kept.append(Message(role, content))
        while len(self.kept) > 1 and self.tokens > self._max:
            half = max(1, len(self.kept) // 2)
            old, self.kept = self.kept[:half], self.kept[half:]
            self.summary = self._fitted(self._summarize(self.summary, old), self._max // 2)
        if self.tokens > self._max:
            self.summary = self._fitted(self.summary, self._max - self._count(content))

    def _fitted(self, summary: str, most: int) -> str:
        """Without its first lines, which are the oldest, as far as it is too long; a single line without its end."""
        lines = summary.splitlines()
        while len(lines) > 1 and self._count("\n".join(lines)) > most:
            del lines[0]
        text = "\n".join(lines)
        while text and self._count(text) > most:
            text = text[: len(text) * 3 // 4]
        return text

    def messages(self) -> list[dict[str, str]]:
        """For a model. The summary is the first of them, in an element of its own.

        It is no `system` message, for it holds what others said.

        >>> window = Window(100)
        >>> window.add("user", "Hello")
        >>> window.messages()
        [{'role': 'user', 'content': 'Hello'}]
        """
        told = [{"role": message.role, "content": message.content} for message in self.kept]
        if self.summary:
            element = f"<earlier-conversation>\n{escaped(self.summary)}\n</earlier-conversation>"
            told.insert(0, {"role": "user", "content": element})
        return told
