"""Requests that are sent again and again: the same bytes as one written anew each time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.protocol import Command
from pocketmq.protocol.repeated import RepeatedRequest

NUMBERS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(max_size=20) | st.sampled_from(
    ['"opaque":0', '"a":"7"', "%d", "100%", "%%(a)d", "\\", '\\"a\\":\\"', "é\u2028"]
)


@given(st.integers(0, 65535), st.integers(0, 2**31 - 1), NUMBERS, NUMBERS, TEXTS, TEXTS)
def test_a_repeated_request_is_one_written_anew(
    code: int, opaque: int, first: int, second: int, before: str, after: str
) -> None:
    def fields(a: int, b: int) -> dict[str, str]:
        return {"before": before, "a": str(a), "between": after, "b": str(b), "after": after}

    repeated = RepeatedRequest(Command.request(code, 0, fields(0, -1)), ("a", "b"))
    written = Command.request(code, opaque, fields(first, second)).encode()
    assert repeated.frame(opaque, first, second) == written


@pytest.mark.parametrize("names", [("c",), ("b", "a"), ("a", "a")])
def test_fields_that_are_not_there_in_this_order_are_refused(names: tuple[str, ...]) -> None:
    command = Command.request(11, 0, {"a": "1", "b": "2"})
    with pytest.raises(ValueError, match="the header has no"):
        RepeatedRequest(command, names)
