"""The queues a pull consumer reads, shared out or assigned by hand, and what is set up on them.

Unlike a push consumer it has no locks, and no handlers to wait for: a queue that is lost is dropped
at once. What a pull, a poll or a seek does to the offsets is decided in
`balance.consumer.lite_pull`. Belongs to one event loop.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from pocketmq.balance.consumer import instructions as do
from pocketmq.balance.consumer.lite_pull import commit_step
from pocketmq.client.consumer_options import PullConsumerOptions
from pocketmq.client.group.held_queue import HoldState
from pocketmq.client.group.holdings import Holdings, Pauses
from pocketmq.client.group.listeners import QueueListeners, QueueWatch
from pocketmq.client.group.parts import MemberParts
from pocketmq.client.group.pulling import PullResult
from pocketmq.client.group.queue_loop import QueueLoop
from pocketmq.client.group.subscriptions import SubscribedTopic, Subscriptions
from pocketmq.client.pull.cache import PollCache, PullQueue
from pocketmq.errors import InvalidInput
from pocketmq.model import MessageQueue, Subscription


class PullSetup:
    """Subscriptions, assigned queues, pauses and listeners of one pull consumer."""

    def __init__(self, namespace: str) -> None:
        self.subscriptions = Subscriptions(namespace)
        """Topics whose queues are shared out with the group."""
        self.assigned: tuple[MessageQueue, ...] | None = None
        """Queues assigned by hand, with the names of the wire; None if they are shared out."""
        self.by_hand: dict[str, SubscribedTopic] = {}
        """The subscriptions of topics whose queues are assigned by hand, by the wire's names."""
        self.pauses = Pauses()
        self.watch = QueueWatch(namespace)
        self.listeners = QueueListeners()

    def wire(self, queue: MessageQueue) -> MessageQueue:
        """Return a queue with its name on the wire; raises `InvalidInput` for what is no queue."""
        given: object = queue
        if not isinstance(given, MessageQueue):
            raise InvalidInput(
                f"a queue must be a MessageQueue, as queues() returns them, not {given!r}"
            )
        return MessageQueue(self.subscriptions.wire(queue.topic), queue.broker_name, queue.queue_id)

    def wire_any(
        self, what: str | Iterable[MessageQueue] | None
    ) -> str | list[MessageQueue] | None:
        """Return a topic or queues with the names of the wire."""
        if what is None:
            return None
        if isinstance(what, str):
            return self.subscriptions.wire(what)
        return [self.wire(queue) for queue in what]

    def shown(self, queue: MessageQueue) -> MessageQueue:
        """Return a queue under the name by which the application calls its topic."""
        return MessageQueue(
            self.subscriptions.shown(queue.topic), queue.broker_name, queue.queue_id
        )


@dataclass(slots=True, eq=False, kw_only=True)
class PullParts(MemberParts[PullQueue]):
    """A pull consumer's settings and state, as far as more than one module needs them.

    `subscriptions` are those shared out with the group, without queues assigned by hand.
    """

    options: PullConsumerOptions
    cache: PollCache
    setup: PullSetup

    def assigned(self) -> Iterator[PullQueue]:
        """Return the queues that are pulled."""
        return iter([held for held in self.queues.pulled.values() if held.assigned])

    def subscribed(self, topic: str) -> SubscribedTopic:
        """Return the subscription of a topic, by the wire's name."""
        known = self.subscriptions.get(topic) or self.setup.by_hand.get(topic)
        if known is None:
            namespace = self.session.options.namespace
            known = SubscribedTopic.of(Subscription(topic=topic), namespace)
            self.setup.by_hand[topic] = known
        return known

    def note_done(self, held: PullQueue) -> None:
        """Note what is surely done of a queue that is released: all but what was polled last.

        Java stores what its last automatic commit noted, and everything since is redelivered.
        """
        position = held.position
        if self.cache.last is held:
            position = msgspec.structs.replace(position, consume_offset=held.before_last)
        step = commit_step(held.queue, position, dropped=held.dropped)
        if step is not None and self.options.auto_commit:
            self.offsets.table.update(step.queue, step.offset, increase_only=True)


class PullHoldings(Holdings[PullQueue]):
    """Carries out instructions about the queues of a pull consumer."""

    def __init__(self, parts: PullParts, loop: QueueLoop[PullQueue, PullResult]) -> None:
        super().__init__(parts, loop, PullQueue)
        self._parts: PullParts = parts
        self._at_once |= {do.AssignQueues: self._assign_shared}

    def _assign_shared(self, step: do.AssignQueues) -> None:
        self.assign(step.queues, step.topic, step.after)

    def assign(
        self, queues: Iterable[MessageQueue], topic: str | None = None, after: float = 0.0
    ) -> None:
        """Read exactly these queues (of one topic, if given), and pull the new ones, in a while."""
        parts, table = self._parts, self._queues.pulled
        if topic is not None and parts.subscriptions.get(topic) is None:
            return  # unsubscribed while the rebalance was in flight
        wanted = dict.fromkeys(queues)
        for held in tuple(table.values()):
            if held.queue not in wanted and topic in (None, held.queue.topic):
                self.drop(held)
                del table[held.queue]
        for queue in wanted:
            held = table.get(queue) or self._read(queue)
            if not held.assigned:
                held.assigned = True
                held.change(paused=queue in parts.setup.pauses)
                if after:  # forget what was read: the last owner may commit more in the meantime
                    parts.offsets.table.forget(queue)
                self._loop.begin(held, after)

    def leave(self, topic: str) -> None:
        """Release the queues of a topic that was unsubscribed, by the wire's name."""
        table = self._queues.pulled
        for queue in [queue for queue in table if queue.topic == topic]:
            self.perform((do.DropQueue(queue), do.PersistOffset(queue), do.ForgetOffset(queue)))
            del table[queue]

    def _read(self, queue: MessageQueue) -> PullQueue:
        """Add a queue that no rebalance took: assigned by hand, or its offset was not found.

        As in Java such a queue is pulled all the same; its loop looks for the offset again.
        """
        held = self._queues.pulled[queue] = self.new(do.AddQueue(queue))
        held.enter(HoldState.READ)
        return held

    def _add(self, step: do.AddQueue) -> None:
        held = self._queues.pulled.get(step.queue)
        if held is not None and held.state is HoldState.READ:
            held.enter(HoldState.OWNED)
        else:
            super()._add(step)

    def _drop(self, step: do.DropQueue) -> None:
        held = self._queues.pulled.get(step.queue)
        if held is not None and held.assigned:
            self._parts.note_done(held)
        super()._drop(step)
