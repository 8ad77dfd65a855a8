"""Stories of our clients with a topic of `queue.type=BatchCQ`, on a broker of either make."""

import pytest

import pocketmq as mq
from pocketmq.model import ConsumeFromWhere, TopicConfig
from pocketmq.net import Address
from tests.broker.background import Caller
from tests.interop.jvm import PATIENCE, wait_until

FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
WORDS = ["abcde", "f", "ghi"]


def split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)


def make_topic(address: str, topic: str) -> str:
    """Make a topic on the only broker; give the broker's address."""
    with mq.Admin(address) as admin:
        (place,) = admin.brokers.targets()
        config = TopicConfig(
            topic_name=topic,
            read_queue_nums=1,
            write_queue_nums=1,
            attributes={"+queue.type": "BatchCQ"},
        )
        admin.topics.create(config, address=place.address).all()
        return str(place.address)


def send_words(address: str, topic: str) -> list[mq.SendReceipt]:
    with mq.Producer(address, group="batches") as producer:
        return [
            producer.send(mq.Message(topic, word.encode(), tag=f"tag-{word}", keys=[f"key-{word}"]))
            if len(word) == 1
            else producer.send_batch(
                [mq.Message(topic, each.encode(), tag=f"tag-{each}") for each in word]
            )
            for word in WORDS
        ]


def send_and_pull(address: str) -> None:
    topic = "our-batches"
    make_topic(address, topic)
    receipts = send_words(address, topic)
    assert [each.queue_offset for each in receipts] == [0, 5, 6]
    assert all("," not in each.message_id for each in receipts)
    with mq.PullConsumer(address, group="our-pullers", consume_from=FIRST) as consumer:
        queue = receipts[0].queue
        consumer.assign([queue])
        for start in (0, 3, 5, 7):
            consumer.seek(queue, start)
            got: list[mq.ReceivedMessage] = []
            while len(got) < 9 - start:
                got += consumer.poll(timeout=PATIENCE)
            assert [each.queue_offset for each in got] == list(range(start, 9))
            assert b"".join(each.body for each in got) == b"abcdefghi"[start:]
            assert [each.tag for each in got] == [f"tag-{each}" for each in "abcdefghi"[start:]]


def find(address: str) -> None:
    topic = "our-found"
    make_topic(address, topic)
    batch, single, _ = send_words(address, topic)
    with mq.Admin(address) as admin:
        bounds = admin.offsets.bounds(batch.queue)
        assert tuple(bounds) == (0, 9)
        for offset, body in enumerate(b"abcdefghi"):
            assert admin.messages.by_offset(batch.queue, offset).body == bytes([body])
        page = admin.messages.page(batch.queue, 7)
        assert [each.queue_offset for each in page.messages] == [7, 8]

        def found() -> bool:
            messages = admin.messages.by_unique_key(topic, batch.message_id).messages
            return [each.body for each in messages] == [b"a", b"b", b"c", b"d", b"e"]

        wait_until(found, "the index of keys")
        assert batch.offset_message_id is not None
        assert admin.messages.by_id(topic, batch.offset_message_id).body == b"a"
        assert [each.body for each in admin.messages.by_key(topic, "key-f").messages] == [b"f"]
        assert admin.offsets.at_time(batch.queue, 0) == 0
        assert single.queue_offset == 5


def push_and_retry(address: str) -> None:
    topic = "our-pushed"
    make_topic(address, topic)
    send_words(address, topic)
    failing, handled = {b"b", b"h"}, dict[bytes, int]()

    def handle(message: mq.ReceivedMessage) -> None:
        if message.body in failing:
            failing.remove(message.body)
            raise mq.RetryLater(1)
        handled[message.body] = message.reconsume_times

    with mq.PushConsumer(address, group="our-pushers", consume_from=FIRST) as consumer:
        consumer.subscribe(topic, "*", handle)
        wait_until(lambda: len(handled) == 9, "all messages")
    assert b"".join(sorted(handled)) == b"abcdefghi"
    assert {body for body, tries in handled.items() if tries} == {b"b", b"h"}


def pop_and_acknowledge(address: str, *, in_order: bool) -> None:
    """Pop everything; the group's offset waits for all before it only where it goes `in_order`.

    A Java broker hands out whole batches, and commits what it has written down as popped.
    """
    topic = "our-popped"
    broker = make_topic(address, topic)
    send_words(address, topic)
    got: list[bytes] = []
    with mq.PopConsumer(address, group="our-poppers", consume_from=FIRST) as consumer:
        consumer.subscribe(topic)
        held = None
        while len(got) < 9:
            for message in consumer.receive(timeout=PATIENCE):
                got.append(message.body)
                if message.body == b"c":
                    held = message
                else:
                    consumer.ack(message)
        assert sorted(got) == [bytes([each]) for each in b"abcdefghi"]
        caller = Caller(Address(*split(broker)))
        fields = {"consumerGroup": "our-poppers", "topic": topic, "queueId": "0"}

        def committed() -> int:
            answer = caller.ask(14, fields)
            return int(answer.ext["offset"]) if answer.code == 0 else -1

        if in_order:
            assert committed() == 2
        assert held is not None
        consumer.ack(held)
        wait_until(lambda: committed() == 9, "the offset of the group")
        caller.close()


def scan_with_spark(address: str) -> None:
    pytest.importorskip("pyspark")
    from pocketmq.spark.batch_reader import batch_reader
    from pocketmq.spark.schema import full_schema
    from tests.spark.topics import rows

    topic = "our-scanned"
    make_topic(address, topic)
    (first, *_) = send_words(address, topic)
    broker = first.queue.broker_name
    options = {
        "nameServer": address,
        "subscribe": topic,
        "startingOffsets": f'{{"{topic}": {{"{broker}": {{"0": 2}}}}}}',
        "endingOffsets": f'{{"{topic}": {{"{broker}": {{"0": 8}}}}}}',
    }
    for more in ({}, {"minPartitions": "6"}):
        reader = batch_reader(options | more, full_schema())
        found = sorted(rows(reader, reader.partitions()), key=lambda row: row["queueOffset"])
        assert [(row["queueOffset"], row["body"]) for row in found] == [
            (offset, b"abcdefghi"[offset : offset + 1]) for offset in range(2, 8)
        ]
