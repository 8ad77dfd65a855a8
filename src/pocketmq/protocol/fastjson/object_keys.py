"""The quick way through maps whose keys are objects: with these quoted, the rest is plain JSON.

A key is marked by an escaped NUL right after its quote. Should what looks like a key be part of a
string, the quote ends that string and a backslash follows, which no JSON allows: such text is never
read wrongly, it is only refused here.
"""

import re
from typing import Any

import msgspec

from pocketmq.protocol.fastjson.writer import ObjectKey

# No `{` is read over, and quantifiers are possessive: the time is linear in the text.
_KEY = re.compile(rb"""\{(?:[^{}"'\\]++|"[^"\\{}]*+")*+\}(?=\s*+:)""")
_MARK = "\0"
_MARKED = rb"\u0000"


def read_with_object_keys(data: bytes) -> Any:
    """Read standard JSON but for keys that are flat objects; these become `ObjectKey`.

    Raises `msgspec.DecodeError` for anything else, also if there is no such key.
    """
    if _MARKED in data:
        raise msgspec.DecodeError("it has marks of its own")
    text, count = _KEY.subn(_quoted, data)
    value = msgspec.json.decode(text)
    _restore(value, count)
    return value


def _quoted(found: re.Match[bytes]) -> bytes:
    return b'"%b%b"' % (_MARKED, found[0].replace(b'"', b'\\"'))


def _restore(value: Any, count: int) -> None:
    """Turn marked keys into what they are, level by level until all are found."""
    level = [value]
    while count > 0 and level:
        below: list[Any] = []
        for node in level:
            if type(node) is dict:
                if any(key.startswith(_MARK) for key in node):
                    count -= _restore_keys(node)
                below += node.values()
            elif type(node) is list:
                below += node
        level = below


def _restore_keys(node: dict[str, Any]) -> int:
    restored: dict[str, Any] = {}
    count = 0
    for key, item in node.items():
        if key.startswith(_MARK):
            count += 1
            text = key[1:]
            msgspec.json.decode(text)  # loose notation is left to the tolerant reader
            restored[ObjectKey(text)] = item
        else:
            restored[key] = item
    node.clear()
    node.update(restored)
    return count
