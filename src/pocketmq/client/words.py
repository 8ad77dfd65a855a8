"""Options of the right kind: types are checked where options are made, plain words become values.

Type checkers tell most of it, but not everybody runs one. Knows no single option, only kinds.
"""

from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from pocketmq.balance.profile import V4, V5, Profile
from pocketmq.errors import InvalidInput
from pocketmq.model.kinds import ConsumeFromWhere, MessageModel, OnDamage

StartWord = Literal["first", "last", "timestamp"]
ModelWord = Literal["clustering", "broadcasting"]
ProfileWord = Literal["4.x", "5.x"]
CodecWord = Literal["lz4", "zlib", "zstd"]
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
"""What else may be said by a word; of all others that have them, their names."""
_KINDS: dict[Any, str] = {
    bool: "True or False",
    bytes: "bytes",
    float: "a number",
    int: "a whole number",
    str: "text",
    NoneType: "None",
}


def settle_kinds(options: msgspec.Struct) -> None:
    """Check the type of every field, and put values in the place of words that stand for them.

    Raises `InvalidInput` naming the field. For `__post_init__`: nobody has seen the options yet.
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
        # Only what cannot be a secret is shown.
        simple = words or all(kind in _KINDS for kind in wanted)
        shown = repr(value)[:100] if simple else _article(type(value))
        raise InvalidInput(f"{name} is {_either(said)}, not {shown}")


def words_of(kind: type) -> dict[str, Any]:
    """Give the words that stand for values of a kind."""
    if kind in _WORDS:
        return _WORDS[kind]
    if issubclass(kind, Enum):
        return {member.name.lower(): member for member in kind}
    return {}


@cache
def _kinds(options: type[msgspec.Struct]) -> dict[str, tuple[type, ...]]:
    """Give the classes a field may be of; fields of structural types are left to others."""
    hints = get_type_hints(options)
    found = {}
    for name in options.__struct_fields__:
        hint = hints[name]
        kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        if not any(getattr(kind, "_is_protocol", False) for kind in kinds):
            found[name] = (*kinds, int) if float in kinds else kinds
    return found


def _by_name(wanted: tuple[type, ...], name: str) -> Any:
    """Find what Java calls so."""
    kinds = [kind for kind in wanted if issubclass(kind, Enum)]
    return next((kind[name] for kind in kinds if name in kind.__members__), None)


def _said(wanted: tuple[type, ...]) -> list[str]:
    kinds = [kind for kind in wanted if not (kind is int and float in wanted)]
    return [_KINDS.get(kind) or _article(kind) for kind in kinds]


def _either(said: list[str]) -> str:
    return said[0] if len(said) == 1 else f"{', '.join(said[:-1])} or {said[-1]}"


def _article(kind: type) -> str:
    return f"{'an' if kind.__name__[0] in 'AEIOUaeiou' else 'a'} {kind.__name__}"
