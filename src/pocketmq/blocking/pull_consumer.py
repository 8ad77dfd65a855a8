"""The blocking pull consumer: `pocketmq.aio.PullConsumer` for ordinary threads."""

import threading
from collections.abc import Coroutine, Iterable, Mapping
from types import TracebackType
from typing import Any, Self, Unpack

from pocketmq.blocking.facade import Facade
from pocketmq.blocking.process_loop import closed
from pocketmq.client.consumer_options import PullConsumerOptions, PullSettings
from pocketmq.client.filters import Filter
from pocketmq.client.group.listeners import QueueListener, QueuesListener
from pocketmq.client.options import ClientOptions
from pocketmq.client.pull import PullConsumer as AsyncPullConsumer
from pocketmq.client.pull.cache import PulledBatch
from pocketmq.model import MessageQueue
from pocketmq.model.group_balance import GroupBalance
from pocketmq.protocol import ReceivedMessage


class PullConsumer(Facade[AsyncPullConsumer]):
    """Reads queues at the caller's pace: poll, or iterate.

        with PullConsumer("127.0.0.1:9876", group="audit") as consumer:
            consumer.subscribe("orders")
            for message in consumer:
                ...

    Polled messages count as done with the next poll; a timer commits them, or `commit` does. Queues
    are assigned by the group (`subscribe`) or by the caller (`assign`), not both. Every call ends
    by its deadline. Threads may share it. Keywords are the fields of
    `PullConsumerOptions` and `ClientOptions`.
    """

    def __init__(
        self,
        name_servers: str = "",
        *,
        group: str,
        options: ClientOptions | None = None,
        **settings: Unpack[PullSettings],
    ) -> None:
        super().__init__(AsyncPullConsumer(name_servers, group=group, options=options, **settings))
        self._turn = threading.Lock()  # one thread at a time takes from a batch
        self._begun: PulledBatch | None = None  # iterations take from it without a hop to the loop

    @property
    def options(self) -> PullConsumerOptions:
        """The consumer's options."""
        return self._client.options

    # Life

    def close(self, *, commit: bool | None = None) -> None:
        """Store offsets, leave the group, end polls and iterations. Closing twice is harmless.

        `commit` is whether polled messages count as done; the default is that of `auto_commit`.
        """
        if self._thread is not None:
            self._forget_batch()
            self._thread.call(self._client.close(commit=commit))
            closed(self)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # The messages polled last may be what failed: they are to be redelivered.
        self.close(commit=None if kind is None else False)

    def _close_at_exit(self) -> Coroutine[Any, Any, None]:
        # The messages polled last may not have been handled: they do not count as done.
        return self._client.close(commit=False)

    # What to read

    def subscribe(self, topic: str, expression: str | Filter = "*") -> Self:
        """Read the queues of a topic that the group assigns; repeat it to change the filter.

        Raises `NameInvalid`, `FilterSyntaxError`, and `InvalidInput` after `assign`.
        """
        self._do(self._client.subscribe, topic, expression)
        return self

    def unsubscribe(self, topic: str) -> None:
        """Stop reading a topic; committed offsets are stored."""
        self._forget_batch()
        self._do(self._client.unsubscribe, topic)

    def assign(self, queues: Iterable[MessageQueue], expression: str | Filter = "*") -> Self:
        """Read exactly these queues, whether or not others read them; replaces earlier ones.

        Raises `InvalidInput` without any, and after `subscribe`; `NameInvalid`,
        `FilterSyntaxError`.
        """
        self._forget_batch()
        self._do(self._client.assign, queues, expression)
        return self

    def assignment(self) -> dict[str, tuple[MessageQueue, ...]]:
        """Return the queues that are read now, by topic."""
        return self._do(self._client.assignment)

    def pause(self, what: str | Iterable[MessageQueue] | None = None) -> None:
        """Stop pulling a topic, queues, or everything; cached messages can be polled."""
        self._do(self._client.pause, what)

    def resume(self, what: str | Iterable[MessageQueue] | None = None) -> None:
        """Resume pulling a topic, queues, or everything."""
        self._do(self._client.resume, what)

    @property
    def balance(self) -> GroupBalance:
        """The balance of the group as this member sees it; raises `ClientClosed`."""
        return self._client.balance

    def on_assigned(self, listener: QueueListener) -> QueueListener:
        """Call a function with queues that were assigned to this member."""
        return self._client.on_assigned(listener)

    def on_revoked(self, listener: QueueListener) -> QueueListener:
        """Call a function with queues that were revoked from this member."""
        return self._client.on_revoked(listener)

    def on_queues_changed(self, topic: str, listener: QueuesListener) -> None:
        """Call `listener(topic, queues)` when the queues of a topic change.

        Checked every `topic_check_interval`, whether the topic is subscribed or not.
        """
        self._do(self._client.on_queues_changed, topic, listener)

    # Messages

    def poll(self, timeout: float | None = None) -> list[ReceivedMessage]:
        """Return the messages of the next pull; an empty list if none comes within `timeout`.

        Cancelling a poll loses nothing. A poll that waits when the consumer is closed returns none.
        """
        self._forget_batch()
        return self._call(self._client.poll(timeout))

    def __iter__(self) -> Self:
        """Iterate over messages until the consumer is closed; starts it if need be."""
        return self

    def __next__(self) -> ReceivedMessage:
        """Return the next message; the previous one counts as done."""
        with self._turn:
            batch = self._begun
            if batch is not None:
                at = batch.at
                if at + 1 < len(batch.messages) and not batch.assigned.dropped:
                    batch.at = at + 1
                    return batch.messages[at]
                self._begun = None
        if self._thread is None:
            self.start()
        try:
            return self._call(self._next())
        except StopAsyncIteration:
            raise StopIteration from None

    async def _next(self) -> ReceivedMessage:
        message = await self._client.__anext__()
        self._begun = self._client.begun
        return message

    def _forget_batch(self) -> None:
        """Leave the rest of a batch to the loop: the position has changed."""
        with self._turn:
            self._begun = None

    # Offsets

    def commit(
        self, what: Mapping[MessageQueue, int] | Iterable[MessageQueue] | None = None
    ) -> None:
        """Store offsets: of everything polled, of some queues, or as given.

        Returns when brokers have it. Raises `InvalidInput` for queues that are not assigned (any
        more), and the error of a broker that refused it. With STICKY a queue counts as given away
        when `on_revoked` has returned, and while its lease is in doubt `TransportError` is raised:
        the offset is stored as soon as the lease is renewed.
        """
        self._call(self._client.commit(what))

    def committed(self, queue: MessageQueue) -> int | None:
        """Return the group's offset in a queue; None if it has none."""
        return self._call(self._client.committed(queue))

    def seek(self, queue: MessageQueue, offset: int) -> None:
        """Continue from an offset that the queue holds, or from its end.

        Raises `InvalidInput` for any other, and for a queue that is not assigned (yet), or about to
        be another member's.
        """
        self._forget_batch()
        self._call(self._client.seek(queue, offset))

    def seek_to_begin(self, queue: MessageQueue) -> None:
        """Continue from the first message that the queue holds."""
        self._forget_batch()
        self._call(self._client.seek_to_begin(queue))

    def seek_to_end(self, queue: MessageQueue) -> None:
        """Continue with messages stored from now on."""
        self._forget_batch()
        self._call(self._client.seek_to_end(queue))

    def offset_for_time(self, queue: MessageQueue, timestamp: float) -> int:
        """Return the offset of the first message stored at a time (since 1970) or later.

        Without such a message it is the queue's end. Brokers before 5.3 return a message that is
        near in time; there the exact one is found by reading some messages.
        """
        return self._call(self._client.offset_for_time(queue, timestamp))

    def queues(self, topic: str) -> list[MessageQueue]:
        """Return a topic's queues; raises `RouteNotFound`, `NameServersUnreachable`."""
        return self._call(self._client.queues(topic))
