from __future__ import annotations

import contextlib
import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oap_memory import Refused, canonical, parse

# RFC 8785 appendix B.
NUMBERS = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555554": "333333333.33333325",
    "41b3de4355555555": "333333333.3333333",
    "becbf647612f3696": "-0.0000033333333333333333",
}


@pytest.mark.parametrize(("bits", "text"), NUMBERS.items())
def test_numbers_are_written_as_rfc_8785_has_it(bits: str, text: str) -> None:
    assert canonical(struct.unpack(">d", bytes.fromhex(bits))[0]) == text.encode()


def test_members_are_ordered_by_utf_16() -> None:
    assert canonical({"\ufb33": 1, "\U0001f600": 2, "\r": 3}) == '{"\\r":3,"\U0001f600":2,"\ufb33":1}'.encode()


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"a":1}',
        '{"a":{"b":1,"b":2}}',
        "9007199254740992",
        "-9007199254740992",
        "9007199254740992.0",
        "1e20",
        "1e400",
        "NaN",
        "Infinity",
        '"\\ud800"',
        '{"\\udc00":1}',
        "[1,]",
        "01",
        "[1] 2",
        '"a\tb"',
        "",
        "[" * 65 + "]" * 65,
        "[" * 100_000,
        "[" + "0," * 80_000 + "0]",
        b"\xff",
        b"\xef\xbb\xbf{}",
        "1" * 5000,
        '["' + '\\"' * 1_000_000,
        '["' + '\\"' * 1_000_000 + "\\",
    ],
)
def test_what_two_readers_could_read_differently_is_refused(text: str | bytes) -> None:
    with pytest.raises(Refused):
        parse(text)


def test_what_is_just_within_the_bounds_is_read() -> None:
    assert parse("[" * 64 + "]" * 64)
    assert parse("9007199254740991") == 2**53 - 1
    assert parse("1e21") == 1e21
    assert parse('"\\ud83d\\ude00"') == "\U0001f600"
    assert parse("[" + "0," * 60_000 + "0]")


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: not (2**53 - 1 < abs(x) < 1e21))
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_the_canonical_form_is_read_back_as_itself(value: object) -> None:
    text = json.dumps(value).encode()
    try:
        once = canonical(parse(text))
    except Refused:
        assert b"\\ud" in text.lower()
        return
    assert canonical(parse(once)) == once


@given(st.binary(max_size=200) | st.text(max_size=200))
def test_any_text_is_read_or_refused(text: bytes | str) -> None:
    with contextlib.suppress(Refused):
        parse(text)
