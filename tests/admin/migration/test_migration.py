"""A migration between two clusters with real sockets: everything comes over, whatever happens."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pocketmq import aio
from pocketmq.admin.migration.copying import CopyRules
from pocketmq.admin.migration.ledger import MigrationLedger
from pocketmq.admin.migration.migration import Migration
from pocketmq.admin.migration.offset_map import CopiedRange
from pocketmq.admin.migration.plan import MigrationChoice
from pocketmq.admin.migration.side import Side
from pocketmq.admin.wire import AdminOptions
from pocketmq.client.options import ClientOptions
from pocketmq.embedded.aio import Cluster
from pocketmq.errors import CannotMigrate, MigrationFileUnusable
from pocketmq.model import GroupConfig, MessageQueue, TopicConfig, sort_queues
from pocketmq.protocol import ReceivedMessage
from tests.loops import until

FIRST = aio.ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET


class Move:
    """Two clusters, and the file between them."""

    def __init__(self, source: Cluster, target: Cluster, path: Path) -> None:
        self.source = source
        self.target = target
        self.path = path
        self.timeout = 5.0

    def ledger(self) -> MigrationLedger:
        return MigrationLedger(self.path, self.source.address, self.target.address, create=True)

    def side(self, cluster: Cluster) -> Side:
        options = ClientOptions(name_servers=cluster.address)
        return Side(options, None, AdminOptions(timeout=self.timeout))

    @asynccontextmanager
    async def migration(self, *topics: str, **rules: float) -> AsyncIterator[Migration]:
        sides = (self.side(self.source), self.side(self.target))
        wanted = MigrationChoice(topics=topics)
        async with Migration(*sides, wanted=wanted, rules=CopyRules(**rules)) as running:  # type: ignore[arg-type]
            yield running

    async def copy(self, **how: bool) -> int:
        async with self.migration() as migration:
            with self.ledger() as ledger:
                return (await migration.copy(ledger, **how)).copied

    async def send(self, cluster: Cluster, topic: str, *bodies: bytes) -> None:
        async with aio.Producer(cluster.address, group="senders") as producer:
            await producer.send_batch([aio.Message(topic, body) for body in bodies])

    async def stored(self, cluster: Cluster, topic: str) -> dict[int, list[ReceivedMessage]]:
        """All messages of a topic of one broker, by queue."""
        side = self.side(cluster)
        await side.open()
        try:
            found = {}
            queues = await side.held(topic, "broker-0")
            for queue in sort_queues(set(queues)):
                held = queues[queue]
                mine: list[ReceivedMessage] = []
                while held.min_offset + len(mine) < held.max_offset:
                    mine += (await side.read(queue, held.min_offset + len(mine)))[1]
                found[queue.queue_id] = mine
            return found
        finally:
            await side.close()

    async def count(self, cluster: Cluster, topic: str) -> int:
        return sum(map(len, (await self.stored(cluster, topic)).values()))


@asynccontextmanager
async def two(path: Path, *, faults: bool = False, brokers: int = 1) -> AsyncIterator[Move]:
    async with Cluster(brokers=brokers) as source, Cluster(faults=faults) as target:
        yield Move(source, target, path / "state")


async def eventually(ask: Callable[[], Awaitable[int]], wanted: int, seconds: float = 10) -> None:
    """Ask until the answer is the one wanted; fail if it does not come in time."""
    async with asyncio.timeout(seconds):
        while await ask() != wanted:  # noqa: ASYNC110 - a server has to be asked
            await asyncio.sleep(0.02)


def seen(message: ReceivedMessage) -> tuple[object, ...]:
    """What a consumer sees of a message."""
    own = {k: v for k, v in message.user_properties.items() if k != "MIGRATED_FROM"}
    ids = (message.message_id, message.tag, message.keys, message.flag, message.reconsume_times)
    return (message.body, own, *ids)


async def test_copies_are_what_they_were_queue_by_queue_and_in_order(tmp_path: Path) -> None:
    async with two(tmp_path) as move:
        await move.source.create_topic("orders", queues=3)
        async with aio.Producer(move.source.address, group="p", compress_from=100) as producer:
            for number in range(60):
                message = aio.Message(
                    "orders",
                    b"%d" % number * (200 if number % 7 == 0 else 1),
                    tag="paid",
                    keys=["k", str(number)],
                    properties={"region": "eu", "ümlaut": "→"},
                    flag=number,
                )
                await producer.send(message, ordering_key=str(number % 5))
        assert await move.copy() == 60
        here = await move.stored(move.source, "orders")
        there = await move.stored(move.target, "orders")
        assert {q: list(map(seen, own)) for q, own in here.items()} == {
            q: list(map(seen, own)) for q, own in there.items()
        }
        births = [
            (mine.born_timestamp_ms, theirs.born_timestamp_ms)
            for queue_id in here
            for mine, theirs in zip(here[queue_id], there[queue_id], strict=True)
        ]
        assert all(0 <= mine - theirs <= 1000 for mine, theirs in births)


async def test_times_of_birth_can_be_kept_exactly(tmp_path: Path) -> None:
    async with two(tmp_path) as move:
        await move.source.create_topic("orders", queues=1)
        for number in range(3):
            await move.send(move.source, "orders", b"%d" % number, b"and")
        async with move.migration(born_within=0.0) as migration:
            with move.ledger() as ledger:
                await migration.copy(ledger)
        here = await move.stored(move.source, "orders")
        there = await move.stored(move.target, "orders")
        assert [m.born_timestamp_ms for m in here[0]] == [m.born_timestamp_ms for m in there[0]]


async def test_topics_and_groups_come_with_their_settings(tmp_path: Path) -> None:
    async with two(tmp_path, brokers=2) as move, aio.Admin(move.source.address) as admin:
        read_only = TopicConfig(topic_name="old", read_queue_nums=2, write_queue_nums=2)
        ordered = TopicConfig(topic_name="new", read_queue_nums=3, write_queue_nums=3, order=True)
        await admin.topics.create(read_only)
        await admin.topics.create(ordered)
        await move.send(move.source, "old", b"1", b"2")
        await admin.topics.set_permission("old", 4)
        group = GroupConfig(group_name="billing", retry_max_times=3, consume_broadcast_enable=False)
        await admin.groups.create(group)
        assert await move.copy() == 2
        await move.copy()  # and again: what was closed is opened, and closed again
        async with aio.Admin(move.target.address) as there:
            (topics,) = (await there.topics.configs()).values()
            assert (topics["old"].perm, topics["old"].read_queue_nums) == (4, 4)
            assert (topics["new"].order, topics["new"].write_queue_nums) == (True, 6)
            assert await there.name_servers.get("ORDER_TOPIC_CONFIG", "new") == "broker-0:6"
            assert (await there.groups.config("billing")).values() == [group]


async def test_a_run_cut_anywhere_goes_on_without_a_message_twice(tmp_path: Path) -> None:
    async with two(tmp_path) as move:
        await move.source.create_topic("orders", queues=2)
        for part in range(12):
            await move.send(move.source, "orders", *[b"%d/%d" % (part, n) for n in range(100)])
        for turns in (40, 80, 120, 200):  # steps of the loop after which it is cut off
            task = asyncio.create_task(move.copy())
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await move.copy()
        bodies = [
            m.body for own in (await move.stored(move.target, "orders")).values() for m in own
        ]
        assert len(bodies) == len(set(bodies)) == 1200


async def test_copies_nobody_wrote_down_are_found_on_the_target(tmp_path: Path) -> None:
    """What a process leaves that was killed between a send and its note."""
    async with two(tmp_path) as move:
        await move.source.create_topic("orders", queues=1)
        await move.send(move.source, "orders", *[b"%d" % n for n in range(50)])
        await move.copy()
        with move.ledger() as ledger:
            (state,) = ledger.queues()
            ledger._base.execute("UPDATE stretch SET count = 10")
            ledger._base.execute("UPDATE queue SET next = 10, seen = 10")
        assert await move.copy() == 0
        with move.ledger() as ledger:
            assert ledger.stretches(state.id) == [CopiedRange(0, 0, 50)]


async def test_a_send_that_got_lost_or_late_is_neither_lost_nor_sent_twice(tmp_path: Path) -> None:
    async with two(tmp_path, faults=True) as move:
        await move.source.create_topic("orders", queues=1)
        await move.send(move.source, "orders", *[b"%d" % n for n in range(600)])
        move.timeout = 0.3
        async with move.migration(patience=20.0) as migration:
            with move.ledger() as ledger:
                task = asyncio.create_task(migration.copy(ledger))
                await until(lambda: migration.progress.copied > 0, "the first copies")
                await move.target.partition("broker-0")
                await asyncio.wait({task}, timeout=0.8)
                assert not task.done()
                await move.target.heal("broker-0")
                await task
                (verdict,) = await migration.verify(ledger)
        assert (verdict.copies, verdict.missing) == (600, 0)
        stored = len((await move.stored(move.target, "orders"))[0])
        assert verdict.duplicates == stored - 600  # late ones are counted, not hidden


async def test_a_target_that_stays_away_is_told_and_the_run_can_go_on(tmp_path: Path) -> None:
    async with two(tmp_path, faults=True) as move:
        await move.source.create_topic("orders", queues=1)
        await move.send(move.source, "orders", b"1")
        await move.copy()
        await move.send(move.source, "orders", b"2")
        move.timeout = 0.2
        await move.target.partition("broker-0")
        async with move.migration(patience=0.1) as migration:
            with move.ledger() as ledger, pytest.raises(CannotMigrate, match=r"within 0\.2 s"):
                await migration.copy(ledger)
        await move.target.heal("broker-0")
        move.timeout = 5.0
        assert await move.copy() <= 1
        assert [m.body for m in (await move.stored(move.target, "orders"))[0]] == [b"1", b"2"]


async def consume(cluster: Cluster, group: str, topic: str, count: int) -> list[bytes]:
    consumer = aio.PullConsumer(cluster.address, group=group, consume_from=FIRST, pull_batch=7)
    got: list[bytes] = []
    async with consumer.subscribe(topic):
        while len(got) < count:
            got += [message.body for message in await consumer.poll(5.0)]
    return got


async def test_a_group_goes_on_behind_its_last_message(tmp_path: Path) -> None:
    async with two(tmp_path, brokers=2) as move:
        await move.source.create_topic("orders", queues=2)
        await move.send(move.source, "orders", *[b"%d" % n for n in range(100)])
        first = await consume(move.source, "billing", "orders", 30)
        await move.copy()
        async with move.migration() as migration:
            with move.ledger() as ledger:
                (moved,) = await migration.move_groups(ledger, ["billing"])
        assert (moved.moved, moved.again, moved.source_members) == (True, 0, 0)
        rest = await consume(move.target, "billing", "orders", 100 - len(first))
        assert Counter(first + rest) == Counter(b"%d" % n for n in range(100))


async def test_messages_of_producers_that_moved_first_are_not_passed_over(tmp_path: Path) -> None:
    async with two(tmp_path) as move:
        await move.source.create_topic("orders", queues=1)
        await move.send(move.source, "orders", b"0", b"1", b"2")
        await move.copy()
        await move.send(move.target, "orders", b"new")
        await move.send(move.source, "orders", b"3", b"4")
        await move.copy()
        await consume(move.source, "billing", "orders", 5)
        async with move.migration() as migration:
            with move.ledger() as ledger:
                (moved,) = await migration.move_groups(ledger, ["billing"])
        assert moved.again == 2  # those behind the new one
        assert await consume(move.target, "billing", "orders", 3) == [b"new", b"3", b"4"]


async def test_offsets_of_a_group_that_consumes_on_the_target_are_left_alone(
    tmp_path: Path,
) -> None:
    async with two(tmp_path) as move:
        await move.source.create_topic("orders", queues=1)
        await move.send(move.source, "orders", b"0", b"1")
        await consume(move.source, "billing", "orders", 2)
        await move.copy()
        consumer = aio.PushConsumer(move.target.address, group="billing", consume_from=FIRST)
        consumer.subscribe("orders", "*", lambda message: None)
        async with consumer, move.migration() as migration:
            with move.ledger() as ledger:
                (moved,) = await migration.move_groups(ledger, ["billing"])
        assert (moved.moved, moved.target_members) == (False, 1)


async def test_a_copy_that_lags_is_counted_as_coming_again(tmp_path: Path) -> None:
    async with two(tmp_path) as move:
        await move.source.create_topic("orders", queues=1)
        await move.send(move.source, "orders", b"0", b"1")
        await move.copy()
        await move.send(move.source, "orders", b"2", b"3")
        await consume(move.source, "billing", "orders", 4)
        async with move.migration() as migration:
            with move.ledger() as ledger:
                (moved,) = await migration.move_groups(ledger, ["billing"], wait=0.1)
        assert moved.again == 2
        await move.copy()
        assert await consume(move.target, "billing", "orders", 2) == [b"2", b"3"]


async def test_what_waits_is_named_moved_and_delivered_once_when_it_is_due(tmp_path: Path) -> None:
    async with two(tmp_path) as move:
        await move.source.create_topic("orders", queues=1)
        async with aio.Producer(move.source.address, group="p") as producer:
            await producer.send(aio.Message("orders", b"level"), delay_level=5)
            receipt = await producer.send(aio.Message("orders", b"timed"), delay=3600.0)
            back = await producer.send(aio.Message("orders", b"taken back"), delay=3600.0)
            await producer.recall("orders", back.recall_handle or "")
        async with move.migration() as migration:
            with move.ledger() as ledger:
                outlook = await migration.outlook(ledger)
                assert outlook.waiting.messages == 2
                due_ms = outlook.waiting.last_due_ms or 0
                done = await migration.copy(ledger, move_delayed=True)
                assert (done.copied, done.moved_delayed) == (0, 2)
                assert (await migration.outlook(ledger)).waiting.messages == 0
                done = await migration.copy(ledger, move_delayed=True)
                assert done.moved_delayed == 0
        async with move.migration() as migration:
            with move.ledger() as ledger:
                keys = ledger._base.execute("SELECT key, due_ms FROM delayed").fetchall()
        assert (f"orders/{receipt.message_id}", due_ms) in keys
        side = move.side(move.target)
        await side.open()
        try:
            place = MessageQueue("rmq_sys_wheel_timer", "broker-0", 0)
            messages = (await side.read(place, 0))[1]
        finally:
            await side.close()
        waiting = {m.body: int(m.get_property("TIMER_OUT_MS") or 0) for m in messages}
        assert waiting == {b"level": waiting[b"level"], b"timed": due_ms}


async def test_a_message_moved_while_it_waited_is_not_copied_when_it_comes(tmp_path: Path) -> None:
    async with two(tmp_path) as move:
        await move.source.create_topic("orders", queues=1)
        async with aio.Producer(move.source.address, group="p") as producer:
            receipt = await producer.send(aio.Message("orders", b"soon"), delay_level=1)
            await producer.send(aio.Message("orders", b"plain"))
        with move.ledger() as ledger:
            ledger.note_delayed(f"orders/{receipt.message_id}", 0)
        await eventually(lambda: move.count(move.source, "orders"), 2)
        await move.copy()
        assert [m.body for m in (await move.stored(move.target, "orders"))[0]] == [b"plain"]
        async with move.migration() as migration:
            with move.ledger() as ledger:
                (verdict,) = await migration.verify(ledger)
        assert (verdict.messages, verdict.copies, verdict.moved, verdict.missing) == (2, 1, 1, 0)


async def test_dead_letters_and_retries_come_with_their_counts(tmp_path: Path) -> None:
    async with two(tmp_path, brokers=2) as move:
        await move.source.create_topic("orders", queues=1)
        await move.send(move.source, "orders", b"bad")

        def fail(message: ReceivedMessage) -> None:
            raise aio.RetryLater(-1)

        consumer = aio.PushConsumer(move.source.address, group="billing", consume_from=FIRST)
        consumer.subscribe("orders", "*", fail)
        async with consumer, aio.Admin(move.source.address) as admin:

            async def dead() -> int:
                return (await admin.topics.names()).count("%DLQ%billing")

            await eventually(dead, 1)
        await move.copy()
        (found,) = [
            m for own in (await move.stored(move.target, "%DLQ%billing")).values() for m in own
        ]
        assert found.body == b"bad"
        assert (found.reconsume_times, found.get_property("RETRY_TOPIC")) == (1, "orders")


async def test_a_lost_file_does_not_copy_everything_again(tmp_path: Path) -> None:
    async with two(tmp_path) as move:
        await move.source.create_topic("orders", queues=2)
        await move.send(move.source, "orders", *[b"%d" % n for n in range(40)])
        await move.copy()
        move.path = tmp_path / "another"
        with pytest.raises(CannotMigrate, match="adopt them with --adopt"):
            await move.copy()
        await move.send(move.source, "orders", b"more")
        assert await move.copy(adopt=True) == 1
        async with move.migration() as migration:
            with move.ledger() as ledger:
                told: list[tuple[int, int]] = []
                verdicts = await migration.verify(ledger, lambda *each: told.append(each))
                assert told == [(n, len(verdicts)) for n in range(1, len(verdicts) + 1)]
        assert sum(each.copies for each in verdicts) == 41
        assert all(each.duplicates == each.missing == 0 for each in verdicts)


async def test_what_is_missing_or_changed_is_found(tmp_path: Path) -> None:
    async with two(tmp_path) as move:
        await move.source.create_topic("orders", queues=1)
        await move.send(move.source, "orders", *[b"%d" % n for n in range(5)])
        await move.copy()
        async with move.migration() as migration:
            with move.ledger() as ledger:
                (state,) = ledger.queues()
                side = move.side(move.target)
                await side.open()
                _, messages, _ = await side.read(state.target, 3)
                async with aio.Producer(move.target.address, group="p") as producer:
                    copy = messages[0].get_property("MIGRATED_FROM") or ""
                    other = {"MIGRATED_FROM": copy.replace("/3/", "/5/")}
                    await producer.send(aio.Message("orders", b"other", properties=other))
                    again = {"MIGRATED_FROM": copy}
                    await producer.send(aio.Message("orders", b"3", properties=again))
                await side.close()
                await move.send(move.source, "orders", b"5", b"6")
                ledger.record(state.id, [], 7, 7)
                (verdict,) = await migration.verify(ledger)
        assert (verdict.messages, verdict.copies, verdict.different) == (7, 6, 1)
        assert (verdict.missing, verdict.duplicates, verdict.sound) == (1, 1, False)
        assert verdict.source_digest != verdict.target_digest


async def test_following_takes_new_topics_in_and_ends_when_it_is_quiet(tmp_path: Path) -> None:
    async with two(tmp_path) as move:
        await move.source.create_topic("orders", queues=1)
        await move.send(move.source, "orders", b"0")
        async with move.migration(replan=0.3) as migration:
            with move.ledger() as ledger:
                task = asyncio.create_task(migration.copy(ledger, follow=True, quiet=1.5))
                await until(lambda: migration.progress.caught_up, "all to be copied")
                await move.source.create_topic("later", queues=1)
                await move.send(move.source, "later", b"1")
                await move.send(move.source, "orders", b"2")
                done = await task
        assert (done.copied, done.topics) == (3, 2)


async def test_a_queue_that_went_back_is_refused(tmp_path: Path) -> None:
    async with two(tmp_path) as move:
        await move.source.create_topic("orders", queues=1)
        await move.send(move.source, "orders", b"0")
        await move.copy()
        with move.ledger() as ledger:
            ledger._base.execute("UPDATE queue SET next = 9")
        async with move.migration() as migration:
            with move.ledger() as ledger:
                (verdict,) = await migration.verify(ledger)
                assert (verdict.copies, verdict.missing) == (1, 0)
                with pytest.raises(CannotMigrate, match="has the source lost data"):
                    await migration.copy(ledger)


@asynccontextmanager
async def begun_anew(path: Path) -> AsyncIterator[tuple[Move, MigrationLedger]]:
    """A source that lost its data after three messages of it were copied, and the file of that."""
    async with Cluster() as target:
        async with Cluster() as source:
            move = Move(source, target, path / "state")
            await source.create_topic("orders", queues=1)
            await move.send(source, "orders", b"0", b"1", b"2")
            await move.copy()
            ledger = move.ledger()
        async with Cluster() as source:
            await source.create_topic("orders", queues=1)
            move = Move(source, target, path / "another")
            await move.send(source, "orders", b"3")
            with ledger:
                yield move, ledger


async def test_a_source_begun_anew_is_refused_also_with_a_new_file(tmp_path: Path) -> None:
    async with begun_anew(tmp_path) as (move, _):
        with pytest.raises(CannotMigrate, match="has the source lost data"):
            await move.copy(adopt=True)


async def test_offsets_of_a_source_begun_anew_are_refused(tmp_path: Path) -> None:
    async with begun_anew(tmp_path) as (move, ledger):
        await consume(move.source, "billing", "orders", 1)
        async with move.migration() as migration:
            with pytest.raises(CannotMigrate, match="ends at 1, but was copied up to 3"):
                await migration.move_groups(ledger, ["billing"])
        assert await consume(move.target, "billing", "orders", 3) == [b"0", b"1", b"2"]


async def test_two_do_not_copy_with_one_file(tmp_path: Path) -> None:
    async with two(tmp_path) as move:
        with move.ledger() as mine, move.ledger() as other:
            mine.lock()
            with pytest.raises(MigrationFileUnusable, match="another"):
                other.lock()


async def test_a_file_of_another_migration_is_refused(tmp_path: Path) -> None:
    MigrationLedger(tmp_path / "state", "a:1", "b:1", create=True).close()
    with pytest.raises(MigrationFileUnusable, match="from a:1 to b:1, not from a:1 to c:1"):
        MigrationLedger(tmp_path / "state", "a:1", "c:1", create=True)
    with pytest.raises(MigrationFileUnusable, match="it does not exist; run `copy` first"):
        MigrationLedger(tmp_path / "none", "a:1", "c:1", create=False)
    (tmp_path / "bad").write_bytes(b"something else, long enough to be looked at" * 30)
    with pytest.raises(MigrationFileUnusable, match="not a database"):
        MigrationLedger(tmp_path / "bad", "a:1", "c:1", create=True)
