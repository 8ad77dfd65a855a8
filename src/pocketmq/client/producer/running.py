"""A producer between start and close: the parts it is made of, and its place in the session.

Puts sends, submits, transactions, check-backs, replies and the trace together, and passes on what
brokers ask of the group. Belongs to one event loop.
"""

from collections.abc import Collection

from pocketmq.client.producer.check_backs import CheckBacks, TransactionCheck
from pocketmq.client.producer.hooks import SendHook
from pocketmq.client.producer.replies import AwaitedReplies
from pocketmq.client.producer.sending import Sending
from pocketmq.client.producer.submitting import Submitting
from pocketmq.client.producer.trace import SendTracing, open_tracer
from pocketmq.client.producer.transactions import Transactions
from pocketmq.client.producer_options import ProducerOptions
from pocketmq.client.routes import KnownRoute
from pocketmq.client.session import Session
from pocketmq.client.tasks import Tasks
from pocketmq.client.tracing import Tracer
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
        tracing = SendTracing(self.tracer, self.session.clock)
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
