"""A broker whose disk fills up, or whose directory is taken away, says so."""

from pathlib import Path

import msgspec
import pytest

from pocketmq.broker.upkeep.cleaning import clean_store
from pocketmq.protocol import RequestCode as Code
from tests.broker.pop.counter import create
from tests.broker.running import LoopClock, client, pull_fields, running, send_fields
from tests.loops import leap, leaping, until

SEND = 310
SEGMENT = 64 * 1024


async def test_messages_that_a_full_disk_takes_are_counted_in_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The group has consumed the first ten of them; the other topic has no group."""
    small = running(tmp_path, mapped_file_size_commit_log=SEGMENT)
    async with small as (broker, address), client(address) as peer:
        for topic in ("T", "U"):
            await create(peer, topic)
        for _ in range(30):
            for topic in ("T", "U"):
                answer = await peer.ask(SEND, send_fields(topic), bytes(2000))
                assert answer.code == 0
        await peer.ask(Code.PULL_MESSAGE, pull_fields("T", sysFlag="4"))
        offset = {"consumerGroup": "CG", "topic": "T", "queueId": "0", "commitOffset": "10"}
        assert (await peer.ask(Code.UPDATE_CONSUMER_OFFSET, offset)).code == 0
        store = broker.state.store
        assert len(store.log.segments) == 2
        options = msgspec.structs.replace(store.options, disk_force_ratio=0.0, disk_full_ratio=1.0)
        store.keep(options)
        await until(lambda: clean_store(broker.state) == 1, "a checkpoint, which comes first")
        low = {topic: store.queues.of(topic)[0].min_offset for topic in ("T", "U")}
        assert clean_store(broker.state) == 0
    assert low["T"] > 10
    (record,) = [each for each in caplog.records if each.name == "pocketmq.broker"]
    assert record.levelname == "WARNING"
    assert record.message == (
        "messages deleted because the disk is nearly full, whatever their age: "
        f"bytes={SEGMENT} messages={low['T'] + low['U']} topics=T,U "
        f"unread_by_groups=CG/T:{low['T'] - 10}; free some space on the disk"
    )


@leaping
async def test_a_broker_whose_directory_was_moved_takes_no_messages(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "data"
    async with running(path, LoopClock()) as (_, address), client(address) as peer:
        await create(peer, "T")
        assert (await peer.ask(SEND, send_fields("T"), b"kept")).code == 0
        path.rename(tmp_path / "moved")
        await leap(1)
        answer = await peer.ask(SEND, send_fields("T"), b"refused")
        assert answer.code == 14  # as for any store that cannot be written to
    assert not path.exists()
    (report,) = [each.message for each in caplog.records if "refusing all messages" in each.message]
    assert f"the data directory {path} was moved or deleted" in report
