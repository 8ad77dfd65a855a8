"""Requests about static topics as they come from the wire, from peers of any kind."""

import json
from typing import Any

import pytest

from pocketmq import aio
from pocketmq.embedded.aio import Cluster
from pocketmq.model.topics import MappedRange, TopicMappingDetail
from pocketmq.net import parse_address
from pocketmq.protocol import RequestCode, encode_body
from tests.broker.running import Client, client, running, send_fields

TOPIC = "fixed"
NOT_LEADER = 501


def part(gen: int, broker: str, logic: int, queue_id: int = 0) -> MappedRange:
    return MappedRange(gen=gen, bname=broker, logic_offset=logic, queue_id=queue_id)


def mapping(*parts: MappedRange, broker: str = "broker-a", **more: Any) -> TopicMappingDetail:
    hosted = {0: list(parts)} if parts else {}
    own: dict[str, Any] = {"topic": TOPIC, "bname": broker, "total_queues": 2, "epoch": 5}
    return TopicMappingDetail(**own | {"hosted_queues": hosted} | more)


async def create(
    peer: Client, detail: TopicMappingDetail | bytes, topic: str = TOPIC, **more: str
) -> tuple[int, str | None]:
    fields = {"topic": topic, "readQueueNums": "2", "writeQueueNums": "2", "perm": "6"}
    fields |= {"topicFilterType": "SINGLE_TAG", "order": "false", "defaultTopic": "TBW102"}
    body = detail if isinstance(detail, bytes) else encode_body(detail)
    answer = await peer.ask(RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC, fields | more, body)
    return answer.code, answer.remark


OWN = mapping(part(0, "broker-a", 0, queue_id=1))


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (mapping(part(0, "broker-a", 0), broker="broker-b"), 29),
        (mapping(part(0, "broker-a", 0), topic="other"), 29),
        (mapping(part(0, "broker-a", -5)), 1),
        (mapping(part(0, "broker-a", 0, queue_id=-1)), 1),
        (mapping(part(1, "broker-a", 0), part(0, "broker-b", 5)), 1),
        (mapping(total_queues=1 << 30), 1),
        (b"", 1),
        (b'{"hostedQueues":[]}', 1),
        (b'{"hostedQueues":{0:[{"logicOffset":1e400}]}}', 1),
    ],
)
async def test_what_is_no_mapping_of_this_broker_changes_nothing(
    body: TopicMappingDetail | bytes, code: int
) -> None:
    async with running(broker_name="broker-a") as (_, address), client(address) as peer:
        assert (await create(peer, body))[0] == code
        answer = await peer.ask(RequestCode.GET_TOPIC_CONFIG, {"topic": TOPIC, "lo": "true"})
        assert answer.code == 17


async def test_a_system_topic_is_not_static() -> None:
    async with running(broker_name="broker-a") as (_, address), client(address) as peer:
        name = "SCHEDULE_TOPIC_XXXX"
        code, remark = await create(peer, mapping(topic=name), name)
        assert (code, remark) == (29, f"The topic[{name}] is conflict with system topic.")


async def test_an_older_mapping_is_refused_unless_forced() -> None:
    async with running(broker_name="broker-a") as (_, address), client(address) as peer:
        assert await create(peer, OWN) == (0, None)
        old = mapping(part(0, "broker-a", 0, queue_id=1), epoch=4)
        assert await create(peer, old) == (1, "Can't accept data with small epoch 4 < 5")
        assert await create(peer, old, force="true") == (0, None)
        answer = await peer.ask(RequestCode.GET_TOPIC_CONFIG, {"topic": TOPIC, "lo": "true"})
        assert json.loads(answer.body)["mappingDetail"]["epoch"] == 4
        plain = await peer.ask(RequestCode.GET_TOPIC_CONFIG, {"topic": TOPIC})
        assert "mappingDetail" not in json.loads(plain.body)


async def test_a_send_goes_to_the_physical_queue_and_its_receipt_has_the_logical_one() -> None:
    async with running(broker_name="broker-a") as (_, address), client(address) as peer:
        await create(peer, mapping(part(3, "broker-a", 700, queue_id=1)))
        for offset in (700, 701):
            fields = send_fields(TOPIC, e="0")
            answer = await peer.ask(RequestCode.SEND_MESSAGE_V2, fields, b"x")
            assert (answer.ext["queueId"], answer.ext["queueOffset"]) == ("0", str(offset))
        chosen = await peer.ask(RequestCode.SEND_MESSAGE_V2, send_fields(TOPIC, e="-1"), b"x")
        assert chosen.ext["queueId"] == "0"
        bounds = {"topic": TOPIC, "queueId": "1"}
        physical = await peer.ask(RequestCode.GET_MAX_OFFSET, bounds | {"lo": "false"})
        assert physical.ext["offset"] == "3"


@pytest.mark.parametrize(
    ("code", "fields"),
    [
        (RequestCode.SEND_MESSAGE_V2, send_fields(TOPIC, e="1")),
        (RequestCode.GET_MAX_OFFSET, {}),
        (RequestCode.GET_MIN_OFFSET, {}),
        (RequestCode.GET_EARLIEST_MSG_STORETIME, {}),
        (RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, {"timestamp": "0"}),
        (RequestCode.QUERY_CONSUMER_OFFSET, {"consumerGroup": "g"}),
        (RequestCode.UPDATE_CONSUMER_OFFSET, {"consumerGroup": "g", "commitOffset": "0"}),
        (
            RequestCode.PULL_MESSAGE,
            {
                "consumerGroup": "g",
                "queueOffset": "0",
                "maxMsgNums": "1",
                "sysFlag": "0",
                "commitOffset": "0",
                "suspendTimeoutMillis": "0",
                "subVersion": "0",
            },
        ),
    ],
)
async def test_another_brokers_queue_is_refused(code: int, fields: dict[str, str]) -> None:
    async with running(broker_name="broker-a") as (_, address), client(address) as peer:
        await create(peer, OWN)
        answer = await peer.ask(code, {"topic": TOPIC, "queueId": "1"} | fields, b"x")
        assert answer.code == NOT_LEADER
        assert answer.remark == (
            "fixed-1 does not exit in request process of current broker broker-a"
        )


async def test_a_broker_that_cannot_be_found_costs_the_request_alone() -> None:
    async with running(broker_name="broker-a") as (_, address), client(address) as peer:
        await create(peer, mapping(part(0, "gone", 0), part(1, "broker-a", 100)))
        fields = {"topic": TOPIC, "queueId": "0"}
        first = await peer.ask(RequestCode.GET_MIN_OFFSET, fields)
        assert first.code == 1
        assert "gone" in (first.remark or "")
        end = await peer.ask(RequestCode.GET_MAX_OFFSET, fields)
        assert (end.code, end.ext["offset"]) == (0, "100")


async def test_a_forwarded_request_is_never_forwarded_again() -> None:
    """Each broker says that the first range is on the other one."""
    async with Cluster(brokers=2) as cluster, aio.Admin(cluster.address) as admin:
        await admin.static_topics.create(TOPIC, 1, ["broker-0"])
        places = {name: each.address for name, each in cluster.brokers.items()}
        for name, other in (("broker-0", "broker-1"), ("broker-1", "broker-0")):
            async with client(parse_address(places[name])) as peer:
                wrong = mapping(part(0, other, 0), part(1, name, 100), broker=name, total_queues=1)
                assert await create(peer, wrong, force="true") == (0, None)
        async with client(parse_address(places["broker-0"])) as peer:
            fields = {"topic": TOPIC, "queueId": "0", "lo": "true"}
            answer = await peer.ask(RequestCode.GET_MIN_OFFSET, fields)
            assert (answer.code, answer.ext["offset"]) == (0, "0")
