"""Runs of offsets: any operations in any order have the results of the dict and list before them."""

import gc
import random
import weakref
from itertools import pairwise
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pocketmq.balance.consumer.offset_runs import OffsetRuns
from pocketmq.balance.consumer.process_queue import ProcessQueue
from tests.balance.consumer.dict_queue import DictQueue
from tests.balance.consumer.shapes import Msg

gaps = st.lists(st.sampled_from([1, 1, 1, 1, 2, 30]), max_size=40)


class SameResultsMachine(RuleBasedStateMachine):
    """Every method of a process queue, on the cache of runs and on the one it replaced."""

    @initialize(first=st.integers(0, 1000))
    def begin(self, first: int) -> None:
        self.ours: ProcessQueue[Msg] = ProcessQueue(0.0)
        self.model = DictQueue(0.0)
        self.next = first
        self.now = 0.0
        self.pulls: list[list[Msg]] = [[]]

    def both(self, name: str, *arguments: Any) -> Any:
        self.now += 1.0
        given = [list(a) if isinstance(a, list) else a for a in arguments]
        ours, theirs = getattr(self.ours, name)(*arguments), getattr(self.model, name)(*given)
        assert ours == theirs, name
        return ours

    def some(self, data: st.DataObject) -> list[Msg]:
        """Messages of one pull or of two: all, a stretch, or some of them, in some order."""
        pulled = [*data.draw(st.sampled_from(self.pulls)), *data.draw(st.sampled_from(self.pulls))]
        start = data.draw(st.integers(0, len(pulled)))
        chosen = pulled[start : start + data.draw(st.sampled_from([1, 2, 5, 50]))]
        holes = data.draw(st.sampled_from([0, 0, 2, 7]))
        chosen = [one for one in chosen if not holes or one.queue_offset % holes]
        if data.draw(st.sampled_from([False, False, True])):
            chosen.reverse()
        return chosen

    @rule(gaps=gaps, end=st.sampled_from([None, 0, 100_000]))
    def pull(self, gaps: list[int], end: int | None) -> None:
        batch = []
        for gap in gaps:
            self.next += gap
            batch.append(Msg(self.next, self.next % 7))
        self.pulls.append(batch)
        self.both("put", batch, end)

    @rule(back=st.lists(st.integers(0, 120), max_size=6), size=st.integers(0, 9))
    def pull_again(self, back: list[int], size: int) -> None:
        batch = [Msg(max(0, self.next - step), size) for step in back]
        self.pulls.append(batch)
        self.both("put", batch)

    @rule(start=st.integers(0, 80), gaps=gaps)
    def pull_a_hole(self, start: int, gaps: list[int]) -> None:
        batch, offset = [], max(0, self.next - start)
        for gap in gaps:
            offset += gap
            batch.append(Msg(offset, offset % 5))
        self.pulls.append(batch)
        self.both("put_before", batch)

    @rule(data=st.data(), copies=st.booleans())
    def finish(self, data: st.DataObject, copies: bool) -> None:
        some = self.some(data)
        if copies:
            some = [Msg(one.queue_offset, one.body_size) for one in some]
        self.both("remove", some, self.now)

    @rule(limit=st.integers(1, 60))
    def take(self, limit: int) -> None:
        self.both("take", limit, self.now)

    @rule(data=st.data())
    def again(self, data: st.DataObject) -> None:
        self.both("consume_again", self.some(data))

    @rule(name=st.sampled_from(["commit", "roll_back", "commit", "roll_back", "clear"]))
    def without_arguments(self, name: str) -> None:
        self.both(name)

    @rule(below=st.integers(0, 60))
    def cut(self, below: int) -> None:
        self.both("cut", self.next - below)

    @rule(data=st.data())
    def begin_calls(self, data: st.DataObject) -> None:
        self.both("mark_started", self.some(data), self.now)

    @rule(timeout=st.sampled_from([0.5, 3.0, 20.0]))
    def sweep(self, timeout: float) -> None:
        self.both("first_if_expired", timeout, self.now)

    @rule(back=st.integers(-2, 100))
    def look(self, back: int) -> None:
        offset = self.next - back
        assert (Msg(offset) in self.ours) == (Msg(offset) in self.model)
        self.both("settled_below", offset)

    @invariant()
    def same_state(self) -> None:
        ours, model = self.ours, self.model
        assert ours.info() == model.info()
        assert (ours.count, ours.size, ours.backlog) == (model.count, model.size, model.backlog)
        assert (len(ours), ours.span) == (len(model), model.span)
        assert [*ours._cached] == [model._messages[key] for key in sorted(model._messages)]
        runs = ours._cached._runs
        assert all(a.last < b.first for a, b in pairwise(runs))


TestSameResults = SameResultsMachine.TestCase
TestSameResults.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)


def test_a_pull_is_kept_as_it_came_and_removed_without_a_look_at_its_messages() -> None:
    """What a message costs here must not grow with what is read of it."""
    looks = 0

    class Watched:
        def __init__(self, offset: int) -> None:
            self.offset = offset

        @property
        def queue_offset(self) -> int:
            nonlocal looks
            looks += 1
            return self.offset

        body_size = 10

    runs: OffsetRuns[Watched] = OffsetRuns()
    pulled = [Watched(n) for n in range(1000)]
    assert runs.add(pulled) == 10_000
    assert (looks, len(runs)) == (1000, 1000)
    assert runs.remove(pulled[:600]) == (600, 6000)
    assert runs.remove(pulled[600:]) == (400, 4000)
    assert (looks, len(runs)) == (1002, 0)


class Heavy:
    """A message whose end can be seen."""

    body_size = 1

    def __init__(self, queue_offset: int) -> None:
        self.queue_offset = queue_offset


def test_messages_that_are_done_are_not_kept_alive_by_one_that_is_not() -> None:
    runs: OffsetRuns[Heavy] = OffsetRuns()
    pulled = [Heavy(n) for n in range(1000)]
    alive = weakref.WeakSet(pulled)
    runs.add(pulled)
    order = [n for n in range(1000) if n % 100]  # ten are stuck
    random.Random(3).shuffle(order)
    for n in order:
        runs.remove([pulled[n]])
    del pulled
    gc.collect()
    assert len(runs) == 10
    assert len(alive) <= 4 * 10


def test_a_replaced_message_counts_with_its_own_bytes_when_it_leaves() -> None:
    for queue in (ProcessQueue[Msg](0.0), DictQueue(0.0)):
        first, second, later = Msg(1, 10), Msg(2, 3), Msg(9, 10)
        queue.put([first, Msg(2, 10)])
        queue.put([later])
        queue.put([second])
        assert queue.size == 30
        assert queue.remove([first, second], 0.0) == 9
        assert queue.size == 17


def test_a_message_that_was_done_and_is_pulled_again_has_not_begun() -> None:
    for queue in (ProcessQueue[Msg](0.0), DictQueue(0.0)):
        queue.put([Msg(1), Msg(5)])
        queue.mark_started([Msg(1)], 0.0)
        assert queue.first_if_expired(1.0, 100.0) == Msg(1)
        queue.remove([Msg(1)], 100.0)
        queue.put_before([Msg(1)])
        assert queue.first_if_expired(1.0, 100.0) is None
