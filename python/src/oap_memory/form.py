"""The form of documents: small checks that are put together, each naming the member that fails.

A form takes a value and its place (a JSON Pointer), and raises `Malformed`. The forms are those of `schemas/`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from .errors import Refused
from .times import instant

Form = Callable[[Any, str], None]


class Malformed(Exception):
    """A member has not the form that it must have."""

    def __init__(self, field: str, must: str) -> None:
        """`field` is a JSON Pointer."""
        self.field = field
        self.must = must
        super().__init__(f"{field or '/'} {must}")


def hold(form: Form, value: Any, check: str) -> dict[str, Any]:
    """The object, where it has the form; else `Refused` with `check`.

    >>> hold(obj({"a": BOOLEAN}), {"a": True}, "thing.malformed")
    {'a': True}
    >>> hold(obj({"a": BOOLEAN}), {"a": 1}, "thing.malformed")
    Traceback (most recent call last):
    oap_memory.errors.Refused: thing.malformed: /a must be true or false
    """
    try:
        form(value, "")
    except Malformed as wrong:
        raise Refused(check, wrong.field, wrong.must) from None
    if not isinstance(value, dict):
        raise Refused(check, "", "must be an object")
    return value


def fits(form: Form, value: Any) -> bool:
    """Whether the value has the form.

    >>> fits(DID, "did:web:a.example"), fits(DID, "ann")
    (True, False)
    """
    try:
        form(value, "")
    except Malformed:
        return False
    return True


def text(pattern: str, must: str, longest: int | None = None) -> Form:
    """A text that matches as a whole, with at most `longest` characters.

    >>> fits(text("a+", "must be a's"), "aa")
    True
    """
    compiled = re.compile(pattern, re.S)

    def check(value: Any, place: str) -> None:
        if (
            not isinstance(value, str)
            or (longest is not None and len(value) > longest)
            or not compiled.fullmatch(value)
        ):
            raise Malformed(place, must)

    return check


def one_of(*values: str) -> Form:
    """One of the texts.

    >>> fits(one_of("a", "b"), "c")
    False
    """

    def check(value: Any, place: str) -> None:
        if not isinstance(value, str) or value not in values:
            raise Malformed(place, "must be one of " + ", ".join(values))

    return check


def integer(low: int, high: int = 2**53 - 1) -> Form:
    """A whole number.

    >>> fits(integer(0), True), fits(integer(0), 7)
    (False, True)
    """

    def check(value: Any, place: str) -> None:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise Malformed(place, f"must be a whole number from {low} to {high}")

    return check


def number(low: float, high: float) -> Form:
    """A number.

    >>> fits(number(0, 1), 0.5)
    True
    """

    def check(value: Any, place: str) -> None:
        if not isinstance(value, int | float) or isinstance(value, bool) or not low <= value <= high:
            raise Malformed(place, f"must be a number from {low} to {high}")

    return check


def array(of: Form, least: int = 0, most: int | None = None, *, once: bool = False) -> Form:
    """A list; with `once` none of its texts twice.

    >>> fits(array(BOOLEAN, most=1), [True, False])
    False
    """

    def check(value: Any, place: str) -> None:
        if not isinstance(value, list):
            raise Malformed(place, "must be a list")
        if len(value) < least or (most is not None and len(value) > most):
            raise Malformed(place, f"must have from {least} to {'any number of' if most is None else most} elements")
        for index, element in enumerate(value):
            of(element, f"{place}/{index}")
        if once and len(set(value)) != len(value):
            raise Malformed(place, "must not have an element twice")

    return check


_OWN = re.compile(r"[a-z0-9_]{1,32}")


def obj(required: Mapping[str, Form], optional: Mapping[str, Form] | None = None, *, closed: bool = True) -> Form:
    """An object with these members, and no others where it is closed.

    >>> fits(obj({"a": BOOLEAN}), {"a": True, "b": 1}), fits(obj({"a": BOOLEAN}, closed=False), {"a": True, "b": 1})
    (False, True)
    """
    forms = {**required, **(optional or {})}

    def check(value: Any, place: str) -> None:
        if not isinstance(value, dict):
            raise Malformed(place, "must be an object")
        for name in required:
            if name not in value:
                raise Malformed(f"{place}/{name}", "must be there")
        for name, member in value.items():
            if (form := forms.get(name)) is not None:
                form(member, f"{place}/{name}")
            elif closed:
                raise Malformed(f"{place}/{name}" if _OWN.fullmatch(name) else place, "must not have that member")

    return check


def anything(_: Any, __: str) -> None:
    """Any value.

    >>> fits(anything, None)
    True
    """


def boolean(value: Any, place: str) -> None:
    """True or false.

    >>> fits(boolean, True), fits(boolean, 1)
    (True, False)
    """
    if not isinstance(value, bool):
        raise Malformed(place, "must be true or false")


def exactly(wanted: Any) -> Form:
    """That value alone.

    >>> fits(exactly(1), True)
    False
    """

    def check(value: Any, place: str) -> None:
        if type(value) is not type(wanted) or value != wanted:
            raise Malformed(place, f"must be {str(wanted).lower() if isinstance(wanted, bool) else wanted}")

    return check


def time(value: Any, place: str) -> None:
    """A time of the wire.

    >>> fits(time, "2026-05-01T12:00:00.000Z"), fits(time, "noon")
    (True, False)
    """
    if not isinstance(value, str) or instant(value) is None:
        raise Malformed(place, "must be an RFC 3339 time in UTC with Z")


def either(*forms: Form) -> Form:
    """A value that has one of the forms.

    >>> fits(either(BOOLEAN, TEXT), "x")
    True
    """

    def check(value: Any, place: str) -> None:
        wrong: Malformed | None = None
        for form in forms:
            try:
                return form(value, place)
            except Malformed as this:
                wrong = wrong or this
        raise wrong or Malformed(place, "must be something")

    return check


_ULID = "[0-7][0-9A-HJKMNP-TV-Z]{25}"
_DID = r"did:[a-z0-9]+:[A-Za-z0-9._:%-]+"


def _id(prefix: str) -> Form:
    return text(prefix + _ULID, f"must be {prefix} and a ULID")


BOOLEAN: Form = boolean
TEXT = text(".*", "must be a text")
TIME: Form = time
COUNT = integer(0)
_ANY_DID = text(_DID, "must be a DID", 512)
_WEB = re.compile(
    r"did:web:(?=[^:]{1,253}(?::|\Z))(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)*[A-Za-z](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
    r"(?:%3[Aa]([1-9][0-9]{0,4}))?((?::[A-Za-z0-9._-]+)*)"
)
"""A domain name, maybe a port, maybe a path: no IP address, nothing that would lead elsewhere."""


def did(value: Any, place: str) -> None:
    """A DID; one of did:web names a domain, maybe a port, maybe a path.

    >>> fits(did, "did:web:a.example%3A8443:ann"), fits(did, "did:web:127.0.0.1")
    (True, False)
    """
    _ANY_DID(value, place)
    if value.startswith("did:web:"):
        match = _WEB.fullmatch(value)
        if match is None or int(match[1] or 0) > 65_535 or {"", ".", ".."} & set(match[2].split(":")[1:]):
            raise Malformed(place, "must be a did:web of a domain name, maybe %3A and a port, maybe a path")


def scoped_did(value: Any, place: str) -> None:
    """A DID, # and a scope.

    >>> fits(scoped_did, "did:web:a.example#personal"), fits(scoped_did, "did:web:a.example#key-1")
    (True, False)
    """
    _ANY_SCOPED(value, place)
    did(value.partition("#")[0], place)


DID: Form = did
KID = text(_DID + r"#[A-Za-z0-9._~-]+", "must be a DID, # and the name of a key", 1024)
SCOPE = text(r"(?!key-)[A-Za-z0-9._~-]{1,64}", "must be the name of a scope")
_ANY_SCOPED = text(_DID + r"#(?!key-)[A-Za-z0-9._~-]{1,64}", "must be a DID, # and a scope", 577)
SCOPED_DID: Form = scoped_did
HASH = text("sha256:[0-9a-f]{64}", "must be sha256: and 64 lower-case hex digits")
PREVIOUS = text("genesis|sha256:[0-9a-f]{64}", "must be a hash or genesis")
ITEM_ID = _id("mem_")
GRANT_ID = _id("mgr_")
RECEIPT_ID = _id("urn:oap:receipt:")
SHORT_RECEIPT_ID = _id("rec_")
DELETION_ID = _id("urn:oap:deletion:")
DECISION_ID = _id("pol_")
BUNDLE_ID = _id("bdl_")
REQUEST_ID = text("[0-9A-HJKMNP-TV-Z]{26}", "must be 26 characters of Crockford's base32")
TAG = text(f"mem_{_ULID}@sha256:[0-9a-f]{{64}}", "must be an item's id, @ and a commitment")
SIGNATURE_VALUE = text("[A-Za-z0-9_-]{86}", "must be 64 bytes in base64url")
PROFILE = text(r"oap\.profile\.projection\..+\.v[0-9]+", "must be the name of a projection profile")
TRUST_LEVEL = integer(0, 4)
URL = text(r"https?://[^ ]+", "must be an address")
CONFIDENCE = number(0, 1)
KIND = one_of("fact", "preference", "conversation_turn", "summary", "observation", "document_reference")
SENSITIVITY = one_of("public", "internal", "confidential", "restricted")
LAWFUL_BASIS = one_of(
    "consent", "contract", "legal_obligation", "vital_interests", "public_task", "legitimate_interests"
)
EVENT = one_of(
    "capture",
    "correct",
    "relabel",
    "reseal",
    "confirm",
    "merge",
    "retract",
    "restore",
    "import",
    "migrate",
    "expire",
    "erase",
)
ENVELOPE_SIGNATURE = obj({"alg": exactly("EdDSA"), "kid": KID, "value": SIGNATURE_VALUE})
OPEN = obj({}, closed=False)
