"""The members of one client: its producers and consumers, as the session sees them.

A member describes itself to brokers, names the topics it uses, and is notified of what concerns it.
Notices (`on_…`) are called on the loop and must not block. Calls by a broker are coroutines, each
in its own task; an error they raise becomes the broker's answer. Names of groups and topics are
those on the wire, with their namespace. Sends nothing.
"""

from collections.abc import Collection, Iterator
from typing import Generic, Protocol, TypeVar

from pocketmq.client.routes import KnownRoute
from pocketmq.errors import GroupTaken
from pocketmq.model import ConsumerData, MessageQueue, ProducerData
from pocketmq.protocol import Command, ReceivedMessage
from pocketmq.protocol.requests import client_calls, membership, sending


class SessionMember(Protocol):
    """What producers and consumers have in common."""

    @property
    def group(self) -> str:
        """The group, by which brokers know the member."""

    def topics(self) -> Collection[str]:
        """Return the topics whose routes are to be kept fresh."""

    def on_route_changed(self, known: KnownRoute) -> None:
        """Take over the new route of one of `topics`; the route book has it already."""


class ProducerMember(SessionMember, Protocol):
    """A producer, as the session sees it."""

    async def check_transaction(
        self, message: ReceivedMessage, header: sending.CheckTransactionStateRequest, address: str
    ) -> None:
        """Report the state of a half message's transaction to the broker at `address`."""

    def take_reply(self, header: client_calls.PushReplyRequest, request: Command) -> bool:
        """Take a reply to a request of this producer; False if it awaits no such reply."""


class ConsumerMember(SessionMember, Protocol):
    """A consumer, as the session sees it."""

    def consumer_data(self) -> ConsumerData:
        """Return what heartbeats carry: how the group consumes, and its subscriptions."""

    def on_ids_changed(self) -> None:
        """Rebalance: a broker reports that members joined or left the group."""

    def on_broker_active(self, address: str) -> None:
        """Take note of a fresh connection to a broker."""

    def on_broker_lost(self, address: str) -> None:
        """Take note of a connection to a broker that closed."""

    async def reset_offsets(self, topic: str, offsets: dict[MessageQueue, int]) -> None:
        """Resume from these offsets."""

    async def offsets_reached(self, topic: str) -> dict[MessageQueue, int]:
        """Return the offsets reached in the queues of a topic."""

    async def running_info(self, *, with_stacks: bool) -> client_calls.RunningInfo:
        """Return the member's state, with all threads' stacks if asked for."""

    async def consume_directly(
        self, message: ReceivedMessage, broker_name: str | None
    ) -> client_calls.DirectConsumeResult:
        """Handle one message now and return the result."""


M = TypeVar("M", bound=SessionMember)


class MembersByGroup(Generic[M]):
    """Members of one kind, one of each group at most."""

    def __init__(self, kind: str, client_id: str) -> None:
        self._kind = kind
        self._client_id = client_id
        self._by_group: dict[str, M] = {}

    def __len__(self) -> int:
        return len(self._by_group)

    def __iter__(self) -> Iterator[M]:
        return iter(tuple(self._by_group.values()))

    def add(self, member: M) -> None:
        """Register a member; raises `GroupTaken` if the group has one already."""
        if member.group in self._by_group:
            raise GroupTaken(self._kind, member.group, self._client_id)
        self._by_group[member.group] = member

    def get(self, group: str) -> M | None:
        """Return the member of a group."""
        return self._by_group.get(group)

    def remove(self, member: M) -> bool:
        """Remove a member; False if it was not registered."""
        if self._by_group.get(member.group) is not member:
            return False
        del self._by_group[member.group]
        return True


class Roll:
    """All members of a client."""

    def __init__(self, client_id: str) -> None:
        self.client_id = client_id
        self.producers: MembersByGroup[ProducerMember] = MembersByGroup("producer", client_id)
        self.consumers: MembersByGroup[ConsumerMember] = MembersByGroup("consumer", client_id)

    def __len__(self) -> int:
        return len(self.producers) + len(self.consumers)

    def topics(self) -> set[str]:
        """Return the topics in use."""
        members: list[SessionMember] = [*self.producers, *self.consumers]
        return {topic for member in members for topic in member.topics()}

    def heartbeat(self) -> membership.Heartbeat | None:
        """Return what brokers are to know of this client; None without members."""
        producers = [ProducerData(group_name=member.group) for member in self.producers]
        consumers: list[ConsumerData] = [member.consumer_data() for member in self.consumers]
        if not producers and not consumers:
            return None
        return membership.Heartbeat(
            client_id=self.client_id, producer_data_set=producers, consumer_data_set=consumers
        )
