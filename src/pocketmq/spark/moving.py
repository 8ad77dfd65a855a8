"""The move of a decided micro-batch from the staging topic to its target, each row once.

A batch that is sent to the target may be stored although no response came. So what is not known to
be stored is compared with the target before it is sent again, in three steps:

1. Wait until the brokers have no other connection of this query's movers: nothing that an earlier
   process sent can be stored later (`blocking.fenced`).
2. Read the target queues from where they ended before the decision, and collect the ids of rows.
3. Send the rows whose ids are missing, queue by queue in their order.

A decision just made has no earlier process, and is sent without these steps.
"""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

from pocketmq.balance.consumer.pulling import PullStatus
from pocketmq.blocking.fenced import FencedConnection
from pocketmq.errors import BatchIncomplete, MQError, TopicNotFound
from pocketmq.model import MessageQueue, property_names
from pocketmq.protocol import DeliveryContext
from pocketmq.protocol.batch import decode_batch, encode_batch
from pocketmq.protocol.property_text import decode_properties
from pocketmq.protocol.pulled import decode_pulled
from pocketmq.spark.connections import PAUSE, may_pass, reader_of
from pocketmq.spark.ledger import BatchDecision, Chunk
from pocketmq.spark.options import Reach
from pocketmq.spark.staging import read_chunk

SETTLE = 3.0
"""Seconds a broker may take to store what it has read: Java's refuse sends that waited for 0.2."""
LOST_AFTER = 150.0
"""Seconds after which no broker keeps the connection of a machine that is gone: Java's take 120."""
AHEAD = 2
"""Chunks that are read while one is sent."""


class BatchMove:
    """The move of one micro-batch, by the process that holds the lock of the query."""

    def __init__(
        self, reach: Reach, query: str, batch: int, decision: BatchDecision, mark: bytes
    ) -> None:
        self._reach = reach
        self._query, self._batch = query, batch
        self._decision = decision
        self._mark = mark
        self._reader = reader_of(reach)
        self._moved: set[int] = set()  # numbers of chunks that a broker has acknowledged to us

    def run(self, *, fresh: bool) -> None:
        """Move all chunks; `fresh` if no process has begun to. Raises `BatchIncomplete`, `MQError`.

        Errors are retried as long as some chunk is moved within the retry timeout.
        """
        patience = self._reach.retry_timeout
        deadline = time.monotonic() + patience
        while True:
            before = len(self._moved)
            try:
                self._attempt(fresh=fresh)
            except MQError as error:
                now = time.monotonic()
                if len(self._moved) > before:
                    deadline = now + patience
                if not may_pass(error) or now + PAUSE > deadline:
                    raise
            else:
                return
            fresh = False
            time.sleep(PAUSE)

    def deliver(self, connection: FencedConnection, queue: MessageQueue, body: bytes) -> None:
        """Send one batch to the target."""
        connection.send_packed(queue, body)

    def _attempt(self, *, fresh: bool) -> None:
        pending = [at for at in range(len(self._decision.chunks)) if at not in self._moved]
        targets = dict.fromkeys(target_of(self._decision.chunks[at]) for at in pending)
        with ExitStack() as opened:
            by_address: dict[str, FencedConnection] = {}
            connections: dict[MessageQueue, FencedConnection] = {}
            for queue in targets:
                address = self._reader.master(queue)
                if address not in by_address:
                    by_address[address] = opened.enter_context(self._connect(address))
                connections[queue] = by_address[address]
            there: dict[MessageQueue, set[str]] = {}
            if not fresh:
                self._await_alone(list(by_address.values()))
                there = {queue: self._rows_in(queue) for queue in targets}
            for at, body in self._bodies(pending):
                queue = target_of(self._decision.chunks[at])
                missing = without(body, there[queue]) if there.get(queue) else body
                if missing:
                    self.deliver(connections[queue], queue, missing)
                self._moved.add(at)

    def _connect(self, address: str) -> FencedConnection:
        timeout = max(10.0, self._reach.request_timeout)
        group = f"pocketmq-spark-sink-{self._query}"
        return FencedConnection(address, self._reach.client(), group=group, timeout=timeout)

    def _await_alone(self, connections: Sequence[FencedConnection]) -> None:
        deadline = time.monotonic() + max(self._reach.retry_timeout, LOST_AFTER)
        for connection in connections:
            while others := connection.others():
                if time.monotonic() > deadline:
                    raise self._stuck(
                        f"client {others[0]!r} is still connected to the broker at "
                        f"{connection.address} and may be writing it; "
                        "check that the query is not running twice"
                    )
                time.sleep(PAUSE)
                connection.register()
        time.sleep(SETTLE)  # nothing announces that a broker has stored what it has read

    def _rows_in(self, queue: MessageQueue) -> set[str]:
        """Return the ids of the micro-batch's rows that a target queue has."""
        starts = {(each.topic, each.broker, each.queue_id): each for each in self._decision.starts}
        start = starts[queue.topic, queue.broker_name, queue.queue_id].offset
        end = self._reader.end(queue, readable=False)
        first = self._reader.bounds(queue).first
        if first > start:
            raise self._stuck(
                f"messages from offset {start} on of queue {queue.queue_id} of topic "
                f"{queue.topic!r} on broker {queue.broker_name!r} were deleted, so it is unknown "
                "which rows are there"
            )
        found: set[str] = set()
        at = start if start <= end else first  # the topic was recreated
        for records, delta in self._pulls(queue, at, end):
            for message in decode_pulled(records, DeliveryContext(offset_delta=delta)):
                if self._mark in message.property_bytes:
                    found.add(message.message_id)
        return found

    def _pulls(self, queue: MessageQueue, at: int, end: int) -> Iterator[tuple[bytes, int]]:
        deadline = time.monotonic() + self._reach.retry_timeout
        while at < end:
            pulled = self._reader.pull(queue, at)
            if pulled.status is PullStatus.FOUND:
                yield pulled.records, pulled.offset_delta
            if pulled.next_offset > at:
                at = pulled.next_offset
                deadline = time.monotonic() + self._reach.retry_timeout
            elif time.monotonic() > deadline:
                raise self._stuck(
                    f"offset {at} of queue {queue.queue_id} of topic {queue.topic!r} on broker "
                    f"{queue.broker_name!r} cannot be read ({pulled.status.name})"
                )
            else:
                time.sleep(PAUSE)  # stored, but not yet indexed

    def _bodies(self, pending: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        """Yield chunks with their numbers; the next ones are read ahead."""
        with ThreadPoolExecutor(1, thread_name_prefix="pocketmq-staging") as thread:
            reads = [
                (at, thread.submit(self._body, self._decision.chunks[at])) for at in pending[:AHEAD]
            ]
            for number in range(len(pending)):
                at, body = reads.pop(0)
                if number + AHEAD < len(pending):
                    ahead = pending[number + AHEAD]
                    reads.append((ahead, thread.submit(self._body, self._decision.chunks[ahead])))
                yield at, body.result()

    def _body(self, chunk: Chunk) -> bytes:
        staging, body = self._decision.staging, None
        with suppress(TopicNotFound):
            body = read_chunk(self._reader, staging, chunk, self._reach.retry_timeout)
        if body is None:
            raise self._stuck(
                f"offset {chunk.offset} of queue {chunk.queue_id} of the staging topic "
                f"{staging!r} on broker {chunk.broker!r} was deleted or replaced"
            )
        return body

    def _stuck(self, reason: str) -> BatchIncomplete:
        return BatchIncomplete(self._query, self._batch, reason)


def target_of(chunk: Chunk) -> MessageQueue:
    """Return the queue that a decided chunk goes to."""
    assert chunk.target is not None
    return MessageQueue(chunk.topic, *chunk.target)


def without(body: bytes, ids: set[str]) -> bytes:
    """Return an encoded batch without the rows of these ids; empty if none is left."""
    entries = decode_batch(body)
    kept = [
        entry
        for entry in entries
        if decode_properties(entry.property_bytes).get(property_names.UNIQUE_KEY) not in ids
    ]
    return body if len(kept) == len(entries) else encode_batch(kept)
