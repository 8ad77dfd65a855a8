"""Receives on the native core: without a task, and with the results of the general way."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import grpc.aio
import msgspec
import pytest

from pocketmq import native
from pocketmq.proxy.calls import plain_receives, receive_requests
from pocketmq.proxy.calls.at_hand import broker_at_hand
from pocketmq.proxy.calls.plain_receives import PlainReceives
from pocketmq.proxy.calls.receive_requests import Receive
from pocketmq.proxy.methods import BegunStream
from pocketmq.proxy.wire import definition as d
from pocketmq.proxy.wire.schema import SERVICE
from tests.loops import until
from tests.proxy.peers import PATIENCE, Served, code, receive_request
from tests.proxy.test_native_port import calling, open_links
from tests.proxy.test_short_ways import short_way

pytestmark = pytest.mark.skipif(native.core is None, reason="the native core is not built")


class Watched:
    """The receives of the only connection: which were begun, and by which pops."""

    def __init__(self, own: PlainReceives) -> None:
        self.own = own
        self.begun: list[bool] = []
        self.whole: list[bool] = []
        """Whether the core made all responses to a pop."""
        self._stream_of = own.stream_of
        own.stream_of = self.stream_of  # type: ignore[method-assign]

    def begin(self, raw: bytes, call: BegunStream) -> bool:
        self.begun.append(self.own.begin(raw, call))
        return self.begun[-1]

    def stream_of(self, wanted: Receive, answer: Any) -> bytes | None:
        found = self._stream_of(wanted, answer)
        self.whole.append(found is not None)
        return found


def watched(served: Served) -> Watched:
    (link,) = open_links(served.proxy)
    calls = link._calls
    assert calls is not None
    path = f"/{SERVICE}/ReceiveMessage"
    method = calls._methods[path]
    own = method.begin.__self__  # type: ignore[union-attr]
    found = Watched(own)
    calls._methods = {**calls._methods, path: msgspec.structs.replace(method, begin=found.begin)}
    return found


@asynccontextmanager
async def known_group(**options: Any) -> AsyncIterator[Served]:
    """Serve a client that has received: the group's set-up and the topic's route are cached."""
    async with calling(**options) as served:
        await served.peer.receive("normal", "g")
        yield served


async def sent(served: Served, count: int, **system: Any) -> list[bytes]:
    bodies = [b"%d" % each for each in range(count)]
    for each in bodies:
        assert code(await served.peer.send("normal", each, **system)) == "OK"
    return bodies


async def test_messages_of_several_queues_come_at_once_and_can_be_acknowledged() -> None:
    async with known_group() as served:
        receives, bodies = watched(served), await sent(served, 12, tag="t", keys=["k"])
        got: list[d.Message] = []
        while len(got) < 12:
            responses = await served.peer.receive("normal", "g")
            assert code(responses[0]) == "OK"
            assert responses[-1].delivery_timestamp.seconds > 1_700_000_000
            got += [each.message for each in responses[1:-1]]
        assert sorted(each.body for each in got) == sorted(bodies)
        assert {(each.system_properties.tag, *each.system_properties.keys) for each in got} == {
            ("t", "k")
        }
        for each in got:
            handle = each.system_properties.receipt_handle
            assert code(await served.peer.ack("normal", "g", handle)) == "OK"
        assert code((await served.peer.receive("normal", "g"))[0]) == "MESSAGE_NOT_FOUND"
        assert all(receives.begun)
        assert receives.whole.count(False) == 1  # nothing to receive


async def test_what_is_unusual_comes_as_on_the_general_way() -> None:
    async with known_group() as served:
        receives = watched(served)
        large = bytes(80_000)
        assert code(await served.peer.send("normal", large)) == "OK"
        assert [each.body for each in await served.peer.received("normal", "g")] == [large]
        await served.peer.send("normal", b"wanted", tag="Aa")
        await served.peer.send("normal", b"unwanted", tag="BB")  # of the same hash
        wanted = {"filter_expression": d.FilterExpression(type=d.FilterType.TAG, expression="Aa")}
        got: list[bytes] = []
        while code((responses := await served.peer.receive("normal", "g", **wanted))[0]) == "OK":
            got += [each.message.body for each in responses[1:-1]]
        assert got == [b"wanted"]
        assert all(receives.begun)
        assert False in receives.whole


async def test_messages_that_come_for_a_client_that_is_gone_are_visible_soon() -> None:
    async with known_group() as served:
        receives = watched(served)
        call = served.peer.stream("ReceiveMessage", receive_request("normal", "g", wait=15))
        await served.polled("normal", "g")
        (link,) = open_links(served.proxy)
        calls = link._calls
        assert calls is not None
        (open_call,) = calls._open.values()
        assert open_call.task is None
        call.cancel()
        await until(lambda: not calls._open, "the end of the call", PATIENCE)
        await served.peer.send("normal", b"x")
        await until(lambda: receives.whole, "the pop", PATIENCE)
        assert [each.body for each in await served.peer.received("normal", "g")] == [b"x"]
        assert all(receives.begun)
    del call, open_call
    gc.collect()  # a call that was cancelled refers to its channel


async def test_messages_for_a_client_that_leaves_just_then_are_visible_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with known_group() as served:
        receives = watched(served)
        receives._stream_of = lambda wanted, answer: None
        (link,) = open_links(served.proxy)
        calls = link._calls
        assert calls is not None
        go_on = calls.continue_stream

        def reset_at_once(call: Any, responses: Any) -> None:
            go_on(call, responses)
            calls._end(call)  # as for a reset in the same read

        monkeypatch.setattr(calls, "continue_stream", reset_at_once)
        call = served.peer.stream("ReceiveMessage", receive_request("normal", "g", wait=15))
        await served.polled("normal", "g")
        await served.peer.send("normal", b"x")
        await until(lambda: receives.whole, "the pop", PATIENCE)
        call.cancel()
        monkeypatch.undo()
        assert [each.body for each in await served.peer.received("normal", "g")] == [b"x"]
    del call
    gc.collect()  # what was never awaited would be told now


async def test_a_request_that_is_repeated_is_checked_again_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checks = []

    def counted(*given: Any, **named: Any) -> Receive:
        checks.append(given)
        return receive_requests.checked(*given, **named)

    monkeypatch.setattr(plain_receives, "checked", counted)
    broker = d.Broker(name="broker-0")
    queue = d.MessageQueue(topic=d.Resource(name="normal"), broker=broker)
    for seconds, expected in ((60.0, 1), (0.0, 3)):
        monkeypatch.setattr(plain_receives, "_FRESH_FOR", seconds)
        async with known_group() as served:
            checks.clear()
            for _ in range(3):
                await served.peer.receive("normal", "g", message_queue=queue)
            assert len(checks) == expected
            request = receive_request("normal", "g", wait=0.2, message_queue=queue)
            while len(checks) == expected:  # with less time than it has waited before
                late = served.peer.stream("ReceiveMessage", request, timeout=0.15)
                with suppress(grpc.aio.AioRpcError):  # it may even be over before it is read
                    assert [each async for each in late]
        del late


async def test_a_broker_that_is_lost_while_it_is_polled_is_told() -> None:
    async with known_group(faults=True) as served:
        plain = short_way(served)
        broker = broker_at_hand(plain._session, "broker-0")
        assert broker is not None
        call = asyncio.create_task(served.peer.receive("normal", "g", wait=15))
        await served.polled("normal", "g")
        broker.connection.abort()
        assert code((await call)[0]) == "INTERNAL_SERVER_ERROR"
