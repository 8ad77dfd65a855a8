"""What rebalancing needs of a consumer, whether its messages are handled or polled."""

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from pocketmq.balance.consumer.instructions import Instruction
from pocketmq.balance.consumer.rebalance import OwnedQueue
from pocketmq.balance.consumer.round import RebalanceRound
from pocketmq.client.consumer_options import ConsumerOptions
from pocketmq.client.group.held_queue import HeldQueue
from pocketmq.client.group.offsets import OffsetStore
from pocketmq.client.group.subscriptions import Subscriptions
from pocketmq.client.session import Session
from pocketmq.client.tasks import Tasks
from pocketmq.model.queue import MessageQueue


class Sharing(Protocol):
    """A consumer that shares its topics' queues with its group."""

    @property
    def session(self) -> Session:
        """The running session."""

    @property
    def options(self) -> ConsumerOptions:
        """The consumer's options."""

    @property
    def group(self) -> str:
        """The group, with the name of the wire."""

    @property
    def subscriptions(self) -> Subscriptions:
        """What is subscribed."""

    @property
    def offsets(self) -> OffsetStore:
        """Where offsets are kept."""

    @property
    def tasks(self) -> Tasks:
        """For background work."""

    @property
    def held(self) -> Mapping[MessageQueue, HeldQueue]:
        """Queues that are pulled."""

    @property
    def popped(self) -> Mapping[MessageQueue, HeldQueue]:
        """Queues that are popped."""


class QueueHolder(Protocol):
    """Carries out what a rebalance says about queues."""

    rebalance_in: Callable[[float], None]
    """Set by whoever rebalances; called to have it done again in so many seconds."""

    def owned(self) -> tuple[OwnedQueue, ...]:
        """Give what decisions look at, of all queues."""

    async def carry_out(self, round_: RebalanceRound) -> None:
        """Carry out one rebalance of one topic."""

    def perform(self, steps: Iterable[Instruction]) -> None:
        """Carry out what takes no time, in order."""
