"""gRPC clients as members of their groups: registered at the brokers under their own ids.

Each client has a session of its own, because a broker knows one member of a group for each
connection. What a broker asks of a member goes out on the client's Telemetry stream.
"""

import asyncio
from collections.abc import Collection
from typing import Protocol
from uuid import uuid4

from pocketmq.client.routes import KnownRoute
from pocketmq.client.session import Session
from pocketmq.errors import ConsumerOffline, ResponseCode, ServerError
from pocketmq.model import ConsumerData, ConsumeResult, ConsumeType, MessageQueue, Subscription
from pocketmq.protocol import Command, ReceivedMessage
from pocketmq.protocol.peers import version_name
from pocketmq.protocol.requests import client_calls
from pocketmq.protocol.requests.sending import CheckTransactionStateRequest
from pocketmq.proxy.translation.incoming import deliver
from pocketmq.proxy.translation.transactions import HalfMessagePlace
from pocketmq.proxy.wire import definition as d
from pocketmq.proxy.wire import service as s

ANSWER_WAIT = 5.0
"""Seconds for a client to answer a command, as in Apache's proxy."""
_RESULTS = {
    d.Code.OK: ConsumeResult.CR_SUCCESS,
    d.Code.FAILED_TO_CONSUME_MESSAGE: ConsumeResult.CR_LATER,
    d.Code.MESSAGE_CORRUPTED: ConsumeResult.CR_RETURN_NULL,
}


class CommandLine(Protocol):
    """The way to one client."""

    def send(self, command: s.TelemetryCommand) -> bool:
        """Send a command; False if the client has no Telemetry stream."""

    async def ask(self, command: s.TelemetryCommand, nonce: str) -> s.TelemetryCommand:
        """Send a command and return the answer with its nonce; raises `ServerError`."""


class PendingAnswers:
    """Commands that wait for a client's answer, by their nonces."""

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[s.TelemetryCommand]] = {}

    async def ask(
        self, line: CommandLine, command: s.TelemetryCommand, nonce: str
    ) -> s.TelemetryCommand:
        """Send a command and wait for its answer. Raises `ConsumerOffline`, `ServerError`."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[s.TelemetryCommand] = loop.create_future()
        self._waiting[nonce] = future
        try:
            if not line.send(command):
                text = "the client has no Telemetry stream"
                raise ConsumerOffline(ResponseCode.CONSUMER_NOT_ONLINE, text)
            async with asyncio.timeout(ANSWER_WAIT):
                return await future
        except TimeoutError:
            text = "the gRPC client did not respond in time"
            raise ServerError(ResponseCode.CONSUME_MSG_TIMEOUT, text) from None
        finally:
            del self._waiting[nonce]

    def answer(self, nonce: str, command: s.TelemetryCommand) -> None:
        """Pass a client's answer on; one that nothing waits for is ignored."""
        future = self._waiting.get(nonce)
        if future is not None and not future.done():
            future.set_result(command)


class GrpcProducer:
    """A gRPC producer of one topic, whose name is its group's."""

    def __init__(self, session: Session, topic: str, line: CommandLine) -> None:
        self._session = session
        self._topic = topic
        self._line = line

    @property
    def group(self) -> str:
        """The group, by which brokers know the member."""
        return self._topic

    def topics(self) -> Collection[str]:
        """Return the topics whose routes are to be kept fresh."""
        return [self._topic]

    def on_route_changed(self, known: KnownRoute) -> None:
        """Do nothing: the proxy chooses queues by routes of its own session."""

    async def check_transaction(
        self, message: ReceivedMessage, header: CheckTransactionStateRequest, address: str
    ) -> None:
        """Ask the client for the state of a half message's transaction; it answers by its end."""
        places = self._session.addresses.places()
        named = (place.broker for place in places if place.address == address)
        broker = header.bname or next(named, "")
        half = HalfMessagePlace(
            header.transaction_id or message.message_id,
            broker,
            header.tran_state_table_offset,
            header.commit_log_offset,
        )
        recover = s.RecoverOrphanedTransactionCommand(transaction_id=str(half))
        deliver(message, recover.message)
        self._line.send(s.TelemetryCommand(recover_orphaned_transaction_command=recover))

    def take_reply(self, header: client_calls.PushReplyRequest, request: Command) -> bool:  # noqa: ARG002 - the session's
        """Refuse replies: gRPC has no requests that wait for one."""
        return False


class GrpcConsumer:
    """A gRPC consumer of a group."""

    def __init__(
        self, group: str, kind: ConsumeType, line: CommandLine, started_ms: int, version: int
    ) -> None:
        self._group = group
        self._kind = kind
        self._line = line
        self._started_ms = started_ms
        self._version = version
        self.subscriptions: list[Subscription] = []
        """Replaced by each report of the client."""

    @property
    def group(self) -> str:
        """The group, by which brokers know the member."""
        return self._group

    def topics(self) -> Collection[str]:
        """Return the topics whose routes are to be kept fresh."""
        return [each.topic for each in self.subscriptions]

    def consumer_data(self) -> ConsumerData:
        """Return what heartbeats carry."""
        return ConsumerData(
            group_name=self._group,
            consume_type=self._kind,
            subscription_data_set=self.subscriptions,
        )

    def on_route_changed(self, known: KnownRoute) -> None:
        """Do nothing: gRPC clients ask for routes themselves."""

    def on_ids_changed(self) -> None:
        """Do nothing: POP shares messages, not queues."""

    def on_broker_active(self, address: str) -> None:
        """Do nothing: the session sends heartbeats."""

    def on_broker_lost(self, address: str) -> None:
        """Do nothing: the session sends heartbeats."""

    async def reset_offsets(self, topic: str, offsets: dict[MessageQueue, int]) -> None:
        """Do nothing: brokers keep the offsets of POP."""

    async def offsets_reached(self, topic: str) -> dict[MessageQueue, int]:  # noqa: ARG002 - the session's
        """Return none: brokers keep the offsets of POP."""
        return {}

    async def running_info(self, *, with_stacks: bool) -> client_calls.RunningInfo:
        """Return the member's state, with the client's thread stacks if asked for."""
        stacks = None
        if with_stacks:
            nonce = uuid4().hex
            command = s.PrintThreadStackTraceCommand(nonce=nonce)
            answer = await self._line.ask(
                s.TelemetryCommand(print_thread_stack_trace_command=command), nonce
            )
            stacks = answer.thread_stack_trace.thread_stack_trace
        return client_calls.RunningInfo(
            properties={
                client_calls.PROP_CONSUME_TYPE: self._kind.value,
                client_calls.PROP_ORDERLY: "false",
                client_calls.PROP_CLIENT_VERSION: version_name(self._version),
                client_calls.PROP_START_TIMESTAMP: str(self._started_ms),
                client_calls.PROP_PROTOCOL: client_calls.GRPC,
            },
            subscription_set=self.subscriptions,
            jstack=stacks,
        )

    async def consume_directly(
        self,
        message: ReceivedMessage,
        broker_name: str | None,  # noqa: ARG002 - the session's
    ) -> client_calls.DirectConsumeResult:
        """Let the client handle one message now and return the result."""
        nonce = uuid4().hex
        command = s.VerifyMessageCommand(nonce=nonce)
        deliver(message, command.message)
        answer = await self._line.ask(s.TelemetryCommand(verify_message_command=command), nonce)
        return client_calls.DirectConsumeResult(
            consume_result=_RESULTS.get(answer.status.code), remark="from gRPC client"
        )
