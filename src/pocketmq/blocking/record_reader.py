"""Queues read as they are stored: raw records by offset, queue bounds, a group's progress.

For readers that keep their own offsets and decode in bulk, such as the Spark source. Each call is
carried out on its caller's thread, over a connection of its own; no event loop takes part, no group
is joined, nothing is decoded. What fails for a transient reason is retried for a while.
"""

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

import msgspec

from pocketmq.blocking.questions import Questions
from pocketmq.client.calls import SUCCESS
from pocketmq.client.damage import Suspicion
from pocketmq.client.filters import Filter
from pocketmq.client.name_servers import name_server_addresses
from pocketmq.client.options import ClientOptions, client_id, local_ip
from pocketmq.client.questions import offsets
from pocketmq.client.questions.asking import ask, ask_with
from pocketmq.client.questions.pulling import PULL_TIMEOUT, PulledRecords, PullSpec, pull_once
from pocketmq.errors import MQError, ProtocolError, ResponseCode, RouteNotFound, ServerError
from pocketmq.model import (
    ConsumerData,
    ConsumeType,
    MessageQueue,
    Subscription,
    TopicRoute,
    sort_queues,
)
from pocketmq.model import names as topic_names
from pocketmq.model.groups import TAG
from pocketmq.protocol.request import NoHeader
from pocketmq.protocol.requests import key_values, membership, nameserver

__all__ = [
    "EVERYTHING", "Bounds", "PulledRecords", "RecordReader", "Suspicion", "name_server_addresses",
]  # fmt: skip

EVERYTHING = Filter("*")
_VALUE_OR_NONE = SUCCESS | {int(ResponseCode.QUERY_NOT_FOUND)}


class Bounds(msgspec.Struct, frozen=True):
    """The first offset a queue still holds, and that of the next message to come."""

    first: int
    end: int


class RecordReader:
    """Reads queues of a cluster. Threads may share it; making one does no input or output.

    Names of topics and groups are those inside the namespace of `options`. Calls raise
    `RouteNotFound`, `NameServersUnreachable`, the `ServerError` of a refusal, and `TransportError`;
    transient ones only after `patience` seconds of retrying.
    """

    def __init__(
        self,
        options: ClientOptions,
        *,
        group: str = topic_names.TOOLS_GROUP,
        patience: float = 30.0,
    ) -> None:
        self.options = options
        self._questions = Questions(options, "record reader", patience)
        self._group = self._wrap(group)

    # Topics

    def topics(self, *, patience: float | None = None) -> list[str]:
        """Return the topics applications may use, retry and dead-letter topics among them.

        `patience` overrides the reader's own.
        """
        question = ask(None, nameserver.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, NoHeader())
        answer = self._questions.consult(question, patience=patience)
        return self._inside([] if answer.is_empty else answer.result().topic_list)

    def _inside(self, topics: Iterable[str]) -> list[str]:
        """Return the topics of the namespace by their names in it, without RocketMQ's own."""
        namespace, names = self.options.namespace, list(topics)
        inside = [topic_names.unwrap_namespace(namespace, name) for name in names]
        return sorted(
            {name for name, whole in zip(inside, names, strict=True) if self._wrap(name) == whole}
            - {name for name in inside if topic_names.is_system_topic(name)}
        )

    def queues(self, topic: str, *, patience: float | None = None) -> list[MessageQueue]:
        """Return a topic's readable queues as its brokers have registered them by now.

        `patience` overrides the reader's own.
        """
        route = self._questions.route(topic, patience=patience)
        return sort_queues(route.subscribe_queues(topic))

    def master(self, queue: MessageQueue) -> str:
        """Return the address of the broker that a queue is written to."""
        self._questions.route(queue.topic)
        return self._questions.master(self._wire(queue))

    def departed(self, topic: str) -> list[MessageQueue]:
        """Return the queues that a topic had on brokers that are not registered any more.

        PocketMQ's name server remembers them for three days. Java's has none but the brokers of an
        order configuration.
        """
        header = key_values.GetKVConfigRequest(
            namespace=key_values.DEPARTED_NAMESPACE, key=self._wrap(topic)
        )
        question = ask(None, key_values.GET_KV_CONFIG, header, accept=_VALUE_OR_NONE)
        found: set[MessageQueue] = set()
        with suppress(ServerError, ProtocolError):  # not allowed, or not understood: unknown
            value = self._questions.consult(question).header().value
            found |= set(TopicRoute(order_topic_conf=value).publish_queues(topic))
        with suppress(RouteNotFound, ProtocolError):
            route = self._questions.route(topic)
            if route.order_topic_conf:
                found |= set(route.publish_queues(topic))
            live = {data.broker_name for data in route.queue_datas}
            found = {queue for queue in found if queue.broker_name not in live}
        return sort_queues(found)

    def departed_topics(self) -> list[str]:
        """Return topics that had queues on brokers that are not registered any more."""
        header = key_values.GetKVListRequest(namespace=key_values.DEPARTED_NAMESPACE)
        question = ask(None, key_values.GET_KVLIST_BY_NAMESPACE, header, accept=_VALUE_OR_NONE)
        with suppress(ServerError, ProtocolError):
            answer = self._questions.consult(question)
            if answer.code in SUCCESS and not answer.is_empty:
                return self._inside(answer.result().table)
        return []

    # Offsets

    def ends(self, queues: Iterable[MessageQueue]) -> dict[MessageQueue, int | MQError]:
        """Return what `end` returns for each queue, or its error: asked together, not retried."""
        return self._questions.ask_each(
            {each: offsets.end_offset(self._wire(each)) for each in queues}
        )

    def all_bounds(self, queues: Iterable[MessageQueue]) -> dict[MessageQueue, Bounds | MQError]:
        """Return what `bounds` returns for each queue, or its error; as `ends`."""
        found = self._questions.ask_each(
            {each: offsets.bounds(self._wire(each)) for each in queues}
        )
        return {
            queue: each if isinstance(each, MQError) else Bounds(*each)
            for queue, each in found.items()
        }

    def first_times(self, queues: Iterable[MessageQueue]) -> dict[MessageQueue, int | MQError]:
        """Return the store time of each queue's first message in ms, or an error; as `ends`.

        It is -1 if the queue is empty.
        """
        return self._questions.ask_each(
            {each: offsets.first_stored(self._wire(each)) for each in queues}
        )

    def first_messages(
        self, queues: Iterable[MessageQueue]
    ) -> dict[MessageQueue, tuple[int, int] | MQError]:
        """Return the first offset of each queue and its store time in ms, or an error; as `ends`.

        The time is -1 if the queue is empty.
        """
        return self._questions.ask_each(
            {each: offsets.first_message(self._wire(each)) for each in queues}
        )

    def offsets_at(self, times: Mapping[MessageQueue, int]) -> dict[MessageQueue, int | MQError]:
        """Return what `offset_at` returns for each queue and time, or its error; as `ends`."""
        return self._questions.ask_each(
            {
                each: offsets.offset_at(self._wire(each), time_ms, self._group)
                for each, time_ms in times.items()
            }
        )

    def all_committed(
        self, group: str, queues: Iterable[MessageQueue]
    ) -> dict[MessageQueue, int | MQError | None]:
        """Return what `committed` returns for each queue, or its error; as `ends`."""
        name = self._wrap(group)
        return self._questions.ask_each(
            {each: offsets.committed(name, self._wire(each), zero_if_none=False) for each in queues}
        )

    def bounds(self, queue: MessageQueue) -> Bounds:
        """Return the bounds of a queue."""
        return Bounds(*self._questions.ask(offsets.bounds(self._wire(queue))))

    def end(self, queue: MessageQueue, *, readable: bool = True) -> int:
        """Return the offset that the next message will get.

        Without `readable`, messages count that are stored but cannot be pulled yet.
        """
        return self._questions.ask(offsets.end_offset(self._wire(queue), readable=readable))

    def offset_at(self, queue: MessageQueue, time_ms: int) -> int:
        """Return the offset of the first message stored at or after a time, or the queue's end."""
        return self._questions.ask(offsets.offset_at(self._wire(queue), time_ms, self._group))

    def committed(self, group: str, queue: MessageQueue) -> int | None:
        """Return a group's committed offset; None if its broker has none."""
        question = offsets.committed(self._wrap(group), self._wire(queue), zero_if_none=False)
        return self._questions.ask(question)

    def commit(self, group: str, queue: MessageQueue, offset: int) -> None:
        """Store a group's offset at the queue's broker."""
        self._questions.ask(offsets.commit(self._wrap(group), self._wire(queue), offset))

    def introduce(self, group: str, topics: Sequence[str]) -> None:
        """Register a group with the brokers of its topics, so that admin tools find it.

        Tools find a group by its retry topic, which brokers create at the first heartbeat of a
        member. So one heartbeat is sent, and the member unregisters; if the topic exists already,
        nothing is done.
        """
        try:
            self._questions.route(topic_names.retry_topic(group), patience=0.0)
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
        heartbeat = membership.Heartbeat(client_id=name, consumer_data_set=[member])
        unregister = membership.UnregisterClientRequest(
            client_id=name, consumer_group=self._wrap(group)
        )
        brokers = [self._questions.route(topic, patience=0.0).broker_datas for topic in topics]
        masters = {data.master() for datas in brokers for data in datas}
        for address in sorted(filter(None, masters)):
            hello = ask_with(membership.HEART_BEAT, membership.HeartbeatRequest(), heartbeat)
            self._questions.ask_address(address, hello)
            self._questions.ask_address(
                address, ask(None, membership.UNREGISTER_CLIENT, unregister)
            )

    # Records

    def pull(
        self,
        queue: MessageQueue,
        offset: int,
        *,
        max_messages: int = 4096,
        max_bytes: int = 4 * 1024 * 1024,
        wanted: Filter = EVERYTHING,
    ) -> PulledRecords:
        """Return records of a queue from an offset on, without waiting for new ones.

        Brokers limit their number: Java's to 32 unless configured otherwise. Tags are compared by
        their hash, so a few other messages may be among the records.
        """
        named = self._wire(queue)
        kind = None if wanted.kind == TAG else wanted.kind
        asked = PullSpec(self._group, max_messages, max_bytes, wanted.expression, kind)
        pulled = self._questions.ask(pull_once(named, offset, asked, timeout=PULL_TIMEOUT))
        self._questions.suggest(named, pulled.suggested_broker)
        return pulled

    # Life

    def close(self) -> None:
        """Close all connections; calls raise `ClientClosed` from now on."""
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
