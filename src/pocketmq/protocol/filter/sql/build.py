"""Join operands to nodes, refusing at once what Java refuses when it compiles.

Owns which operands each operator takes, and how deep a tree may grow. Every refusal is a
`FilterSyntaxError` that points at the operand to blame.
"""

from math import isinf
from typing import NamedTuple, NoReturn, get_args

from pocketmq.errors import FilterSyntaxError
from pocketmq.protocol.filter.sql import tree
from pocketmq.protocol.filter.sql.tokens import Token
from pocketmq.protocol.filter.sql.values import LARGEST_LONG, order_numbers

MAX_NESTING = 100
"""How deep an expression may nest. Each level costs stack while parsing and evaluating."""

_CONDITIONS = get_args(tree.Condition)
_CONSTANTS = get_args(tree.Constant)


class Operand(NamedTuple):
    """A node, the column its text starts at (from 1) and how many operators are stacked in it."""

    node: tree.Node
    column: int
    height: int = 0


class Builder:
    """Makes the nodes of one expression."""

    __slots__ = ("_expression",)

    def __init__(self, expression: str) -> None:
        self._expression = expression

    def fail(self, column: int, reason: str) -> NoReturn:
        """Refuse the expression."""
        raise FilterSyntaxError(self._expression, column, reason)

    def nested(self, column: int, depth: int) -> None:
        """Refuse nesting that would exhaust the stack."""
        if depth > MAX_NESTING:
            self.fail(column, f"nested deeper than {MAX_NESTING} levels")

    def whole(self, token: Token) -> Operand:
        """Read a whole number; a trailing L changes nothing."""
        digits = token.text.rstrip("lL")
        if len(digits) > 19 or (value := int(digits)) > LARGEST_LONG:
            self.fail(token.start + 1, f"whole numbers end at {LARGEST_LONG}")
        return Operand(tree.Whole(value), token.start + 1)

    def real(self, token: Token) -> Operand:
        """Read a real number; Java takes neither zero nor what rounds to zero or infinity."""
        value = float(token.text)
        if value == 0:
            self.fail(token.start + 1, "a real number must be above zero; write 0 for zero")
        if isinf(value):
            self.fail(token.start + 1, "too large for a real number")
        return Operand(tree.Real(value), token.start + 1)

    def minus(self, column: int, operand: Operand) -> Operand:
        """Turn the sign. The result is no constant to Java, whatever stands inside."""
        return self._grown(tree.Minus(operand.node), column, operand)

    def negation(self, column: int, operand: Operand) -> Operand:
        """Put NOT before a condition."""
        return self._grown(tree.Not(self.condition(operand)), column, operand)

    def condition(self, operand: Operand) -> tree.Node:
        """Take an operand where a condition is needed: a bare property becomes a cast."""
        node = operand.node
        if isinstance(node, tree.Property):
            return tree.Cast(node.name)
        if not isinstance(node, _CONDITIONS):
            self.fail(operand.column, "a condition is needed here, this is a value")
        condition: tree.Node = node
        return condition

    def joined(self, kind: type[tree.And] | type[tree.Or], operands: list[Operand]) -> Operand:
        """Join conditions with AND or OR.

        Conditions already joined the same way dissolve into the new node, which changes no answer
        and keeps long chains flat however they were put in parentheses.
        """
        if len(operands) == 1:
            return operands[0]
        terms: list[tree.Node] = []
        height = 0
        for operand in operands:
            node = self.condition(operand)
            if isinstance(node, kind):
                terms.extend(node.terms)
                height = max(height, operand.height)
            else:
                terms.append(node)
                height = max(height, operand.height + 1)
        column = operands[0].column
        self.nested(column, height)
        return Operand(kind(tuple(terms)), column, height)

    def equal(self, left: Operand, right: Operand, *, negated: bool) -> Operand:
        """Join with `=` or `<>`."""
        for operand in (left, right):
            if operand.node == tree.TruthValue(None):
                self.fail(operand.column, "nothing equals NULL; write IS NULL or IS NOT NULL")
        constant = isinstance(right.node, _CONSTANTS)
        if (
            isinstance(left.node, tree.TruthValue)
            and constant
            and not isinstance(right.node, tree.TruthValue)
        ):
            self.fail(right.column, "TRUE and FALSE are not compared with numbers or text")
        return self._grown(tree.Equal(left.node, right.node, negated), left.column, left, right)

    def is_null(self, operand: Operand, *, negated: bool) -> Operand:
        """Build `IS NULL`."""
        return self._grown(tree.IsNull(operand.node, negated), operand.column, operand)

    def ordered(self, sign: tree.OrderSign, left: Operand, right: Operand) -> Operand:
        """Join with `<`, `<=`, `>` or `>=`."""
        self._orderable(left)
        self._orderable(right)
        return self._grown(tree.Order(sign, left.node, right.node), left.column, left, right)

    def between(self, operand: Operand, low: Operand, high: Operand, *, negated: bool) -> Operand:
        """Build a range. Two literal bounds must be in order, unless it is NOT BETWEEN."""
        for part in (operand, low, high):
            self._orderable(part)
        bottom, top = low.node, high.node
        if (
            not negated
            and isinstance(bottom, tree.Whole | tree.Real)
            and isinstance(top, tree.Whole | tree.Real)
            and order_numbers(top.value, bottom.value) < 0
        ):
            self.fail(low.column, f"the range is empty: {bottom.value} is above {top.value}")
        node = tree.Between(operand.node, bottom, top, negated)
        return self._grown(node, operand.column, operand, low, high)

    def within(self, operand: Operand, choices: list[str], *, negated: bool) -> Operand:
        """Build `IN`: one of several texts."""
        if not isinstance(operand.node, tree.Property):
            self.fail(operand.column, "IN takes a property on its left")
        node = tree.Within(operand.node.name, tuple(choices), negated)
        return self._grown(node, operand.column, operand)

    def search(
        self, word: tree.SearchWord, operand: Operand, needle: str, *, negated: bool
    ) -> Operand:
        """Build a search for text in text."""
        node = tree.TextSearch(word, operand.node, needle, negated)
        return self._grown(node, operand.column, operand)

    def _orderable(self, operand: Operand) -> None:
        node = operand.node
        if isinstance(node, tree.Text):
            self.fail(operand.column, "only numbers have an order; text knows = and <> and IN")
        if isinstance(node, _CONDITIONS):
            self.fail(
                operand.column, "a condition has no order; NOT binds tighter, so use parentheses"
            )

    def _grown(self, node: tree.Node, column: int, *operands: Operand) -> Operand:
        height = 1 + max(operand.height for operand in operands)
        self.nested(column, height)
        return Operand(node, column, height)
