"""Topics with `queue.type=BatchCQ` over a real socket: answers as seen on RocketMQ 5.5.0.

Where we answer otherwise the test says so.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from pocketmq.net import Address
from pocketmq.protocol import Command, DeliveryContext
from pocketmq.protocol.batch import BatchEntry, encode_batch
from pocketmq.protocol.property_text import decode_properties
from pocketmq.protocol.pulled import decode_pulled
from pocketmq.protocol.records import decode_record
from tests.broker.background import Caller, background
from tests.broker.running import position, pull_fields, records, send_fields
from tests.broker.sending.test_requests import REGION, TOO_LARGE

MAKE_TOPIC, PULL, VIEW, SEND, SEND_BATCH = 17, 11, 33, 310, 320
COMPRESSED = "1"


@pytest.fixture(scope="module")
def address() -> Iterator[Address]:
    with background(broker_ip1="127.0.0.1", enable_property_filter=True) as found:
        yield found


@pytest.fixture
def caller(address: Address) -> Iterator[Caller]:
    connected = Caller(address)
    yield connected
    connected.close()


def make_topic(caller: Caller, topic: str, kind: str = "BatchCQ") -> Command:
    return caller.ask(
        MAKE_TOPIC,
        {
            "topic": topic, "defaultTopic": "TBW102", "readQueueNums": "1", "writeQueueNums": "1",
            "perm": "6", "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false",
            "attributes": f"+queue.type={kind}",
        },
    )  # fmt: skip


def batch_of(*names: str, tag: str = "") -> bytes:
    tags = f"TAGS\1{tag}\2" if tag else ""
    return encode_batch(
        [BatchEntry(name.encode(), f"UNIQ_KEY\1U{name}\2{tags}".encode(), 3) for name in names]
    )


def send_batch(
    caller: Caller, topic: str, *names: str, text: str = "UNIQ_KEY\1BATCH\2", **fields: str
) -> Command:
    body = batch_of(*names)
    return caller.ask(SEND_BATCH, send_fields(topic, text, m="true", **fields), body)


def pull(caller: Caller, topic: str, offset: int, **fields: Any) -> Command:
    return caller.ask(PULL, pull_fields(topic, offset, **({"sysFlag": "4"} | fields)))


@pytest.fixture
def filled(caller: Caller, request: pytest.FixtureRequest) -> str:
    """A topic with a batch of five, a single message, a batch of a 4.x producer, one of three."""
    topic = f"Filled-{abs(hash(request.node.name))}"
    assert make_topic(caller, topic).code == 0
    assert send_batch(caller, topic, *"abcde").ext["queueOffset"] == "0"
    single = caller.ask(SEND, send_fields(topic, "UNIQ_KEY\1S\2TAGS\1x\2"), b"single")
    assert single.ext["queueOffset"] == "5"
    assert send_batch(caller, topic, *"fg", text="WAIT\1true\2").ext["queueOffset"] == "6"
    tagged = "UNIQ_KEY\1BATCHB\2TAGS\1red\2a\0015\2"
    assert send_batch(caller, topic, *"hij", text=tagged).ext["queueOffset"] == "8"
    return topic


@pytest.mark.parametrize("serialize", [0, 1])
def test_a_batch_is_stored_and_answered_as_one(caller: Caller, serialize: int) -> None:
    topic = f"One{serialize}"
    make_topic(caller, topic)
    fields = send_fields(topic, "UNIQ_KEY\1BATCHA\2WAIT\1true\2", m="true")
    answer = caller.ask(SEND_BATCH, fields, batch_of(*"abc"), serialize=serialize)
    assert answer.code == 0
    stored = decode_record(caller.ask(VIEW, {"offset": str(position(answer))}).body)
    assert answer.ext == REGION | {
        "batchUniqId": "BATCHA",
        "msgId": answer.ext["msgId"],
        "queueId": "0",
        "queueOffset": "0",
        "transactionId": "BATCHA",
    }
    assert len(answer.ext["msgId"]) == 32
    assert (stored.body, stored.sys_flag, stored.queue_offset) == (batch_of(*"abc"), 192, 0)
    assert decode_properties(stored.property_bytes) == REGION | {
        "CLUSTER": "DefaultCluster",
        "INNER_BASE": "0",
        "INNER_NUM": "3",
        "UNIQ_KEY": "BATCHA",
        "WAIT": "true",
    }


def test_other_topics_store_message_by_message(caller: Caller) -> None:
    make_topic(caller, "Simple", "SimpleCQ")
    answer = send_batch(caller, "Simple", *"abc")
    assert len(answer.ext["msgId"].split(",")) == 3
    assert "batchUniqId" not in answer.ext
    assert [view.sys_flag for view in records(pull(caller, "Simple", 0))] == [0, 0, 0]


def test_the_type_of_queues_cannot_be_changed(caller: Caller) -> None:
    make_topic(caller, "Typed")
    for kind in ("SimpleCQ", "BatchCQ"):
        answer = make_topic(caller, "Typed", kind)
        words = "attempt to update an unchangeable attribute. key: queue.type"
        assert (answer.code, answer.remark) == (1, words)


@pytest.mark.parametrize(
    ("offset", "most", "found", "following"),
    [(0, 1, [0], 5), (3, 3, [0], 5), (4, 6, [0, 5], 6), (5, 1, [5], 6), (0, 10, [0, 5, 6, 7], 8),
     (9, 1, [8], 11), (10, 32, [8], 11), (0, 32, [0, 5, 6, 7, 8], 11)],
)  # fmt: skip
def test_a_pull_returns_whole_batches(
    caller: Caller, filled: str, offset: int, most: int, found: list[int], following: int
) -> None:
    answer = pull(caller, filled, offset, maxMsgNums=str(most))
    assert [view.queue_offset for view in records(answer)] == found
    assert (answer.code, answer.remark) == (0, "FOUND")
    assert answer.ext | {"nextBeginOffset": str(following), "maxOffset": "11"} == answer.ext
    messages = decode_pulled(answer.body, DeliveryContext())
    assert [each.queue_offset for each in messages] == list(range(found[0], following))
    assert [each.body for each in messages][-1] == [
        *b"abcde".decode(), "single", *b"fghij".decode(),
    ][following - 1].encode()  # fmt: skip


@pytest.mark.parametrize(
    ("expression", "kind", "found"),
    [("red", "TAG", [8]), ("x", "TAG", [5]), ("blue", "TAG", []), ("a = 5", "SQL92", [8]),
     ("INNER_NUM = 5", "SQL92", [0]), ("UNIQ_KEY = 'Ua'", "SQL92", [])],
)  # fmt: skip
def test_a_filter_sees_the_properties_of_the_batch(
    caller: Caller, filled: str, expression: str, kind: str, found: list[int]
) -> None:
    answer = pull(caller, filled, 0, subscription=expression, expressionType=kind)
    assert [view.queue_offset for view in records(answer)] == found
    assert answer.ext["nextBeginOffset"] == "11"


def test_a_pull_that_waits_gets_a_batch(caller: Caller, address: Address) -> None:
    make_topic(caller, "Waited")
    send_batch(caller, "Waited", *"ab")
    waiting = caller.post(PULL, pull_fields("Waited", 2))
    other = Caller(address)
    assert send_batch(other, "Waited", *"cd").ext["queueOffset"] == "2"
    other.close()
    answer = caller.receive()
    assert (answer.opaque, answer.ext["nextBeginOffset"]) == (waiting, "4")


def test_offsets_and_statistics_count_messages(caller: Caller, filled: str) -> None:
    place = {"topic": filled, "queueId": "0"}
    assert caller.ask(30, place).ext["offset"] == "11"
    assert caller.ask(31, place).ext["offset"] == "0"
    assert caller.ask(29, place | {"timestamp": "0"}).ext["offset"] == "0"
    # Java returns the last batch for a time after everything, and reads it again.
    assert caller.ask(29, place | {"timestamp": str(2**60)}).ext["offset"] == "11"
    stats = caller.ask(202, {"topic": filled}).body
    assert b'"maxOffset":11' in stats


def test_the_entries_of_a_queue_are_batches(caller: Caller, filled: str) -> None:
    fields = {"topic": filled, "queueId": "0", "consumerGroup": "G"}
    whole = json.loads(caller.ask(321, fields | {"index": "0", "count": "11"}).body)
    assert (whole["minQueueIndex"], whole["maxQueueIndex"]) == (0, 11)
    assert len(whole["queueData"]) == 5
    first = whole["queueData"][0]
    part = json.loads(caller.ask(321, fields | {"index": "3", "count": "2"}).body)
    assert part["queueData"] == [first]
    assert 0 < first["physicSize"] < 1000


def test_a_batch_is_found_by_its_own_id_alone(caller: Caller, filled: str) -> None:
    def found(key: str) -> list[int]:
        fields = {
            "topic": filled, "key": key, "maxNum": "10", "beginTimestamp": "0",
            "endTimestamp": str(2**62), "_UNIQUE_KEY_QUERY": "true",
        }  # fmt: skip
        return [view.queue_offset for view in records(caller.ask(12, fields))]

    assert (found("BATCHB"), found("Ui"), found("S")) == ([8], [], [5])


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("UNIQ_KEY\1X\2DELAY\0013\2", {}),
        ("UNIQ_KEY\1X\2TIMER_DELAY_SEC\00130\2", {}),
        ("UNIQ_KEY\1X\2TIMER_DELAY_MS\00130\2", {}),
        ("UNIQ_KEY\1X\2TIMER_DELIVER_MS\00130\2", {}),
        # Java stores these where nobody reads them, or what no consumer can read.
        ("UNIQ_KEY\1X\2", {"f": "4"}),
        ("UNIQ_KEY\1X\2", {"f": COMPRESSED}),
        ("UNIQ_KEY\1X\2A\1" + "x" * 32750 + "\2", {}),
    ],
)
def test_a_batch_that_cannot_be_one_record_is_refused(
    caller: Caller, text: str, fields: dict[str, str]
) -> None:
    make_topic(caller, "Refusing")
    answer = send_batch(caller, "Refusing", *"ab", text=text, **fields)
    assert (answer.code, answer.remark, answer.ext) == (13, TOO_LARGE, REGION)
    assert caller.ask(30, {"topic": "Refusing", "queueId": "0"}).ext["offset"] == "0"


@pytest.mark.parametrize(
    ("text", "flag"),
    [("UNIQ_KEY\1X\2INNER_NUM\0012\2", "0"), ("UNIQ_KEY\1X\2INNER_NUM\0012\2", "192"),
     ("UNIQ_KEY\1X\2", "128")],
)  # fmt: skip
def test_a_single_message_cannot_claim_to_be_a_batch(caller: Caller, text: str, flag: str) -> None:
    """Java's broker trusts the flag; here a batch is one whose entries were counted."""
    make_topic(caller, "Claiming")
    answer = caller.ask(SEND, send_fields("Claiming", text, f=flag), batch_of("a", "b"))
    assert (answer.code, answer.remark) == (13, TOO_LARGE)


@pytest.mark.parametrize("body", [b"", b"garbage", b"\0" * 22, batch_of("a")[:-3]])
def test_a_body_that_is_no_batch_is_refused(caller: Caller, body: bytes) -> None:
    make_topic(caller, "Malformed")
    answer = caller.ask(SEND_BATCH, send_fields("Malformed", "UNIQ_KEY\1X\2", m="true"), body)
    assert answer.code == 13
    assert caller.ask(30, {"topic": "Malformed", "queueId": "0"}).ext["offset"] == "0"


def test_numbers_that_a_producer_claims_are_replaced(caller: Caller) -> None:
    make_topic(caller, "Claims")
    text = "UNIQ_KEY\1X\2INNER_NUM\0017\2INNER_BASE\0019\2POP_CK\1z\2"
    answer = send_batch(caller, "Claims", *"ab", text=text, f="128")
    stored = decode_record(caller.ask(VIEW, {"offset": str(position(answer))}).body)
    found = decode_properties(stored.property_bytes)
    assert (found["INNER_NUM"], found["INNER_BASE"]) == ("2", "0")
    assert "POP_CK" not in found
    assert stored.property_bytes.count(b"INNER_NUM") == 1


def test_a_batch_cannot_be_sent_back_by_its_position(caller: Caller) -> None:
    """As in Java: the consumer then sends the message that failed to the retry topic."""
    make_topic(caller, "Back")
    answer = send_batch(caller, "Back", *"ab")
    fields = {
        "offset": str(position(answer)), "group": "G", "delayLevel": "0", "originMsgId": "U",
        "originTopic": "Back", "unitMode": "false", "maxReconsumeTimes": "16",
    }  # fmt: skip
    refused = caller.ask(36, fields)
    assert (refused.code, refused.remark) == (1, "MESSAGE_ILLEGAL")


def test_plain_messages_beside_batches_keep_their_order(caller: Caller) -> None:
    """Requests that are read together take different ways into the store."""
    make_topic(caller, "Mixed")
    for number in range(20):
        caller.post(SEND, send_fields("Mixed", f"UNIQ_KEY\1P{number}\2"), b"p")
        fields = send_fields("Mixed", f"UNIQ_KEY\1B{number}\2", m="true")
        caller.post(SEND_BATCH, fields, batch_of(*"xyz"))
    offsets = [int(caller.receive().ext["queueOffset"]) for _ in range(40)]
    assert offsets == [each for number in range(20) for each in (4 * number, 4 * number + 1)]
