"""Typed values from JSON values and back, by the rules fastjson reads and writes beans with.

A class is read once for its fields and turned into a converter. Numbers may come as strings, enums
as names or ordinals, sets as arrays; null and absent mean the default. Fields a class does not know
stay in its `extra` and are written back. Independent of particular bodies.
"""

from collections.abc import Callable
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

import msgspec

from pocketmq.errors import BodyMalformed
from pocketmq.model import MessageQueue
from pocketmq.protocol.fastjson import ObjectKey, dumps, loads, nests_deeper, quote
from pocketmq.protocol.json_scalars import SCALARS, Mismatch, kind_of

T = TypeVar("T")
Convert = Callable[[Any], Any]

EXTRA = "extra"
_EXTRA_DEPTH = 32
"""How deep a field may nest that is only handed on: it may be written deeper than it was read."""


def decode_body(data: bytes | str, cls: type[T]) -> T:
    """Read a body as a value of a class, or as a `list[...]` or `dict[...]` of them.

    Raises `BodyMalformed`, which names the path of what does not fit.
    """
    return decode_value(loads(data, _name(cls)), cls)


def decode_value(value: Any, cls: type[T]) -> T:
    """Turn a result of `loads` into a value of a class. Raises `BodyMalformed`."""
    if value is None:
        raise BodyMalformed(_name(cls), "the body is null")
    form: Any = cls
    try:
        result: T = _converter(form)(value)
    except Mismatch as mismatch:
        path = "".join(reversed(mismatch.path)).lstrip(".") or "the body"
        raise BodyMalformed(_name(cls), f"{path} {mismatch}") from None
    return result


def encode_body(value: Any, *, ascii_only: bool = False, bare_integer_keys: bool = False) -> bytes:
    """Write a value as every RocketMQ release reads it; the options are those of `dumps`."""
    return dumps(plain(value), ascii_only=ascii_only, bare_integer_keys=bare_integer_keys)


def plain(value: Any) -> Any:
    """Turn a typed value into what `dumps` writes: bean fields sorted by name, sets sorted."""
    if type(value) in _PLAIN:  # most are
        return value
    if isinstance(value, msgspec.Struct):
        return _plain_struct(value)
    if isinstance(value, dict):
        return {_plain_key(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, set | frozenset):
        items = [plain(item) for item in value]
        return sorted(items, key=str if any(type(item) is str for item in items) else None)
    return value


_PLAIN = frozenset({str, int, bool, float, NoneType})


def _plain_struct(value: msgspec.Struct) -> dict[str, Any]:
    result = {name: plain(getattr(value, attribute)) for name, attribute in _wire(type(value))}
    extra = getattr(value, EXTRA, None)
    return dict(sorted((extra | result).items())) if extra else result


def _plain_key(key: Any) -> Any:
    if type(key) is MessageQueue:
        return ObjectKey(
            f'{{"brokerName":{quote(key.broker_name)},"queueId":{key.queue_id:d},'
            f'"topic":{quote(key.topic)}}}'
        )
    return key


@cache
def _wire(cls: type[msgspec.Struct]) -> tuple[tuple[str, str], ...]:
    """Return a class's wire names and attributes, in the order fastjson writes them."""
    fields = msgspec.structs.fields(cls)
    return tuple(sorted((each.encode_name, each.name) for each in fields if each.name != EXTRA))


def _name(cls: Any) -> str:
    return cls.__name__ if isinstance(cls, type) and not get_args(cls) else str(cls)


@cache
def _converter(form: Any) -> Convert:
    """Return the converter of a type annotation."""
    origin, arguments = get_origin(form), get_args(form)
    if origin in (Union, UnionType):
        (only,) = (each for each in arguments if each is not NoneType)
        return _converter(only)
    if origin is dict:
        return _map_converter(_key_converter(arguments[0]), _converter(arguments[1]))
    if origin in (list, tuple, set, frozenset):
        return _many_converter(origin, _converter(arguments[0]))
    if form is Any:
        return _anything
    if form in SCALARS:
        return SCALARS[form]
    if issubclass(form, Enum):
        return _enum_converter(form)
    return _struct_converter(form)


def _struct_converter(cls: type[msgspec.Struct]) -> Convert:
    fields = msgspec.structs.fields(cls)
    known = {
        each.encode_name: (each.name, _converter(each.type))
        for each in fields
        if each.name != EXTRA
    }
    required = [(each.name, each.encode_name) for each in fields if each.required]
    keeps_extra = any(each.name == EXTRA for each in fields)

    def convert(value: Any) -> Any:
        if type(value) is not dict:
            raise Mismatch(f"is {kind_of(value)}, not an object")
        found: dict[str, Any] = {}
        extra: dict[str, Any] = {}
        for key, item in value.items():
            if item is None:
                continue
            attribute, convert_item = known.get(key, _UNKNOWN)
            try:
                converted = convert_item(item)
            except Mismatch as mismatch:
                mismatch.path.append(f".{key:.80}")
                raise
            if attribute == EXTRA:
                extra[key] = converted
            elif converted is not None:
                found[attribute] = converted
        for attribute, name in required:
            if attribute not in found:
                raise Mismatch(f"lacks {name}")
        if extra and keeps_extra:
            found[EXTRA] = extra
        return cls(**found)

    if all(each.type in (int, bool) for each in fields if each.name != EXTRA):
        return _numbers_converter(cls, frozenset(known), convert)
    return convert


def _numbers_converter(cls: type[Any], names: frozenset[str], convert: Convert) -> Convert:
    """Return a quick converter for figures, which come in large numbers and are well formed."""

    def convert_numbers(value: Any) -> Any:
        if type(value) is dict and value and value.keys() <= names:
            try:
                figures = value.values()
                if min(figures) >= -(2**63) and max(figures) < 2**63:
                    return msgspec.convert(value, cls)
            except (TypeError, msgspec.ValidationError):
                pass  # null, a number in a string, or worse
        return convert(value)

    return convert_numbers


def _map_converter(convert_key: Convert, convert_item: Convert) -> Convert:
    def convert(value: Any) -> dict[Any, Any]:
        if type(value) is not dict:
            raise Mismatch(f"is {kind_of(value)}, not a map")
        result = {}
        for key, item in value.items():
            if item is None:
                continue
            try:
                converted_key, converted = convert_key(key), convert_item(item)
            except Mismatch as mismatch:
                mismatch.path.append(f"[{key!r:.80}]")
                raise
            if converted_key is not None and converted is not None:
                result[converted_key] = converted
        return result

    return convert


def _many_converter(collection: Callable[[list[Any]], Any], convert_item: Convert) -> Convert:
    def convert(value: Any) -> Any:
        if type(value) is not list:
            raise Mismatch(f"is {kind_of(value)}, not an array")
        result = []
        for index, item in enumerate(value):
            try:
                converted = None if item is None else convert_item(item)
            except Mismatch as mismatch:
                mismatch.path.append(f"[{index}]")
                raise
            if converted is not None:
                result.append(converted)
        return result if collection is list else collection(result)

    return convert


def _enum_converter(cls: type[Enum]) -> Convert:
    ordinals = list(cls)
    names = {each.name.upper(): each for each in ordinals}

    def convert(value: Any) -> Enum | None:
        """Return the member, or None for one of a later release; fastjson ignores case."""
        if type(value) is str:
            return names.get(value.upper())
        if type(value) is int:
            return ordinals[value] if 0 <= value < len(ordinals) else None
        raise Mismatch(f"is {kind_of(value)}, not a name")

    return convert


def _key_converter(form: Any) -> Convert:
    if form is MessageQueue:
        return _queue_key
    return _converter(form)


_decode_queue = msgspec.json.Decoder(MessageQueue).decode


def _queue_key(key: str) -> Any:
    try:
        queue = _decode_queue(str(key))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        queue = _unusual_queue_key(key)
    if not -(2**31) <= queue.queue_id < 2**31:
        raise Mismatch("is a key whose queueId does not fit 32 bits")
    return queue


def _unusual_queue_key(key: str) -> Any:
    try:
        return _converter(MessageQueue)(loads(key))
    except BodyMalformed as error:
        raise Mismatch(f"is a key that is not a queue: {error.reason}") from None


def _anything(value: Any) -> Any:
    if nests_deeper(value, _EXTRA_DEPTH):
        raise Mismatch(f"nests deeper than {_EXTRA_DEPTH} levels")
    return value


_UNKNOWN = (EXTRA, _anything)
