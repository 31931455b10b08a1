"""base64url without padding, and base58btc: each text has one reading."""

from __future__ import annotations

import base64
import re

_BASE64URL = re.compile(r"[A-Za-z0-9_-]*")
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
MAX_BASE58 = 512
"""Characters of a base58 text: decoding takes their square."""


def b64(data: bytes) -> str:
    """base64url (RFC 4648 section 5) without padding.

    >>> b64(bytes([255, 254]))
    '__4'
    """
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unb64(text: str) -> bytes | None:
    """The bytes, or `None` where the text is not the one text that stands for them.

    >>> unb64("__4"), unb64("__5"), unb64("__4=")
    (b'\\xff\\xfe', None, None)
    """
    if not _BASE64URL.fullmatch(text) or len(text) % 4 == 1:
        return None
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    return data if b64(data) == text else None


def base58(data: bytes) -> str:
    """base58btc.

    >>> base58(bytes([0, 57, 58]))
    '15Mb'
    """
    number, out = int.from_bytes(data, "big"), ""
    while number:
        number, digit = divmod(number, 58)
        out = _BASE58[digit] + out
    return "1" * (len(data) - len(data.lstrip(b"\0"))) + out


def unbase58(text: str) -> bytes | None:
    """The bytes, or `None` where the text is no base58btc.

    >>> unbase58("15Mb"), unbase58("0")
    (b'\\x009:', None)
    """
    number = 0
    if len(text) > MAX_BASE58:
        return None
    for letter in text:
        digit = _BASE58.find(letter)
        if digit < 0:
            return None
        number = number * 58 + digit
    zeros = len(text) - len(text.lstrip("1"))
    return b"\0" * zeros + number.to_bytes((number.bit_length() + 7) // 8, "big")
