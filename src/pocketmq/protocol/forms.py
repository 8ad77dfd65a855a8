"""Forms: how the body of a request or response is read and written.

A form is a pair of functions between bytes and a typed value. Bodies that are read together with
something else (records with their delivery, a registration with its header) stay bytes here.
"""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from msgspec import Struct

from pocketmq.protocol.json_values import decode_body, encode_body

T = TypeVar("T")


class Form(Struct, Generic[T], frozen=True):
    """A codec for one kind of body; `decode` raises `BodyMalformed`."""

    name: str
    """For the reference: a type's name, or a few words for what is not one JSON value."""
    encode: Callable[[T], bytes]
    decode: Callable[[bytes], T]
    json: Any = None
    """The type of the JSON value, if the body is one of a fixed shape."""


def json_of(kind: type[T], *, bare_integer_keys: bool = False) -> Form[T]:
    """Return the form of a body that is one JSON value: a class, or a `list[...]` of one.

    With `bare_integer_keys` integer keys are written without quotes, as Java's own peers do.
    """

    def encode(value: T) -> bytes:
        return encode_body(value, bare_integer_keys=bare_integer_keys)

    def decode(data: bytes) -> T:
        return decode_body(data, kind)

    shown: Any = kind
    plain = isinstance(shown, type) and not hasattr(shown, "__origin__")
    return Form(shown.__name__ if plain else str(shown), encode, decode, kind)


def _no_bytes(_: None) -> bytes:
    return b""


def _no_value(_: bytes) -> None:
    return None


def _same(data: bytes) -> bytes:
    return data


NOTHING: Form[None] = Form("", _no_bytes, _no_value)
"""No body: everything is in the header's fields."""
RAW: Form[bytes] = Form("raw", _same, _same)
"""An application's bytes, perhaps compressed."""
BATCH: Form[bytes] = Form("batch", _same, _same)
"""Messages of a batch, one after the other: `batch`."""
STORED_MESSAGES: Form[bytes] = Form("stored messages", _same, _same)
"""Records as the commit log has them, one after the other: `pulled`."""
REGISTRATION: Form[bytes] = Form("registration", _same, _same)
"""`bodies.registration`: JSON, or compressed if the header says so."""
