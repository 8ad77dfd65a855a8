"""A queue's first message: offset and time belong together, also while messages are deleted."""

from collections.abc import Iterator

import pytest

from pocketmq.client.questions.asking import Ask, run_blocking
from pocketmq.client.questions.offsets import first_message
from pocketmq.model import MessageQueue
from pocketmq.protocol import Command, RequestCode

QUEUE = MessageQueue("orders", "broker-a", 0)


def answers(firsts: Iterator[int], times: Iterator[int], asked: Ask) -> Command:
    request = Command.request(asked.code, 1, asked.header.to_ext())
    if asked.code == RequestCode.GET_MIN_OFFSET:
        return request.reply(0, None, {"offset": str(next(firsts))})
    assert asked.code == RequestCode.GET_EARLIEST_MSG_STORETIME
    return request.reply(0, None, {"timestamp": str(next(times))})


@pytest.mark.parametrize(
    ("firsts", "times", "found"),
    [
        ([5, 5], [100], (5, 100)),
        ([5, 7, 7], [100, 200], (7, 200)),  # 100 was that of 5, which is gone
        ([0, 0], [-1], (0, -1)),
        ([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5], (6, -1)),  # never two alike: unknown
    ],
)
def test_offset_and_time_are_of_one_message(
    firsts: list[int], times: list[int], found: tuple[int, int]
) -> None:
    first, time = iter(firsts), iter(times)
    assert run_blocking(first_message(QUEUE), lambda asked: answers(first, time, asked)) == found
    assert not list(first)
    assert not list(time)
