"""Ranges into tasks, and limits into shares."""

from hypothesis import given
from hypothesis import strategies as st

from pocketmq.model import MessageQueue
from pocketmq.spark.planning import BatchLimit, Range, limited, pack, share, turn_of


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


@given(st.lists(st.integers(0, 10_000), max_size=20), st.integers(1, 20_000), st.integers(0, 99))
def test_shares_add_up_to_the_limit_and_are_in_proportion(
    waiting: list[int], limit: int, turn: int
) -> None:
    backlog = {queue(n): size for n, size in enumerate(waiting)}
    shares = share(backlog, limit, turn)
    total, busy = sum(waiting), [each for each, size in backlog.items() if size]
    assert sum(shares.values()) == min(limit, total)
    assert all(shares[each] <= size for each, size in backlog.items())
    if len(busy) > limit:
        assert sorted(shares[each] for each in busy)[-limit:] == [1] * limit
        return
    exact = {each: size * min(limit, total) / max(total, 1) for each, size in backlog.items()}
    raised = sum(exact[each] < 1 for each in busy)
    for each in busy:
        assert shares[each] >= 1
        assert exact[each] - 1 - raised < shares[each] < exact[each] + 1


def test_a_cold_queue_is_not_starved_by_a_hot_one() -> None:
    backlog = {queue(0): 1_000_000, queue(1): 3, queue(2): 0, queue(3): 1}
    assert share(backlog, 1000) == {queue(0): 998, queue(1): 1, queue(2): 0, queue(3): 1}
    assert share({queue(n): 5 for n in range(3)}, 3) == {queue(n): 1 for n in range(3)}
    even = {queue(0): 100, queue(1): 100, **{queue(n): 1 for n in range(2, 40)}}
    shares = share(even, 41)
    assert min(shares.values()) == 1
    assert sum(shares.values()) == 41


def test_more_queues_than_messages_take_turns() -> None:
    """All of seven queues are read in three micro-batches of three, whatever their backlog."""
    backlog = {queue(n): 10**n for n in range(7)}
    read = [each for turn in range(3) for each, n in share(backlog, 3, turn).items() if n]
    assert {each.queue_id for each in read} == set(range(7))
    reached = {queue(n): 0 for n in range(7)}
    for _ in range(7):
        turns = share(backlog, 3, turn_of(reached, 3))
        reached = {each: at + turns[each] for each, at in reached.items()}
    assert set(reached.values()) == {3}


def test_a_limit_in_bytes_counts_messages_by_their_size() -> None:
    waiting = {queue(0): 1000, queue(1): 1000}
    small = {queue(0): 100.0}  # the other counts as this one does
    assert limited(waiting, BatchLimit(size=20_000), small, 0) == {queue(0): 100, queue(1): 100}
    assert limited(waiting, BatchLimit(50, 20_000), small, 0) == {queue(0): 25, queue(1): 25}
    assert limited(waiting, BatchLimit(size=10**9), small, 0) == waiting
    assert limited(waiting, BatchLimit(size=1), small, 0) == {queue(0): 1, queue(1): 0}
    assert limited(waiting, BatchLimit(size=1), {}, 0) == waiting
    uneven = {queue(0): 1000.0, queue(1): 10.0}
    assert sum(limited(waiting, BatchLimit(size=101_000), uneven, 0).values()) == 200
