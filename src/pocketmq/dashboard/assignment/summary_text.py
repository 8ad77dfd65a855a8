"""How a group stands, what is wrong with it and what would be, in words and small tables. Pure."""

from collections.abc import Iterable
from typing import Any

import msgspec

from pocketmq.admin.findings import Finding
from pocketmq.dashboard.assignment.experiment import Trial
from pocketmq.dashboard.assignment.snapshots import GroupSnapshot, pops
from pocketmq.dashboard.assignment.timeline_text import move_rows, queues_of
from pocketmq.dashboard.formatting import UNKNOWN
from pocketmq.dashboard.formatting import count as number
from pocketmq.model.kinds import MessageModel

_MOST_CASES = 5
_MOST_TOPICS = 3


def standing(look: GroupSnapshot) -> str:
    """Tell how the group stands, in one sentence for those who read and those who listen."""
    story, now = look.story, look.moment
    if not now.members:
        if now.unseen:
            return "Whether the group has members is not known: not every broker has answered."
        return "The group is offline: no broker lists a member. Its messages wait."
    if story.model is MessageModel.BROADCASTING:
        return "The group broadcasts: every member reads every queue, so nothing is shared out."
    if pops(look.facts):
        return "The group pops: brokers hand out messages one by one, so queues have no owner."
    if not story.queues:
        return "No topic that the members subscribe has queues."
    owners = list(now.owners.values())
    unowned, unknown = owners.count(()), owners.count(None)
    several = sum(len(held or ()) > 1 for held in owners)
    parts = []
    if unowned:
        parts.append(f"{number(unowned)} {'has' if unowned == 1 else 'have'} no owner")
    if several:
        parts.append(f"{number(several)} {'has' if several == 1 else 'have'} several owners")
    if unknown:
        parts.append(f"{number(unknown)} {'has' if unknown == 1 else 'have'} no known owner")
    if parts:
        return f"Of {queues_of(len(owners))} {_joined(parts)}."
    if story.strategy is None and look.rebalances and look.rebalances[-1].ended is None:
        return "Every queue has one owner; a rebalance is under way."
    if story.strategy is None:
        return "Every queue has one owner, but no common strategy gives this picture."
    return f"Every queue has one owner, as {story.strategy} divides them."


def grouped(findings: Iterable[Finding]) -> list[tuple[str, list[str], str]]:
    """Put findings of a kind together: a title, what was seen, what helps."""
    kinds: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        kinds.setdefault((finding.kind, finding.cure), []).append(finding)
    told = []
    for (kind, cure), found in kinds.items():
        if len(found) == 1:
            told.append((f"{kind}: {found[0].subject}", [f"Seen: {found[0].evidence}"], cure))
            continue
        seen = [f"{each.subject}: {each.evidence}" for each in found[:_MOST_CASES]]
        if len(found) > _MOST_CASES:
            seen.append(f"and {number(len(found) - _MOST_CASES)} more")
        told.append((f"{kind}: {number(len(found))} cases", seen, cure))
    return told


def trial_result(trial: Trial) -> dict[str, Any]:
    """Give what an experiment found, for the browser."""
    moved, last, before = trial.movement, trial.last, trial.answer.before
    parts = [f"{queues_of(moved.moved)} would move, {number(moved.minimum)} had to"]
    if moved.added:
        parts.append(f"{queues_of(len(moved.added))} would be new")
    if moved.removed:
        parts.append(f"{queues_of(len(moved.removed))} would be gone")
    lines = [f"Max−min over all topics: {before.spread} before, {last.spread} after."]
    ranked = sorted(last.topics, key=lambda topic: -topic.spread)
    lines += [
        f"{topic.topic}: {topic.fewest} to {topic.most} queues a member (max−min {topic.spread})."
        for topic in ranked[:_MOST_TOPICS]
    ]
    if len(ranked) > _MOST_TOPICS:
        lines.append(f"The other {len(ranked) - _MOST_TOPICS} topics are as even, or more so.")
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


def lag_text(look: GroupSnapshot) -> str:
    """Write what waits in all queues."""
    total = look.total_lag[-1][1] if look.total_lag else None
    return UNKNOWN if total is None else number(total)


def _joined(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
