"""Plain sends and acks on the native core: without a task, and with the results of the general way."""

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import msgspec
import pytest

from pocketmq import native
from pocketmq.client.producer.requests import Outgoing
from pocketmq.errors import (
    ConnectFailed,
    ConnectionLost,
    MQError,
    RequestTimedOut,
    ResponseCode,
    server_error,
)
from pocketmq.model import TopicConfig
from pocketmq.protocol import Command, RequestCode
from pocketmq.protocol.command_reader import cut_commands
from pocketmq.proxy.calls import sending, shortcuts
from pocketmq.proxy.calls.at_hand import BrokerAnswer, broker_at_hand
from pocketmq.proxy.calls.plain_sends import PlainSendCalls
from pocketmq.proxy.methods import PendingCall, ShortWay
from pocketmq.proxy.translation.caller import Caller
from pocketmq.proxy.translation.limits import ProxyLimits
from pocketmq.proxy.translation.outgoing import stored_forms
from pocketmq.proxy.wire import definition as d
from pocketmq.proxy.wire import service as s
from pocketmq.proxy.wire.schema import SERVICE
from tests.loops import until
from tests.proxy.peers import PATIENCE, Served, code, message
from tests.proxy.test_native_port import calling, open_links

pytestmark = pytest.mark.skipif(native.core is None, reason="the native core is not built")


async def test_both_ways_of_a_send_ask_the_same_of_a_broker() -> None:
    async with calling() as served:
        await served.peer.send("normal", b"x")
        plain = short_way(served)
        made = message("normal", b"y", tag="t", keys=["a", "b"], properties={"p": "ä"})
        (form,) = stored_forms([made], "1.2.3.4:5", ProxyLimits(), 1_000)
        known = await plain._state.cluster.route("normal")
        queue = known.publish_queues[0]
        outgoing = Outgoing(form.topic, form.body, form.properties, form.message_id)
        frame = plain._writer("normal").frame(outgoing, queue, 7, form.born_ms)
        ((found,), _, _) = cut_commands(frame, 0, len(frame))
        long = Command.request(
            RequestCode.SEND_MESSAGE_V2, 7, sending._header(form, queue), form.body
        )
        assert found == long


def short_way(served: Served) -> PlainSendCalls:
    service = served.proxy._service
    assert service is not None
    own = service.methods[f"/{SERVICE}/SendMessage"].short
    assert isinstance(own, PlainSendCalls)
    return own


class Watched:
    """A short way, and what it said of each call that reached it."""

    def __init__(self, own: ShortWay) -> None:
        self.own = own
        self.begun: list[bool] = []
        self.resumed: list[Any] = []

    def begin(self, raw: bytes, call: PendingCall) -> bool:
        self.begun.append(self.own.begin(raw, call))
        return self.begun[-1]

    def resume(self, raw: bytes, call: PendingCall, place: Any, outcome: Any) -> None:
        self.resumed.append(outcome)
        self.own.resume(raw, call, place, outcome)


def watched(served: Served, name: str) -> Watched:
    """Watch the calls of a method that come by the only connection."""
    (link,) = open_links(served.proxy)
    calls = link._calls
    assert calls is not None
    path = f"/{SERVICE}/{name}"
    method = calls._methods[path]
    assert method.short is not None
    found = Watched(method.short)
    calls._methods = {**calls._methods, path: msgspec.structs.replace(method, short=found)}
    return found


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the core's places be good for longer than a slow machine takes."""
    monkeypatch.setattr(shortcuts, "_FRESH_FOR", 60.0)


@asynccontextmanager
async def known_topic(**options: Any) -> AsyncIterator[Served]:
    """Serve a client that has sent: the topic's type is cached, and the core has two places."""
    async with calling(**options) as served:
        for _ in range(2):
            assert code(await served.peer.send("normal", b"x")) == "OK"
        yield served


@pytest.mark.usefixtures("patient")
async def test_a_plain_send_takes_a_short_way_and_others_do_not() -> None:
    """The core has places for two messages, then for four more, then for eight."""
    async with known_topic() as served:
        sends = watched(served, "SendMessage")
        for expected in (0, 0, 1, 1, 1, 1, 1, 2):
            assert code(await served.peer.send("normal", b"x")) == "OK"
            assert sends.begun == [True] * expected
        sends.begun.clear()
        assert code(await served.peer.send("unknown", b"x")) == "TOPIC_NOT_FOUND"
        assert code(await served.peer.send("normal", b"")) == "MESSAGE_BODY_EMPTY"
        wrong = await served.peer.send("normal", b"x", message_group="g")
        assert code(wrong) == "MESSAGE_PROPERTY_CONFLICT_WITH_TYPE"
        two = s.SendMessageRequest(messages=[message("normal", b"1"), message("normal", b"2")])
        assert code(await served.peer.call("SendMessage", two)) == "OK"
        assert sends.begun == [False] * 4
        assert code(await served.peer.send("normal", b"x")) == "OK"
        assert not sends.begun[4:]


@pytest.mark.usefixtures("patient")
async def test_what_the_core_sent_and_a_broker_refuses_is_told_as_always() -> None:
    async with known_topic() as served:
        sends = watched(served, "SendMessage")
        kind = {"+message.type": "NORMAL"}
        config = TopicConfig(
            topic_name="normal", read_queue_nums=1, write_queue_nums=1, attributes=kind
        )
        (await served.admin.topics.create(config, cluster="DefaultCluster")).all()
        found = [code(await served.peer.send("normal", b"x")) for _ in range(2)]
        assert sorted(found) == ["INTERNAL_SERVER_ERROR", "OK"]
        assert not sends.begun
        assert [each.code for each in sends.resumed] == [ResponseCode.INVALID_PARAMETER]


@pytest.mark.usefixtures("patient")
async def test_a_send_of_the_core_on_a_connection_that_breaks_is_not_repeated() -> None:
    async with known_topic(faults=True) as served:
        sends, plain = watched(served, "SendMessage"), short_way(served)
        (queue, *_) = (await plain._state.cluster.route("normal")).publish_queues
        broker = broker_at_hand(plain._session, queue.broker_name)
        assert broker is not None
        await served.cluster.partition("broker-0")
        sent = asyncio.create_task(served.peer.send("normal", b"x"))
        await until(lambda: broker.connection.requests.open, "the request", PATIENCE)
        broker.connection.abort()
        assert code(await sent) == "INTERNAL_SERVER_ERROR"
        assert [type(each) for each in sends.resumed] == [ConnectionLost]
        await served.cluster.heal("broker-0")
        for _ in range(3):
            assert code(await served.peer.send("normal", b"x")) == "OK"


@pytest.mark.usefixtures("patient")
async def test_a_send_of_the_core_whose_client_is_gone_is_not_repeated() -> None:
    async with known_topic(faults=True) as served:
        sends, plain = watched(served, "SendMessage"), short_way(served)
        (queue, *_) = (await plain._state.cluster.route("normal")).publish_queues
        broker = broker_at_hand(plain._session, queue.broker_name)
        assert broker is not None
        await served.cluster.partition("broker-0")
        sent = asyncio.create_task(served.peer.send("normal", b"x"))
        requests = broker.connection.requests
        await until(lambda: requests.open, "the request", PATIENCE)
        (link,) = open_links(served.proxy)
        link.abort()
        await link.gone
        await asyncio.wait([sent])
        assert isinstance(sent.exception(), grpc.aio.AioRpcError)
        assert not requests.open
        assert not sends.resumed
        await served.cluster.heal("broker-0")


@pytest.mark.usefixtures("patient")
async def test_a_send_whose_client_leaves_as_it_fails_is_not_begun_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with known_topic(faults=True) as served:
        plain = short_way(served)
        (queue, *_) = (await plain._state.cluster.route("normal")).publish_queues
        broker = broker_at_hand(plain._session, queue.broker_name)
        assert broker is not None
        (link,) = open_links(served.proxy)
        calls = link._calls
        assert calls is not None
        go_on, failed = calls.continue_with, []

        def reset_at_once(call: Any, begin: Any) -> None:
            go_on(call, begin)
            calls._end(call)  # as for a reset in the same read
            failed.append(call)

        monkeypatch.setattr(calls, "continue_with", reset_at_once)
        await served.cluster.partition("broker-0")
        sent = asyncio.create_task(served.peer.send("normal", b"x"))
        await until(lambda: broker.connection.requests.open, "the request", PATIENCE)
        broker.connection.abort()
        await until(lambda: failed, "the failure", PATIENCE)
        sent.cancel()
        await asyncio.wait([sent])
        await served.cluster.heal("broker-0")
    del sent
    gc.collect()  # what was never awaited would be told now


@pytest.mark.parametrize("fresh_for", [60.0, 0.0])
async def test_a_client_that_sends_and_resets_leaves_nothing_open_at_a_broker(
    monkeypatch: pytest.MonkeyPatch, fresh_for: float
) -> None:
    """Both in the core, and in Python where the core has no places."""
    monkeypatch.setattr(shortcuts, "_FRESH_FOR", fresh_for)
    async with known_topic(faults=True) as served:
        sends, plain = watched(served, "SendMessage"), short_way(served)
        (queue, *_) = (await plain._state.cluster.route("normal")).publish_queues
        broker = broker_at_hand(plain._session, queue.broker_name)
        assert broker is not None
        await served.cluster.partition("broker-0")
        requests = broker.connection.requests
        sent = asyncio.create_task(served.peer.send("normal", b"x"))
        await until(lambda: requests.open, "the request", PATIENCE)
        sent.cancel()
        await until(lambda: not requests.open, "the end of the request", 2.0)
        assert sends.begun == [True] * (fresh_for == 0.0)
        await asyncio.wait([sent])
        await served.cluster.heal("broker-0")
    del sent
    gc.collect()  # a call that was cancelled refers to its channel


@pytest.mark.usefixtures("patient")
async def test_a_proxy_that_stops_ends_the_calls_of_the_core_as_all_others() -> None:
    async with known_topic(faults=True) as served:
        sends, plain = watched(served, "SendMessage"), short_way(served)
        (queue, *_) = (await plain._state.cluster.route("normal")).publish_queues
        broker = broker_at_hand(plain._session, queue.broker_name)
        assert broker is not None
        await served.cluster.partition("broker-0")
        sent = asyncio.create_task(served.peer.send("normal", b"x"))
        await until(lambda: broker.connection.requests.open, "the request", PATIENCE)
        await served.proxy.stop()
        await asyncio.wait([sent])
        error = sent.exception()
        assert isinstance(error, grpc.aio.AioRpcError)
        assert error.code() is grpc.StatusCode.UNAVAILABLE
        assert error.details() == "the proxy is shutting down"
        assert not sends.begun


async def test_queues_get_their_turns_however_slow_a_producer_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was chosen in advance for messages that did not come is chosen again."""
    monkeypatch.setattr(shortcuts, "_FRESH_FOR", 0.0)
    async with calling() as served:
        offsets = [(await served.peer.send("normal", b"x")).entries[0].offset for _ in range(12)]
        assert sorted(offsets) == sorted([*range(6), *range(6)])


@pytest.mark.usefixtures("patient")
async def test_queues_get_their_turns_however_fast_a_producer_is() -> None:
    """Those of the core, which has places for more messages than there are queues, and others."""
    async with known_topic() as served:
        sends = watched(served, "SendMessage")
        offsets = [(await served.peer.send("normal", b"x")).entries[0].offset for _ in range(38)]
        assert sorted([0, 0, *offsets]) == sorted([*range(20), *range(20)])
        assert len(sends.begun) == 4  # the others are the core's


@pytest.mark.usefixtures("patient")
async def test_a_broker_whose_connection_was_lost_gets_its_turns_again() -> None:
    async with known_topic(brokers=2) as served:
        plain = short_way(served)
        for _ in range(4):
            assert code(await served.peer.send("normal", b"x")) == "OK"
        broker = broker_at_hand(plain._session, "broker-1")
        assert broker is not None
        broker.connection.abort()
        for _ in range(8):
            assert code(await served.peer.send("normal", b"x")) == "OK"
        assert broker_at_hand(plain._session, "broker-1") is not None


async def test_acks_take_the_short_way_unless_the_receipt_is_refused() -> None:
    async with calling() as served:
        for _ in range(2):
            assert code(await served.peer.send("normal", b"x")) == "OK"
        handles: list[str] = []
        while len(handles) < 2:
            got = await served.peer.received("normal", "g")
            handles += [each.system_properties.receipt_handle for each in got]
        service = served.proxy._service
        assert service is not None
        short = service.methods[f"/{SERVICE}/AckMessage"].short
        assert short is not None
        begin, begun = short.begin, Begun()
        assert begin(ack_of(handles[0]), begun)
        await until(lambda: begun.replies, "a reply", PATIENCE)
        assert code(s.AckMessageResponse.FromString(begun.replies[0])) == "OK"
        assert not begin(ack_of("0 1 2"), begun)
        assert not begin(ack_of(*handles), begun)
        assert code(await served.peer.ack("normal", "g", handles[1])) == "OK"
        again = await served.peer.receive("normal", "g")
        assert not [each for each in again if each.HasField("message")]


def ack_of(*handles: str) -> bytes:
    entries = [s.AckMessageEntry(message_id="m", receipt_handle=each) for each in handles]
    topic, group = d.Resource(name="normal"), d.Resource(name="g")
    request = s.AckMessageRequest(topic=topic, group=group, entries=entries)
    return bytes(request.SerializeToString())


async def test_a_broker_that_is_silent_costs_its_connection() -> None:
    async with calling() as served:
        assert code(await served.peer.send("normal", b"x")) == "OK"
        plain = short_way(served)
        (queue, *_) = (await plain._state.cluster.route("normal")).publish_queues
        broker = broker_at_hand(plain._session, queue.broker_name)
        assert broker is not None
        failures = []

        class Answer(BrokerAnswer):
            accept = frozenset({0})

            def failed(self, error: MQError) -> None:
                failures.append(error)

        answer = Answer(Begun(), broker, RequestCode.SEND_MESSAGE_V2)
        loop, last = asyncio.get_running_loop(), broker.connection.last_read
        await until(lambda: loop.time() > last + 1.1, "silence for longer than a request waits")
        answer.set_exception(RequestTimedOut(broker.address, "SEND_MESSAGE_V2", 1.0))
        assert [type(each) for each in failures] == [RequestTimedOut]
        assert broker.connection.closed
        assert code(await served.peer.send("normal", b"x")) == "OK"


async def test_a_try_that_certainly_failed_is_repeated_and_one_that_may_not_have_is_not() -> None:
    async with calling(brokers=2) as served:
        assert code(await served.peer.send("normal", b"x")) == "OK"
        plain = short_way(served)
        (form,) = stored_forms([message("normal", b"y")], "1.2.3.4:5", ProxyLimits(), 1_000)
        queue = (await plain._state.cluster.route("normal")).publish_queues[0]
        for error, expected in (
            (ConnectFailed("127.0.0.1:1", "refused"), "OK"),
            (ConnectionLost("127.0.0.1:1", "reset"), "INTERNAL_SERVER_ERROR"),
            (server_error(ResponseCode.SYSTEM_BUSY, "busy", request="r", address="a"), "OK"),
        ):
            begun = Begun()
            plain.failed(begun, form, queue, error)
            response = s.SendMessageResponse.FromString(await begun.begin())
            assert code(response) == expected, error


class Begun:
    """A call that was begun."""

    begin: Callable[[], Awaitable[bytes]]
    release: Callable[[], None] | None = None

    def __init__(self) -> None:
        self.replies: list[bytes] = []

    def continue_with(self, begin: Callable[[], Awaitable[bytes]]) -> None:
        self.begin = begin

    def caller(self) -> Caller:
        return Caller("c@1", "1.2.3.4:5")

    def time_left(self) -> float | None:
        return None

    def is_over(self) -> bool:
        return False

    def reply(self, response: bytes) -> None:
        self.replies.append(response)
