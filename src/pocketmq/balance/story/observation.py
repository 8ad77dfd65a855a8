"""A group as it was seen at one time, and why two snapshots differ.

As small as the history needs it. What is not known stays unknown: a queue that no member reports is
unowned only if every member and every broker has answered.
"""

from collections import Counter
from collections.abc import Iterator

import msgspec

from pocketmq.model import MessageQueue

KnownOwners = tuple[str, ...] | None
"""The owners of a queue: `()` if it has none, None if they are unknown."""
SILENT = "member silent"
LEFT = "member left"
STRATEGY = "strategy"
UNKNOWN = "unknown"
ANSWERS = "member answers again"


class GroupObservation(msgspec.Struct, frozen=True, kw_only=True):
    """A group as it was seen at one time, in seconds."""

    at: float
    members: frozenset[str]
    untold: dict[str, str]
    """Members whose queues are unknown, with the reason."""
    brokers: frozenset[str]
    """Brokers that list members, or have queues."""
    unseen: frozenset[str]
    """Brokers that did not answer."""
    owners: dict[MessageQueue, KnownOwners]
    lags: dict[MessageQueue, int]
    """The lag of each queue for which it is known."""
    strategies: dict[str, str]
    """The strategy that each member reports; most do not."""
    fits: str | None = None
    """The strategy that produces exactly this assignment."""
    shared: bool = True
    """Whether queues have owners; members that broadcast or pop may all read every queue."""


class Cause(msgspec.Struct, frozen=True):
    """Why members rebalanced; `text` is a sentence for the operator."""

    kind: str
    subject: str
    text: str


UNEXPLAINED = Cause(
    UNKNOWN, "", "unknown: the members, brokers and queues seen are the same as before"
)


def causes(before: GroupObservation, now: GroupObservation) -> list[Cause]:
    """Return what changed between two observations and made members rebalance."""
    return [*_members(before, now), *_brokers(before, now), *_queues(before, now)]


def weak_causes(before: GroupObservation, now: GroupObservation) -> list[Cause]:
    """Return what explains a change only where nothing better does."""
    found = [
        Cause(ANSWERS, member, f"{member} responds again")
        for member in sorted(before.untold.keys() - now.untold.keys())
        if member in now.members
    ]
    taken = [queue for queue, owners in now.owners.items() if owners != before.owners.get(queue)]
    if taken and all(before.owners.get(queue) == () and now.owners[queue] for queue in taken):
        found.append(Cause("queues taken up", "", "queues without an owner were assigned"))
    changed = {
        member
        for member, strategy in now.strategies.items()
        if before.strategies.get(member, strategy) != strategy
    }
    reported = Counter(now.strategies.values())
    if changed:
        names = ", ".join(f"{member}: {now.strategies[member]}" for member in sorted(changed))
        found.append(Cause(STRATEGY, names, f"members changed their strategy ({names})"))
    elif len(reported) > 1:
        names = ", ".join(f"{count} × {name}" for name, count in sorted(reported.items()))
        found.append(Cause(STRATEGY, names, f"members use different strategies ({names})"))
    return found


def strategy_cause(before: str, now: str) -> Cause:
    """Return the cause: the assignment is another strategy's now."""
    return Cause(STRATEGY, now, f"the strategy changed from {before} to {now}")


def _members(before: GroupObservation, now: GroupObservation) -> Iterator[Cause]:
    for member in sorted(now.members - before.members):
        yield Cause("member joined", member, f"{member} joined")
    for member in sorted(before.members - now.members):
        after = " after it had stopped responding" if member in before.untold else ""
        yield Cause(LEFT, member, f"{member} left{after}")
    for member in sorted(now.untold.keys() - before.untold.keys()):
        if member in before.members:
            reason = now.untold[member].removeprefix(f"{member}: ")
            yield Cause(SILENT, member, f"{member} stopped reporting its queues: {reason}")


def _brokers(before: GroupObservation, now: GroupObservation) -> Iterator[Cause]:
    for broker in sorted(now.unseen - before.unseen):
        yield Cause("broker silent", broker, f"{broker} stopped responding")
    for broker in sorted(before.brokers - now.brokers - now.unseen):
        count = sum(queue.broker_name == broker for queue in before.owners)
        yield Cause("broker gone", broker, f"{broker} is gone{_with(count)}")
    for broker in sorted(now.brokers - before.brokers):
        count = sum(queue.broker_name == broker for queue in now.owners)
        state = "back" if broker in before.unseen else "available"
        yield Cause("broker came", broker, f"{broker} is {state}{_with(count)}")


def _queues(before: GroupObservation, now: GroupObservation) -> Iterator[Cause]:
    """Yield topics that came or went, and queues whose topic and broker stayed."""
    old_topics = {queue.topic for queue in before.owners}
    new_topics = {queue.topic for queue in now.owners}
    for topic in sorted(new_topics - old_topics):
        yield Cause("topic came", topic, f"{topic} was subscribed")
    for topic in sorted(old_topics - new_topics):
        # A topic all of whose brokers are gone is explained by its brokers.
        if any(
            queue.topic == topic and queue.broker_name in now.brokers for queue in before.owners
        ):
            yield Cause("topic gone", topic, f"{topic} was unsubscribed or deleted")
    came = Counter(
        (queue.topic, queue.broker_name)
        for queue in now.owners.keys() - before.owners.keys()
        if queue.broker_name in before.brokers and queue.topic in old_topics
    )
    went = Counter(
        (queue.topic, queue.broker_name)
        for queue in before.owners.keys() - now.owners.keys()
        if queue.broker_name in now.brokers and queue.topic in new_topics
    )
    for (topic, broker), count in sorted(came.items()):
        text = f"{topic} has {_queue_count(count)} more on {broker}"
        yield Cause("queues added", f"{topic}:{broker}", text)
    for (topic, broker), count in sorted(went.items()):
        text = f"{topic} has {_queue_count(count)} less on {broker}"
        yield Cause("queues removed", f"{topic}:{broker}", text)


def _with(count: int) -> str:
    return f", with {_queue_count(count)}" if count else ""


def _queue_count(count: int) -> str:
    return f"{count} queue" if count == 1 else f"{count} queues"
