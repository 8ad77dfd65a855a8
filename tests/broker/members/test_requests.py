"""Heartbeats and leaving as requests: what they make, whom they wake, what the switches do."""

from typing import Any

import pytest

from pocketmq.broker.members.requests import expire
from pocketmq.errors import ResponseCode
from pocketmq.model import ConsumeType, MessageModel
from pocketmq.protocol import Command, decode_body
from pocketmq.protocol import RequestCode as Code
from pocketmq.protocol.requests import groups, membership
from tests.broker.tables import Desk
from tests.broker.wire import Wire


def consumer(group: str, *topics: str, **fields: Any) -> dict[str, Any]:
    subscriptions = [{"topic": topic, "subString": "*", "subVersion": 1} for topic in topics]
    return {"groupName": group, "subscriptionDataSet": subscriptions} | fields


def beat(
    desk: Desk, wire: Wire, *consumers: dict[str, Any], **fields: Any
) -> membership.HeartbeatResponse:
    body: dict[str, Any] = {
        "clientID": wire.remote_address,
        "consumerDataSet": list(consumers),
        "producerDataSet": [],
    }
    answer = desk.ask(Code.HEART_BEAT, {}, body | fields, wire)
    assert answer.code == ResponseCode.SUCCESS
    return answer.header(membership.HeartbeatResponse)


def members(desk: Desk, group: str) -> list[str]:
    answer = desk.ask(Code.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": group})
    if answer.code != ResponseCode.SUCCESS:
        return []
    return decode_body(answer.body, membership.ConsumerIds).consumer_id_list


def woken(wire: Wire) -> list[str]:
    """Return the groups a client was told about since the last time."""
    pushed = wire.take()
    assert all(push.code == Code.NOTIFY_CONSUMER_IDS_CHANGED and push.is_oneway for push in pushed)
    return [
        push.header(membership.NotifyConsumerIdsChangedRequest).consumer_group for push in pushed
    ]


def test_a_first_heartbeat_makes_the_group_and_its_retry_topic() -> None:
    desk, wire = Desk(), Wire("a")
    answer = beat(desk, wire, consumer("CG", "T"))

    assert answer == membership.HeartbeatResponse(is_support_heart_beat_v2=True, is_sub_change=True)
    assert "CG" in desk.state.groups
    assert "%RETRY%CG" in desk.state.topics
    assert desk.announced == ["%RETRY%CG"]
    assert members(desk, "CG") == ["a"]
    assert woken(wire) == ["CG"]


def test_a_heartbeat_like_the_last_one_does_nothing_but_keep_alive() -> None:
    desk, wire = Desk(), Wire("a")
    beat(desk, wire, consumer("CG", "T"))
    versions = desk.state.topics.version, desk.state.groups.version
    wire.take()
    desk.clock.time += 100
    beat(desk, wire, consumer("CG", "T"))
    desk.clock.time += 100
    expire(desk.state)

    assert members(desk, "CG") == ["a"]
    assert (desk.state.topics.version, desk.state.groups.version) == versions
    assert woken(wire) == []


def test_without_auto_creation_an_unknown_group_is_passed_over() -> None:
    desk, wire = Desk(auto_create_subscription_group=False), Wire("a")
    desk.ask(Code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, None, {"groupName": "known"})
    beat(desk, wire, consumer("unknown", "T"), consumer("known", "T"))

    assert members(desk, "unknown") == []
    assert members(desk, "known") == ["a"]
    assert "%RETRY%unknown" not in desk.state.topics


def test_producers_are_registered_beside_consumers() -> None:
    desk, wire = Desk(), Wire("a")
    beat(desk, wire, producerDataSet=[{"groupName": "PG"}, {"groupName": "CLIENT_INNER_PRODUCER"}])

    assert sorted(desk.state.producers.groups) == ["CLIENT_INNER_PRODUCER", "PG"]
    assert desk.state.producers.find("a") is wire


def test_a_broker_configured_not_to_notify_stays_silent() -> None:
    desk, wire = Desk(notify_consumer_ids_changed_enable=False), Wire("a")
    beat(desk, wire, consumer("CG", "T"))

    assert woken(wire) == []


def test_a_lost_connection_wakes_the_rest_at_once() -> None:
    desk, a, b = Desk(), Wire("a"), Wire("b")
    beat(desk, a, consumer("CG", "T"), consumer("CH", "T"), producerDataSet=[{"groupName": "PG"}])
    beat(desk, b, consumer("CG", "T"))
    woken(b)
    desk.disconnect(a)

    assert woken(b) == ["CG"]
    assert members(desk, "CG") == ["b"]
    assert members(desk, "CH") == []
    assert desk.state.producers.groups == {}


def test_a_client_that_leaves_is_gone_for_everybody_at_once() -> None:
    desk, a, b = Desk(), Wire("a"), Wire("b")
    beat(desk, a, consumer("CG", "T"), producerDataSet=[{"groupName": "PG"}])
    beat(desk, b, consumer("CG", "T"))
    woken(b)
    ext = {"clientID": "a", "consumerGroup": "CG", "producerGroup": "PG"}
    answer = desk.ask(Code.UNREGISTER_CLIENT, ext, None, a)

    assert answer.code == ResponseCode.SUCCESS
    assert members(desk, "CG") == ["b"]
    assert woken(b) == ["CG"]
    assert desk.state.producers.groups == {}


def test_silent_clients_are_disconnected_without_notifying_the_others() -> None:
    desk, a, b = Desk(), Wire("a"), Wire("b")
    beat(desk, a, consumer("CG", "T"), producerDataSet=[{"groupName": "PG"}])
    desk.clock.time += 60
    beat(desk, b, consumer("CG", "T"))
    woken(b)
    desk.clock.time += 61
    expire(desk.state)
    desk.disconnect(a)

    assert a.closed
    assert not b.closed
    assert members(desk, "CG") == ["b"]
    assert desk.state.producers.groups == {}
    assert woken(b) == []


@pytest.mark.parametrize("off", [86_400.0, -86_400.0])
def test_setting_the_clock_neither_expires_nor_keeps_clients(off: float) -> None:
    desk, a = Desk(), Wire("a")
    beat(desk, a, consumer("CG", "T"), producerDataSet=[{"groupName": "PG"}])
    desk.clock.off = off
    desk.clock.time += 119
    expire(desk.state)
    assert members(desk, "CG") == ["a"]
    assert list(desk.state.producers.groups) == ["PG"]

    desk.clock.time += 2
    expire(desk.state)
    assert members(desk, "CG") == []
    assert desk.state.producers.groups == {}


def test_a_short_heartbeat_asks_for_the_subscriptions_a_broker_has_lost() -> None:
    """After a restart the broker knows nothing; without them every pull would be refused."""
    short = {"heartbeatFingerprint": 7, "withoutSub": True}
    full = {"heartbeatFingerprint": 7, "withoutSub": False}
    desk, wire = Desk(), Wire("a")

    assert beat(desk, wire, consumer("CG"), **short).is_sub_change
    assert not beat(desk, wire, consumer("CG", "T"), **full).is_sub_change
    assert not beat(desk, wire, consumer("CG"), **short).is_sub_change
    assert desk.state.consumers.subscription("CG", "T") is not None


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"clientID":null}', b'{"clientID":"a","consumerDataSet":[{}]}']
)
def test_a_malformed_heartbeat_registers_no_client(body: bytes) -> None:
    desk, wire = Desk(), Wire("a")
    answer = desk.ask(Code.HEART_BEAT, {}, body, wire)

    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert desk.state.consumers.groups == {}


def check(desk: Desk, text: str, kind: str = "SQL92") -> Command:
    subscription = {"topic": "T", "subString": text, "expressionType": kind}
    return desk.ask(Code.CHECK_CLIENT_CONFIG, {}, {"subscriptionData": subscription})


def test_a_subscription_that_can_be_filtered_by_is_accepted() -> None:
    assert check(Desk(), "a > 1").code == ResponseCode.SUCCESS
    assert check(Desk(), "a || b", "TAG").code == ResponseCode.SUCCESS


@pytest.mark.parametrize(("text", "kind"), [("a >", "SQL92"), ("", "SQL92"), ("a", "GROOVY")])
def test_one_that_cannot_is_refused_with_a_short_remark(text: str, kind: str) -> None:
    answer = check(Desk(), text, kind)

    assert answer.code == ResponseCode.SUBSCRIPTION_PARSE_FAILED
    assert answer.remark
    assert "\n" not in answer.remark


def test_a_broker_that_does_not_filter_by_properties_says_so() -> None:
    answer = check(Desk(enable_property_filter=False), "a > 1")

    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert answer.remark == "The broker does not support consumer to filter message by SQL92"


def test_a_group_is_described_with_every_connection() -> None:
    desk = Desk()
    for place in ("a", "b"):
        beat(desk, Wire(place), consumer("CG", "T", messageModel="BROADCASTING"), clientID="twin")
    answer = desk.ask(Code.GET_CONSUMER_CONNECTION_LIST, {"consumerGroup": "CG"})
    told = decode_body(answer.body, groups.ConsumerConnections)
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
    told = decode_body(desk.ask(Code.GET_ALL_PRODUCER_INFO).body, groups.ProducerTableBody).data
    assert [(each.client_id, each.remote_ip) for each in told["PG"]] == [("shop", "/a")]
    assert told["PG"][0].last_update_timestamp == desk.clock.now_ms() - 30_000
