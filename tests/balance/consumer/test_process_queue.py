"""The cache of one queue: by example, against a naive model, and against Java's own class."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pocketmq.balance.consumer.process_queue import ProcessQueue, ProcessQueueState
from pocketmq.balance.profile import V4, V5
from tests.balance.consumer.shapes import Msg, filled

JAVA = Path(__file__).parents[2] / "vectors" / "java-process-queue.jsonl"


def test_removing_gives_the_lowest_unfinished_offset() -> None:
    queue = filled(5, 6, 7, 8)
    assert queue.remove([Msg(6), Msg(8)], 1.0) == 5
    assert queue.remove([Msg(5)], 1.0) == 7


def test_removing_the_last_gives_the_offset_after_the_newest() -> None:
    queue = filled(5, 6, 9)
    assert queue.remove([Msg(9), Msg(5), Msg(6)], 1.0) == 10


def test_removing_from_an_empty_queue_commits_nothing() -> None:
    queue = filled()
    assert queue.remove([Msg(3)], 7.0) == -1
    assert queue.last_consume == 7.0


def test_a_message_pulled_twice_counts_once() -> None:
    queue = filled(1, 2)
    queue.put([Msg(2), Msg(3)])
    assert (queue.count, queue.size, len(queue)) == (3, 30, 3)


def test_the_newest_offset_is_that_of_the_last_new_message_as_in_java() -> None:
    queue = filled(10, 5)
    assert queue.remove([Msg(10), Msg(5)], 0.0) == 6


def test_of_a_replaced_message_the_bytes_of_the_one_given_count_as_in_java() -> None:
    queue: ProcessQueue[Msg] = ProcessQueue(0.0)
    given = [Msg(1, 10), Msg(2, 20), Msg(3, 30)]
    queue.put(given)
    queue.put([Msg(1, 11)])
    before = queue.size
    queue.remove(given[:2], 0.0)
    assert before - queue.size == 30


def test_only_the_first_put_asks_for_a_consume_task_until_one_found_nothing() -> None:
    queue: ProcessQueue[Msg] = ProcessQueue(0.0)
    assert queue.put([]) is False
    assert queue.put([Msg(1)]) is True
    assert queue.put([Msg(2)]) is False
    assert queue.take(5, 1.0) == [Msg(1), Msg(2)]
    assert queue.put([Msg(3)]) is False
    assert queue.take(5, 1.0) == [Msg(3)]
    assert queue.take(5, 2.0) == []
    assert queue.put([Msg(4)]) is True
    assert queue.last_consume == 2.0


def test_taking_committing_rolling_back_and_again() -> None:
    queue = filled(1, 2, 3, 4)
    assert queue.take(2, 0.0) == [Msg(1), Msg(2)]
    assert (len(queue), queue.count, queue.size) == (2, 4, 40)
    queue.consume_again([Msg(2)])
    assert queue.take(1, 0.0) == [Msg(2)]
    assert queue.commit() == 3
    assert (queue.count, queue.size) == (2, 20)
    assert queue.take(9, 0.0) == [Msg(3), Msg(4)]
    queue.roll_back()
    assert queue.take(9, 0.0) == [Msg(3), Msg(4)]
    assert queue.commit() == 5
    assert queue.commit() == -1
    assert (queue.count, queue.size) == (0, 0)


def test_the_backlog_is_the_distance_to_the_queues_end() -> None:
    queue: ProcessQueue[Msg] = ProcessQueue(0.0)
    queue.put([Msg(1), Msg(4)], max_offset=104)
    assert queue.backlog == 100
    queue.put([Msg(5)], max_offset=5)
    assert queue.backlog == 100, "a distance of zero is not noted, as in Java"
    queue.put([], max_offset=500)
    assert queue.backlog == 100


def test_clearing_leaves_nothing() -> None:
    queue = filled(1, 2, 3)
    queue.take(1, 0.0)
    queue.clear()
    assert (len(queue), queue.count, queue.size, queue.span, queue.commit()) == (0, 0, 0, 0, -1)
    queue.put([Msg(0)])
    assert queue.remove([Msg(0)], 0.0) == 1


@pytest.mark.parametrize("profile", [V4, V5])
def test_locks_expire_after_30_s(profile: Any) -> None:
    queue: ProcessQueue[Msg] = ProcessQueue(100.0)
    assert not queue.lock_expired(profile, 130.0)
    assert queue.lock_expired(profile, 130.001)
    queue.lock_granted(130.0)
    assert queue.locked
    assert not queue.lock_expired(profile, 160.0)


def test_operators_see_the_queue_as_it_is() -> None:
    queue: ProcessQueue[Msg] = ProcessQueue(3.0)
    queue.put([Msg(n, 700_000) for n in range(10, 14)])
    queue.take(1, 4.0)
    queue.lock_granted(5.0)
    queue.last_pull = 6.0
    queue.unlock_tries = 2
    assert queue.info() == ProcessQueueState(
        cached_min_offset=11,
        cached_max_offset=13,
        cached_count=3,
        cached_size_mib=2,
        consuming_min_offset=10,
        consuming_max_offset=10,
        consuming_count=1,
        locked=True,
        unlock_tries=2,
        last_lock=5.0,
        dropped=False,
        last_pull=6.0,
        last_consume=4.0,
    )


def test_an_empty_queue_is_described_with_zeros() -> None:
    info = ProcessQueue[Msg](1.0).info()
    assert (info.cached_min_offset, info.cached_max_offset, info.cached_count) == (0, 0, 0)
    assert (info.consuming_min_offset, info.consuming_max_offset, info.consuming_count) == (0, 0, 0)


def test_a_stuck_first_message_does_not_let_memory_grow() -> None:
    queue = filled(0)
    for start in range(1, 32_000, 32):
        batch = [Msg(start + n) for n in range(32)]
        queue.put(batch)
        assert queue.remove(batch, 0.0) == 0
    assert kept(queue) < 300


@pytest.mark.parametrize("left_over", [0, 5])
def test_an_orderly_consumer_does_not_let_memory_grow(left_over: int) -> None:
    """It takes and commits for months, and nobody ever asks its queue for the first offset."""
    queue = filled(*range(left_over))
    for start in range(left_over, 32_000, 32):
        queue.put([Msg(start + n) for n in range(32)])
        assert len(queue.take(32, 0.0)) == 32
        assert queue.commit() == start + 32 - left_over
    assert len(queue) == left_over
    assert kept(queue) < 300


def kept(queue: ProcessQueue[Msg]) -> int:
    """The messages that its lists keep alive, done ones included."""
    runs = [*queue._cached._runs, *queue._consuming._runs]
    return sum(len(run.messages) for run in runs)


def state(queue: ProcessQueue[Msg]) -> list[int]:
    info = queue.info()
    return [
        queue.count,
        queue.size,
        queue.span,
        info.cached_min_offset,
        info.cached_max_offset,
        info.cached_count,
        info.consuming_min_offset,
        info.consuming_max_offset,
        info.consuming_count,
        queue.backlog,
    ]


def replay(queue: ProcessQueue[Msg], name: str, arguments: list[Any]) -> Any:
    def messages(pairs: list[list[int]]) -> list[Msg]:
        return [Msg(offset, size) for offset, size in pairs]

    if name == "put":
        return queue.put(messages(arguments[0]), arguments[1])
    if name == "remove":
        return queue.remove(messages(arguments[0]), 0.0)
    if name == "take":
        return [[m.queue_offset, m.body_size] for m in queue.take(arguments[0], 0.0)]
    if name == "commit":
        offset = queue.commit()
        return "nothing" if offset == -1 else offset
    if name == "again":
        return queue.consume_again(messages(arguments[0]))
    if name == "contains":
        return messages(arguments)[0] in queue
    return {"rollback": queue.roll_back, "clear": queue.clear}[name]()


def test_every_answer_and_state_is_that_of_javas_process_queue() -> None:
    sequences = [json.loads(line) for line in JAVA.read_text().splitlines()]
    assert len(sequences) == 180
    seen: set[str] = set()
    for number, steps in enumerate(sequences):
        queue: ProcessQueue[Msg] = ProcessQueue(0.0)
        for place, (name, arguments, answer, expected) in enumerate(steps):
            where = f"sequence {number}, step {place}: {name}"
            assert replay(queue, name, arguments) == answer, where
            assert state(queue) == expected, where
            seen.add(name)
    assert seen == {"put", "remove", "take", "commit", "rollback", "again", "contains", "clear"}


class TreeMapModel:
    """Java's rules written down without a thought for speed."""

    def __init__(self) -> None:
        self.cached: dict[int, Msg] = {}
        self.consuming: dict[int, Msg] = {}
        self.count = self.size = self.newest = 0
        self.dispatched = False

    def put(self, messages: list[Msg]) -> bool:
        for message in messages:
            if message.queue_offset not in self.cached:
                self.count += 1
                self.size += message.body_size
                self.newest = message.queue_offset
            self.cached[message.queue_offset] = message
        dispatch = bool(self.cached) and not self.dispatched
        self.dispatched = self.dispatched or dispatch
        return dispatch

    def remove(self, messages: list[Msg]) -> int:
        if not self.cached:
            return -1
        for message in messages:
            if self.cached.pop(message.queue_offset, None) is not None:
                self.count -= 1
                self.size -= message.body_size
        if self.count == 0:
            self.size = 0
        return min(self.cached) if self.cached else self.newest + 1

    def take(self, limit: int) -> list[Msg]:
        keys = sorted(self.cached)[:limit]
        for key in keys:
            self.consuming[key] = self.cached.pop(key)
        if not keys:
            self.dispatched = False
        return [self.consuming[key] for key in keys]

    def commit(self) -> int:
        if not self.consuming:
            return -1
        self.count -= len(self.consuming)
        self.size -= sum(message.body_size for message in self.consuming.values())
        if self.count == 0:
            self.size = 0
        last = max(self.consuming)
        self.consuming = {}
        return last + 1

    def roll_back(self) -> None:
        self.cached.update(self.consuming)
        self.consuming = {}

    def consume_again(self, messages: list[Msg]) -> None:
        for message in messages:
            self.consuming.pop(message.queue_offset, None)
            self.cached[message.queue_offset] = message


class ProcessQueueMachine(RuleBasedStateMachine):
    """Any operations in any order; the model says what must come out."""

    @initialize(first=st.integers(0, 1000))
    def begin(self, first: int) -> None:
        self.queue: ProcessQueue[Msg] = ProcessQueue(0.0)
        self.model = TreeMapModel()
        self.next = first
        self.known: list[Msg] = []

    @rule(gaps=st.lists(st.sampled_from([1, 1, 1, 2, 40]), max_size=40))
    def pull(self, gaps: list[int]) -> None:
        batch = []
        for gap in gaps:
            self.next += gap
            batch.append(Msg(self.next, self.next % 7))
        self.known += batch
        assert self.queue.put(batch) == self.model.put(batch)

    @rule(back=st.lists(st.integers(0, 150), max_size=8))
    def pull_again(self, back: list[int]) -> None:
        batch = [Msg(max(0, self.next - step), (self.next - step) % 7) for step in back]
        self.known += batch
        assert self.queue.put(batch) == self.model.put(batch)

    @rule(data=st.data())
    def finish_some(self, data: st.DataObject) -> None:
        if self.known:
            start = data.draw(st.integers(0, len(self.known) - 1))
            batch = self.known[start : start + data.draw(st.integers(0, 40))]
            offset = self.queue.remove(batch, 0.0)
            assert offset == self.model.remove(batch)
            unfinished = self.model.cached
            assert not unfinished or offset <= min(unfinished), "passed an unfinished message"

    @rule(limit=st.integers(1, 40))
    def take(self, limit: int) -> None:
        assert self.queue.take(limit, 0.0) == self.model.take(limit)

    @rule()
    def commit(self) -> None:
        assert self.queue.commit() == self.model.commit()

    @rule()
    def roll_back(self) -> None:
        self.queue.roll_back()
        self.model.roll_back()

    @rule(keep=st.integers(0, 3))
    def again(self, keep: int) -> None:
        batch = [m for m in self.model.consuming.values() if m.queue_offset % 4 != keep]
        self.queue.consume_again(batch)
        self.model.consume_again(batch)

    @invariant()
    def same_state(self) -> None:
        cached = sorted(self.model.cached)
        assert (self.queue.count, self.queue.size) == (self.model.count, self.model.size)
        assert len(self.queue) == len(cached)
        assert self.queue.span == (cached[-1] - cached[0] if cached else 0)
        if cached:
            assert (self.queue.first_offset(), self.queue.span) == (
                cached[0],
                cached[-1] - cached[0],
            )


TestProcessQueueAgainstTheModel = ProcessQueueMachine.TestCase
TestProcessQueueAgainstTheModel.settings = settings(
    max_examples=120, stateful_step_count=40, deadline=None
)


def test_what_the_next_owner_handles_is_cut_off_and_never_committed() -> None:
    queue = ProcessQueue[Msg](0.0)
    queue.put([Msg(offset) for offset in range(10)])
    queue.take(3, 0.0)
    queue.cut(5)
    assert (len(queue), queue.count) == (2, 5)
    assert not queue.settled_below(5)
    assert queue.commit() == 3
    assert queue.remove([Msg(3), Msg(4)], 0.0) == 5
    assert queue.settled_below(5)
    assert queue.size == 0


def test_messages_of_a_hole_are_before_the_rest_and_leave_the_end_alone() -> None:
    queue = ProcessQueue[Msg](0.0)
    queue.put([Msg(10), Msg(11)])
    queue.put_before([Msg(7), Msg(8)])
    assert queue.first_offset() == 7
    assert not queue.settled_below(9)
    assert queue.remove([Msg(7), Msg(8)], 0.0) == 10
    assert queue.settled_below(9)
    assert queue.remove([Msg(10), Msg(11)], 0.0) == 12
