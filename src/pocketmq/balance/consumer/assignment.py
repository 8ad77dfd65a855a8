"""The rebalance decision when a broker made the assignment (QUERY_ASSIGNMENT, 5.x).

Queues may come to be pulled or to be popped; a topic whose mode changes brings or takes the topic
of popped messages that failed.
"""

import msgspec

from pocketmq.balance.consumer.instructions import (
    AcquirePopQueue,
    Instruction,
    SubscribePopRetry,
    UnsubscribePopRetry,
)
from pocketmq.balance.consumer.rebalance import (
    KeepReason,
    RebalanceDecision,
    RebalanceFacts,
    keep,
    split_held,
    towards,
    working_queues,
)
from pocketmq.model.kinds import MessageRequestMode
from pocketmq.model.names import RETRY_PREFIX, is_retry_topic
from pocketmq.model.queue import MessageQueue, sort_queues


class AssignedQueue(msgspec.Struct, frozen=True):
    """One queue of a broker's answer; brokers also give entries without a queue."""

    queue: MessageQueue | None
    mode: MessageRequestMode = MessageRequestMode.PULL


def decide_assigned(
    facts: RebalanceFacts, answer: tuple[AssignedQueue, ...] | None
) -> RebalanceDecision:
    """Decide a topic from the broker's answer; `None` = it failed or was null, so keep all."""
    if answer is None:
        return keep(facts, KeepReason.NO_ASSIGNMENT, balanced=False)
    pulled = _queues(answer, MessageRequestMode.PULL)
    popped = _queues(answer, MessageRequestMode.POP)
    pull = towards(facts, pulled, None)
    revoked_pop, kept_pop = split_held(facts, frozenset(popped), MessageRequestMode.POP)
    held_pop = {owned.queue for owned in facts.owned if owned.mode is MessageRequestMode.POP}
    held_pop -= {revocation.queue for revocation in revoked_pop}
    assigned_pop = tuple(queue for queue in popped if queue not in held_pop)
    acquire = pull.instructions[len(pull.revoked) :]
    target = tuple(dict.fromkeys((*pulled, *popped)))
    return msgspec.structs.replace(
        pull,
        instructions=(
            *_mode_change(facts, pulled, popped),
            *pull.revoked,
            *revoked_pop,
            *acquire,
            *(AcquirePopQueue(queue) for queue in assigned_pop),
        ),
        target=target,
        revoked=(*pull.revoked, *revoked_pop),
        kept=(*pull.kept, *(owned.queue for owned in kept_pop)),
        lingering=(*pull.lingering, *(owned.queue for owned in kept_pop if owned.dropped)),
        assigned_pop=assigned_pop,
        balanced=frozenset(target) == working_queues(facts),
    )


def pop_retry_topic(topic: str, group: str) -> str:
    """Give the topic that brings a group's failed popped messages back (first version)."""
    return f"{RETRY_PREFIX}{group}_{topic}"


def _queues(
    answer: tuple[AssignedQueue, ...], mode: MessageRequestMode
) -> tuple[MessageQueue, ...]:
    found = {item.queue for item in answer if item.queue is not None and item.mode is mode}
    return tuple(sort_queues(found))


def _mode_change(
    facts: RebalanceFacts, pulled: tuple[MessageQueue, ...], popped: tuple[MessageQueue, ...]
) -> tuple[Instruction, ...]:
    if is_retry_topic(facts.topic) or bool(pulled) == bool(popped):
        return ()
    retry = pop_retry_topic(facts.topic, facts.member.group)
    return (SubscribePopRetry(retry) if pulled else UnsubscribePopRetry(retry),)
