"""Receives that differ in the id of their attempt alone: checked once, asked for with their own."""

from typing import Any

import pytest

from pocketmq import aio, native
from pocketmq.proxy.calls import plain_receives, receive_requests
from pocketmq.proxy.calls.plain_receives import split_attempt
from pocketmq.proxy.calls.receive_requests import Receive
from pocketmq.proxy.wire import definition as d
from pocketmq.proxy.wire import service as s
from pocketmq.proxy.wire.schema import SERVICE
from tests.proxy.peers import PATIENCE, Served, code, receive_request
from tests.proxy.test_native_port import calling

pytestmark = pytest.mark.skipif(native.core is None, reason="the native core is not built")

_FIRST = "0f9b1c52-6a3e-4d0b-9a55-5d1f3a7c2e01"
_SECOND = "7c0de3aa-91f4-4b37-8f0e-2b6f0c9d4e02"


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """The attempts of requests that were checked; those that are checked stay so."""
    made: list[str | None] = []

    def counted(*given: Any, **named: Any) -> Receive:
        found = receive_requests.checked(*given, **named)
        made.append(found.attempt)
        return found

    monkeypatch.setattr(plain_receives, "checked", counted)
    monkeypatch.setattr(plain_receives, "_FRESH_FOR", 60.0)
    return made


def _queue(topic: str) -> d.MessageQueue:
    return d.MessageQueue(topic=d.Resource(name=topic), broker=d.Broker(name="broker-0"))


async def _bodies(served: Served, attempt: str) -> list[bytes]:
    fields: dict[str, Any] = {"message_queue": _queue("fifo"), "attempt_id": attempt}
    responses = await served.peer.receive("fifo", "ordered", **fields)
    return [each.message.body for each in responses if each.HasField("message")]


async def test_each_attempt_reaches_the_broker_though_the_request_is_checked_once(
    checks: list[str | None],
) -> None:
    async with calling() as served:
        await served.group("ordered", consume_message_orderly=True)
        assert await _bodies(served, _FIRST) == []
        checks.clear()
        await served.peer.send("fifo", b"x", message_group="m")
        assert await _bodies(served, _FIRST) == [b"x"]
        assert await _bodies(served, _SECOND) == []  # the first attempt has the queue
        assert await _bodies(served, _FIRST) == [b"x"]
        assert checks == [_FIRST]


async def test_a_request_without_an_attempt_is_not_taken_for_one_with(
    checks: list[str | None],
) -> None:
    async with calling() as served:
        await served.peer.receive("normal", "g")
        checks.clear()
        for attempt in (_FIRST, None, _SECOND, None):
            fields: dict[str, Any] = {} if attempt is None else {"attempt_id": attempt}
            await served.peer.receive("normal", "g", message_queue=_queue("normal"), **fields)
        assert checks == [_FIRST, None]


@pytest.mark.parametrize(
    ("group", "credentials"),
    [(_FIRST, None), ("g", aio.Credentials(access_key="user", secret_key="secret"))],
    ids=["the id is also the name of the group", "a signature covers the id"],
)
async def test_an_id_that_cannot_be_replaced_is_checked_each_time(
    checks: list[str | None], group: str, credentials: aio.Credentials | None
) -> None:
    async with calling(credentials=credentials) as served:
        await served.peer.receive("normal", group)
        checks.clear()
        for attempt in (_FIRST, _SECOND):
            fields: dict[str, Any] = {"message_queue": _queue("normal"), "attempt_id": attempt}
            await served.peer.receive("normal", group, **fields)
        assert checks == [_FIRST, _SECOND]


async def test_a_text_that_looks_like_an_attempt_is_none(checks: list[str | None]) -> None:
    request = receive_request("normal", "g", wait=0.2, message_queue=_queue("normal"))
    request.ClearField("filter_expression")
    start = request.SerializeToString()
    ask = s.ReceiveMessageResponse.FromString
    async with calling() as served:
        await served.peer.receive("normal", "g")
        checks.clear()
        for looks_like in (_FIRST, _SECOND):
            expression = d.FilterExpression(type=d.FilterType.TAG, expression=f"B${looks_like}")
            raw = start + s.ReceiveMessageRequest(filter_expression=expression).SerializeToString()
            assert split_attempt(raw)[1] == looks_like.encode()
            method = served.peer.channel.unary_stream(
                f"/{SERVICE}/ReceiveMessage", response_deserializer=ask
            )
            stream = method(raw, metadata=served.peer.metadata, timeout=PATIENCE)
            responses = [code(each) async for each in stream]
            assert responses[0] == "MESSAGE_NOT_FOUND"
        assert checks == [None, None]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"", (b"", b"")),
        (b"ab", (b"ab", b"")),
        (b"abB$" + _FIRST.encode(), (b"ab", _FIRST.encode())),
        (b"abB#" + _FIRST.encode(), (b"abB#" + _FIRST.encode(), b"")),
        (b"abB$" + b'"' * 36, (b"abB$" + b'"' * 36, b"")),
        (b"abB$" + _FIRST.encode() + b"\n", (b"abB$" + _FIRST.encode() + b"\n", b"")),
    ],
)
def test_only_a_plain_id_at_the_end_is_split_off(raw: bytes, expected: tuple[bytes, bytes]) -> None:
    assert split_attempt(raw) == expected
