"""Vectors of the projected text (docs/protocol.md section 6), by a model that counts letters."""

import math
import struct
from collections.abc import Iterable

MODEL, DIMENSIONS = "witness/letters", 32
SHOWN_FROM = 4
_K = 60


def vector(text: str) -> list[float]:
    """How often each letter stands in a text, to length one."""
    counts = [0.001] * DIMENSIONS
    for byte in text.casefold().encode():
        counts[byte % DIMENSIONS] += 1
    length = math.sqrt(sum(one * one for one in counts))
    return [one / length for one in counts]


def written(text: str) -> bytes:
    """32-bit floats, little-endian."""
    return struct.pack(f"<{DIMENSIONS}f", *vector(text))


def fused(query: str, texts: dict[str, str], words: dict[str, float]) -> dict[str, float]:
    """Reciprocal rank fusion of the scores of words with the cosine of vectors."""
    asked = vector(query)
    near = {name: sum(a * b for a, b in zip(asked, vector(text), strict=True)) for name, text in texts.items()}

    def ranked(scores: dict[str, float]) -> Iterable[str]:
        return sorted(scores, key=lambda name: (-scores[name], name))

    out = dict.fromkeys(near, 0.0)
    for scores in (words, near):
        for rank, name in enumerate(ranked(scores)):
            out[name] += 1 / (_K + rank + 1)
    return out
