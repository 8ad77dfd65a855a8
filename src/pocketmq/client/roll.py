"""The members of one client: one producer and one consumer of each group at most.

Knows who is there; sends nothing.
"""

from collections.abc import Iterator
from typing import Generic, TypeVar

from pocketmq.client.members import ConsumerMember, GroupMember, ProducerMember
from pocketmq.errors import GroupTaken
from pocketmq.model.groups import ConsumerData, ProducerData
from pocketmq.protocol.requests.membership import Heartbeat

M = TypeVar("M", bound=GroupMember)


class Groups(Generic[M]):
    """Members of one kind, by group."""

    def __init__(self, kind: str, client_id: str) -> None:
        self._kind = kind
        self._client_id = client_id
        self._by_group: dict[str, M] = {}

    def __len__(self) -> int:
        return len(self._by_group)

    def __iter__(self) -> Iterator[M]:
        return iter(tuple(self._by_group.values()))

    def add(self, member: M) -> None:
        """Take a member in; raises `GroupTaken` if the group has one already."""
        if member.group in self._by_group:
            raise GroupTaken(self._kind, member.group, self._client_id)
        self._by_group[member.group] = member

    def get(self, group: str) -> M | None:
        """Give the member of a group."""
        return self._by_group.get(group)

    def remove(self, member: M) -> bool:
        """Let a member go; False if it was not here."""
        if self._by_group.get(member.group) is not member:
            return False
        del self._by_group[member.group]
        return True


class Roll:
    """All members of a client."""

    def __init__(self, client_id: str) -> None:
        self.client_id = client_id
        self.producers: Groups[ProducerMember] = Groups("producer", client_id)
        self.consumers: Groups[ConsumerMember] = Groups("consumer", client_id)

    def __len__(self) -> int:
        return len(self.producers) + len(self.consumers)

    def topics(self) -> set[str]:
        """List the topics in use."""
        members: list[GroupMember] = [*self.producers, *self.consumers]
        return {topic for member in members for topic in member.topics()}

    def heartbeat(self) -> Heartbeat | None:
        """Say what this client is to brokers; None if it is nothing to them."""
        producers = [ProducerData(group_name=member.group) for member in self.producers]
        consumers: list[ConsumerData] = [member.consumer_data() for member in self.consumers]
        if not producers and not consumers:
            return None
        return Heartbeat(
            client_id=self.client_id, producer_data_set=producers, consumer_data_set=consumers
        )
