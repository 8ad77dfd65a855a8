"""Queues read as they lie: raw records by offset, the bounds of queues, a group's progress.

For readers that keep their own offsets and decode in bulk, such as the Spark source. Each call is
carried out on its caller's thread, over a wire of its own; no event loop takes part, no group is
joined, nothing is decoded. What fails for a reason that may pass is tried again for a while.
"""

import os
import time
from bisect import bisect_left
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

import msgspec

from pocketmq.balance.consumer.pulling import PullStatus
from pocketmq.blocking.questions import Questions
from pocketmq.client.calls import SUCCESS
from pocketmq.client.filters import Filter
from pocketmq.client.identity import client_id, local_ip
from pocketmq.client.options import ClientOptions
from pocketmq.errors import (
    MessageMalformed,
    ResponseCode,
    RouteNotFound,
)
from pocketmq.model.flags import PullFlag
from pocketmq.model.kinds import ConsumeType
from pocketmq.model.members import ConsumerData
from pocketmq.model.names import (
    TOOLS_GROUP,
    is_system_topic,
    retry_topic,
    unwrap_namespace,
)
from pocketmq.model.queue import MessageQueue, sort_queues
from pocketmq.model.route import MASTER_ID
from pocketmq.model.subscription import TAG, Subscription
from pocketmq.protocol.bodies.heartbeat import Heartbeat
from pocketmq.protocol.bodies.topics import TopicNames
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.json_values import decode_body, encode_body
from pocketmq.protocol.peers import Gate
from pocketmq.protocol.record_scan import RecordView, scan_records
from pocketmq.protocol.requests.membership import HeartbeatRequest, UnregisterClientRequest
from pocketmq.protocol.requests.offsets import (
    GetMaxOffsetRequest,
    GetMaxOffsetResponse,
    GetMinOffsetRequest,
    GetMinOffsetResponse,
    QueryConsumerOffsetRequest,
    QueryConsumerOffsetResponse,
    SearchOffsetRequest,
    SearchOffsetResponse,
    UpdateConsumerOffsetRequest,
)
from pocketmq.protocol.requests.pulling import PullRequest, PullResponse

EVERYTHING = Filter("*")
PULL_TIMEOUT = 10.0
"""Seconds for a pull that does not wait for messages, as in Java."""

_STATUS = {
    int(ResponseCode.SUCCESS): PullStatus.FOUND,
    int(ResponseCode.PULL_NOT_FOUND): PullStatus.NO_NEW_MSG,
    int(ResponseCode.PULL_RETRY_IMMEDIATELY): PullStatus.NO_MATCHED_MSG,
    int(ResponseCode.PULL_OFFSET_MOVED): PullStatus.OFFSET_ILLEGAL,
}


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
        end = self.end(queue)
        asked = GetMinOffsetRequest(
            topic=self._wrap(queue.topic), queue_id=queue.queue_id, bname=queue.broker_name
        )
        answer = self._questions.ask(queue, RequestCode.GET_MIN_OFFSET, asked)
        return Bounds(answer.header(GetMinOffsetResponse).offset, end)

    def end(self, queue: MessageQueue) -> int:
        """Give the offset of the next message to come."""
        asked = GetMaxOffsetRequest(
            topic=self._wrap(queue.topic), queue_id=queue.queue_id, bname=queue.broker_name
        )
        answer = self._questions.ask(queue, RequestCode.GET_MAX_OFFSET, asked)
        return answer.header(GetMaxOffsetResponse).offset

    def offset_at(self, queue: MessageQueue, moment_ms: int) -> int:
        """Give the first offset stored at or after a moment; the queue's end if there is none."""
        asked = SearchOffsetRequest(
            topic=self._wrap(queue.topic),
            queue_id=queue.queue_id,
            timestamp=moment_ms,
            bname=queue.broker_name,
        )
        answer = self._questions.ask(queue, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, asked)
        if answer.version < Gate.EXACT_TIMES:
            return self._search(queue, moment_ms)
        return answer.header(SearchOffsetResponse).offset

    def _search(self, queue: MessageQueue, moment_ms: int) -> int:
        """Look at messages: older brokers give the one that is nearest in time, or the last."""
        bounds = self.bounds(queue)

        def stored(offset: int) -> int:
            while offset < bounds.end:
                self._questions.suggest(queue, MASTER_ID)  # a slave may not have it yet
                pulled = self.pull(queue, offset, max_messages=1)
                with suppress(MessageMalformed, StopIteration):
                    position, *_ = next(scan_records(pulled.records))
                    return RecordView(pulled.records, position).store_timestamp_ms
                # Deleted meanwhile, damaged, or nothing is there: the next one tells.
                offset = max(offset + 1, pulled.next_offset)
            return moment_ms

        return bounds.first + bisect_left(range(bounds.first, bounds.end), moment_ms, key=stored)

    def committed(self, group: str, queue: MessageQueue) -> int | None:
        """Give how far a group has come; None if its broker has no note of it."""
        asked = QueryConsumerOffsetRequest(
            consumer_group=self._wrap(group),
            topic=self._wrap(queue.topic),
            queue_id=queue.queue_id,
            set_zero_if_not_found=False,
            bname=queue.broker_name,
        )
        accept = SUCCESS | {int(ResponseCode.QUERY_NOT_FOUND)}
        answer = self._questions.ask(queue, RequestCode.QUERY_CONSUMER_OFFSET, asked, accept=accept)
        if answer.code != ResponseCode.SUCCESS:
            return None
        return answer.header(QueryConsumerOffsetResponse).offset

    def commit(self, group: str, queue: MessageQueue, offset: int) -> None:
        """Note at its broker how far a group has come."""
        asked = UpdateConsumerOffsetRequest(
            consumer_group=self._wrap(group),
            topic=self._wrap(queue.topic),
            queue_id=queue.queue_id,
            commit_offset=offset,
            bname=queue.broker_name,
        )
        self._questions.ask(queue, RequestCode.UPDATE_CONSUMER_OFFSET, asked)

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
        asked = PullRequest(
            consumer_group=self._group,
            topic=self._wrap(queue.topic),
            queue_id=queue.queue_id,
            queue_offset=offset,
            max_msg_nums=max_messages,
            sys_flag=int(PullFlag.SUBSCRIPTION),
            commit_offset=0,
            suspend_timeout_millis=0,
            subscription=wanted.expression,
            sub_version=0,
            expression_type=None if wanted.kind == TAG else wanted.kind,
            max_msg_bytes=max_bytes,
            bname=queue.broker_name,
        )
        answer = self._questions.ask(
            queue,
            RequestCode.PULL_MESSAGE,
            asked,
            accept=frozenset(_STATUS),
            timeout=max(PULL_TIMEOUT, self.options.request_timeout),
        )
        header = answer.header(PullResponse)
        self._questions.suggest(queue, header.suggest_which_broker_id)
        found = answer.code == ResponseCode.SUCCESS
        return Pulled(
            _STATUS[answer.code],
            answer.body if found else b"",
            header.next_begin_offset,
            Bounds(header.min_offset, header.max_offset),
            header.offset_delta or 0,
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
