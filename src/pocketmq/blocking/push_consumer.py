"""The blocking push consumer: `pocketmq.aio.PushConsumer` for ordinary threads."""

import os
import signal
import threading
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, NoReturn, Self, Unpack

from pocketmq.blocking.facade import Facade
from pocketmq.blocking.process_loop import closed, loop_thread
from pocketmq.client.codecs import BodyCodec
from pocketmq.client.consumer_options import PushConsumerOptions, PushConsumerSettings
from pocketmq.client.filters import Filter
from pocketmq.client.group.parts import QueueLag
from pocketmq.client.group.warnings import MembershipWarning
from pocketmq.client.interceptors import HandlerInterceptor
from pocketmq.client.options import ClientOptions
from pocketmq.client.push.consume_hooks import ConsumeHook
from pocketmq.client.push.consumer import L
from pocketmq.client.push.consumer import PushConsumer as AsyncPushConsumer
from pocketmq.client.push.deduplication import Deduplicate
from pocketmq.client.push.handlers import HandlerFunction
from pocketmq.client.push.retry_rule import RetryRule
from pocketmq.client.push.typed import UndecodableWord
from pocketmq.model import MessageQueue
from pocketmq.model.group_balance import GroupBalance
from pocketmq.model.rebalance_event import RebalanceEvent

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_LOOK = None if hasattr(os, "fork") else 0.5
"""Seconds between two looks at signals: on Windows none interrupts a thread that waits."""


class StopSignals:
    """A request to stop: SIGINT or SIGTERM, or a call from another thread.

    Inside `with`, on the main thread, the first signal is such a request, and raises
    KeyboardInterrupt wherever the thread is, since it may wait in a start that would otherwise go
    on. It restores the previous handlers, so that a second signal has its usual effect.
    """

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                self._before[number] = signal.signal(number, self._came)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._restore()

    def ask(self) -> None:
        """Request to stop."""
        self._asked.set()

    @property
    def asked(self) -> bool:
        """Whether a stop was requested."""
        return self._asked.is_set()

    def wait(self) -> None:
        """Wait for a request to stop."""
        while not self._asked.wait(_LOOK):
            pass

    def _came(self, _number: int, _frame: object) -> NoReturn:
        self._restore()
        self._asked.set()
        raise KeyboardInterrupt

    def _restore(self) -> None:
        before, self._before = self._before, {}
        for number, handler in before.items():
            signal.signal(number, handler)


class PushConsumer(Facade[AsyncPushConsumer]):
    """Hands the messages of a group to handlers. Used with `with`, `run`, or `start` and `close`.

    Members of a group share the queues of their topics by the rules of `pocketmq.balance`, Java
    members among them. A handler gets a message, or a list of them. Handlers are plain functions,
    which run in threads and may block, or coroutine functions, which run on the loop and may not.
    If a handler raises, the message is redelivered later. Threads may share a consumer.
    `interceptors` are called with each `HandlerCall` before its handler, in its thread or task, the
    first one first. `codec` is for typed handlers, see `subscribe`.

    Keywords are the fields of `PushConsumerOptions` and `ClientOptions`; making a consumer does no
    input or output. Raises `InvalidInput` for what can never work.
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
        super().__init__(
            AsyncPushConsumer(
                name_servers,
                group=group,
                options=options,
                interceptors=interceptors,
                codec=codec,
                **settings,
            )
        )
        self._stop = StopSignals()

    @property
    def options(self) -> PushConsumerOptions:
        """The consumer's options."""
        return self._client.options

    # Life

    def run(self) -> None:
        """Consume until SIGINT (Ctrl-C) or SIGTERM, or until `close` is called; then shut down.

        Running handlers have `PushConsumerOptions.stop_wait` seconds to finish. A second signal
        does not wait for them. Python delivers signals to the main thread only.
        """
        if self._thread is None:
            loop_thread()  # one that a signal's handler interrupts would leave parts of a loop open
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
        """Shut down gracefully: finish handlers, store offsets, leave. Closing twice is harmless.

        Running handlers have `wait` seconds to finish, `PushConsumerOptions.stop_wait` if not
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
        self._do(
            self._client.subscribe,
            topic,
            expression,
            handler,
            batch=batch,
            codec=codec,
            undecodable=undecodable,
            retry=retry,
            deduplicate=deduplicate,
        )
        return self

    def unsubscribe(self, topic: str) -> None:
        """Stop consuming a topic; does nothing if it was not subscribed."""
        self._do(self._client.unsubscribe, topic)

    def on_assigned(self, listener: L) -> L:
        """Call a function with queues that were assigned to this member; also a decorator.

        It runs in a thread, and may block.
        """
        return self._client.on_assigned(listener)

    def on_revoked(self, listener: L) -> L:
        """Call a function with queues that were revoked from this member; also a decorator."""
        return self._client.on_revoked(listener)

    def add_consume_hook(self, hook: ConsumeHook) -> None:
        """Call a hook before and after every handler call from now on.

        It is called where the handler is: on the loop or in a thread. Raises `InvalidInput` for
        what is no hook.
        """
        self._do(self._client.add_consume_hook, hook)

    # State

    @property
    def running(self) -> bool:
        """Whether it has started and not been closed."""
        return self._client.running

    def assignment(self) -> dict[str, tuple[MessageQueue, ...]]:
        """Return the queues that this member owns now, by topic."""
        return self._do(self._client.assignment)

    def lag(self) -> dict[MessageQueue, QueueLag]:
        """Return the messages not handled yet of this member's queues, as of their last pulls.

        Any thread may call it; no request is made. Empty if the consumer is not running.
        """
        return self._client.lag()

    @property
    def balance(self) -> GroupBalance:
        """The balance of the group as this member sees it; raises `ClientClosed`."""
        return self._client.balance

    @property
    def history(self) -> tuple[RebalanceEvent, ...]:
        """The last rebalances, the oldest first; empty before the start."""
        return self._client.history

    @property
    def warnings(self) -> tuple[MembershipWarning, ...]:
        """Mistakes in the use of the group, found so far."""
        return self._client.warnings

    def publish_history(self, topic: str, *, past: bool = True, changes: bool = False) -> None:
        """Send a message for each rebalance to a topic, past ones first.

        The form is that of `RebalanceEvent.to_json`. With `changes` most messages hold only what
        changed since the one before, which is shorter where topics have many queues;
        `pocketmq pipeline health` and the dashboard read both.

        Raises `ClientClosed`, `NameInvalid`.
        """
        self._do(self._client.publish_history, topic, past=past, changes=changes)

    # Control

    def pause(self, what: str | MessageQueue | Iterable[MessageQueue] | None = None) -> None:
        """Stop pulling a topic, queues, or everything; cached messages are still handled.

        Queues that are assigned later stay paused, too.
        """
        self._do(self._client.pause, what)

    def resume(self, what: str | MessageQueue | Iterable[MessageQueue] | None = None) -> None:
        """Resume pulling a topic, queues, or everything."""
        self._do(self._client.resume, what)

    def seek(self, queue: MessageQueue, offset: int) -> None:
        """Continue with a queue from an offset; its cached messages are dropped.

        Raises `InvalidInput` if the queue is not this member's.
        """
        self._call(self._client.seek(queue, offset))

    def commit(self) -> None:
        """Store the offsets of all queues now, without waiting for brokers to confirm."""
        self._call(self._client.commit())
