"""The problems of a group, each with evidence and cure. Pure, over facts.

Only known facts are judged: while a member or broker is silent, a queue that no other member
reports is of unknown ownership, not unowned.
"""

from collections import Counter
from collections.abc import Iterator

import msgspec

from pocketmq.admin.facts import ON_THEIR_WAY, GroupFacts, is_orderly, is_push
from pocketmq.model import BalanceMode, MessageModel, MessageQueue, QueueStage, sort_queues
from pocketmq.model.names import is_retry_topic

STALE_PULL_MS = 120_000
"""A queue not pulled for this long counts as abandoned, as in the member itself."""
STUCK_MS = 60_000
"""Messages waiting for this long mean that a handler is stuck."""


class GroupFinding(msgspec.Struct, frozen=True):
    """A problem: its kind, the subject, the evidence, the cure."""

    kind: str
    subject: str
    evidence: str
    cure: str


def findings(facts: GroupFacts) -> list[GroupFinding]:
    """Return all problems found."""
    checks = (
        _absent, _split_views, _same_ids, _subscriptions, _silent, _ownership, _two_ways, _stalled,
        _not_handing_over, _fenced,
    )  # fmt: skip
    return [finding for check in checks for finding in check(facts)]


def _absent(facts: GroupFacts) -> Iterator[GroupFinding]:
    for broker, reason in sorted(facts.unseen_brokers.items()):
        yield GroupFinding(
            "broker silent", broker, reason,
            "its part of the group is missing here; restart it, or try again",
        )  # fmt: skip
    if facts.views and not facts.members():
        yield GroupFinding(
            "no members", facts.group, "no broker lists a member",
            "start a consumer of this group; its messages wait",
        )  # fmt: skip


def _split_views(facts: GroupFacts) -> Iterator[GroupFinding]:
    seen = {
        broker: {each.client_id for each in view.connection_set if each.client_id}
        for broker, view in facts.views.items()
    }
    everyone = set(facts.members())
    for broker, members in sorted(seen.items()):
        absent = sorted(everyone - members)
        if absent:
            yield GroupFinding(
                "split view",
                broker,
                f"it does not list {', '.join(absent)}, other brokers do",
                "members that ask this broker compute another assignment: wait 30 s for the next "
                "heartbeat; if it persists, those members cannot reach the broker",
            )


def _same_ids(facts: GroupFacts) -> Iterator[GroupFinding]:
    reported = set()
    for view in facts.views.values():
        counts = Counter(each.client_id for each in view.connection_set if each.client_id)
        for member, count in counts.items():
            if count > 1 and member not in reported:
                reported.add(member)
                addresses = sorted(
                    each.client_addr or "?"
                    for each in view.connection_set
                    if each.client_id == member
                )
                yield GroupFinding(
                    "same client id",
                    member,
                    f"{count} connections use it: {', '.join(addresses)}",
                    "each consumes the other's queues, too: give every process its own instance "
                    "name",
                )


def _subscriptions(facts: GroupFacts) -> Iterator[GroupFinding]:
    by_subscription: dict[frozenset[tuple[str, str]], list[str]] = {}
    for member, info in sorted(facts.running.items()):
        wanted = frozenset(
            (each.topic, each.sub_string)
            for each in info.subscription_set
            if not is_retry_topic(each.topic)
        )
        by_subscription.setdefault(wanted, []).append(member)
    if len(by_subscription) < 2:
        return
    parts = [
        f"{', '.join(members)}: {', '.join(sorted(f'{t} ({e})' for t, e in wanted)) or 'nothing'}"
        for wanted, members in by_subscription.items()
    ]
    yield GroupFinding(
        "different subscriptions",
        facts.group,
        "; ".join(parts),
        "brokers apply the last one received to the whole group, so messages are lost: make all "
        "members subscribe to the same, or use another group",
    )


def _silent(facts: GroupFacts) -> Iterator[GroupFinding]:
    for member, reason in sorted(facts.silent.items()):
        yield GroupFinding(
            "member silent", member, reason,
            "it stays a member until its connection closes or 120 s pass without a heartbeat, and "
            "its queues are not consumed: restart it, or kill its process",
        )  # fmt: skip


def _ownership(facts: GroupFacts) -> Iterator[GroupFinding]:
    if facts.model() is MessageModel.BROADCASTING:
        return
    holders = facts.holders()
    known = not facts.silent and not facts.unseen_brokers
    popping = facts.popping()
    for queues in facts.queues.values():
        unowned = [queue for queue in queues if queue not in holders and not popping]
        taking = [queue for queue in unowned if _takers(facts, queue)]
        if taking and known:
            yield _being_taken(facts, taking)
            unowned = [queue for queue in unowned if not _takers(facts, queue)]
        if unowned and facts.members():
            yield _unowned(unowned, known=known)
        for queue in queues:
            if len(holders.get(queue, ())) > 1:
                yield GroupFinding(
                    "owned twice", _name(queue), f"owned by {' and '.join(holders[queue])}",
                    "messages are delivered twice until the next rebalance, at most 20 s; if it "
                    "persists, members use different strategies or member lists",
                )  # fmt: skip
    busy = {member for members in holders.values() for member in members}
    idle = [member for member in sorted(facts.running) if member not in {*busy, *popping}]
    if idle and known:
        count = sum(len(queues) for queues in facts.queues.values())
        yield GroupFinding(
            "idle members", ", ".join(idle),
            f"they own none of the {count} queues of {len(facts.members())} members",
            "a queue has at most one owner: add queues, or remove members",
        )  # fmt: skip


def _two_ways(facts: GroupFacts) -> Iterator[GroupFinding]:
    popping, owners = facts.popping(), facts.holders().values()
    pulling = sorted({member for members in owners for member in members})
    if popping and pulling:
        yield GroupFinding(
            "popped and pulled", facts.group,
            f"{_some(popping)} pop as gRPC clients, {_some(pulling)} own queues",
            "each kind receives all messages, so they are handled twice: use a group for each kind",
        )  # fmt: skip


def _takers(facts: GroupFacts, queue: MessageQueue) -> list[str]:
    """Return the members that are on their way to own a queue."""
    return [m for m, report in facts.reports.items() if report.stages.get(queue) in ON_THEIR_WAY]


def _being_taken(facts: GroupFacts, queues: list[MessageQueue]) -> GroupFinding:
    takers = sorted({member for queue in queues for member in _takers(facts, queue)})
    are = "is" if len(takers) == 1 else "are"
    return GroupFinding(
        "unowned queues", _names(queues), f"{_some(takers)} {are} to own them",
        "a hand-over takes milliseconds, up to 65 s after a member that hangs; if it persists, "
        "check the log of the member that takes them",
    )  # fmt: skip


def _unowned(queues: list[MessageQueue], *, known: bool) -> GroupFinding:
    names = _names(queues)
    if not known:
        return GroupFinding(
            "ownership unknown", names, "no member that responded owns them",
            "repair the silent members and brokers first",
        )  # fmt: skip
    return GroupFinding(
        "unowned queues", names, "every member responded, and none owns them",
        "their messages wait: run rebalance; if that does not help, members use different "
        "strategies, or one that omits queues (CONFIG, MACHINE_ROOM)",
    )  # fmt: skip


def _stalled(facts: GroupFacts) -> Iterator[GroupFinding]:
    for member, info in sorted(facts.running.items()):
        if not is_push(info):
            continue
        for queue, held in sorted(info.mq_table.items(), key=lambda pair: str(pair[0])):
            if held.dropped:
                continue
            where = f"{member} {_name(queue)}"
            pulled = facts.now_ms - held.last_pull_timestamp
            consumed = facts.now_ms - held.last_consume_timestamp
            if held.last_pull_timestamp and pulled > STALE_PULL_MS:
                yield GroupFinding(
                    "not pulled", where, f"last pulled {pulled // 1000} s ago",
                    "its client is stuck or flow-controlled; check its threads "
                    "(consumerStatus -s) and its log",
                )  # fmt: skip
            if is_orderly(info) and not held.locked:
                yield GroupFinding(
                    "not locked", where, "an orderly member does not hold the broker's lock",
                    "another member may still have it, for at most 60 s; if it persists, check the "
                    "owner of the queue",
                )  # fmt: skip
            elif held.cached_msg_count > 0 and consumed > STUCK_MS:
                yield GroupFinding(
                    "handler stuck", where,
                    f"{held.cached_msg_count} messages wait, the last was handled "
                    f"{consumed // 1000} s ago",
                    "a handler is stuck: check the member's threads (consumerStatus -s)",
                )  # fmt: skip


def _not_handing_over(facts: GroupFacts) -> Iterator[GroupFinding]:
    for member, report in sorted(facts.reports.items()):
        if report.reason and report.mode is BalanceMode.JAVA:
            yield GroupFinding(
                "no hand-over", member, report.reason,
                "it shares queues as Java does until that is repaired and it is restarted",
            )  # fmt: skip
        if report.unclear:
            yield GroupFinding(
                "unclear report", member, "its report of hand-overs cannot be read",
                "the stages of its queues are unknown; it may run another version",
            )  # fmt: skip


def _fenced(facts: GroupFacts) -> Iterator[GroupFinding]:
    for member, report in sorted(facts.reports.items()):
        fenced = [queue for queue, stage in report.stages.items() if stage is QueueStage.FENCED]
        if fenced:
            yield GroupFinding(
                "fenced queues", f"{member} {_names(sort_queues(fenced))}",
                "its lease may have expired, so it starts no handler and commits nothing",
                "it resumes when the broker renews its locks, or drops the queues when they are "
                "refused; if it persists, check its connection to the broker",
            )  # fmt: skip


def _names(queues: list[MessageQueue]) -> str:
    return _some([_name(queue) for queue in queues])


def _some(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" * (len(names) > 8))


def _name(queue: MessageQueue) -> str:
    return f"{queue.topic}:{queue.broker_name}:{queue.queue_id}"
