"""The comparisons of SQL92 as closures over a message's properties.

Owns how null and the kinds of values meet in `=`, the ordering signs and BETWEEN. Each has a
general form over any two operands, and a short one for a property beside a number or text.
"""

import operator
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from pocketmq.protocol.filter.sql.tree import OrderSign
from pocketmq.protocol.filter.sql.values import (
    Value,
    is_int,
    order,
    order_numbers,
    read_double,
    read_int,
    read_long,
)

Properties: TypeAlias = Mapping[str, str]
Read: TypeAlias = Callable[[Properties], Value]
Run: TypeAlias = Callable[[Properties], bool | None]

MIRRORED: Final[dict[OrderSign, OrderSign]] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}

_SIGNS: Final[dict[OrderSign, Callable[[float, float], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _above(value: float, bound: float) -> bool:
    return not value <= bound  # not-a-number is above every bound


def _not_below(value: float, bound: float) -> bool:
    return not value < bound


_REAL_SIGNS = _SIGNS | {">": _above, ">=": _not_below}


def equals(left: Read, right: Read) -> Run:
    """`=` between any two operands. Both are always evaluated."""

    def run(properties: Properties) -> bool | None:
        one = left(properties)
        other = right(properties)
        if one is None:
            return True if other is None else None
        if other is None:
            return False
        return order(one, other) == 0

    return run


def equals_text(name: str, text: str, *, negated: bool) -> Run:
    """`name = 'text'`, or `<>` when negated."""

    def same(properties: Properties) -> bool | None:
        value = properties.get(name)
        return None if value is None else value == text

    def different(properties: Properties) -> bool | None:
        value = properties.get(name)
        return None if value is None else value != text

    return different if negated else same


def equals_number(name: str, number: float, *, negated: bool) -> Run:
    """`name = 5`, or `<>` when negated."""
    read = _reader(number)

    def run(properties: Properties) -> bool | None:
        value = properties.get(name)
        return None if value is None else (read(value) == number) is not negated

    return run


def ordered(sign: OrderSign, left: Read, right: Read) -> Run:
    """`<` and its like between any two operands; two texts are compared as real numbers."""
    test = _SIGNS[sign]

    def run(properties: Properties) -> bool | None:
        one = left(properties)
        if one is None:
            return None
        other = right(properties)
        if other is None:
            return None
        if isinstance(one, str) and isinstance(other, str):
            return test(order_numbers(read_double(one), read_double(other)), 0)
        return test(order(one, other), 0)

    return run


def ordered_number(name: str, sign: OrderSign, number: float) -> Run:
    """`name < 5`; for `5 < name` hand in the mirrored sign."""
    read = _reader(number)
    test = (_SIGNS if isinstance(number, int) else _REAL_SIGNS)[sign]

    def run(properties: Properties) -> bool | None:
        value = properties.get(name)
        return None if value is None else test(read(value), number)

    return run


def between_numbers(name: str, low: float, high: float, *, negated: bool) -> Run | None:
    """`name BETWEEN 1 AND 5`, or None unless both bounds read the property alike."""
    read = _reader(low)
    if read is not _reader(high):
        return None

    def whole(properties: Properties) -> bool | None:
        text = properties.get(name)
        return None if text is None else (low <= read(text) <= high) is not negated

    def real(properties: Properties) -> bool | None:
        text = properties.get(name)
        if text is None:
            return None
        value = read(text)
        return (not value < low and value <= high) is not negated

    return whole if isinstance(low, int) else real


def _reader(number: float) -> Callable[[str], float]:
    """Return how Java reads text beside this number: as the number's own kind."""
    if isinstance(number, int):
        return read_int if is_int(number) else read_long
    return read_double
