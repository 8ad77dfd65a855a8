"""Delay levels as a broker is told them."""

import pytest

from pocketmq.errors import InvalidInput
from pocketmq.model.delay import LONGEST_DELAY, MOST_LEVELS, parse_delay_levels


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1s", (1,)),
        ("1s 2m 3h 4d", (1, 120, 10_800, 345_600)),
        ("  5s   1s ", (5, 1)),
        ("0s", (0,)),
        ("007s", (7,)),
        ("36500d", (LONGEST_DELAY,)),
    ],
)
def test_levels_are_numbers_with_a_unit(text: str, seconds: tuple[int, ...]) -> None:
    assert parse_delay_levels(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "", "   ", "1", "s", "1S", "1ms", "1.5s", "-1s", "+1s", "1s,2s", "１s", "1s 2x", "1_0s",
        "36501d", "9" * 11 + "s", "9" * 1_000_000 + "s", "1s " * (MOST_LEVELS + 1), "1s\0", "²s",
    ],
)  # fmt: skip
def test_levels_that_cannot_be_meant_are_refused_with_their_key(text: str) -> None:
    with pytest.raises(InvalidInput, match="messageDelayLevel") as caught:
        parse_delay_levels(text)
    assert len(str(caught.value)) < 200
