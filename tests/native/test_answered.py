"""A broker waits for the next request at once only while nothing else is to be done."""

import pytest

from pocketmq.protocol import Command, RequestCode
from tests.broker.running import pull_fields
from tests.native.halves import Half, send_request

core = pytest.importorskip("pocketmq_core")


def answers_at_once(half: Half) -> bool:
    """Store a message as the lane does it, and return whether the next request may be waited for."""
    connection, request = half.connection, send_request(0)
    assert connection.lane is not None
    connection.answered = False
    assert connection.lane.take(connection, request, 0) == len(request)
    return connection.answered


async def test_a_client_that_sends_one_after_another_is_waited_for() -> None:
    half = Half(lane=True, metrics=False, segment=1 << 20)
    await half.read(send_request(0))
    assert answers_at_once(half)
    assert answers_at_once(half)
    half.close()


async def test_a_pull_that_waits_for_messages_is_answered_first() -> None:
    half = Half(lane=True, metrics=False, segment=1 << 20)
    await half.read(send_request(0))
    pull = Command.request(RequestCode.PULL_MESSAGE, 9, pull_fields("T", 1))
    await half.read(pull.encode())
    assert not answers_at_once(half)
    assert answers_at_once(half)
    half.close()


async def test_clients_that_take_turns_share_one_write_and_are_not_waited_for() -> None:
    half = Half(lane=True, metrics=False, segment=1 << 20)
    await half.read(send_request(0))
    half.state.writer.forget(half.connection)  # as after another client's message
    assert not answers_at_once(half)
    half.close()
