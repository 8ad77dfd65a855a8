"""Turn a tree into closures that evaluate it over a message's properties.

Owns RocketMQ's three-valued logic, oddities included: a missing property is null on the left of
`=` but false on its right, two missing ones are equal, and text that is no number where a number
is needed decides nothing at all (`FilterUndecided`), unless AND or OR had decided before.

Each node becomes one function, made once; a property beside a constant, the common case, becomes
a single one with nothing left to look up but the property.
"""

from collections.abc import Callable
from typing import Any, cast

from pocketmq.protocol.filter.sql import tree
from pocketmq.protocol.filter.sql.values import (
    MIRRORED,
    Properties,
    Read,
    Run,
    Value,
    between_numbers,
    equals,
    equals_number,
    equals_text,
    ordered,
    ordered_number,
)


def condition(node: tree.Node) -> Run:
    """Return the function that evaluates a condition: true, false or null.

    It raises `FilterUndecided` where Java throws.
    """
    return cast("Run", _operand(node))


def _operand(node: tree.Node) -> Read:
    return _MAKERS[type(node)](node)


def _constant(node: tree.Text | tree.Whole | tree.Real | tree.TruthValue) -> Read:
    value = node.value
    return lambda _: value


def _property(node: tree.Property) -> Read:
    name = node.name
    return lambda properties: properties.get(name)


def _number(node: tree.Node) -> float | None:
    """Return a literal number, signs applied; None for anything else."""
    sign = 1
    while isinstance(node, tree.Minus):
        node, sign = node.operand, -sign
    return sign * node.value if isinstance(node, tree.Whole | tree.Real) else None


def _minus(node: tree.Minus) -> Read:
    number = _number(node)
    if number is not None:
        return lambda _: number
    inner = _operand(node.operand)

    def run(properties: Properties) -> Value:
        inner(properties)  # it may raise
        return None  # only literals are numbers; text and truths have no sign to turn

    return run


def _cast(node: tree.Cast) -> Run:
    name = node.name
    return lambda properties: None if properties.get(name) is None else False


def _not(node: tree.Not) -> Run:
    return _negated(condition(node.operand))


def _negated(inner: Run) -> Run:
    def run(properties: Properties) -> bool | None:
        answer = inner(properties)
        return None if answer is None else not answer

    return run


def _and(node: tree.And) -> Run:
    return _joined([condition(term) for term in node.terms], decisive=False)


def _or(node: tree.Or) -> Run:
    return _joined([condition(term) for term in node.terms], decisive=True)


def _joined(terms: list[Run], *, decisive: bool) -> Run:
    """Evaluate terms in turn until one gives the decisive answer; null otherwise leaves doubt."""
    settled = not decisive
    first, second = terms[0], terms[1]

    def both(properties: Properties) -> bool | None:
        one = first(properties)
        if one is decisive:
            return decisive
        other = second(properties)
        if other is decisive:
            return decisive
        return None if one is None or other is None else settled

    def every(properties: Properties) -> bool | None:
        answer: bool | None = settled
        for term in terms:
            value = term(properties)
            if value is decisive:
                return decisive
            if value is None:
                answer = None
        return answer

    return both if len(terms) == 2 else every


def _equal(node: tree.Equal) -> Run:
    left, right = node.left, node.right
    if isinstance(left, tree.Property):
        if isinstance(right, tree.Text):
            return equals_text(left.name, right.value, negated=node.negated)
        if (number := _number(right)) is not None:
            return equals_number(left.name, number, negated=node.negated)
    run = equals(_operand(left), _operand(right))
    return _negated(run) if node.negated else run


def _is_null(node: tree.IsNull) -> Run:
    negated = node.negated
    if isinstance(node.operand, tree.Property):
        name = node.operand.name
        return lambda properties: (properties.get(name) is None) is not negated
    inner = _operand(node.operand)
    return lambda properties: (inner(properties) is None) is not negated


def _order(node: tree.Order) -> Run:
    left, right = node.left, node.right
    if isinstance(left, tree.Property) and (number := _number(right)) is not None:
        return ordered_number(left.name, node.sign, number)
    if isinstance(right, tree.Property) and (number := _number(left)) is not None:
        return ordered_number(right.name, MIRRORED[node.sign], number)
    return ordered(node.sign, _operand(left), _operand(right))


def _between(node: tree.Between) -> Run:
    value, low, high = node.operand, node.low, node.high
    if isinstance(value, tree.Property):
        bottom, top = _number(low), _number(high)
        if bottom is not None and top is not None:
            run = between_numbers(value.name, bottom, top, negated=node.negated)
            if run is not None:
                return run
    if node.negated:
        return _or(tree.Or((tree.Order("<", value, low), tree.Order(">", value, high))))
    return _and(tree.And((tree.Order(">=", value, low), tree.Order("<=", value, high))))


def _within(node: tree.Within) -> Run:
    name, choices = node.name, frozenset(node.choices)

    def among(properties: Properties) -> bool | None:
        value = properties.get(name)
        return None if value is None else value in choices

    def outside(properties: Properties) -> bool | None:
        value = properties.get(name)
        return None if value is None else value not in choices

    return outside if node.negated else among


_FINDERS: dict[str, Callable[[str, str], bool]] = {
    "CONTAINS": str.__contains__,
    "STARTSWITH": str.startswith,
    "ENDSWITH": str.endswith,
}


def _search(node: tree.TextSearch) -> Run:
    needle, negated = node.needle, node.negated
    if not needle:
        return lambda _: False  # Java does not even evaluate the operand
    read, find = _operand(node.operand), _FINDERS[node.word]

    def run(properties: Properties) -> bool:
        value = read(properties)
        return isinstance(value, str) and find(value, needle) is not negated

    return run


_MAKERS: dict[type[tree.Node], Callable[[Any], Read]] = {
    tree.Property: _property,
    tree.Text: _constant,
    tree.Whole: _constant,
    tree.Real: _constant,
    tree.TruthValue: _constant,
    tree.Minus: _minus,
    tree.Cast: _cast,
    tree.Not: _not,
    tree.And: _and,
    tree.Or: _or,
    tree.Equal: _equal,
    tree.IsNull: _is_null,
    tree.Order: _order,
    tree.Between: _between,
    tree.Within: _within,
    tree.TextSearch: _search,
}
