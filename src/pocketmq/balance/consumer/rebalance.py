"""The rebalance decision for one topic: which queues to take, give up and keep, and why.

Every member of a group decides alone from the same view (the topic's queues, the group's members)
with the same strategy; that they agree is what balances the load. Nothing here asks a broker.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Protocol

import msgspec

from pocketmq.balance.consumer.change import QueueChange, follow_change
from pocketmq.balance.consumer.instructions import (
    AcquireQueue,
    Instruction,
    LockQueue,
    RevokeQueue,
    RevokeReason,
)
from pocketmq.balance.consumer.limits import PullLimits
from pocketmq.balance.consumer.start_offset import StartRule
from pocketmq.balance.profile import Profile
from pocketmq.model.java_strings import java_sorted
from pocketmq.model.kinds import ConsumeType, MessageModel, MessageRequestMode
from pocketmq.model.names import is_retry_topic
from pocketmq.model.queue import MessageQueue, sort_queues


class Allocator(Protocol):
    """How queues are shared among members. Raising keeps what is held, an empty answer drops it."""

    def allocate(
        self,
        group: str,
        member: str,
        queues: Sequence[MessageQueue],
        members: Sequence[str],
        /,
    ) -> Sequence[MessageQueue] | None:
        """Give the member's share of the sorted queues among the sorted members."""
        ...


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """One consumer of a group: what stays the same from one rebalance to the next."""

    profile: Profile
    group: str
    client_id: str
    strategy: Allocator
    model: MessageModel = MessageModel.CLUSTERING
    consume_type: ConsumeType = ConsumeType.CONSUME_PASSIVELY
    orderly: bool = False
    limits: PullLimits = PullLimits()
    start: StartRule = StartRule()
    client_rebalance: bool = True
    """False lets brokers make the assignment where the line and the consumer's kind allow it."""

    @property
    def locks(self) -> bool:
        """Whether a queue must be locked at its broker before it is taken."""
        return self.orderly and (
            self.model is MessageModel.CLUSTERING or self.profile.broadcasting_locks
        )

    @property
    def asks_broker(self) -> bool:
        """Whether the assignment comes from QUERY_ASSIGNMENT."""
        return (
            self.profile.server_assignment
            and self.consume_type is ConsumeType.CONSUME_PASSIVELY
            and not (self.client_rebalance or self.orderly)
            and self.model is MessageModel.CLUSTERING
        )


class OwnedQueue(msgspec.Struct, frozen=True):
    """A queue in this member's table, and what its process queue says."""

    queue: MessageQueue
    last_pull: float
    dropped: bool = False
    cached: bool = False
    last_lock: float = 0.0
    mode: MessageRequestMode = MessageRequestMode.PULL


class RebalanceFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a member knows when it rebalances a topic.

    `owned` is its whole table, of all topics. `route` and `members` are `None` when nobody could
    tell them; a broadcasting member does not need `members`.
    """

    member: Member
    topic: str
    route: tuple[MessageQueue, ...] | None
    members: tuple[str, ...] | None
    owned: tuple[OwnedQueue, ...]
    now: float


class KeepReason(Enum):
    """Why a rebalance leaves everything as it is."""

    NO_ROUTE = "no name server knows the topic's queues"
    NO_MEMBERS = "no broker told the group's members"
    STRATEGY_FAILED = "the allocation strategy raised an error"
    NO_ASSIGNMENT = "the broker gave no valid assignment"


class MemberWarning(Enum):
    """Something odd about the members that an operator should know."""

    NOT_A_MEMBER = "the brokers do not list this member, so it gets nothing"
    DUPLICATE_MEMBER = "a client id is listed twice; a share of the queues may stay without owner"


class RebalanceDecision(msgspec.Struct, frozen=True, kw_only=True):
    """What to do about one topic.

    Unless `keep_reason` is set, the held queues of the topic are `kept` and `revoked`, and the
    target is `kept` and `assigned`. A queue that was not pulled for too long is revoked and
    assigned in one. `balanced` says whether target and working queues agreed beforehand; the
    round's own answer comes at its end.
    """

    topic: str
    instructions: tuple[Instruction, ...] = ()
    target: tuple[MessageQueue, ...] = ()
    assigned: tuple[MessageQueue, ...] = ()
    revoked: tuple[RevokeQueue, ...] = ()
    kept: tuple[MessageQueue, ...] = ()
    lingering: tuple[MessageQueue, ...] = ()
    """Kept queues that are dropped: no messages come until they expire and are taken anew."""
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
    """Decide how to come from the held queues to the target."""
    member = facts.member
    revoked, kept = split_held(facts, frozenset(target), MessageRequestMode.PULL)
    held = {owned.queue for owned in facts.owned if owned.mode is MessageRequestMode.PULL} - {
        revocation.queue for revocation in revoked
    }
    assigned = tuple(queue for queue in target if queue not in held)
    take = LockQueue if member.locks else AcquireQueue
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


def split_held(
    facts: RebalanceFacts, target: frozenset[MessageQueue], mode: MessageRequestMode
) -> tuple[tuple[RevokeQueue, ...], tuple[OwnedQueue, ...]]:
    """Split the topic's held queues into those to give up and those to keep.

    A push consumer that has not pulled a queue for too long lost its pull request somewhere; it
    drops the queue and takes it anew.
    """
    member = facts.member
    passive = member.consume_type is ConsumeType.CONSUME_PASSIVELY
    revoked: list[RevokeQueue] = []
    kept: list[OwnedQueue] = []
    for owned in facts.owned:
        if owned.queue.topic != facts.topic or owned.mode is not mode:
            continue
        if owned.queue not in target:
            revoked.append(RevokeQueue(owned.queue, RevokeReason.NOT_MINE, mode))
        elif passive and facts.now - owned.last_pull > member.profile.pull_max_idle:
            revoked.append(RevokeQueue(owned.queue, RevokeReason.PULL_EXPIRED, mode))
        else:
            kept.append(owned)
    return tuple(revoked), tuple(kept)


def working_queues(facts: RebalanceFacts) -> frozenset[MessageQueue]:
    """Give the topic's held queues that are not dropped, pulled or popped."""
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
) -> tuple[RevokeQueue, ...]:
    """Give the held queues whose topic is not subscribed any more.

    After all topics are rebalanced these are removed and dropped at once; their offsets are not
    persisted and their locks run out by themselves, as in Java.
    """
    return tuple(
        RevokeQueue(item.queue, RevokeReason.UNSUBSCRIBED, item.mode)
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
    held = sum(owned.mode is MessageRequestMode.PULL for owned in facts.owned)
    change = QueueChange(facts.topic, (), (), held, facts.now)
    steps = follow_change(member.profile, member.consume_type, member.limits, change)
    return msgspec.structs.replace(decision, instructions=steps)


def _warnings(member: Member, members: list[str]) -> tuple[MemberWarning, ...]:
    found: list[MemberWarning] = []
    if member.client_id not in members:
        found.append(MemberWarning.NOT_A_MEMBER)
    if len(set(members)) < len(members):
        found.append(MemberWarning.DUPLICATE_MEMBER)
    return tuple(found)
