"""Cut an SQL92 expression into tokens, one at a time and in linear time.

Owns RocketMQ's lexical rules: the longest token wins, keywords ignore case, property names are
ASCII letters, digits, `_` and `$`. Independent of the grammar.

Tokens are cut only when asked for, because Java never looks at text behind the end of the
expression it understood: `a = 1 LIKE @` is `a = 1` to it.
"""

import re
from typing import NamedTuple

from pocketmq.errors import FilterSyntaxError

NAME = "name"
WHOLE = "whole number"
REAL = "real number"
TEXT = "text"
END = "end"

KEYWORDS = frozenset(("NOT", "AND", "OR", "BETWEEN", "IN", "TRUE", "FALSE", "NULL", "IS")) | {
    "CONTAINS",
    "STARTSWITH",
    "ENDSWITH",
}

_EXPONENT = r"[eE][+-]?[0-9]+"
# The group order makes the first match the longest one: a real number always reaches further than
# the whole number it starts with. A leading zero stands alone: 007 is three tokens.
_TOKEN = re.compile(
    rf"""
    (?P<real>[0-9]+\.[0-9]*(?:{_EXPONENT})?|\.[0-9]+(?:{_EXPONENT})?|[0-9]+{_EXPONENT})
    |(?P<whole>0|[1-9][0-9]*[lL]?)
    |(?P<text>'[^']*(?:''[^']*)*')
    |(?P<name>[A-Za-z_$][A-Za-z0-9_$]*)
    |(?P<mark><>|<=|>=|[=<>(),+-])
    """,
    re.VERBOSE,
)
_BLANK = re.compile(r"[ \t\n\r\f]+")
_NEW_LINE = re.compile(r"[\n\r]")
_KINDS = {"real": REAL, "whole": WHOLE, "text": TEXT}

_HINTS = {
    "!": "'!' is no operator; write <> for unequal and NOT to negate",
    '"': "text stands in single quotes",
    "'": "the text that starts here has no closing quote",
    "/": "'/' starts a comment, which must be /* ... */",
    ".": "names hold only letters, digits, '_' and '$'",
}


class Token(NamedTuple):
    """One token: its kind (a keyword or mark is its own kind), text and place (from 0)."""

    kind: str
    text: str
    start: int


class Tokens:
    """The tokens of one expression; `next` is the one not yet taken."""

    __slots__ = ("_expression", "_last_line", "_position", "next")

    def __init__(self, expression: str) -> None:
        self._expression = expression
        self._position = 0
        # A line comment counts only with its line end; behind the last one `--` is two minuses.
        self._last_line = max(expression.rfind("\n"), expression.rfind("\r"))
        self.next = self._cut()

    def take(self) -> Token:
        """Return the next token and cut the one behind it. Raises `FilterSyntaxError`."""
        taken = self.next
        self.next = self._cut()
        return taken

    def _cut(self) -> Token:
        start = self._skip()
        expression = self._expression
        if start == len(expression):
            return Token(END, "", start)
        found = _TOKEN.match(expression, start)
        if found is None:
            sign = expression[start]
            raise FilterSyntaxError(
                expression, start + 1, _HINTS.get(sign, f"{sign!r} is not allowed here")
            )
        self._position = found.end()
        text = found[0]
        if found.lastgroup == "mark":
            return Token(text, text, start)
        if found.lastgroup == "name":
            word = text.upper()
            return Token(word if word in KEYWORDS else NAME, text, start)
        return Token(_KINDS[found.lastgroup or ""], text, start)

    def _skip(self) -> int:
        """Skip blanks and comments; return the position where the next token starts."""
        expression = self._expression
        position = self._position
        while True:
            if blank := _BLANK.match(expression, position):
                position = blank.end()
            elif expression.startswith("--", position) and position < self._last_line:
                line_end = _NEW_LINE.search(expression, position)
                position = line_end.end() if line_end else len(expression)
            elif expression.startswith("/*", position):
                close = expression.find("*/", position + 2)
                if close < 0:
                    raise FilterSyntaxError(expression, position + 1, "this comment is not closed")
                position = close + 2
            else:
                return position
