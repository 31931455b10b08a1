"""Personal spans of a text, by class (docs/protocol.md section 7).

The page names the forms that are found in any case; the patterns, and what else they find, are this program's own.
"""

import ipaddress
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

CLASSES = (
    "url_credentials", "secret", "iban", "card", "national_id", "email", "ip", "phone", "date_of_birth",
    "street_address", "third_party", "mixed",
)  # fmt: skip
FREE_SPANS = 32
BYTES_PER_SPAN = 96
# Where spans overlap the class that fewer levels show wins.
_RANK = (
    "mixed", "url_credentials", "secret", "third_party", "iban", "card", "national_id", "email", "ip", "date_of_birth",
    "street_address", "phone",
)  # fmt: skip

_MONTH = (
    r"(?:jan|feb|m[aä]r|apr|ma[iy]|jun|jul|aug|sep|o[ck]t|nov|de[cz])[a-zä]*\.?"  # English and German
)
_DATE = (
    rf"(?:\d{{4}}-\d{{2}}-\d{{2}}|\d{{1,2}}[./-]\d{{1,2}}[./-]\d{{2,4}}|\d{{1,2}}(?:st|nd|rd|th)?\.?(?: of)? {_MONTH},? \d{{4}}"
    rf"|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}|\d{{1,2}}(?:st|nd|rd|th)?\.?(?: of)? {_MONTH}\b|{_MONTH} \d{{1,2}}\b)"
)
_BORN = r"(?:born(?: on)?|birth ?da(?:y|te)|date of birth|d\.?o\.?b\.?|geboren(?: am)?|geburtsdatum|geburtstag)"
_STREET = (
    r"(?:street|st\.|road|rd\.|avenue|ave\.?|lane|drive|boulevard|blvd\.?|way|square|court|place|terrace|close)"
)
_TOWN = r"(?: (?-i:[NS][EW]?|[EW])\b)?(?:(?:, (?:\d{5} )?| \d{5} )(?-i:[A-ZÄÖÜ])\w+)?"
_STRASSE = rf"(?:stra(?:ss|ß)e|str\.|weg|allee|platz|markt|gasse|ring|ufer|damm) \d{{1,4}}(?: ?[a-z]\b)?{_TOWN}"
_NAMED = (
    r"\b(?:pass(?:word|wd|wort|phrase)|pwd|secret|api[ _-]?key|access[ _-]?key|token|pin)(?: is| ist)?"
    r"(?:\s*[:=]|(?<= is)|(?<= ist))\s*(?P<span>[^\s,;]{4,})"
)
_PATTERNS: tuple[tuple[str, str], ...] = (
    ("url_credentials", r"[a-z][a-z0-9+.-]{0,30}://[^\s/@:]{1,256}:[^\s/@]{1,256}@[^\s<>\"']*[^\s<>\"'.,;:!?)\]]"),
    ("url_credentials", r"https?://[^\s?#]{1,512}\?[^\s]{0,512}?(?:token|key|secret|password|sig|signature)=[^\s<>\"']*[^\s<>\"'.,;:!?)\]]"),
    ("secret", r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)"),
    ("secret", r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
    ("secret", r"(?-i:\b(?:AKIA|ASIA)[A-Z0-9]{16}\b)"),
    ("secret", r"\b(?:gh[pousr]_|github_pat_|glpat-|xox[abprs]-|sk-|sk_live_|sk_test_|rk_live_|AIza|npm_|hf_)[\w-]{16,}"),
    ("secret", _NAMED),
    ("iban", r"\b[a-z]{2}\d{2}(?: ?[a-z0-9]{4}){2,7}(?: ?[a-z0-9]{1,4})?\b"),
    ("national_id", r"(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])"),
    ("national_id", r"(?<![\w.])756\.\d{4}\.\d{4}\.\d{2}(?![\w])"),
    ("national_id", r"\b(?-i:[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z]) ?\d{2} ?\d{2} ?\d{2} ?(?-i:[A-D])\b"),
    ("national_id", r"\b(?-i:[A-Z]{6}\d{2}[A-EHLMPRST]\d{2}[A-Z]\d{3}[A-Z])\b"),
    ("national_id", r"(?<![\w+])[12] ?\d{2} ?(?:0[1-9]|1[0-2]) ?(?:\d{2}|2[AB]) ?\d{3} ?\d{3}(?: ?\d{2})?\b"),
    ("national_id", r"(?<![\w-])\d{8}-?(?-i:[A-HJ-NP-TV-Z])\b"),
    ("national_id", r"(?<![\w+./-])\d{2} ?\d{3} ?\d{3} ?\d{3}(?![\w.-])"),
    ("email", r"[\w.!#$%&'*+/=?^`{|}~-]{1,64}@(?:\w(?:[\w-]{0,61}\w)?\.)+[^\W\d_]{2,}"),
    ("ip", r"(?<![\w.])(?<!version )\d{1,3}(?:\.\d{1,3}){3}(?![\w]|\.\d)"),
    ("ip", r"(?<![\w:.])[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}(?:\d{1,3}(?:\.\d{1,3}){3})?(?![\w:])"),
    ("phone", r"(?<![\w+])(?:\+|00)[1-9](?:[ ()./-]{0,2}\d){6,14}(?![\w])"),
    ("phone", r"(?<![\w+.,-])\(?0[1-9]\d{0,4}\)?[ /-]{1,3}\d(?:[ /-]?\d){4,10}(?![\w])"),
    ("phone", r"(?<![\w+.,-])0[1-9]\d{7,12}(?![\w.])"),
    ("phone", r"(?<![\w+.-])\(?[2-9]\d{2}\)?[ .-]{1,2}\d{3}[ .-]\d{4}(?![\w])"),
    ("date_of_birth", rf"\b{_BORN}\b[^\n\d]{{0,24}}?(?P<span>{_DATE})"),
    ("date_of_birth", rf"(?P<span>{_DATE}) ?\((?:date of birth|birthday|dob)\)"),
    ("street_address", rf"\b\d{{1,5}}[a-z]? (?-i:[A-ZÄÖÜ][\w'.-]*)(?: (?-i:[A-ZÄÖÜ])[\w'.-]*){{0,3}} {_STREET}(?!\w){_TOWN}"),
    ("street_address", rf"(?-i:\b[A-ZÄÖÜ])[\w.-]{{0,40}}{_STRASSE}"),
    ("street_address", rf"(?-i:\b[A-ZÄÖÜ])[\w-]{{1,40}} {_STRASSE}"),
)  # fmt: skip
_COMPILED = [(cls, re.compile(pattern, re.IGNORECASE | re.DOTALL)) for cls, pattern in _PATTERNS]


@dataclass(frozen=True, order=True)
class Span:
    """From `start` up to `end`, in characters of the text as it stands."""

    start: int
    end: int
    cls: str


def _plain(text: str) -> str:
    """The text with digits, dashes, spaces and compatibility letters of all scripts as ASCII, character by character."""

    def one(letter: str) -> str:
        if letter.isascii():
            return letter
        category = unicodedata.category(letter)
        if category == "Nd":
            return str(unicodedata.digit(letter))
        if category in ("Pd", "Zs") or letter == "\u2212":
            return " " if category == "Zs" else "-"
        folded = unicodedata.normalize("NFKC", letter)
        return folded if len(folded) == 1 else letter

    return text if text.isascii() else "".join(map(one, text))


def _digits(text: str) -> str:
    return re.sub(r"\D", "", text)


def _luhn(digits: str) -> bool:
    doubled = sum(map(int, digits[::-2])) + sum(int("0246813579"[int(digit)]) for digit in digits[-2::-2])
    return doubled % 10 == 0 and len(set(digits)) > 1


def _iban(found: str) -> bool:
    compact = found.replace(" ", "").upper()
    turned = compact[4:] + compact[:4]
    return 15 <= len(compact) <= 34 and int("".join(str(int(c, 36)) for c in turned)) % 97 == 1


def _tax_id(digits: str) -> bool:
    """The check digit of a German tax number; other lengths have none that is checked here."""
    if len(digits) != 11:
        return True
    product = 10
    for digit in digits[:10]:
        total = (int(digit) + product) % 10 or 10
        product = 2 * total % 11
    return digits[0] != "0" and (11 - product) % 10 == int(digits[10])


def _is_ip(found: str) -> bool:
    try:
        ipaddress.ip_address(found)
    except ValueError:
        return False
    return len(found) > 3


def _holds(cls: str, found: str) -> bool:
    match cls:
        case "iban":
            return _iban(found)
        case "ip":
            return _is_ip(found)
        case "national_id":
            return _tax_id(_digits(found)) and not found.startswith(("000-", "666-", "9"))
        case "phone":
            return 7 <= len(_digits(found)) <= 16
    return True


class Contacts:
    """Names, addresses and numbers of the owner's contacts."""

    def __init__(self) -> None:
        self._words: set[str] = set()
        self._numbers: set[str] = set()
        self._pattern: re.Pattern[str] | None = None

    def add(self, structured: dict[str, Any]) -> None:
        """Takes in what a canonical contact (RFC 0005) says of a person."""
        names = structured.get("names")
        if isinstance(names, dict):
            said = [v for n, v in names.items() if isinstance(v, str) and "pronoun" not in n]
            given, family = names.get("given"), names.get("family")
            if isinstance(given, str) and isinstance(family, str):
                said += [f"{given} {family}", f"{family}, {given}"]
            self._words.update(word.strip() for word in said if len(word.strip()) > 2)
        for channel in structured.get("channels") or () if isinstance(structured.get("channels"), list) else ():
            value = channel.get("value") if isinstance(channel, dict) else None
            if isinstance(value, str):
                digits = _digits(value)
                if len(digits) >= 7 and not re.search(r"[a-z@]", value, re.IGNORECASE):
                    self._numbers.add(digits)
                elif len(value) > 2:
                    self._words.add(value.strip())
        self._addresses(structured.get("addresses"))
        words = sorted(map(_plain, self._words), key=len, reverse=True)
        whole = "|".join(map(re.escape, words))
        self._pattern = re.compile(rf"(?<!\w)(?:{whole})(?!\w)", re.IGNORECASE) if words else None

    def _addresses(self, value: Any) -> None:
        if isinstance(value, str) and re.search(r"\d", value) and re.search(r"[^\W\d]", value):
            self._words.add(value.strip())
        for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            self._addresses(inner)

    def spans(self, plain: str) -> Iterator[Span]:
        if self._pattern:
            for match in self._pattern.finditer(plain):
                yield Span(match.start(), match.end(), "third_party")
        if self._numbers:
            for match in re.finditer(r"(?<![\w+])\+?\(?\d(?:[ ()./-]{0,3}\d){6,}(?!\w)", plain):
                if self._knows(_digits(match.group())):
                    yield Span(match.start(), match.end(), "third_party")

    def _knows(self, digits: str) -> bool:
        tail = digits.lstrip("0")[-8:]
        return any(digits == n or (len(tail) >= 7 and n.endswith(tail)) for n in self._numbers)


def _cards(plain: str) -> Iterator[Span]:
    """Card numbers among groups of digits, whatever digits stand beside them."""
    for run in re.finditer(r"(?<![\w+])\d+(?:[ -]\d+)*(?!\w)", plain):
        groups = list(re.finditer(r"\d+", run.group()))
        for place, first in enumerate(groups):
            digits, end = "", 0
            for group in groups[place : place + 19]:
                digits += group.group()
                if len(digits) > 19:
                    break
                end = group.end() if len(digits) >= 13 and _luhn(digits) else end
            if end:
                yield Span(run.start() + first.start(), run.start() + end, "card")


def _merge(found: list[Span]) -> list[Span]:
    """Spans that overlap become one."""
    out: list[Span] = []
    for span in sorted(found):
        if out and span.start < out[-1].end:
            last = out.pop()
            span = Span(last.start, max(last.end, span.end), min(last.cls, span.cls, key=_RANK.index))
        out.append(span)
    return out


def _join(spans: list[Span], most: int) -> list[Span]:
    """In a text with very many, those nearest to each other become one; of several classes it is `mixed`."""
    gaps = sorted(range(1, len(spans)), key=lambda n: spans[n].start - spans[n - 1].end)
    closed = set(gaps[: max(0, len(spans) - most)])
    out: list[Span] = []
    for place, span in enumerate(spans):
        if place in closed:
            last = out.pop()
            span = Span(last.start, span.end, last.cls if last.cls == span.cls else "mixed")
        out.append(span)
    return out


def detect(text: str, contacts: Contacts | None = None) -> list[Span]:
    """The personal spans of a text, in order, none in another."""
    plain = _plain(text)
    found = [*(contacts.spans(plain) if contacts else ()), *_cards(plain)]
    for cls, pattern in _COMPILED:
        group = "span" if "span" in pattern.groupindex else 0
        for match in pattern.finditer(plain):
            if _holds(cls, match.group(group)):
                found.append(Span(match.start(group), match.end(group), cls))
    return _join(_merge(found), max(FREE_SPANS, len(text.encode()) // BYTES_PER_SPAN))
