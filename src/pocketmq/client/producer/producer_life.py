"""The life of an asyncio producer: made, started, closed; and the parts it is made of meanwhile.

`RunningProducer` puts sends, submits, transactions, check-backs, replies and the trace
together, and passes on what brokers ask of the group. What a producer sends is up to
`producer`. Belongs to one event loop, shared by its tasks.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from types import TracebackType
from typing import Self, Unpack

from pocketmq.client.checks import check_callable
from pocketmq.client.codecs import BodyCodec, check_codec
from pocketmq.client.interceptors import SendInterceptor
from pocketmq.client.lifetime import Lifetime
from pocketmq.client.options import ClientOptions, sort_settings
from pocketmq.client.producer.check_backs import CheckBacks, TransactionCheck
from pocketmq.client.producer.hooks import SendHook
from pocketmq.client.producer.interception import intercept
from pocketmq.client.producer.plain_sends import Posted
from pocketmq.client.producer.replies import AwaitedReplies
from pocketmq.client.producer.sending import Sending
from pocketmq.client.producer.submitting import Submitting
from pocketmq.client.producer.trace import TraceHook, open_tracer
from pocketmq.client.producer.transactions import Transactions
from pocketmq.client.producer_options import ProducerOptions, ProducerSettings
from pocketmq.client.routes import KnownRoute
from pocketmq.client.session import Session
from pocketmq.client.sessions import Lease, lease_session, shown
from pocketmq.client.tasks import Tasks
from pocketmq.client.tracing import Tracer
from pocketmq.errors import ClientClosed
from pocketmq.model import Message
from pocketmq.model.names import wrap_namespace
from pocketmq.protocol import Command, ReceivedMessage
from pocketmq.protocol.requests import client_calls, sending


class RunningProducer:
    """The parts of a running producer; to its session it is the `ProducerMember`."""

    def __init__(
        self,
        session: Session,
        options: ProducerOptions,
        hooks: list[SendHook],
        check: TransactionCheck | None,
    ) -> None:
        self.session = session
        self.sending = Sending(session, options, hooks)
        self.submitting = Submitting(self.sending)
        self.tasks = Tasks(f"producer {options.group}")
        group = self.sending.group
        self.transactions = Transactions(
            session, group, timeout=options.send_timeout, checked=check is not None
        )
        self.checks = CheckBacks(session, self.tasks, group, check)
        self.replies = AwaitedReplies(session)
        self.tracer: Tracer | None = None
        self._options = options
        self._hooks = hooks

    def begin(self) -> None:
        """Join the session and start what runs in the background; raises `GroupTaken`."""
        self.session.add_producer(self)
        if self._options.trace:
            self._trace()
        self.sending.faults.start(self.tasks)
        self.session.heartbeats.beat_soon()

    def _trace(self) -> None:
        self.tracer = open_tracer(
            self.session,
            self._options.group,
            kind="PRODUCE",
            topic=self._options.trace_topic,
            tasks=self.tasks,
            publishing=self.sending.publishing,
        )
        tracing = TraceHook(self.tracer, self.session.clock)
        self._hooks.append(tracing)
        self.transactions.on_end = self.checks.on_end = tracing.transaction_ended

    async def stop(self) -> None:
        """Finish what was promised, and leave the session.

        The order matters: transactions end with sends, sends are traced, and the trace is sent by
        tasks. Transactions whose local function takes longer than a send are left to the broker,
        which checks back with another producer of the group.
        """
        self.replies.close()
        await self.transactions.settled(self._options.send_timeout)
        self.checks.close()
        self.transactions.close()
        await self.submitting.drained()
        if self.tracer is not None:
            await self.tracer.close()
        await self.tasks.stop()
        if self.session.running:
            await self.session.remove_producer(self)

    # What the session asks of a member

    @property
    def group(self) -> str:
        """The group's name on the wire."""
        return self.sending.group

    def topics(self) -> Collection[str]:
        """Return the topics whose routes are to be kept fresh."""
        return self.sending.publishing.topics()

    def on_route_changed(self, known: KnownRoute) -> None:
        """Take over a topic's new queues."""
        self.sending.publishing.on_route_changed(known)

    async def check_transaction(
        self, message: ReceivedMessage, header: sending.CheckTransactionStateRequest, address: str
    ) -> None:
        """Queue a broker's check-back; the broker gets its answer as a request of its own."""
        self.checks.take(message, header, address)

    def take_reply(self, header: client_calls.PushReplyRequest, request: Command) -> bool:
        """Take a reply to a request of this producer; False if it awaits no such reply."""
        return self.replies.take(header, request.body)


class ProducerLife:
    """The part of a producer that starts and closes it."""

    def __init__(
        self,
        name_servers: str = "",
        *,
        group: str,
        options: ClientOptions | None = None,
        check: TransactionCheck | None = None,
        interceptors: Sequence[SendInterceptor] = (),
        codec: BodyCodec | None = None,
        **settings: Unpack[ProducerSettings],
    ) -> None:
        if check is not None:
            check_callable("check", check, "a half message")
        self.client_options, self.options = sort_settings(
            ProducerOptions, group, name_servers, options, settings
        )
        self._name = f"producer of group {wrap_namespace(self.client_options.namespace, group)}"
        self._check = check
        self._hooks: list[SendHook] = []
        self._lifetime = Lifetime(self._name)
        self._lease: Lease | None = None
        self._parts: RunningProducer | None = None
        self._open = False
        # Posts a message that follows another one; None while it is not open, and without the core.
        self._follow: Callable[[Message, int | None], Posted | None] | None = None
        check_codec(codec)
        self._codec = codec
        intercept(self, group, interceptors)

    async def start(self) -> Self:
        """Make ready to send; does nothing if it is running.

        Raises `NameServersUnreachable` (see `ClientOptions.start_wait`), `GroupTaken` if the
        client has a producer in this group already, `ClientClosed` once it has been closed.
        """
        await self._lifetime.start(self._start)
        return self

    async def _start(self) -> None:
        lease = await lease_session(self.client_options)
        try:
            parts = RunningProducer(lease.session, self.options, self._hooks, self._check)
            parts.begin()
        except BaseException:
            await lease.release()
            raise
        self._lease, self._parts = lease, parts
        self._follow = parts.sending.plain.bursts.follow
        self._open = True

    async def close(self) -> None:
        """Refuse new sends, wait for those in flight, then leave. Closing twice is harmless.

        Sends in flight end by their own deadlines at the latest. If the caller is cancelled,
        closing continues in the background. Raises `ClientForked`.
        """
        self._lifetime.check_loop()
        self._open, self._follow = False, None
        if self._lease is not None:
            self._lease.session.check_process()
        await self._lifetime.end(self._close)

    async def _close(self) -> None:
        self._open, self._follow = False, None
        if self._lease is None or self._parts is None:
            return
        try:
            await self._parts.stop()
        finally:
            self._parts.sending.plain.bursts.end()
            await self._lease.release()

    def __repr__(self) -> str:
        lease = self._lease
        state = "running" if self._open else "not started" if lease is None else "closed"
        return shown(self, self.options.group, lease, state)

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def session(self) -> Session:
        """The client this producer is part of. Raises `ClientClosed` unless it is running."""
        return self._opened().session

    @property
    def sending(self) -> Sending:
        """The path of its sends. Raises `ClientClosed` unless it is running."""
        return self._opened().sending

    @property
    def parts(self) -> RunningProducer:
        """What it is made of while it runs. Raises `ClientClosed` unless it is running."""
        return self._opened()

    @property
    def submitting(self) -> Submitting:
        """The path of sends that no caller waits for. Raises `ClientClosed` unless running."""
        return self._opened().submitting

    def _opened(self) -> RunningProducer:
        if not self._open or self._parts is None:
            raise ClientClosed(self._name)
        return self._parts

    def _running(self) -> RunningProducer:
        """Return the parts for a call that needs their loop."""
        if not self._open or self._parts is None:
            raise ClientClosed(self._name)
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:  # a thread without any
            here = None
        if here is not self._lifetime.loop:
            self._lifetime.check_loop()
        return self._parts
