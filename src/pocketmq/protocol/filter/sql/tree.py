"""The tree of an SQL92 expression: what was written, already known to make sense to Java.

Pure values: parsing, printing and evaluating live beside this file. Whole and real numbers are
kinds of their own because they decide how a property is read; `NOT` in `NOT IN` and its like is
a flag, because Java gives those forms answers that differ from a NOT around them.
"""

from typing import Literal, TypeAlias

import msgspec

OrderSign: TypeAlias = Literal["<", "<=", ">", ">="]
SearchWord: TypeAlias = Literal["CONTAINS", "STARTSWITH", "ENDSWITH"]


class Property(msgspec.Struct, frozen=True):
    """A message property, read as text; null when the message lacks it."""

    name: str


class Text(msgspec.Struct, frozen=True):
    """A text between single quotes."""

    value: str


class Whole(msgspec.Struct, frozen=True):
    """A whole number from 0 to 2⁶³-1. From 2³¹ on, properties beside it are read as 64 bits."""

    value: int


class Real(msgspec.Struct, frozen=True):
    """A real number above zero."""

    value: float


class Known(msgspec.Struct, frozen=True):
    """TRUE, FALSE or NULL."""

    value: bool | None


class Minus(msgspec.Struct, frozen=True):
    """A number with its sign turned; null for anything that is not a number."""

    operand: "Node"


class Cast(msgspec.Struct, frozen=True):
    """A property where a condition is asked for: false if it is there, else null."""

    name: str


class Not(msgspec.Struct, frozen=True):
    """A condition turned round; null stays null."""

    operand: "Node"


class And(msgspec.Struct, frozen=True):
    """All of two or more conditions, none of them an `And` itself."""

    terms: tuple["Node", ...]


class Or(msgspec.Struct, frozen=True):
    """Any of two or more conditions, none of them an `Or` itself."""

    terms: tuple["Node", ...]


class Equal(msgspec.Struct, frozen=True):
    """`=`, or `<>` when negated."""

    left: "Node"
    right: "Node"
    negated: bool = False


class IsNull(msgspec.Struct, frozen=True):
    """`IS NULL`, or `IS NOT NULL` when negated."""

    operand: "Node"
    negated: bool = False


class Order(msgspec.Struct, frozen=True):
    """`<`, `<=`, `>` or `>=`: numbers, and properties that hold numbers."""

    sign: OrderSign
    left: "Node"
    right: "Node"


class Between(msgspec.Struct, frozen=True):
    """`BETWEEN low AND high`, both ends included."""

    operand: "Node"
    low: "Node"
    high: "Node"
    negated: bool = False


class Within(msgspec.Struct, frozen=True):
    """`IN (...)`: a property among texts."""

    name: str
    choices: tuple[str, ...]
    negated: bool = False


class Search(msgspec.Struct, frozen=True):
    """`CONTAINS`, `STARTSWITH` or `ENDSWITH`; null is never found, negated or not."""

    word: SearchWord
    operand: "Node"
    needle: str
    negated: bool = False


Constant: TypeAlias = Text | Whole | Real | Known
Condition: TypeAlias = (
    Known | Cast | Not | And | Or | Equal | IsNull | Order | Between | Within | Search
)
Node: TypeAlias = Property | Constant | Minus | Condition
