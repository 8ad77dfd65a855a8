"""The fields of a pull, and what its answer is made of."""

import asyncio
from typing import Any

import pytest

from pocketmq.balance.consumer.pulling import CommitWithPull
from pocketmq.balance.profile import V4, V5, Profile
from pocketmq.client.consumer_options import PushConsumerOptions
from pocketmq.client.damage import TRIES
from pocketmq.client.group.held_queue import HeldQueue
from pocketmq.client.group.pulling import AskedPull, read_answer
from pocketmq.client.group.subscriptions import SubscribedTopic, Subscriptions
from pocketmq.client.push.pulling import push_template
from pocketmq.errors import MessagesCutShort
from pocketmq.model import MessageQueue, OnDamage
from pocketmq.protocol import Command
from pocketmq.protocol.hosts import encode_host
from pocketmq.protocol.property_text import encode_properties
from pocketmq.protocol.records import Record, encode_record
from pocketmq.protocol.requests.reading import PullResponse

HOST = encode_host("127.0.0.1:10911")
HEADER = PullResponse(
    suggest_which_broker_id=0, next_begin_offset=9, min_offset=2, max_offset=12, offset_delta=None
)
SKIP = OnDamage.SKIP
NO_COMMIT = CommitWithPull(False, -1)


def held(topic: str = "orders") -> HeldQueue:
    return HeldQueue(MessageQueue(topic, "broker-a", 3), topic, 0, 0.0)


def subscribed(subscriptions: Subscriptions, expression: str = "*") -> SubscribedTopic:
    subscriptions.want("orders", expression, version_ms=77)
    subscriptions.add_own("%RETRY%billing", 77)
    found = subscriptions.get(subscriptions.wire("orders"))
    assert found is not None
    return found


def record(offset: int, topic: str = "orders", **properties: str) -> bytes:
    return encode_record(
        Record(
            topic=topic.encode(),
            body=b"body",
            property_bytes=encode_properties(properties),
            queue_id=0,
            flag=0,
            sys_flag=0,
            born_timestamp_ms=1,
            born_host=HOST,
            queue_offset=offset,
            commit_log_offset=offset * 100,
            store_timestamp_ms=2,
            store_host=HOST,
        )
    )


def test_a_pull_says_what_java_says() -> None:
    options = PushConsumerOptions(group="billing")
    template = push_template("billing", held().queue, subscribed(Subscriptions("")), options, V5)
    assert template.fields(template.numbers(41, 32, CommitWithPull(True, 17))) == {
        "consumerGroup": "billing",
        "topic": "orders",
        "queueId": "3",
        "queueOffset": "41",
        "maxMsgNums": "32",
        "sysFlag": "3",
        "commitOffset": "17",
        "suspendTimeoutMillis": "15000",
        "subVersion": "77",
        "expressionType": "TAG",
        "maxMsgBytes": "262144",
        "bname": "broker-a",
    }


def test_a_4x_client_says_less_and_a_subscription_may_be_sent_along() -> None:
    options = PushConsumerOptions(group="billing", subscription_in_pull=True, pull_batch=8)
    wanted = subscribed(Subscriptions(""), "a || b")
    template = push_template("billing", held().queue, wanted, options, V4)
    fields = template.fields(template.numbers(0, 8, NO_COMMIT))
    assert fields["subscription"] == "a || b"
    assert (fields["sysFlag"], fields["maxMsgNums"]) == ("6", "8")
    assert "bname" not in fields
    assert "maxMsgBytes" not in fields


@pytest.mark.parametrize(
    ("settings", "profile", "most"),
    [
        ({}, V5, "1048576"),
        ({"pull_batch_bytes": 262144}, V5, "262144"),
        ({"pull_batch_bytes": 2_000_000}, V5, "2000000"),
        ({"pull_batch_bytes": 65536}, V5, "65536"),
        ({"pull_batch": 256}, V5, "262144"),
        ({}, V4, None),
    ],
)
def test_who_catches_up_asks_for_more_bytes_unless_told_how_many(
    settings: dict[str, Any], profile: Profile, most: str | None
) -> None:
    options = PushConsumerOptions(group="billing", **settings)
    template = push_template(
        "billing", held().queue, subscribed(Subscriptions("")), options, profile
    )
    fields = template.fields(template.numbers(0, 256, NO_COMMIT))
    assert (fields["maxMsgNums"], fields.get("maxMsgBytes")) == ("256", most)


def test_messages_carry_what_the_receiver_knows() -> None:
    subscriptions = Subscriptions("shop")
    wanted = subscribed(subscriptions)
    answer = Command(0, 1, body=record(7, "shop%orders") + record(8, "shop%orders"))
    pulled = read_answer(AskedPull(7, wanted, SKIP), answer, HEADER, held(), subscriptions)
    assert pulled.next_offset == 9
    assert [(m.topic, m.queue_id, m.queue_offset, m.broker_name) for m in pulled.messages] == [
        ("orders", 3, 7, "broker-a"),
        ("orders", 3, 8, "broker-a"),
    ]
    assert pulled.messages[0].get_property("MAX_OFFSET") == "12"
    assert pulled.messages[0].get_property("MIN_OFFSET") == "2"


def test_what_failed_is_shown_under_the_topic_it_was_sent_to() -> None:
    subscriptions = Subscriptions("shop")
    wanted = subscribed(subscriptions)
    body = record(1, "%RETRY%billing", RETRY_TOPIC="shop%refunds") + record(2, "%RETRY%billing")
    asked, answer = AskedPull(1, wanted, SKIP), Command(0, 1, body=body)
    pulled = read_answer(asked, answer, HEADER, held("%RETRY%billing"), subscriptions)
    assert [message.topic for message in pulled.messages] == ["refunds", "%RETRY%billing"]


def test_tags_are_looked_at_again() -> None:
    subscriptions = Subscriptions("")
    wanted = subscribed(subscriptions, "BB")
    body = record(1, TAGS="Aa") + record(2, TAGS="BB") + record(3)
    asked, answer = AskedPull(1, wanted, SKIP), Command(0, 1, body=body)
    pulled = read_answer(asked, answer, HEADER, held(), subscriptions)
    assert [message.queue_offset for message in pulled.messages] == [2]
    assert pulled.next_offset == 9


def test_a_damaged_record_is_pulled_again_alone_and_then_skipped_with_one_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Java would pass over the rest of the answer in silence."""
    subscriptions = Subscriptions("")
    wanted, queue = subscribed(subscriptions), held()
    torn = Command(0, 1, body=record(7) + record(8)[:-3])
    pulled = read_answer(AskedPull(7, wanted, SKIP), torn, HEADER, queue, subscriptions)
    assert ([m.queue_offset for m in pulled.messages], pulled.next_offset) == ([7], 8)
    front = Command(0, 1, body=record(8)[:-3])
    seen = []
    for _ in range(TRIES):
        pulled = read_answer(AskedPull(8, wanted, SKIP), front, HEADER, queue, subscriptions)
        seen.append((pulled.messages, pulled.next_offset, queue.suspicion.alone))
    assert seen == [([], 8, True), ([], 8, True), ([], 9, False)]
    (told,) = [each.getMessage() for each in caplog.records if each.levelname == "ERROR"]
    assert told.startswith("damaged message skipped: topic=orders queue=broker-a:3 offset=8 ")


def test_a_consumer_that_shall_stop_at_damage_holds_the_queue_there(
    caplog: pytest.LogCaptureFixture,
) -> None:
    subscriptions = Subscriptions("")
    wanted, queue = subscribed(subscriptions), held()
    asked, front = AskedPull(8, wanted, OnDamage.STOP), Command(0, 1, body=record(8)[:-3])
    for _ in range(TRIES - 1):
        assert read_answer(asked, front, HEADER, queue, subscriptions).next_offset == 8
    for _ in range(3):
        with pytest.raises(MessagesCutShort):
            read_answer(asked, front, HEADER, queue, subscriptions)
    (told,) = [each.getMessage() for each in caplog.records if each.levelname == "ERROR"]
    assert told.startswith("damaged message stops its queue: topic=orders ")


def test_a_record_that_was_damaged_on_its_way_is_delivered_when_it_comes_sound() -> None:
    subscriptions = Subscriptions("")
    wanted, queue = subscribed(subscriptions), held()
    asked = AskedPull(8, wanted, SKIP)
    bad = Command(0, 1, body=record(8)[:-3])
    for _ in range(5):
        for _ in range(TRIES - 1):
            assert read_answer(asked, bad, HEADER, queue, subscriptions).next_offset == 8
        sound = Command(0, 1, body=record(8))
        pulled = read_answer(asked, sound, HEADER, queue, subscriptions)
        assert [message.queue_offset for message in pulled.messages] == [8]
        assert not queue.suspicion.alone


async def test_a_held_queue_tells_when_its_handlers_have_finished() -> None:
    one = held()
    assert await one.until_idle(0.0)
    one.begin_work()
    one.begin_work()
    assert not await one.until_idle(0.0)
    waiting = asyncio.ensure_future(one.until_idle(10.0))
    await asyncio.sleep(0)
    one.end_work()
    assert not waiting.done()
    one.end_work()
    assert await waiting


def test_pulls_ask_for_the_version_in_which_the_expression_came() -> None:
    """Brokers refuse pulls of a later version than they know, such as one just made."""
    subscriptions = Subscriptions("")
    subscribed(subscriptions, "a")
    subscriptions.bump("orders", 99)
    bumped = subscriptions.get("orders")
    assert bumped is not None
    options = PushConsumerOptions(group="billing")
    template = push_template("billing", held().queue, bumped, options, V5)
    fields = template.fields(template.numbers(0, 32, NO_COMMIT))
    assert (bumped.subscription.sub_version, fields["subVersion"]) == (99, "77")
    subscriptions.bump("orders", 42)  # the clock was set back
    again = subscriptions.get("orders")
    assert again is not None
    assert again.subscription.sub_version == 99
