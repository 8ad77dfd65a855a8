"""The pure function and the core's, on the same input: equal results or equal errors."""

from array import array
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import strategies as st

from pocketmq import native
from pocketmq.balance.allocation import consistent_hash
from pocketmq.balance.consumer import offset_runs
from pocketmq.blocking import batch_places
from pocketmq.broker.transactions import usual_commits
from pocketmq.client.pop import usual
from pocketmq.client.producer import plain_batches, plain_frames, shared_batches
from pocketmq.protocol import (
    batch,
    batch_records,
    body_checksums,
    command_reader,
    pulled,
    received,
    split_properties,
)
from pocketmq.protocol.received import ReceivedMessage
from pocketmq.store import key_index_words

PURE = (
    batch,
    batch_places,
    batch_records,
    body_checksums,
    command_reader,
    consistent_hash,
    key_index_words,
    offset_runs,
    plain_batches,
    plain_frames,
    pulled,
    received,
    shared_batches,
    split_properties,
    usual,
    usual_commits,
)
"""The modules whose functions the core replaces: importing them fills `native.pure`."""

FIELDS = (
    "buffer", "position", "queue_offset", "store_size", "body_size", "text_at", "delivery",
)  # fmt: skip
"""What each received message has."""

core = pytest.importorskip("pocketmq_core", reason="the native core is not built")


def outcome(action: Callable[..., Any], *args: Any, **options: Any) -> tuple[Any, ...]:
    """Return what a call returned, or the type, the text and the fields of what it raised."""
    try:
        return "returned", plain(action(*args, **options))
    except Exception as error:  # noqa: BLE001 - any error is compared
        return type(error), str(error), plain(vars(error))


def plain(value: Any) -> Any:
    """Return a value that is equal only to one of the same type with the same fields."""
    if isinstance(value, ReceivedMessage):  # where it keeps its fields makes no difference
        return ReceivedMessage, *(plain(getattr(value, name)) for name in FIELDS)
    if isinstance(value, msgspec.Struct):
        return type(value), *(plain(getattr(value, name)) for name in value.__struct_fields__)
    if isinstance(value, (list, tuple)):
        return type(value), *map(plain, value)
    if isinstance(value, dict):
        return dict, [(plain(key), plain(each)) for key, each in value.items()]
    if isinstance(value, msgspec.Raw):
        return msgspec.Raw, bytes(value)
    if isinstance(value, Exception):
        return type(value), str(value), plain(vars(value))
    if isinstance(value, array):
        return array, value.typecode, value.tolist()
    return type(value), value


def same(name: str, *args: Any, **options: Any) -> Any:
    """Call both functions of a name and fail unless they do the same; return that outcome."""
    expected = outcome(native.pure[name], *args, **options)
    assert outcome(getattr(core, name), *args, **options) == expected
    return expected


class Freed(msgspec.Struct):
    """A window that keeps what its messages got, for what hands receipts over."""

    got: list[Any]


class Sink:
    """A send that waits for its receipt, as a future does."""

    def __init__(self, window: Freed, opaque: int, *, cancelled: bool = False) -> None:
        self._window, self._opaque, self._cancelled = window, opaque, cancelled

    def done(self) -> bool:
        return self._cancelled

    def set_result(self, receipt: object) -> None:
        if self._cancelled:
            raise RuntimeError("it is cancelled")
        self._window.got.append((self._opaque, receipt))


_ODD = st.sampled_from([0, 1, 2, 22, 91, 127, 128, 255])


@st.composite
def damaged(draw: st.DrawFn, sound: bytes) -> bytes:
    """Return bytes with some of them changed, and perhaps with an end cut off or repeated."""
    raw = bytearray(sound)
    for _ in range(draw(st.integers(0, 3)) if raw else 0):
        raw[draw(st.integers(0, len(raw) - 1))] = draw(_ODD | st.integers(0, 255))
    change = draw(st.sampled_from(["none", "none", "cut", "more", "out"]))
    at = draw(st.integers(0, len(raw)))
    if change == "cut":
        del raw[at:]
    elif change == "more":
        raw += raw[at:]
    elif change == "out":
        del raw[at : at + draw(st.integers(1, 8))]
    return bytes(raw)


def alone(name: str, *args: Any, **options: Any) -> Any:
    """Return what the core's function returns without the help of the pure one."""

    def help_asked(*_: Any, **__: Any) -> None:
        pytest.fail(f"the core left {name} to the pure function")

    function, native.pure[name] = native.pure[name], help_asked
    try:
        return getattr(core, name)(*args, **options)
    finally:
        native.pure[name] = function


def functions(module: Any) -> list[str]:
    """Return the names of a core's functions; types and constants begin with an upper-case letter.

    A wheel has the core as a module of the same name within a package.
    """
    return [name for name in dir(module) if name[0].islower() and callable(getattr(module, name))]
