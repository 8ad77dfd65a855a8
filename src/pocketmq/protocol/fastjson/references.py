"""Replaces fastjson 1.x's references by what they refer to.

fastjson writes an object it meets again as `{"$ref":"$.path"}`. A reference always points back to
a value that is already complete; one that points to a value around itself (`$`, `..`, `@`) would
make a circle, which no body of RocketMQ has, and is refused.
"""

import re
from collections.abc import Iterator
from typing import Any

from pocketmq.errors import BodyMalformed

_MARK = "$ref"
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


def resolve(root: Any, what: str) -> Any:
    """Give the value with every reference replaced; an unknown path counts as null, as in Java.

    Raises `BodyMalformed` for circles and for references that stand for too much.
    """
    if _is_reference(root):
        raise BodyMalformed(what, "a reference stands where the body should be")
    budget = _COPIES
    stack = [(root, _entries(root))]
    while stack:  # in document order: what a reference points to is free of references by then
        holder, entries = stack[-1]
        for key, value in entries:
            if _is_reference(value):
                target = _find(root, value[_MARK], what)
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
    return type(value) is dict and len(value) == 1 and type(value.get(_MARK)) is str


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
