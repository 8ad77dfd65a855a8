r"""Message traces as text: what happened to a message, one record for each event.

A record is fields joined by `\x01` and ends with `\x02`; the first field names the kind. This is
the body of messages in the trace topic, in the form of RocketMQ 5.x, which also reads the older
ones. Java writes the word `null` for a tag or keys that are not there, and so do we: its reader
would stumble over an empty last field.
"""

from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import TypeAlias

import msgspec

from pocketmq.model import TransactionState
from pocketmq.protocol.header import read_int32, read_int64

FIELD_END = "\x01"
RECORD_END = "\x02"

_NONE = "null"
_HARMLESS = str.maketrans({FIELD_END: "\ufffd", RECORD_END: "\ufffd"})
_STATES = {
    TransactionState.COMMIT: "COMMIT_MESSAGE",
    TransactionState.ROLLBACK: "ROLLBACK_MESSAGE",
    TransactionState.NONE: "UNKNOW",  # Java's spelling
}
_STATES_BY_NAME = {name: state for state, name in _STATES.items()}


class TracedKind(IntEnum):
    """What kind of message was sent, by Java's number."""

    NORMAL = 0
    HALF = 1
    COMMIT = 2
    DELAYED = 3
    ORDERED = 4


class HandledAs(IntEnum):
    """How a handler ended, by Java's number."""

    SUCCESS = 0
    TIMED_OUT = 1
    RAISED = 2
    RETURNED_NOTHING = 3
    FAILED = 4


class TracedSend(msgspec.Struct, frozen=True, kw_only=True):
    """A producer sent a message (`Pub`). `cost_ms` is how long the broker took to answer."""

    time_ms: int
    region: str
    group: str
    topic: str
    message_id: str
    tag: str | None = None
    keys: str | None = None
    store_host: str = ""
    body_size: int = 0
    cost_ms: int = 0
    kind: TracedKind = TracedKind.NORMAL
    offset_message_id: str | None = None
    ok: bool = True


class TracedDelivery(msgspec.Struct, frozen=True, kw_only=True):
    """A message was about to be handed to a handler (`SubBefore`).

    `request_id` is the same for all messages of one call, and for what came of it.
    """

    time_ms: int
    region: str
    group: str
    request_id: str
    message_id: str
    retries: int = 0
    keys: str | None = None


class TracedHandling(msgspec.Struct, frozen=True, kw_only=True):
    """A handler ended (`SubAfter`); `cost_ms` is the message's share of the time it took."""

    request_id: str
    message_id: str
    cost_ms: int
    ok: bool
    keys: str | None = None
    handled_as: HandledAs = HandledAs.SUCCESS
    time_ms: int = 0
    group: str = ""


class TracedEnd(msgspec.Struct, frozen=True, kw_only=True):
    """A producer ended a transaction, by itself or after a check of the broker."""

    time_ms: int
    region: str
    group: str
    topic: str
    message_id: str
    tag: str | None = None
    keys: str | None = None
    store_host: str = ""
    kind: TracedKind = TracedKind.COMMIT
    transaction_id: str | None = None
    state: TransactionState = TransactionState.NONE
    from_check: bool = False


class TracedRecall(msgspec.Struct, frozen=True, kw_only=True):
    """A producer took a delayed message back (`Recall`)."""

    time_ms: int
    region: str
    group: str
    topic: str
    message_id: str
    ok: bool = True


Traced: TypeAlias = TracedSend | TracedDelivery | TracedHandling | TracedEnd | TracedRecall


def encode_traced(event: Traced) -> str:
    """Write one record. A separator inside a value is replaced, so that the record stays whole."""
    values = [_WRITTEN_AS[type(event)], *map(_text, _fields(event))]
    return FIELD_END.join(values) + RECORD_END


def traced_keys(event: Traced) -> list[str]:
    """Return what a record can be found by: the message's id and the keys of its own."""
    keys = None if isinstance(event, TracedRecall) else event.keys
    return f"{event.message_id} {keys or ''}".split()


def decode_traced(text: str) -> list[Traced]:
    """Read all records; those of an unknown kind or with invalid fields are skipped."""
    events: list[Traced] = []
    for record in text.split(RECORD_END):
        kind, *fields = record.split(FIELD_END)
        read = _READERS.get(kind)
        if read is None:
            continue
        try:
            events.append(read(fields))
        except (ValueError, IndexError, KeyError):
            continue
    return events


def _fields(event: Traced) -> Iterable[object]:
    """Return the values in the order of the wire, which is that of the classes' fields."""
    return msgspec.structs.astuple(event)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value.translate(_HARMLESS)
    if value is None:
        return _NONE
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, TransactionState):
        return _STATES.get(value, "UNKNOW")
    return str(value)


_WRITTEN_AS: dict[type, str] = {
    TracedSend: "Pub",
    TracedDelivery: "SubBefore",
    TracedHandling: "SubAfter",
    TracedEnd: "EndTransaction",
    TracedRecall: "Recall",
}


# Readers: one for each kind; short or invalid fields raise, and the record is skipped.


def _send(f: list[str]) -> TracedSend:
    # Up to 4.4 the offset id was missing; some releases add the client's address at the end.
    has_offset_id = len(f) > 12
    return TracedSend(
        time_ms=_long(f[0]),
        region=f[1],
        group=f[2],
        topic=f[3],
        message_id=f[4],
        tag=_optional(f[5]),
        keys=_optional(f[6]),
        store_host=f[7],
        body_size=_int(f[8]),
        cost_ms=_int(f[9]),
        kind=TracedKind(_int(f[10])),
        offset_message_id=_optional(f[11]) if has_offset_id else None,
        ok=_true(f[12] if has_offset_id else f[11]),
    )


def _delivery(f: list[str]) -> TracedDelivery:
    return TracedDelivery(
        time_ms=_long(f[0]),
        region=f[1],
        group=f[2],
        request_id=f[3],
        message_id=f[4],
        retries=_int(f[5]),
        keys=_optional(f[6]),
    )


def _handling(f: list[str]) -> TracedHandling:
    return TracedHandling(
        request_id=f[0],
        message_id=f[1],
        cost_ms=_int(f[2]),
        ok=_true(f[3]),
        keys=_optional(f[4]),
        handled_as=HandledAs(_int(f[5])) if len(f) > 5 else HandledAs.SUCCESS,
        time_ms=_long(f[6]) if len(f) > 7 else 0,
        group=f[7] if len(f) > 7 else "",
    )


def _end(f: list[str]) -> TracedEnd:
    return TracedEnd(
        time_ms=_long(f[0]),
        region=f[1],
        group=f[2],
        topic=f[3],
        message_id=f[4],
        tag=_optional(f[5]),
        keys=_optional(f[6]),
        store_host=f[7],
        kind=TracedKind(_int(f[8])),
        transaction_id=_optional(f[9]),
        state=_STATES_BY_NAME[f[10]],
        from_check=_true(f[11]),
    )


def _recall(f: list[str]) -> TracedRecall:
    return TracedRecall(
        time_ms=_long(f[0]),
        region=f[1],
        group=f[2],
        topic=f[3],
        message_id=f[4],
        ok=_true(f[5]),
    )


_READERS: dict[str, Callable[[list[str]], Traced]] = {
    "Pub": _send,
    "SubBefore": _delivery,
    "SubAfter": _handling,
    "EndTransaction": _end,
    "Recall": _recall,
}


def _optional(text: str) -> str | None:
    return None if text in ("", _NONE) else text


def _true(text: str) -> bool:
    return text.lower() == "true"


def _int(text: str) -> int:
    return _checked(read_int32(text))


def _long(text: str) -> int:
    return _checked(read_int64(text))


def _checked(number: int | None) -> int:
    if number is None:
        raise ValueError("not a number of Java's")
    return number
