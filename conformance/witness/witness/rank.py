"""Ranking over the view's text, and cursors (docs/protocol.md section 6).

The page does not say what a word is, nor which stems English has: words are as Unicode has them, and their own stems.
"""

import math
import re
import secrets
import struct
import unicodedata
from collections import Counter
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from .canon import Malformed, b64, unb64
from .dates import finds, named
from .moments import read_time

_K1, _B = 1.2, 0.75
_NEAR = {-1: 0.7, -2: 0.4, 1: 0.3, 2: 0.1}
"""What a word of the turn before counts, of the one before that, of the one after, and of the one behind that."""
_GAP = 30 * 60 * 1000
_FEW, _COMMON = 16, 5
_DAY, _DAY_COUNTS = 86_400_000, 0.5
_MAX_WORD = 64


def words(text: str) -> list[str]:
    """Lower-case words; longer ones by their beginning."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return [word[:_MAX_WORD] for word in re.findall(r"[^\W_]+", folded)]


def _leaves(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [leaf for inner in value.values() for leaf in _leaves(inner)]
    if isinstance(value, list):
        return [leaf for inner in value for leaf in _leaves(inner)]
    return [] if value is None or isinstance(value, bool) else [str(value)]


def text_of(seen: dict[str, Any]) -> str:
    """Everything visible as text: text, labels, subject, the visible leaves of structured content."""
    content = seen.get("content", {})
    parts = [content.get("text", ""), *seen.get("labels", ()), seen.get("subject_entity_id", "")]
    return "\n".join(parts + _leaves(content.get("structured")))


def _rarity(of: int, having: int) -> float:
    return math.log(1 + (of - having + 0.5) / (having + 0.5))


def _weight(count: float, length: float) -> float:
    return count * (_K1 + 1) / (count + _K1 * (1 - _B + _B * length))


def captured(seen: dict[str, Any]) -> int:
    """Milliseconds since 1970; 0 where it is hidden."""
    at = seen.get("provenance", {}).get("captured_at")
    return read_time(at) if at else 0


def _contexts(seen: dict[str, dict[str, Any]]) -> dict[str, dict[str, float]]:
    """For each turn the turns around it, and what a word of theirs counts."""
    turns = sorted((captured(one), name) for name, one in seen.items() if one.get("kind") == "conversation_turn")
    return {
        name: {
            turns[place + by][1]: counts
            for by, counts in _NEAR.items()
            if 0 <= place + by < len(turns) and abs(turns[place + by][0] - at) <= _GAP
        }
        for place, (at, name) in enumerate(turns)
    }


class _Days:
    """The days with their turns, and how well each matches."""

    def __init__(self, seen: dict[str, dict[str, Any]], lengths: dict[str, int], turns: dict[str, Any]) -> None:
        self._of = {name: captured(seen[name]) // _DAY for name in turns}
        self._lengths: Counter[int] = Counter()
        for name, day in self._of.items():
            self._lengths[day] += lengths[name]
        self._mean = max(sum(self._lengths.values()) / max(len(self._lengths), 1), 1.0)
        self._scores: dict[int, float] = {}

    def add(self, having: dict[str, int]) -> None:
        """The turns that have a word, and how often."""
        counts: Counter[int] = Counter()
        for name, count in having.items():
            if name in self._of:
                counts[self._of[name]] += count
        rarity = _rarity(len(self._lengths), len(counts))
        for day, count in counts.items():
            gain = rarity * _weight(count, self._lengths[day] / self._mean)
            self._scores[day] = self._scores.get(day, 0.0) + gain

    def score(self, name: str) -> float:
        return _DAY_COUNTS * self._scores.get(self._of[name], 0.0) if name in self._of else 0.0


def scores(query: str, texts: dict[str, str], seen: dict[str, dict[str, Any]]) -> dict[str, float]:
    """BM25 of the texts that match, with statistics of these texts alone; `seen` are the items that they are of."""
    counts = {name: Counter(words(text)) for name, text in texts.items()}
    own = {name: sum(count.values()) for name, count in counts.items()}
    contexts = _contexts(seen)
    lengths = {
        name: length + sum(part * own[other] for other, part in contexts.get(name, {}).items())
        for name, length in own.items()
    }
    mean = max(sum(lengths.values()) / max(len(lengths), 1), 1.0)
    days = _Days(seen, own, contexts)
    out: dict[str, float] = {}
    for word in sorted(set(words(query))):
        having = {name: count[word] for name, count in counts.items() if word in count}
        rarity, spreads = _rarity(len(texts), len(having)), len(having) <= max(_FEW, len(texts) / _COMMON)
        days.add(having)
        for name in texts:
            around = contexts.get(name, {}) if spreads else {}
            count = having.get(name, 0) + sum(part * having.get(other, 0) for other, part in around.items())
            if count:
                out[name] = out.get(name, 0.0) + rarity * _weight(count, lengths[name] / mean)
    dates = named(query)
    dated = {name: finds(dates, captured(one)) for name, one in seen.items() if captured(one)}
    for date in dates:
        then = [name for name, found in dated.items() if date in found]
        for name in then:
            out[name] = out.get(name, 0.0) + _rarity(len(texts), len(then))
    return {name: score + days.score(name) for name, score in out.items()}


class Cursors:
    """Opaque: sealed for one grant and one query."""

    def __init__(self) -> None:
        self._key = AESGCM(AESGCM.generate_key(256))

    def seal(self, bound_to: str, key: float, item_id: str) -> str:
        nonce = secrets.token_bytes(12)
        return b64(nonce + self._key.encrypt(nonce, struct.pack(">d", key) + item_id.encode(), bound_to.encode()))

    def open(self, bound_to: str, cursor: str) -> tuple[float, str]:
        """Where the page before ended; anything else is refused."""
        try:
            data = unb64(cursor)
            plain = self._key.decrypt(data[:12], data[12:], bound_to.encode())
            return struct.unpack(">d", plain[:8])[0], plain[8:].decode()
        except (InvalidTag, Malformed, ValueError, struct.error) as error:
            raise Malformed("cursor: one of this grant and this query") from error
