"""Where messages of a queue went: laws over everything that two producers can do to a queue."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.admin.migration import offset_map

TWO = [
    offset_map.CopiedRange(10, 0, 5),
    offset_map.CopiedRange(15, 8, 4),
]  # offsets 5, 6 and 7 of the target are others'


@pytest.mark.parametrize(
    ("offset", "expected"),
    [(0, 0), (10, 0), (14, 4), (15, 8), (18, 11), (19, 12), (100, 12)],
)
def test_an_offset_becomes_that_of_the_next_copied_message(offset: int, expected: int) -> None:
    assert offset_map.translate(TWO, offset) == expected


def test_a_hole_in_the_source_leads_to_the_message_behind_it() -> None:
    assert (
        offset_map.translate([offset_map.CopiedRange(0, 0, 3), offset_map.CopiedRange(7, 3, 1)], 5)
        == 3
    )


def test_nothing_copied_has_no_place() -> None:
    assert offset_map.translate([], 7) is None


@pytest.mark.parametrize(("start", "expected"), [(0, 5), (4, 5), (5, 5), (6, 6), (8, 12), (20, 20)])
def test_the_first_other_message_is_behind_the_copies(start: int, expected: int) -> None:
    assert offset_map.first_other(TWO, start) == expected


def test_a_group_goes_on_exactly_behind_what_it_consumed() -> None:
    assert offset_map.position([offset_map.CopiedRange(10, 0, 100)], 42, 0) == offset_map.Position(
        32, 0
    )


def test_a_group_goes_back_to_the_first_message_of_others_and_meets_copies_again() -> None:
    assert offset_map.position(TWO, 18, 0) == offset_map.Position(5, 3)


def test_a_group_that_has_not_begun_begins_at_the_start() -> None:
    assert offset_map.position(TWO, None, 0) == offset_map.Position(0, 0)


@st.composite
def targets(draw: st.DrawFn) -> list[int | None]:
    """A queue of the target: offsets of the source in order, None for a message of others."""
    kinds = draw(st.lists(st.booleans(), max_size=40))
    first = draw(st.integers(0, 5))
    found: list[int | None] = []
    for is_copy in kinds:
        first += is_copy + draw(st.sampled_from([0, 0, 0, 1]))
        found.append(first - 1 if is_copy else None)
    return found


def stretches_of(target: list[int | None]) -> list[offset_map.CopiedRange]:
    found: list[offset_map.CopiedRange] = []
    for at, offset in enumerate(target):
        if offset is not None:
            one = offset_map.CopiedRange(offset, at, 1)
            if found and found[-1].joins(one):
                found[-1] = offset_map.CopiedRange(
                    found[-1].first, found[-1].target, found[-1].size + 1
                )
            else:
                found.append(one)
    return found


@given(targets(), st.integers(0, 60))
def test_a_group_that_moves_misses_nothing_and_what_it_meets_again_is_counted(
    target: list[int | None], committed: int
) -> None:
    place = offset_map.position(stretches_of(target), committed, 0)
    passed, ahead = target[: place.offset], target[place.offset :]
    assert all(offset is not None and offset < committed for offset in passed)
    assert place.again == sum(offset is not None and offset < committed for offset in ahead)
    if None not in target:
        assert place.again == 0
