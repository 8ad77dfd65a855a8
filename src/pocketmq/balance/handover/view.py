"""A group's balance as operators see it."""

from pocketmq.balance.handover.group import HandoverGroup
from pocketmq.balance.handover.messages import is_ours
from pocketmq.balance.handover.stay import Pending, Phase, Stay
from pocketmq.balance.handover.table import living
from pocketmq.balance.handover.upkeep import current_state
from pocketmq.model.group_balance import BalanceMode, GroupBalance, QueueStage

_STAGES = {
    Phase.WANTED: QueueStage.WANTED,
    Phase.CLAIMED: QueueStage.CLAIMED,
    Phase.FREEING: QueueStage.TAKING,
    Phase.LOCKING: QueueStage.TAKING,
    Phase.READING: QueueStage.TAKING,
    Phase.STORING: QueueStage.TAKING,
    Phase.RUNNING: QueueStage.RUNNING,
    Phase.STOPPING: QueueStage.DRAINING,
    Phase.OPENING: QueueStage.DRAINING,
    Phase.DRAINING: QueueStage.DRAINING,
    Phase.CLOSING: QueueStage.DRAINING,
}


def balance_of(group: HandoverGroup) -> GroupBalance:
    """Return the balance of a group as this member sees it."""
    me = group.settings.client_id
    foreign = tuple(member for member in group.table.listed if not is_ours(member))
    owners = {queue: word.client_id for word in living(group.table).values() for queue in word.held}
    held, _ = current_state(group.stays)
    owners.update(dict.fromkeys(held, me))
    reason = ""
    if group.double:
        reason = "another process has the same client id; this one takes no queues"
    elif foreign:
        reason = f"{len(foreign)} of {len(group.table.listed)} members do not hand queues over"
    return GroupBalance(
        group=group.settings.group,
        client_id=me,
        strategy="STICKY",
        mode=BalanceMode.MIXED if foreign else BalanceMode.STICKY,
        reason=reason,
        members=group.table.listed,
        foreign=foreign,
        target=group.target.owners,
        owners=owners,
        stages={queue: stage_of(stay) for queue, stay in group.stays.items()},
    )


def stage_of(stay: Stay) -> QueueStage:
    """Return where a queue is on its way to this member, or from it."""
    if stay.fenced is not None:
        return QueueStage.FENCED
    if stay.phase is Phase.RUNNING:
        if stay.barrier is not None:
            return QueueStage.BEHIND_BARRIER
        if Pending.FILL in stay.pending:
            return QueueStage.FILLING_HOLE
    if stay.phase is Phase.CLOSING and stay.tries:
        return QueueStage.TAKING
    return _STAGES[stay.phase]
