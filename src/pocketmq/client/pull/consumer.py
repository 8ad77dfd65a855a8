"""The pull consumer as applications use it, on asyncio (Java: DefaultLitePullConsumer).

Owns how messages are taken; its part in the group is in `member`.
"""

import asyncio
from collections.abc import Iterable
from types import TracebackType
from typing import Self, Unpack

from pocketmq.client.checks import check_seconds, warn_if_milliseconds
from pocketmq.client.consumer_options import PullConsumerOptions, PullSettings, check_return
from pocketmq.client.filters import Filter, subscription_to
from pocketmq.client.group.handover.joining import Joined, join_group
from pocketmq.client.group.life import ConsumerLife
from pocketmq.client.group.listeners import QueueListener, QueuesListener
from pocketmq.client.group.subscriptions import SubscribedTopic
from pocketmq.client.options import ClientOptions, sort_settings
from pocketmq.client.pull.cache import PulledBatch
from pocketmq.client.pull.member import PullMember
from pocketmq.client.pull.queues import PullSetup
from pocketmq.client.pull.steering import PullSteering
from pocketmq.client.session import Session
from pocketmq.client.sessions import Lease, lease_session
from pocketmq.errors import ClientClosed, InvalidInput
from pocketmq.model import MessageModel, MessageQueue, sort_queues
from pocketmq.model.group_balance import GroupBalance
from pocketmq.model.names import check_topic
from pocketmq.protocol import ReceivedMessage


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
        check_return(client, own)
        self._joined: Joined[PullConsumerOptions] | None = None
        self._client_options = client
        self.options = own
        life = ConsumerLife(group, self._join, self._make_member)
        super().__init__(PullSetup(client.namespace), life, client.request_timeout)
        self._ended = False

    # Life

    async def start(self) -> None:
        """Join the group and begin to pull; does nothing if it is running.

        Raises `NameServersUnreachable`, `GroupTaken`, and the `ServerError` of a broker that cannot
        read a filter; nothing is left open then. Raises `ClientClosed` once it has been closed.
        """
        if self._ended:
            raise ClientClosed(f"consumer of group {self.options.group}")
        await self._life.start()

    async def _join(self) -> Lease:
        self._joined = await join_group(
            self.options, self._setup.subscriptions.topics(), self._client_options, self._lease
        )
        return self._joined.lease

    async def _lease(self, *, hands_over: bool) -> Lease:
        return await lease_session(
            self._client_options,
            shared_name=self.options.model is MessageModel.BROADCASTING,
            stream=True,
            hands_over=hands_over,
        )

    def _make_member(self, session: Session) -> PullMember:
        assert self._joined is not None
        return PullMember(session, self._joined.options, self._setup, self._joined.reason)

    async def close(self, *, commit: bool | None = None) -> None:
        """Store offsets, leave the group, end polls and iterations. Harmless twice.

        `commit` is whether what was polled last counts as done, by default `auto_commit`. If
        cancelled, closing continues in the background.
        """
        self._life.check_loop()
        self._ended = True
        done = self.options.auto_commit if commit is None else commit
        await self._life.close(lambda member: member.stop(commit=done))

    def __repr__(self) -> str:
        return self._life.describe(self, closed=self._ended)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # What was polled last may be what failed: it has to be redelivered.
        await self.close(commit=None if kind is None else False)

    # What to read

    def subscribe(self, topic: str, expression: str | Filter = "*") -> Self:
        """Read this member's share of a topic's queues; again with another filter replaces it.

        Raises `NameInvalid`, `FilterSyntaxError`, and `InvalidInput` after `assign`.
        """
        self._life.check_loop()
        setup, member = self._setup, self._life.current
        if setup.assigned is not None:
            raise InvalidInput(
                "queues are assigned by hand; subscribe and assign exclude each other"
            )
        version = member.session.clock.now_ms() if member is not None else 0
        setup.subscriptions.want(topic, expression, version_ms=version)
        if member is not None:
            member.subscribed()
        return self

    def unsubscribe(self, topic: str) -> None:
        """Read no more of a topic; what was committed is stored."""
        self._life.check_loop()
        setup, member = self._setup, self._life.current
        if setup.subscriptions.remove(topic) and member is not None:
            member.leave(setup.subscriptions.wire(topic))

    def assign(self, queues: Iterable[MessageQueue], expression: str | Filter = "*") -> Self:
        """Read exactly these queues, independent of other readers; drop those assigned before.

        Raises `InvalidInput` without any, and after `subscribe`; `NameInvalid`,
        `FilterSyntaxError`.
        """
        self._life.check_loop()
        setup, names = self._setup, self._setup.subscriptions
        wanted = tuple(dict.fromkeys(self._setup.wire(queue) for queue in queues))
        if not wanted:
            raise InvalidInput("no queues given; pass some of queues(topic)")
        if self.options.sticky is not None:
            raise InvalidInput(
                "assign() cannot be combined with strategy='STICKY', which assigns queues itself; "
                "leave the strategy out"
            )
        if names.topics():
            raise InvalidInput("topics are subscribed; subscribe and assign exclude each other")
        for queue in wanted:
            check_topic(queue.topic)
            subscription = subscription_to(queue.topic, expression, 0)
            subscribed = SubscribedTopic.of(subscription, self._client_options.namespace)
            if setup.by_hand.get(queue.topic) != subscribed:
                setup.by_hand[queue.topic] = subscribed
        setup.assigned = wanted
        if self._life.current is not None:
            self._life.current.assign(wanted)
        return self

    def assignment(self) -> dict[str, tuple[MessageQueue, ...]]:
        """Return the queues that are read now, by topic."""
        member, found = self._life.current, dict[str, set[MessageQueue]]()
        for held in member.parts.assigned() if member is not None else ():
            shown = self._setup.shown(held.queue)
            found.setdefault(shown.topic, set()).add(shown)
        return {topic: tuple(sort_queues(queues)) for topic, queues in found.items()}

    @property
    def balance(self) -> GroupBalance:
        """The balance of the group as this member sees it; raises `ClientClosed`."""
        return self._life.running().balance()

    def on_assigned(self, listener: QueueListener) -> QueueListener:
        """Call a function with queues that were assigned to this member."""
        self._setup.listeners.on_assigned.append(listener)
        return listener

    def on_revoked(self, listener: QueueListener) -> QueueListener:
        """Call a function with queues that were revoked from this member."""
        self._setup.listeners.on_revoked.append(listener)
        return listener

    def on_queues_changed(self, topic: str, listener: QueuesListener) -> None:
        """Call `listener(topic, queues)` when the queues of a topic change.

        Checked every `topic_check_interval`, whether the topic is subscribed or not.
        """
        check_topic(topic)
        self._setup.watch.listen(topic, listener)
        if self._life.current is not None:
            self._life.current.look_soon()

    # Messages

    async def poll(self, timeout: float | None = None) -> list[ReceivedMessage]:  # noqa: ASYNC109 - not an error
        """Return the messages of the next pull; none if none comes within `timeout`.

        Cancelling a poll loses nothing. A poll that waits when the consumer is closed returns none.
        """
        member = self._life.here()
        patience = self.options.poll_timeout if timeout is None else timeout
        check_seconds("timeout", patience)
        warn_if_milliseconds(self.options.group, "timeout", timeout)
        member.positions.note_if_due()
        cache, clock = member.parts.cache, asyncio.get_running_loop().time
        if member.sticky is not None:
            cache.polled()
        deadline = clock() + patience
        while True:
            # No await from taking to returning: a poll that is cancelled has taken nothing.
            batch = cache.take()
            if batch is not None:
                messages = batch.messages[batch.at :] if batch.at else batch.messages
                batch.at = len(batch.messages)
                batch.settle(clock())
                return messages
            left = deadline - clock()
            if left <= 0 or self._life.current is not member:
                await asyncio.sleep(
                    0
                )  # a caller that polls in a tight loop must not starve the pulls
                return []
            await cache.wait(left)

    def __aiter__(self) -> Self:
        """Iterate over messages until the consumer is closed; starts it if need be."""
        return self

    async def __anext__(self) -> ReceivedMessage:
        """Return the next message; the one before counts as done."""
        if self._life.current is None and not self._ended:
            await self.start()
        member = self._life.current
        if member is None:
            raise StopAsyncIteration
        cache = member.parts.cache
        batch = cache.first()
        if batch is None or batch.at == 0:
            self._life.check_loop()
            member.positions.note_if_due()
        if member.sticky is not None:
            cache.polled()
        while batch is None:
            await cache.wait(None)
            if self._life.current is not member:
                raise StopAsyncIteration
            member.positions.note_if_due()
            batch = cache.first()
        message = batch.messages[batch.at]
        batch.at += 1
        if batch.at == len(batch.messages):
            cache.take()
            batch.settle(asyncio.get_running_loop().time())
        return message

    @property
    def begun(self) -> PulledBatch | None:
        """The batch an iteration is in, for callers that take its messages without the event loop.

        They count `at` up for each, and leave the last one to `__anext__`.
        """
        member = self._life.current
        if member is None or member.sticky is not None:
            return None  # with STICKY the loop decides about each message whether it may start
        return member.parts.cache.first()
