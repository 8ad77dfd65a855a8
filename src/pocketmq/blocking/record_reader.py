"""Queues read as they lie: raw records by offset, the bounds of queues, a group's progress.

For readers that keep their own offsets and decode in bulk, such as the Spark source. Each call is
carried out on its caller's thread, over a wire of its own; no event loop takes part, no group is
joined, nothing is decoded. What fails for a reason that may pass is tried again for a while.
"""

import os
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import msgspec

from pocketmq.balance.consumer.pulling import PullStatus
from pocketmq.blocking.questions import Questions
from pocketmq.client.damage import Suspicion
from pocketmq.client.filters import Filter
from pocketmq.client.identity import client_id, local_ip
from pocketmq.client.name_servers import name_server_addresses
from pocketmq.client.options import ClientOptions
from pocketmq.client.questions import offsets
from pocketmq.client.questions.pulling import PULL_TIMEOUT, PullSpec, pull_once
from pocketmq.errors import (
    RouteNotFound,
)
from pocketmq.model.kinds import ConsumeType
from pocketmq.model.members import ConsumerData
from pocketmq.model.names import (
    TOOLS_GROUP,
    is_system_topic,
    retry_topic,
    unwrap_namespace,
)
from pocketmq.model.queue import MessageQueue, sort_queues
from pocketmq.model.subscription import TAG, Subscription
from pocketmq.protocol.bodies.heartbeat import Heartbeat
from pocketmq.protocol.bodies.topics import TopicNames
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.json_values import decode_body, encode_body
from pocketmq.protocol.requests.membership import HeartbeatRequest, UnregisterClientRequest

__all__ = [
    "EVERYTHING", "Bounds", "Pulled", "RecordReader", "Suspicion", "name_server_addresses",
]  # fmt: skip

EVERYTHING = Filter("*")


class Bounds(msgspec.Struct, frozen=True):
    """The first offset a queue still holds, and that of the next message to come."""

    first: int
    end: int


class Pulled(msgspec.Struct, frozen=True):
    """What a pull gave."""

    status: PullStatus
    records: bytes
    """Stored records back to back, as they came."""
    next_offset: int
    bounds: Bounds
    offset_delta: int = 0
    """Added to the queue offsets in `records` (5.x static topics)."""


class RecordReader:
    """Reads queues of a cluster. Threads may share it; it does no input or output until asked.

    Names of topics and groups are those inside the namespace of `options`. Calls raise
    `RouteNotFound` and `NameServersUnreachable` where nobody knows the way, the `ServerError` of a
    refusal, and `TransportError`; those that may pass only after `patience` seconds of trying.
    """

    def __init__(
        self, options: ClientOptions, *, group: str = TOOLS_GROUP, patience: float = 30.0
    ) -> None:
        self.options = options
        self._questions = Questions(options, "record reader", patience)
        self._group = self._wrap(group)

    # Topics

    def topics(self, *, patience: float | None = None) -> list[str]:
        """List the topics applications may use, retry and dead-letter topics among them.

        `patience`, where given, is instead of the reader's own.
        """
        code = RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER
        answer = self._questions.ask_name_server(code, None, patience=patience)
        names = decode_body(answer.body, TopicNames).topic_list if answer.body else []
        namespace = self.options.namespace
        inside = [unwrap_namespace(namespace, name) for name in names]
        return sorted(
            {name for name, whole in zip(inside, names, strict=True) if self._wrap(name) == whole}
            - {name for name in inside if is_system_topic(name)}
        )

    def queues(self, topic: str, *, patience: float | None = None) -> list[MessageQueue]:
        """List a topic's readable queues as its brokers have registered them by now.

        `patience`, where given, is instead of the reader's own.
        """
        route = self._questions.route(topic, patience=patience)
        return sort_queues(route.subscribe_queues(topic))

    # Offsets

    def bounds(self, queue: MessageQueue) -> Bounds:
        """Give what a queue holds."""
        return Bounds(*self._questions.ask(offsets.bounds(self._wire(queue))))

    def end(self, queue: MessageQueue) -> int:
        """Give the offset of the next message to come."""
        return self._questions.ask(offsets.end_offset(self._wire(queue)))

    def offset_at(self, queue: MessageQueue, moment_ms: int) -> int:
        """Give the first offset stored at or after a moment; the queue's end if there is none."""
        return self._questions.ask(offsets.offset_at(self._wire(queue), moment_ms, self._group))

    def committed(self, group: str, queue: MessageQueue) -> int | None:
        """Give how far a group has come; None if its broker has no note of it."""
        question = offsets.committed(self._wrap(group), self._wire(queue), zero_if_none=False)
        return self._questions.ask(question)

    def commit(self, group: str, queue: MessageQueue, offset: int) -> None:
        """Note at its broker how far a group has come."""
        self._questions.ask(offsets.commit(self._wrap(group), self._wire(queue), offset))

    def introduce(self, group: str, topics: Sequence[str]) -> None:
        """Make a group known to the brokers of its topics, so that operators can look at it.

        Tools find a group by its retry topic, which brokers make when a member first says hello.
        A member says hello, and leaves; if the topic is there already, nothing is done.
        """
        try:
            self._questions.route(retry_topic(group), patience=0.0)
        except RouteNotFound:
            pass
        else:
            return
        name = client_id(local_ip(), f"{os.getpid()}#{time.monotonic_ns()}", stream=True)
        subscriptions = [Subscription(topic=self._wrap(topic)) for topic in topics]
        member = ConsumerData(
            group_name=self._wrap(group),
            consume_type=ConsumeType.CONSUME_ACTIVELY,
            subscription_data_set=subscriptions,
        )
        hello = encode_body(Heartbeat(client_id=name, consumer_data_set=[member]))
        goodbye = UnregisterClientRequest(client_id=name, consumer_group=self._wrap(group))
        brokers = [self._questions.route(topic, patience=0.0).broker_datas for topic in topics]
        masters = {data.master() for datas in brokers for data in datas}
        for address in sorted(filter(None, masters)):
            self._questions.ask_at(address, RequestCode.HEART_BEAT, HeartbeatRequest(), body=hello)
            self._questions.ask_at(address, RequestCode.UNREGISTER_CLIENT, goodbye)

    # Records

    def pull(
        self,
        queue: MessageQueue,
        offset: int,
        *,
        max_messages: int = 4096,
        max_bytes: int = 4 * 1024 * 1024,
        wanted: Filter = EVERYTHING,
    ) -> Pulled:
        """Give records of a queue from an offset on, without waiting for any.

        Brokers give as many as they see fit: Java's 32 at most unless it is told otherwise. Tags
        are compared by their hash, so a few others may be among the records.
        """
        named = self._wire(queue)
        kind = None if wanted.kind == TAG else wanted.kind
        asked = PullSpec(self._group, max_messages, max_bytes, wanted.expression, kind)
        pulled = self._questions.ask(pull_once(named, offset, asked, timeout=PULL_TIMEOUT))
        self._questions.suggest(named, pulled.suggested_broker)
        return Pulled(
            pulled.status,
            pulled.records,
            pulled.next_offset,
            Bounds(pulled.min_offset, pulled.max_offset),
            pulled.offset_delta,
        )

    # Life

    def close(self) -> None:
        """Let go of all connections; calls raise `ClientClosed` from now on."""
        self._questions.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _wrap(self, name: str) -> str:
        return self._questions.wrap(name)

    def _wire(self, queue: MessageQueue) -> MessageQueue:
        """Return a queue by the name that its topic has on the wire."""
        return MessageQueue(self._wrap(queue.topic), queue.broker_name, queue.queue_id)
