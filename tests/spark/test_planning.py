"""Ranges into tasks, and limits into shares."""

from hypothesis import given
from hypothesis import strategies as st

from pocketmq.model import MessageQueue
from pocketmq.spark.planning import Range, pack, share


def queue(number: int) -> MessageQueue:
    return MessageQueue("orders", "broker-a", number)


spans = st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 500)), max_size=12)


@given(spans, st.integers(1, 20), st.integers(1, 400))
def test_every_offset_is_in_exactly_one_task_and_in_order(
    spans: list[tuple[int, int]], at_least: int, per_task: int
) -> None:
    ranges = [Range(queue(n), start, start + size) for n, (start, size) in enumerate(spans)]
    tasks = pack(ranges, at_least=at_least, per_task=per_task)
    got = [(r.queue, at) for task in tasks for r in task for at in range(r.start, r.end)]
    assert got == [(r.queue, at) for r in ranges for at in range(r.start, r.end)]


@given(spans, st.integers(1, 20), st.integers(1, 400))
def test_tasks_are_even_and_no_more_than_needed(
    spans: list[tuple[int, int]], at_least: int, per_task: int
) -> None:
    ranges = [Range(queue(n), start, start + size) for n, (start, size) in enumerate(spans)]
    total = sum(size for _, size in spans)
    sizes = [
        sum(r.size for r in task) for task in pack(ranges, at_least=at_least, per_task=per_task)
    ]
    assert len(sizes) == min(total, max(at_least, -(-total // per_task)) if total else 0)
    assert not sizes or (max(sizes) - min(sizes) <= 1 and min(sizes) > 0 and max(sizes) <= per_task)


def test_many_small_queues_are_one_task() -> None:
    ranges = [Range(queue(n), 0, 10) for n in range(64)]
    assert pack(ranges) == [tuple(ranges)]


def test_a_long_queue_is_cut() -> None:
    assert pack([Range(queue(0), 5, 11)], at_least=3) == [
        (Range(queue(0), 5, 7),),
        (Range(queue(0), 7, 9),),
        (Range(queue(0), 9, 11),),
    ]


@given(st.lists(st.integers(0, 10_000), max_size=20), st.integers(1, 20_000))
def test_shares_add_up_to_the_limit_and_are_in_proportion(waiting: list[int], limit: int) -> None:
    backlog = {queue(n): size for n, size in enumerate(waiting)}
    shares = share(backlog, limit)
    total = sum(waiting)
    assert sum(shares.values()) == min(limit, total)
    for each, size in backlog.items():
        assert shares[each] <= size
        exact = size * min(limit, total) / total if total else 0
        assert abs(shares[each] - exact) < 1
