"""CONFIG and functions of your own: shares that no built-in rule decides."""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from pocketmq.balance.allocation.strategy import check_input, first_claims, may_own
from pocketmq.model.queue import MessageQueue

# (group, member, queues, members) -> that member's queues; None means none.
AllocationFunction = Callable[
    [str, str, Sequence[MessageQueue], Sequence[str]], Iterable[MessageQueue] | None
]


class Configured(msgspec.Struct, frozen=True):
    """Always the queues this member was configured with, whatever the group looks like.

    As in Java nothing is checked: the member need not be listed, the queues need not exist, and
    that no two members are given the same queue is up to whoever configures them.
    """

    queues: tuple[MessageQueue, ...] = ()

    @property
    def name(self) -> str:
        """Java's name."""
        return "CONFIG"

    def allocate(
        self,
        group: str,  # noqa: ARG002  (one signature for all strategies)
        member: str,  # noqa: ARG002
        queues: Sequence[MessageQueue],  # noqa: ARG002
        members: Sequence[str],  # noqa: ARG002
    ) -> list[MessageQueue]:
        """Give the configured queues."""
        return list(self.queues)

    def allocate_all(
        self, queues: Sequence[MessageQueue], members: Sequence[str], group: str = ""
    ) -> list[str | None]:
        """Give the configured queues to the first member."""
        return first_claims(self, group, queues, members)


class OwnRule(msgspec.Struct, frozen=True):
    """A function of your own under a name of your own.

    It is called with sorted queues and members, and only for members that are listed; the guards
    of the built-in strategies apply before. It must give each queue to one member, and the same
    answer in every process of the group.
    """

    name: str
    function: AllocationFunction

    def allocate(
        self, group: str, member: str, queues: Sequence[MessageQueue], members: Sequence[str]
    ) -> list[MessageQueue]:
        """Call the function for one member."""
        if not may_own(member, queues, members):
            return []
        return list(self.function(group, member, queues, members) or ())

    def allocate_all(
        self, queues: Sequence[MessageQueue], members: Sequence[str], group: str = ""
    ) -> list[str | None]:
        """Call the function once per member."""
        check_input(queues, members)
        return first_claims(self, group, queues, members)
