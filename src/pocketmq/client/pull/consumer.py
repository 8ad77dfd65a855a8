"""The pull consumer as applications use it, on asyncio (Java: DefaultLitePullConsumer).

Owns its life, what is asked for, and how messages are taken; the rest is in `running`.
"""

import asyncio
from collections.abc import Iterable
from types import TracebackType
from typing import Self, Unpack

from pocketmq.client.checks import check_seconds
from pocketmq.client.consumer.listeners import QueueListener
from pocketmq.client.consumer.subscriptions import Subscribed
from pocketmq.client.consumer_options import PullConsumerOptions
from pocketmq.client.filters import Filter, subscription_to
from pocketmq.client.lifetime import Lifetime
from pocketmq.client.options import ClientOptions, sort_settings
from pocketmq.client.pull.cache import Batch
from pocketmq.client.pull.running import PullRunning
from pocketmq.client.pull.settings import PullSettings
from pocketmq.client.pull.steering import PullSteering
from pocketmq.client.pull.watching import QueuesListener
from pocketmq.client.pull.wishes import Wishes
from pocketmq.client.sessions import Lease, lease_session, shown
from pocketmq.errors import ClientClosed, InvalidInput
from pocketmq.model.kinds import MessageModel
from pocketmq.model.names import check_topic
from pocketmq.model.queue import MessageQueue, sort_queues
from pocketmq.protocol.received import ReceivedMessage


class PullConsumer(PullSteering):
    """Reads queues at the caller's pace: poll, or iterate.

        async with PullConsumer("127.0.0.1:9876", group="audit") as consumer:
            consumer.subscribe("orders")
            async for message in consumer:
                ...

    What was polled before counts as done when the next poll comes; a timer commits it, or `commit`.
    Queues come from the group's share (`subscribe`) or from the caller (`assign`), not both. Every
    call ends by its deadline. Belongs to one event loop; tasks may share it.
    """

    def __init__(
        self,
        name_servers: str = "",
        *,
        group: str,
        options: ClientOptions | None = None,
        **settings: Unpack[PullSettings],
    ) -> None:
        client, own = sort_settings(PullConsumerOptions, group, name_servers, options, settings)
        self._client_options = client
        self.options = own
        super().__init__(Wishes(client.namespace), client.request_timeout)
        self._lease: Lease | None = None
        self._lifetime = Lifetime(f"consumer of group {group}")
        self._ended = False

    # Life

    async def start(self) -> None:
        """Join the group and begin to pull; does nothing if it is running.

        Raises `NameServersUnreachable`, `GroupTaken`, and the `ServerError` of a broker that cannot
        read a filter; nothing is left open then. Raises `ClientClosed` once it has been closed.
        """
        if self._ended:
            raise ClientClosed(f"consumer of group {self.options.group}")
        await self._lifetime.start(self._start)

    async def _start(self) -> None:
        broadcasting = self.options.model is MessageModel.BROADCASTING
        self._lease = lease = await lease_session(
            self._client_options, shared_name=broadcasting, stream=True
        )
        try:
            self._running = running = PullRunning(lease.session, self.options, self._wishes)
            await running.start()
        except BaseException:
            await self._close(commit=False)
            raise

    async def close(self, *, commit: bool | None = None) -> None:
        """Store offsets, leave the group, end polls and iterations. Harmless twice.

        `commit` says whether what was polled last counts as done; if not given, as `auto_commit`
        says. Cancelled, it goes on in the background.
        """
        self._ended = True
        done = self.options.auto_commit if commit is None else commit
        await self._lifetime.end(lambda: self._close(commit=done))

    async def _close(self, *, commit: bool) -> None:
        lease, self._lease = self._lease, None
        running, self._running = self._running, None
        if lease is None:
            return
        try:
            if running is not None:
                await running.stop(commit=commit)
        finally:
            await lease.release()

    def __repr__(self) -> str:
        started = self._running is not None
        state = "running" if started else "closed" if self._ended else "not started"
        return shown(self, self.options.group, self._lease, state)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # What was polled last may be what failed: it shall come again.
        await self.close(commit=None if kind is None else False)

    # What to read

    def subscribe(self, topic: str, expression: str | Filter = "*") -> Self:
        """Read this member's share of a topic's queues; again with another filter replaces it.

        Raises `NameInvalid`, `FilterSyntaxError`, and `InvalidInput` after `assign`.
        """
        wishes, running = self._wishes, self._running
        if wishes.assigned is not None:
            raise InvalidInput(
                "queues are assigned by hand; subscribe and assign exclude each other"
            )
        version = running.session.clock.now_ms() if running is not None else 0
        wishes.subscriptions.want(topic, expression, version_ms=version)
        if running is not None:
            running.subscribed()
        return self

    def unsubscribe(self, topic: str) -> None:
        """Read no more of a topic; what was committed is stored."""
        wishes, running = self._wishes, self._running
        if wishes.subscriptions.remove(topic) and running is not None:
            running.leave(wishes.subscriptions.wire(topic))

    def assign(self, queues: Iterable[MessageQueue], expression: str | Filter = "*") -> Self:
        """Read exactly these queues, whoever else reads them; others assigned before are left.

        Raises `InvalidInput` without any, and after `subscribe`; `NameInvalid`,
        `FilterSyntaxError`.
        """
        wishes, names = self._wishes, self._wishes.subscriptions
        wanted = tuple(dict.fromkeys(self._wishes.wire(queue) for queue in queues))
        if not wanted:
            raise InvalidInput("assign some queues; see queues(topic)")
        if names.topics():
            raise InvalidInput("topics are subscribed; subscribe and assign exclude each other")
        for queue in wanted:
            check_topic(queue.topic)
            subscription = subscription_to(queue.topic, expression, 0)
            subscribed = Subscribed.of(subscription, self._client_options.namespace)
            if wishes.by_hand.get(queue.topic) != subscribed:
                wishes.by_hand[queue.topic] = subscribed
        wishes.assigned = wanted
        if self._running is not None:
            self._running.assign(wanted)
        return self

    def assignment(self) -> dict[str, tuple[MessageQueue, ...]]:
        """Give the queues that are read now, by topic."""
        running, found = self._running, dict[str, set[MessageQueue]]()
        for queue in running.parts.assignment.queues() if running is not None else ():
            shown = self._wishes.shown(queue)
            found.setdefault(shown.topic, set()).add(shown)
        return {topic: tuple(sort_queues(queues)) for topic, queues in found.items()}

    def on_assigned(self, listener: QueueListener) -> QueueListener:
        """Have a function called with queues that come to be this member's share."""
        self._wishes.listeners.on_assigned.append(listener)
        return listener

    def on_revoked(self, listener: QueueListener) -> QueueListener:
        """Have a function called with queues that are not this member's any more."""
        self._wishes.listeners.on_revoked.append(listener)
        return listener

    def on_queues_changed(self, topic: str, listener: QueuesListener) -> None:
        """Have `listener(topic, queues)` called when a topic gets other queues.

        Looked at every `topic_check_interval`, whether the topic is subscribed or not.
        """
        check_topic(topic)
        self._wishes.watch.listen(topic, listener)
        if self._running is not None:
            self._running.look_soon()

    # Messages

    async def poll(self, timeout: float | None = None) -> list[ReceivedMessage]:  # noqa: ASYNC109 - not an error
        """Give the messages of the next pull; none if none comes within `timeout`.

        Cancelling a poll loses nothing. A poll that waits when the consumer is closed gives none.
        """
        running = self._started()
        patience = self.options.poll_timeout if timeout is None else timeout
        check_seconds("timeout", patience)
        running.positions.note_if_due()
        cache, clock = running.parts.cache, asyncio.get_running_loop().time
        deadline = clock() + patience
        while True:
            batch = cache.take()
            if batch is not None:
                messages = batch.messages[batch.at :] if batch.at else batch.messages
                batch.at = len(batch.messages)
                batch.settle(clock())
                return messages
            left = deadline - clock()
            if left <= 0 or self._running is not running:
                await asyncio.sleep(0)  # whoever polls in a tight loop leaves room for the pulls
                return []
            await cache.wait(left)

    def __aiter__(self) -> Self:
        """Iterate over messages until the consumer is closed; starts it if need be."""
        return self

    async def __anext__(self) -> ReceivedMessage:
        """Give the next message; the one before counts as done."""
        if self._running is None and not self._ended:
            await self.start()
        running = self._running
        if running is None:
            raise StopAsyncIteration
        cache = running.parts.cache
        batch = cache.first()
        if batch is None or batch.at == 0:
            running.positions.note_if_due()
        while batch is None:
            await cache.wait(None)
            if self._running is not running:
                raise StopAsyncIteration
            running.positions.note_if_due()
            batch = cache.first()
        message = batch.messages[batch.at]
        batch.at += 1
        if batch.at == len(batch.messages):
            cache.take()
            batch.settle(asyncio.get_running_loop().time())
        return message

    @property
    def begun(self) -> Batch | None:
        """The batch an iteration is in, for whoever takes its messages without a turn of the loop.

        One who does so counts `at` up for each, and leaves the last one to `__anext__`.
        """
        return None if self._running is None else self._running.parts.cache.first()

    def _started(self) -> PullRunning:
        if self._running is None:
            raise ClientClosed(f"consumer of group {self.options.group}")
        return self._running
