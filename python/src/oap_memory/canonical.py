"""Strict JSON and its canonical form, RFC 8785 (docs/bytes.md 1)."""

from __future__ import annotations

import hashlib
import json
import re
from json.encoder import encode_basestring
from typing import Any

from .errors import Refused

Json = bool | int | float | str | list[Any] | dict[str, Any] | None

MAX_DEPTH = 64
"""Levels of arrays and objects within each other."""
FREE_NODES = 65_536
"""Values that a JSON text of any length may have."""
BYTES_PER_NODE = 16
"""A text with more values than `FREE_NODES` has so many bytes for each more."""
MAX_INTEGER = 2**53 - 1
"""The largest whole number that every reader reads alike."""

# A text that does not end is one token too: it must not be looked at again from within.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+\\?(?:"|\Z)|[\[\]{},]', re.S)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_LONE = re.compile("[\ud800-\udfff]")


def _malformed(must: str) -> Refused:
    return Refused("json", "", must)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _malformed("must not have a member twice")
    return members


def _integer(text: str) -> int:
    if len(text) > 17 or abs(number := int(text)) > MAX_INTEGER:
        raise _malformed("must not have a whole number beyond 2^53-1; write it as a text")
    return number


def _real(text: str) -> int | float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise _malformed("must not have a number that no double holds")
    if not number.is_integer() or abs(number) >= 1e21:
        return number
    if abs(number) > MAX_INTEGER:
        raise _malformed("must not have a whole number beyond 2^53-1; write it as a text")
    return int(number)


def _constant(_: str) -> float:
    raise _malformed("must not have NaN or Infinity")


def _bounded(text: str, size: int) -> None:
    depth = nodes = 0
    for token in _TOKEN.finditer(text):
        first = text[token.start()]
        if first in "[{":
            depth += 1
            nodes += 1
            if depth > MAX_DEPTH:
                raise _malformed(f"must have at most {MAX_DEPTH} levels")
        elif first in "]}":
            depth -= 1
        elif first == ",":
            nodes += 1
    if nodes > FREE_NODES + size // BYTES_PER_NODE:
        raise _malformed("must not have so many values in so short a text")


def parse(text: bytes | str) -> Json:
    """The value of a JSON text. Refuses what two readers could read differently.

    A number without a fraction is an `int`, as its canonical form says.

    >>> parse('{"a": [1.0, 2.5]}')
    {'a': [1, 2.5]}
    >>> parse('{"a": 1, "a": 2}')
    Traceback (most recent call last):
    oap_memory.errors.Refused: json: / must not have a member twice
    """
    if isinstance(text, bytes):
        size = len(text)
        try:
            text = text.decode()
        except UnicodeDecodeError:
            raise _malformed("must be UTF-8") from None
    else:
        if _LONE.search(text):
            raise _malformed("must not have a lone surrogate")
        size = len(text)
    _bounded(text, size)
    try:
        value: Json = json.loads(
            text,
            object_pairs_hook=_members,
            parse_int=_integer,
            parse_float=_real,
            parse_constant=_constant,
        )
    except (ValueError, RecursionError):
        raise _malformed("must be JSON") from None
    if _SURROGATE.search(text):
        _whole_characters(value)
    return value


def _whole_characters(value: Json) -> None:
    if isinstance(value, str):
        if _LONE.search(value):
            raise _malformed("must not have a lone surrogate")
    elif isinstance(value, list):
        for element in value:
            _whole_characters(element)
    elif isinstance(value, dict):
        for name, member in value.items():
            _whole_characters(name)
            _whole_characters(member)


def _number(value: float) -> str:
    """ECMAScript's Number::toString, which RFC 8785 asks for."""
    if value != value or value in (float("inf"), float("-inf")):
        raise _malformed("must not have NaN or Infinity")
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    point = len(whole) + int(exponent or 0)
    digits = whole + fraction
    stripped = digits.lstrip("0")
    point -= len(digits) - len(stripped)
    digits = stripped.rstrip("0")
    count = len(digits)
    if count <= point <= 21:
        return sign + digits + "0" * (point - count)
    if 0 < point <= 21:
        return sign + digits[:point] + "." + digits[point:]
    if -6 < point <= 0:
        return sign + "0." + "0" * -point + digits
    power = f"e{'+' if point > 0 else '-'}{abs(point - 1)}"
    return sign + digits[0] + ("." + digits[1:] if count > 1 else "") + power


def _order(name: str) -> bytes:
    return name.encode("utf-16-be")


def _write(value: Json, out: list[str], depth: int) -> None:
    if value is None:
        out.append("null")
    elif value is True:
        out.append("true")
    elif value is False:
        out.append("false")
    elif isinstance(value, str):
        out.append(encode_basestring(value))
    elif isinstance(value, int):
        if abs(value) > MAX_INTEGER:
            raise _malformed("must not have a whole number beyond 2^53-1; write it as a text")
        out.append(str(value))
    elif isinstance(value, float):
        out.append(_number(value))
    elif depth >= MAX_DEPTH:
        raise _malformed(f"must have at most {MAX_DEPTH} levels")
    elif isinstance(value, list):
        out.append("[")
        for place, element in enumerate(value):
            if place:
                out.append(",")
            _write(element, out, depth + 1)
        out.append("]")
    elif isinstance(value, dict):
        out.append("{")
        for place, name in enumerate(sorted(value, key=None if all(map(str.isascii, value)) else _order)):
            if place:
                out.append(",")
            out.append(encode_basestring(name))
            out.append(":")
            _write(value[name], out, depth + 1)
        out.append("}")
    else:
        raise _malformed("must be made of JSON values alone")


def canonical(value: Json, *without: str) -> bytes:
    """The RFC 8785 bytes of a value, of an object without the members `without`.

    >>> canonical({"b": 1e21, "a": [1.0, 0.5], "signature": "x"}, "signature")
    b'{"a":[1,0.5],"b":1e+21}'
    """
    if without and isinstance(value, dict):
        value = {name: member for name, member in value.items() if name not in without}
    out: list[str] = []
    try:
        _write(value, out, 0)
        return "".join(out).encode()
    except (UnicodeEncodeError, TypeError):
        raise _malformed("must be made of JSON values alone, without lone surrogates") from None


def sha256(data: bytes) -> str:
    """The hash as the protocol writes it.

    >>> sha256(b"")
    'sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'
    """
    return "sha256:" + hashlib.sha256(data).hexdigest()


def hash_of(value: Json, *without: str) -> str:
    """The hash of the canonical form.

    >>> hash_of({"a": 1, "signature": "x"}, "signature") == sha256(b'{"a":1}')
    True
    """
    return sha256(canonical(value, *without))
