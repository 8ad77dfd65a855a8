"""Offsets of broadcasting consumers: Java's file, whole whatever happens."""

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from pocketmq.balance.consumer.offsets import NO_OFFSET
from pocketmq.client.group.local_offsets import LocalOffsets, offsets_file, pretty
from pocketmq.errors import InvalidInput
from pocketmq.model import MessageModel, MessageQueue
from tests.client.group.groups import cluster, member, members, queues_of, send
from tests.loops import until

QUEUES = queues_of(1, 2)
JAVA = (
    '{\n\t"offsetTable":{\n'
    '\t\t{\n\t\t\t"brokerName":"broker-0",\n\t\t\t"queueId":0,\n\t\t\t"topic":"orders"\n\t\t}:7,\n'
    '\t\t{\n\t\t\t"brokerName":"broker-0",\n\t\t\t"queueId":1,\n\t\t\t"topic":"orders"\n\t\t}:9\n'
    "\t}\n}"
)
BROADCASTING = MessageModel.BROADCASTING


def store(directory: Path) -> LocalOffsets:
    return LocalOffsets(offsets_file(str(directory), "10.0.0.1@DEFAULT", "billing"))


def test_the_file_is_where_java_has_it() -> None:
    assert offsets_file("", "10.0.0.1@DEFAULT", "billing") == (
        Path.home() / ".rocketmq_offsets" / "10.0.0.1@DEFAULT" / "billing" / "offsets.json"
    )


async def test_the_file_looks_as_java_writes_it(tmp_path: Path) -> None:
    offsets = store(tmp_path)
    for queue, offset in zip(QUEUES, (7, 9), strict=True):
        offsets.table.update(queue, offset, increase_only=True)
    await offsets.persist_all(QUEUES)
    assert offsets.file.read_text() == JAVA
    assert pretty({}) == '{\n\t"offsetTable":{}\n}'
    again = store(tmp_path)
    again.load()
    assert again.table.of_topic("orders") == {QUEUES[0]: 7, QUEUES[1]: 9}


async def test_what_was_before_is_kept_beside_and_read_if_the_file_is_broken(
    tmp_path: Path,
) -> None:
    offsets = store(tmp_path)
    for offset in (7, 8):
        offsets.table.update(QUEUES[0], offset, increase_only=True)
        offsets.persist(QUEUES[0])
    for damage in ("", '{\n\t"offsetTable":{\n\t\t{'):
        offsets.file.write_text(damage)
        assert await store(tmp_path).read(QUEUES[0]) == 7
    offsets.file.unlink()
    assert await store(tmp_path).read(QUEUES[0]) == 7


async def test_an_unreadable_file_without_backup_stops_the_start(tmp_path: Path) -> None:
    offsets = store(tmp_path)
    offsets.file.parent.mkdir(parents=True)
    offsets.file.write_text("{{{{")
    with pytest.raises(InvalidInput, match="repair or remove"):
        offsets.load()
    offsets.table.update(QUEUES[0], 5, increase_only=True)
    offsets.persist(QUEUES[0])  # is not stored, and says so in the log
    assert offsets.file.read_text() == "{{{{"


async def test_queues_that_are_not_held_stay_in_the_file(tmp_path: Path) -> None:
    first = store(tmp_path)
    first.table.update(QUEUES[0], 3, increase_only=True)
    await first.persist_all(QUEUES[:1])
    second = store(tmp_path)
    second.table.update(QUEUES[1], 4, increase_only=True)
    await second.persist_all(QUEUES[1:])
    assert await store(tmp_path).read(QUEUES[0]) == 3
    assert await store(tmp_path).read(QUEUES[1]) == 4
    assert await store(tmp_path).read(MessageQueue("orders", "broker-9", 0)) == NO_OFFSET


async def test_every_broadcasting_member_gets_everything(tmp_path: Path) -> None:
    settings = {"model": BROADCASTING, "offsets_dir": str(tmp_path)}
    async with cluster(1, 2) as running:
        async with members(running.address, "a", "b", **settings) as group:
            await until(lambda: all(len(one.queues()) == 2 for one in group), "all queues twice")
            bodies = await send(running.address, 10)
            await until(lambda: all(len(one.got) == 10 for one in group), "everything twice")
            assert all(sorted(one.bodies) == sorted(bodies) for one in group)
        await send(running.address, 4)
        async with member(running.address, "a", **settings) as again:
            await until(lambda: len(again.got) == 4, "the rest")


_DOOMED = """
import asyncio, sys
from pocketmq.model.kinds import MessageModel
from tests.client.group.groups import member
async def main():
    async with member(sys.argv[1], "a", model=MessageModel.BROADCASTING, offsets_dir=sys.argv[2],
                      persist_first_after=0.01, persist_interval=0.01) as one:
        while len(one.got) < 20:
            await asyncio.sleep(0.01)
        print("consumed", flush=True)
        await asyncio.Event().wait()
asyncio.run(main())
"""


async def test_a_member_that_is_killed_goes_on_where_its_file_says(tmp_path: Path) -> None:
    async with cluster(1, 2) as running:
        await send(running.address, 20)
        doomed = await asyncio.create_subprocess_exec(
            sys.executable, "-c", _DOOMED, running.address, str(tmp_path),
            stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert doomed.stdout is not None
        async with asyncio.timeout(60):
            assert await doomed.stdout.readline() == b"consumed\n"
        file = offsets_file(str(tmp_path), "10.0.0.1@a", "billing")
        await until(lambda: file.exists() and file.read_text().count(":10") == 2, "offsets")
        doomed.send_signal(signal.SIGKILL)
        await doomed.wait()
        fresh = await send(running.address, 6)
        settings = {"model": BROADCASTING, "offsets_dir": str(tmp_path)}
        async with member(running.address, "a", **settings) as again:
            await until(lambda: len(again.got) >= 6, "the rest")
            assert sorted(again.bodies) == sorted(fresh)


_WRITING = """
import sys
from pathlib import Path
from pocketmq.client.group.local_offsets import LocalOffsets, offsets_file
from pocketmq.model.queue import MessageQueue
offsets = LocalOffsets(offsets_file(sys.argv[1], "10.0.0.1@DEFAULT", "billing"))
queues = [MessageQueue("orders", "broker-0", each) for each in range(50)]
for offset in range(1, 1000000):
    for queue in queues:
        offsets.table.update(queue, offset, increase_only=True)
    offsets._store({queue: offset for queue in queues})
    if offset == 5:
        print("writing", flush=True)
"""


async def test_a_kill_in_the_middle_of_writing_leaves_one_whole_state(tmp_path: Path) -> None:
    queues = queues_of(1, 50)
    for attempt in range(2):
        writer = await asyncio.create_subprocess_exec(
            sys.executable, "-c", _WRITING, str(tmp_path), stdout=asyncio.subprocess.PIPE
        )
        assert writer.stdout is not None
        async with asyncio.timeout(60):
            assert await writer.stdout.readline() == b"writing\n"
        file = store(tmp_path).file
        before = file.stat().st_mtime_ns
        await until(lambda f=file, b=before: f.stat().st_mtime_ns != b, "one more write")  # type: ignore[misc]
        writer.send_signal(signal.SIGKILL)
        await writer.wait()
        survivor = store(tmp_path)
        survivor.load()
        found = survivor.table.of_topic("orders")
        assert set(found) == set(queues), attempt
        assert len(set(found.values())) == 1, attempt
