"""Print a tree as SQL92 that reads back to the same tree."""

from pocketmq.protocol.filter.sql.tree import (
    And,
    Between,
    Cast,
    Equal,
    IsNull,
    Known,
    Minus,
    Node,
    Not,
    Or,
    Order,
    Property,
    Real,
    Search,
    Text,
    Whole,
    Within,
)


def render(node: Node) -> str:
    """Give the expression of a tree, with parentheses around every inner condition."""
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
        case Search(word, operand, needle, negated):
            return f"{_inner(operand)} {_not(negated)}{word} {_quoted(needle)}"
        case _:
            return _inner(node)


def _inner(node: Node) -> str:
    """Give a node as an operand."""
    match node:
        case Property(name) | Cast(name):
            return name
        case Text(value):
            return _quoted(value)
        case Whole(value):
            return str(value)
        case Real(value):
            return repr(value)
        case Known(value):
            return "NULL" if value is None else str(value).upper()
        case Minus(operand):
            return f"- {_inner(operand)}"  # the blank keeps two of them from being a comment
        case _:
            return f"({render(node)})"


def _not(negated: bool) -> str:  # noqa: FBT001 - a word that is there or not
    return "NOT " if negated else ""


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
