"""Locks as requests."""

import pytest

from pocketmq.errors import ResponseCode
from pocketmq.protocol.codes import RequestCode as Code
from pocketmq.protocol.json_values import decode_body
from pocketmq.protocol.requests.assignment import LockedQueues
from tests.broker.tables import Clock, Desk


def lock(desk: Desk, client: str, *ids: int) -> list[int]:
    queues = [{"brokerName": "b", "queueId": each, "topic": "T"} for each in ids]
    body = {"clientId": client, "consumerGroup": "g", "mqSet": queues}
    answer = desk.ask(Code.LOCK_BATCH_MQ, {}, body)
    return [queue.queue_id for queue in decode_body(answer.body, LockedQueues).locked]


@pytest.mark.parametrize("jump", [0.0, 3600.0, -3600.0])
def test_a_crashed_owner_blocks_its_queues_for_60_s(jump: float) -> None:
    """However the machine's clock is set meanwhile."""
    desk, steady = Desk(), Clock()
    desk.state.steady = steady.now
    assert lock(desk, "a", 0, 1) == [0, 1]
    desk.clock.time += jump
    steady.time += 60
    assert lock(desk, "b", 0, 1, 2) == [2]
    steady.time += 0.001
    assert lock(desk, "b", 0, 1, 2) == [0, 1, 2]


@pytest.mark.parametrize("code", [Code.LOCK_BATCH_MQ, Code.UNLOCK_BATCH_MQ])
@pytest.mark.parametrize("body", [b"", b"{}", b'{"clientId":"a","consumerGroup":"g","mqSet":[1]}'])
def test_a_body_that_cannot_be_read_locks_nothing(code: Code, body: bytes) -> None:
    desk = Desk()

    assert desk.ask(code, {}, body).code == ResponseCode.SYSTEM_ERROR
    assert desk.state.locks.all_free("g", 0.0)
