"""Whatever comes: a report or `Refused`; and no change of a proof goes through."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from portable import Case, proofs
from test_portable import PROOFS

from oap_memory import OapError, Refused, canonical, verify
from oap_memory.encoding import b64, unb64
from oap_memory.items import verify_item

GENUINE: dict[str, Case] = {file: next(case for case in proofs(file) if case.valid) for file in PROOFS}
ITEM = GENUINE["proof-items.json"]
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**53 - 1) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
FAST = settings(suppress_health_check=[HealthCheck.too_slow])


def places(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield here
    if isinstance(value, dict):
        for name, member in value.items():
            yield from places(member, (*here, name))
    elif isinstance(value, list):
        for index, element in enumerate(value):
            yield from places(element, (*here, index))


def replaced(value: Any, place: tuple[Any, ...], by: Any) -> Any:
    if not place:
        return by
    value = copy.deepcopy(value)
    inside = value
    for step in place[:-1]:
        inside = inside[step]
    inside[place[-1]] = by
    return value


@FAST
@given(st.data())
def test_any_changed_byte_of_a_disclosed_claim_is_refused(data: st.DataObject) -> None:
    issuer, *disclosures, end = ITEM.input["integrity"]["sd_jwt"].split("~")
    which = data.draw(st.integers(0, len(disclosures) - 1))
    raw = bytearray(unb64(disclosures[which]) or b"")
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] ^= data.draw(st.integers(1, 255))
    disclosures[which] = b64(bytes(raw))
    changed = replaced(ITEM.input, ("integrity", "sd_jwt"), "~".join([issuer, *disclosures, end]))
    with pytest.raises(Refused):
        verify_item(changed, ITEM.reader)


# What stands outside of an item's proof is the discloser's word.
BESIDE = {("relevance",), ("epistemic",), ("embedding_ref",)}
VISIBLE = [place for place in places(ITEM.input) if place and place not in BESIDE]


@FAST
@given(st.sampled_from(VISIBLE), JUNK)
def test_any_other_value_in_an_item_is_refused(place: tuple[Any, ...], junk: Any) -> None:
    inside = ITEM.input
    for step in place:
        inside = inside[step]
    if same(inside, junk):
        return
    with pytest.raises(Refused):
        verify_item(replaced(ITEM.input, place, junk), ITEM.reader)


def same(left: Any, right: Any) -> bool:
    try:
        return canonical(left) == canonical(right)
    except Refused:
        return False


@pytest.mark.parametrize("file", PROOFS)
def test_nothing_but_refused(file: str) -> None:
    case = GENUINE[file]
    judge: Callable[..., Any] = PROOFS[file][1]
    everywhere = list(places(case.input))

    @FAST
    @given(st.sampled_from(everywhere), JUNK)
    def one(place: tuple[Any, ...], junk: Any) -> None:
        value = replaced(case.input, place, junk)
        if file == "proof-bundles.json" and not (isinstance(value, list) and all(isinstance(x, str) for x in value)):
            return
        if file in ("proof-delegations.json", "proof-answers-under-grants.json") and len(place) < 2:
            return
        try:
            judge(value, case.reader)
        except Refused as wrong:
            assert wrong.check and (wrong.field == "" or wrong.field.startswith("/"))

    one()


@FAST
@given(JUNK | st.binary(max_size=300), JUNK, st.lists(JUNK, max_size=2), st.none() | st.text(max_size=9))
def test_any_input_at_all(value: Any, grant: Any, ancestors: list[Any], listed: str | None) -> None:
    with contextlib.suppress(OapError):
        verify(value, grant=grant, ancestors=ancestors, status_list=listed)


@FAST
@given(st.sampled_from(sorted(PROOFS)), st.integers(0, 10**6), st.binary(max_size=3))
def test_any_change_of_the_text(file: str, at: int, by: bytes) -> None:
    case = GENUINE[file]
    text = "".join(case.input) if file == "proof-bundles.json" else case.input
    raw = (text if isinstance(text, str) else json.dumps(text)).encode()
    at %= len(raw)
    with contextlib.suppress(OapError):
        verify(raw[:at] + by + raw[at + 1 :], documents=case.reader.documents, now=case.reader.now)
