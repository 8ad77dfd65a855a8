"""A group as operators and its own members see it."""

from pocketmq.errors import ResponseCode
from pocketmq.model.kinds import ConsumeType, MessageModel
from pocketmq.protocol.bodies.connections import ConsumerConnections
from pocketmq.protocol.codes import RequestCode as Code
from pocketmq.protocol.json_values import decode_body
from tests.broker.handlers.test_membership import beat, consumer
from tests.broker.tables import Desk
from tests.broker.wire import Wire


def test_a_group_is_described_with_every_connection() -> None:
    desk = Desk()
    for place in ("a", "b"):
        beat(desk, Wire(place), consumer("CG", "T", messageModel="BROADCASTING"), clientID="twin")
    answer = desk.ask(Code.GET_CONSUMER_CONNECTION_LIST, {"consumerGroup": "CG"})
    told = decode_body(answer.body, ConsumerConnections)
    assert [(each.client_id, each.client_addr) for each in told.connection_set] == [
        ("twin", "a"),
        ("twin", "b"),
    ]
    assert {topic: each.sub_string for topic, each in told.subscription_table.items()} == {"T": "*"}
    assert told.message_model is MessageModel.BROADCASTING
    assert told.consume_type is ConsumeType.CONSUME_PASSIVELY


def test_a_group_without_members_is_not_online() -> None:
    answer = Desk().ask(Code.GET_CONSUMER_CONNECTION_LIST, {"consumerGroup": "CG"})
    assert answer.code == ResponseCode.CONSUMER_NOT_ONLINE
