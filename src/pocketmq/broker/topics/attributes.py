"""The rules for attributes (5.x) of topics and groups, in the words of Java's broker.

Tools show these words. A change of attributes is `+key=value` or `-key`; what is kept has no sign.
Values that ask for what this broker lacks are refused in our words, never stored and ignored.
"""

from collections.abc import Callable, Mapping

import msgspec

from pocketmq.broker.core.refusals import NO_LITE_TOPICS
from pocketmq.errors import AttributeRefused, AttributeUnsupported
from pocketmq.model.java_strings import java_split
from pocketmq.protocol.header import read_int64

Check = Callable[[str], str | None]
"""Says why a value is refused; None if it is not."""


class Attribute(msgspec.Struct, frozen=True):
    """The rules of one attribute."""

    fault: Check
    changeable: bool = True  # after the topic or group was made
    lacking: Mapping[str, str] = {}  # valid values that ask for what this broker lacks; the reason


def one_of(*values: str) -> Check:
    """Allow these values; a refusal lists them."""
    text = f"value is not in set: [{', '.join(values)}]"
    return lambda value: None if value in values else text


def between(low: int, high: int) -> Check:
    """Allow whole numbers from low to high."""

    def fault(value: str) -> str | None:
        number = read_int64(value)
        if number is None:
            return f'For input string: "{value}"'
        return None if low <= number <= high else f"value is not in range({low}, {high})"

    return fault


def _boolean(value: str) -> str | None:
    return None if value.lower() in ("true", "false") else "boolean attribute format is wrong."


def _any_text(_: str) -> str | None:
    return None


_LONG = 2**63 - 1
TOPIC_ATTRIBUTES: Mapping[str, Attribute] = {
    "queue.type": Attribute(one_of("SimpleCQ", "BatchCQ"), changeable=False),
    "cleanup.policy": Attribute(
        one_of("DELETE", "COMPACTION"),
        changeable=False,
        lacking={
            "COMPACTION": "COMPACTION cleanup policy is not supported: this broker deletes "
            "messages by age, not by key."
        },
    ),
    "message.type": Attribute(
        # in the order Java's hash set happens to list them
        one_of(
            "UNSPECIFIED", "MIXED", "TRANSACTION", "PRIORITY", "FIFO", "DELAY", "LITE", "NORMAL"
        ),
        lacking={"LITE": f"LITE message type is not supported: {NO_LITE_TOPICS}."},
    ),
    "reserve.time": Attribute(between(-1, _LONG)),
    "lite.topic.expiration": Attribute(between(-1, 43_200)),
}
GROUP_ATTRIBUTES: Mapping[str, Attribute] = {
    "priority.factor": Attribute(between(0, 100)),
    "lite.bind.topic": Attribute(_any_text),
    "lite.sub.model": Attribute(one_of("Shared", "Exclusive")),
    "lite.sub.client.quota": Attribute(between(-1, _LONG)),
    "lite.sub.client.max.event.cnt": Attribute(between(10, _LONG)),
    "lite.sub.reset.offset.exclusive": Attribute(_boolean),
    "lite.sub.reset.offset.unsubscribe": Attribute(_boolean),
    "lite.sub.wildcard": Attribute(_any_text),
}


def parse_changes(text: str) -> dict[str, str]:
    """Read `+k=v,-k` into signed keys and values. Raises `AttributeRefused`."""
    changes: dict[str, str] = {}
    if not text:
        return changes
    for part in java_split(text, ","):
        if "=" in part:
            key, *values = java_split(part, "=") or [""]
            if "+" not in key:
                raise AttributeRefused(f"add/alter attribute format is wrong: {key}")
            if not values:
                raise AttributeRefused(f"attribute without a value: {key}")
            value = values[0]
        else:
            key, value = part, ""
            if "-" not in key:
                raise AttributeRefused(f"delete attribute format is wrong: {key}")
        if key in changes:
            raise AttributeRefused(f"key duplication: {key}")
        changes[key] = value
    return changes


def apply_changes(
    known: Mapping[str, Attribute],
    current: Mapping[str, str] | None,
    changes: Mapping[str, str],
) -> dict[str, str]:
    """Return the attributes after changes with signed keys; `current` is None for something new.

    Raises `AttributeRefused` and `AttributeUnsupported`, and then nothing has changed.
    """
    result = dict(current or {})
    seen: set[str] = set()
    for signed, value in changes.items():
        sign, key = signed[:1], signed[1:]
        if not key or "+" in key or "-" in key:
            raise AttributeRefused("kv string format wrong.")
        if key in seen:
            raise AttributeRefused(f"alter duplication key. key: {key}")
        seen.add(key)
        if current is None:
            if sign != "+":
                raise AttributeRefused(
                    f"only add attribute is supported while creating topic. key: {key}"
                )
        elif sign == "-" and key not in current:
            raise AttributeRefused(f"attempt to delete a nonexistent key: {key}")
        elif sign not in ("+", "-"):
            raise AttributeRefused(f"wrong format key: {key}")
        _check(known, key, None if sign == "-" else value, new=current is None)
        if sign == "-":
            del result[key]
        else:
            result[key] = value
    return result


def _check(known: Mapping[str, Attribute], key: str, value: str | None, *, new: bool) -> None:
    attribute = known.get(key)
    if attribute is None:
        raise AttributeRefused(f"unsupported key: {key}")
    if not new and not attribute.changeable:
        raise AttributeRefused(f"attempt to update an unchangeable attribute. key: {key}")
    fault = None if value is None else attribute.fault(value)
    if fault is not None:
        raise AttributeRefused(fault)
    if value is not None and value in attribute.lacking:
        raise AttributeUnsupported(attribute.lacking[value])


def lacking(attributes: Mapping[str, str]) -> list[str]:
    """Return those of a topic's attributes, as `key=value`, that this broker cannot honour."""
    return [
        f"{key}={value}"
        for key, value in attributes.items()
        if key in TOPIC_ATTRIBUTES and value in TOPIC_ATTRIBUTES[key].lacking
    ]
