"""The calls of the service on a real channel, before a real broker."""

import asyncio
import gzip
import time
from typing import Any

import pytest

import pocketmq as mq
from pocketmq import aio, errors
from pocketmq.proxy.translation.limits import ProxyLimits
from pocketmq.proxy.wire import definition as d
from pocketmq.proxy.wire import service as s
from tests.proxy.peers import PATIENCE, code, message, receive_request, serving


async def test_a_route_has_the_clients_own_endpoints_and_the_topics_type() -> None:
    async with serving(brokers=2) as served:
        peer = served.peer
        request = s.QueryRouteRequest(topic=d.Resource(name="fifo"), endpoints=peer.endpoints)
        route = await peer.call("QueryRoute", request)
        assert code(route) == "OK"
        queues = {(each.broker.name, each.id) for each in route.message_queues}
        assert queues == {(f"broker-{b}", q) for b in (0, 1) for q in (0, 1)}
        assert {each.broker.endpoints.addresses[0].port for each in route.message_queues} == {
            peer.endpoints.addresses[0].port
        }
        assert {tuple(each.accept_message_types) for each in route.message_queues} == {
            (d.MessageType.FIFO,)
        }


async def test_unknown_topics_bad_names_and_nameless_clients_get_their_codes() -> None:
    async with serving() as served:
        peer = served.peer

        async def asked(topic: str, endpoints: d.Endpoints = peer.endpoints) -> str:
            request = s.QueryRouteRequest(topic=d.Resource(name=topic), endpoints=endpoints)
            return code(await peer.call("QueryRoute", request))

        assert await asked("nowhere") == "TOPIC_NOT_FOUND"
        assert await asked("rmq_sys_wheel_timer") == "ILLEGAL_TOPIC"
        assert await asked("normal", d.Endpoints()) == "ILLEGAL_ACCESS_POINT"
        peer.metadata = []
        assert await asked("normal") == "CLIENT_ID_REQUIRED"


async def test_a_message_arrives_with_all_that_its_producer_gave_it() -> None:
    async with serving() as served:
        peer = served.peer
        await peer.receive("normal", "g")  # a new group starts at the end
        sent = await peer.send(
            "normal", b"42 EUR", tag="paid", keys=["A17"], properties={"region": "eu"}
        )
        assert (code(sent), code(sent.entries[0])) == ("OK", "OK")
        (got,) = await peer.received("normal", "g")
        system = got.system_properties
        assert (got.body, dict(got.user_properties)) == (b"42 EUR", {"region": "eu"})
        assert (system.tag, list(system.keys), system.delivery_attempt) == ("paid", ["A17"], 1)
        assert system.message_id == sent.entries[0].message_id
        assert system.message_type == d.MessageType.NORMAL
        assert system.queue_offset == sent.entries[0].offset
        assert system.invisible_duration.seconds == 30
        assert code(await peer.ack("normal", "g", system.receipt_handle)) == "OK"


async def test_remoting_and_grpc_clients_read_each_others_messages() -> None:
    async with serving() as served:
        peer = served.peer
        await peer.receive("normal", "g")
        big = b"compressible " * 1000
        async with aio.Producer(served.cluster.address, group="shop") as producer:
            await producer.send(mq.Message("normal", big, tag="t"))
        (got,) = await peer.received("normal", "g")
        assert (got.body, got.system_properties.body_encoding) == (big, d.Encoding.IDENTITY)
        await peer.send("normal", gzip.compress(big), body_encoding=d.Encoding.GZIP, tag="t")
        (own,) = await peer.received("normal", "g")
        assert own.body == big
        key = own.system_properties.message_id
        found = (await served.admin.messages.by_unique_key("normal", key)).messages
        assert [each.body for each in found] == [big]


async def test_topics_accept_messages_of_their_type_alone() -> None:
    async with serving() as served:
        fifo = await served.peer.send("fifo", b"x")
        assert code(fifo) == "MESSAGE_PROPERTY_CONFLICT_WITH_TYPE"
        assert fifo.status.message == (
            "TopicMessageType validate failed, the expected type is FIFO, but actual type is NORMAL"
        )
        assert code(await served.peer.send("fifo", b"x", message_group="g")) == "OK"


async def test_an_unanswered_poll_ends_with_no_message_and_a_time() -> None:
    async with serving() as served:
        before = time.monotonic()
        status, done = await served.peer.receive("normal", "g", wait=0.5)
        assert 0.4 < time.monotonic() - before < PATIENCE
        assert (code(status), status.status.message) == ("MESSAGE_NOT_FOUND", "no new message")
        assert done.delivery_timestamp.seconds > 0


async def test_a_poll_wakes_when_a_message_comes() -> None:
    async with serving() as served:
        peer = served.peer
        waiting = asyncio.create_task(peer.receive("normal", "g", wait=15))
        await served.polled("normal", "g")
        await peer.send("normal", b"x")
        async with asyncio.timeout(PATIENCE):
            responses = await waiting
        assert [each.WhichOneof("content") for each in responses] == [
            "status",
            "message",
            "delivery_timestamp",
        ]


async def test_apaches_shortest_poll_needs_a_longer_deadline() -> None:
    async with serving(limits=ProxyLimits()) as served:
        request = receive_request("normal", "g", wait=1)
        call = served.peer.stream("ReceiveMessage", request, timeout=3)
        first = await call.read()
        assert code(first) == "ILLEGAL_POLLING_TIME"
        served.peer.metadata[1] = ("x-mq-client-version", "5.0.1")
        call = served.peer.stream("ReceiveMessage", request, timeout=3)
        assert code(await call.read()) == "BAD_REQUEST"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"invisible_duration": {"seconds": 9}}, "ILLEGAL_INVISIBLE_TIME"),
        ({"invisible_duration": {"seconds": 12 * 3600 + 1}}, "ILLEGAL_INVISIBLE_TIME"),
        ({"invisible_duration": {"seconds": 1 << 60}}, "ILLEGAL_INVISIBLE_TIME"),
        ({"filter": {"type": 2, "expression": "a >"}}, "INTERNAL_SERVER_ERROR"),
        ({"filter": {"type": 2, "expression": ""}}, "ILLEGAL_FILTER_EXPRESSION"),
        ({"filter": {"type": 1, "expression": "||"}}, "ILLEGAL_FILTER_EXPRESSION"),
    ],
)
async def test_what_cannot_be_received_is_refused(fields: dict[str, Any], expected: str) -> None:
    async with serving() as served:
        chosen = fields.pop("filter", None)
        request = receive_request("normal", "g", wait=0.1, **fields)
        if chosen is not None:
            request.filter_expression.CopyFrom(d.FilterExpression(**chosen))
        responses = [each async for each in served.peer.stream("ReceiveMessage", request)]
        assert code(responses[0]) == expected
        assert responses[-1].HasField("delivery_timestamp")


async def test_a_message_is_acknowledged_once_and_not_redelivered() -> None:
    async with serving() as served:
        peer = served.peer
        await peer.receive("normal", "g")
        await peer.send("normal", b"x")
        (got,) = await peer.received("normal", "g")
        handle = got.system_properties.receipt_handle
        answer = await peer.ack("normal", "g", handle, "nonsense", "1 2 3 4 5 6 7 8 9")
        assert code(answer) == "MULTIPLE_RESULTS"
        assert [code(each) for each in answer.entries] == ["OK"] + ["INVALID_RECEIPT_HANDLE"] * 2
        assert code(await peer.ack("normal", "g")) == "INTERNAL_SERVER_ERROR"


async def test_a_handle_of_an_unknown_broker_is_refused() -> None:
    async with serving() as served:
        handle = f"0 {round(time.time() * 1000)} 60000 0 0 nowhere 0 0 0"
        answer = await served.peer.ack("normal", "g", handle)
        assert code(answer.entries[0]) == "INVALID_RECEIPT_HANDLE"
        assert answer.entries[0].status.message == "cannot find broker nowhere"


async def test_a_message_can_be_hidden_for_another_time() -> None:
    async with serving() as served:
        peer = served.peer
        await peer.receive("normal", "g")
        await peer.send("normal", b"x")
        (got,) = await peer.received("normal", "g")
        request = s.ChangeInvisibleDurationRequest(
            group=d.Resource(name="g"),
            topic=d.Resource(name="normal"),
            receipt_handle=got.system_properties.receipt_handle,
            message_id=got.system_properties.message_id,
        )
        request.invisible_duration.FromMilliseconds(500)
        changed = await peer.call("ChangeInvisibleDuration", request)
        assert code(changed) == "OK"
        (again,) = await peer.received("normal", "g")
        assert again.system_properties.delivery_attempt == 2
        assert dict(again.user_properties) == {}
        assert again.system_properties.message_id == got.system_properties.message_id
        expired = await peer.ack("normal", "g", changed.receipt_handle)
        assert expired.entries[0].status.message == "receipt handle is expired"
        assert code(await peer.ack("normal", "g", again.system_properties.receipt_handle)) == "OK"


async def test_a_message_that_is_given_up_goes_to_the_dead_letters() -> None:
    async with serving() as served:
        peer = served.peer
        await peer.receive("normal", "g")
        await peer.send("normal", b"x")
        (got,) = await peer.received("normal", "g")
        request = s.ForwardMessageToDeadLetterQueueRequest(
            group=d.Resource(name="g"),
            topic=d.Resource(name="normal"),
            receipt_handle=got.system_properties.receipt_handle,
            message_id=got.system_properties.message_id,
        )
        assert code(await peer.call("ForwardMessageToDeadLetterQueue", request)) == "OK"
        (dead,) = await dead_letters(served.cluster.address, "g")
        assert dead.body == b"x"


@pytest.mark.parametrize("ordered", [False, True])
async def test_the_last_delivery_of_a_group_is_followed_by_the_dead_letters(ordered: bool) -> None:
    """Brokers see to it, except for messages in order, which they retry in place for ever."""
    topic = "fifo" if ordered else "normal"
    async with serving() as served:
        await served.group("g", retry_max_times=0, consume_message_orderly=ordered)
        peer = served.peer
        await peer.receive(topic, "g")
        await peer.send(topic, b"x", message_group="one" if ordered else "")
        (got,) = await peer.received(topic, "g")
        request = s.ChangeInvisibleDurationRequest(
            group=d.Resource(name="g"),
            topic=d.Resource(name=topic),
            receipt_handle=got.system_properties.receipt_handle,
        )
        request.invisible_duration.FromMilliseconds(10)
        assert code(await peer.call("ChangeInvisibleDuration", request)) == "OK"
        polling = asyncio.create_task(peer.received(topic, "g"))
        (dead,) = await dead_letters(served.cluster.address, "g")
        assert dead.body == b"x"
        assert not polling.done()
        polling.cancel()
        await asyncio.wait({polling})


async def test_a_client_that_hangs_up_loses_no_message() -> None:
    async with serving() as served:
        peer = served.peer
        await peer.receive("normal", "g")
        call = peer.stream("ReceiveMessage", receive_request("normal", "g", wait=15))
        reading = asyncio.create_task(call.read())
        await served.polled("normal", "g")
        call.cancel()
        await asyncio.wait({reading})
        await peer.send("normal", b"x")
        async with asyncio.timeout(15):  # it would be hidden for 30 s
            (got,) = await peer.received("normal", "g")
        assert got.body == b"x"


async def test_a_delayed_message_comes_late_and_can_be_recalled() -> None:
    async with serving() as served:
        peer = served.peer
        await peer.receive("delay", "g")
        sent = {}
        for body in (b"kept", b"recalled"):
            due = message("delay", body)
            due.system_properties.delivery_timestamp.FromMilliseconds(
                round(time.time() * 1000) + 5000
            )
            sent[body] = await peer.call("SendMessage", s.SendMessageRequest(messages=[due]))
        handle = sent[b"recalled"].entries[0].recall_handle
        request = s.RecallMessageRequest(topic=d.Resource(name="delay"), recall_handle=handle)
        recalled = await peer.call("RecallMessage", request)
        assert recalled.message_id == sent[b"recalled"].entries[0].message_id
        (got,) = await peer.received("delay", "g")
        assert got.body == b"kept"
        assert got.system_properties.message_type == d.MessageType.DELAY
        request.recall_handle = "nonsense"
        assert code(await peer.call("RecallMessage", request)) == "INTERNAL_SERVER_ERROR"


@pytest.mark.parametrize("resolution", ["COMMIT", "ROLLBACK"])
async def test_the_end_of_a_transaction_decides_about_its_message(resolution: str) -> None:
    async with serving() as served:
        peer = served.peer
        await peer.receive("tx", "g")
        half = await peer.send("tx", b"half", message_type=d.MessageType.TRANSACTION)
        request = s.EndTransactionRequest(
            topic=d.Resource(name="tx"),
            message_id=half.entries[0].message_id,
            transaction_id=half.entries[0].transaction_id,
            resolution=d.TransactionResolution.Value(resolution),
        )
        assert code(await peer.call("EndTransaction", request)) == "OK"
        await served.peer.send("tx", b"last", message_type=d.MessageType.TRANSACTION)
        if resolution == "COMMIT":
            (got,) = await peer.received("tx", "g")
            assert got.body == b"half"
        else:
            status, _ = await peer.receive("tx", "g", wait=1)
            assert code(status) == "MESSAGE_NOT_FOUND"
        request.transaction_id = "no such thing"
        assert code(await peer.call("EndTransaction", request)) == "INVALID_TRANSACTION_ID"


async def test_a_queue_can_be_pulled_and_its_offsets_kept() -> None:
    async with serving() as served:
        peer = served.peer
        sent = [await peer.send("fifo", b"%d" % n, message_group="g") for n in range(3)]
        assert [each.entries[0].offset for each in sent] == [0, 1, 2]
        for number in (0, 1):
            queue = d.MessageQueue(
                topic=d.Resource(name="fifo"), id=number, broker=d.Broker(name="broker-0")
            )
            end = await peer.call(
                "QueryOffset",
                s.QueryOffsetRequest(
                    message_queue=queue, query_offset_policy=d.QueryOffsetPolicy.END
                ),
            )
            if end.offset:
                break
        assert end.offset == 3
        group = d.Resource(name="puller")
        got = await peer.call("GetOffset", s.GetOffsetRequest(group=group, message_queue=queue))
        assert code(got) == "OFFSET_NOT_FOUND"
        pull = s.PullMessageRequest(group=group, message_queue=queue, offset=1, batch_size=32)
        responses = [each async for each in peer.stream("PullMessage", pull)]
        assert [each.message.body for each in responses[1:-1]] == [b"1", b"2"]
        assert responses[-1].next_offset == 3
        update = s.UpdateOffsetRequest(group=group, message_queue=queue, offset=2)
        assert code(await peer.call("UpdateOffset", update)) == "OK"
        got = await peer.call("GetOffset", s.GetOffsetRequest(group=group, message_queue=queue))
        assert (code(got), got.offset) == ("OK", 2)
        pull.offset = -1
        refused = [each async for each in peer.stream("PullMessage", pull)]
        assert code(refused[0]) == "ILLEGAL_OFFSET"


async def test_what_is_not_supported_says_so() -> None:
    async with serving() as served:
        answer = await served.peer.call("SyncLiteSubscription", s.SyncLiteSubscriptionRequest())
        assert code(answer) == "NOT_IMPLEMENTED"
        assert answer.status.message == (
            "SyncLiteSubscription is not supported: there are no lite topics here"
        )


async def test_bytes_that_are_no_request_are_a_bad_request() -> None:
    async with serving() as served:
        raw = served.peer.channel.unary_unary(
            "/apache.rocketmq.v2.MessagingService/SendMessage",
            response_deserializer=s.SendMessageResponse.FromString,
        )
        answer = await raw(b"\xff" * 100, metadata=served.peer.metadata, timeout=PATIENCE)
        assert (code(answer), answer.status.message) == (
            "BAD_REQUEST",
            "the request is not a valid SendMessageRequest",
        )


async def test_a_body_over_the_limit_is_refused_and_the_next_accepted() -> None:
    async with serving() as served:
        large = await served.peer.send("normal", bytes(8 * 1024 * 1024))
        assert code(large) == "MESSAGE_BODY_TOO_LARGE"
        assert code(await served.peer.send("normal", bytes(4_000_000))) == "OK"


async def test_messages_go_to_another_broker_while_one_is_down() -> None:
    async with serving(brokers=2) as served:
        request = s.QueryRouteRequest(
            topic=d.Resource(name="normal"), endpoints=served.peer.endpoints
        )
        assert len((await served.peer.call("QueryRoute", request)).message_queues) == 4
        await served.cluster.kill("broker-0")
        outcomes = [code(await served.peer.send("normal", b"%d" % n)) for n in range(12)]
        assert outcomes == ["OK"] * 12


async def dead_letters(address: str, group: str) -> list[Any]:
    """The dead letters of a group, when there are some."""
    async with asyncio.timeout(PATIENCE), aio.Admin(address) as admin:
        while True:
            try:
                found = (await admin.messages.dead_letters(group)).messages
            except errors.MQError:  # the topic is created for the first of them
                found = []
            if found:
                return list(found)
            await asyncio.sleep(0.05)
