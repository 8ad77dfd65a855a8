"""AVG and AVG_BY_CIRCLE: equal shares by position in the sorted member list."""

from collections.abc import Sequence

import msgspec

from pocketmq.balance.allocation.strategy import check_input, may_own, seats
from pocketmq.model import MessageQueue


class Average(msgspec.Struct, frozen=True):
    """Neighbouring queues in one block per member; the first members take one more (default)."""

    @property
    def name(self) -> str:
        """Java's name."""
        return "AVG"

    def allocate(
        self,
        group: str,  # noqa: ARG002  (one signature for all strategies)
        member: str,
        queues: Sequence[MessageQueue],
        members: Sequence[str],
    ) -> list[MessageQueue]:
        """Return one member's block."""
        if not may_own(member, queues, members):
            return []
        position = members.index(member)
        size, larger_blocks = divmod(len(queues), len(members))
        start = position * size + min(position, larger_blocks)
        return list(queues[start : start + size + (position < larger_blocks)])

    def allocate_all(
        self,
        queues: Sequence[MessageQueue],
        members: Sequence[str],
        group: str = "",  # noqa: ARG002
    ) -> list[str | None]:
        """Return every queue's owner."""
        check_input(queues, members)
        size, larger_blocks = divmod(len(queues), len(members))
        owners: list[str | None] = []
        for position, seat in enumerate(seats(members)):
            owners += [seat] * (size + (position < larger_blocks))
        return owners


class AverageByCircle(msgspec.Struct, frozen=True):
    """Queues dealt out like cards, one to each member after the other."""

    @property
    def name(self) -> str:
        """Java's name."""
        return "AVG_BY_CIRCLE"

    def allocate(
        self,
        group: str,  # noqa: ARG002  (one signature for all strategies)
        member: str,
        queues: Sequence[MessageQueue],
        members: Sequence[str],
    ) -> list[MessageQueue]:
        """Return every n-th queue, starting at the member's position."""
        if not may_own(member, queues, members):
            return []
        return list(queues[members.index(member) :: len(members)])

    def allocate_all(
        self,
        queues: Sequence[MessageQueue],
        members: Sequence[str],
        group: str = "",  # noqa: ARG002
    ) -> list[str | None]:
        """Return every queue's owner."""
        check_input(queues, members)
        round_of_owners = seats(members)
        rounds, rest = divmod(len(queues), len(members))
        return round_of_owners * rounds + round_of_owners[:rest]
