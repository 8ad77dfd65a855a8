"""The gRPC connection of the core: what clients send becomes events, whatever the bytes are.

It has no pure function beside it; grpcio serves where there is no core. See `tests/proxy`.
"""

import os
import struct
import time
from random import Random
from typing import Any

import pytest

from tests.native.both import core
from tests.native.fuzzed import damaged

SECONDS = float(os.environ.get("POCKETMQ_FUZZ_SECONDS", "0.5"))
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, END_HEADERS = 1, 4
CALLED, RECEIVED, WRITABLE, RESET = range(4)
LARGEST = 100_000
ENHANCE_YOUR_CALM = 11


class Connection:
    """A connection of the core whose steps return all that they can, also if most of it is empty."""

    def __init__(self, names: list[str], streams: int, largest: int) -> None:
        self.own = core.GrpcConnection(names, streams, 16384, largest)

    def feed(self, data: bytes) -> tuple[bytes, list[Any], bool, list[Any]]:
        return whole(self.own.feed(data))

    def flush(self) -> tuple[bytes, list[Any], bool, list[Any]]:
        return whole(self.own.flush())

    def __getattr__(self, name: str) -> Any:
        return getattr(self.own, name)


def whole(came: Any) -> tuple[bytes, list[Any], bool, list[Any]]:
    """Return what a step brings: bytes alone, plain calls alone, or more than that."""
    if type(came) is bytes:
        return came, [], False, []
    if type(came) is list:
        return b"", [], False, came
    output, events, more, plain = came
    return output, events, more, plain


def connection(streams: int = 100) -> Connection:
    return Connection(["x-id", "x-none"], streams, LARGEST)


def frame(kind: int, flags: int = 0, stream: int = 0, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def headers(stream: int, **more: str) -> bytes:
    fields = {":method": "POST", ":scheme": "http", ":path": "/s/M", ":authority": "a"}
    fields |= {"content-type": "application/grpc", "x-id": "me"} | more
    made = b""
    for name, value in fields.items():
        made += b"\0" + b"".join(bytes([len(each)]) + each.encode() for each in (name, value))
    return frame(HEADERS, END_HEADERS, stream, made)


def message(body: bytes, flag: int = 0) -> bytes:
    return struct.pack(">BI", flag, len(body)) + body


def call(stream: int, body: bytes, **more: str) -> bytes:
    return headers(stream, **more) + frame(DATA, END_STREAM, stream, message(body))


def frames(output: bytes) -> list[tuple[int, int, int, bytes]]:
    found = []
    while output:
        size = int.from_bytes(output[:3], "big")
        kind, flags, stream = struct.unpack(">BBI", output[3:9])
        found.append((kind, flags, stream, output[9 : 9 + size]))
        output = output[9 + size :]
    return found


HELLO = PREFACE + frame(SETTINGS)


def test_a_call_comes_with_its_headers_and_its_message() -> None:
    own = connection()
    _, events, _, _ = own.feed(HELLO + call(1, b"abc", **{"grpc-timeout": "1500m"}))
    assert events == [(CALLED, 1, "/s/M", ("me", None), 1.5, b"abc", True)]
    assert own.greeted
    own.answer(1, b"response")
    output, events, more, _ = own.flush()
    kinds = [(kind, flags & END_STREAM, stream) for kind, flags, stream, _ in frames(output)]
    assert kinds == [(HEADERS, 0, 1), (DATA, 0, 1), (HEADERS, END_STREAM, 1)]
    assert frames(output)[1][3] == message(b"response")
    assert (events, more) == ([], False)


def test_bytes_may_come_one_by_one() -> None:
    sent = (
        HELLO + call(1, b"x" * 300) + call(3, b"") + headers(5) + frame(RST_STREAM, 0, 5, bytes(4))
    )
    whole, torn = connection(), connection()
    _, expected, _, _ = whole.feed(sent)
    found: list[Any] = []
    for at in range(len(sent)):
        found += torn.feed(sent[at : at + 1])[1]
    assert joined(found) == joined(expected)


def joined(events: list[Any]) -> dict[int, tuple[bytes, bool, bool]]:
    """What came for each call, however it was cut: its messages, its end, its reset."""
    calls: dict[int, tuple[bytes, bool, bool]] = {}
    for event in events:
        kind, stream = event[:2]
        body, ended, reset = calls.get(stream, (b"", False, False))
        if kind in (CALLED, RECEIVED):
            body, ended = body + (event[-2] or b""), ended or event[-1]
        calls[stream] = body, ended, reset or kind == RESET
    calls.pop(5, None)  # a call that is reset in the read that brought it may never be seen
    return calls


def test_the_next_message_comes_when_it_is_wanted() -> None:
    own = connection()
    both = frame(DATA, 0, 1, message(b"one") + message(b"two"))
    _, events, _, _ = own.feed(HELLO + headers(1) + both + frame(DATA, END_STREAM, 1))
    assert [event[-2:] for event in events] == [(b"one", False)]
    own.want(1)
    assert own.flush()[1] == [(RECEIVED, 1, b"two", True)]


def test_a_window_that_is_used_up_lets_a_response_wait() -> None:
    own = connection()
    own.feed(HELLO + call(1, b"x"))
    assert not own.write(1, bytes(200_000))
    output, events, _, _ = own.flush()
    assert sum(len(each[3]) for each in frames(output) if each[0] == DATA) == 65_535
    assert events == []
    grown = struct.pack(">I", 1_000_000)
    _, events, _, _ = own.feed(
        frame(WINDOW_UPDATE, 0, 0, grown) + frame(WINDOW_UPDATE, 0, 1, grown)
    )
    assert events == [(WRITABLE, 1)]


@pytest.mark.parametrize(
    "sent",
    [
        message(b"x", flag=1),  # compressed
        struct.pack(">BI", 0, LARGEST + 1),
        b"\0\0\0\0\x05abc",  # cut short
    ],
)
def test_a_message_that_cannot_be_read_ends_its_call(sent: bytes) -> None:
    own = connection()
    output, events, _, _ = own.feed(HELLO + headers(1) + frame(DATA, END_STREAM, 1, sent))
    assert events == []
    ((_, flags, _, _),) = [each for each in frames(output) if each[0] == HEADERS]
    assert flags & END_STREAM
    assert not own.closed
    assert own.feed(call(3, b"y"))[1][0][-2:] == (b"y", True)


def test_unfinished_messages_of_all_calls_are_limited() -> None:
    own = connection()
    own.feed(HELLO)
    open_calls = 0
    for number in range(20):
        stream = 2 * number + 1
        begun = frame(DATA, 0, stream, struct.pack(">BI", 0, LARGEST) + bytes(16_000))
        events = own.feed(headers(stream) + begun)[1]
        open_calls += len(events)
    assert open_calls == LARGEST // 16_005


def test_calls_that_are_reset_at_once_end_the_connection() -> None:
    own = connection()
    reset = [headers(2 * n + 1) + frame(RST_STREAM, 0, 2 * n + 1, bytes(4)) for n in range(500)]
    output, events, _, _ = own.feed(HELLO + b"".join(reset))
    assert own.closed
    assert len(events) < 100
    (goodbye,) = [each for each in frames(output) if each[0] == GOAWAY]
    assert int.from_bytes(goodbye[3][4:8], "big") == ENHANCE_YOUR_CALM


def test_output_that_no_client_takes_is_limited() -> None:
    """Each ping has a response; a client that reads none is not read."""
    own = connection()
    output, _, more, _ = own.feed(HELLO + frame(PING, 0, 0, bytes(8)) * 100_000)
    assert more
    assert len(output) < 300_000


def test_any_bytes_end_a_connection_at_worst() -> None:
    start = int(time.time()) if SECONDS > 1 else 0
    until, seed = time.process_time() + SECONDS, start << 32
    while time.process_time() < until:
        random = Random(seed)
        pieces = [call(2 * n + 1, random.randbytes(random.randrange(300))) for n in range(5)]
        pieces += [headers(11), frame(DATA, 0, 11, message(b"a") + message(b"b"))]
        pieces += [
            frame(random.randrange(10), random.randrange(256), random.randrange(20), b"\0" * 8)
        ]
        sent = HELLO + damaged(random, b"".join(pieces))
        own = connection()
        while sent:
            size = random.randrange(1, 400)
            _, events, _, _ = own.feed(sent[:size])
            sent = sent[size:]
            for event in events:
                answered(own, event, random)
        own.close()
        own.flush()
        seed += 1


def answered(own: Any, event: tuple[Any, ...], random: Random) -> None:
    stream = event[1]
    match random.randrange(5):
        case 0:
            own.answer(stream, b"ok")
        case 1:
            own.write(stream, bytes(random.choice([0, 10, 100_000])))
        case 2:
            own.want(stream)
        case 3:
            own.end(stream, 3, "no\n%é")
        case _:
            own.end(stream + 2, 0, "")
