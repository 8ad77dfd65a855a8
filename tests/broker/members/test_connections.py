"""A group as operators and its own members see it."""

from pocketmq.errors import ResponseCode
from pocketmq.model import ConsumeType, MessageModel
from pocketmq.protocol.codes import RequestCode as Code
from pocketmq.protocol.json_values import decode_body
from pocketmq.protocol.requests.groups import ConsumerConnections, ProducerTableBody
from tests.broker.members.test_requests import beat, consumer
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


def test_producers_are_listed_with_the_time_of_their_last_heartbeat() -> None:
    """The moment is the wall clock's, also after that one was set anew."""
    desk = Desk()
    beat(desk, Wire("a"), producerDataSet=[{"groupName": "PG"}], clientID="shop")
    desk.clock.time += 30
    desk.clock.off = 500.0
    told = decode_body(desk.ask(Code.GET_ALL_PRODUCER_INFO).body, ProducerTableBody).data
    assert [(each.client_id, each.remote_ip) for each in told["PG"]] == [("shop", "/a")]
    assert told["PG"][0].last_update_timestamp == desk.clock.now_ms() - 30_000
