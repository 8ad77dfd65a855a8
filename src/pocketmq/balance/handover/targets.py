"""The target: the owner that each queue is to have, by what this member knows.

All members compute it alone. They may know different states of the same moves, and still come to
the same target, because `balance.sticky` is confluent. It is computed only if its inputs changed.
"""

from collections.abc import Collection, Mapping

from msgspec.structs import replace

from pocketmq.balance.handover.group import GroupDraft, Target
from pocketmq.balance.handover.messages import is_ours
from pocketmq.balance.handover.reach import lost_by, substituted
from pocketmq.balance.handover.stay import IN_SHELL, Phase, Stay, holds_queue
from pocketmq.balance.handover.table import BootReport, leaving, living, silent, waiting_for
from pocketmq.balance.sticky import assign, divide, minimum_moves
from pocketmq.errors import MQError
from pocketmq.model import MessageQueue


def our_members(draft: GroupDraft, reports: Mapping[str, BootReport]) -> frozenset[str]:
    """Return those of our members that may have queues."""
    settings, table = draft.settings, draft.table
    members = {member for member in table.listed if is_ours(member)}
    members -= leaving(reports, draft.now)
    hung = silent(table, reports, settings.client_id, settings.times.silent, draft.now)
    members |= waiting_for(table, draft.now).keys()
    members.add(settings.client_id)
    if draft.id_taken or (draft.stopping and not settings.return_within):
        members.remove(settings.client_id)
    return frozenset(members - hung - _of_other_kind(draft, reports, hung))


def _of_other_kind(
    draft: GroupDraft, reports: Mapping[str, BootReport], hung: Collection[str]
) -> frozenset[str]:
    """Return the members that take no queues, because the group is consumed in another way.

    The locks of orderly and of concurrent members do not keep each other out. So the kind that has
    queues keeps them all, until its last member has left; if both have some, or none has, the kind
    of the first member by client id gets them.
    """
    settings, me = draft.settings, draft.settings.client_id
    spoken = [each for each in reports.values() if each.number >= 0 and each.client_id not in hung]
    kinds = {each.client_id: each.orderly for each in spoken} | {me: settings.orderly}
    if len(set(kinds.values())) == 1:
        return frozenset()
    having = {each.orderly for each in spoken if each.held or each.draining}
    if any(stay.phase in IN_SHELL or holds_queue(stay) for stay in draft.stays.values()):
        having.add(settings.orderly)
    chosen = having.pop() if len(having) == 1 else kinds[min(kinds)]
    others = frozenset(member for member, kind in kinds.items() if kind != chosen)
    draft.warn(
        f"the group has orderly and concurrent members: group={settings.group} "
        f"client_id={me}; {'this one takes' if me in others else 'the others take'} no queues. "
        f"Set the same orderly= in all members, or use another group"
    )
    return others


def known_owners(draft: GroupDraft, reports: Mapping[str, BootReport]) -> dict[MessageQueue, str]:
    """Return who has which queue; a living member's report outweighs one that is gone."""
    owners: dict[MessageQueue, str] = {}
    table = draft.table
    for owner, report in sorted(
        table.reports.items(),
        key=lambda item: (item[0] in reports, item[1].number >= 0, item[1].heard),
    ):
        if owner in reports or report.bye is not None or owner in table.gone:
            owners.update(dict.fromkeys(report.held, report.client_id))
    for queue, stay in draft.stays.items():
        holder = _holder(stay, draft.settings.client_id)
        if holder is not None:
            owners[queue] = holder
    return owners


def _holder(stay: Stay, me: str) -> str | None:
    if holds_queue(stay) or stay.phase is Phase.STOPPING:
        return me
    if stay.phase in (Phase.UNLOCKING_RUN, Phase.DRAINING, Phase.CLOSING):
        return stay.peer
    return None


def update_target(draft: GroupDraft) -> None:
    """Compute the target again if anything changed that it depends on."""
    table, settings = draft.table, draft.settings
    reports = living(table)
    members = our_members(draft, reports)
    owners = known_owners(draft, reports)
    foreign = tuple(member for member in table.listed if not is_ours(member))
    absent = frozenset(draft.absent) if not foreign else frozenset[MessageQueue]()
    listed = table.listed if foreign else ()
    lost = lost_by(draft, reports)
    inputs = (members, owners, draft.queues, absent, listed, lost)
    if inputs == draft.target.inputs:
        return
    topics: dict[str, list[MessageQueue]] = {}
    for queue in draft.queues:
        topics.setdefault(queue.topic, []).append(queue)
    shares: dict[MessageQueue, str] = {}
    if foreign:
        ours = [member for member in listed if is_ours(member)]
        try:
            division = divide(topics, ours, foreign, strategy=settings.mixed, group=settings.group)
        except MQError as error:
            draft.warn(f"the mixed strategy failed: group={settings.group} error={str(error)!r}")
            return
        shares, topics = division.foreign, division.rest
    ranked = sorted(members)
    _hold_off(draft, shares, mixed=bool(foreign))
    target = assign(topics, ranked, owners, absent) if ranked else {}
    target = shares | target | substituted(target, lost, owners, ranked)
    minimum = draft.target.minimum
    if ranked and members != frozenset(draft.target.members):
        minimum = minimum_moves(topics, ranked, owners, absent)
    draft.target = Target(target, shares, tuple(ranked), inputs, minimum)


def _hold_off(draft: GroupDraft, shares: Mapping[MessageQueue, str], *, mixed: bool) -> None:
    """Wait a little before queues are taken that a foreign member had or may have had."""
    until = draft.now + draft.settings.times.after_foreign
    before = draft.target.foreign
    if mixed and draft.target.inputs is None:
        freed = draft.queues - shares.keys()
    else:
        freed = frozenset(before.keys() - shares.keys())
    held = {queue: at for queue, at in draft.hold_off.items() if at > draft.now}
    if freed or held != draft.hold_off:
        draft.hold_off = {**held, **dict.fromkeys(freed, until)}


def forget_return(draft: GroupDraft) -> None:
    """Forget that members wanted to be back, once they are late."""
    table = draft.table
    late = {
        owner: replace(report, held=frozenset(), draining=frozenset())
        for owner, report in table.reports.items()
        if report.bye is not None
        and report.bye <= draft.now
        and report.held
        and owner in table.gone
    }
    if late:
        draft.table = replace(table, reports={**table.reports, **late})
