"""Offsets reset by an operator while members consume."""

from pocketmq.balance.allocation import Average
from pocketmq.embedded.aio import Cluster
from pocketmq.embedded.broker_runner import InProcessBroker
from pocketmq.model import MessageQueue
from pocketmq.protocol import Command, RequestCode, encode_body
from pocketmq.protocol.requests.offsets import ResetOffset, ResetOffsetRequest
from tests.client.group.groups import cluster, member, queues_of, send, shared
from tests.client.push.test_steering import member_of
from tests.loops import leap, leaping, until

AVG = Average()


def tell_clients(running: Cluster, request: Command) -> None:
    """Let the broker send a request to everyone who is connected."""
    runner = running._supervisor.members["broker-0"].runner
    assert isinstance(runner, InProcessBroker)
    assert runner._broker is not None
    for connection in runner._broker._server.connections:
        connection.send_oneway(request)


@leaping
async def test_a_reset_that_a_broker_pushes_brings_everything_again() -> None:
    async with cluster(1, 2) as running, member(running.address) as one:
        await shared([one], queues_of(1, 2), AVG)
        await send(running.address, 10)
        await until(lambda: len(one.got) == 10, "everything once")
        await one.consumer.commit()
        offsets = ResetOffset(offset_table=dict.fromkeys(queues_of(1, 2), 0))
        header = ResetOffsetRequest(group="billing", topic="orders", timestamp=0, is_force=True)
        code = RequestCode.RESET_CONSUMER_CLIENT_OFFSET
        tell_clients(running, Command.request(code, 0, header, encode_body(offsets)))
        joined = member_of(one)
        await until(lambda: joined.parts.suspended, "the reset to begin")
        assert all(joined.parts.queues.pulled[queue].dropped for queue in queues_of(1, 2))
        await leap(10.0)
        await until(lambda: not joined.parts.suspended, "the reset to end")
        await until(lambda: len(one.got) == 20, "everything again")
        assert sorted(one.bodies[10:]) == sorted(one.bodies[:10])
        await until(lambda: [joined.noted_offset(queue) for queue in queues_of(1, 2)] == [5, 5],
                    "the new offsets")  # fmt: skip


@leaping
async def test_queues_of_others_are_left_alone() -> None:
    async with cluster(1, 2) as running, member(running.address) as one:
        await shared([one], queues_of(1, 2), AVG)
        await send(running.address, 4)
        await until(lambda: len(one.got) == 4, "everything once")
        joined = member_of(one)
        first, second = queues_of(1, 2)
        kept = joined.parts.queues.pulled[second]
        stranger = MessageQueue("orders", "broker-9", 0)
        task = joined.tasks.spawn(joined.reset_offsets("orders", {first: 0, stranger: 0}), "reset")
        await until(lambda: joined.parts.suspended, "the reset to begin")
        await leap(10.0)
        await until(task.done, "the reset to end")
        await until(lambda: len(one.got) == 6, "one queue again")
        assert joined.parts.queues.pulled[second] is kept


@leaping
async def test_a_consumer_that_stops_amid_a_reset_stops_in_order() -> None:
    async with cluster(1, 2) as running:
        async with member(running.address) as one:
            await shared([one], queues_of(1, 2), AVG)
            joined = member_of(one)
            reset = joined.reset_offsets("orders", dict.fromkeys(queues_of(1, 2), 0))
            task = joined.session.tasks.spawn(reset, "reset")
            await until(lambda: joined.parts.suspended, "the reset to begin")
        await until(task.done, "the reset to end with the session")
