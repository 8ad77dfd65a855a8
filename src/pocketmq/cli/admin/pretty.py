"""JSON over several lines, as fastjson writes it and mqadmin prints it."""

from typing import Any

import msgspec

from pocketmq.protocol.json_values import plain


def pretty_json(value: Any) -> str:
    """Write a value: fields sorted, none that is null, numbers as keys without quotes."""
    return "\n".join(_pretty(plain(value), ""))


def _pretty(value: Any, indent: str) -> list[str]:
    deeper = indent + "\t"
    if isinstance(value, dict):
        items = [(_key(key), item) for key, item in value.items() if item is not None]
        return _block("{", "}", items, indent, deeper)
    if isinstance(value, list):
        return _block("[", "]", [("", item) for item in value], indent, deeper)
    return [msgspec.json.encode(value).decode()]


def _block(
    start: str, end: str, items: list[tuple[str, Any]], indent: str, deeper: str
) -> list[str]:
    if not items and start == "{":  # an empty array takes two lines
        return [start + end]
    lines = [start]
    for position, (key, item) in enumerate(items):
        first, *rest = _pretty(item, deeper)
        lines += [f"{deeper}{key}{first}", *rest]
        if position < len(items) - 1:
            lines[-1] += ","
    return [*lines, indent + end]


def _key(key: object) -> str:
    return f"{key}:" if isinstance(key, int) else f"{msgspec.json.encode(str(key)).decode()}:"
