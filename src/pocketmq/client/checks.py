"""Checks of what users pass: types, words that stand for values, ranges, functions.

Options are checked when they are made. Type checkers find most mistakes, but not everybody runs
one. Independent of single options: it has only kinds of them.
"""

import logging
import math
from enum import Enum
from functools import cache, lru_cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from pocketmq.balance.profile import V4, V5, Profile
from pocketmq.errors import InvalidInput
from pocketmq.model import ConsumeFromWhere, MessageModel, OnDamage

logger = logging.getLogger("pocketmq.client")

LONGEST = 7 * 24 * 3600.0
"""No interval or timeout is longer than a week: a larger number is most likely milliseconds."""
UNUSUAL = 1000.0
"""Seconds from which a timeout is more likely one in Java's milliseconds."""
LONGEST_USUAL = dict.fromkeys(
    (
        "poll_timeout", "pull_interval", "pull_retry", "pull_timeout", "receive_timeout",
        "request_timeout", "send_timeout", "send_timeout_per_try", "suspend", "suspend_queue",
    ),
    UNUSUAL,
) | dict.fromkeys(
    (
        "auto_commit_interval", "heartbeat_interval", "persist_interval", "route_interval",
        "topic_check_interval",
    ),
    3601.0,  # an hour is a way to turn a timer off
)  # fmt: skip
"""Options in seconds that Java has in milliseconds, and from which value on they are suspicious."""

# Numbers, functions and hooks


def check_seconds(name: str, value: float, *, at_least: float = 0.0) -> None:
    """Raise `InvalidInput` unless `value` is a sensible number of seconds."""
    if not is_number(value) or not math.isfinite(value) or not at_least <= value <= LONGEST:
        raise InvalidInput(
            f"{name} must be in seconds, from {at_least:g} to {LONGEST:g}, not {value!r}"
        )


def warn_of_milliseconds(group: str, options: msgspec.Struct) -> None:
    """Log options whose number of seconds was most likely meant as milliseconds."""
    for name in LONGEST_USUAL.keys() & set(options.__struct_fields__):
        warn_if_milliseconds(group, name, getattr(options, name))


def warn_if_milliseconds(group: str, name: str, value: float | None) -> None:
    """Log a number of seconds that was most likely meant as milliseconds, once each."""
    if value is not None and value >= LONGEST_USUAL.get(name, UNUSUAL):
        _log_milliseconds(group, name, value)


@lru_cache(maxsize=256)
def _log_milliseconds(group: str, name: str, value: float) -> None:
    logger.warning(
        "%s=%g is in seconds (%.0f minutes): group=%s; if you meant %g ms, set %s=%g",
        name, value, value / 60, group, value, name, value / 1000,
    )  # fmt: skip


def check_range(name: str, value: int, low: int, high: int) -> None:
    """Raise `InvalidInput` unless `value` is an integer from `low` to `high`."""
    if type(value) is not int or not low <= value <= high:
        raise InvalidInput(f"{name} must be from {low} to {high}, not {value!r}")


def is_number(value: object) -> bool:
    """Return whether a value is a number; True and False are not."""
    return isinstance(value, int | float) and type(value) is not bool


def check_callable(name: str, value: object, what: str) -> None:
    """Raise `InvalidInput` unless `value` can be called."""
    if not callable(value):
        raise InvalidInput(f"{name} must be a function of {what}, not {value!r}")


def check_hook(hook: object, *methods: str) -> None:
    """Raise `InvalidInput` unless `hook` has these methods."""
    if not all(callable(getattr(hook, name, None)) for name in methods):
        raise InvalidInput(
            f"a hook must have the methods {' and '.join(methods)}; {hook!r} does not"
        )


# The fields of options

StartWord = Literal["first", "last", "timestamp"]
ModelWord = Literal["clustering", "broadcasting"]
ProfileWord = Literal["4.x", "5.x"]
CodecWord = Literal["lz4", "zlib", "zstd"]
QueueChoiceWord = Literal["java", "adaptive"]
DamageWord = Literal["skip", "stop"]

_WORDS: dict[type, dict[str, Any]] = {
    ConsumeFromWhere: {
        "first": ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        "last": ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
        "timestamp": ConsumeFromWhere.CONSUME_FROM_TIMESTAMP,
    },
    MessageModel: {
        "clustering": MessageModel.CLUSTERING,
        "broadcasting": MessageModel.BROADCASTING,
    },
    OnDamage: {"skip": OnDamage.SKIP, "stop": OnDamage.STOP},
    Profile: {"4.x": V4, "5.x": V5},
}
"""Words that stand for values; other enumerations are written by the names of their members."""
_KINDS: dict[Any, str] = {
    bool: "True or False",
    bytes: "bytes",
    float: "a number",
    int: "a whole number",
    str: "text",
    NoneType: "None",
}


def settle_kinds(options: msgspec.Struct) -> None:
    """Check the type of every field, and replace words by the values they stand for.

    Raises `InvalidInput` naming the field. Called by `__post_init__`, before the options are used.
    """
    for name, wanted in _kinds(type(options)).items():
        value = getattr(options, name)
        if isinstance(value, wanted) and not (type(value) is bool and bool not in wanted):
            continue
        words = {word: meant for kind in wanted for word, meant in words_of(kind).items()}
        meant = words.get(value.lower(), _by_name(wanted, value)) if type(value) is str else None
        if meant is not None:
            msgspec.structs.force_setattr(options, name, meant)
            continue
        said = [repr(word) for word in words] or _said(wanted)
        # The value is shown only where it cannot be a secret.
        simple = words or all(kind in _KINDS for kind in wanted)
        shown = repr(value)[:100] if simple else _article(type(value))
        raise InvalidInput(f"{name} must be {_either(said)}, not {shown}")


def words_of(kind: type) -> dict[str, Any]:
    """Return the words that stand for values of a kind."""
    if kind in _WORDS:
        return _WORDS[kind]
    if issubclass(kind, Enum):
        return {member.name.lower(): member for member in kind}
    return {}


@cache
def _kinds(options: type[msgspec.Struct]) -> dict[str, tuple[type, ...]]:
    """Return the classes that each field accepts; fields of protocol types are not checked."""
    hints = get_type_hints(options)
    found = {}
    for name in options.__struct_fields__:
        hint = hints[name]
        kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        if not any(getattr(kind, "_is_protocol", False) for kind in kinds):
            found[name] = (*kinds, int) if float in kinds else kinds
    return found


def _by_name(wanted: tuple[type, ...], name: str) -> Any:
    """Return the enumeration member that has this name in Java."""
    kinds = [kind for kind in wanted if issubclass(kind, Enum)]
    return next((kind[name] for kind in kinds if name in kind.__members__), None)


def _said(wanted: tuple[type, ...]) -> list[str]:
    kinds = [kind for kind in wanted if not (kind is int and float in wanted)]
    return [_KINDS.get(kind) or _article(kind) for kind in kinds]


def _either(said: list[str]) -> str:
    return said[0] if len(said) == 1 else f"{', '.join(said[:-1])} or {said[-1]}"


def _article(kind: type) -> str:
    return f"{'an' if kind.__name__[0] in 'AEIOUaeiou' else 'a'} {kind.__name__}"
