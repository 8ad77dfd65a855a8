"""What a session needs of its members: producers and consumers, seen from below.

A member says what it is to brokers and which topics it uses, and is told what concerns it. Notices
(`on_…`) are called on the loop and must not block. Calls that a broker makes are coroutines, each
in a task of its own; an error they raise becomes the broker's answer. Names of groups and topics
are those on the wire, with their namespace.
"""

from collections.abc import Collection
from typing import Protocol

from pocketmq.client.routes import KnownRoute
from pocketmq.model.groups import ConsumerData
from pocketmq.model.queue import MessageQueue
from pocketmq.protocol.command import Command
from pocketmq.protocol.received import ReceivedMessage
from pocketmq.protocol.requests.client_calls import (
    DirectConsumeResult,
    PushReplyRequest,
    RunningInfo,
)
from pocketmq.protocol.requests.sending import CheckTransactionStateRequest


class Member(Protocol):
    """What producers and consumers have in common."""

    @property
    def group(self) -> str:
        """The group, by which brokers know the member."""

    def topics(self) -> Collection[str]:
        """List the topics whose routes shall be kept fresh."""

    def on_route_changed(self, known: KnownRoute) -> None:
        """Take note of the new route of one of `topics`; what is known before is in the book."""


class ProducerMember(Member, Protocol):
    """A producer, as the session sees it."""

    async def check_transaction(
        self, message: ReceivedMessage, header: CheckTransactionStateRequest, address: str
    ) -> None:
        """Tell the broker at `address` what became of the transaction of a half message."""

    def take_reply(self, header: PushReplyRequest, request: Command) -> bool:
        """Take a reply to a request of this producer; False if it waits for no such reply."""


class ConsumerMember(Member, Protocol):
    """A consumer, as the session sees it."""

    def consumer_data(self) -> ConsumerData:
        """Say what heartbeats tell brokers: how the group consumes, and what."""

    def on_ids_changed(self) -> None:
        """Rebalance: a broker says that the group has other members now."""

    def on_broker_active(self, address: str) -> None:
        """Take note of a fresh connection to a broker."""

    async def reset_offsets(self, topic: str, offsets: dict[MessageQueue, int]) -> None:
        """Go on from these offsets."""

    async def offsets_reached(self, topic: str) -> dict[MessageQueue, int]:
        """Give the offsets reached in the queues of a topic."""

    async def running_info(self, *, with_stacks: bool) -> RunningInfo:
        """Give an account of oneself, with all threads' stacks if asked for."""

    async def consume_directly(
        self, message: ReceivedMessage, broker_name: str | None
    ) -> DirectConsumeResult:
        """Handle one message now and say what came of it."""
