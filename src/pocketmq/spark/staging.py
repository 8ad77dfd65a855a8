"""Staging of exactly-once writes: encoded batches that wait in a topic no application reads.

A task sends each batch of rows as the body of one message of the staging topic: a `Chunk`. Rows of
attempts that do not count stay there until the brokers delete them. `moving` reads the chunks that
a decision names.
"""

import time

import numpy as np

from pocketmq import Admin, Message
from pocketmq.balance.consumer.pulling import PullStatus
from pocketmq.blocking.record_reader import RecordReader
from pocketmq.blocking.record_sender import RecordSender
from pocketmq.errors import InvalidInput, MQError, RouteNotFound, RowRefused, RowsNotSent
from pocketmq.model import MessageQueue, SendReceipt, TopicConfig
from pocketmq.model.names import is_retry_topic
from pocketmq.protocol import DeliveryContext
from pocketmq.protocol.pulled import decode_pulled
from pocketmq.spark.connections import PAUSE, patiently
from pocketmq.spark.ledger import Chunk
from pocketmq.spark.options import Reach
from pocketmq.spark.packing import Alone, Packed, encode
from pocketmq.spark.task_sends import TaskSends

QUEUES = 4
"""Queues that a topic gets on each broker, as brokers create them for producers."""


class StagedSends(TaskSends):
    """The chunks of one task, sent in order on a thread of their own."""

    def __init__(
        self, sender: RecordSender, reach: Reach, staging: str, partition: int, mark: bytes
    ) -> None:
        super().__init__(sender, reach.retry_timeout, partition)
        self.chunks: list[Chunk] = []
        """Those that are acknowledged, in the order of their rows."""
        self._reach = reach
        self._staging = staging
        self._mark = mark

    def _packed(self, packed: Packed) -> None:
        self._stage(packed.topic, packed.queue, packed.body, (packed.first, packed.last))

    def _alone(self, alone: Alone) -> None:
        """Stage a row that is larger than a batch may be."""
        row, topic = int(alone.rows.numbers[alone.at]), alone.rows.topic_of(alone.at)
        if is_retry_topic(topic):
            reason = f"is the retry topic {topic!r}, which takes no batches; drop exactlyOnce"
            raise RowRefused(row, self._partition, "topic", reason)
        one = alone.rows.take(np.array([alone.at]))
        body = encode(one, self._sender.take_ids(1), self._mark)[0].as_py()
        self._stage(topic, alone.queue, body, (row, row))

    def _stage(
        self, topic: str, queue: MessageQueue | None, body: bytes, rows: tuple[int, int]
    ) -> None:
        def send() -> SendReceipt:
            return self._sender.send(Message(self._staging, body))

        try:
            try:
                receipt = patiently(send, 0.0)
            except RouteNotFound:
                create_topic(self._reach, self._staging, topic)
                receipt = patiently(send, self._patience)
            except MQError:
                receipt = patiently(send, self._patience)
        except MQError as error:
            raise RowsNotSent(topic, *rows, self._partition, error) from error
        place = receipt.queue
        self.chunks.append(
            Chunk(
                place.broker_name,
                place.queue_id,
                receipt.queue_offset,
                receipt.message_id,
                topic,
                None if queue is None else (queue.broker_name, queue.queue_id),
            )
        )


def create_topic(reach: Reach, topic: str, like: str) -> None:
    """Create a topic in the clusters of another. Raises `InvalidInput`."""
    config = TopicConfig(topic_name=topic, read_queue_nums=QUEUES, write_queue_nums=QUEUES)
    try:
        with Admin(options=reach.client()) as admin:
            for cluster in admin.topics.clusters(like):
                admin.topics.create(config, cluster=cluster).all()
    except MQError as error:
        raise InvalidInput(
            f"topic {topic!r} does not exist and cannot be created: {error}; create it with "
            f"'pocketmq admin updateTopic -t {topic} -c CLUSTER'"
        ) from error


def read_chunk(reader: RecordReader, staging: str, chunk: Chunk, patience: float) -> bytes | None:
    """Return the encoded batch of a chunk; None if its broker has deleted it."""
    queue = MessageQueue(staging, chunk.broker, chunk.queue_id)
    deadline = time.monotonic() + patience
    while True:
        pulled = reader.pull(queue, chunk.offset, max_messages=1)
        if pulled.status is PullStatus.FOUND:
            delivery = DeliveryContext(offset_delta=pulled.offset_delta)
            for message in decode_pulled(pulled.records, delivery):
                if message.message_id == chunk.message_id:
                    return message.body
            return None
        # Java's brokers index a message a little later than they acknowledge it.
        if pulled.status is not PullStatus.NO_NEW_MSG or time.monotonic() > deadline:
            return None
        time.sleep(PAUSE)
