"""Write the questions `FilterVectors.java` answers: `table`, `random` or `tags`."""

import json
import random
import sys
from collections.abc import Iterator
from itertools import product

MAPS: list[dict[str, str]] = [
    {},
    {"a": "5", "b": "7", "c": "x"},
    {"a": "7", "b": "7", "c": "y", "d": "true"},
    {"a": "-3", "b": "5", "c": "TRUE", "d": "false"},
    {"a": "abc", "b": "abc", "c": "abcdef", "d": ""},
    {"a": "5.0", "b": "5", "c": "it's", "d": "TrUe"},
    {"a": "2147483647", "b": "2147483648", "c": "-2147483648", "d": "-2147483649"},
    {"a": "9223372036854775807", "b": "9223372036854775808", "c": "-9223372036854775808"},
    {"a": "NaN", "b": "NaN", "c": "-Infinity", "d": "Infinity"},
    {"a": "0.0", "b": "-0.0", "c": "0", "d": "-0"},
    {"a": " 5 ", "b": "5\t", "c": "+5", "d": "005"},
    {"a": "1e3", "b": "1000", "c": "1000d", "d": "0x1p3"},
    {"a": "٥", "b": "５", "c": "𝟓", "d": "5_0"},
    {"a": "4.9e-324", "b": "1e400", "c": "-1e400", "d": "1e-400"},
    {"b": "7", "d": "true"},
    {"a": "5", "c": "5"},
    {"a": "true", "b": "FALSE", "c": "中文😀", "d": "a\nb"},
    {"A": "5", "_x": "1", "$y": "2", "a1": "3", "true": "9", "a": "10000000000"},
]

VALUES = ["a", "b", "5", "-5", "5.5", "3000000000", "'5'", "TRUE", "FALSE", "NULL", "-a", "(a = 5)"]
COMPARISONS = ["=", "<>", "<", "<=", ">", ">="]
SUFFIXES = [
    "IS NULL",
    "IS NOT NULL",
    "IN ('5')",
    "NOT IN ('5', 'x')",
    "BETWEEN 1 AND 7",
    "NOT BETWEEN 1 AND 7",
    "CONTAINS 'b'",
    "NOT CONTAINS 'b'",
    "STARTSWITH 'a'",
    "NOT STARTSWITH 'a'",
    "ENDSWITH 'c'",
    "NOT ENDSWITH 'c'",
]

NUMBERS = """0 00 007 0L 1L 1l 1LL 12345678901L 2147483647 2147483648 -2147483647 -2147483648
-2147483649 --2147483648 9223372036854775807 -9223372036854775807 9223372036854775808
-9223372036854775808 99999999999999999999 0.0 .0 0. 0e5 5. 5.e1 .5 .5e1 5e0 5E+1 5e-1 5e 5.5e 5e+
1.5.5 00.5 1e308 1.7976931348623157e308 1.7976931348623159e308 1e309 4.9e-324 2e-324 1e-400 -0.5
- -5 -(-5) +5 ++5 +-5 -+5 1d 1f 0x10 1_000 ٥ Infinity NaN"""

NUMBER_TEXTS = [
    "1", "+1", "-1", "+", "-", "", " 1", "1 ", "1.", ".1", ".", "1e1", "1E+1", "1e", "1f", "1F", "1d",
    "1D", "1L", "1ff", "NaN", "+NaN", "-NaN", "nan", "NaNd", "Infinity", "-Infinity", "infinity",
    "Inf", "0x1", "0x1p0", "0x1P+3", "0x.8p1", "0x1.8p1", "0x1.p1", "0x.p1", "0xp1", "0x1.8p1d",
    "0x1p1024", "-0x1p1024", "0x1p-1074", "0x1p-1075", "0x1.8p-1075", "0x1p99999999999",
    "0x0p99999999999", "0x1p-99999999999", "1e99999999999", "1e-99999999999", "0e99999999999",
    "\u00a01", "1\u2003", "\x001", "1\x1f", "1_0", "1,0", "٣", "-٣", "٣.٥", "𝟓", "0" * 30 + "7",
    "٠" * 30 + "٧", "2147483648", "-2147483648", "9223372036854775808", "9007199254740993",
    "0.1", "1e22", "1e23", "8.41e21", "2.2250738585072012e-308", "1e-5", "+.5e-0003f",
]  # fmt: skip

MALFORMED = r"""

a =|= a|a = = 5|a == 5|a != 5|! a|a < > 5|a =< 5|a => 5|a >= = 5|a ( 5|( a|a )|()|(a|((a = 5)|(a = 5))
a IN|a IN ()|a IN (5)|a IN ('x'|a IN ('x',)|a IN 'x'|a IN ('x' 'y')|a IN (a)|a IN (TRUE)|a IN (NULL)
a NOT|a NOT 5|a NOT NOT IN ('x')|NOT|NOT NOT|NOT NOT a|a IS|a IS 5|a IS NOT|a IS NOT 5|a IS TRUE|IS NULL
a BETWEEN|a BETWEEN 1|a BETWEEN 1 AND|a BETWEEN 1 OR 5|a BETWEEN AND 5|a BETWEEN (1 AND 5)
a CONTAINS|a CONTAINS 5|a CONTAINS a|a CONTAINS ('x')|a NOT CONTAINS|a STARTSWITH NULL|a ENDSWITH TRUE
AND|a AND|AND a|a OR|OR a|a AND OR b|a AND AND b|a b|a 5|5 a|'x' 'y'|a = 5 b = 7|a = 5 LIKE 'x'|a LIKE '5%'
a.b = 5|a.5|a . 5|a-b|a - b = 5|a + b|a * 5|a / 5|a % 5|5 + 5 = 10|a[0]|a:b|a;|a = 5;|@|#a|a = @|a = 5 @
a = 5 b @|a = 5 ) @|TRUE @|TRUE x @|a = 'x|a = 'x''|a = x'|a = 'x'' b|a = "x"|`a` = 5|a = 'x'y'|TRUE ',|
a /* c|a */ b|/* c */|/* c */ a|a /* c */ = 5|a /* * ** / */ = 5|a /*/ = 5|a /**/ = 5|a /***/ = 5|a / * = 5
-- c|a -- c|a = --5|a = - -5|a = 5 -- c|a = 5 --|a = 5 - - 3|a = -|a = +|- a|+ a|-5|+5|5|'x'|5.5|-a = 5|(5)|((a))
NULL|TRUE|FALSE|null|True|fAlSe|(NULL)|NOT NULL|NOT TRUE|NOT 5|NOT 'x'|NOT -a|- NOT a|-TRUE|-NULL|-'x'|--a = 5
(a) IN ('5')|+a IN ('5')|-a IN ('5')|5 IN ('5')|'5' IN ('5')|TRUE IN ('5')|(a = 5) IN ('5')|NOT a IN ('5')
a IN ('5') IN ('5')|a CONTAINS 'b' CONTAINS 'c'|a > 5 > 3|a IS NULL IS NULL|a IS NULL IS NOT NULL|a = b = c
a IN ('5') = TRUE|a IN ('5') > 1|a BETWEEN 1 AND 7 BETWEEN 1 AND 7|a BETWEEN 1 AND 7 = TRUE|NULL IS NULL
a BETWEEN 7 AND 5|a BETWEEN 5 AND 5|a BETWEEN -5 AND -7|a BETWEEN 5.5 AND 5|a BETWEEN 5 AND 5.5|a BETWEEN b AND c
a BETWEEN NULL AND 5|a BETWEEN 1 AND NULL|a BETWEEN 'a' AND 'b'|a BETWEEN TRUE AND FALSE|a BETWEEN 1 AND 'b'
a BETWEEN 1 AND 3000000000|a BETWEEN -3000000000 AND 1|a BETWEEN 1.5 AND 3000000000|a BETWEEN 9007199254740993 AND 9007199254740992.0
a BETWEEN 9007199254740992.0 AND 9007199254740993|a BETWEEN 3000000001 AND 3000000000.5|5 BETWEEN 1 AND 7|5 BETWEEN a AND b
a NOT BETWEEN 7 AND 5|a NOT BETWEEN NULL AND 5|a NOT BETWEEN 'a' AND 5|a NOT BETWEEN b AND c|a NOT BETWEEN -5.5 AND 5
a NOT BETWEEN 1 AND 3000000000|a BETWEEN 1 AND 7 AND b = 7|a BETWEEN 1 AND b OR c = 'x'|-a BETWEEN 1 AND 7
a = ''|a <> ''|a = 'it''s'|c = 'it''s'|c = ''''|c = '中文😀'|d = 'a\nb'|c CONTAINS '文'|c ENDSWITH '😀'|d CONTAINS ''
d NOT CONTAINS ''|d STARTSWITH ''|d ENDSWITH ''|'abc' CONTAINS 'b'|'abc' NOT CONTAINS 'b'|5 CONTAINS '5'|5 NOT CONTAINS '5'
TRUE CONTAINS 'r'|NULL CONTAINS 'x'|NULL NOT CONTAINS 'x'|(a > 5) CONTAINS ''|(a > 5) CONTAINS 'x'|-5 CONTAINS '5'
a IN ('1','2','3','4','5','6')|a NOT IN ('1','2','3','4','5','6')|a IN ('5','5')|c IN ('', 'it''s')|a IN('5')AND b='7'
A = 5|_x = 1|$y = 2|a1 = 3|true = 9|TRUEx = 9|x_$1 IS NULL|é = 5|a\u00a0= 5|a\t=\r\n\f5|a\v= 5|a = 5\x00|a=5AND b=7
a = 5 and b = 7|a = 5 Or b = 7|nOt (a = 5)|a bEtWeEn 1 aNd 7|a iN ('5')|a cOnTaInS 'b'|a sTaRtSwItH 'a'|a eNdSwItH 'c'
a = 'x'OR b=7|a>5OR b>5|a>=5|a<=5|a<>5|a<5|(a>5)AND(b>5)|5=5.0|5=5|5=3000000000|3000000000=3000000000.0|5.5=5.5
9007199254740993 = 9007199254740992.0|'5' = 5|5 = '5'|'x' = 5|'true' = TRUE|'no' = FALSE|5 = TRUE|TRUE = 5|TRUE = 'true'
5.5 = TRUE|TRUE = TRUE|TRUE = FALSE|TRUE <> FALSE|TRUE = a|a = TRUE|d = TRUE|d <> TRUE|d = FALSE|FALSE = d|(a = 5) = d
(a = 5) = (b = 7)|(a = 5) <> TRUE|TRUE = (a = 5)|(a = 5) = 5|5 = (a = 5)|a = (b = 7)|(a IS NULL) = (b IS NULL)|NOT a = 5
NOT (a = 5)|NOT a|NOT a = TRUE|NOT d = FALSE|NOT a > 5|NOT (a > 5)|NOT a IS NULL|NOT (a IS NULL)|NOT NOT (a = 5)|a = NOT b
a = NOT TRUE|a AND b|a OR b|a AND TRUE|a OR TRUE|TRUE AND a|FALSE AND a|a AND FALSE|NULL AND TRUE|NULL OR TRUE|NULL OR FALSE
a > 5 OR TRUE|TRUE OR a > 5|a > 5 AND FALSE|FALSE AND a > 5|NULL AND a > 5|NULL OR a > 5|NOT (a > 5 AND FALSE)
a = 1 OR a = 2 OR a = 3 OR a = 5|a > 1 AND a > 2 AND a > 3 AND a > 4|a = 5 OR (a = 7 OR a = 3)|(a = 5 OR a = 7) OR a = 3
a = 5 AND (b = 7 AND c = 'x')|(a = 5 AND b = 7) AND c = 'x'|a = 5 AND b = 7 OR c = 'y'|a = 5 OR b = 7 AND c = 'y'
(a = 5 OR b = 7) AND c = 'y'|a = b|a <> b|a < b|a <= b|a > b|a >= b|c = d|c < d|c >= d|e = f|e <> f|e < f|'x' = e|e = 'x'|5 = e|5 < e
+a = 5|+(a = 5)|+(a = 5 AND b IN ('7') OR c NOT CONTAINS 'x' AND d IS NOT NULL)|+(a BETWEEN 1 AND 7)|+(a NOT IN ('5'))
+ + (a NOT STARTSWITH 'x')|+(a = )|+(a NOT 5)|+NOT a|NOT +a|+|+)|a = +(5)|a = -(5)|a = -(b)|a = -(a = 5)|-(a > 5) IS NULL|-a IS NULL
"""


def table() -> Iterator[str]:
    """Every construct, each pair of operators, numbers at their limits, malformed text."""
    for left, sign, right in product(VALUES, COMPARISONS, VALUES):
        if not (left.startswith("-") and right.startswith("-")):
            yield f"{left} {sign} {right}"
    for value, suffix in product(VALUES, SUFFIXES):
        yield f"{value} {suffix}"
        yield f"NOT {value} {suffix}"
        yield f"NOT ({value} {suffix})"
    for first, second in product(SUFFIXES, repeat=2):
        yield f"a {first} AND b {second} OR c = 'x'"
        yield f"a {first} {second}"
    for first, second in product(["=", "<", "AND", "OR", "<>", ">="], repeat=2):
        yield f"a {first} b {second} c"
        yield f"a {first} (b {second} c)"
    for number in NUMBERS.replace("\n", " ").split(" "):
        for sign in ("=", ">", "<="):
            yield f"a {sign} {number}"
        yield f"{number} < b"
        yield f"a NOT BETWEEN {number} AND 100"
    for text in NUMBER_TEXTS:
        quoted = text.replace("'", "''")
        yield from (f"'{quoted}' = {other}" for other in ("1", "3000000000", "1.5", "TRUE"))
        yield f"-5 = '{quoted}'"
    for line in MALFORMED.split("\n"):
        yield from line.encode("latin-1", "backslashreplace").decode("unicode_escape").split("|")
    yield from (
        "a -- c\n = 5",
        "a --\r= 5",
        "a = --5\n5",
        "a = 5 -- c\r\nAND b = 7",
        "a = 5 --\n@",
    )


DIRT = "( ) , = < - + . ' @ ! -- /* */ 0 L e 5"


class Grammar:
    """Draws expressions: mostly meaningful, some with a token broken."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)

    def pick(self, *choices: str) -> str:
        return self.dice.choice(choices)

    def number(self) -> str:
        whole = self.pick(
            "0", "1", "5", "7", "1000", "2147483647", "2147483648", "3000000000", "5L"
        )
        real = self.pick("5.0", ".5", "1e3", "5.", "1E-5", "1e400", "7.0", "0.0")
        return self.pick("", "", "", "-", "+", "- -") + (
            whole if self.dice.random() < 0.8 else real
        )

    def text(self) -> str:
        return self.pick(
            "'x'", "'5'", "'abc'", "''", "'true'", "'a''b'", "'b'", "'7'", "'c'", "'f'"
        )

    def name(self) -> str:
        return self.pick("a", "a", "b", "b", "c", "c", "d", "e")

    def value(self, depth: int) -> str:
        roll = self.dice.random()
        if roll < 0.5:
            return self.name()
        if roll < 0.75:
            return self.number()
        if roll < 0.87:
            return self.text()
        if roll < 0.92 or depth <= 0:
            return self.pick("TRUE", "FALSE", "NULL")
        return f"({self.condition(depth - 1)})"

    def bound(self) -> str:
        return self.name() if self.dice.random() < 0.25 else self.number()

    def test(self, depth: int) -> str:
        roll = self.dice.random()
        word_not = self.pick("", "", "NOT ")
        if roll < 0.25:
            return f"{self.value(depth)} {self.pick('=', '<>')} {self.value(depth)}"
        if roll < 0.45:
            return f"{self.bound()} {self.pick('<', '<=', '>', '>=')} {self.bound()}"
        if roll < 0.55:
            return f"{self.value(depth)} IS {word_not}NULL"
        if roll < 0.65:
            return f"{self.bound()} {word_not}BETWEEN {self.bound()} AND {self.bound()}"
        if roll < 0.75:
            choices = ",".join(self.text() for _ in range(self.dice.randint(1, 6)))
            return f"{self.name()} {word_not}IN ({choices})"
        if roll < 0.9:
            word = self.pick("CONTAINS", "STARTSWITH", "ENDSWITH", "contains")
            return f"{self.value(depth)} {word_not}{word} {self.text()}"
        return self.pick("TRUE", "FALSE", "NULL", self.name(), f"NOT {self.name()}")

    def condition(self, depth: int) -> str:
        roll = self.dice.random()
        if depth <= 0 or roll < 0.35:
            return self.test(depth)
        if roll < 0.8:
            inner = [self.condition(depth - 1) for _ in range(self.dice.randint(2, 3))]
            return f" {self.pick('AND', 'OR', 'and')} ".join(inner)
        if roll < 0.9:
            return f"NOT ({self.condition(depth - 1)})"
        return f"({self.condition(depth - 1)})"

    def broken(self) -> str:
        words = self.condition(2).replace("(", " ( ").replace(")", " ) ").split()
        for _ in range(self.dice.randint(1, 3)):
            place = self.dice.randrange(len(words) + 1)
            what = self.dice.random()
            if what < 0.4 and len(words) > 1:
                del words[place - 1]
            elif what < 0.7:
                words.insert(place, self.pick(*words))
            else:
                words.insert(place, self.pick(*DIRT.split(), "\n"))
        return self.pick(" ", " ", "").join(words)


def drawn(seed: int, count: int) -> Iterator[str]:
    grammar = Grammar(seed)
    seen: set[str] = set()
    while len(seen) < count:
        text = grammar.condition(3) if grammar.dice.random() < 0.7 else grammar.broken()
        if text not in seen and len(text) < 90:
            seen.add(text)
            yield text


def tags() -> Iterator[tuple[str | None, str | None]]:
    """Subscriptions of all kinds."""
    texts = [
        None, "", "*", " ", " * ", "||", "||||", "|", "|||", " || ", "||a", "a||", "a", "TagA", " TagA || TagB ||  || TagA ",
        "a||b", "a|b", "a | | b", "*||a", "\ta\n|| \x1fb\u00a0||\u3000c", "Aa||BB", "中文||😀", "polygenelubricants", "a||||b",
    ]  # fmt: skip
    for text in texts:
        for kind in ("TAG", None, "SQL92", "", "tag", "OTHER"):
            yield text, kind


def say(value: object) -> None:
    print(json.dumps(value, ensure_ascii=True))


def main() -> None:
    what = sys.argv[1]
    if what == "tags":
        say({"tags": True})
        for question in tags():
            say(question)
    elif what == "table":
        say({"maps": MAPS})
        for text in dict.fromkeys(table()):
            say(text)
    else:
        say({"brief": True, "maps": MAPS})
        seed, count = (int(arg) for arg in (sys.argv[2:] or ("20240611", "4000")))
        for text in drawn(seed, count):
            say(text)


if __name__ == "__main__":
    main()
