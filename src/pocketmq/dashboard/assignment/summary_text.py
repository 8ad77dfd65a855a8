"""The state of a group, its problems and what-if results, as text and small tables. Pure."""

from collections.abc import Iterable
from typing import Any

import msgspec

from pocketmq.admin.findings import GroupFinding
from pocketmq.dashboard.assignment.experiment import Trial
from pocketmq.dashboard.assignment.snapshots import GroupSnapshot, pops
from pocketmq.dashboard.assignment.timeline_text import move_rows, queues_of
from pocketmq.dashboard.formatting import UNKNOWN
from pocketmq.dashboard.formatting import count as number
from pocketmq.model import MessageModel

_MOST_CASES = 5
_MOST_TOPICS = 3


def standing(snapshot: GroupSnapshot) -> str:
    """Return the state of the group in one sentence, also for screen readers."""
    story, now = snapshot.story, snapshot.moment
    if not now.members:
        if now.unseen:
            return "It is unknown whether the group has members: not every broker has responded."
        return "The group is offline: no broker lists a member. Its messages accumulate."
    if story.model is MessageModel.BROADCASTING:
        return "The group broadcasts: every member reads every queue, so queues have no owner."
    if pops(snapshot.facts):
        return "The group uses POP: brokers hand out single messages, so queues have no owner."
    if not story.queues:
        return "No subscribed topic has queues."
    owners = list(now.owners.values())
    unowned, unknown = owners.count(()), owners.count(None)
    several = sum(len(held or ()) > 1 for held in owners)
    parts = []
    if unowned:
        parts.append(f"{number(unowned)} {'has' if unowned == 1 else 'have'} no owner")
    if several:
        parts.append(f"{number(several)} {'has' if several == 1 else 'have'} several owners")
    if unknown:
        parts.append(f"{number(unknown)} {'has' if unknown == 1 else 'have'} an unknown owner")
    if parts:
        return f"Of {queues_of(len(owners))}, {_joined(parts)}."
    if story.sticky is not None and story.fits is None and story.strategy is not None:
        moves = story.sticky.moves
        if moves is None:
            return "Every queue has one owner; not every member has responded."
        are = "is" if moves == 1 else "are"
        return f"Every queue has one owner; {queues_of(moves)} {are} still to move."
    if story.strategy is None and snapshot.rebalances and snapshot.rebalances[-1].ended is None:
        return "Every queue has one owner; a rebalance is in progress."
    if story.strategy is None:
        return "Every queue has one owner, but no known strategy explains the assignment."
    return f"Every queue has one owner, as {story.strategy} assigns them."


def grouped(findings: Iterable[GroupFinding]) -> list[tuple[str, list[str], str]]:
    """Group findings by kind: a title, the evidence, the fix."""
    kinds: dict[tuple[str, str], list[GroupFinding]] = {}
    for finding in findings:
        kinds.setdefault((finding.kind, finding.cure), []).append(finding)
    told = []
    for (kind, cure), found in kinds.items():
        if len(found) == 1:
            told.append((f"{kind}: {found[0].subject}", [f"Evidence: {found[0].evidence}"], cure))
            continue
        seen = [f"{each.subject}: {each.evidence}" for each in found[:_MOST_CASES]]
        if len(found) > _MOST_CASES:
            seen.append(f"and {number(len(found) - _MOST_CASES)} more")
        told.append((f"{kind}: {number(len(found))} cases", seen, cure))
    return told


def trial_result(trial: Trial) -> dict[str, Any]:
    """Return the result of a what-if, for the browser."""
    moved, last, before = trial.movement, trial.last, trial.answer.before
    parts = [f"{queues_of(moved.moved)} would move, minimum {number(moved.minimum)}"]
    if moved.added:
        parts.append(f"{queues_of(len(moved.added))} would be new")
    if moved.removed:
        parts.append(f"{queues_of(len(moved.removed))} would be gone")
    lines = [f"Max−min over all topics: {before.spread} before, {last.spread} after."]
    ranked = sorted(last.topics, key=lambda topic: -topic.spread)
    lines += [
        f"{topic.topic}: {topic.fewest} to {topic.most} queues per member (max−min {topic.spread})."
        for topic in ranked[:_MOST_TOPICS]
    ]
    if len(ranked) > _MOST_TOPICS:
        lines.append(f"The other {len(ranked) - _MOST_TOPICS} topics are at least as even.")
    if last.unowned:
        lines.append(f"{queues_of(len(last.unowned))} would have no owner.")
    if not last.shares:
        lines.append("No member would be left.")
    return {
        "sum": ", ".join(parts) + ".",
        "lines": lines,
        "compared": msgspec.to_builtins(trial.compared),
        "moves": move_rows(moved.moves),
        "movesTitle": f"The {queues_of(moved.moved)} that would move",
    }


def lag_text(snapshot: GroupSnapshot) -> str:
    """Format the lag of all queues."""
    total = snapshot.total_lag[-1][1] if snapshot.total_lag else None
    return UNKNOWN if total is None else number(total)


def _joined(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
