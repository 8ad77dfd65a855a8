"""A connection to one broker that is registered there before any batch is sent on it.

A batch whose sender was killed may still be in the broker's buffers, and be stored later than a
successor asks whether it was. A broker registers a connection's producer, and forgets it only after
it has read all bytes of that connection. So a successor that finds no other connection of the
producer's group knows that nothing of its predecessors is still to be read. Java's brokers do the
same. Any failure closes it; it never reconnects.
"""

import os
import time
import uuid
from types import TracebackType
from typing import Self, TypeVar

from pocketmq.blocking.connection_pool import connect, tls_connections
from pocketmq.blocking.questions import resolve
from pocketmq.client.calls import hooks_for
from pocketmq.client.options import ClientOptions, client_id, local_ip
from pocketmq.client.producer.requests import refusal
from pocketmq.client.producer_options import ProducerOptions
from pocketmq.client.questions.asking import Ask, Question, ask, ask_with, run_blocking
from pocketmq.errors import server_error
from pocketmq.model import MessageQueue, ProducerData
from pocketmq.model.message import send_status
from pocketmq.model.names import wrap_namespace
from pocketmq.net import Limits
from pocketmq.protocol import Command, RequestCode
from pocketmq.protocol.requests import groups, membership
from pocketmq.protocol.requests.sending import SendRequestV2

T = TypeVar("T")

REGISTER_EVERY = 20.0
"""Seconds; brokers close connections whose client has not registered for 120."""
_SEND_BATCH = int(RequestCode.SEND_BATCH_MESSAGE)
_PROPERTIES = "WAIT\1true\2"  # of the batch: brokers of 4.x would give an id to all messages


class FencedConnection:
    """A connection to a broker, as a producer of `group`. One thread at a time uses it."""

    def __init__(
        self, address: str, options: ClientOptions, *, group: str, timeout: float = 10.0
    ) -> None:
        """Connect and register. Raises `TransportError` and `ServerError`."""
        self.address = address
        self.name = client_id(local_ip(), f"{os.getpid()}#{uuid.uuid4().hex}")
        self._options = options
        self._group = wrap_namespace(options.namespace, group)
        self._defaults = ProducerOptions(group=group)
        self._timeout = timeout
        self._hooks = hooks_for(options)
        make = None if options.tls is None else tls_connections(options.tls)
        deadline = time.monotonic() + timeout
        self._connection = connect(address, resolve(address, deadline), Limits(), deadline, make)
        try:
            self.register()
        except BaseException:
            self.close()
            raise

    def register(self) -> None:
        """Register with the broker, as it must be before it reads any batch."""
        body = membership.Heartbeat(
            client_id=self.name, producer_data_set=[ProducerData(group_name=self._group)]
        )
        self._ask(ask_with(membership.HEART_BEAT, membership.HeartbeatRequest(), body))
        self._registered = time.monotonic()

    def others(self) -> list[str]:
        """Return the client ids of other connections of the group, which may still be read."""
        header = groups.GetProducerConnectionsRequest(producer_group=self._group)
        found = self._ask(ask(None, groups.GET_PRODUCER_CONNECTION_LIST, header)).result()
        return [
            each.client_id or "" for each in found.connection_set if each.client_id != self.name
        ]

    def send_packed(self, queue: MessageQueue, body: bytes) -> None:
        """Send a batch that is encoded as `protocol.batch` has it; it is stored on return."""
        self.confirm(self.begin(queue, body))

    def begin(self, queue: MessageQueue, body: bytes) -> int:
        """Send a batch without waiting; return the number to confirm it by."""
        if time.monotonic() - self._registered > REGISTER_EVERY:
            self.register()
        header = SendRequestV2(
            producer_group=self._group,
            topic=wrap_namespace(self._options.namespace, queue.topic),
            default_topic=self._defaults.template_topic,
            default_topic_queue_nums=self._defaults.new_topic_queues,
            queue_id=queue.queue_id,
            sys_flag=0,
            born_timestamp=round(time.time() * 1000),
            flag=0,
            properties=_PROPERTIES,
            reconsume_times=0,
            unit_mode=False,
            batch=True,
            bname=queue.broker_name,
        )
        opaque = self._connection.next_opaque()
        frame = self._command(_SEND_BATCH, opaque, header.to_ext(), body).encode()
        self._connection.begin(frame, _SEND_BATCH, self._timeout)
        return opaque

    def confirm(self, opaque: int) -> None:
        """Wait until a batch is stored. Raises `TransportError` and `ServerError`."""
        answer = self._connection.finish(opaque, _SEND_BATCH, self._timeout)
        assert isinstance(answer, Command)
        if send_status(answer.code) is None:
            raise refusal(answer, _SEND_BATCH, self.address)

    def close(self) -> None:
        """Close the connection; the broker forgets it when it has read what was sent."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _ask(self, question: Question[T]) -> T:
        return run_blocking(question, self._carry)

    def _carry(self, asked: Ask) -> Command:
        opaque = self._connection.next_opaque()
        command = self._command(asked.code, opaque, asked.header.to_ext(), asked.body)
        answer = self._connection.ask(command.encode(), opaque, asked.code, self._timeout)
        if answer.code not in asked.accept:
            raise server_error(
                answer.code, answer.remark, request=asked.code.name, address=self.address
            )
        return answer

    def _command(self, code: int, opaque: int, fields: dict[str, str], body: bytes) -> Command:
        for hook in self._hooks:
            hook(code, fields, body)
        return Command.request(code, opaque, fields, body)
