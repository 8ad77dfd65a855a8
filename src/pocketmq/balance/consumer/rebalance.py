"""The rebalance decision for one topic: which queues to take, revoke and keep, and why.

Every member of a group decides alone from the same view (the topic's queues, the group's members)
with the same strategy; that they agree is what balances the load. Where a broker makes the
assignment (QUERY_ASSIGNMENT, 5.x), `decide_assigned` takes its answer in place of a strategy's.
Nothing here asks a broker. In which order queues are revoked and taken is decided in `round`, how a
revoked one is released in `release`.
"""

from collections.abc import Sequence
from enum import Enum

import msgspec

from pocketmq.balance.consumer import instructions as do
from pocketmq.balance.consumer.facts import (
    GroupMember,
    OwnedQueue,
    QueueChange,
    RebalanceFacts,
    follow_change,
)
from pocketmq.model import ConsumeType, MessageModel, MessageQueue, MessageRequestMode, sort_queues
from pocketmq.model.java_strings import java_sorted
from pocketmq.model.names import RETRY_PREFIX, is_retry_topic


class KeepReason(Enum):
    """Why a rebalance leaves everything as it is."""

    NO_ROUTE = "no name server has a route for the topic"
    NO_MEMBERS = "no broker returned the group's members"
    STRATEGY_FAILED = "the allocation strategy raised an error"
    NO_ASSIGNMENT = "the broker returned no valid assignment"


class MemberWarning(Enum):
    """An inconsistency of the member list that an operator should fix."""

    NOT_A_MEMBER = "the brokers do not list this member, so it gets no queues"
    DUPLICATE_MEMBER = "a client id is listed twice; some queues may stay without an owner"


class RebalanceDecision(msgspec.Struct, frozen=True, kw_only=True):
    """What to do about one topic.

    Unless `keep_reason` is set, the owned queues of the topic are `kept` and `revoked`, and the
    target is `kept` and `assigned`. A queue that was not pulled for too long is revoked and
    assigned in one. `balanced` says whether target and working queues agreed beforehand; the
    round's own answer comes at its end.
    """

    topic: str
    instructions: tuple[do.Instruction, ...] = ()
    target: tuple[MessageQueue, ...] = ()
    assigned: tuple[MessageQueue, ...] = ()
    revoked: tuple[do.RevokeQueue, ...] = ()
    kept: tuple[MessageQueue, ...] = ()
    lingering: tuple[MessageQueue, ...] = ()
    """Kept queues that are dropped: no messages come until they expire and are taken again."""
    assigned_pop: tuple[MessageQueue, ...] = ()
    all_queues: tuple[MessageQueue, ...] | None = None
    balanced: bool = True
    keep_reason: KeepReason | None = None
    error: str | None = None
    warnings: tuple[MemberWarning, ...] = ()


def decide(facts: RebalanceFacts) -> RebalanceDecision:
    """Decide a topic from its route, the group's members and the member's strategy."""
    member = facts.member
    clustering = member.model is MessageModel.CLUSTERING
    if facts.route is None:
        return _without_route(facts)
    if not clustering:
        target = tuple(sort_queues(list(dict.fromkeys(facts.route))))
        return towards(facts, target, target)
    if facts.members is None:
        return keep(facts, KeepReason.NO_MEMBERS, balanced=True)
    # Brokers list members in any order, and routes queues: without one order for all, two members
    # would compute different shares from the same facts. It is Java's, for mixed groups.
    queues = sort_queues(list(dict.fromkeys(facts.route)))
    members = java_sorted(facts.members)
    try:
        share = member.strategy.allocate(member.group, member.client_id, queues, members)
    except Exception as error:  # noqa: BLE001 - a strategy may be the application's own
        failure = f"{type(error).__name__}: {error}"
        return keep(facts, KeepReason.STRATEGY_FAILED, balanced=False, error=failure)
    target = tuple(dict.fromkeys(share or ()))
    return towards(facts, target, tuple(queues), _warnings(member, members))


def towards(
    facts: RebalanceFacts,
    target: tuple[MessageQueue, ...],
    all_queues: tuple[MessageQueue, ...] | None,
    warnings: tuple[MemberWarning, ...] = (),
) -> RebalanceDecision:
    """Decide how to get from the owned queues to the target."""
    member = facts.member
    revoked, kept = split_owned(facts, frozenset(target), MessageRequestMode.PULL)
    staying = {owned.queue for owned in facts.owned if owned.mode is MessageRequestMode.PULL} - {
        revocation.queue for revocation in revoked
    }
    assigned = tuple(queue for queue in target if queue not in staying)
    take = do.LockQueue if member.locks else do.AcquireQueue
    return RebalanceDecision(
        topic=facts.topic,
        instructions=(*revoked, *(take(queue) for queue in assigned)),
        target=target,
        assigned=assigned,
        revoked=revoked,
        kept=tuple(owned.queue for owned in kept),
        lingering=tuple(owned.queue for owned in kept if owned.dropped),
        all_queues=all_queues,
        balanced=frozenset(target) == working_queues(facts),
        warnings=warnings,
    )


def split_owned(
    facts: RebalanceFacts, target: frozenset[MessageQueue], mode: MessageRequestMode
) -> tuple[tuple[do.RevokeQueue, ...], tuple[OwnedQueue, ...]]:
    """Split the topic's owned queues into those to revoke and those to keep.

    A push consumer that has not pulled a queue for too long has lost its pull request; it drops the
    queue and takes it again.
    """
    member = facts.member
    passive = member.consume_type is ConsumeType.CONSUME_PASSIVELY
    revoked: list[do.RevokeQueue] = []
    kept: list[OwnedQueue] = []
    for owned in facts.owned:
        if owned.queue.topic != facts.topic or owned.mode is not mode:
            continue
        if owned.queue not in target:
            revoked.append(do.RevokeQueue(owned.queue, do.RevokeReason.NOT_MINE, mode))
        elif passive and facts.now - owned.last_pull > member.profile.pull_max_idle:
            revoked.append(do.RevokeQueue(owned.queue, do.RevokeReason.PULL_EXPIRED, mode))
        else:
            kept.append(owned)
    return tuple(revoked), tuple(kept)


def working_queues(facts: RebalanceFacts) -> frozenset[MessageQueue]:
    """Return the topic's owned queues that are not dropped, pulled or popped."""
    return frozenset(
        owned.queue
        for owned in facts.owned
        if owned.queue.topic == facts.topic and not owned.dropped
    )


def keep(
    facts: RebalanceFacts, reason: KeepReason, *, balanced: bool, error: str | None = None
) -> RebalanceDecision:
    """Decide to leave the topic as it is."""
    mine = [owned for owned in facts.owned if owned.queue.topic == facts.topic]
    return RebalanceDecision(
        topic=facts.topic,
        kept=tuple(owned.queue for owned in mine),
        lingering=tuple(owned.queue for owned in mine if owned.dropped),
        balanced=balanced,
        keep_reason=reason,
        error=error,
    )


def unsubscribed(
    owned: Sequence[OwnedQueue], subscribed: frozenset[str] | set[str]
) -> tuple[do.RevokeQueue, ...]:
    """Return the owned queues whose topic is not subscribed any more.

    After all topics are rebalanced these are removed and dropped at once; their offsets are not
    persisted and their locks run out by themselves, as in Java.
    """
    return tuple(
        do.RevokeQueue(item.queue, do.RevokeReason.UNSUBSCRIBED, item.mode)
        for item in owned
        if item.queue.topic not in subscribed
    )


def _without_route(facts: RebalanceFacts) -> RebalanceDecision:
    decision = keep(facts, KeepReason.NO_ROUTE, balanced=True)
    member = facts.member
    broadcasting = member.model is MessageModel.BROADCASTING
    if not member.profile.missing_route_notifies:
        return decision
    if is_retry_topic(facts.topic) and not broadcasting:
        return decision  # a group's retry topic appears with its first heartbeat: nothing is wrong
    owned_count = sum(owned.mode is MessageRequestMode.PULL for owned in facts.owned)
    change = QueueChange(facts.topic, (), (), owned_count, facts.now)
    steps = follow_change(member.profile, member.consume_type, member.limits, change)
    return msgspec.structs.replace(decision, instructions=steps)


def _warnings(member: GroupMember, members: list[str]) -> tuple[MemberWarning, ...]:
    found: list[MemberWarning] = []
    if member.client_id not in members:
        found.append(MemberWarning.NOT_A_MEMBER)
    if len(set(members)) < len(members):
        found.append(MemberWarning.DUPLICATE_MEMBER)
    return tuple(found)


class BrokerAssignedQueue(msgspec.Struct, frozen=True):
    """One queue of a broker's answer; brokers also send entries without a queue."""

    queue: MessageQueue | None
    mode: MessageRequestMode = MessageRequestMode.PULL


def decide_assigned(
    facts: RebalanceFacts, answer: tuple[BrokerAssignedQueue, ...] | None
) -> RebalanceDecision:
    """Decide a topic from the broker's answer; `None` = it failed or was null, so keep all."""
    if answer is None:
        return keep(facts, KeepReason.NO_ASSIGNMENT, balanced=False)
    pulled = _queues(answer, MessageRequestMode.PULL)
    popped = _queues(answer, MessageRequestMode.POP)
    pull = towards(facts, pulled, None)
    revoked_pop, kept_pop = split_owned(facts, frozenset(popped), MessageRequestMode.POP)
    staying_pop = {owned.queue for owned in facts.owned if owned.mode is MessageRequestMode.POP}
    staying_pop -= {revocation.queue for revocation in revoked_pop}
    assigned_pop = tuple(queue for queue in popped if queue not in staying_pop)
    acquire = pull.instructions[len(pull.revoked) :]
    target = tuple(dict.fromkeys((*pulled, *popped)))
    return msgspec.structs.replace(
        pull,
        instructions=(
            *_mode_change(facts, pulled, popped),
            *pull.revoked,
            *revoked_pop,
            *acquire,
            *(do.AcquirePopQueue(queue) for queue in assigned_pop),
        ),
        target=target,
        revoked=(*pull.revoked, *revoked_pop),
        kept=(*pull.kept, *(owned.queue for owned in kept_pop)),
        lingering=(*pull.lingering, *(owned.queue for owned in kept_pop if owned.dropped)),
        assigned_pop=assigned_pop,
        balanced=frozenset(target) == working_queues(facts),
    )


def pop_retry_topic(topic: str, group: str) -> str:
    """Return the topic that brings a group's failed popped messages back (first version)."""
    return f"{RETRY_PREFIX}{group}_{topic}"


def _queues(
    answer: tuple[BrokerAssignedQueue, ...], mode: MessageRequestMode
) -> tuple[MessageQueue, ...]:
    found = {item.queue for item in answer if item.queue is not None and item.mode is mode}
    return tuple(sort_queues(found))


def _mode_change(
    facts: RebalanceFacts, pulled: tuple[MessageQueue, ...], popped: tuple[MessageQueue, ...]
) -> tuple[do.Instruction, ...]:
    if is_retry_topic(facts.topic) or bool(pulled) == bool(popped):
        return ()
    retry = pop_retry_topic(facts.topic, facts.member.group)
    return (do.SubscribePopRetry(retry) if pulled else do.UnsubscribePopRetry(retry),)
