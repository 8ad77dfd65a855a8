"""The compiled filter: what an SQL92 subscription decides about messages."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pocketmq.errors import FilterSyntaxError, FilterUndecided
from pocketmq.protocol.filter.sql.evaluate import condition
from pocketmq.protocol.filter.sql.parser import parse
from pocketmq.protocol.filter.sql.tree import Cast, Node, Property, Within, render
from pocketmq.protocol.filter.sql.values import Run


@dataclass(frozen=True, slots=True)
class SqlFilter:
    """An SQL92 expression, ready to decide. Equal filters have the same text.

    `str` shows how RocketMQ understands it, with parentheses around every inner condition.
    """

    expression: str
    tree: Node = field(compare=False, repr=False)
    reads: frozenset[str] = field(compare=False)
    """The properties the decision depends on; no others are looked at."""
    unread: str = field(compare=False)
    """What stands behind the expression and is ignored, as RocketMQ does; mostly a mistake."""
    _run: Run = field(compare=False, repr=False)

    def evaluate(self, properties: Mapping[str, str]) -> bool | None:
        """Return the expression's value, None for null.

        Raises `FilterUndecided` if a property cannot be compared as the expression asks.
        """
        return self._run(properties)

    def matches(self, properties: Mapping[str, str]) -> bool:
        """Return whether a broker delivers the message: if the result is true. Raises nothing."""
        try:
            return self._run(properties) is True
        except FilterUndecided:
            return False

    def select(self, batch: Iterable[Mapping[str, str]]) -> list[int]:
        """Return the positions of the messages, by their properties, that match."""
        run = self._run
        chosen: list[int] = []
        for position, properties in enumerate(batch):
            try:
                if run(properties) is True:
                    chosen.append(position)
            except FilterUndecided:
                continue
        return chosen

    def __str__(self) -> str:
        return render(self.tree)

    def __reduce__(self) -> tuple[Any, ...]:
        return compile_sql, (self.expression,)


def compile_sql(expression: str, *, strict: bool = False) -> SqlFilter:
    """Compile an expression by RocketMQ's rules, accepting and refusing what Java's broker does.

    Java stops reading where the text no longer continues the expression: of `a = 1 LIKE 'x'` it
    sees `a = 1`. Such a rest is kept as `SqlFilter.unread`; `strict` refuses it instead.

    Raises `FilterSyntaxError`, also for text longer than `MAX_EXPRESSION_LENGTH` and nesting
    deeper than `MAX_NESTING`.
    """
    tree, unread = parse(expression)
    if strict and unread:
        column = len(expression) - len(unread) + 1
        raise FilterSyntaxError(expression, column, "RocketMQ would ignore everything from here on")
    return SqlFilter(expression, tree, _names(tree), unread, condition(tree))


def _names(tree: Node) -> frozenset[str]:
    names: set[str] = set()
    waiting: list[Any] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Property | Cast | Within):
            names.add(node.name)
        elif isinstance(node, tuple):
            waiting.extend(node)
        elif hasattr(node, "__struct_fields__"):
            waiting.extend(getattr(node, name) for name in node.__struct_fields__)
    return frozenset(names)
