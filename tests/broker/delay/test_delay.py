"""Delay levels: the rules, and delivery on a real store with time as the test says."""

from pathlib import Path

import pytest

from pocketmq.broker.delay import rules
from pocketmq.broker.delay.delivery import DeliveryBudget
from pocketmq.broker.delay.progress import DelayProgress, SavedProgress, encode_progress
from pocketmq.errors import BodyMalformed, ServerError, StoreFull
from pocketmq.model import DataVersion
from pocketmq.model.names import HALF_TOPIC, SCHEDULE_TOPIC
from pocketmq.protocol import RecordView
from pocketmq.protocol.records import Record, encode_record
from pocketmq.protocol.requests.offsets import DelayOffsets
from pocketmq.store.disk import Disk, StoredFile
from tests.broker.delayed import PLENTY, START_MS, Waiting, draft

LEVELS = rules.DelayLevels.parse("1s 5s 10s")


# The rules


@pytest.mark.parametrize(
    ("text", "level"),
    [("3", 3), ("+3", 3), ("0", 0), ("-1", -1), ("2147483647", 2147483647), ("007", 7)],
)
def test_a_level_is_a_java_int(text: str, level: int) -> None:
    assert rules.asked_level({"DELAY": text}) == level


@pytest.mark.parametrize("text", ["x", " 1", "1 ", "1.0", "2147483648", "9" * 1000, "0x1"])
def test_a_level_that_is_no_number_is_refused_as_java_does(text: str) -> None:
    with pytest.raises(ServerError) as caught:
        rules.asked_level({"DELAY": text})
    assert caught.value.code == 1
    assert "NumberFormatException" in (caught.value.remark or "")
    assert len(caught.value.remark or "") < 200


@pytest.mark.parametrize(
    ("asked", "queue_id", "kept", "wait_ms"),
    [
        ("1", 0, "1", 1000),
        ("+2", 1, "+2", 5000),
        ("3", 2, "3", 10_000),
        ("4", 2, "3", 10_000),
        ("2147483647", 2, "3", 10_000),
    ],
)
def test_a_delayed_message_waits_in_the_queue_of_its_level(
    asked: str, queue_id: int, kept: str, wait_ms: int
) -> None:
    message = draft(asked, "T", 7)
    assert rules.hold_back(message, LEVELS, START_MS)
    assert (message.topic, message.queue_id) == (SCHEDULE_TOPIC, queue_id)
    assert message.tag == START_MS + wait_ms
    assert message.properties == {
        "UNIQ_KEY": "K",
        "DELAY": kept,
        "REAL_TOPIC": "T",
        "REAL_QID": "7",
    }


@pytest.mark.parametrize(
    ("asked", "sys_flag"), [("0", 0), ("-1", 0), ("-2147483648", 0), ("1", 4), ("1", 12)]
)
def test_what_does_not_ask_for_a_level_stays_where_it_is(asked: str, sys_flag: int) -> None:
    message = draft(asked)
    message.sys_flag = sys_flag
    assert not rules.hold_back(message, LEVELS, START_MS)
    assert (message.topic, message.properties["DELAY"], message.tag) == ("T", asked, None)


def test_a_committed_message_can_be_delayed() -> None:
    message = draft("1")
    message.sys_flag = 8
    assert rules.hold_back(message, LEVELS, START_MS)


def test_half_of_a_transaction_is_not_delayed() -> None:
    """Java 5.5.0 delays it and throws it away afterwards."""
    message = draft("1", HALF_TOPIC)
    assert not rules.hold_back(message, LEVELS, START_MS)
    assert message.properties == {"UNIQ_KEY": "K"}


def test_a_level_wins_over_a_timer_and_clients_cannot_choose_the_origin() -> None:
    message = draft("1", "T", 3)
    message.properties |= {
        "TIMER_DELAY_SEC": "3",
        "TIMER_DELAY_MS": "3",
        "TIMER_DELIVER_MS": "3",
        "REAL_TOPIC": "another",
        "REAL_QID": "99",
    }
    assert rules.hold_back(message, LEVELS, START_MS)
    assert message.properties == {
        "UNIQ_KEY": "K",
        "DELAY": "1",
        "REAL_TOPIC": "T",
        "REAL_QID": "3",
    }


@pytest.mark.parametrize(
    ("level", "due_in", "wait"),
    [
        (1, 1000, 1000),
        (1, 1, 1),
        (1, 0, 0),
        (1, -1, 0),
        (1, -(10**12), 0),
        (1, 1001, 0),  # the clock was set back
        (3, 10_000, 10_000),
        (3, 10_001, 0),
        (4, 10**9, 10**9),  # no longer configured: nobody knows what is too long
    ],
)
def test_a_message_waits_until_it_is_due_but_never_longer_than_its_level(
    level: int, due_in: int, wait: int
) -> None:
    assert LEVELS.wait_ms(level, START_MS + due_in, START_MS) == wait


def test_messages_behind_one_that_is_not_due_wait_too() -> None:
    dues = [START_MS - 1, START_MS, START_MS + 1, START_MS - 5]
    assert rules.count_due(LEVELS, 1, dues, START_MS) == 2
    assert rules.count_due(LEVELS, 1, dues, START_MS + 1) == 4
    assert rules.count_due(LEVELS, 1, [], START_MS) == 0


def waiting_record(**fields: object) -> RecordView:
    properties = b"KEYS\1a b\2DELAY\0012\2REAL_TOPIC\1T\2REAL_QID\0014\2TAGS\1x\2"
    standard = {
        "topic": SCHEDULE_TOPIC.encode(),
        "body": b"body",
        "property_bytes": properties,
        "queue_id": 1,
        "flag": 5,
        "sys_flag": 1 | 2 | 8,
        "born_timestamp_ms": 17,
        "born_host": bytes(range(20)),
        "reconsume_times": 3,
        "prepared_transaction_offset": 99,
        "queue_offset": 6,
        "commit_log_offset": 7,
        "store_timestamp_ms": START_MS,
    }
    return RecordView(encode_record(Record(**(standard | fields))), 0)  # type: ignore[arg-type]


def test_a_delivered_message_is_the_one_that_was_sent() -> None:
    waiting = waiting_record()
    delivery = rules.delivery_of(waiting)
    assert delivery is not None
    assert delivery[:2] == ("T", 4)
    assert delivery.record == Record(
        topic=b"T",
        body=b"body",
        property_bytes=waiting.property_bytes,
        queue_id=4,
        flag=5,
        sys_flag=waiting.sys_flag,
        born_timestamp_ms=17,
        born_host=bytes(range(20)),
        reconsume_times=3,
        body_crc=waiting.body_crc,
    )


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"REAL_TOPIC\1T\2",
        b"REAL_QID\0011\2",
        b"REAL_TOPIC\1T\2REAL_QID\1x\2",
        b"REAL_TOPIC\1T\2REAL_QID\1-1\2",
        b"REAL_TOPIC\1RMQ_SYS_TRANS_HALF_TOPIC\2REAL_QID\0010\2",
    ],
)
def test_a_record_without_a_place_to_go_to_goes_nowhere(text: bytes) -> None:
    assert rules.delivery_of(waiting_record(property_bytes=text)) is None


def test_recovery_finds_the_moment_that_was_kept_when_the_message_came() -> None:
    message = draft("2")
    rules.hold_back(message, LEVELS, START_MS)
    assert rules.tag_rule(LEVELS)(waiting_record()) == message.tag


def test_progress_is_saved_level_by_level_and_read_back() -> None:
    progress = DelayProgress()
    progress.reached(3, 7)
    progress.reached(1, 2)
    changed = progress.take_unsaved(100, 9)
    assert encode_progress(changed) == {
        "1": b'{"offset":2,"position":100}',
        "3": b'{"offset":7,"position":100}',
    }
    assert progress.take_unsaved(200, 9) == {}
    progress.not_saved(changed)
    assert [*progress.take_unsaved(200, 9)] == [1, 3]
    other = DelayProgress()
    other.load([(key, value or b"") for key, value in encode_progress(changed).items()], 5)
    assert other.version == DataVersion(timestamp=5)
    assert other.offsets == {1: 2, 3: 7}
    assert other.saved(3) == SavedProgress(7, 100)
    assert other.saved(2) == SavedProgress(0, 0)
    assert progress.table() == DelayOffsets(
        offset_table={1: 2, 3: 7}, data_version=progress.version
    )


@pytest.mark.parametrize(
    ("key", "value"), [("x", b"{}"), ("1", b"{}"), ("1", b"junk"), ("1", b'{"offset":"a"}')]
)
def test_progress_that_cannot_be_read_is_an_error(key: str, value: bytes) -> None:
    with pytest.raises(BodyMalformed):
        DelayProgress().load([(key, value)], 5)


# Delivery


def test_messages_are_delivered_when_they_are_due_and_not_before(tmp_path: Path) -> None:
    broker = Waiting(tmp_path)
    broker.send(3, "five")
    broker.send(1, "one")
    broker.send(2, "two")
    for after_ms, keys in (
        (0, []),
        (999, []),
        (1000, ["one"]),
        (1999, ["one"]),
        (2000, ["one", "two"]),
        (4999, ["one", "two"]),
        (5000, ["one", "two", "five"]),
        (99_000, ["one", "two", "five"]),
    ):
        broker.now_ms = START_MS + after_ms
        broker.deliver()
        assert broker.keys() == keys
    assert broker.progress.offsets == {1: 1, 2: 1, 3: 1}
    broker.store.close()


def test_the_next_moment_is_that_of_the_earliest_message() -> None:
    broker = Waiting(None)
    assert broker.queues.next_due_ms(START_MS) is None
    broker.send(3, "late")
    assert broker.queues.next_due_ms(START_MS) == START_MS + 5000
    broker.now_ms += 100
    broker.send(1, "soon")
    assert broker.queues.next_due_ms(broker.now_ms) == START_MS + 1100
    assert broker.queues.next_due_ms(START_MS + 7000) == START_MS + 7000
    broker.now_ms = START_MS + 1100
    broker.deliver()
    assert broker.queues.next_due_ms(broker.now_ms) == START_MS + 5000
    broker.store.close()


def test_a_delivered_message_keeps_everything_but_its_place() -> None:
    broker = Waiting(None)
    message = draft("1", "T", 2, "K1")
    message.properties |= {"TAGS": "paid", "KEYS": "a b", "own": "1"}
    rules.hold_back(message, broker.levels, broker.now_ms)
    broker.append(message)
    broker.now_ms += 1000
    broker.deliver()
    (waited,) = broker.records(SCHEDULE_TOPIC)
    (delivered,) = broker.records("T", 2)
    assert delivered.property_bytes == waited.property_bytes
    assert delivered.stored_body == waited.stored_body
    assert delivered.queue_id == 2
    assert delivered.store_timestamp_ms == START_MS + 1000
    assert broker.store.queue("T", 2).tags(0, 1) == [delivered.tags_code()]  # type: ignore[union-attr]
    broker.store.close()


def test_a_tick_delivers_no_more_than_its_budget_and_no_level_starves() -> None:
    broker = Waiting(None)
    for number in range(100):
        broker.send(1, f"a{number}", topic="A")
        broker.send(2, f"b{number}", topic="B")
    broker.now_ms += 60_000
    seen = []
    while delivered := broker.deliver(DeliveryBudget(7, 1 << 20)).runs:
        assert sum(run.messages for run in delivered) <= 7
        seen.append((len(broker.keys("A")), len(broker.keys("B"))))
    assert seen[-1] == (100, 100)
    assert all(abs(a - b) <= 14 for a, b in seen)
    assert broker.keys("A") == [f"a{number}" for number in range(100)]
    broker.store.close()


def test_a_budget_of_bytes_holds_too_but_one_message_always_goes() -> None:
    broker = Waiting(None)
    for number in range(3):
        message = draft("1", key=str(number))
        message.body = bytes(100_000)
        rules.hold_back(message, broker.levels, broker.now_ms)
        broker.append(message)
    broker.now_ms += 1000
    assert [run.messages for run in broker.deliver(DeliveryBudget(10, 250_000)).runs] == [2]
    assert [run.messages for run in broker.deliver(DeliveryBudget(10, 10)).runs] == [1]
    assert broker.keys() == ["0", "1", "2"]
    broker.store.close()


def test_messages_for_different_queues_keep_the_order_of_their_level() -> None:
    broker = Waiting(None)
    for number in range(9):
        broker.send(1, str(number), queue_id=number % 2)
    broker.now_ms += 1000
    broker.deliver()
    places = [
        (record.commit_log_offset, int(key))
        for queue_id in (0, 1)
        for record, key in zip(
            broker.records("T", queue_id), broker.keys("T", queue_id), strict=True
        )
    ]
    assert [number for _, number in sorted(places)] == list(range(9))
    broker.store.close()


def test_a_clock_that_was_set_back_does_not_hold_messages_for_longer() -> None:
    """As in Java they come at once."""
    broker = Waiting(None)
    broker.send(2, "K")
    broker.now_ms -= 3600_000
    assert broker.queues.next_due_ms(broker.now_ms) == broker.now_ms
    broker.deliver()
    assert broker.keys() == ["K"]
    broker.store.close()


class FullDisk(Disk):
    """A disk without room for another file of the log while `full`."""

    full = False

    def create(self, name: str, size: int) -> StoredFile:
        if self.full and name.startswith("commitlog"):
            raise StoreFull(size)
        return super().create(name, size)


def test_messages_that_find_no_room_wait_and_come_once(tmp_path: Path) -> None:
    disk = FullDisk(tmp_path)
    broker = Waiting(tmp_path, disk=disk, segment_size=8192)
    for number in range(40):
        broker.send(1, str(number), queue_id=number % 3)
    broker.now_ms += 1000
    disk.full = True
    outcome = broker.deliver()
    assert isinstance(outcome.error, StoreFull)
    some = sum(len(broker.keys("T", queue_id)) for queue_id in range(3))
    assert some == sum(run.messages for run in outcome.runs) == broker.progress.offset(1) < 40
    disk.full = False
    assert broker.deliver().error is None
    found = [int(key) for queue_id in range(3) for key in broker.keys("T", queue_id)]
    assert sorted(found) == list(range(40))
    assert broker.progress.offset(1) == 40
    broker.store.close()


def test_a_record_that_cannot_be_delivered_does_not_block_its_level() -> None:
    broker = Waiting(None)
    broker.send(1, "before")
    lost = draft("1")
    rules.hold_back(lost, broker.levels, broker.now_ms)
    del lost.properties["REAL_QID"]
    broker.append(lost)
    broker.send(1, "behind")
    broker.append(lost)
    broker.now_ms += 1000
    broker.deliver()
    assert broker.keys() == ["before", "behind"]
    assert broker.progress.offset(1) == 4
    broker.append(lost)
    broker.now_ms += 1000
    broker.deliver()
    assert broker.progress.offset(1) == 5
    broker.store.close()


# Restart and crash


def test_messages_wait_on_after_a_restart(tmp_path: Path) -> None:
    broker = Waiting(tmp_path)
    broker.send(1, "one")
    broker.send(2, "two")
    broker.now_ms += 1000
    broker.deliver()
    broker.save()
    broker.store.close()
    again = Waiting(tmp_path, now_ms=broker.now_ms)
    assert again.progress.offsets == {1: 1, 2: 0}
    again.deliver()
    assert again.keys() == ["one"]
    assert again.queues.next_due_ms(again.now_ms) == START_MS + 2000
    again.now_ms += 1000
    again.deliver()
    assert again.keys() == ["one", "two"]
    again.store.close()


def test_messages_that_became_due_while_the_broker_was_down_come_when_it_is_back(
    tmp_path: Path,
) -> None:
    broker = Waiting(tmp_path)
    for number in range(5):
        broker.send(1, str(number))
    broker.kill()
    again = Waiting(tmp_path, now_ms=START_MS + 3600_000)
    again.deliver()
    assert again.keys() == ["0", "1", "2", "3", "4"]
    again.store.close()


def test_a_kill_after_a_delivery_and_before_its_progress_was_saved_repeats_nothing(
    tmp_path: Path,
) -> None:
    broker = Waiting(tmp_path)
    for number in range(10):
        broker.send(1 + number % 2, str(number), queue_id=number % 3)
    broker.now_ms += 1000
    broker.deliver(DeliveryBudget(3, 1 << 20))
    broker.save()
    broker.deliver(DeliveryBudget(1, 1 << 20))
    broker.kill()
    again = Waiting(tmp_path, now_ms=START_MS + 5000)
    assert again.progress.offset(1) == 4
    again.deliver()
    found = [int(key) for queue_id in range(3) for key in again.keys("T", queue_id)]
    assert sorted(found) == list(range(10))
    again.store.close()


def test_the_same_message_sent_twice_comes_twice_whatever_crashes(tmp_path: Path) -> None:
    """A producer that sends again after a timeout makes two records alike to the last bit."""
    broker = Waiting(tmp_path)
    for _ in range(6):
        broker.send(1, "twin")
    broker.now_ms += 1000
    broker.deliver(DeliveryBudget(1, 1 << 20))
    broker.save()
    broker.deliver(DeliveryBudget(3, 1 << 20))
    broker.kill()
    again = Waiting(tmp_path, now_ms=broker.now_ms)
    assert again.progress.offset(1) == 4
    again.deliver()
    assert again.keys() == ["twin"] * 6
    again.store.close()


def test_a_copy_from_before_the_saved_progress_does_not_count_for_a_twin(tmp_path: Path) -> None:
    """Another level, saved earlier, makes recovery look further back than this one needs."""
    broker = Waiting(tmp_path)
    broker.send(2, "other")
    broker.deliver()
    broker.save()
    broker.now_ms += 1000
    broker.send(1, "twin")
    broker.send(1, "twin")
    broker.now_ms += 1000
    broker.deliver(DeliveryBudget(1, 1 << 20))
    assert broker.keys() == ["twin"]
    broker.save()
    broker.kill()
    again = Waiting(tmp_path, now_ms=broker.now_ms)
    assert again.progress.offsets == {1: 1, 2: 0}
    again.deliver()
    assert sorted(again.keys()) == ["other", "twin", "twin"]
    again.store.close()


def test_a_forged_copy_hides_no_other_message(tmp_path: Path) -> None:
    broker = Waiting(tmp_path)
    broker.send(1, "first")
    broker.send(1, "K")
    broker.now_ms += 1000
    forged = draft("1")
    rules.hold_back(forged, broker.levels, broker.now_ms)
    forged.topic, forged.queue_id, forged.tag = "T", 0, 0
    broker.append(forged)
    broker.store.write()
    broker.kill()
    again = Waiting(tmp_path, now_ms=broker.now_ms)
    assert again.progress.offset(1) == 0
    again.deliver()
    assert again.keys() == ["K", "first", "K"]
    again.store.close()


def test_messages_that_went_with_the_oldest_files_are_passed_over(tmp_path: Path) -> None:
    broker = Waiting(tmp_path, segment_size=4096)
    for number in range(60):
        broker.send(1, str(number))
    broker.store.checkpoint()
    assert broker.store.drop_first_segment()
    first = broker.store.queue(SCHEDULE_TOPIC, 0).min_offset  # type: ignore[union-attr]
    assert 0 < first < 60
    assert broker.queues.next_due_ms(START_MS) == START_MS + 1000
    broker.now_ms += 1000
    broker.deliver()
    assert broker.keys() == [str(number) for number in range(first, 60)]
    broker.store.close()


def test_what_was_appended_but_not_written_is_delivered_after_a_kill(tmp_path: Path) -> None:
    broker = Waiting(tmp_path)
    broker.send(1, "K")
    broker.now_ms += 1000
    broker.queues._append_due(broker.now_ms, PLENTY, [])
    broker.kill()
    again = Waiting(tmp_path, now_ms=broker.now_ms)
    assert again.keys() == []
    again.deliver()
    assert again.keys() == ["K"]
    again.store.close()


def test_a_message_that_only_looks_like_a_delivery_does_not_count(tmp_path: Path) -> None:
    """Copies are looked for where they can be: behind the saved progress, not before their time."""
    broker = Waiting(tmp_path)
    earlier = draft("1")
    rules.hold_back(earlier, broker.levels, broker.now_ms)
    earlier.topic, earlier.queue_id, earlier.tag = "T", 0, 0
    broker.append(earlier)
    broker.store.write()
    broker.now_ms += 10
    broker.send(1, "K")
    broker.kill()
    again = Waiting(tmp_path, now_ms=START_MS + 9000)
    assert again.progress.offset(1) == 0
    again.deliver()
    assert again.keys() == ["K", "K"]
    again.store.close()


def test_levels_that_are_no_longer_configured_are_still_delivered(tmp_path: Path) -> None:
    broker = Waiting(tmp_path, "1s 2s 5s")
    broker.send(3, "K")
    broker.store.close()
    again = Waiting(tmp_path, "1s", START_MS)
    again.deliver()
    assert again.keys() == []
    again.now_ms += 5000
    again.deliver()
    assert again.keys() == ["K"]
    again.store.close()


def test_progress_beyond_what_a_crash_left_does_not_swallow_new_messages(tmp_path: Path) -> None:
    broker = Waiting(tmp_path)
    broker.store.metadata.save_documents(
        DelayProgress.kind, encode_progress({1: SavedProgress(50, 0)})
    )
    broker.send(1, "K")
    broker.kill()
    again = Waiting(tmp_path, now_ms=START_MS)
    assert again.progress.offset(1) == 1
    again.send(1, "L")
    again.now_ms += 1000
    again.deliver()
    assert again.keys() == ["L"]
    again.store.close()
