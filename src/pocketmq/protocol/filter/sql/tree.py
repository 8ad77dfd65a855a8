"""The tree of an SQL92 expression: what was written, already known to make sense to Java.

Pure values, and `render`, which prints a tree as SQL92 that reads back to the same tree. Whole and
real numbers are kinds of their own because they decide how a property is read; `NOT` in `NOT IN`
and its like is a flag, because Java gives those forms answers that differ from a NOT around them.
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


class TruthValue(msgspec.Struct, frozen=True):
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


class TextSearch(msgspec.Struct, frozen=True):
    """`CONTAINS`, `STARTSWITH` or `ENDSWITH`; null is never found, negated or not."""

    word: SearchWord
    operand: "Node"
    needle: str
    negated: bool = False


Constant: TypeAlias = Text | Whole | Real | TruthValue
Condition: TypeAlias = (
    TruthValue | Cast | Not | And | Or | Equal | IsNull | Order | Between | Within | TextSearch
)
Node: TypeAlias = Property | Constant | Minus | Condition


def render(node: Node) -> str:
    """Return the expression of a tree, with parentheses around every inner condition."""
    match node:
        case And(terms):
            return " AND ".join(map(_inner, terms))
        case Or(terms):
            return " OR ".join(map(_inner, terms))
        case Not(operand):
            return f"NOT {_inner(operand)}"
        case Equal(left, right, negated):
            return f"{_inner(left)} {'<>' if negated else '='} {_inner(right)}"
        case IsNull(operand, negated):
            return f"{_inner(operand)} IS {'NOT ' if negated else ''}NULL"
        case Order(sign, left, right):
            return f"{_inner(left)} {sign} {_inner(right)}"
        case Between(operand, low, high, negated):
            bounds = f"BETWEEN {_inner(low)} AND {_inner(high)}"
            return f"{_inner(operand)} {_not(negated)}{bounds}"
        case Within(name, choices, negated):
            return f"{name} {_not(negated)}IN ({', '.join(map(_quoted, choices))})"
        case TextSearch(word, operand, needle, negated):
            return f"{_inner(operand)} {_not(negated)}{word} {_quoted(needle)}"
        case _:
            return _inner(node)


def _inner(node: Node) -> str:
    """Return a node as an operand."""
    match node:
        case Property(name) | Cast(name):
            return name
        case Text(value):
            return _quoted(value)
        case Whole(value):
            return str(value)
        case Real(value):
            return repr(value)
        case TruthValue(value):
            return "NULL" if value is None else str(value).upper()
        case Minus(operand):
            return f"- {_inner(operand)}"  # the blank keeps two of them from being a comment
        case _:
            return f"({render(node)})"


def _not(negated: bool) -> str:  # noqa: FBT001 - a word that is there or not
    return "NOT " if negated else ""


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
