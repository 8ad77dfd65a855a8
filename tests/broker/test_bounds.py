"""What one client, one setting or one deletion can do to a broker, and what it cannot."""

import asyncio
import os
from contextlib import suppress
from pathlib import Path

import pytest

from pocketmq.broker.assembly import open_store
from pocketmq.broker.balancing.queue_locks import LEASE, GroupQueueLocks
from pocketmq.broker.config import BrokerConfig
from pocketmq.errors import InvalidInput, ResponseCode, StoreFailed, StoreFull
from pocketmq.model import MessageQueue
from pocketmq.protocol import RequestCode as Code
from pocketmq.store import StoreOptions
from tests.broker.tables import Desk
from tests.broker.wire import Wire

SEGMENT = 1 << 20


def test_one_heartbeat_cannot_fill_the_tables_of_topics_and_groups() -> None:
    desk = Desk()
    topics = len(desk.state.topics)
    groups = [{"groupName": f"g{number}", "subscriptionDataSet": []} for number in range(4097)]
    body = {"clientID": "c", "consumerDataSet": groups, "producerDataSet": []}
    answer = desk.ask(Code.HEART_BEAT, {}, body)

    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert answer.remark == "a client can be a member of 4096 groups at most"
    assert len(desk.state.topics) == topics
    assert desk.state.consumers.groups == {}


def producers(*names: str, client: str = "c") -> dict[str, object]:
    groups = [{"groupName": name} for name in names]
    return {"clientID": client, "consumerDataSet": [], "producerDataSet": groups}


def test_many_heartbeats_of_a_client_cannot_fill_the_table_of_producers() -> None:
    desk, wire = Desk(), Wire("a")
    names = [f"g{number}" for number in range(4096)]
    for groups in (names[:2000], names[2000:], names[:10]):
        answer = desk.ask(Code.HEART_BEAT, {}, producers(*groups), wire)
        assert answer.code == ResponseCode.SUCCESS
    answer = desk.ask(Code.HEART_BEAT, {}, producers("one more"), wire)

    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert answer.remark == "a client can be a member of 4096 groups at most"
    assert len(desk.state.producers.groups) == 4096


@pytest.mark.parametrize("body", [producers("g" * 1025), producers("g", client="c" * 1025)])
def test_names_in_heartbeats_have_a_longest(body: dict[str, object]) -> None:
    desk = Desk()
    answer = desk.ask(Code.HEART_BEAT, {}, body)

    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert answer.remark == "a client id or a producer group has more than 1024 characters"
    assert desk.state.producers.groups == {}


def test_locks_over_the_limit_are_not_granted_until_others_end() -> None:
    locks = GroupQueueLocks(limit=2)
    queues = [MessageQueue("T", "b", number) for number in range(4)]

    assert locks.lock("g", "a", queues, 0.0) == queues[:2]
    assert locks.lock("g", "a", queues, 1.0) == queues[:2]
    assert locks.lock("h", "b", queues, 1.0) == []
    locks.unlock("g", "a", queues[:1])
    assert locks.lock("h", "b", queues, 2.0) == queues[:1]
    locks.expire(2.0 + LEASE)
    assert locks.lock("g", "a", queues, 2.0 + LEASE) == queues[:1]


def test_offsets_of_a_deleted_topic_do_not_come_back_after_a_crash(tmp_path: Path) -> None:
    """A topic made anew begins at 0: a group sent to an old offset would miss what is there."""
    desk = Desk(tmp_path)
    desk.make_topic("T")
    desk.store_message("T", 0)
    desk.state.offsets.commit("g", "T", 0, 1)
    desk.state.store.metadata.save_consumer_offsets([("T", "g", 0, 1)])
    assert desk.ask(Code.DELETE_TOPIC_IN_BROKER, {"topic": "T"}).code == ResponseCode.SUCCESS
    assert desk.state.store.metadata.consumer_offsets() == []
    desk.close()


def test_a_topic_that_cannot_be_deleted_stays_whole(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.make_topic("T")
    desk.store_message("T", 0)
    desk.state.offsets.commit("g", "T", 0, 1)
    delete = desk.state.store.metadata.delete_topic

    def refuse(topic: str, position: int) -> None:
        raise StoreFailed("the disk is read-only")

    desk.state.store.metadata.delete_topic = refuse  # type: ignore[method-assign]
    assert desk.ask(Code.DELETE_TOPIC_IN_BROKER, {"topic": "T"}).code != ResponseCode.SUCCESS
    desk.state.store.metadata.delete_topic = delete  # type: ignore[method-assign]
    assert "T" in desk.state.topics
    assert desk.state.offsets.query("g", "T", 0) == 1
    assert desk.state.store.queue("T", 0) is not None
    desk.close()


async def test_without_a_disk_the_oldest_messages_make_room_for_new_ones(tmp_path: Path) -> None:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for data, expected in ((None, memory // 4), (tmp_path, 0)):
        store = open_store(BrokerConfig(), data, bytes(8))
        assert store.options.retention_bytes == expected
        store.close()
    small = BrokerConfig(mapped_file_size_commit_log=SEGMENT, file_reserved_bytes=3 * SEGMENT)
    store = open_store(small, None, bytes(8))
    desk = Desk()
    desk.state.store = store
    for number in range(10):
        desk.store_message("T", 0, b"%02d" % number + bytes(SEGMENT // 2))
    store.write()
    done = asyncio.Event()
    store.checkpoint(lambda error: done.set())
    await done.wait()
    store.clean(desk.clock.now_ms())
    queue = store.queue("T", 0)
    assert queue is not None
    assert sum(segment.end - segment.start for segment in store.log.segments) <= 3 * SEGMENT
    assert 0 < queue.min_offset < queue.next_offset == 10
    store.close()


def test_without_a_disk_senders_are_refused_until_old_messages_went() -> None:
    """Retention comes now and then; meanwhile memory is bounded, too."""
    size, count = 32 << 20, 0
    desk = Desk(options=StoreOptions(segment_size=size, retention_bytes=2 * size))
    body = bytes(12 << 20)
    with suppress(StoreFull):
        for _ in range(20):
            desk.store_message("T", 0, body)
            desk.state.store.write()
            count += 1
    assert count == 10  # five files of the log and one of the index
    store = desk.state.store
    queue = store.queue("T", 0)
    assert queue is not None
    stored = queue.next_offset
    store.checkpoint()
    store.clean(desk.clock.now_ms())
    desk.store_message("T", 0, body)
    assert queue.next_offset == stored + 1
    assert queue.min_offset > 0
    desk.close()


@pytest.mark.parametrize(
    "setting",
    [
        "mappedFileSizeCommitLog=9223372036854775807",
        "mappedFileSizeCommitLog=-1",
        "flushConsumerOffsetInterval=0",
        "fileReservedTime=-1",
        "fileReservedBytes=-1",
        "brokerName='a b'",
        "brokerName='a;b'",
        "brokerClusterName='a;b'",
    ],
)
def test_settings_no_broker_could_work_with_are_refused(setting: str) -> None:
    key, _, value = setting.partition("=")
    with pytest.raises(InvalidInput, match=f"invalid setting {setting}"):
        BrokerConfig.from_properties({key: value.strip("'")})
