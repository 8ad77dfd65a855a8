"""The asyncio push consumer as applications use it.

Keeps what is set up before the start, and delegates everything else to its `PushMember`. Belongs
to one event loop once it is started.
"""

import asyncio
from collections.abc import Sequence
from random import Random
from types import TracebackType
from typing import Self, TypeVar, Unpack

from pocketmq.balance.consumer import schedule as when
from pocketmq.client.checks import check_hook
from pocketmq.client.clock import Clock, SystemClock
from pocketmq.client.codecs import BodyCodec, check_codec
from pocketmq.client.consumer_options import PushConsumerOptions, PushConsumerSettings, check_return
from pocketmq.client.filters import Filter
from pocketmq.client.group.handover.joining import Joined, join_group
from pocketmq.client.group.life import ConsumerLife, run_until_signal
from pocketmq.client.group.listeners import QueueListener, QueueListeners
from pocketmq.client.group.parts import QueueLag, lag_of
from pocketmq.client.group.warnings import MembershipWarning
from pocketmq.client.interceptors import HandlerInterceptor, checked
from pocketmq.client.options import ClientOptions, sort_settings
from pocketmq.client.push.concurrent import ConcurrentWork
from pocketmq.client.push.consume_hooks import ConsumeHook
from pocketmq.client.push.deduplication import Deduplicate
from pocketmq.client.push.handlers import HandledSubscriptions, HandlerFunction
from pocketmq.client.push.member import PushMember
from pocketmq.client.push.orderly import OrderlyWork
from pocketmq.client.push.retry_rule import RetryRule
from pocketmq.client.push.steering import PushSteering
from pocketmq.client.push.typed import UndecodableWord
from pocketmq.client.push.work import Consuming, Work
from pocketmq.client.push.wrapping import HandlerPlace, HandlerRules, wrapped
from pocketmq.client.session import Session
from pocketmq.client.sessions import Lease, lease_session
from pocketmq.errors import InvalidInput
from pocketmq.model import MessageModel, MessageQueue, sort_queues
from pocketmq.model.group_balance import GroupBalance
from pocketmq.model.names import is_retry_topic
from pocketmq.model.rebalance_event import RebalanceEvent

L = TypeVar("L", bound=QueueListener)


class PushConsumer(PushSteering):
    """Hands the messages of a group to handlers. Used with `async with`, or `start` and `close`.

    Members of a group share the queues of their topics by the rules of `pocketmq.balance`, Java
    members among them. A handler gets a message, or a list of them; it is a coroutine function,
    which runs on the loop, or a plain one, which runs in a thread. If it raises, the message is
    redelivered later. `interceptors` are called with each `HandlerCall` before its handler, in its
    thread or task, the first one first. `codec` is for typed handlers, see `subscribe`.

    Keywords are the fields of `PushConsumerOptions` and `ClientOptions`; making a consumer does no
    input or output. Raises `InvalidInput` for values that can never work.
    """

    def __init__(
        self,
        name_servers: str = "",
        *,
        group: str,
        options: ClientOptions | None = None,
        interceptors: Sequence[HandlerInterceptor] = (),
        codec: BodyCodec | None = None,
        **settings: Unpack[PushConsumerSettings],
    ) -> None:
        self.client_options, self.options = sort_settings(
            PushConsumerOptions, group, name_servers, options, settings
        )
        check_return(self.client_options, self.options)
        self._joined: Joined[PushConsumerOptions] | None = None
        self._clock: Clock = SystemClock()
        self._random: Random | None = None
        subscriptions = HandledSubscriptions(self.client_options.namespace)
        super().__init__(subscriptions, ConsumerLife(group, self._join, self._make_member))
        self._subscriptions = subscriptions
        self._listeners = QueueListeners()
        self._hooks: list[ConsumeHook] = []
        self._interceptors = checked(interceptors)
        check_codec(codec)
        self._codec = codec
        self._stopped = asyncio.Event()

    # Life

    async def start(self) -> Self:
        """Join the group and begin to consume; does nothing if it is running.

        Raises `NameServersUnreachable` (see `ClientOptions.start_wait`), `GroupTaken` if the
        client has a consumer in this group already, `ServerError` if a broker refuses an
        expression, `ClientClosed` once it has been closed. Nothing is left running then.
        """
        await self._life.start()
        return self

    async def _join(self) -> Lease:
        self._joined = await join_group(
            self.options, self._subscriptions.topics(), self.client_options, self._lease
        )
        return self._joined.lease

    async def _lease(self, *, hands_over: bool) -> Lease:
        return await lease_session(
            self.client_options,
            shared_name=self.options.model is MessageModel.BROADCASTING,
            hands_over=hands_over,
            clock=self._clock,
            random=self._random,
        )

    def _make_member(self, session: Session) -> PushMember:
        assert self._joined is not None
        return PushMember(
            session,
            self._joined.options,
            self._subscriptions,
            self._listeners,
            self._make_work,
            reason=self._joined.reason,
        )

    async def run(self) -> None:
        """Consume until SIGINT (Ctrl-C), SIGTERM or `close`; then shut down gracefully.

        Handlers in flight have `PushConsumerOptions.stop_wait` seconds to finish. A second
        signal does not wait for them.
        """
        await run_until_signal(self.start, self._stopped)
        await self.close()

    async def close(self, wait: float | None = None) -> None:
        """Shut down gracefully: handlers, locks, offsets, brokers. Closing twice is harmless.

        Handlers in flight have `wait` seconds; by default, `PushConsumerOptions.stop_wait`.
        If cancelled, closing continues in the background. Raises `ClientForked`.
        """
        self._life.check_loop()
        self._stopped.set()
        patience = self.options.stop_wait if wait is None else wait
        await self._life.close(lambda member: member.stop(patience))

    def __repr__(self) -> str:
        return self._life.describe(self, closed=self._life.ended)

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def _make_work(self, consuming: Consuming) -> Work:
        work = OrderlyWork(consuming) if self.options.orderly else ConcurrentWork(consuming)
        for hook in self._hooks:
            work.add_hook(hook)
        return work

    # What to consume

    def subscribe(
        self,
        topic: str,
        expression: str | Filter = "*",
        handler: HandlerFunction | None = None,
        *,
        batch: bool | None = None,
        codec: BodyCodec | None = None,
        undecodable: UndecodableWord = "dead_letter",
        retry: RetryRule | None = None,
        deduplicate: Deduplicate | None = None,
    ) -> Self:
        """Subscribe a topic, or change its filter or handler, before or after the start.

        Text selects tags, such as `"paid || refunded"`; `by_sql` makes other filters. With `batch`
        the handler takes a list of messages; by default it does if `handler_batch` is not 1.

        With a codec, here or of the consumer, a handler may be typed: `def handle(order: Order)`
        gets the decoded body, and a second parameter the message. A message that cannot be decoded
        goes to the dead-letter topic, is retried or is skipped, as `undecodable` says. `retry` is
        the rule for failed messages, `deduplicate` that for messages that come twice.

        Raises `NameInvalid`, `FilterSyntaxError`, and `InvalidInput` without a handler.
        """
        self._life.check_loop()
        takes_list = self.options.handler_batch > 1 if batch is None else batch
        rules = HandlerRules(codec or self._codec, undecodable, retry, deduplicate)
        if handler is None and not (codec is None and retry is None and deduplicate is None):
            raise InvalidInput("codec, retry and deduplicate belong to a handler: pass it, too")
        if callable(handler):
            place = HandlerPlace(self.options, topic, batch=takes_list)
            handler = wrapped(handler, rules, self._interceptors, place)
        self._subscriptions.add(
            topic,
            expression,
            handler,
            batch=takes_list,
            version_ms=self._clock.now_ms(),
        )
        self._subscriptions_changed(added=True)
        return self

    def unsubscribe(self, topic: str) -> None:
        """Unsubscribe a topic; does nothing if it was not subscribed."""
        self._life.check_loop()
        if self._subscriptions.remove(topic):
            self._subscriptions_changed(added=False)

    def on_assigned(self, listener: L) -> L:
        """Call a function with queues that were assigned to this member; also a decorator.

        It may be slow or raise: calls come one after another, beside everything else.
        """
        self._listeners.on_assigned.append(listener)
        return listener

    def on_revoked(self, listener: L) -> L:
        """Call a function with queues that were revoked from this member; also a decorator."""
        self._listeners.on_revoked.append(listener)
        return listener

    def add_consume_hook(self, hook: ConsumeHook) -> None:
        """Call a hook before and after every handler call from now on.

        It is called where the handler is: on the loop or in a thread. Raises `InvalidInput` for
        what is no hook.
        """
        check_hook(hook, "before_consume", "after_consume")
        self._hooks.append(hook)
        if self._life.member is not None:
            self._life.member.parts.work.add_hook(hook)

    # What is going on

    @property
    def running(self) -> bool:
        """Whether it has started and not been closed."""
        return self._life.current is not None

    @property
    def session(self) -> Session:
        """The client this consumer is a member of; raises `ClientClosed` if it is not running."""
        return self._life.running().session

    def assignment(self) -> dict[str, tuple[MessageQueue, ...]]:
        """Return the queues that are assigned to this member now, by topic."""
        member = self._life.running()
        found: dict[str, list[MessageQueue]] = {
            self._subscriptions.shown(topic): [] for topic in self._subscriptions.own()
        }
        for held in member.parts.queues:
            if held.mine and not is_retry_topic(held.queue.topic):
                found.setdefault(held.topic, []).append(member.shown(held.queue))
        return {topic: tuple(sort_queues(queues)) for topic, queues in found.items()}

    def lag(self) -> dict[MessageQueue, QueueLag]:
        """Return the messages not handled yet of this member's queues, as of their last pulls.

        Any thread may call it; no request is made. Empty if the consumer is not running.
        """
        member = self._life.current
        return {} if member is None else lag_of(member.parts.queues, self.client_options.namespace)

    @property
    def history(self) -> tuple[RebalanceEvent, ...]:
        """The last rebalances, the oldest first; empty before the start."""
        member = self._life.member
        return () if member is None else member.rebalancing.history.events

    @property
    def balance(self) -> GroupBalance:
        """The balance of the group as this member sees it; raises `ClientClosed`."""
        return self._life.running().balance()

    @property
    def warnings(self) -> tuple[MembershipWarning, ...]:
        """Mistakes in how the group is used that were found so far."""
        member = self._life.member
        return () if member is None else member.watch.warnings

    def publish_history(self, topic: str, *, past: bool = True, changes: bool = False) -> None:
        """Send a message for each rebalance to a topic, first those in memory unless `past=False`.

        The form is that of `RebalanceEvent.to_json`. With `changes` most messages hold only what
        changed since the one before, which is shorter where topics have many queues;
        `pocketmq pipeline health` and the dashboard read both.

        Raises `ClientClosed`, `NameInvalid`.
        """
        self._life.here().publish_history(topic, past=past, changes=changes)

    def _subscriptions_changed(self, *, added: bool) -> None:
        member = self._life.current
        if member is None:
            return
        member.rebalancing.tell(when.SubscriptionChanged(added=added))
        member.tasks.spawn(_announce(member), "announce subscriptions")


async def _announce(member: PushMember) -> None:
    """Send brokers the subscriptions, then rebalance without waiting for their notification."""
    await member.announce()
    member.request_rebalance()
