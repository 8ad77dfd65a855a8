"""The blocking push consumer: `pocketmq.aio.PushConsumer` for ordinary threads."""

from collections.abc import Iterable
from random import Random
from typing import Self, Unpack

from pocketmq.blocking.facade import Facade, told_in_full
from pocketmq.blocking.process_loop import closed
from pocketmq.blocking.stop_signals import StopSignals
from pocketmq.client.clock import Clock
from pocketmq.client.consumer_options import PushConsumerOptions, PushConsumerSettings
from pocketmq.client.filters import Filter
from pocketmq.client.group.warnings import MembershipWarning
from pocketmq.client.options import ClientOptions
from pocketmq.client.push.consume_hooks import ConsumeHook
from pocketmq.client.push.consumer import L
from pocketmq.client.push.consumer import PushConsumer as AsyncPushConsumer
from pocketmq.client.push.handlers import HandlerFunction
from pocketmq.model.queue import MessageQueue
from pocketmq.model.rebalance_event import RebalanceEvent


@told_in_full(AsyncPushConsumer)
class PushConsumer(Facade[AsyncPushConsumer]):
    """Hands the messages of a group to handlers. Used with `with`, `run`, or `start` and `close`.

    Members of a group share the queues of their topics by the rules of `pocketmq.balance`, Java
    members among them. A handler gets a message, or a list of them. Handlers are plain functions,
    which run in threads and may block, or coroutine functions, which run on the loop and may not.
    What a handler raises makes the message come again later. Threads may share a consumer.

    Keywords are the fields of `PushConsumerOptions` and `ClientOptions`; making a consumer does no
    input or output. Raises `InvalidInput` for what can never work.
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
        super().__init__(
            AsyncPushConsumer(
                name_servers, group=group, options=options, clock=clock, random=random, **settings
            )
        )
        self._stop = StopSignals()

    @property
    def options(self) -> PushConsumerOptions:
        """How it works."""
        return self._client.options

    # Life

    def run(self) -> None:
        """Consume until SIGINT (Ctrl-C) or SIGTERM comes, or `close` is called; then leave.

        Handlers at work have `PushConsumerOptions.stop_wait` seconds to finish. A second
        signal does not wait for them. Signals are seen in the main thread alone, which is
        Python's rule.
        """
        with self._stop:
            try:
                self.start()
                self._stop.wait()
            except KeyboardInterrupt:
                if not self._stop.asked:
                    raise
        if self.running:
            self.close()

    def close(self, wait: float | None = None) -> None:
        """Leave the group in order: handlers, locks, offsets, brokers. Closing twice is harmless.

        Handlers at work have `wait` seconds to finish, `PushConsumerOptions.stop_wait` if not
        given. Raises `ClientForked`.
        """
        self._stop.ask()
        if self._thread is not None:
            self._thread.call(self._client.close(wait))
            closed(self)

    # What to consume

    def subscribe(
        self,
        topic: str,
        expression: str | Filter = "*",
        handler: HandlerFunction | None = None,
        *,
        batch: bool | None = None,
    ) -> Self:
        """Consume a topic, or change what is wanted of it, before or after the start."""
        self._do(self._client.subscribe, topic, expression, handler, batch=batch)
        return self

    def unsubscribe(self, topic: str) -> None:
        """Consume a topic no longer; does nothing if it was not subscribed."""
        self._do(self._client.unsubscribe, topic)

    def on_assigned(self, listener: L) -> L:
        """Have a function called with queues that have become this member's; a decorator, too.

        It runs in a thread, and may block.
        """
        return self._client.on_assigned(listener)

    def on_revoked(self, listener: L) -> L:
        """Have a function called with queues this member has lost; a decorator, too."""
        return self._client.on_revoked(listener)

    def add_consume_hook(self, hook: ConsumeHook) -> None:
        """Have a hook told before and after every handler call from now on."""
        self._do(self._client.add_consume_hook, hook)

    # What is going on

    @property
    def running(self) -> bool:
        """Whether it has started and not been closed."""
        return self._client.running

    def assignment(self) -> dict[str, tuple[MessageQueue, ...]]:
        """Give the queues that are this member's now, by topic."""
        return self._do(self._client.assignment)

    @property
    def history(self) -> tuple[RebalanceEvent, ...]:
        """The last rebalances, the oldest first; empty before the start."""
        return self._client.history

    @property
    def warnings(self) -> tuple[MembershipWarning, ...]:
        """Mistakes in how the group is used, found so far."""
        return self._client.warnings

    def publish_history(self, topic: str, *, past: bool = True) -> None:
        """Send a message for each rebalance to a topic, those remembered first."""
        self._do(self._client.publish_history, topic, past=past)

    # Steering

    def pause(self, what: str | MessageQueue | Iterable[MessageQueue] | None = None) -> None:
        """Pull no more of a topic, of queues, or of anything; what is cached is still handled."""
        self._do(self._client.pause, what)

    def resume(self, what: str | MessageQueue | Iterable[MessageQueue] | None = None) -> None:
        """Pull again of a topic, of queues, or of everything."""
        self._do(self._client.resume, what)

    def seek(self, queue: MessageQueue, offset: int) -> None:
        """Go on with a queue from an offset; what is cached of it is thrown away."""
        self._call(self._client.seek(queue, offset))

    def commit(self) -> None:
        """Store the offsets of all queues now, without waiting for brokers to confirm."""
        self._call(self._client.commit())
