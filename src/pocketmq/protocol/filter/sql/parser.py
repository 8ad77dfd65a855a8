"""Read an SQL92 expression into its tree, by RocketMQ's grammar.

Owns precedence, from weakest: OR; AND; `=` `<>` IS; the ordering, range and search operators;
then the prefixes `+` `-` NOT, which bind to the next value alone (`NOT a = 1` is `(NOT a) = 1`).
All operators group from the left. One token of foresight is enough, so time is linear.
"""

from typing import NamedTuple, NoReturn, cast

from pocketmq.errors import FilterSyntaxError
from pocketmq.protocol.filter.sql.build import MAX_NESTING, Builder, Operand
from pocketmq.protocol.filter.sql.tokens import END, NAME, REAL, TEXT, WHOLE, Token, Tokens
from pocketmq.protocol.filter.sql.tree import (
    And,
    Node,
    Or,
    OrderSign,
    Property,
    SearchWord,
    Text,
    TruthValue,
)

__all__ = ["MAX_EXPRESSION_LENGTH", "MAX_NESTING", "Parsed", "parse"]

MAX_EXPRESSION_LENGTH = 16 * 1024
"""The longest expression taken, in characters; evaluating one costs time in its length."""

_ORDER = frozenset(("<", "<=", ">", ">="))
_SEARCH = frozenset(("CONTAINS", "STARTSWITH", "ENDSWITH"))
_SUFFIXES = _SEARCH | {"BETWEEN", "IN"}
_PREFIXES = frozenset(("+", "-", "NOT"))
_KNOWN = {"TRUE": TruthValue(True), "FALSE": TruthValue(False), "NULL": TruthValue(None)}


class Parsed(NamedTuple):
    """A tree, and the text behind it that RocketMQ ignores."""

    tree: Node
    unread: str


def parse(expression: str) -> Parsed:
    """Read an expression. Raises `FilterSyntaxError`."""
    if len(expression) > MAX_EXPRESSION_LENGTH:
        raise FilterSyntaxError(
            f"{expression[:60]}...",
            1,
            f"{len(expression)} characters; at most {MAX_EXPRESSION_LENGTH} are allowed",
        )
    parser = _Parser(expression)
    tree = parser.selector()
    return Parsed(tree, expression[parser.tokens.next.start :])


class _Parser:
    """One reading of one expression. The methods are the grammar's rules, weakest first."""

    __slots__ = ("_build", "_depth", "tokens")

    def __init__(self, expression: str) -> None:
        self.tokens = Tokens(expression)
        self._build = Builder(expression)
        self._depth = 0

    def selector(self) -> Node:
        return self._build.condition(self._logic())

    def _logic(self) -> Operand:
        # OR over AND in one rule: fewer frames for each pair of parentheses.
        alternatives: list[Operand] = []
        terms = [self._equality()]
        while (kind := self.tokens.next.kind) in ("AND", "OR"):
            self.tokens.take()
            if kind == "OR":
                alternatives.append(self._build.joined(And, terms))
                terms = []
            terms.append(self._equality())
        alternatives.append(self._build.joined(And, terms))
        return self._build.joined(Or, alternatives)

    def _equality(self) -> Operand:
        left = self._comparison()
        while True:
            kind = self.tokens.next.kind
            if kind in ("=", "<>"):
                self.tokens.take()
                left = self._build.equal(left, self._comparison(), negated=kind == "<>")
            elif kind == "IS":
                self.tokens.take()
                negated = self._taken("NOT")
                self._expect("NULL", "NULL or NOT NULL")
                left = self._build.is_null(left, negated=negated)
            else:
                return left

    def _comparison(self) -> Operand:
        left = self._unary()
        while True:
            kind = self.tokens.next.kind
            if kind in _ORDER:
                self.tokens.take()
                left = self._build.ordered(cast("OrderSign", kind), left, self._unary())
            elif kind in _SUFFIXES or kind == "NOT":
                left = self._suffixed(left)
            else:
                return left

    def _suffixed(self, left: Operand) -> Operand:
        negated = self._taken("NOT")
        word = self.tokens.next
        if word.kind not in _SUFFIXES:
            self._unexpected(word, "IN, BETWEEN, CONTAINS, STARTSWITH or ENDSWITH after NOT")
        self.tokens.take()
        if word.kind == "BETWEEN":
            low = self._unary()
            self._expect("AND", "AND between the bounds of BETWEEN")
            return self._build.between(left, low, self._unary(), negated=negated)
        if word.kind == "IN":
            return self._build.within(left, self._choices(), negated=negated)
        needle = self._text(f"a text in single quotes after {word.kind}")
        return self._build.search(cast("SearchWord", word.kind), left, needle, negated=negated)

    def _choices(self) -> list[str]:
        self._expect("(", "'(' after IN")
        choices = [self._text("a text in single quotes, the only thing IN compares with")]
        while self._taken(","):
            choices.append(self._text("a text in single quotes after ','"))
        self._expect(")", "',' or ')'")
        return choices

    def _unary(self) -> Operand:
        prefixes: list[Token] = []
        while self.tokens.next.kind in _PREFIXES:
            prefixes.append(self.tokens.take())
        operand = self._value()
        for prefix in reversed(prefixes):
            if prefix.kind == "-":
                operand = self._build.minus(prefix.start + 1, operand)
            elif prefix.kind == "NOT":
                operand = self._build.negation(prefix.start + 1, operand)
        return operand

    def _value(self) -> Operand:
        token = self.tokens.next
        column = token.start + 1
        if token.kind == "(":
            self.tokens.take()
            self._depth += 1
            self._build.nested(column, self._depth)
            inner = self._logic()
            self._depth -= 1
            self._expect(")", "')' or an operator")
            return Operand(inner.node, column, inner.height)
        if token.kind == NAME:
            operand = Operand(Property(token.text), column)
        elif token.kind == TEXT:
            operand = Operand(Text(_unquoted(token)), column)
        elif token.kind == WHOLE:
            operand = self._build.whole(token)
        elif token.kind == REAL:
            operand = self._build.real(token)
        elif token.kind in _KNOWN:
            operand = Operand(_KNOWN[token.kind], column)
        else:
            self._unexpected(token, "a property, a value or '('")
        self.tokens.take()
        return operand

    def _text(self, expected: str) -> str:
        return _unquoted(self._expect(TEXT, expected))

    def _taken(self, kind: str) -> bool:
        if self.tokens.next.kind != kind:
            return False
        self.tokens.take()
        return True

    def _expect(self, kind: str, expected: str) -> Token:
        token = self.tokens.next
        if token.kind != kind:
            self._unexpected(token, expected)
        return self.tokens.take()

    def _unexpected(self, token: Token, expected: str) -> NoReturn:
        found = "the end" if token.kind == END else f"{token.text!r}"
        self._build.fail(token.start + 1, f"expected {expected}, found {found}")


def _unquoted(token: Token) -> str:
    return token.text[1:-1].replace("''", "'")
