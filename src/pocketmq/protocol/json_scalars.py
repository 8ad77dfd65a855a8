"""Strings, numbers and booleans as fastjson coerces them into each other.

Converters return None for an empty string where something else is meant: the field keeps its
default.
"""

from collections.abc import Callable
from types import NoneType
from typing import Any

from pocketmq.protocol.fastjson import dumps

_LONGEST_NUMBER = 400


class Mismatch(Exception):
    """A value that does not fit its field; `json_values` gathers the path on the way out."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.path: list[str] = []


def _string(value: Any) -> str:
    if isinstance(value, str):
        return str(value)
    return dumps(value).decode()  # fastjson too keeps the JSON text of whatever stands there


def _integer(value: Any) -> int | None:
    if type(value) is str:
        if not value.strip():
            return None
        value = _number_in(value)
    if type(value) is float and value.is_integer():
        value = int(value)
    if not isinstance(value, int):
        raise Mismatch(f"is {kind_of(value)}, not an integer")
    if not -(2**63) <= value < 2**63:
        raise Mismatch("does not fit 64 bits")
    return int(value)


def _double(value: Any) -> float | None:
    if type(value) is str:
        if not value.strip():
            return None
        value = _number_in(value)
    if isinstance(value, int | float):
        try:
            return float(value)
        except OverflowError:
            raise Mismatch("is too large a number") from None
    raise Mismatch(f"is {kind_of(value)}, not a number")


def _number_in(text: str) -> int | float:
    if len(text) > _LONGEST_NUMBER:
        raise Mismatch("is a string, not a number")
    try:
        return int(text) if text.strip().lstrip("+-").isdecimal() else float(text)
    except ValueError:
        raise Mismatch("is a string, not a number") from None


_TRUTH = {"true": True, "1": True, "y": True, "t": True} | {
    "false": False, "0": False, "n": False, "f": False,
}  # fmt: skip


def _boolean(value: Any) -> bool | None:
    if type(value) is bool:
        return value
    if type(value) is int and value in (0, 1):
        return value == 1
    if type(value) is str:
        if not value.strip():
            return None
        if (truth := _TRUTH.get(value.lower())) is not None:
            return truth
    raise Mismatch(f"is {kind_of(value)}, not a boolean")


SCALARS: dict[Any, Callable[[Any], Any]] = {
    str: _string,
    int: _integer,
    float: _double,
    bool: _boolean,
}

_KINDS = {
    dict: "an object", list: "an array", str: "a string", bool: "a boolean", int: "a number",
    float: "a number", NoneType: "null",
}  # fmt: skip


def kind_of(value: Any) -> str:
    """Return the kind of a JSON value for an error; never its content, which may be secret."""
    return _KINDS.get(type(value), "something else")
