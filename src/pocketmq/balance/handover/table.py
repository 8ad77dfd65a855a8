"""Who the members are, and which queues they report to have.

It serves speed and stickiness, never safety: whatever stands here, only locks let a member run a
queue. What the bus brings is bounded: queues that no route has are ignored, and so are members
beyond a limit.
"""

from collections.abc import Collection, Mapping

import msgspec
from msgspec.structs import replace

from pocketmq.balance.handover.events import MembersListed
from pocketmq.balance.handover.messages import MOST_OTHERS, State, is_ours, lock_owner
from pocketmq.balance.handover.settings import HandoverSettings, HandoverTimes
from pocketmq.model import MessageQueue

SUPERSEDED = 0.5
"""Seconds by which a list of members may be older than a hello: until then a member that is missing
from it is not taken for gone. Also how far the times of notices on two buses may be wrong."""
MOST_REPORTS = 1024
"""Boots whose reports are kept."""
FORGOTTEN = 600.0
"""Seconds after which a boot that is gone is forgotten."""


class BootReport(msgspec.Struct, frozen=True):
    """What one boot of a member reported last."""

    client_id: str
    heard: float
    number: int = -1
    """-1: nothing yet, or only by another member."""
    held: frozenset[MessageQueue] = frozenset()
    draining: frozenset[MessageQueue] = frozenset()
    bye: float | None = None
    """It said goodbye; until this time its queues wait for it."""
    superseded: float | None = None
    """When another process said hello that has the same client id and started later."""
    lost: frozenset[str] = frozenset()
    """Brokers that it cannot reach."""
    orderly: bool = False
    spoke: float = 0.0
    """When brokers stored the last notice that it sent itself, by this member's clock."""


class Table(msgspec.Struct, frozen=True):
    """Members as brokers list them, and what they reported, by lock owner."""

    listed: tuple[str, ...] = ()
    """Repeated where a broker lists an id repeatedly."""
    since: dict[str, float] = {}
    """When each listed member was seen first."""
    reports: dict[str, BootReport] = {}
    gone: dict[str, float] = {}
    """Lock owners that are on no list, with the time when that was noticed."""
    grown: float = 0.0
    """When the last member came."""
    known: bool = False
    """Whether all brokers listed the members once, or enough time has passed since some did."""


def listed(table: Table, settings: HandoverSettings, event: MembersListed, now: float) -> Table:
    """Note the members; those that are missing are gone, if all brokers answered."""
    members, me, own = event.members, settings.client_id, settings.owner
    if not event.complete:
        missing = [member for member in table.listed if member not in set(members)]
        members = (*members, *missing)
    present = set(members)
    came = [member for member in present if member not in table.since and member != me]
    since = {member: table.since.get(member, now) for member in present}
    gone = dict(table.gone)
    for owner, report in table.reports.items():
        count = members.count(report.client_id) if report.client_id in present else 0
        # A list may be older than the hello of a member that it does not show.
        missing_long = report.client_id in table.since or now - report.heard >= SUPERSEDED
        vanished = count == 0 and (missing_long or owner in gone)
        alone = count == 1 and event.complete  # a broker that did not answer may list it twice
        if vanished or (alone and _ended(table, owner, settings, now)):
            gone.setdefault(owner, now)
        else:
            gone.pop(owner, None)
    gone.pop(own, None)
    over = {owner for owner, at in gone.items() if now - at >= FORGOTTEN}
    gone = {owner: at for owner, at in gone.items() if owner not in over}
    reports = {owner: report for owner, report in table.reports.items() if owner not in over}
    return replace(
        table,
        listed=tuple(sorted(members)),
        since=since,
        reports=reports,
        gone=gone,
        grown=now if came else table.grown,
        known=table.known or event.complete,
    )


def _ended(table: Table, owner: str, settings: HandoverSettings, now: float) -> bool:
    """Return whether a boot must have ended if its id is listed only once: for the later one.

    Which is the later of boots that only others reported is not known. A list that is about as
    old as the hello of the later boot may not show that one yet. The later boot must have sent
    more than a hello, since that may be a copy; and this boot must not have answered it.
    """
    report = table.reports[owner]
    if report.client_id == settings.client_id:
        latest = now  # this member is the later one itself
    else:
        others = [
            each.heard
            for name, each in table.reports.items()
            if each.client_id == report.client_id and name != owner and each.number > 0
        ]
        latest = max(others, default=0.0)
    superseded = report.superseded
    if superseded is not None and now - superseded >= SUPERSEDED and latest >= superseded:
        return True
    # The hello may have been missed. Who lives is heard at least every 20 seconds.
    return latest - report.heard > settings.times.silent


def hello(
    table: Table, sender: str, boot: str, now: float, age: float = 0.0, *, orderly: bool = False
) -> Table:
    """Note that a member has started; a process that had its id before should have ended.

    A boot says hello before all else, once on each bus. So one of a boot that has ended, or one
    from before another boot's last notice, is a copy or comes late and says nothing about others.
    """
    owner, said = lock_owner(sender, boot), now - age
    known = table.reports.get(owner)
    if known is not None and (owner in table.gone or known.superseded is not None):
        return _with(table, owner, replace(known, heard=now))
    reports = {
        name: replace(report, superseded=now)
        if report.client_id == sender
        and report.superseded is None
        and (report.number < 0 or report.spoke <= said + SUPERSEDED)
        else report
        for name, report in table.reports.items()
    }
    table = replace(table, reports=reports)
    if known is not None and known.number >= 0:
        report = replace(known, heard=now, spoke=max(known.spoke, said))
    else:
        report = BootReport(sender, now, 0, spoke=said, orderly=orderly)
    return _with(table, owner, report)


def state(
    table: Table,
    sender: str,
    boot: str,
    message: State,
    *,
    queues: Collection[MessageQueue],
    me: str,
    now: float,
    age: float = 0.0,
) -> Table:
    """Note what a member has, and what it knows of others that never reported to this one."""
    owner = lock_owner(sender, boot)
    before = table.reports.get(owner)
    if before is None or message.number > before.number:
        held = frozenset(queue for queue in message.held if queue in queues)
        draining = frozenset(queue for queue in message.draining if queue in queues)
        bye = before.bye if before else None
        if before is not None and bye is not None and bye > now:
            held = before.held  # these wait for it, though it has let them go
        # A boot that answers a hello in its own name lives: the hello was forged, or repeated. A
        # state from before, on another bus, is followed there by the same hello. Only of this
        # member's own id no hello is heard again.
        superseded = before.superseded if before and sender == me else None
        report = BootReport(
            sender,
            now,
            message.number,
            held,
            draining,
            bye,
            superseded,
            frozenset(message.lost),
            message.orderly,
            now - age,
        )
        table = _with(table, owner, report)
    for name, others in message.table.items():
        client_id, _, _ = name.rpartition("#")
        if name not in table.reports and is_ours(client_id):
            held = frozenset(queue for queue in others if queue in queues)
            left = message.away.get(name)
            bye = None if left is None else now + left
            # What others know of this member's own id is an earlier process of its own.
            superseded = now if client_id == me else None
            report = BootReport(client_id, now, -1, held, bye=bye, superseded=superseded)
            table = _with(table, name, report)
    return table


def goodbye(table: Table, sender: str, boot: str, back_within: float, now: float) -> Table:
    """Note that a member leaves, and how long its queues wait for it."""
    owner = lock_owner(sender, boot)
    report = table.reports.get(owner, BootReport(sender, now))
    return _with(table, owner, replace(report, heard=now, bye=now + back_within))


def _with(table: Table, owner: str, report: BootReport) -> Table:
    if owner not in table.reports and len(table.reports) >= MOST_REPORTS:
        # Those that are gone make room. Their locks end by themselves, if they are not free yet.
        oldest = min(
            table.gone.keys() & table.reports.keys(), key=table.gone.__getitem__, default=""
        )
        if not oldest:
            return table
        others = {name: each for name, each in table.reports.items() if name != oldest}
        gone = {name: at for name, at in table.gone.items() if name != oldest}
        return replace(table, reports={**others, owner: report}, gone=gone)
    return replace(table, reports={**table.reports, owner: report})


def worth_telling(table: Table, times: HandoverTimes, now: float) -> dict[str, BootReport]:
    """Return the reports of others to send to newcomers, no more than they accept.

    Who is gone for long is left out: members forget it at different times, and would tell each
    other of it without end.
    """
    reports = {
        owner: report
        for owner, report in table.reports.items()
        if report.held
        and (now - table.gone.get(owner, now) < times.gone_names or (report.bye or 0.0) > now)
    }
    if len(reports) <= MOST_OTHERS:
        return reports
    ranked = sorted(reports, key=lambda owner: (owner in table.gone, -reports[owner].heard))
    return {owner: reports[owner] for owner in ranked[:MOST_OTHERS]}


def living(table: Table) -> dict[str, BootReport]:
    """Return the reports of boots that are not gone, as far as their members are listed.

    What others told about a member counts only until it speaks itself.
    """
    present = set(table.listed)
    reports = {
        owner: report
        for owner, report in table.reports.items()
        if report.client_id in present and owner not in table.gone
    }
    speaking = {report.client_id for report in reports.values() if report.number >= 0}
    return {
        owner: report
        for owner, report in reports.items()
        if report.number >= 0 or report.client_id not in speaking
    }


def leaving(reports: Mapping[str, BootReport], now: float) -> set[str]:
    """Return the members that said goodbye and did not start again, unless queues wait for them.

    Who is back is listed before it is heard; until then it must not be taken for one that leaves.
    """
    latest: dict[str, BootReport] = {}
    for report in reports.values():
        if report.client_id not in latest or report.heard >= latest[report.client_id].heard:
            latest[report.client_id] = report
    return {
        client_id
        for client_id, report in latest.items()
        if report.bye is not None and report.bye <= now
    }


def waiting_for(table: Table, now: float) -> dict[str, float]:
    """Return the members that are away and will be back, and until when their queues wait."""
    present = set(table.listed)
    return {
        report.client_id: report.bye
        for report in table.reports.values()
        if report.bye is not None and report.bye > now and report.client_id not in present
    }


def silent(
    table: Table, reports: Mapping[str, BootReport], me: str, limit: float, now: float
) -> set[str]:
    """Return listed members that reported nothing for a long time: they may be hung.

    If several others are silent and none speaks, it is the bus that is silent.
    """
    heard: dict[str, float] = {}
    for report in reports.values():
        heard[report.client_id] = max(report.heard, heard.get(report.client_id, 0.0))
    others = [member for member in table.since if member != me and is_ours(member)]
    quiet = {
        member
        for member in others
        if now - max(heard.get(member, 0.0), table.since[member]) > limit
    }
    return quiet if len(others) == 1 or len(quiet) < len(others) else set()


def gone_names(table: Table, times: HandoverTimes, now: float) -> frozenset[str]:
    """Return the lock owners that are on no list, and whose leases may last."""
    return frozenset(owner for owner, at in table.gone.items() if now - at < times.gone_names)
