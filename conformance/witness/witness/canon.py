"""Canonical JSON, strict reading, hashes and base64url (docs/protocol.md section 1, docs/bytes.md section 1)."""

import base64
import hashlib
import json
import math
import re
from typing import Any

MAX_DEPTH = 64
FREE_VALUES = 65536
BYTES_PER_VALUE = 16
MAX_WHOLE = 2**53 - 1


class Malformed(ValueError):
    """A text that a strict reader refuses. It never holds what was read."""


def number(value: float) -> str:
    """A double as ECMAScript writes it (RFC 8785 section 3.2.2.3)."""
    if value == 0:
        return "0"
    sign, value = ("-", -value) if value < 0 else ("", value)
    mantissa, _, exponent = f"{value!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0)
    if whole.strip("0") == "":
        point = int(exponent or 0) - (len(fraction) - len(fraction.lstrip("0")))
    digits = digits.rstrip("0")
    count = len(digits)
    if count <= point <= 21:
        return sign + digits + "0" * (point - count)
    if 0 < point <= 21:
        return sign + digits[:point] + "." + digits[point:]
    if -6 < point <= 0:
        return sign + "0." + "0" * -point + digits
    power = f"e{'+' if point > 0 else '-'}{abs(point - 1)}"
    return sign + digits[0] + ("." + digits[1:] if count > 1 else "") + power


def _write(value: Any, out: list[str]) -> None:
    if isinstance(value, str):
        out.append(json.dumps(value, ensure_ascii=False))
    elif value is None or isinstance(value, bool):
        out.append({None: "null", True: "true", False: "false"}[value])
    elif isinstance(value, int):
        out.append(str(value))
    elif isinstance(value, float):
        out.append(number(value))
    elif isinstance(value, dict):
        out.append("{")
        for place, name in enumerate(sorted(value, key=lambda n: n.encode("utf-16-be"))):
            out.append(("," if place else "") + json.dumps(name, ensure_ascii=False) + ":")
            _write(value[name], out)
        out.append("}")
    else:
        out.append("[")
        for place, element in enumerate(value):
            if place:
                out.append(",")
            _write(element, out)
        out.append("]")


def jcs(value: Any, *without: str) -> bytes:
    """The RFC 8785 bytes of a value, without some members of it."""
    out: list[str] = []
    _write({n: v for n, v in value.items() if n not in without} if without else value, out)
    return "".join(out).encode()


def _whole(text: str) -> int:
    if len(text) > 17 or abs(int(text)) > MAX_WHOLE:
        raise Malformed("a whole number beyond 2^53-1")
    return int(text)


def _double(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise Malformed("a number beyond the doubles")
    if value.is_integer() and MAX_WHOLE < abs(value) < 1e21:
        raise Malformed("a whole number beyond 2^53-1")
    return value


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise Malformed("a member twice")
    return members


def _constant(_: str) -> Any:
    raise Malformed("no JSON number")


def _judge(value: Any, left: list[int], depth: int) -> None:
    left[0] -= 1
    if left[0] < 0:
        raise Malformed("too many values")
    if isinstance(value, (dict, list)):
        if depth >= MAX_DEPTH:
            raise Malformed("too deep")
        for name in value if isinstance(value, dict) else ():
            name.encode()
        for element in value.values() if isinstance(value, dict) else value:
            _judge(element, left, depth + 1)
    elif isinstance(value, str):
        value.encode()


def read(text: bytes | str) -> Any:
    """What a JSON text says, read strictly (section 1): nothing twice, no lone surrogate, at most 64 levels."""
    try:
        words = text.decode("utf-8") if isinstance(text, bytes) else text
        value = json.loads(
            words, object_pairs_hook=_members, parse_int=_whole, parse_float=_double, parse_constant=_constant
        )
        _judge(value, [1 + FREE_VALUES + len(words.encode()) // BYTES_PER_VALUE], 0)
    except Malformed:
        raise
    except (ValueError, RecursionError) as error:
        raise Malformed("no JSON") from error
    return value


def sha256(data: bytes | str) -> str:
    """`sha256:` and 64 lower-case hex digits."""
    return "sha256:" + hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def b64(data: bytes) -> str:
    """base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unb64(text: str) -> bytes:
    """The bytes of base64url without padding; one encoding a value, no other is read."""
    if not re.fullmatch(r"[A-Za-z0-9_-]*", text):
        raise Malformed("no base64url")
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError as error:
        raise Malformed("no base64url") from error
    if b64(data) != text:
        raise Malformed("no base64url")
    return data


def digest(text: str) -> str:
    """base64url of the SHA-256 of a text."""
    return b64(hashlib.sha256(text.encode()).digest())
