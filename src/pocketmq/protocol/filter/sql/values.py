"""Java's values as SQL92 compares them: numbers from text, the order of kinds, comparisons.

A value is text, a whole number, a real number or a truth. Whole numbers stand for Java's Integer
or Long, and their size tells which: literals have no sign, so -2³¹ can only be a turned Long.

Comparisons are closures over a message's properties. They own how null and the kinds of values meet
in `=`, the ordering signs and BETWEEN. Each has a general form over any two operands, and a short
one for a property beside a number or text.
"""

import operator
import re
from collections.abc import Callable, Mapping
from math import copysign, inf, isnan, nan
from typing import Final, TypeAlias

from pocketmq.errors import FilterUndecided
from pocketmq.protocol.filter.sql.tree import OrderSign

Value: TypeAlias = str | int | float | bool | None

LARGEST_INT = 2**31 - 1
LARGEST_LONG = 2**63 - 1

_LONG_DIGITS = 19
# Java's digits are any Unicode decimal digits of the basic plane, but no blank and no underscore.
_WHOLE = re.compile(r"([+-]?)(\d+)")
_BEYOND_BASIC_PLANE = re.compile("[\U00010000-\U0010ffff]")
_PLAIN_REAL = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_REAL = re.compile(
    r"([+-]?)(?:(NaN)|(Infinity)|((?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?"
    r"|(0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?)"
)
_JAVA_BLANK = "".join(map(chr, range(0x21)))


def read_int(text: str) -> int:
    """Read text as Java's Integer. Raises `FilterUndecided`."""
    if len(text) < 10 and text.isdigit() and text.isascii():
        return int(text)
    return _read_whole(text, LARGEST_INT, "a 32-bit integer")


def read_long(text: str) -> int:
    """Read text as Java's Long. Raises `FilterUndecided`."""
    if len(text) < _LONG_DIGITS and text.isdigit() and text.isascii():
        return int(text)
    return _read_whole(text, LARGEST_LONG, "a 64-bit integer")


def _read_whole(text: str, largest: int, wanted: str) -> int:
    found = _WHOLE.fullmatch(text)
    if found is None or _BEYOND_BASIC_PLANE.search(text):
        raise FilterUndecided(text, wanted)
    sign, digits = found.groups()
    if len(digits) > _LONG_DIGITS:  # leading zeros may be any number and in any script
        digits = "".join(str(int(digit)) for digit in digits).lstrip("0") or "0"
        if len(digits) > _LONG_DIGITS:
            raise FilterUndecided(text, wanted)
    number = int(sign + digits)
    if not -largest - 1 <= number <= largest:
        raise FilterUndecided(text, wanted)
    return number


def read_double(text: str) -> float:
    """Read text as Java's Double: trimmed, with `NaN`, hexadecimal and suffix forms.

    Raises `FilterUndecided`.
    """
    if _PLAIN_REAL.fullmatch(text):
        return float(text)
    found = _REAL.fullmatch(text.strip(_JAVA_BLANK))
    if found is None:
        raise FilterUndecided(text, "a real number")
    sign, not_a_number, infinity, decimal, hexadecimal = found.groups()
    if decimal is not None:
        number = float(decimal)
    elif not_a_number is not None:
        return nan
    elif infinity is not None:
        number = inf
    else:
        try:
            number = float.fromhex(hexadecimal)
        except OverflowError:
            number = inf
    return -number if sign == "-" else number


def read_like(text: str, number: float) -> float:
    """Read text as the kind of number it is compared with. Raises `FilterUndecided`."""
    if type(number) is float:
        return read_double(text)
    return read_int(text) if is_int(number) else read_long(text)


def is_int(number: float) -> bool:
    """Return whether Java holds this whole number as an Integer (else as a Long)."""
    return -LARGEST_INT <= number <= LARGEST_INT


def order(left: str | float, right: str | float) -> int:
    """Compare as Java's filter does: below zero, zero, above zero.

    Text beside a number or a truth is read as one; kinds that never meet count as smaller. Raises
    `FilterUndecided` where Java throws: text that is no such number, and a truth beside text.
    """
    if isinstance(left, str):
        if isinstance(right, str):
            return (left > right) - (left < right)
        if isinstance(right, bool):
            return (is_true(left)) - right
        return order_numbers(read_like(left, right), right)
    if isinstance(right, str):
        if isinstance(left, bool):
            raise FilterUndecided(right, "a boolean")  # Java casts the wrong operand here
        return order_numbers(left, read_like(right, left))
    if isinstance(left, bool) and isinstance(right, bool):
        return left - right
    if isinstance(left, bool) or isinstance(right, bool):
        return -1
    return order_numbers(left, right)


def order_numbers(left: float, right: float) -> int:
    """Compare two numbers: exactly if both are whole, else as doubles in Java's total order.

    Not-a-number equals itself and is above all others; -0.0 is below 0.0.
    """
    if isinstance(left, int) and isinstance(right, int):
        return (left > right) - (left < right)
    left, right = float(left), float(right)
    if left < right:
        return -1
    if left > right:
        return 1
    if isnan(left) or isnan(right):
        return isnan(left) - isnan(right)
    return int(copysign(1.0, left) - copysign(1.0, right)) >> 1


def is_true(text: str) -> bool:
    """Read text as Java's Boolean: `true` in any case, and all else is false."""
    return len(text) == 4 and text.lower() == "true"


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
