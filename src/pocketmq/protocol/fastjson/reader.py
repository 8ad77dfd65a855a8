"""Reads the text any RocketMQ release, or a client in another language, puts into a body.

Standard JSON takes the fast way through msgspec, and so do maps whose keys are plain objects. What
msgspec refuses is read again here, as fastjson would read it: bare, integer and object keys, single
quotes, comments, Java's escapes, missing or surplus commas. The reader keeps a stack of its own,
runs in linear time, and refuses nesting beyond `MAX_DEPTH` and more values than any body of
RocketMQ has. Whatever the input, only `BodyMalformed` is raised.
"""

import re
from typing import Any

import msgspec

from pocketmq.errors import BodyMalformed
from pocketmq.protocol.fastjson.quirks import read_with_object_keys, resolve
from pocketmq.protocol.fastjson.writer import MAX_DEPTH, ObjectKey, dumps

_LONGEST_NUMBER = 400
MAX_CONTAINERS = 1_000_000
"""Objects and arrays in one text: each takes far more memory than the two bytes it needs there."""
MAX_UNUSUAL = 1_000_000
"""Values read here one by one, without msgspec: some seconds' work."""


def loads(data: bytes | str, what: str = "JSON") -> Any:
    """Read one value; maps have string keys, a key that is an object being an `ObjectKey`.

    `what` names the body in errors. Raises `BodyMalformed`.
    """
    if isinstance(data, str):
        data = str(data)  # an ObjectKey's bare text
    openings = _openings(data)
    if openings > MAX_CONTAINERS:
        raise BodyMalformed(
            what, f"it has {openings} objects and arrays; at most {MAX_CONTAINERS} are allowed"
        )
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        value = _read_dialect(data, what)
    if "$ref" in data if isinstance(data, str) else b"$ref" in data:
        value = resolve(value, what)
    if openings > MAX_DEPTH and nests_deeper(value, MAX_DEPTH):
        raise BodyMalformed(what, f"nests deeper than {MAX_DEPTH} levels")
    return value


def _read_dialect(data: bytes | str, what: str) -> Any:
    """Read what is not standard JSON: nearly always maps of queues, which have a quick way."""
    if isinstance(data, bytes):
        try:
            return read_with_object_keys(data)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            pass
    return _read(_text(data, what), what)


def _text(data: bytes | str, what: str) -> str:
    if isinstance(data, str):
        return data
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BodyMalformed(what, f"not UTF-8 at byte {error.start}") from None


def _openings(data: bytes | str) -> int:
    if isinstance(data, str):
        return data.count("{") + data.count("[")
    return data.count(b"{") + data.count(b"[")


def nests_deeper(value: Any, levels: int) -> bool:
    """Return whether a value has more levels of maps and lists than allowed."""
    level = [value]
    for _ in range(levels):
        level = [
            child
            for node in level
            if type(node) is dict or type(node) is list
            for child in (node.values() if type(node) is dict else node)
        ]
        if not level:
            return False
    return any(type(node) is dict or type(node) is list for node in level)


def _read(text: str, what: str) -> Any:
    cursor = _Cursor(text, what)
    value = cursor.value()
    stack: list[Any] = [value] if type(value) is dict or type(value) is list else []
    unread = MAX_UNUSUAL
    while stack:
        top = stack[-1]
        unread -= 1
        if unread < 0:
            raise cursor.wrong(f"more than {MAX_UNUSUAL} values that are not plain JSON")
        if type(top) is dict:
            cursor.simple_members(top)
            if cursor.closes("}"):
                stack.pop()
                continue
            key = cursor.key()
            child = top[key] = cursor.value()
        else:
            if cursor.closes("]"):
                stack.pop()
                continue
            child = cursor.value()
            top.append(child)
        if type(child) is dict or type(child) is list:
            if len(stack) == MAX_DEPTH:
                raise cursor.wrong(f"nests deeper than {MAX_DEPTH} levels")
            stack.append(child)
    cursor.end()
    return value


# Quantifiers are possessive throughout: no text makes these expressions look back.
_GAP = re.compile(r"(?:[\s,\ufeff\x08]++|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/)*+")
_COLON = re.compile(r"[\s\ufeff\x08]*+:")
_MEMBER = re.compile(
    r"""[\s,]*+"(?P<key>[^"\\]*+)"\s*+:\s*+
    (?:"(?P<text>[^"\\]*+)"|(?P<number>-?[0-9]{1,18}+)(?=[\s,}]))""",
    re.VERBOSE,
)
_STRING = r""""(?P<double>(?:[^"\\]++|\\.)*+)"|'(?P<single>(?:[^'\\]++|\\.)*+)'"""
_KEY = re.compile(
    rf"""{_STRING}|(?P<bare>[^\s:,{{}}\[\]"'/]++)
    |(?P<object>\{{(?:[^{{}}"']++|"(?:[^"\\]++|\\.)*+"|'(?:[^'\\]++|\\.)*+')*+\}})""",
    re.VERBOSE | re.DOTALL,
)
_VALUE = re.compile(
    rf"""(?P<open>[{{\[])|{_STRING}
    |(?P<number>[-+]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][-+]?[0-9]++)?)[LSBFD]?
    |(?P<word>-?[A-Za-z]++)""",
    re.VERBOSE | re.DOTALL,
)
_WORDS: dict[str, Any] = {
    "true": True,
    "false": False,
    "null": None,
    "undefined": None,
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "-Infinity": float("-inf"),
}


class _Cursor:
    """A position in the text, and the tokens that may stand there."""

    __slots__ = ("position", "text", "what")

    def __init__(self, text: str, what: str) -> None:
        self.text = text
        self.what = what
        self.position = 0

    def wrong(self, reason: str) -> BodyMalformed:
        return BodyMalformed(self.what, f"{reason} at character {self.position}")

    def simple_members(self, into: dict[str, Any]) -> None:
        """Take members whose values are plain strings and integers, the bulk of every body."""
        text, position = self.text, self.position
        while found := _MEMBER.match(text, position):
            key, string, number = found.groups()
            into[key] = int(number) if string is None else string
            position = found.end()
        self.position = position

    def closes(self, bracket: str) -> bool:
        self._skip()
        if not self.text.startswith(bracket, self.position):
            return False
        self.position += 1
        return True

    def key(self) -> str:
        self._skip()
        found = _KEY.match(self.text, self.position)
        if found is None:
            raise self.wrong("a key is expected")
        if (key := found["bare"]) is None:
            key = self._object_key(found["object"]) if found["object"] else self._string(found)
        colon = _COLON.match(self.text, found.end())
        if colon is None:
            raise self.wrong("a key without its colon")
        self.position = colon.end()
        return key

    def value(self) -> Any:
        """Take a scalar, or open a container: it comes back empty, for the caller to fill."""
        self._skip()
        found = _VALUE.match(self.text, self.position)
        if found is None:
            raise self.wrong("a value is expected")
        kind = found.lastgroup
        if kind == "open":
            value: Any = {} if found["open"] == "{" else []
        elif kind == "number":
            value = self._number(found["number"])
        elif kind == "word":
            if found["word"] not in _WORDS:
                raise self.wrong("unexpected word; expected a JSON value")
            value = _WORDS[found["word"]]
        else:
            value = self._string(found)
        self.position = found.end()
        return value

    def end(self) -> None:
        self._skip()
        if self.position < len(self.text):
            raise self.wrong("text after the end")

    def _skip(self) -> None:
        if found := _GAP.match(self.text, self.position):
            self.position = found.end()

    def _number(self, digits: str) -> int | float:
        if len(digits) > _LONGEST_NUMBER:
            raise self.wrong("a number of too many digits")
        try:
            return int(digits)
        except ValueError:
            return float(digits)

    def _string(self, found: re.Match[str]) -> str:
        text = found["double"] if found["double"] is not None else found["single"]
        return self._unescape(text) if "\\" in text else text

    def _unescape(self, text: str) -> str:
        plain = _ESCAPE.sub(self._one, text)
        if _HALF.search(plain):  # two escapes may be one character; a half alone is none
            return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return plain

    def _one(self, found: re.Match[str]) -> str:
        code = found["code"]
        if code is not None:
            return chr(int(code[1:], 16))
        character = _ESCAPED.get(found["letter"])
        if character is None:
            raise self.wrong("an unknown escape in the string")
        return character

    def _object_key(self, text: str) -> ObjectKey:
        try:
            msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return ObjectKey(dumps(_read(text, self.what)).decode())
        return ObjectKey(text)


_ESCAPE = re.compile(r"\\(?:(?P<code>u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2})|(?P<letter>.))", re.DOTALL)
_HALF = re.compile("[\ud800-\udfff]")
_ESCAPED = {
    '"': '"', "'": "'", "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r",
    "t": "\t", "v": "\v", "F": "\f",
} | {str(digit): chr(digit) for digit in range(8)}  # fmt: skip
