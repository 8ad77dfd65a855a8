"""Messages that failed: back through the retry topic, and in the end to the dead letters."""

import json
from pathlib import Path
from typing import Any

import pytest

from pocketmq.broker.retry.rules import level_of_retry, retry_limit, retry_of
from pocketmq.model import GroupConfig
from pocketmq.model.delay import DELAY_LEVELS
from pocketmq.net import Address
from pocketmq.protocol import RecordView, RequestCode
from pocketmq.protocol.message_ids import encode_offset_id
from pocketmq.protocol.property_text import decode_properties
from pocketmq.protocol.records import Record, encode_record
from tests.broker.running import (
    LoopClock,
    client,
    position,
    pull_fields,
    records,
    running,
    send_fields,
)
from tests.loops import leap, leaping, until
from tests.vectors.java.retry_questions import answer_of, place_of

SEND = RequestCode.SEND_MESSAGE_V2
PULL = RequestCode.PULL_MESSAGE
BACK = RequestCode.CONSUMER_SEND_MSG_BACK
HEARTBEAT = RequestCode.HEART_BEAT
VECTORS = Path(__file__).parents[2] / "vectors" / "java-retries.jsonl"


# The rules


@pytest.mark.parametrize(
    ("tries", "limit", "asked", "level"),
    [
        (0, 16, 0, 3),
        (1, 16, 0, 4),
        (15, 16, 0, 18),
        (16, 16, 0, None),
        (17, 16, 0, None),
        (0, 16, 7, 7),
        (15, 16, 1, 1),
        (16, 16, 1, None),
        (0, 16, 99, 99),
        (0, 16, -1, None),
        (0, 16, -(2**31), None),
        (0, 0, 0, None),
        (0, -1, 5, None),
        (30, 100, 0, 33),
        (-1, 0, 0, 2),
    ],
)
def test_tries_and_limit_decide_when_a_message_comes_back(
    tries: int, limit: int, asked: int, level: int | None
) -> None:
    assert level_of_retry(tries, limit, asked) == level


@pytest.mark.parametrize(
    ("version", "asked", "limit"),
    [(479, None, 16), (479, 3, 3), (121, 3, 3), (120, 3, 16), (0, 3, 16), (479, -1, -1)],
)
def test_only_clients_that_mean_it_choose_their_limit(
    version: int, asked: int | None, limit: int
) -> None:
    assert retry_limit(GroupConfig(group_name="G"), version, asked) == limit


def failed_record(properties: bytes, **fields: Any) -> RecordView:
    record = Record(topic=b"T", body=b"body", property_bytes=properties, **fields)
    return RecordView(encode_record(record), 0)


def test_a_retry_is_a_copy_that_counts_one_more_try() -> None:
    host = bytes(range(20))
    failed = failed_record(
        b"TAGS\1x\2KEYS\1a b\2WAIT\1true\2DELAY\0014\2TRAN_MSG\1true\2",
        queue_id=3,
        flag=5,
        sys_flag=1 | 8,
        born_timestamp_ms=17,
        born_host=host,
        reconsume_times=2,
        commit_log_offset=1234,
        store_host=bytes(8),
        prepared_transaction_offset=77,
    )
    draft = retry_of(failed, 5)
    assert draft.properties == {
        "TAGS": "x",
        "KEYS": "a b",
        "WAIT": "false",
        "DELAY": "5",
        "TRAN_MSG": "true",
        "RETRY_TOPIC": "T",
        "ORIGIN_MESSAGE_ID": encode_offset_id(bytes(8), 1234),
    }
    assert (draft.body, draft.flag, draft.sys_flag) == (b"body", 5, failed.sys_flag)
    assert (draft.born_timestamp_ms, draft.born_host) == (17, host)
    assert (draft.reconsume_times, draft.prepared_transaction_offset) == (3, 0)


def test_a_retry_of_a_retry_remembers_where_it_first_came_from() -> None:
    draft = retry_of(failed_record(b"RETRY_TOPIC\1first\2ORIGIN_MESSAGE_ID\1ID\2"), None)
    assert draft.properties == {
        "RETRY_TOPIC": "first",
        "ORIGIN_MESSAGE_ID": "ID",
        "WAIT": "false",
        "DELAY": "0",
    }


def test_a_count_of_tries_does_not_overflow() -> None:
    assert retry_of(failed_record(b"", reconsume_times=2**31 - 1), 3).reconsume_times == 2**31 - 1


# A running broker


def back(offset: int, group: str = "CG", level: int = 0, **fields: str) -> dict[str, str]:
    return {"offset": str(offset), "group": group, "delayLevel": str(level)} | fields


def heartbeat(group: str, *subscriptions: dict[str, Any]) -> bytes:
    consumer = {
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
        "consumeType": "CONSUME_PASSIVELY",
        "groupName": group,
        "messageModel": "CLUSTERING",
        "subscriptionDataSet": list(subscriptions),
        "unitMode": False,
    }
    body = {"clientID": "c1", "consumerDataSet": [consumer], "producerDataSet": []}
    return json.dumps(body).encode()


def subscription(topic: str, text: str = "*", kind: str = "TAG") -> dict[str, Any]:
    return {
        "classFilterMode": False,
        "codeSet": [],
        "expressionType": kind,
        "subString": text,
        "subVersion": 1,
        "tagsSet": [],
        "topic": topic,
    }


@leaping
async def test_a_java_broker_was_asked_the_same_and_said_the_same() -> None:
    """One long session with RocketMQ 5.5.0: answers, and what it stored.

    A refusal of ours also carries region and trace switch, as its other refusals do.
    """
    steps = [json.loads(line) for line in VECTORS.read_text().splitlines()]
    places: dict[str, int] = {}
    ids: dict[str, str] = {}
    levels = "1s 1s 1s 1s"
    async with running(message_delay_level=levels) as (_, address), client(address) as peer:
        for step, expected in [(line["step"], line["answer"]) for line in steps]:
            ext = {key: str(places.get(value, value)) for key, value in step["ext"].items()}
            body = step.get("body", "").encode("latin-1")
            number = peer.post(step["code"], ext, body, step.get("version", 479))
            if step["code"] == PULL:
                await peer.ask(RequestCode.GET_ALL_DELAY_OFFSET)  # the pull waits now
                await leap(1.1)
            answer = await peer.answer(number)
            shown = None
            place = place_of(answer)
            if place is not None and step.get("show"):
                shown = await peer.ask(RequestCode.VIEW_MESSAGE_BY_ID, {"offset": str(place)})
            found = answer_of(step, answer, shown, places, ids)
            if found["code"] == 1 and step["code"] == SEND:
                found["ext"] = {}
            assert found == expected, step


@leaping
async def test_a_message_comes_back_sixteen_times_and_is_then_a_dead_letter() -> None:
    async with running() as (broker, address):
        async with client(address) as peer:
            sent = await peer.ask(SEND, send_fields("T", "UNIQ_KEY\1K\2"), b"x")
        offset = position(sent)
        for tries in range(16):
            await sent_back(address, offset)
            await leap(DELAY_LEVELS[tries + 2] - 2.0)  # a slow machine may take a while
            queue = broker.state.store.queue("%RETRY%CG", 0)
            assert (0 if queue is None else queue.next_offset) == tries
            await leap(2.1)
            message = await newest(address, "%RETRY%CG", tries)
            assert message.reconsume_times == tries + 1
            offset = message.commit_log_offset
        await sent_back(address, offset)
        dead = await newest(address, "%DLQ%CG", 0)
        assert dead.reconsume_times == 17
        properties = decode_properties(dead.property_bytes)
        assert (properties["RETRY_TOPIC"], properties["UNIQ_KEY"]) == ("T", "K")
        assert properties["ORIGIN_MESSAGE_ID"] == (sent.ext or {})["msgId"]
        assert broker.state.topics.get("%DLQ%CG") is not None


async def sent_back(address: Address, offset: int) -> None:
    async with client(address) as peer:
        answer = await peer.ask(BACK, back(offset))
        assert (answer.code, answer.remark, answer.body) == (0, None, b"")


async def newest(address: Address, topic: str, offset: int) -> RecordView:
    async with client(address) as peer:
        answer = await peer.ask(PULL, pull_fields(topic, offset))
        assert answer.remark == "FOUND"
        (message,) = records(answer)
        return message


@leaping
async def test_a_group_that_filters_by_sql_gets_its_retries() -> None:
    """The expression is for the topic; of its retry topic a group wants everything (Java's way)."""
    group = "SG"
    subscriptions = (
        subscription("T", "price > 10", "SQL92"),
        subscription(f"%RETRY%{group}"),
    )
    async with running(message_delay_level="1s") as (_, address), client(address) as peer:
        assert (await peer.ask(HEARTBEAT, {}, heartbeat(group, *subscriptions))).code == 0
        for price in (5, 20):
            properties = f"UNIQ_KEY\1K{price}\2price\1{price}\2TAGS\1t\2"
            assert (await peer.ask(SEND, send_fields("T", properties), b"x")).code == 0
        fields: dict[str, Any] = {"consumerGroup": group, "sysFlag": "2", "subVersion": "1"}
        by_sql = pull_fields("T", **fields, subscription="", expressionType="SQL92")
        (message,) = records(await peer.ask(PULL, by_sql))
        assert decode_properties(message.property_bytes)["price"] == "20"
        assert (await peer.ask(BACK, back(message.commit_log_offset, group, 1))).code == 0
        number = peer.post(PULL, pull_fields(f"%RETRY%{group}", **fields, subscription=""))
        await peer.ask(RequestCode.GET_ALL_DELAY_OFFSET)
        await leap(1.1)
        (again,) = records(await peer.answer(number))
        assert decode_properties(again.property_bytes)["RETRY_TOPIC"] == "T"
        assert again.reconsume_times == 1


@leaping
async def test_a_message_of_a_transaction_or_a_timer_that_failed_is_only_delayed() -> None:
    """Its properties asked for something when it was sent; they do not ask again."""
    async with running(message_delay_level="1s") as (broker, address), client(address) as peer:
        store = broker.state.store
        text = b"UNIQ_KEY\1K\2TRAN_MSG\1true\2PGROUP\1P\2TIMER_DELAY_SEC\0019\2"
        record = Record(topic=b"T", body=b"x", property_bytes=text, sys_flag=8)
        where = store.append(store.make_queue("T", 0), [record], [0], 1)
        for level in (1, -1):
            answer = await peer.ask(BACK, back(where.positions[0], level=level))
            assert answer.code == 0, answer.remark
        await leap(1.1)
        await until(lambda: store.queue("%RETRY%CG", 0) is not None, "the retry")
        assert store.queue("%DLQ%CG", 0) is not None


@leaping
async def test_a_broker_that_may_not_be_written_to_takes_nothing_back() -> None:
    async with running(broker_permission=4) as (_, address), client(address) as peer:
        answer = await peer.ask(BACK, back(0))
        assert answer.code == 16
        assert answer.remark == "the broker[127.0.0.1] sending message is forbidden"


@leaping
async def test_unknown_groups_are_refused_where_groups_do_not_come_by_themselves() -> None:
    async with (
        running(auto_create_subscription_group=False) as (broker, address),
        client(address) as peer,
    ):
        answer = await peer.ask(BACK, back(0, "nobody"))
        assert answer.code == 26
        assert (answer.remark or "").startswith("subscription group not exist, nobody")
        assert broker.state.topics.get("%RETRY%nobody") is None
        answer = await peer.ask(SEND, send_fields("%RETRY%nobody"), b"x")
        assert answer.code == 26


@leaping
async def test_a_retry_topic_that_may_not_be_written_to_takes_nothing_back() -> None:
    async with running() as (broker, address), client(address) as peer:
        sent = await peer.ask(SEND, send_fields("T"), b"x")
        broker.state.topics.create_for_group("%RETRY%CG", 1, perm=4, now_ms=1)
        answer = await peer.ask(BACK, back(position(sent)))
        assert answer.code == 16
        assert answer.remark == "the topic[%RETRY%CG] sending message is forbidden"


@leaping
async def test_a_retry_goes_to_a_queue_its_topic_has() -> None:
    """A group may be given more retry queues than its topic was made with; Java loses those."""
    async with running(message_delay_level="1s") as (broker, address), client(address) as peer:
        sent = await peer.ask(SEND, send_fields("T"), b"x")
        state = broker.state
        state.topics.create_for_group("%RETRY%CG", 2, now_ms=1)
        state.groups.update(GroupConfig(group_name="CG", retry_queue_nums=50), 1)
        for _ in range(40):
            assert (await peer.ask(BACK, back(position(sent), level=1))).code == 0
        await leap(1.1)

        def count() -> int:
            queues = [state.store.queue("%RETRY%CG", number) for number in range(2)]
            return sum([queue.next_offset for queue in queues if queue is not None])

        await until(lambda: count() == 40, "all retries")


@leaping
@pytest.mark.parametrize("offset", [-(2**63), -1, 1, 91, 2**40, 2**63 - 1])
async def test_places_where_no_message_begins_are_refused(offset: int) -> None:
    async with running() as (_, address), client(address) as peer:
        await peer.ask(SEND, send_fields("T"), bytes(200))
        answer = await peer.ask(BACK, back(offset))
        assert (answer.code, answer.remark) == (1, f"look message by offset failed, {offset}")


@leaping
async def test_a_one_way_retry_is_taken_without_an_answer() -> None:
    async with running(message_delay_level="1s") as (broker, address), client(address) as peer:
        sent = await peer.ask(SEND, send_fields("T"), b"x")
        peer.post_oneway(BACK, back(position(sent), level=-1))
        answer = await peer.ask(RequestCode.GET_ALL_DELAY_OFFSET)
        assert answer.code == 0
        assert broker.state.store.queue("%DLQ%CG", 0) is not None
        assert peer.unasked == []


@leaping
async def test_retries_survive_a_restart(tmp_path: Path) -> None:
    clock = LoopClock()
    levels: dict[str, Any] = {"message_delay_level": "1s 2s 3s"}
    async with running(tmp_path, clock, **levels) as (first, address), client(address) as peer:
        sent = await peer.ask(SEND, send_fields("T"), b"x")
        assert (await peer.ask(BACK, back(position(sent)))).code == 0
        metadata = first.state.store.metadata
        assert "%RETRY%CG" in dict(metadata.documents("topic"))  # before the answer
        assert "CG" in dict(metadata.documents("group"))
    async with running(tmp_path, clock, **levels) as (broker, address):
        assert broker.state.topics.get("%RETRY%CG") is not None
        assert broker.state.groups.get("CG") is not None
        await leap(3.1)
        message = await newest(address, "%RETRY%CG", 0)
        assert message.reconsume_times == 1


async def test_retries_and_dead_letters_are_counted_for_the_topic_they_came_from() -> None:
    """A topic that is not there counts for nothing: who sends could make up any number of them."""
    fields = {"group": "G", "delayLevel": "0", "originMsgId": "x", "unitMode": "false"}
    async with running() as (broker, address), client(address) as peer:
        stats = broker.state.stats
        real = await peer.ask(SEND, send_fields("T"), b"x")
        made_up = send_fields("T", "UNIQ_KEY\1K\2RETRY_TOPIC\1nowhere\2")
        other = await peer.ask(SEND, made_up, b"x")
        for sent in (real, other):
            place = fields | {"offset": str(position(sent))}
            assert (await peer.ask(BACK, place)).code == 0
        assert {pair: flow.messages for pair, flow in stats.sent_back.items()} == {
            ("T", "G"): 1,
            ("%RETRY%G", "G"): 1,
        }
        given_up = fields | {"offset": str(position(real)), "delayLevel": "-1"}
        assert (await peer.ask(BACK, given_up)).code == 0
        assert {pair: flow.messages for pair, flow in stats.dead.items()} == {("T", "G"): 1}
