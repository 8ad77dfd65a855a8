"""Many queues in one order, newest first, and no more of each read than is needed."""

from hypothesis import given
from hypothesis import strategies as st

from pocketmq.dashboard.browsing.newest_first import NewestFirst, Position, QueuePart
from pocketmq.dashboard.browsing.reader import part_of
from pocketmq.model import MessageQueue
from pocketmq.protocol import ReceivedMessage
from tests.dashboard.stored import stored

Stored = dict[MessageQueue, list[ReceivedMessage]]


def topic(*queues: list[int | None]) -> Stored:
    """Return queues by the times of their messages; None is a hole in the offsets."""
    return {
        MessageQueue("T", "broker-a", number): [
            stored(at=at, offset=offset, queue=number)
            for offset, at in enumerate(times)
            if at is not None
        ]
        for number, times in enumerate(queues)
    }


def whole(queues: Stored) -> Position:
    return {
        queue: (0, messages[-1].queue_offset + 1 if messages else 0)
        for queue, messages in queues.items()
    }


def read(queues: Stored, part: QueuePart) -> list[ReceivedMessage]:
    return [each for each in queues[part.queue] if part.first <= each.queue_offset < part.end]


def taken(queues: Stored, position: Position, count: int, part: int) -> tuple[list[int], Position]:
    """Take messages, reading what is wanted; give their times and the rest."""
    merge, times = NewestFirst(position, part), list[int]()
    while len(times) < count:
        message = merge.take()
        if message is not None:
            times.append(message.store_timestamp_ms)
        elif parts := merge.wanted():
            for each in parts:
                assert each.end - each.first <= part
                merge.put(each, read(queues, each))
        else:
            break
    return times, merge.rest()


def test_the_newest_of_all_queues_come_first_and_the_rest_is_left() -> None:
    queues = topic([1, 4, 5], [2, 3, 9])
    times, rest = taken(queues, whole(queues), 3, part=2)
    assert times == [9, 5, 4]
    first, second = queues
    assert rest == {first: (0, 1), second: (0, 2)}
    assert taken(queues, rest, 9, part=2) == ([3, 2, 1], {})


def test_a_queue_that_is_behind_is_not_read_again() -> None:
    queues = topic([1, 2, 3, 4], [10, 11, 12])
    merge = NewestFirst(whole(queues), 2)
    reads: list[QueuePart] = []
    for _ in range(3):
        while merge.take() is None:
            for part in merge.wanted():
                reads.append(part)
                merge.put(part, read(queues, part))
    assert [(part.queue.queue_id, part.first, part.end) for part in reads] == [
        (0, 2, 4), (1, 1, 3), (1, 0, 1),
    ]  # fmt: skip


def test_a_queue_that_cannot_be_read_is_left_out() -> None:
    queues = topic([1, 2], [3])
    first, second = queues
    merge = NewestFirst(whole(queues), 2)
    merge.drop(second)
    (part,) = merge.wanted()
    merge.put(part, read(queues, part))
    message = merge.take()
    assert message is not None
    assert message.store_timestamp_ms == 2
    assert merge.rest() == {first: (0, 1)}


def test_what_a_broker_gives_beyond_the_part_is_not_shown() -> None:
    queue = MessageQueue("T", "broker-a", 0)
    merge = NewestFirst({queue: (5, 7)}, 2)
    (part,) = merge.wanted()
    merge.put(part, [stored(at=at, offset=at) for at in (4, 5, 6, 7)])
    assert [each.queue_offset for _ in range(3) if (each := merge.take())] == [6, 5]


def test_a_part_is_short_where_there_are_many_queues() -> None:
    assert [part_of(queues, 50) for queues in (0, 1, 8, 1000)] == [50, 50, 12, 4]


holed = st.lists(
    st.lists(st.integers(0, 20) | st.none(), max_size=12).map(
        lambda times: [
            time if time is None else at for time, at in zip(times, range(99), strict=False)
        ]
    ),
    max_size=4,
)


@given(queues=holed, count=st.integers(1, 5), part=st.integers(1, 4))
def test_page_by_page_every_message_comes_once_newest_first(
    queues: list[list[int | None]], count: int, part: int
) -> None:
    kept = topic(*queues)
    position, seen = whole(kept), list[int]()
    while position:
        times, position = taken(kept, position, count, part)
        seen += times
    every = [each.store_timestamp_ms for messages in kept.values() for each in messages]
    assert seen == sorted(every, reverse=True)
