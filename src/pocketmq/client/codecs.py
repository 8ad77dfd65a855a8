"""Codecs: values of the application to bodies and back. JSON by msgspec ships; others are a class.

Knows no client. pydantic is not imported: its models are recognised by their methods.
"""

from typing import Any, Protocol

import msgspec

from pocketmq.errors import InvalidInput


class BodyCodec(Protocol):
    """Makes bodies of values, and values of bodies. Threads share it."""

    def encode(self, value: Any) -> bytes:
        """Return the body of a value; raises `InvalidInput` for one that has none."""

    def decode(self, body: bytes, kind: Any) -> Any:
        """Return the value of a body, of the type `kind`; raises `ValueError` if it is not one.

        Anything else that it raises counts as raised by the handler, and not as a matter of the
        body.
        """


class JsonCodec:
    """JSON: dataclasses, msgspec's structs, pydantic's models, typed dictionaries, builtin types.

    Bodies are checked against the type they are decoded to; fields it does not have are ignored.
    """

    def __init__(self) -> None:
        self._encoder = msgspec.json.Encoder(enc_hook=_simplified)
        self._decoders: dict[Any, msgspec.json.Decoder[Any]] = {}

    def encode(self, value: Any) -> bytes:
        """Return the JSON of a value; raises `InvalidInput` if it cannot be written as JSON."""
        try:
            return self._encoder.encode(value)
        except (NotImplementedError, TypeError, ValueError, RecursionError) as error:
            raise InvalidInput(
                f"a {type(value).__name__} cannot be encoded as JSON: {error}"
            ) from error

    def decode(self, body: bytes, kind: Any) -> Any:
        """Return the value of a JSON text; raises `ValueError` if it is not one of that type.

        Raises `NotImplementedError` for a type that it does not support.
        """
        if hasattr(kind, "model_validate_json"):
            return kind.model_validate_json(body)  # pydantic's ValidationError is a ValueError
        decoder = self._decoders.get(kind)
        if decoder is None:
            decoder = self._decoders[kind] = msgspec.json.Decoder(kind, dec_hook=_restored)
        try:
            return decoder.decode(body)
        except RecursionError as error:
            raise ValueError("the JSON is nested too deeply") from error

    def __repr__(self) -> str:
        return "JsonCodec()"


def check_codec(codec: object) -> None:
    """Raise `InvalidInput` for what is not a codec, such as the class of one; None is none."""
    methods = (getattr(codec, name, None) for name in ("encode", "decode"))
    if codec is not None and (isinstance(codec, type) or not all(map(callable, methods))):
        raise InvalidInput(
            f"a codec must have encode and decode, such as JsonCodec(); not {codec!r}"
        )


def encoded(codec: BodyCodec | None, value: object) -> bytes:
    """Return the body of a value, bytes as they are; raises `InvalidInput`."""
    if isinstance(value, bytes):
        return value
    if codec is None:
        raise InvalidInput(
            f"a {type(value).__name__} needs a codec to become a body: "
            "Producer(..., codec=JsonCodec())"
        )
    return codec.encode(value)


def _simplified(value: Any) -> Any:
    """Return a pydantic model as a dictionary that msgspec can write."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    raise _unsupported(type(value))


def _restored(kind: Any, value: Any) -> Any:
    """Return the pydantic model, inside another type, of a decoded dictionary."""
    if hasattr(kind, "model_validate"):
        return kind.model_validate(value)
    raise _unsupported(kind)


def _unsupported(kind: Any) -> NotImplementedError:
    """Return the error for a type that `JsonCodec` does not support."""
    name = kind.__name__ if isinstance(kind, type) else repr(kind)
    return NotImplementedError(f"JsonCodec does not support {name}")
