"""Messages with priorities: the queue that a broker chooses, and what it stores."""

from collections.abc import Iterator

import pytest

from pocketmq.broker.sending.targets import queue_of
from pocketmq.errors import ServerError
from pocketmq.model import TopicConfig
from pocketmq.model import property_names as names
from pocketmq.net import Address
from pocketmq.protocol.property_text import encode_properties
from tests.broker.background import Caller, background
from tests.broker.running import pull_fields, records, send_fields

SEND, SEND_BATCH, PULL, CREATE = 310, 320, 11, 17
CHOSEN = 2  # the queue that the sender asks for


@pytest.mark.parametrize(
    ("properties", "queue", "kept"),
    [
        ({}, CHOSEN, False),
        ({names.PRIORITY: "0"}, 0, True),
        ({names.PRIORITY: "3"}, 3, True),
        ({names.PRIORITY: "+1"}, 1, True),
        ({names.PRIORITY: "4"}, 3, True),  # there is none: the last queue
        ({names.PRIORITY: "2147483647"}, 3, True),
        ({names.PRIORITY: "2147483648"}, CHOSEN, True),  # no int of Java's
        ({names.PRIORITY: "-1"}, CHOSEN, True),
        ({names.PRIORITY: "high"}, CHOSEN, True),
        ({names.PRIORITY: "0", names.SHARDING_KEY: "k"}, CHOSEN, False),
        ({names.PRIORITY: "0", names.DELAY_LEVEL: "1"}, CHOSEN, False),
        ({names.PRIORITY: "0", names.TIMER_DELIVER_MS: "1"}, CHOSEN, False),
        ({names.PRIORITY: "0", names.TRANSACTION_PREPARED: "true"}, CHOSEN, False),
        ({names.PRIORITY: "0", names.TRANSACTION_PREPARED: "false"}, 0, True),
    ],
)
def test_a_priority_is_a_queue(properties: dict[str, str], queue: int, kept: bool) -> None:
    config = TopicConfig(topic_name="T", read_queue_nums=8, write_queue_nums=4)
    given = dict(properties)
    assert queue_of(config, CHOSEN, given) == queue
    assert (names.PRIORITY in given) is kept


def test_a_topic_without_queues_to_write_to_takes_no_priority() -> None:
    config = TopicConfig(topic_name="T", read_queue_nums=4, write_queue_nums=0)
    with pytest.raises(ServerError, match=r"topic\[T\] has no queue to write to"):
        queue_of(config, 0, {names.PRIORITY: "1"})


@pytest.fixture(scope="module")
def address() -> Iterator[Address]:
    with background(broker_ip1="127.0.0.1") as found:
        yield found


@pytest.fixture
def caller(address: Address) -> Iterator[Caller]:
    connected = Caller(address)
    fields = {
        "topic": "Urgent", "defaultTopic": "TBW102", "readQueueNums": "4", "writeQueueNums": "4",
        "perm": "6", "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false",
        "attributes": "+message.type=PRIORITY",
    }  # fmt: skip
    assert connected.ask(CREATE, fields).code == 0
    yield connected
    connected.close()


@pytest.mark.parametrize("topic", ["Urgent", "Plain"])
def test_the_answer_names_the_queue_of_the_priority(caller: Caller, topic: str) -> None:
    """As in Java the topic's type does not matter."""
    for priority, queue in ((1, "1"), (99, "3"), (0, "0")):
        text = encode_properties({names.PRIORITY: str(priority), "UNIQ_KEY": "K"}).decode()
        answer = caller.ask(SEND, send_fields(topic, text, e="2", d="4"), b"%d" % priority)
        assert (answer.code, answer.ext["queueId"]) == (0, queue), answer.remark
        offset = int(answer.ext["queueOffset"])
        pull = caller.ask(PULL, pull_fields(topic, offset, queueId=queue, sysFlag="4"))
        (record,) = records(pull)
        assert record.stored_body == b"%d" % priority
        assert b"_SYS_MSG_PRIORITY_\1%d\2" % priority in record.property_bytes


def test_a_message_to_a_lite_topic_is_refused(caller: Caller) -> None:
    """Java stores it in its own queue alone unless lite topics are enabled."""
    fields = send_fields("Plain", "__LITE_TOPIC\1chat-7\2UNIQ_KEY\1K\2")
    answer = caller.ask(SEND, fields, b"x")
    assert (answer.code, answer.remark) == (13, "this broker has no lite topics")
