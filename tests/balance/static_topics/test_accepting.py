"""What a broker accepts as a mapping, from peers that are not trusted."""

from collections.abc import Mapping, Sequence

import msgspec
import pytest

from pocketmq.balance.static_topics.checks import LARGEST_OFFSET, MAX_RANGES, accepted
from pocketmq.errors import MappingRefused
from pocketmq.model.topics import MAX_STATIC_QUEUES, MappedRange, TopicMappingDetail


def part(gen: int, broker: str, logic: int, **more: int) -> MappedRange:
    return msgspec.structs.replace(MappedRange(gen=gen, bname=broker, logic_offset=logic), **more)


def detail(
    hosted: Mapping[int, Sequence[MappedRange]], epoch: int = 1, **more: object
) -> TopicMappingDetail:
    own: dict[str, object] = {"topic": "fixed", "bname": "a", "total_queues": 2, "epoch": epoch}
    own["hosted_queues"] = {number: list(parts) for number, parts in hosted.items()}
    return TopicMappingDetail(**own | more)  # type: ignore[arg-type]


KNOWN = detail({0: [part(0, "a", 0)]}, epoch=5)
MOVED = detail({0: [part(0, "a", 0), part(1, "b", -1)]}, epoch=6)


def test_queues_that_a_new_mapping_lacks_stay() -> None:
    new = accepted(detail({1: [part(0, "a", 0, queue_id=1)]}, epoch=6), KNOWN, force=False)
    assert sorted(new.hosted_queues) == [0, 1]
    assert new.epoch == 6


def test_a_queue_may_move_and_its_offset_be_decided_once() -> None:
    moved = accepted(MOVED, KNOWN, force=False)
    decided = detail({0: [part(0, "a", 0), part(1, "b", 10_000)]}, epoch=6)
    assert accepted(decided, moved, force=False) == decided
    other = detail({0: [part(0, "a", 0), part(1, "b", 20_000)]}, epoch=7)
    with pytest.raises(MappingRefused, match="generation 1 cannot be changed"):
        accepted(other, decided, force=False)
    assert accepted(other, decided, force=True) == other


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (detail({0: [part(0, "a", 0)]}, epoch=4), "small epoch 4 < 5"),
        (detail({0: [part(0, "a", 0)]}, epoch=6, scope="x"), "unmatched scope"),
        (detail({1: [part(0, "a", 0)]}, epoch=5), "equal epoch with null data"),
        (detail({0: []}, epoch=6), "null or empty"),
        (detail({0: [part(0, "a", 0), part(1, "b", -1)]}, epoch=5), "leader is different"),
        (detail({0: [part(0, "c", 0)]}, epoch=6), "generation 0 cannot be changed"),
        (detail({}, epoch=6, total_queues=0), "fewer queues than before"),
    ],
)
def test_it_must_follow_from_the_mapping_before(wanted: TopicMappingDetail, reason: str) -> None:
    with pytest.raises(MappingRefused, match=reason):
        accepted(wanted, KNOWN, force=False)


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ([part(0, "a", -1), part(1, "b", 5)], "non-latest item has negative"),
        ([part(1, "a", 0), part(1, "b", 5)], "gen does not increase"),
        ([part(0, "a", 5), part(1, "b", 5)], "logic offset does not increase"),
        ([part(0, "a", 0, end_offset=9), part(1, "b", 9)], "logic offset does not increase"),
        ([part(0, "a", 0, start_offset=5, end_offset=4)], "smaller than the start offset"),
        ([part(0, "a", 0, start_offset=-1)], "should not be negative"),
        ([part(-1, "a", 0)], "should not be negative"),
        ([part(0, "a", 0, queue_id=1 << 20)], "should not be negative"),
        ([part(0, "a", LARGEST_OFFSET + 1)], "invalid offset"),
        ([part(0, "a", -2)], "invalid offset"),
        ([part(0, "", 0)], "name is missing"),
        ([part(0, "a" * 256, 0)], "name is missing or too long"),
        ([part(gen, "a", gen) for gen in range(MAX_RANGES + 1)], "more than 64 ranges"),
    ],
)
def test_ranges_that_no_queue_can_have_are_refused(parts: list[MappedRange], reason: str) -> None:
    with pytest.raises(MappingRefused, match=reason):
        accepted(detail({0: parts}), None, force=True)


@pytest.mark.parametrize("total", [-1, MAX_STATIC_QUEUES + 1])
def test_the_number_of_queues_is_limited(total: int) -> None:
    with pytest.raises(MappingRefused, match="are allowed"):
        accepted(detail({}, total_queues=total), None, force=True)


@pytest.mark.parametrize("number", [-1, 2])
def test_a_queue_must_be_one_of_the_topics(number: int) -> None:
    with pytest.raises(MappingRefused, match="is not one of 2 queues"):
        accepted(detail({number: [part(0, "a", 0)]}), None, force=True)


def test_the_mapping_itself_is_not_changed() -> None:
    before = msgspec.structs.asdict(KNOWN)
    accepted(MOVED, KNOWN, force=True)
    assert msgspec.structs.asdict(KNOWN) == before
