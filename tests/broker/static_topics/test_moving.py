"""Static topics on two brokers of ours: created, moved under load, read across generations."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sized
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pocketmq import aio
from pocketmq.blocking.record_reader import RecordReader
from pocketmq.client.options import ClientOptions
from pocketmq.embedded.aio import Cluster
from pocketmq.errors import MappingRefused, RouteNotFound
from pocketmq.model import ConsumeFromWhere, MessageQueue, TransactionState
from tests.loops import until

TOPIC, GROUP = "fixed", "fixers"
FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
BLOCK = 10_000


def logical(number: int) -> MessageQueue:
    return MessageQueue(TOPIC, "__syslo__global__", number)


class Desk:
    """Two brokers, an admin and a producer."""

    def __init__(self, cluster: Cluster, admin: aio.Admin, producer: aio.Producer) -> None:
        self.cluster, self.admin, self.producer = cluster, admin, producer

    async def create(self, queues: int, *brokers: str) -> None:
        await self.admin.static_topics.create(TOPIC, queues, brokers)

    async def move(self, *brokers: str) -> None:
        await self.admin.static_topics.move(TOPIC, brokers)

    async def send(self, *bodies: str, queue: int = 0) -> list[int]:
        """Send to a queue; return the logical offsets."""
        sent = [
            await self.producer.send(aio.Message(TOPIC, body.encode()), queue=logical(queue))
            for body in bodies
        ]
        assert {each.queue for each in sent} == {logical(queue)}
        return [each.queue_offset for each in sent]

    @asynccontextmanager
    async def consumer(self, group: str = GROUP, **options: object) -> AsyncIterator["Got"]:
        got = Got()
        member = aio.PushConsumer(
            self.cluster.address,
            group=group,
            consume_from=FIRST,
            **options,  # type: ignore[arg-type]
        )
        member.subscribe(TOPIC, "*", got.take)
        async with member:
            got.member = member
            yield got


class Got:
    """What a consumer has received."""

    member: aio.PushConsumer

    def __init__(self) -> None:
        self.places: dict[str, tuple[MessageQueue, int]] = {}

    async def take(self, message: aio.ReceivedMessage) -> None:
        queue = MessageQueue(message.topic, message.broker_name, message.queue_id)
        self.places[message.body.decode()] = queue, message.queue_offset


@asynccontextmanager
async def desk(data: Path | None = None) -> AsyncIterator[Desk]:
    async with (
        Cluster(brokers=2, data=data) as cluster,
        aio.Admin(cluster.address) as admin,
        aio.Producer(cluster.address, group="shop") as producer,
    ):
        yield Desk(cluster, admin, producer)


async def test_queues_are_on_the_brokers_that_were_named_and_known_to_all() -> None:
    async with desk() as here:
        await here.create(3, "broker-0")
        configs = await here.admin.static_topics.configs(TOPIC)
        assert {name: each.write_queue_nums for name, each in configs.items()} == {
            "broker-0": 3,
            "broker-1": 0,
        }
        assert list(await here.producer.queues(TOPIC)) == [logical(n) for n in range(3)]
        await here.admin.static_topics.create(TOPIC, 5, ["broker-1"])
        route = await here.admin.topics.route(TOPIC)
        assert list(route.leaders(TOPIC).values()) == ["broker-0"] * 3 + ["broker-1"] * 2


async def test_offsets_go_on_across_a_move() -> None:
    async with desk() as here:
        await here.create(1, "broker-0")
        assert await here.send("a", "b", "c") == [0, 1, 2]
        await here.move("broker-1")
        assert await here.send("d", "e") == [BLOCK, BLOCK + 1]
        await here.move("broker-0")
        assert await here.send("f") == [2 * BLOCK]
        assert await here.admin.offsets.bounds(logical(0)) == (0, 2 * BLOCK + 1)
        async with here.consumer() as got:
            await until(lambda: len(got.places) == 6, "all messages")
        offsets = {"a": 0, "b": 1, "c": 2, "d": BLOCK, "e": BLOCK + 1, "f": 2 * BLOCK}
        assert got.places == {body: (logical(0), at) for body, at in offsets.items()}
        status = await here.admin.topics.status(TOPIC)
        held = status.queues[logical(0)]
        assert (held.min_offset, held.max_offset) == (0, 2 * BLOCK + 1)


def _more_than(sent: Sized, count: int) -> Callable[[], bool]:
    goal = len(sent) + count
    return lambda: len(sent) > goal


async def test_queues_move_under_load_and_no_message_is_lost() -> None:
    async with desk() as here:
        await here.create(4, "broker-0")
        sent: dict[str, tuple[MessageQueue, int]] = {}
        stopped = False

        async def load() -> None:
            while not stopped:
                body = f"m{len(sent)}"
                receipt = await here.producer.send(aio.Message(TOPIC, body.encode()))
                sent[body] = receipt.queue, receipt.queue_offset

        async with here.consumer() as got:
            loading = asyncio.create_task(load())
            for broker in ("broker-1", "broker-0"):
                await until(_more_than(sent, 100), "messages before a move")
                await here.move(broker)
            await until(_more_than(sent, 100), "messages after the moves")
            stopped = True
            await loading
            await until(lambda: got.places.keys() >= sent.keys(), "all messages")
        decided = {body: place for body, place in sent.items() if place[1] >= 0}
        assert {body: got.places[body] for body in decided} == decided


async def test_a_group_goes_on_where_it_was_before_the_move() -> None:
    async with desk() as here:
        await here.create(1, "broker-0")
        await here.send("a", "b")
        async with here.consumer() as got:
            await until(lambda: len(got.places) == 2, "the first messages")
        await here.send("c")
        await here.move("broker-1")
        await here.send("d")
        progress = await here.admin.groups.progress(GROUP, TOPIC)
        assert {queue: each.consumer_offset for queue, each in progress.queues.items()} == {
            logical(0): 2
        }
        async with here.consumer() as got:
            await until(lambda: len(got.places) == 2, "the other messages")
        assert sorted(got.places) == ["c", "d"]
        progress = await here.admin.groups.progress(GROUP, TOPIC)
        assert progress.queues[logical(0)].consumer_offset == BLOCK + 1
        assert progress.lag == 0


async def test_an_offset_of_the_old_range_is_stored_where_the_range_is() -> None:
    async with desk() as here:
        await here.create(1, "broker-0")
        await here.send("a", "b", "c")
        async with here.consumer():
            pass  # makes the group known to the brokers
        await here.move("broker-1")
        await here.admin.offsets.commit(GROUP, logical(0), 1)
        progress = await here.admin.groups.progress(GROUP, TOPIC)
        assert progress.queues[logical(0)].consumer_offset == 1
        await here.send("d")
        async with here.consumer() as got:
            await until(lambda: len(got.places) == 3, "what follows the offset")
        assert sorted(got.places) == ["b", "c", "d"]


async def test_orderly_consumers_keep_their_locks_at_the_leader() -> None:
    async with desk() as here:
        await here.create(2, "broker-0", "broker-1")
        async with here.consumer(orderly=True) as got:
            for number in range(2):
                await here.send(f"a{number}", f"b{number}", queue=number)
            await until(lambda: len(got.places) == 4, "messages of both queues")


async def test_a_mapping_outlives_its_broker(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        await here.create(2, "broker-0")
        await here.send("a")
        await here.move("broker-1")
        before = await here.admin.static_topics.configs(TOPIC)
        for broker in ("broker-0", "broker-1"):
            await here.cluster.kill(broker)
            await here.cluster.restart(broker)
        assert await here.admin.static_topics.configs(TOPIC) == before
        assert await here.send("b") == [BLOCK]
        async with here.consumer() as got:
            await until(lambda: len(got.places) == 2, "messages of both brokers")


async def test_a_deleted_topic_leaves_no_mapping() -> None:
    async with desk() as here:
        await here.create(1, "broker-0")
        (await here.admin.topics.delete(TOPIC, "DefaultCluster")).all()
        assert await here.admin.static_topics.configs(TOPIC) == {}
        with pytest.raises(RouteNotFound):
            await here.admin.topics.route(TOPIC)
        with pytest.raises(MappingRefused, match="No topic route"):
            await here.move("broker-1")
        await here.create(1, "broker-1")
        assert await here.send("a") == [0]


async def test_a_transaction_ends_at_the_leader() -> None:
    async with desk() as here:
        await here.create(1, "broker-0")
        await here.move("broker-1")
        async with (
            aio.Producer(
                here.cluster.address, group="tellers", check=lambda _: TransactionState.UNKNOWN
            ) as producer,
            here.consumer() as got,
        ):
            message = aio.Message(TOPIC, b"paid")
            await producer.send_in_transaction(message, lambda *_: TransactionState.COMMIT)
            await until(lambda: "paid" in got.places, "the committed message")
        assert got.places["paid"] == (logical(0), BLOCK)


async def test_readers_of_records_see_logical_offsets() -> None:
    """What Spark reads with."""
    async with desk() as here:
        await here.create(1, "broker-0")
        await here.send("a", "b")
        await here.move("broker-1")
        await here.send("c")

        def read() -> tuple[list[MessageQueue], list[int]]:
            options = ClientOptions(name_servers=here.cluster.address)
            with RecordReader(options) as reader:
                queues = reader.queues(TOPIC)
                bounds = reader.bounds(queues[0])
                nexts, at = [bounds.first, bounds.end], 0
                while at < bounds.end:
                    pulled = reader.pull(queues[0], at)
                    nexts += [pulled.next_offset, pulled.offset_delta]
                    at = pulled.next_offset
            return queues, nexts

        queues, nexts = await asyncio.to_thread(read)
        assert queues == [logical(0)]
        assert nexts == [0, BLOCK + 1, 2, 0, BLOCK, BLOCK, BLOCK + 1, BLOCK]
