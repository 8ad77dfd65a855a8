"""Assignments as requests: routes that come later, broadcasting, modes."""

from typing import Any

import pytest

from pocketmq.broker.name_servers.routes import Found
from pocketmq.errors import ResponseCode
from pocketmq.model import MessageQueue, MessageRequestMode, QueueData, TopicRoute
from pocketmq.protocol import Command, decode_body
from pocketmq.protocol import RequestCode as Code
from pocketmq.protocol.requests.assignment import Assignments, LockedQueues
from tests.broker.tables import Clock, Desk
from tests.broker.wire import Wire


def route(**queues: int) -> TopicRoute:
    return TopicRoute(
        queue_datas=[
            QueueData(broker_name=name, read_queue_nums=count, write_queue_nums=count, perm=6)
            for name, count in queues.items()
        ]
    )


def desk_with(*members: str, topic: str = "T", **settings: Any) -> Desk:
    desk = Desk(**settings)
    for member in members:
        data = {"groupName": "g", "subscriptionDataSet": [{"topic": topic}]}
        body = {"clientID": member, "consumerDataSet": [data], "producerDataSet": []}
        desk.ask(Code.HEART_BEAT, {}, body, Wire(member))
    return desk


def question(member: str, **fields: str) -> dict[str, str]:
    base = {"topic": "T", "consumerGroup": "g", "clientId": member, "strategyName": "AVG"}
    return base | {"messageModel": "CLUSTERING"} | fields


def queues(answer: Command) -> set[MessageQueue] | None:
    assignments = decode_body(answer.body, Assignments).message_queue_assignments
    if assignments is None:
        return None
    return {each.message_queue for each in assignments if each.message_queue is not None}


def test_members_share_the_queues_of_all_brokers() -> None:
    desk = desk_with("m1", "m2")
    desk.state.routes.fetch = lambda _, found: found(route(a=2, b=2))
    shares = [queues(desk.ask(Code.QUERY_ASSIGNMENT, {}, question(each))) for each in ("m1", "m2")]

    assert shares == [
        {MessageQueue("T", "a", 0), MessageQueue("T", "a", 1)},
        {MessageQueue("T", "b", 0), MessageQueue("T", "b", 1)},
    ]


def test_an_answer_waits_for_the_name_server_and_is_then_sent() -> None:
    desk, wire, waiting = desk_with("m1"), Wire("m1"), list[Found]()
    desk.state.routes.fetch = lambda _, found: waiting.append(found)

    assert desk.try_ask(Code.QUERY_ASSIGNMENT, {}, question("m1"), wire) is None
    assert wire.take() == []
    waiting[0](route(a=1))
    (answer,) = wire.take()

    assert answer.is_response
    assert answer.opaque == 7
    assert queues(answer) == {MessageQueue("T", "a", 0)}


def test_a_topic_without_a_route_leaves_the_member_as_it_is() -> None:
    desk = desk_with("m1")

    assert queues(desk.ask(Code.QUERY_ASSIGNMENT, {}, question("m1"))) is None


def test_an_unknown_message_model_gets_no_answer() -> None:
    desk = desk_with("m1")
    desk.state.routes.fetch = lambda _, found: found(route(a=1))
    asked = question("m1", messageModel="LITE_SELECTIVE")

    assert queues(desk.ask(Code.QUERY_ASSIGNMENT, {}, asked)) is None


def test_a_broker_that_pops_by_default_says_so() -> None:
    desk = desk_with("m1", default_message_request_mode="POP")
    desk.state.routes.fetch = lambda _, found: found(route(a=3))
    answer = desk.ask(Code.QUERY_ASSIGNMENT, {}, question("m1"))
    assignments = decode_body(answer.body, Assignments).message_queue_assignments

    assert assignments is not None
    assert [(each.message_queue, each.mode) for each in assignments] == [
        (MessageQueue("T", "a", -1), MessageRequestMode.POP)
    ]


def test_a_mode_without_a_topic_is_refused() -> None:
    answer = Desk().ask(Code.SET_MESSAGE_REQUEST_MODE, {}, {"consumerGroup": "g", "mode": "POP"})

    assert answer.code == 1


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
