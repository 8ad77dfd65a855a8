"""MACHINE_ROOM and MACHINE_ROOM_NEARBY: keep consumption inside a data centre.

Owns both rules and the two ways to find a room that need no code: a prefix of the name, and a
table. Rooms are plain names.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from pocketmq.balance.allocation import strategy
from pocketmq.errors import AllocationInputInvalid
from pocketmq.model import MessageQueue
from pocketmq.model.java_strings import java_sorted, java_split


class MachineRoom(msgspec.Struct, frozen=True):
    """Equal shares of the queues in `rooms` (Java: consumeridcs); all others stay unconsumed.

    A broker's room is what its name has before the only `@`, as in `room1@broker-a`.
    """

    rooms: frozenset[str]

    @property
    def name(self) -> str:
        """Java's name."""
        return "MACHINE_ROOM"

    def allocate(
        self,
        group: str,  # noqa: ARG002  (one signature for all strategies)
        member: str,
        queues: Sequence[MessageQueue],
        members: Sequence[str],
    ) -> list[MessageQueue]:
        """Return one member's block, and one of the queues left over by equal blocks."""
        if not strategy.may_own(member, queues, members):
            return []
        kept = [queues[index] for index in self._inside(queues)]
        position = members.index(member)
        size, rest = divmod(len(kept), len(members))
        share = kept[position * size : (position + 1) * size]
        if position < rest:
            share.append(kept[size * len(members) + position])
        return share

    def allocate_all(
        self,
        queues: Sequence[MessageQueue],
        members: Sequence[str],
        group: str = "",  # noqa: ARG002
    ) -> list[str | None]:
        """Return every queue's owner; queues outside the rooms have none."""
        strategy.check_input(queues, members)
        inside = self._inside(queues)
        size, rest = divmod(len(inside), len(members))
        row = strategy.seats(members)
        dealt = [seat for seat in row for _ in range(size)] + row[:rest]
        owners: list[str | None] = [None] * len(queues)
        for index, seat in zip(inside, dealt, strict=True):
            owners[index] = seat
        return owners

    def _inside(self, queues: Sequence[MessageQueue]) -> list[int]:
        verdicts = {name: self._holds(name) for name in {queue.broker_name for queue in queues}}
        return [index for index, queue in enumerate(queues) if verdicts[queue.broker_name]]

    def _holds(self, broker_name: str) -> bool:
        parts = java_split(broker_name, "@")
        return len(parts) == 2 and parts[0] in self.rooms


class RoomResolver(Protocol):
    """Finds the room of a queue's broker and of a member; None or "" if unknown."""

    def room_of_queue(self, queue: MessageQueue) -> str | None:
        """Return the room of a queue's broker."""
        ...

    def room_of_member(self, member: str) -> str | None:
        """Return the room of a member."""
        ...


class RoomInName(msgspec.Struct, frozen=True):
    """Rooms written before the first separator: `room1@broker-a`, `room1@10.0.0.7@4711`."""

    separator: str = "@"

    def room_of_queue(self, queue: MessageQueue) -> str | None:
        """Read the room off the broker's name."""
        return self._prefix(queue.broker_name)

    def room_of_member(self, member: str) -> str | None:
        """Read the room off the member's id."""
        return self._prefix(member)

    def _prefix(self, name: str) -> str | None:
        room, found, _ = name.partition(self.separator)
        return room if found else None


class RoomTable(msgspec.Struct, frozen=True):
    """Rooms looked up by broker name and by member id."""

    brokers: Mapping[str, str]
    members: Mapping[str, str]

    def room_of_queue(self, queue: MessageQueue) -> str | None:
        """Return the room of the queue's broker from the table."""
        return self.brokers.get(queue.broker_name)

    def room_of_member(self, member: str) -> str | None:
        """Return the member's room from the table."""
        return self.members.get(member)


class MachineRoomNearby(msgspec.Struct, frozen=True):
    """An inner strategy within each room; rooms without a member are shared by all members.

    Raises `AllocationInputInvalid` when the resolver does not find the room of any queue or
    member, as Java does: one unknown room stops the whole group's rebalance.
    """

    inner: strategy.Strategy
    resolver: RoomResolver

    @property
    def name(self) -> str:
        """Java's name, which ends with the inner strategy's."""
        return f"MACHINE_ROOM_NEARBY-{self.inner.name}"

    def allocate(
        self, group: str, member: str, queues: Sequence[MessageQueue], members: Sequence[str]
    ) -> list[MessageQueue]:
        """Return the share of the member's own room, then those of deserted rooms by name."""
        if not strategy.may_own(member, queues, members):
            return []
        queue_rooms, member_rooms = self._queue_rooms(queues), self._member_rooms(members)
        own_room = self.resolver.room_of_member(member) or ""
        share: list[MessageQueue] = []
        if own_room in queue_rooms:
            near = [queues[index] for index in queue_rooms.pop(own_room)]
            share += self.inner.allocate(group, member, near, member_rooms[own_room])
        for room in java_sorted(set(queue_rooms) - set(member_rooms)):
            deserted = [queues[index] for index in queue_rooms[room]]
            share += self.inner.allocate(group, member, deserted, members)
        return share

    def allocate_all(
        self, queues: Sequence[MessageQueue], members: Sequence[str], group: str = ""
    ) -> list[str | None]:
        """Return every queue's owner, room by room."""
        strategy.check_input(queues, members)
        if isinstance(self.inner, strategy.Configured | strategy.OwnRule):
            # These may return queues of other rooms than the one they were offered.
            return strategy.first_claims(self, group, queues, members)
        queue_rooms, member_rooms = self._queue_rooms(queues), self._member_rooms(members)
        owners: list[str | None] = [None] * len(queues)
        for room, indices in queue_rooms.items():
            inside = [queues[index] for index in indices]
            dealt = self.inner.allocate_all(inside, member_rooms.get(room, members), group)
            for index, owner in zip(indices, dealt, strict=True):
                owners[index] = owner
        return owners

    def _queue_rooms(self, queues: Sequence[MessageQueue]) -> dict[str, list[int]]:
        rooms: dict[str, list[int]] = {}
        for index, queue in enumerate(queues):
            room = self.resolver.room_of_queue(queue)
            if not room:
                reason = f"the machine room of broker {queue.broker_name} is unknown"
                raise AllocationInputInvalid(reason)
            rooms.setdefault(room, []).append(index)
        return rooms

    def _member_rooms(self, members: Sequence[str]) -> dict[str, list[str]]:
        rooms: dict[str, list[str]] = {}
        for member in members:
            room = self.resolver.room_of_member(member)
            if not room:
                raise AllocationInputInvalid(f"the machine room of member {member} is unknown")
            rooms.setdefault(room, []).append(member)
        return rooms
