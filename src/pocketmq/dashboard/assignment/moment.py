"""A group at one moment, taken from the facts that its brokers and members tell.

What is not known stays unknown: a queue that nobody admits to hold is unowned only if every member
and every broker has been heard.
"""

from pocketmq.admin.facts import GroupFacts, is_push
from pocketmq.balance.story.observation import GroupObservation, KnownOwners
from pocketmq.model.kinds import MessageModel
from pocketmq.model.queue import MessageQueue

TELLS_NOTHING = "it answers, but tells of no queues, as pull consumers of Java do"

_TOLD = "allocateMessageQueueStrategy"
_JAVA_STRATEGIES = {
    "AllocateMessageQueueAveragely": "AVG",
    "AllocateMessageQueueAveragelyByCircle": "AVG_BY_CIRCLE",
    "AllocateMessageQueueConsistentHash": "CONSISTENT_HASH",
    "AllocateMessageQueueByConfig": "CONFIG",
    "AllocateMessageQueueByMachineRoom": "MACHINE_ROOM",
}


def moment_of(facts: GroupFacts, at: float, fits: str | None = None) -> GroupObservation:
    """Take from facts what the history needs."""
    holders = facts.holders()
    untold = facts.silent
    if any(queue not in holders for queues in facts.queues.values() for queue in queues):
        untold = untold | untold_by(facts)
    # A member that came while we asked is known by its own word alone.
    members = frozenset((*facts.members(), *facts.running, *facts.silent))
    nobody: KnownOwners = None if untold or facts.unseen_brokers else ()
    owners: dict[MessageQueue, KnownOwners] = {}
    lags = {}
    for queues in facts.queues.values():
        for queue in queues:
            held_by = holders.get(queue)
            owners[queue] = nobody if held_by is None else tuple(held_by)
            progress = facts.progress.get(queue)
            if progress is not None:
                lags[queue] = progress.broker_offset - progress.consumer_offset
    return GroupObservation(
        at=at,
        members=members,
        untold=untold,
        brokers=frozenset((*facts.views, *(queue.broker_name for queue in owners))),
        unseen=frozenset(facts.unseen_brokers),
        owners=owners,
        lags=lags,
        strategies=_strategies(facts),
        fits=fits,
        shared=facts.model() is not MessageModel.BROADCASTING and not pops(facts),
    )


def pops(facts: GroupFacts) -> bool:
    """Tell whether brokers hand out the group's messages one by one (POP)."""
    return any(info.mq_pop_table for info in facts.running.values())


def untold_by(facts: GroupFacts) -> dict[str, str]:
    """Name members that answer and yet do not say which queues they hold."""
    return {
        member: TELLS_NOTHING
        for member, info in facts.running.items()
        if not is_push(info) and not info.mq_table and not info.mq_pop_table
    }


def _strategies(facts: GroupFacts) -> dict[str, str]:
    told = {}
    for member, info in facts.running.items():
        text = info.properties.get(_TOLD, "")
        if text:
            # Java tells a class and where the object is: a.b.AllocateMessageQueueAveragely@1f2e
            name = text.partition("@")[0].rpartition(".")[2]
            told[member] = _JAVA_STRATEGIES.get(name, name)
    return told
