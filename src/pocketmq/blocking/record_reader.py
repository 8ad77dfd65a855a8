"""Queues read as they lie: raw records by offset, the bounds of queues, a group's progress.

For readers that keep their own offsets and decode in bulk, such as the Spark source. Each call is
carried out on its caller's thread, over a wire of its own; no event loop takes part, no group is
joined, nothing is decoded. What fails for a reason that may pass is tried again for a while.
"""

import os
import random
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

import msgspec

from pocketmq.balance.consumer.pulling import PullStatus
from pocketmq.blocking.tls_wire import tls_wires
from pocketmq.blocking.wires import MOST, Wires
from pocketmq.client.addresses import BrokerAddresses
from pocketmq.client.calls import request_name
from pocketmq.client.filters import Filter
from pocketmq.client.hooks import hooks_for
from pocketmq.client.identity import client_id, local_ip
from pocketmq.client.name_servers import name_server_addresses
from pocketmq.client.options import ClientOptions
from pocketmq.errors import (
    ClientClosed,
    ConnectFailed,
    MQError,
    NameServersUnreachable,
    ResponseCode,
    RouteNotFound,
    TransportError,
    server_error,
)
from pocketmq.model.flags import PullFlag
from pocketmq.model.kinds import ConsumeType
from pocketmq.model.members import ConsumerData
from pocketmq.model.names import (
    TOOLS_GROUP,
    is_system_topic,
    retry_topic,
    unwrap_namespace,
    wrap_namespace,
)
from pocketmq.model.queue import MessageQueue, sort_queues
from pocketmq.model.route import MASTER_ID, TopicRoute
from pocketmq.model.subscription import TAG, Subscription
from pocketmq.net import parse_address
from pocketmq.net.reasons import reason_of
from pocketmq.protocol.bodies.heartbeat import Heartbeat
from pocketmq.protocol.bodies.topics import TopicNames
from pocketmq.protocol.codes import RequestCode
from pocketmq.protocol.command import Command
from pocketmq.protocol.header import Header
from pocketmq.protocol.headers.membership import HeartbeatRequest, UnregisterClientRequest
from pocketmq.protocol.headers.nameserver import GetRouteRequest
from pocketmq.protocol.headers.offsets import (
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
from pocketmq.protocol.headers.pulling import PullRequest, PullResponse
from pocketmq.protocol.json_values import decode_body, encode_body

EVERYTHING = Filter("*")
PULL_TIMEOUT = 10.0
"""Seconds for a pull that does not wait for messages, as in Java."""

_SUCCESS = frozenset({int(ResponseCode.SUCCESS)})
_STATUS = {
    int(ResponseCode.SUCCESS): PullStatus.FOUND,
    int(ResponseCode.PULL_NOT_FOUND): PullStatus.NO_NEW_MSG,
    int(ResponseCode.PULL_RETRY_IMMEDIATELY): PullStatus.NO_MATCHED_MSG,
    int(ResponseCode.PULL_OFFSET_MOVED): PullStatus.OFFSET_ILLEGAL,
}
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 1.0


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
        self._group = self._wrap(group)
        self._patience = patience
        self._servers = list(name_server_addresses(options.name_servers, os.environ))
        random.shuffle(self._servers)
        self._hooks = hooks_for(options)
        make = None if options.tls is None else tls_wires(options.tls)
        self._wires = Wires(_resolve, make=make)
        self._room = threading.BoundedSemaphore(MOST)
        self._addresses = BrokerAddresses()
        self._suggested: dict[MessageQueue, int] = {}  # the broker to pull from, if not the master
        self._closed = False

    # Topics

    def topics(self, *, patience: float | None = None) -> list[str]:
        """List the topics applications may use, retry and dead-letter topics among them.

        `patience`, where given, is instead of the reader's own.
        """
        code = RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER
        answer = self._ask_name_server(code, None, patience=patience)
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
        route = self._route(topic, patience=patience)
        return sort_queues(route.subscribe_queues(topic))

    # Offsets

    def bounds(self, queue: MessageQueue) -> Bounds:
        """Give what a queue holds."""
        end = self.end(queue)
        asked = GetMinOffsetRequest(
            topic=self._wrap(queue.topic), queue_id=queue.queue_id, bname=queue.broker_name
        )
        answer = self._ask(queue, RequestCode.GET_MIN_OFFSET, asked)
        return Bounds(answer.header(GetMinOffsetResponse).offset, end)

    def end(self, queue: MessageQueue) -> int:
        """Give the offset of the next message to come."""
        asked = GetMaxOffsetRequest(
            topic=self._wrap(queue.topic), queue_id=queue.queue_id, bname=queue.broker_name
        )
        answer = self._ask(queue, RequestCode.GET_MAX_OFFSET, asked)
        return answer.header(GetMaxOffsetResponse).offset

    def offset_at(self, queue: MessageQueue, moment_ms: int) -> int:
        """Give the first offset stored at or after a moment; the queue's end if there is none."""
        asked = SearchOffsetRequest(
            topic=self._wrap(queue.topic),
            queue_id=queue.queue_id,
            timestamp=moment_ms,
            bname=queue.broker_name,
        )
        answer = self._ask(queue, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, asked)
        return answer.header(SearchOffsetResponse).offset

    def committed(self, group: str, queue: MessageQueue) -> int | None:
        """Give how far a group has come; None if its broker has no note of it."""
        asked = QueryConsumerOffsetRequest(
            consumer_group=self._wrap(group),
            topic=self._wrap(queue.topic),
            queue_id=queue.queue_id,
            set_zero_if_not_found=False,
            bname=queue.broker_name,
        )
        accept = _SUCCESS | {int(ResponseCode.QUERY_NOT_FOUND)}
        answer = self._ask(queue, RequestCode.QUERY_CONSUMER_OFFSET, asked, accept=accept)
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
        self._ask(queue, RequestCode.UPDATE_CONSUMER_OFFSET, asked)

    def introduce(self, group: str, topics: Sequence[str]) -> None:
        """Make a group known to the brokers of its topics, so that operators can look at it.

        Tools find a group by its retry topic, which brokers make when a member first says hello.
        A member says hello, and leaves; if the topic is there already, nothing is done.
        """
        try:
            self._route(retry_topic(group), patience=0.0)
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
        brokers = [self._route(topic, patience=0.0).broker_datas for topic in topics]
        masters = {data.master() for datas in brokers for data in datas}
        for address in sorted(filter(None, masters)):
            self._ask_at(address, RequestCode.HEART_BEAT, HeartbeatRequest(), body=hello)
            self._ask_at(address, RequestCode.UNREGISTER_CLIENT, goodbye)

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
        answer = self._ask(
            queue,
            RequestCode.PULL_MESSAGE,
            asked,
            accept=frozenset(_STATUS),
            timeout=max(PULL_TIMEOUT, self.options.request_timeout),
        )
        header = answer.header(PullResponse)
        self._suggested[queue] = header.suggest_which_broker_id
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
        self._closed = True
        self._wires.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # The way of a request

    def _wrap(self, name: str) -> str:
        return wrap_namespace(self.options.namespace, name)

    def _route(self, topic: str, *, patience: float | None = None) -> TopicRoute:
        asked = GetRouteRequest(topic=self._wrap(topic))
        accept = _SUCCESS | {int(ResponseCode.TOPIC_NOT_EXIST), int(ResponseCode.SYSTEM_ERROR)}
        code = RequestCode.GET_ROUTEINFO_BY_TOPIC
        answer = self._ask_name_server(code, asked, accept, patience=patience)
        if answer.code != ResponseCode.SUCCESS or not answer.body:
            raise RouteNotFound(topic)
        route = decode_body(answer.body, TopicRoute)
        self._addresses.take(route.broker_datas)
        return route

    def _ask_name_server(
        self,
        code: RequestCode,
        asked: Header | None,
        accept: frozenset[int] = _SUCCESS,
        *,
        patience: float | None = None,
    ) -> Command:
        """Ask the first name server that answers, for as long as patience lasts."""
        lasting = self._patience if patience is None else patience
        deadline, pause = time.monotonic() + lasting, _FIRST_PAUSE
        while True:
            failure: TransportError | None = None
            for server in self._servers:
                try:
                    return self._ask_at(server, code, asked, accept=accept)
                except TransportError as error:
                    failure = error
                    servers = [each for each in self._servers if each != server]
                    self._servers = [*servers, server]  # the next is asked first from now on
            if time.monotonic() + pause > deadline:
                reason = "" if failure is None else failure.reason
                raise NameServersUnreachable(tuple(sorted(self._servers)), reason) from failure
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _ask(
        self,
        queue: MessageQueue,
        code: RequestCode,
        asked: Header,
        *,
        accept: frozenset[int] = _SUCCESS,
        timeout: float | None = None,
    ) -> Command:
        """Ask a queue's broker, again if that may help."""
        deadline, pause = time.monotonic() + self._patience, _FIRST_PAUSE
        while True:
            try:
                return self._ask_at(
                    self._address(queue, code),
                    code,
                    asked,
                    accept=accept,
                    timeout=timeout,
                )
            except MQError as error:
                self._suggested.pop(queue, None)
                if not error.retryable or time.monotonic() + pause > deadline:
                    raise
                refresh = error.refresh_route or isinstance(error, TransportError)
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
            if refresh:
                self._refresh(queue.topic)

    def _address(self, queue: MessageQueue, code: RequestCode) -> str:
        wanted = MASTER_ID
        if code == RequestCode.PULL_MESSAGE:
            wanted = self._suggested.get(queue, MASTER_ID)
        try:
            return self._addresses.for_reading(queue.broker_name, wanted).address
        except MQError:
            self._refresh(queue.topic)
            return self._addresses.for_reading(queue.broker_name, wanted).address

    def _refresh(self, topic: str) -> None:
        # Without a route the broker may still answer, and if not the caller learns why.
        with suppress(RouteNotFound, NameServersUnreachable):
            self._route(topic, patience=0.0)

    def _ask_at(
        self,
        address: str,
        code: RequestCode,
        asked: Header | None,
        *,
        accept: frozenset[int] = _SUCCESS,
        timeout: float | None = None,
        body: bytes = b"",
    ) -> Command:
        timeout = self.options.request_timeout if timeout is None else timeout
        if self._closed:
            raise ClientClosed("record reader")
        fields = {} if asked is None else asked.to_ext()
        for hook in self._hooks:
            hook(code, fields, body)
        with self._room:  # so there is always a wire left
            wire = self._wires.take(address, time.monotonic() + timeout)
            if wire is None:
                raise ClientClosed("record reader")
            try:
                opaque = wire.take_number()
                frame = Command.request(code, opaque, fields, body).encode()
                answer = wire.ask(frame, opaque, code, timeout)
            except BaseException:
                self._wires.drop(wire)
                raise
            self._wires.give(wire)
        if answer.code not in accept:
            name = request_name(code)
            raise server_error(answer.code, answer.remark, request=name, address=address)
        return answer


def _resolve(address: str, deadline: float) -> Sequence[tuple[str, int]]:  # noqa: ARG001 - the resolver has its own limits
    host, port = parse_address(address)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ConnectFailed(address, reason_of(error)) from error
    return [place[4][:2] for place in found]  # type: ignore[misc] # IPv6 places have two more
