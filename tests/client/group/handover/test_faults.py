"""Members of a STICKY group over real sockets: cut off, killed, or with handlers that hang."""

import asyncio
import signal
import sys
from collections import Counter
from collections.abc import Sequence

import pytest

from pocketmq.client.group.confirmed_offsets import ConfirmedOffsets
from pocketmq.client.group.held_queue import HeldQueue, HoldState
from pocketmq.client.producer.producer import Producer
from pocketmq.client.push.member import PushMember
from pocketmq.embedded.aio import Cluster
from pocketmq.embedded.fault_proxy import FaultProxy
from pocketmq.model import Message, MessageQueue
from pocketmq.protocol import ReceivedMessage
from tests.client.group.groups import Member, cluster, member, queues_of
from tests.client.group.handover.sticky import even, sticky
from tests.loops import until

QUEUES = queues_of(1, 2)


def member_of(one: Member) -> PushMember:
    found = one.consumer._life.member
    assert found is not None
    return found


def held(one: Member, queue: MessageQueue) -> HeldQueue:
    return member_of(one).parts.queues.pulled[queue]


def commits(one: Member) -> ConfirmedOffsets:
    store = member_of(one).parts.offsets
    assert isinstance(store, ConfirmedOffsets)
    return store


class Handler:
    """Notes what begins, and holds it while it is closed."""

    def __init__(self, *, closed: bool = False) -> None:
        self.open = asyncio.Event()
        if not closed:
            self.open.set()
        self.began: list[bytes] = []

    async def __call__(self, message: ReceivedMessage) -> None:
        if message.topic == "orders":
            self.began.append(message.body)
            await self.open.wait()


class Sender:
    """Sends numbered messages."""

    def __init__(self, running: Cluster) -> None:
        self._running = running
        self.bodies: list[bytes] = []

    async def send(self, each: int, queues: Sequence[MessageQueue] = QUEUES) -> None:
        """Send so many messages to each queue."""
        async with Producer(self._running.address, group="shop") as producer:
            for queue in queues:
                for _ in range(each):
                    self.bodies.append(b"%d" % len(self.bodies))
                    await producer.send(Message("orders", self.bodies[-1]), queue=queue)


async def reached(one: Member, ends: dict[MessageQueue, int]) -> None:
    """Wait until these offsets are stored."""
    for queue, end in ends.items():
        async with asyncio.timeout(10):
            while await commits(one).read(queue) != end:  # noqa: ASYNC110 - a broker is asked
                await asyncio.sleep(0.01)


def front(running: Cluster) -> FaultProxy:
    """Where clients reach the broker."""
    network = running._supervisor.members["broker-0"].network
    assert network is not None
    return network._front


async def test_a_member_that_is_cut_off_starts_nothing_and_goes_on_with_what_it_has() -> None:
    handler = Handler(closed=True)
    async with (
        cluster(1, 2, faults=True) as running,
        sticky(running.address, "a", handler=handler, threads=2) as a,
    ):
        await even(a, queues=2)
        sender = Sender(running)
        await sender.send(5)
        await until(lambda: len(handler.began) == 2, "calls")
        stays = [held(a, queue) for queue in QUEUES]
        await until(lambda: sum(each.process.count for each in stays) == 10, "all in the cache")
        proxy = front(running)
        await proxy.stop_accepting()
        proxy.cut(reset=True)
        await until(lambda: all(each.state is HoldState.FENCED for each in stays), "the fence")
        handler.open.set()
        await until(lambda: sum(each.process.count for each in stays) == 8, "the running calls")
        await until(lambda: sum(len(each.parked) for each in stays) == 8, "the rest to wait")
        assert len(handler.began) == 2
        proxy.accept()
        await until(lambda: all(each.state is HoldState.OWNED for each in stays), "its end", 20)
        await until(lambda: len(handler.began) == 10, "the rest")
        await sender.send(2)
        await until(lambda: len(handler.began) == 14, "what comes later")
        await reached(a, dict.fromkeys(QUEUES, 7))
        assert Counter(handler.began) == Counter(sender.bodies)
        assert [held(a, queue) for queue in QUEUES] == stays


_GIVER = """
import asyncio, sys
from tests.client.group.handover.sticky import sticky
began = []
async def handle(message):
    if message.topic == "orders":
        began.append(message)
        if len(began) == 12:
            print("working", flush=True)
        await asyncio.Event().wait()
async def main():
    async with sticky(sys.argv[1], "giver", handler=handle):
        await asyncio.Event().wait()
asyncio.run(main())
"""


async def test_an_heir_that_was_cut_off_fills_the_hole_of_a_giver_that_was_killed() -> None:
    handler = Handler()
    async with cluster(1, 2) as running:
        sender = Sender(running)
        await sender.send(6)
        giver = await asyncio.create_subprocess_exec(
            sys.executable, "-c", _GIVER, running.address, stdout=asyncio.subprocess.PIPE
        )
        try:
            assert giver.stdout is not None
            async with asyncio.timeout(60):
                assert await giver.stdout.readline() == b"working\n"
            async with sticky(running.address, "heir", handler=handler) as heir:
                await until(lambda: len(heir.queues()) == 1, "a queue")
                (queue,) = heir.queues()
                await sender.send(4, [queue])
                await until(lambda: sorted(handler.began) == sorted(sender.bodies[12:]), "messages")
                stay, line = held(heir, queue), commits(heir)._lines[queue]
                assert not line.opened.is_set(), "the giver has not finished"
                session = member_of(heir).session
                connection = session.calls.connected(running.brokers["broker-0"].address)
                assert connection is not None
                connection.close()
                await until(lambda: stay.state is HoldState.FENCED, "the fence")
                await until(lambda: stay.state is HoldState.OWNED, "its end", 20)
                assert not line.opened.is_set()
                giver.send_signal(signal.SIGKILL)
                await until(lambda: len(handler.began) == 16, "the hole and the other queue", 20)
                rest = next(each for each in QUEUES if each != queue)
                await reached(heir, {queue: 10, rest: 6})
                assert held(heir, queue) is stay
                assert Counter(handler.began) == Counter(sender.bodies)
        finally:
            if giver.returncode is None:
                giver.kill()
            await giver.wait()


@pytest.mark.parametrize("orderly", [False, True])
async def test_a_handler_that_hangs_keeps_its_queue_no_longer_than_drain_wait(
    orderly: bool, caplog: pytest.LogCaptureFixture
) -> None:
    hanging, handler = Handler(closed=True), Handler()
    async with (
        cluster(1, 2) as running,
        sticky(
            running.address, "a", handler=hanging, orderly=orderly, drain_wait=0.3, stop_wait=0.1
        ) as a,
    ):
        await even(a, queues=2)
        sender = Sender(running)
        await sender.send(3)
        started = 2 if orderly else 6
        await until(lambda: len(hanging.began) == started, "calls")
        async with sticky(running.address, "b", handler=handler, orderly=orderly) as b:
            await until(lambda: len(b.queues()) == 1, "the queue to move")
            (queue,) = b.queues()
            await until(lambda: len(handler.began) == 3, "what the giver did not finish")
            assert "handlers did not finish in time" in caplog.text
            await reached(b, {queue: 3})
            hanging.open.set()  # too late: what comes of it is ignored
            (kept,) = a.queues()
            await reached(a, {kept: 3})
            await reached(b, {queue: 3})
            await sender.send(1, [queue])
            await until(lambda: len(handler.began) == 4, "the next message")
            assert len(set(handler.began)) == 4


async def test_a_slow_handler_within_drain_wait_is_waited_for() -> None:
    slow, handler = Handler(closed=True), Handler()
    async with (
        cluster(1, 2) as running,
        sticky(running.address, "a", handler=slow, threads=4) as a,
    ):
        await even(a, queues=2)
        sender = Sender(running)
        await sender.send(10)
        await until(lambda: len(slow.began) == 4, "calls")
        async with sticky(running.address, "b", handler=handler) as b:
            await even(a, b, queues=2)
            (queue,) = b.queues()
            await until(lambda: bool(handler.began), "the heir to begin")
            assert not commits(b)._lines[queue].opened.is_set()
            slow.open.set()
            await reached(b, dict.fromkeys(QUEUES, 10))
            assert Counter(slow.began + handler.began) == Counter(sender.bodies)


async def test_a_foreign_member_that_is_ahead_is_not_taken_back_by_slow_handlers() -> None:
    slow = Handler(closed=True)
    async with (
        cluster(1, 2) as running,
        sticky(running.address, "a", handler=slow, threads=4, commit_interval=0.01) as a,
    ):
        await even(a, queues=2)
        sender = Sender(running)
        await sender.send(2)
        await until(lambda: len(slow.began) == 4, "calls, two of each queue")
        await sender.send(8)
        async with member(running.address, "java") as java:
            await until(lambda: len(java.queues()) == len(a.queues()) == 1, "both to share", 20)
            (queue,) = java.queues()
            first, last = 2 * queue.queue_id, 4 + 8 * queue.queue_id
            share = {*sender.bodies[first : first + 2], *sender.bodies[last : last + 8]}
            await until(lambda: share <= set(java.bodies), "the foreign member's share", 20)
            await java.consumer.commit()
            await reached(a, {queue: 10})
            slow.open.set()
            await until(
                lambda: any(
                    each.queue == queue and each.drained
                    for event in a.consumer.history
                    for each in event.handovers
                ),
                "the giver to finish",
                20,
            )
            assert await commits(a).read(queue) == 10
