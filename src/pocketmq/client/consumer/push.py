"""The asyncio push consumer: what applications hold in their hands.

Delegates everything; owns its own life, and what is said before the start. Belongs to one event
loop once it is started.
"""

import asyncio
from random import Random
from types import TracebackType
from typing import Self, TypeVar, Unpack

from pocketmq.balance.consumer import schedule as when
from pocketmq.client.checks import check_hook
from pocketmq.client.clock import Clock, SystemClock
from pocketmq.client.consumer.concurrent import ConcurrentWork
from pocketmq.client.consumer.consume_hooks import ConsumeHook
from pocketmq.client.consumer.engine import Engine
from pocketmq.client.consumer.life import Life
from pocketmq.client.consumer.listeners import QueueListener, QueueListeners
from pocketmq.client.consumer.orderly import OrderlyWork
from pocketmq.client.consumer.steering import Steering
from pocketmq.client.consumer.subscriptions import Subscriptions
from pocketmq.client.consumer.until_told import until_told
from pocketmq.client.consumer.warnings import MembershipWarning
from pocketmq.client.consumer.work import Consuming, Handler, Work
from pocketmq.client.consumer_options import PushConsumerOptions, PushConsumerSettings
from pocketmq.client.filters import Filter
from pocketmq.client.lifetime import Lifetime
from pocketmq.client.options import ClientOptions, sort_settings
from pocketmq.client.session import Session
from pocketmq.client.sessions import Lease, lease_session, shown
from pocketmq.errors import ClientClosed
from pocketmq.model.kinds import MessageModel
from pocketmq.model.names import is_retry_topic
from pocketmq.model.queue import MessageQueue, sort_queues
from pocketmq.model.rebalance_event import RebalanceEvent

L = TypeVar("L", bound=QueueListener)

SEEK_PATIENCE = 3.0


class PushConsumer(Steering):
    """Hands the messages of a group to handlers. Used with `async with`, or `start` and `close`.

    Members of a group share the queues of their topics by the rules of `pocketmq.balance`, Java
    members among them. A handler gets a message, or a list of them; it is a coroutine function,
    which runs on the loop, or a plain one, which runs in a thread. What it raises makes the
    message come again later.

    Keywords are the fields of `PushConsumerOptions` and `ClientOptions`; making a consumer does no
    input or output. Raises `InvalidInput` for what can never work. `clock` and `random` are for
    tests that run on time of their own.
    """

    def __init__(
        self,
        name_servers: str = "",
        *,
        group: str,
        options: ClientOptions | None = None,
        clock: Clock | None = None,
        random: Random | None = None,
        **settings: Unpack[PushConsumerSettings],
    ) -> None:
        self.client_options, self.options = sort_settings(
            PushConsumerOptions, group, name_servers, options, settings
        )
        self._clock = clock or SystemClock()
        self._random = random
        super().__init__(Subscriptions(self.client_options.namespace))
        self._listeners = QueueListeners()
        self._hooks: list[ConsumeHook] = []
        self._lease: Lease | None = None
        self._engine: Engine | None = None
        self._life: Life | None = None
        self._lifetime = Lifetime(f"consumer of group {group}")
        self._told = asyncio.Event()

    # Life

    async def start(self) -> Self:
        """Join the group and begin to consume; does nothing if it is running.

        Raises `NameServersUnreachable` (see `ClientOptions.start_wait`), `GroupTaken` if the
        client has a consumer in this group already, `ServerError` if a broker refuses an
        expression, `ClientClosed` once it has been closed. Nothing is left running then.
        """
        await self._lifetime.start(self._start)
        return self

    async def _start(self) -> None:
        self._lease = await lease_session(
            self.client_options,
            shared_name=self.options.model is MessageModel.BROADCASTING,
            clock=self._clock,
            random=self._random,
        )
        try:
            self._engine = Engine(
                self._lease.session,
                self.options,
                self._subscriptions,
                self._listeners,
                self._make_work,
            )
            self._life = Life(self._engine)
            await self._life.start()
        except BaseException:
            await self._close(0.0)
            self._lease = self._engine = self._life = None
            raise

    async def run(self) -> None:
        """Consume until SIGINT (Ctrl-C) or SIGTERM comes, or `close` is called; then leave.

        Handlers at work have `PushConsumerOptions.stop_wait` seconds to finish. A second
        signal does not wait for them.
        """
        await until_told(self.start, self._told)
        await self.close()

    async def close(self, wait: float | None = None) -> None:
        """Leave the group in order: handlers, locks, offsets, brokers. Closing twice is harmless.

        Handlers at work have `wait` seconds to finish, `PushConsumerOptions.stop_wait` if not
        given. Cancelled, it goes on in the background. Raises `ClientForked`.
        """
        self._told.set()
        if self._lease is not None:
            self._lease.session.check_process()
        patience = self.options.stop_wait if wait is None else wait
        await self._lifetime.end(lambda: self._close(patience))

    async def _close(self, wait: float) -> None:
        try:
            if self._life is not None:
                await self._life.stop(wait)
        finally:
            if self._lease is not None:
                await self._lease.release()

    def __repr__(self) -> str:
        lease = self._lease
        state = "running" if self.running else "not started" if lease is None else "closed"
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
        handler: Handler | None = None,
        *,
        batch: bool | None = None,
    ) -> Self:
        """Consume a topic, or change what is wanted of it, before or after the start.

        Text selects tags, such as `"paid || refunded"`; `by_sql` makes other filters. With `batch`
        the handler takes a list of messages; so it does by itself if `handler_batch` is not 1.
        Raises `NameInvalid`, `FilterSyntaxError`, and `InvalidInput` without a handler.
        """
        self._subscriptions.add(
            topic,
            expression,
            handler,
            batch=self.options.handler_batch > 1 if batch is None else batch,
            version_ms=self._clock.now_ms(),
        )
        self._subscriptions_changed(added=True)
        return self

    def unsubscribe(self, topic: str) -> None:
        """Consume a topic no longer; does nothing if it was not subscribed."""
        if self._subscriptions.remove(topic):
            self._subscriptions_changed(added=False)

    def on_assigned(self, listener: L) -> L:
        """Have a function called with queues that have become this member's; a decorator, too.

        It may be slow or raise: calls come one after another, beside everything else.
        """
        self._listeners.on_assigned.append(listener)
        return listener

    def on_revoked(self, listener: L) -> L:
        """Have a function called with queues this member has lost; a decorator, too."""
        self._listeners.on_revoked.append(listener)
        return listener

    def add_consume_hook(self, hook: ConsumeHook) -> None:
        """Have a hook told before and after every handler call from now on.

        It is called where the handler is: on the loop or in a thread. Raises `InvalidInput` for
        what is no hook.
        """
        check_hook(hook, "before_consume", "after_consume")
        self._hooks.append(hook)
        if self._engine is not None:
            self._engine.parts.work.add_hook(hook)

    # What is going on

    @property
    def running(self) -> bool:
        """Whether it has started and not been closed."""
        return self._engine is not None and not self._lifetime.ended

    @property
    def session(self) -> Session:
        """The client this consumer is a member of; raises `ClientClosed` if it is not running."""
        return self._running().session

    def assignment(self) -> dict[str, tuple[MessageQueue, ...]]:
        """Give the queues that are this member's now, by topic."""
        engine = self._running()
        found: dict[str, list[MessageQueue]] = {
            self._subscriptions.shown(topic): [] for topic in self._subscriptions.own()
        }
        for held in (*engine.parts.held.values(), *engine.parts.popped.values()):
            if not held.dropped and not is_retry_topic(held.queue.topic):
                found.setdefault(held.topic, []).append(engine.shown(held.queue))
        return {topic: tuple(sort_queues(queues)) for topic, queues in found.items()}

    @property
    def history(self) -> tuple[RebalanceEvent, ...]:
        """The last rebalances, the oldest first; empty before the start."""
        return () if self._engine is None else self._engine.rebalancing.history.events

    @property
    def warnings(self) -> tuple[MembershipWarning, ...]:
        """Mistakes in how the group is used, found so far."""
        return () if self._engine is None else self._engine.watch.warnings

    def publish_history(self, topic: str, *, past: bool = True) -> None:
        """Send a message for each rebalance to a topic, those remembered first unless `past=False`.

        The form is that of `RebalanceEvent.to_json`. Raises `ClientClosed`, `NameInvalid`.
        """
        self._running().publish_history(topic, past=past)

    def _running(self) -> Engine:
        if self._engine is None or self._lifetime.ended:
            raise ClientClosed(f"consumer of group {self.options.group}")
        return self._engine

    def _subscriptions_changed(self, *, added: bool) -> None:
        engine = self._engine
        if engine is None or self._lifetime.ended:
            return
        engine.rebalancing.tell(when.SubscriptionChanged(added=added))
        engine.tasks.spawn(_announce(engine), "announce subscriptions")


async def _announce(engine: Engine) -> None:
    """Tell brokers, then see to it without waiting for them to call."""
    await engine.announce()
    engine.request_rebalance()
