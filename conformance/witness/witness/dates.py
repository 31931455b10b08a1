"""The years, months and days that a question names (docs/protocol.md section 6)."""

import re

from .moments import write_time

_MOST = 8
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NAMES = (
    "january february march april may june july august september october november december sept"
).split()  # fmt: skip
_LEADS = set("in of since until till by during before after last next this early mid late every between through".split())
_YEAR = re.compile(r"19[0-9]{2}|2[01][0-9]{2}")
_DAY = re.compile(r"([0-9]{1,2})(?:st|nd|rd|th)?")
_ISO = re.compile(r"(?:^|\s)\W*(?:19|20|21)[0-9]{2}-([0-9]{2})(?:-([0-9]{2}))?(?=\W*(?:\s|$))")

Named = tuple[int, int, int]
"""Year, month and day; 0 for any."""


def _month(word: str) -> int:
    return _MONTHS.index(word[:3]) + 1 if word in _NAMES or word in _MONTHS else 0


def _day(word: str) -> int:
    match = _DAY.fullmatch(word)
    return int(match[1]) if match and 1 <= int(match[1]) <= 31 else 0


def _of_word(words: list[str], at: int) -> list[Named]:
    month, before = _month(words[at]), words[at - 1] if at else ""
    if _YEAR.fullmatch(words[at]):
        return [(int(words[at]), 0, 0)]
    if not month:
        return []
    first = words[at - 2] if before == "of" and at > 1 else before
    following = words[at + 1] if at + 1 < len(words) else ""
    day = _day(first) or _day(following)
    if day:
        return [(0, month, day), (0, month, 0)]
    return [(0, month, 0)] if before in _LEADS or _YEAR.fullmatch(following) else []


def named(question: str) -> list[Named]:
    """What a question names, each once."""
    folded = question.lower()
    found: list[Named] = []
    for match in _ISO.finditer(folded):
        month, day = int(match[1]), int(match[2] or 0)
        if 1 <= month <= 12:
            found.append((0, month, 0))
            if 1 <= day <= 31:
                found.append((0, month, day))
    words = re.findall(r"[^\W_]+", folded)
    for at in range(len(words)):
        found.extend(_of_word(words, at))
    return list(dict.fromkeys(found))[:_MOST]


def finds(names: list[Named], captured_at: int) -> list[Named]:
    """Those in which a time is, in milliseconds. Where a year is named, a month is one of that year."""
    date = tuple(map(int, write_time(captured_at)[:10].split("-")))
    years = [year for year, _, _ in names if year]
    if years and date[0] not in years:
        return []
    return [name for name in names if all(part in (0, of) for part, of in zip(name, date, strict=True))]
