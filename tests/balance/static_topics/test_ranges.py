"""Offsets of logical queues, and what their pulls are answered."""

import pytest

from pocketmq.balance.static_topics import ranges
from pocketmq.balance.static_topics.answers import LogicalAnswer, Pulled, logical_answer
from pocketmq.model.topics import MappedRange, TopicMappingDetail

OLD = MappedRange(gen=0, queue_id=3, bname="a", logic_offset=0)
MIDDLE = MappedRange(gen=1, queue_id=0, bname="b", logic_offset=10_000)
NEW = MappedRange(gen=2, queue_id=1, bname="a", logic_offset=20_000)
MOVING = MappedRange(gen=1, queue_id=0, bname="b", logic_offset=-1)
PARTS = [OLD, MIDDLE, NEW]
FOUND, NOTHING, AGAIN, MOVED = 0, 19, 20, 21


@pytest.mark.parametrize(
    ("offset", "part"), [(0, OLD), (9_999, OLD), (10_000, MIDDLE), (20_000, NEW), (1 << 62, NEW)]
)
def test_an_offset_belongs_to_one_range(offset: int, part: MappedRange) -> None:
    assert ranges.holding(PARTS, offset) is part


def test_an_offset_before_all_ranges_belongs_to_the_first() -> None:
    assert ranges.holding([MIDDLE, NEW], 5) is MIDDLE
    assert ranges.holding([OLD, MOVING], 1 << 62) is OLD
    assert ranges.holding([MOVING], 0) is None


def test_offsets_are_converted_both_ways() -> None:
    assert ranges.exactly(MIDDLE, 7) == 10_007
    assert ranges.physical(MIDDLE, 10_007) == 7
    assert ranges.shown(MOVING, 7) == -1
    ended = MappedRange(logic_offset=100, start_offset=10, end_offset=20)
    assert [ranges.shown(ended, offset) for offset in (0, 10, 15, 99)] == [100, 100, 105, 110]


@pytest.mark.parametrize(
    ("offset", "start"), [(0, 10_000), (4_999, 10_000), (5_000, 20_000), (10_001, 20_000)]
)
def test_a_moved_queue_continues_well_above_its_end(offset: int, start: int) -> None:
    assert ranges.rounded_up(offset, 10_000) == start


def test_a_broker_leads_the_queues_whose_last_range_it_has() -> None:
    detail = TopicMappingDetail(bname="a", hosted_queues={0: PARTS, 1: [OLD, MIDDLE], 2: []})
    assert ranges.led_here(detail) == {0: 1}
    assert ranges.registered(detail).curr_id_map == {0: 1}


@pytest.mark.parametrize(
    ("part", "asked", "pulled", "answered"),
    [
        (NEW, 3, Pulled(FOUND, 5, 0, 9), LogicalAnswer(FOUND, 20_005, 20_000, 20_009, 20_000)),
        (NEW, 9, Pulled(NOTHING, 9, 0, 9), LogicalAnswer(NOTHING, 20_009, 20_000, 20_009, 20_000)),
        (NEW, 99, Pulled(MOVED, 0, 0, 9), LogicalAnswer(MOVED, 20_009, 20_000, 20_009, 20_000)),
        (NEW, 1, Pulled(MOVED, 4, 4, 9), LogicalAnswer(AGAIN, 20_004, 20_004, 20_009, 20_000)),
        (OLD, 9, Pulled(NOTHING, 9, 0, 9), LogicalAnswer(AGAIN, 10_000, 10_000, 20_000, 10_000)),
        (OLD, 1, Pulled(MOVED, 4, 4, 9), LogicalAnswer(MOVED, 4, 4, 20_000, 0)),
        (MIDDLE, 9, Pulled(MOVED, 9, 9, 9), LogicalAnswer(AGAIN, 20_000, 20_000, 20_000, 20_000)),
        (MIDDLE, 1, Pulled(MOVED, 4, 4, 9), LogicalAnswer(AGAIN, 10_004, 10_004, 20_000, 10_000)),
    ],
)
def test_a_pull_is_answered_in_logical_offsets(
    part: MappedRange, asked: int, pulled: Pulled, answered: LogicalAnswer
) -> None:
    assert logical_answer(PARTS, part, asked, pulled) == answered


def test_a_pull_at_the_end_waits_while_the_queue_moves() -> None:
    answer = logical_answer([OLD, MOVING], OLD, 9, Pulled(NOTHING, 9, 0, 9))
    assert (answer.code, answer.next_offset, answer.max_offset) == (NOTHING, 9, 9)
