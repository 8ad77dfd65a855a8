"""A consumer group of the demo: its members, who owns what, and whether it has settled."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from pocketmq.cli.demo.cast import ConsumerProcess, owned
from pocketmq.cli.demo.repeats import DemoDelivery


class DemoGroup:
    """The group that uses one strategy."""

    def __init__(self, strategy: str, address: str) -> None:
        self.strategy = strategy
        self.name = f"billing-{strategy.lower()}"
        self.members: list[ConsumerProcess] = []
        self._address = address

    def join(self) -> None:
        """Add a member."""
        name = f"c{len(self.members) + 1}"
        self.members.append(ConsumerProcess(name, self._address, self.name, self.strategy))

    @property
    def there(self) -> list[ConsumerProcess]:
        """The members that run and were not asked to leave."""
        return [member for member in self.members if member.there]

    @property
    def consumed(self) -> int:
        """The number of deliveries so far."""
        return sum(len(member.got) for member in self.members)

    def deliveries(self) -> list[DemoDelivery]:
        """Return what all members got."""
        return [delivery for member in self.members for delivery in member.got]

    def missing(self, acknowledged: Iterable[int]) -> set[int]:
        """Return the acknowledged messages that are not consumed yet."""
        return set(acknowledged).difference(*(member.numbers for member in self.members))

    def owners(self) -> dict[str, str]:
        """Return the owner of each queue."""
        return {queue: member.name for member in self.members for queue in member.holds}

    def settled(self, queues: Collection[str]) -> bool:
        """Return whether the available queues each have one owner, and the shares are even."""
        return settled([member.stages for member in self.there], queues)

    def shares(self) -> str:
        """Return how many queues each member has, as text."""
        return ", ".join(f"{member.name} {len(member.holds)}" for member in self.there)


def settled(members: Sequence[Mapping[str, str]], queues: Collection[str]) -> bool:
    """Return whether each queue has one owner, and the members' shares are even.

    `members` are the stages of each member's queues. A queue that is not available (its broker is
    down) has no owner any more, or one that keeps it fenced; such queues count as shares.
    """
    shares = [owned(stages) for stages in members]
    owners = Counter(queue for share in shares for queue in share)
    sizes = [len(share) for share in shares]
    return (
        owners.keys() >= set(queues)
        and set(owners.values()) == {1}
        and max(sizes) - min(sizes) <= 1
        and all(
            stage == ("running" if queue in queues else "fenced")
            for stages in members
            for queue, stage in stages.items()
        )
    )
