"""Reading JSON into dataclasses, as their annotations say. What a newer gateway adds is passed over."""

from __future__ import annotations

import types
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from .errors import Unreachable
from .form import Malformed

T = TypeVar("T")


@cache
def _hints(shape: type) -> dict[str, Any]:
    return get_type_hints(shape)


def _object(shape: Any, value: Any, place: str) -> Any:
    if not isinstance(value, dict):
        raise Malformed(place, "must be an object")
    given = {}
    for one in fields(shape):
        if one.name in value:
            given[one.name] = _read(_hints(shape)[one.name], value[one.name], f"{place}/{one.name}")
        elif one.default is MISSING and one.default_factory is MISSING:
            raise Malformed(f"{place}/{one.name}", "must be there")
    return shape(**given)


def _read(shape: Any, value: Any, place: str) -> Any:
    if is_dataclass(shape):
        return _object(shape, value, place)
    origin, within = get_origin(shape), get_args(shape)
    if origin in (types.UnionType, Union):
        inner = next(one for one in within if one is not type(None))
        return None if value is None else _read(inner, value, place)
    if origin is tuple:
        if not isinstance(value, list):
            raise Malformed(place, "must be a list")
        return tuple(_read(within[0], element, f"{place}/{index}") for index, element in enumerate(value))
    if origin is dict:
        if not isinstance(value, dict):
            raise Malformed(place, "must be an object")
        return {name: _read(within[1], member, f"{place}/{name}") for name, member in value.items()}
    if shape is Any:
        return value
    if shape is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if type(value) is not shape:
        raise Malformed(place, f"must be a {shape.__name__}")
    return value


def read(shape: type[T], value: Any) -> T:
    """The dataclass that a JSON value has the form of; else `Unreachable`, for then it is no answer.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Point:
    ...     x: float
    >>> read(Point, {"x": 1, "y": 2})
    Point(x=1.0)
    >>> read(Point, {"x": "one"})
    Traceback (most recent call last):
    oap_memory.errors.Unreachable: the gateway's answer: /x must be a float
    """
    try:
        done: T = _read(shape, value, "")
    except Malformed as wrong:
        raise Unreachable(f"the gateway's answer: {wrong}") from None
    return done
