"""What goes wrong around a migration: deleted topics, a target without its data, odd files."""

import asyncio
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pocketmq import aio
from pocketmq.admin.migration.copying import CopyRules, QueueCopier
from pocketmq.admin.migration.ledger import MigrationLedger
from pocketmq.admin.migration.migration import Migration
from pocketmq.embedded.aio import Cluster
from pocketmq.errors import CannotMigrate, MigrationFileUnusable
from pocketmq.model import GroupConfig, MessageQueue
from tests.admin.migration.test_migration import Move, two
from tests.loops import until


async def delete(cluster: Cluster, topic: str) -> None:
    async with aio.Admin(cluster.address) as admin:
        await admin.topics.delete(topic, "DefaultCluster")


async def test_a_cluster_is_not_copied_to_itself_under_another_name(tmp_path: Path) -> None:
    async with Cluster() as cluster:
        move = Move(cluster, cluster, tmp_path / "state")
        with pytest.raises(CannotMigrate, match=r"'broker-0' at .* is on both sides"):
            await move.copy()


async def test_a_topic_deleted_in_the_source_holds_nothing_else_up(tmp_path: Path) -> None:
    async with two(tmp_path) as move:
        for topic in ("orders", "gone"):
            await move.source.create_topic(topic, queues=1)
            await move.send(move.source, topic, b"0", b"1")
        async with move.migration(replan=600.0) as migration:
            with move.ledger() as ledger:
                task = asyncio.create_task(migration.copy(ledger, follow=True))
                await until(lambda: migration.progress.caught_up, "all to be copied")
                await delete(move.source, "gone")
                await move.send(move.source, "orders", b"2")
                await until(lambda: migration.progress.copied == 5, "what came afterwards")
                migration.stop.set()
                done = await task
                assert (done.deleted, done.behind) == ({"gone"}, 0)
                rows = [(each.topic, each.behind) for each in await migration.status(ledger)]
                assert rows == [("gone", 0), ("orders", 0)]
                gone, orders = await migration.verify(ledger)
        assert (gone.messages, gone.gone, gone.sound) == (0, 2, True)
        assert (orders.messages, orders.copies, orders.sound) == (3, 3, True)
        assert await move.copy() == 0
        assert await move.count(move.target, "gone") == 2


async def test_topics_not_asked_for_any_more_are_left_as_they_are(tmp_path: Path) -> None:
    async with two(tmp_path) as move:
        for topic in ("orders", "other"):
            await move.source.create_topic(topic, queues=1)
            await move.send(move.source, topic, b"0")
        assert await move.copy() == 2
        for topic in ("orders", "other"):
            await move.send(move.source, topic, b"1")
        async with move.migration("orders") as migration:
            with move.ledger() as ledger:
                assert (await migration.copy(ledger)).copied == 1
        assert await move.count(move.target, "other") == 1


async def test_a_target_that_lost_copies_is_noticed_before_more_are_sent(tmp_path: Path) -> None:
    async with two(tmp_path) as move:
        for topic in ("orders", "other"):
            await move.source.create_topic(topic, queues=1)
            await move.send(move.source, topic, b"0", b"1")
        await move.copy()
        await delete(move.target, "orders")
        await move.target.create_topic("orders", queues=1)
        await move.send(move.source, "orders", b"2")
        with pytest.raises(
            CannotMigrate, match="copy at offset 1 of the target is gone: has the target lost data"
        ):
            await move.copy()
        assert await move.count(move.target, "orders") == 0
        await delete(move.target, "orders")  # as the message says
        move.path = tmp_path / "another"
        assert await move.copy(adopt=True) == 3
        assert await move.count(move.target, "other") == 2


async def test_copies_are_known_although_a_producer_has_moved_since(tmp_path: Path) -> None:
    async with two(tmp_path) as move:
        await move.source.create_topic("orders", queues=1)
        await move.send(move.source, "orders", b"0")
        await move.copy()
        await move.send(move.target, "orders", b"new")
        move.path = tmp_path / "another"
        with pytest.raises(CannotMigrate, match="adopt them with --adopt"):
            await move.copy()


async def test_nothing_is_waited_for_in_a_queue_whose_messages_are_all_thrown_away(
    tmp_path: Path,
) -> None:
    async with two(tmp_path) as move:
        await move.source.create_topic("orders", queues=1)
        async with aio.Admin(move.source.address) as admin:
            await admin.groups.create(GroupConfig(group_name="billing"))
            await admin.offsets.commit("billing", MessageQueue("orders", "broker-0", 0), 7)
        await move.copy()
        await move.send(move.source, "orders", *[b"%d" % n for n in range(7)])
        sides = move.side(move.source), move.side(move.target)
        async with Migration(*sides) as migration:
            with move.ledger() as ledger:
                ledger._base.execute("UPDATE queue SET next = NULL")
                (state,) = ledger.queues()
                copier = QueueCopier(sides, ledger, state, CopyRules(), migration.stop)
                await copier.run(7, 7, int)  # as it is when the first offset is the last
                (moved,) = await migration.move_groups(ledger, ("billing",), wait=0.0)
        assert (moved.queues[0].committed, moved.queues[0].offset, moved.again) == (7, 0, 0)


async def test_a_group_set_behind_the_end_of_a_queue_goes_on_at_its_end(tmp_path: Path) -> None:
    async with two(tmp_path) as move:
        await move.source.create_topic("orders", queues=1)
        await move.send(move.source, "orders", b"0", b"1")
        async with aio.Admin(move.source.address) as admin:
            await admin.groups.create(GroupConfig(group_name="billing"))
            await admin.offsets.commit("billing", MessageQueue("orders", "broker-0", 0), 5000)
        await move.copy()
        async with move.migration() as migration:
            with move.ledger() as ledger:
                (moved,) = await migration.move_groups(ledger, ("billing",), wait=0.0)
        assert (moved.queues[0].offset, moved.again) == (2, 0)


async def test_a_message_moved_twice_while_it_waited_is_counted(tmp_path: Path) -> None:
    """What a process leaves that was killed after it had moved messages, before its note."""
    async with two(tmp_path) as move:
        await move.source.create_topic("orders", queues=1)
        await move.copy()
        with move.ledger() as ledger:
            async with aio.Producer(move.target.address, group="p") as producer:
                for place in ("noted/0", "noted/0", "unknown/1"):
                    properties = {"MIGRATED_DELAYED": f"{ledger.migration}/b/{place}"}
                    message = aio.Message("orders", b"0", properties=properties)
                    receipt = await producer.send(message)
                    if place == "noted/0":
                        ledger.note_delayed(f"orders/{receipt.message_id}", 0)
                foreign = {"MIGRATED_DELAYED": "another/b/0/0"}
                await producer.send(aio.Message("orders", b"0", properties=foreign))
            async with move.migration() as migration:
                (verdict,) = await migration.verify(ledger)
        assert (verdict.duplicates, verdict.others) == (2, 1)


async def test_a_file_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    for number, table in enumerate(("fact", "bookmark")):
        path = tmp_path / str(number)
        base = sqlite3.connect(path)
        base.execute(f"CREATE TABLE {table} (name TEXT, value TEXT)")
        base.close()
        before = path.read_bytes()
        with pytest.raises(MigrationFileUnusable, match="not the state file of a migration"):
            MigrationLedger(path, "a:1", "b:1", create=True)
        assert path.read_bytes() == before


async def test_a_file_that_breaks_in_the_middle_is_told_as_such(tmp_path: Path) -> None:
    ledger = MigrationLedger(tmp_path / "state", "a:1", "b:1", create=True)
    ledger._base.execute("DROP TABLE queue")
    with pytest.raises(MigrationFileUnusable, match="no such table: queue"), ledger:
        ledger.queues()


def test_many_that_open_a_new_file_at_once_share_one_migration(tmp_path: Path) -> None:
    for attempt in range(30):
        path, together = tmp_path / str(attempt), threading.Barrier(6)

        def opened(path: Path = path, together: threading.Barrier = together) -> str:
            together.wait()
            with MigrationLedger(path, "a:1", "b:1", create=True) as ledger:
                return ledger.migration

        with ThreadPoolExecutor(6) as pool:
            found = [pool.submit(opened) for _ in range(6)]
        assert len({each.result() for each in found}) == 1
