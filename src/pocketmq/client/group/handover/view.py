"""What a member knows of its group's balance, for applications and operators."""

from pocketmq.balance.handover.group import HandoverGroup
from pocketmq.balance.handover.messages import is_ours
from pocketmq.balance.handover.stay import Phase, Stay, holds_queue
from pocketmq.balance.handover.table import living
from pocketmq.model.group_balance import BalanceMode, GroupBalance, QueueStage
from pocketmq.model.queue import MessageQueue

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
    """Return the balance of a group as one member sees it."""
    settings, listed = group.settings, group.table.listed
    members = tuple(sorted({*listed, settings.client_id}))
    foreign = tuple(member for member in members if not is_ours(member))
    reason = f"members that do not hand queues over: {', '.join(foreign)}" if foreign else ""
    if group.double:
        reason = f"another process has the client id {settings.client_id}; this one takes nothing"
    return GroupBalance(
        group=settings.group,
        client_id=settings.client_id,
        strategy="STICKY",
        mode=BalanceMode.MIXED if foreign else BalanceMode.STICKY,
        reason=reason,
        members=members,
        foreign=foreign,
        target=dict(group.target.owners),
        owners=owners_of(group),
        stages={queue: _stage(stay) for queue, stay in group.stays.items()},
    )


def owners_of(group: HandoverGroup) -> dict[MessageQueue, str]:
    """Return who has which queue, as far as members told."""
    owners = dict(group.target.foreign)
    for word in living(group.table).values():
        owners.update(dict.fromkeys(word.held, word.client_id))
    for queue, stay in group.stays.items():
        if holds_queue(stay):
            owners[queue] = group.settings.client_id
        elif owners.get(queue) == group.settings.client_id:
            del owners[queue]
    return owners


def _stage(stay: Stay) -> QueueStage:
    if stay.fenced is not None and stay.phase is Phase.RUNNING:
        return QueueStage.FENCED
    if stay.phase is Phase.RUNNING and stay.barrier is not None:
        return QueueStage.BEHIND_BARRIER
    return _STAGES[stay.phase]
