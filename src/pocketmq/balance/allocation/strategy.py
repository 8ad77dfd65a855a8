"""What an allocation strategy is, how one is asked, and those without a rule of their own.

Owns the interfaces (one topic's queues, or all topics of a group with their owners up to now),
the guards that Java's strategies share, the sorted public entry, CONFIG and functions of your
own. Independent of the consumer that acts on the answer.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol, TypeGuard

import msgspec

from pocketmq.errors import AllocationInputInvalid
from pocketmq.model import MessageQueue, sort_queues
from pocketmq.model.java_strings import java_sorted

# (group, member, queues, members) -> that member's queues; None means none.
AllocationFunction = Callable[
    [str, str, Sequence[MessageQueue], Sequence[str]], Iterable[MessageQueue] | None
]


class Strategy(Protocol):
    """A rule that splits one topic's queues among the members of a group.

    Each member runs the rule for itself, so it must be a pure function of its arguments: members
    that compute different owners consume a queue twice, or not at all. Both
    methods want `queues` and `members` in Java's order; `allocate` of this module sorts for you.
    """

    @property
    def name(self) -> str:
        """The name Java's `getName()` gives, as options, logs and the command line use it."""
        ...

    def allocate(
        self, group: str, member: str, queues: Sequence[MessageQueue], members: Sequence[str]
    ) -> list[MessageQueue]:
        """Return the queues `member` shall consume.

        Raises `AllocationInputInvalid` where Java's strategy throws.
        """
        ...

    def allocate_all(
        self, queues: Sequence[MessageQueue], members: Sequence[str], group: str = ""
    ) -> list[str | None]:
        """Return the owner of every queue, position by position; None for a queue without an owner.

        Equals asking `allocate` for every member. A queue claimed by several members, which only
        CONFIG and rules of your own can bring about, is shown with the first of them.
        """
        ...


class GroupStrategy(Strategy, Protocol):
    """A rule that splits the queues of all topics, given who owned them up to now.

    Its members must agree on more than the sorted lists: their knowledge of `previous` differs
    while queues are on their way, and the answer must be the same all the same. What it has of
    `Strategy` splits one topic as if nobody had owned any queue of it.
    """

    def assign(
        self,
        topics: Mapping[str, Collection[MessageQueue]],
        members: Collection[str],
        previous: Mapping[MessageQueue, str | None],
        foreign: Collection[str] = (),
        absent: Collection[MessageQueue] = (),
        *,
        group: str = "",
    ) -> dict[MessageQueue, str]:
        """Return the owner of every queue that has one.

        `previous` holds the owners up to now, as far as known. `foreign` are members beside
        `members` that use a Java strategy; their shares are in the result. `absent` are queues of a
        broker that is away and may soon be back: they count, but are not in the result.
        """
        ...

    def minimum_moves(
        self,
        topics: Mapping[str, Collection[MessageQueue]],
        members: Collection[str],
        previous: Mapping[MessageQueue, str | None],
        foreign: Collection[str] = (),
        absent: Collection[MessageQueue] = (),
        *,
        group: str = "",
    ) -> int:
        """Return the number of queues that must get another owner, as few as balance allows."""
        ...


def is_group_strategy(strategy: Strategy) -> TypeGuard[GroupStrategy]:
    """Return whether a strategy works over all topics.

    `isinstance` with a protocol looks up every method: it would take longer than Average does.
    """
    return hasattr(strategy, "assign")


class MemberUnknown(msgspec.Struct, frozen=True):
    """A member without a share: the group does not list it.

    Happens briefly after a start, before the broker has seen the first heartbeat. The share is
    empty, as in Java, where this is only logged.
    """

    group: str
    member: str
    members: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"group {self.group}: member {self.member} is not among the {len(self.members)} "
            "members the broker lists, so it gets no queues"
        )


def allocate(
    strategy: Strategy,
    group: str,
    member: str,
    queues: Collection[MessageQueue],
    members: Collection[str],
    *,
    warn: Callable[[MemberUnknown], None] | None = None,
) -> list[MessageQueue]:
    """Sort queues and members as Java does, then ask the strategy for one member's share.

    Equal queues count once, equal member ids as often as they come: Java keeps the queues of a
    topic in a set, but the broker's member list in a list. `warn` is called when the share is
    empty because the member is not listed. Raises `AllocationInputInvalid` where Java throws, which
    for a consumer means: keep what it owns.
    """
    share = strategy.allocate(group, member, sort_queues(set(queues)), java_sorted(tuple(members)))
    if warn is not None and not share and member not in members:
        warn(MemberUnknown(group, member, tuple(members)))
    return share


def may_own(member: str, queues: Sequence[MessageQueue], members: Sequence[str]) -> bool:
    """Apply the guards of Java's strategies: raise for empty input; return whether it is listed."""
    if not member:
        raise AllocationInputInvalid("the member id must not be empty")
    check_input(queues, members)
    return member in members


def check_input(queues: Sequence[MessageQueue], members: Sequence[str]) -> None:
    """Raise unless there are both queues and members."""
    if not queues:
        raise AllocationInputInvalid("there are no queues")
    if not members:
        raise AllocationInputInvalid("there are no members")


def seats(members: Sequence[str]) -> list[str | None]:
    """Return who sits at each position of the member list.

    Java finds a member by the first position of its id. The later positions of a repeated id, and
    the queues dealt to them, therefore have no owner; nor has that of an empty id, which cannot
    ask.
    """
    if len(set(members)) == len(members) and "" not in members:
        return list(members)
    taken = {""}
    result: list[str | None] = []
    for member in members:
        result.append(None if member in taken else member)
        taken.add(member)
    return result


def first_claims(
    strategy: Strategy, group: str, queues: Sequence[MessageQueue], members: Sequence[str]
) -> list[str | None]:
    """Find all owners by asking member after member, for rules without a faster way."""
    owner_of: dict[MessageQueue, str] = {}
    for member in dict.fromkeys(members):
        if member:
            for queue in strategy.allocate(group, member, queues, members):
                owner_of.setdefault(queue, member)
    return [owner_of.get(queue) for queue in queues]


class Configured(msgspec.Struct, frozen=True):
    """Always the queues this member was configured with, whatever the group looks like.

    As in Java nothing is checked: the member need not be listed, the queues need not exist, and
    that no two members get the same queue is up to the configuration.
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
        """Return the configured queues."""
        return list(self.queues)

    def allocate_all(
        self, queues: Sequence[MessageQueue], members: Sequence[str], group: str = ""
    ) -> list[str | None]:
        """Return the first member as the owner of the configured queues."""
        return first_claims(self, group, queues, members)


class OwnRule(msgspec.Struct, frozen=True):
    """A function of your own under a name of your own.

    It is called with sorted queues and members, and only for members that are listed; the guards
    of the built-in strategies apply before. It must assign each queue to one member, with the
    same result in every process of the group.
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
