"""What fastjson 1.x writes that is not JSON: objects as map keys, and references.

`{"$ref":"$.path"}` stands for an object that was written before. A reference always points back to
a value that is already complete; one that points to a value around itself (`$`, `..`, `@`) would
make a circle, which no body of RocketMQ has, and is refused.

Maps whose keys are objects have a quick way: with the keys quoted, the rest is plain JSON. A quoted
key is marked by an escaped NUL right after its quote. Should what looks like a key be part of a
string, the quote ends that string and a backslash follows, which no JSON allows: such text is never
read wrongly, it is only refused here, and the slow reader takes it.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from pocketmq.errors import BodyMalformed
from pocketmq.protocol.fastjson.writer import ObjectKey

# No `{` is read over, and quantifiers are possessive: the time is linear in the text.
_KEY = re.compile(rb"""\{(?:[^{}"'\\]++|"[^"\\{}]*+")*+\}(?=\s*+:)""")
_KEY_MARK = "\0"
_MARKED = rb"\u0000"
_REFERENCE = "$ref"
_COPIES = 100_000
"""How many values all references of a body may stand for together: a small body cannot pose as a
huge one."""
_STEP = re.compile(
    r"""\.(?P<name>(?:[^.\[\]\\]++|\\.)++)
    | \[(?P<index>[0-9]{1,9})\]
    | \[(?P<quote>["'])(?P<text>.*?)(?P=quote)\]""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def read_with_object_keys(data: bytes) -> Any:
    """Read standard JSON, except for keys that are flat objects; these become `ObjectKey`.

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
                if any(key.startswith(_KEY_MARK) for key in node):
                    count -= _restore_keys(node)
                below += node.values()
            elif type(node) is list:
                below += node
        level = below


def _restore_keys(node: dict[str, Any]) -> int:
    restored: dict[str, Any] = {}
    count = 0
    for key, item in node.items():
        if key.startswith(_KEY_MARK):
            count += 1
            text = key[1:]
            msgspec.json.decode(text)  # loose notation is left to the tolerant reader
            restored[ObjectKey(text)] = item
        else:
            restored[key] = item
    node.clear()
    node.update(restored)
    return count


def resolve(root: Any, what: str) -> Any:
    """Return the value with every reference replaced; an unknown path counts as null, as in Java.

    Raises `BodyMalformed` for circles and for references that stand for too much.
    """
    if _is_reference(root):
        raise BodyMalformed(what, "the body is a reference, not a value")
    budget = _COPIES
    stack = [(root, _entries(root))]
    while stack:  # in document order: what a reference points to is free of references by then
        holder, entries = stack[-1]
        for key, value in entries:
            if _is_reference(value):
                target = _find(root, value[_REFERENCE], what)
                budget = _spend(target, budget, what)
                holder[key] = target
            elif type(value) is dict or type(value) is list:
                stack.append((value, _entries(value)))
                break
        else:
            stack.pop()
    return root


def _entries(holder: Any) -> Iterator[tuple[Any, Any]]:
    if type(holder) is dict:
        return iter(holder.items())
    return iter(enumerate(holder) if type(holder) is list else ())


def _is_reference(value: Any) -> bool:
    return type(value) is dict and len(value) == 1 and type(value.get(_REFERENCE)) is str


def _find(root: Any, path: str, what: str) -> Any:
    if path in ("$", "..", "@"):
        raise BodyMalformed(what, f"reference {path!r} makes a circle")
    if not path.startswith("$"):
        return None
    value = root
    position = 1
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None:
            return None
        position = step.end()
        value = _enter(value, step)
        if value is None:
            return None
    return value


def _enter(value: Any, step: re.Match[str]) -> Any:
    if step["index"] is not None:
        index = int(step["index"])
        if type(value) is list:
            return value[index] if index < len(value) else None
        return value.get(step["index"]) if type(value) is dict else None
    name = step["text"] if step["name"] is None else _ESCAPED.sub(r"\1", step["name"])
    return value.get(name) if type(value) is dict else None


def _spend(target: Any, budget: int, what: str) -> int:
    """Count what a target holds against the budget; it must hold no reference itself."""
    pending = [target]
    while pending:
        value = pending.pop()
        budget -= 1
        if budget < 0:
            raise BodyMalformed(what, f"references stand for more than {_COPIES} values")
        if _is_reference(value):
            raise BodyMalformed(what, "references make a circle")
        if type(value) is dict:
            pending.extend(value.values())
        elif type(value) is list:
            pending.extend(value)
    return budget
