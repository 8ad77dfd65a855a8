"""Pulls over a real socket: checks in Java's order, every status, limits, filters, commits.

The codes and words were seen on RocketMQ 5.5.0; where we answer otherwise the test says so.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from pocketmq.model.java_strings import java_hash
from pocketmq.net import Address
from pocketmq.protocol import Command
from pocketmq.protocol.batch import BatchEntry, encode_batch
from tests.broker.background import Caller, background
from tests.broker.running import client, pull_fields, records, running, send_fields

PULL, LITE_PULL, SEND, HEARTBEAT, CREATE_TOPIC = 11, 361, 310, 34, 17
HELP = "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."


@pytest.fixture(scope="module")
def address() -> Iterator[Address]:
    with background(broker_ip1="127.0.0.1", auto_create_subscription_group=True) as found:
        caller = Caller(found)
        for body, properties in (
            (b"one", "TAGS\1paid\2n\0011\2"),
            (b"two", "TAGS\1open\2n\0012\2"),
        ):
            assert caller.ask(SEND, send_fields("T", properties), body).code == 0
        caller.close()
        yield found


@pytest.fixture
def caller(address: Address) -> Iterator[Caller]:
    connected = Caller(address)
    yield connected
    connected.close()


def pull(caller: Caller, topic: str = "T", code: int = PULL, **changes: Any) -> Command:
    """Pull without waiting, with changes; None leaves a field out."""
    fields = pull_fields(topic) | {"sysFlag": "4"} | changes
    return caller.ask(code, {key: value for key, value in fields.items() if value is not None})


def heartbeat(
    group: str, *, model: str = "CLUSTERING", client: str = "c1", **subscriptions: str
) -> bytes:
    """A heartbeat with subscriptions to a tag each, of version 100; `sql_` makes one SQL."""
    wanted = [
        {
            "classFilterMode": False,
            "codeSet": [java_hash(text)],
            "expressionType": "SQL92" if name.startswith("sql_") else "TAG",
            "subString": text,
            "subVersion": 100,
            "tagsSet": [text],
            "topic": name.removeprefix("sql_"),
        }
        for name, text in subscriptions.items()
    ]
    data = {
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
        "consumeType": "CONSUME_PASSIVELY",
        "groupName": group,
        "messageModel": model,
        "subscriptionDataSet": wanted,
        "unitMode": False,
    }
    return json.dumps(
        {"clientID": client, "consumerDataSet": [data], "producerDataSet": []}
    ).encode()


def join(caller: Caller, group: str, **subscriptions: str) -> None:
    number = caller.post(HEARTBEAT, {}, heartbeat(group, **subscriptions))
    while caller.receive().opaque != number:
        pass  # the notification that the group has changed


def bodies(answer: Command) -> list[bytes]:
    return [record.stored_body for record in records(answer)]


# Statuses


@pytest.mark.parametrize("code", [PULL, LITE_PULL])
@pytest.mark.parametrize("serialize", [0, 1])
def test_found_messages_come_with_what_a_client_needs_next(
    caller: Caller, code: int, serialize: int
) -> None:
    answer = caller.ask(code, pull_fields("T") | {"sysFlag": "4"}, serialize=serialize)
    assert (answer.code, answer.remark) == (0, "FOUND")
    assert answer.ext == {
        "suggestWhichBrokerId": "0",
        "nextBeginOffset": "2",
        "minOffset": "0",
        "maxOffset": "2",
        "topicSysFlag": "0",
        "groupSysFlag": "0",
    }
    assert bodies(answer) == [b"one", b"two"]


@pytest.mark.parametrize(
    ("changes", "code", "status", "following"),
    [
        ({"queueOffset": "1"}, 0, "FOUND", "2"),
        ({"queueOffset": "2"}, 19, "OFFSET_OVERFLOW_ONE", "2"),
        ({"queueOffset": "3"}, 21, "OFFSET_OVERFLOW_BADLY", "2"),
        ({"queueOffset": "9223372036854775807"}, 21, "OFFSET_OVERFLOW_BADLY", "2"),
        ({"queueOffset": "-1"}, 21, "OFFSET_TOO_SMALL", "0"),
        ({"queueId": "1"}, 19, "NO_MESSAGE_IN_QUEUE", "0"),
        ({"queueId": "1", "queueOffset": "5"}, 21, "NO_MESSAGE_IN_QUEUE", "0"),
        ({"queueId": "1", "queueOffset": "-1"}, 21, "NO_MESSAGE_IN_QUEUE", "0"),
        ({"subscription": "other"}, 20, "NO_MATCHED_MESSAGE", "2"),
        ({"subscription": "other", "sysFlag": "12"}, 20, "NO_MATCHED_MESSAGE", "2"),
        ({"subscription": "paid || other"}, 0, "FOUND", "2"),
        ({"subscription": None}, 0, "FOUND", "2"),
        ({"expressionType": None, "subscription": "paid"}, 0, "FOUND", "2"),
        ({"expressionType": "SQL92", "subscription": "n > 5"}, 20, "NO_MATCHED_MESSAGE", "2"),
        ({"expressionType": "SQL92", "subscription": "n > 1"}, 0, "FOUND", "2"),
        ({"maxMsgNums": "1"}, 0, "FOUND", "1"),
        ({"maxMsgNums": "0"}, 0, "FOUND", "1"),
        ({"maxMsgNums": "-7"}, 0, "FOUND", "1"),
    ],
)
def test_every_state_of_a_queue_has_its_answer(
    caller: Caller, changes: dict[str, Any], code: int, status: str, following: str
) -> None:
    answer = pull(caller, **changes)
    assert (answer.code, answer.remark) == (code, status)
    assert answer.ext["nextBeginOffset"] == following
    assert {"minOffset", "maxOffset", "suggestWhichBrokerId"} <= answer.ext.keys()
    assert bool(answer.body) == (code == 0)


# Refusals


@pytest.mark.parametrize(
    ("changes", "code", "remark"),
    [
        ({"consumerGroup": "a b"}, 26, f"subscription group [a b] does not exist, {HELP}"),
        ({"consumerGroup": ""}, 26, f"subscription group [] does not exist, {HELP}"),
        ({"topic": "nowhere"}, 17, f"topic[nowhere] not exist, apply first please! {HELP}"),
        ({"queueId": "4"}, 29, ("queueId[4] is illegal, topic:[T] topicConfig.readQueueNums:[4] "
         "consumer:[/{me}]")),
        ({"queueId": "-1"}, 29, ("queueId[-1] is illegal, topic:[T] topicConfig.readQueueNums:[4] "
         "consumer:[/{me}]")),
        ({"subscription": "||"}, 23, "parse the consumer's subscription failed"),
        # Java gives everything to a pull whose expression it does not understand.
        ({"expressionType": "SQL92", "subscription": "a ="}, 23,
         "parse the consumer's subscription failed"),
        ({"expressionType": "XPATH", "subscription": "a"}, 23,
         "parse the consumer's subscription failed"),
        ({"sysFlag": "0"}, 24, f"the consumer's group info not exist{HELP}"),
        ({"queueOffset": None}, 1, "malformed header: PullRequest has no field 'queueOffset', which is required"),
        ({"maxMsgNums": None}, 1, "malformed header: PullRequest has no field 'maxMsgNums', which is required"),
        # The first check that fails is the one that is told.
        ({"consumerGroup": "a b", "topic": "nowhere", "queueId": "9"}, 26,
         f"subscription group [a b] does not exist, {HELP}"),
        ({"topic": "nowhere", "queueId": "9", "subscription": "||"}, 17,
         f"topic[nowhere] not exist, apply first please! {HELP}"),
        ({"queueId": "4", "subscription": "||"}, 29, ("queueId[4] is illegal, topic:[T] "
         "topicConfig.readQueueNums:[4] consumer:[/{me}]")),
    ],
)  # fmt: skip
def test_a_refused_pull_says_why_in_javas_words(
    caller: Caller, changes: dict[str, Any], code: int, remark: str
) -> None:
    answer = pull(caller, **changes)
    assert (answer.code, answer.remark) == (code, remark.replace("{me}", caller.local_address))


def test_a_topic_that_may_not_be_read_is_not(caller: Caller) -> None:
    fields = {
        "topic": "WriteOnly", "defaultTopic": "TBW102", "readQueueNums": "1", "writeQueueNums": "1",
        "perm": "2", "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false",
    }  # fmt: skip
    assert caller.ask(CREATE_TOPIC, fields).code == 0
    answer = pull(caller, "WriteOnly")
    assert answer.code == 16
    assert answer.remark == "the topic[WriteOnly] pulling message is forbidden"


def test_a_group_that_may_not_consume_does_not(caller: Caller) -> None:
    assert caller.ask(200, {}, b'{"groupName":"banned","consumeEnable":false}').code == 0
    answer = pull(caller, consumerGroup="banned")
    assert (answer.code, answer.remark) == (16, "subscription group no permission, banned")


def test_a_group_that_may_not_broadcast_does_not(caller: Caller) -> None:
    body = b'{"groupName":"quiet","consumeBroadcastEnable":false}'
    assert caller.ask(200, {}, body).code == 0
    assert caller.ask(HEARTBEAT, {}, heartbeat("quiet", model="BROADCASTING", T="*")).code == 0
    answer = pull(caller, consumerGroup="quiet", sysFlag="0")
    assert answer.code == 16
    assert answer.remark == "the consumer group[quiet] can not consume by broadcast way"


# What a group subscribed


def test_the_heartbeats_subscription_counts(caller: Caller) -> None:
    join(caller, "tagged", T="paid")
    answer = pull(caller, consumerGroup="tagged", sysFlag="0", subVersion="100")
    assert bodies(answer) == [b"one"]
    assert pull(caller, consumerGroup="tagged", sysFlag="0", subVersion="7").code == 0


def test_a_topic_that_is_not_subscribed_is_refused(caller: Caller) -> None:
    join(caller, "elsewhere", Other="*")
    answer = pull(caller, consumerGroup="elsewhere", sysFlag="0")
    assert (answer.code, answer.remark) == (24, f"the consumer's subscription not exist{HELP}")


def test_a_pull_ahead_of_its_heartbeat_gets_everything_if_tags_decide(caller: Caller) -> None:
    """Java refuses it (25), and a fresh group may stand still for 30 s.

    Clients check tags themselves, so what is too much does no harm.
    """
    join(caller, "ahead", T="paid")
    answer = pull(caller, consumerGroup="ahead", sysFlag="0", subVersion="101")
    assert bodies(answer) == [b"one", b"two"]


def test_a_pull_ahead_of_its_heartbeat_is_refused_if_sql_decides(caller: Caller) -> None:
    join(caller, "sqlahead", sql_T="n > 1")
    for kind in ("SQL92", "TAG"):
        answer = pull(
            caller, consumerGroup="sqlahead", sysFlag="0", subVersion="101", expressionType=kind
        )
        assert (answer.code, answer.remark) == (25, "the consumer's subscription not latest")


def test_sql_from_a_heartbeat_filters(caller: Caller) -> None:
    join(caller, "sql", sql_T="n > 1 AND TAGS = 'open'")
    answer = pull(caller, consumerGroup="sql", sysFlag="0", expressionType="SQL92")
    assert bodies(answer) == [b"two"]


def test_sql_that_does_not_parse_is_said_to_be_missing(caller: Caller) -> None:
    join(caller, "broken", sql_T="n >")
    answer = pull(caller, consumerGroup="broken", sysFlag="0", expressionType="SQL92")
    assert answer.code == 27
    assert answer.remark == (
        "The broker's consumer filter data is not exist!Your expression may be wrong!"
    )


# Offsets


def committed(caller: Caller, group: str) -> Command:
    return caller.ask(14, {"consumerGroup": group, "topic": "T", "queueId": "0"})


def test_a_pull_commits_if_it_says_so(caller: Caller) -> None:
    assert pull(caller, consumerGroup="cg", sysFlag="5", commitOffset="2").code == 0
    assert committed(caller, "cg").ext["offset"] == "2"
    pull(caller, consumerGroup="cg", sysFlag="4", commitOffset="1")
    pull(caller, consumerGroup="cg", sysFlag="5", commitOffset="-1")
    pull(caller, consumerGroup="cg", sysFlag="5", commitOffset="1", queueId="9")
    assert committed(caller, "cg").ext["offset"] == "2"
    pull(caller, consumerGroup="cg", sysFlag="5", commitOffset="1", queueOffset="99")
    assert committed(caller, "cg").ext["offset"] == "1"


async def test_a_reset_sends_the_next_pull_elsewhere_once() -> None:
    async with running() as (broker, address), client(address) as peer:
        for _ in range(2):
            await peer.ask(SEND, send_fields("T"), b"x")
        broker.state.offsets.reset("CG", "T", 0, 1)
        fields = pull_fields("T", 2, sysFlag="4")
        answer = await peer.ask(PULL, fields)
        assert (answer.code, answer.remark) == (21, "OFFSET_RESET")
        assert (answer.ext["nextBeginOffset"], answer.ext["maxOffset"]) == ("1", "2")
        assert (await peer.ask(PULL, fields)).remark == "OFFSET_OVERFLOW_ONE"


# How much


@pytest.fixture(scope="module")
def backlog(address: Address) -> None:
    caller = Caller(address)
    batch = encode_batch([BatchEntry(b"x" * 1000)] * 600)
    for _ in range(2):
        assert caller.ask(320, send_fields("Backlog", m="true"), batch).code == 0
    assert caller.ask(SEND, send_fields("Large"), b"y" * 3_000_000).code == 0
    assert caller.ask(SEND, send_fields("Large"), b"y" * 3_000_000).code == 0
    caller.close()


@pytest.mark.usefixtures("backlog")
@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({"maxMsgNums": "32"}, 32),
        ({"maxMsgNums": "1000"}, 32),
        ({"maxMsgNums": "1000", "maxMsgBytes": "262144"}, 32),
        ({"maxMsgNums": "10", "maxMsgBytes": "2147483647"}, 10),
        ({"maxMsgNums": "1024", "maxMsgBytes": "2147483647"}, 1024),
        ({"maxMsgNums": "2147483647", "maxMsgBytes": "8388608"}, 1200),
        ({"maxMsgNums": "1024", "maxMsgBytes": "600000"}, 546),
    ],
)
def test_a_pull_gets_javas_share_or_what_it_asks_for_in_bytes(
    caller: Caller, changes: dict[str, Any], count: int
) -> None:
    answer = pull(caller, "Backlog", **changes)
    assert answer.ext["nextBeginOffset"] == str(count)
    assert len(records(answer)) == count


@pytest.mark.usefixtures("backlog")
def test_the_first_message_comes_however_large(caller: Caller) -> None:
    answer = pull(caller, "Large")
    assert [len(body) for body in bodies(answer)] == [3_000_000]
    assert answer.ext["nextBeginOffset"] == "1"


def test_a_tag_far_behind_is_found_in_steps(caller: Caller) -> None:
    """One pull looks at 800 messages; the next goes on where it stopped, as in Java."""
    batch = encode_batch([BatchEntry(b"x", b"TAGS\1no\2")] * 1000)
    assert caller.ask(320, send_fields("Sparse", m="true"), batch).code == 0
    assert caller.ask(SEND, send_fields("Sparse", "TAGS\1yes\2"), b"found").code == 0
    answer = pull(caller, "Sparse", subscription="yes")
    assert (answer.code, answer.ext["nextBeginOffset"]) == (20, "800")
    answer = pull(caller, "Sparse", subscription="yes", queueOffset="800")
    assert bodies(answer) == [b"found"]


# Settings


def test_settings_decide_who_may_pull() -> None:
    with background(auto_create_subscription_group=False, enable_property_filter=False) as address:
        caller = Caller(address)
        assert caller.ask(SEND, send_fields("T"), b"x").code == 0
        assert pull(caller).code == 26
        assert caller.ask(200, {}, b'{"groupName":"CG"}').code == 0
        assert pull(caller).code == 0
        answer = pull(caller, subscription="a = 1", expressionType="SQL92")
        assert (answer.code, answer.remark) == (
            1,
            "The broker does not support consumer to filter message by SQL92",
        )
        assert caller.ask(25, {}, b"litePullMessageEnable=false\n").code == 0
        answer = pull(caller, code=LITE_PULL)
        assert answer.code == 16
        assert answer.remark == "the broker[127.0.0.1] for lite pull consumer is forbidden"
        assert pull(caller).code == 0
        assert caller.ask(25, {}, b"brokerPermission=2\n").code == 0
        answer = pull(caller)
        assert (answer.code, answer.remark) == (
            16,
            "the broker[127.0.0.1] pulling message is forbidden",
        )
        caller.close()
