"""Clients of the proxy as members of groups: settings, heartbeats, commands, departures."""

import asyncio
import gc
from typing import Any

import grpc
import grpc.aio
import pytest

from pocketmq import errors
from pocketmq.model.kinds import ConsumeResult
from pocketmq.protocol.peers import Language, version_name
from pocketmq.proxy.translation.limits import ProxyLimits
from pocketmq.proxy.wire import definition as d
from pocketmq.proxy.wire import service as s
from tests.cli.in_process import command
from tests.proxy.peers import PATIENCE, Peer, Served, code, serving


async def test_a_producer_gets_its_limits() -> None:
    async with serving() as served:
        publishing = d.Publishing(topics=[d.Resource(name="normal")])
        stream, settings = await served.peer.settle(
            client_type=d.ClientType.PRODUCER, publishing=publishing
        )
        assert settings.publishing.max_body_size == 4 * 1024 * 1024
        assert settings.publishing.validate_message_type
        assert settings.backoff_policy.max_attempts == 3
        assert settings.backoff_policy.exponential_backoff.max.seconds == 1
        stream.cancel()


async def test_a_consumer_gets_the_set_up_of_its_group() -> None:
    async with serving() as served:
        await served.group("ordered", consume_message_orderly=True, retry_max_times=4)
        subscription = d.Subscription(group=d.Resource(name="ordered"))
        stream, settings = await served.peer.settle(
            client_type=d.ClientType.PUSH_CONSUMER, subscription=subscription
        )
        assert settings.subscription.fifo
        assert settings.subscription.receive_batch_size == 32
        assert settings.subscription.long_polling_timeout.seconds == 20
        assert settings.backoff_policy.max_attempts == 5
        pauses = [each.seconds for each in settings.backoff_policy.customized_backoff.next]
        assert (pauses[0], pauses[-1], len(pauses)) == (1, 7200, 18)
        stream.cancel()


async def test_an_assignment_of_a_fifo_group_has_every_queue() -> None:
    async with serving(brokers=2) as served:
        await served.group("ordered", consume_message_orderly=True)

        async def assigned(group: str) -> list[tuple[str, int]]:
            request = s.QueryAssignmentRequest(
                topic=d.Resource(name="fifo"),
                group=d.Resource(name=group),
                endpoints=served.peer.endpoints,
            )
            answer = await served.peer.call("QueryAssignment", request)
            assert code(answer) == "OK"
            queues = [each.message_queue for each in answer.assignments]
            return sorted((each.broker.name, each.id) for each in queues)

        assert await assigned("ordered") == [(f"broker-{b}", q) for b in (0, 1) for q in (0, 1)]
        assert await assigned("plain") == [("broker-0", -1), ("broker-1", -1)]


async def test_the_subscription_of_a_simple_consumer_shows_once_it_receives() -> None:
    """Apache's Python client subscribes after it has reported its settings, and reports no more."""
    async with serving() as served:
        subscription = d.Subscription(group=d.Resource(name="g"))
        stream, _ = await served.peer.settle(
            client_type=d.ClientType.SIMPLE_CONSUMER, subscription=subscription
        )
        await served.peer.receive("normal", "g")

        async def shown() -> dict[str, str]:
            (view,) = (await served.admin.groups.connections("g")).all()
            found = view.subscription_table.values()
            return {each.topic: each.sub_string for each in found if each.topic == "normal"}

        async with asyncio.timeout(PATIENCE):
            while await shown() != {"normal": "*"}:  # noqa: ASYNC110 - a server is asked
                await asyncio.sleep(0.01)
        stream.cancel()


async def test_heartbeats_need_settings_first() -> None:
    async with serving() as served:
        peer = served.peer
        beat = s.HeartbeatRequest(group=d.Resource(name="g"))
        assert code(await peer.call("Heartbeat", beat)) == "UNRECOGNIZED_CLIENT_TYPE"
        stream = await peer.consume("g", "normal")
        assert code(await peer.call("Heartbeat", beat)) == "OK"
        assert code(await peer.call("Heartbeat", s.HeartbeatRequest())) == "ILLEGAL_CONSUMER_GROUP"
        stream.cancel()


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({}, "there is no publishing or subscription data in settings"),
        ({"client_type": 2, "subscription": {"group": {"name": ""}}}, "the specified group is"),
        ({"client_type": 99, "subscription": {"group": {"name": "g"}}}, "client type 99"),
        ({"client_type": 1, "publishing": {"topics": [{"name": "a b"}]}}, "illegal characters"),
        (
            {
                "client_type": 2,
                "subscription": {
                    "group": {"name": "g"},
                    "subscriptions": [{"topic": {"name": "t"}, "expression": {"type": 2}}],
                },
            },
            "expression format is not correct",
        ),
    ],
)
async def test_settings_that_make_no_sense_end_the_stream(settings: Any, text: str) -> None:
    async with serving() as served:
        status, details = await ended(served.peer, settings)
        assert status is grpc.StatusCode.INVALID_ARGUMENT
        assert details.startswith("process client telemetryCommand failed. ")
        assert text in details
    gc.collect()  # a stream that the server ended refers to itself in grpcio


async def ended(peer: Peer, settings: Any) -> tuple[grpc.StatusCode, str]:
    """How a stream ends that begins with these settings."""
    stream = peer.telemetry()
    await stream.write(s.TelemetryCommand(settings=d.Settings(**settings)))
    return await stream.code(), await stream.details()


async def test_members_stand_in_the_brokers_lists_under_their_own_ids() -> None:
    async with serving() as served, grpc.aio.insecure_channel(served.proxy.address) as channel:
        second = Peer(channel, served.proxy.address, "go@7")
        streams = [await each.consume("g", "normal") for each in (served.peer, second)]
        assert await members(served, "g", 2) == {"peer@1", "go@7"}
        for stream in streams:
            stream.cancel()
        left = s.NotifyClientTerminationRequest(group=d.Resource(name="g"))
        assert code(await second.call("NotifyClientTermination", left)) == "OK"
        assert await members(served, "g", 1) == {"peer@1"}
        gone = await second.call("NotifyClientTermination", left)
        assert code(gone) == "UNRECOGNIZED_CLIENT_TYPE"


async def test_a_silent_client_is_dropped_from_its_group() -> None:
    limits = ProxyLimits(client_expiry=0.1)
    async with serving(limits=limits) as served:
        stream = await served.peer.consume("g", "normal")
        await members(served, "g", 1)
        stream.cancel()
        assert await members(served, "g", 0) == set()


async def test_an_orphaned_transaction_is_recovered_by_its_producer() -> None:
    async with serving(transactionCheckInterval=200, transactionTimeOut=200) as served:
        peer = served.peer
        await peer.receive("tx", "g")
        publishing = d.Publishing(topics=[d.Resource(name="tx")])
        stream, _ = await peer.settle(client_type=d.ClientType.PRODUCER, publishing=publishing)
        await peer.send("tx", b"half", message_type=d.MessageType.TRANSACTION, tag="t")
        async with asyncio.timeout(PATIENCE):
            command = (await stream.read()).recover_orphaned_transaction_command
        assert (command.message.body, command.message.system_properties.tag) == (b"half", "t")
        end = s.EndTransactionRequest(
            topic=d.Resource(name="tx"),
            message_id=command.message.system_properties.message_id,
            transaction_id=command.transaction_id,
            resolution=d.TransactionResolution.COMMIT,
            source=d.TransactionSource.SOURCE_SERVER_CHECK,
        )
        assert code(await peer.call("EndTransaction", end)) == "OK"
        (got,) = await peer.received("tx", "g")
        assert got.body == b"half"
        stream.cancel()


async def test_an_operator_sees_a_clients_threads() -> None:
    async with serving() as served:
        stream = await served.peer.consume("g", "normal")
        await members(served, "g", 1)

        async def answer() -> None:
            command = (await stream.read()).print_thread_stack_trace_command
            trace = s.ThreadStackTrace(nonce=command.nonce, thread_stack_trace="main: asleep")
            ok = d.Status(code=d.Code.OK)
            await stream.write(s.TelemetryCommand(status=ok, thread_stack_trace=trace))

        answering = asyncio.create_task(answer())
        info = await served.admin.groups.running_info("g", "peer@1", stacks=True)
        assert info.jstack == "main: asleep"
        assert [each.topic for each in info.subscription_set] == ["normal"]
        await answering
        stream.cancel()


async def test_an_operator_sees_what_kind_of_client_each_member_is() -> None:
    async with serving() as served:
        served.peer.metadata += [("x-mq-language", "GOLANG")]  # with x-mq-client-version 5.0.7
        stream = await served.peer.consume("g", "normal")
        await members(served, "g", 1)
        (view,) = (await served.admin.groups.connections("g")).all()
        (seen,) = view.connection_set
        assert (seen.language, version_name(seen.version)) == (Language.GO, "V5_0_7")
        story = await served.admin.balance.explain("g")
        assert (story.popping, story.clients) == (("peer@1",), {"peer@1": "GO V5_0_7"})
        assert story.findings == ()
        info = await served.admin.groups.running_info("g", "peer@1")
        assert info.properties["PROP_CLIENT_VERSION"] == "V5_0_7"
        assert int(info.properties["PROP_CONSUMER_START_TIMESTAMP"]) > 0
        done = await asyncio.to_thread(
            command, "admin", "explain", "-g", "g", "-n", served.cluster.address
        )
        lines = done.stdout.decode().splitlines()
        assert lines[:2] == [
            "group g: 1 members, CLUSTERING, strategy POP", "  peer@1 (gRPC, GO V5_0_7)",
        ]  # fmt: skip
        assert "any member" in lines[4]
        stream.cancel()


async def test_an_operator_has_a_message_consumed_by_a_client() -> None:
    async with serving() as served:
        stream = await served.peer.consume("g", "normal")
        await members(served, "g", 1)
        sent = await served.peer.send("normal", b"x")

        async def answer() -> bytes:
            command = (await stream.read()).verify_message_command
            result = s.VerifyMessageResult(nonce=command.nonce)
            failed = d.Status(code=d.Code.FAILED_TO_CONSUME_MESSAGE)
            await stream.write(s.TelemetryCommand(status=failed, verify_message_result=result))
            return bytes(command.message.body)

        answering = asyncio.create_task(answer())
        stored = await served.admin.messages.by_id("normal", sent.entries[0].message_id)
        result = await served.admin.messages.consume_directly(
            "g", "peer@1", "normal", stored.offset_message_id
        )
        assert result.consume_result is ConsumeResult.CR_LATER
        assert await answering == b"x"
        stream.cancel()


async def test_messages_of_a_push_consumer_are_renewed_until_it_leaves() -> None:
    limits = ProxyLimits(
        min_long_polling=0.1, default_invisible_time=6.0, renew_ahead=5.0, renew_interval=0.2
    )
    async with serving(limits=limits) as served:
        peer = served.peer
        stream = await peer.consume("g", "normal")
        await peer.receive("normal", "g", auto_renew=True)
        await peer.send("normal", b"x")
        (got,) = await peer.received("normal", "g", auto_renew=True)
        status, _ = await peer.receive("normal", "g", wait=8)
        assert code(status) == "MESSAGE_NOT_FOUND"
        left = s.NotifyClientTerminationRequest(group=d.Resource(name="g"))
        assert code(await peer.call("NotifyClientTermination", left)) == "OK"
        async with asyncio.timeout(15):  # it was hidden for a minute more
            (again,) = await peer.received("normal", "g")
        assert again.system_properties.message_id == got.system_properties.message_id
        stream.cancel()


async def test_the_first_handle_serves_after_a_renewal() -> None:
    limits = ProxyLimits(
        min_long_polling=0.1, default_invisible_time=60.0, renew_ahead=59.0, renew_interval=0.2
    )
    async with serving(limits=limits) as served:
        peer = served.peer
        stream = await peer.consume("g", "normal")
        await peer.receive("normal", "g", auto_renew=True)
        await peer.send("normal", b"x")
        (got,) = await peer.received("normal", "g", auto_renew=True)
        status, _ = await peer.receive("normal", "g", wait=3)
        assert code(status) == "MESSAGE_NOT_FOUND"
        assert code(await peer.ack("normal", "g", got.system_properties.receipt_handle)) == "OK"
        stream.cancel()


async def test_an_ack_waits_for_a_renewal_under_way() -> None:
    # Always due: whenever a message is acknowledged, its receipt is just being replaced.
    limits = ProxyLimits(min_long_polling=0.1, renew_ahead=86_400.0, renew_interval=0.001)
    async with serving(limits=limits) as served:
        peer = served.peer
        stream = await peer.consume("g", "normal")
        await peer.receive("normal", "g", auto_renew=True)
        for number in range(20):
            await peer.send("normal", b"%d" % number)
            for got in await peer.received("normal", "g", auto_renew=True):
                handle = got.system_properties.receipt_handle
                assert code(await peer.ack("normal", "g", handle)) == "OK"
        assert (await served.admin.groups.progress("g", "normal")).lag == 0
        stream.cancel()


async def test_a_client_without_settings_cannot_have_messages_renewed() -> None:
    async with serving() as served:
        peer = served.peer
        await peer.receive("normal", "g")
        await peer.send("normal", b"x")
        async with asyncio.timeout(PATIENCE):
            while True:
                status, *_ = await peer.receive("normal", "g", auto_renew=True)
                if status.status.message != "no new message":
                    break
        assert status.status.message == "The client [peer@1] is disconnected."
        async with asyncio.timeout(15):
            (got,) = await peer.received("normal", "g")
        assert got.body == b"x"


async def members(served: Served, group: str, count: int) -> set[str]:
    """The ids of a group's members, when there are so many."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                found = (await served.admin.groups.connections(group)).some().values()
            except errors.MQError:
                found = []
            ids = {str(each.client_id) for view in found for each in view.connection_set}
            if len(ids) == count:
                return ids
            await asyncio.sleep(0.05)
