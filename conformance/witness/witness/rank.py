"""Ranking over the view's text, and cursors (docs/protocol.md section 6).

The page says BM25 and not which one, nor what a word is: Okapi with k1 1.2 and b 0.75, words as Unicode has them.
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

_K1, _B = 1.2, 0.75
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


def scores(query: str, texts: dict[str, str]) -> dict[str, float]:
    """BM25 of the texts that have one of the words, with statistics of these texts alone."""
    wanted = set(words(query))
    counts = {name: Counter(words(text)) for name, text in texts.items()}
    lengths = {name: sum(count.values()) for name, count in counts.items()}
    mean = sum(lengths.values()) / max(len(lengths), 1) or 1.0
    having = {word: sum(1 for count in counts.values() if word in count) for word in wanted}
    out: dict[str, float] = {}
    for name, count in counts.items():
        total = 0.0
        for word in sorted(wanted & set(count)):
            rarity = math.log(1 + (len(texts) - having[word] + 0.5) / (having[word] + 0.5))
            weight = count[word] * (_K1 + 1) / (count[word] + _K1 * (1 - _B + _B * lengths[name] / mean))
            total += rarity * weight
        if total > 0:
            out[name] = total
    return out


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
