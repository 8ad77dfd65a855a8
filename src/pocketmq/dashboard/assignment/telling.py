"""A group's state, rebalances and what-ifs in words and small tables. Pure."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from pocketmq.admin.findings import Finding
from pocketmq.balance.what_if import Move
from pocketmq.dashboard.assignment.episode import Pause, Rebalance
from pocketmq.dashboard.assignment.moment import pops
from pocketmq.dashboard.assignment.trying import Trial
from pocketmq.dashboard.assignment.watching import Look
from pocketmq.dashboard.words import UNKNOWN
from pocketmq.dashboard.words import count as number
from pocketmq.model.kinds import MessageModel
from pocketmq.model.queue import MessageQueue, sort_queues

MOST_ROWS = 200
"""Rows of moves that are listed."""
_MOST_CASES = 5
_MOST_RUNS = 12
_MOST_TOPICS = 3

Row = tuple[str, str, int, str]


def queues_of(count: int) -> str:
    """Write how many queues."""
    return f"{number(count)} queue" if count == 1 else f"{number(count)} queues"


def seconds(value: float) -> str:
    """Write a time in seconds, short."""
    if value < 1:
        return f"{value:.1f} s"
    return f"{value:.0f} s" if value < 120 else f"{value / 60:.0f} min"


def standing(look: Look) -> str:
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


def summary(entry: Rebalance) -> str:
    """Tell what a rebalance did."""
    parts = [f"{queues_of(entry.moved)} moved, {number(entry.minimum)} had to"]
    if not entry.moved:
        parts = ["nothing moved"]
    if entry.pauses:
        longest = max(entry.pauses, key=lambda pause: (pause.most or pause.least, pause.least))
        going = [pause for pause in entry.pauses if pause.ended is None]
        lasting = f"{len(going)} still unowned" if going else f"longest {lasted(longest)}"
        parts.append(f"{number(len(entry.pauses))} paused, {lasting}")
    if entry.doubled:
        parts.append(f"{number(len(entry.doubled))} with several owners")
    if entry.ended is None:
        parts.append("under way")
    elif not entry.settled and entry.moved:
        parts.append("no common strategy gives the picture it ended in")
    return " · ".join(parts)


def lasted(pause: Pause) -> str:
    """Write how long a pause was: looks tell the least and the most."""
    if pause.ended is None:
        return f"{seconds(pause.least)} so far"
    if pause.most is None:
        return f"at least {seconds(pause.least)}"
    if pause.least == 0:
        return f"at most {seconds(pause.most)}"
    return f"{seconds(pause.least)} to {seconds(pause.most)}"


def kind_of(entry: Rebalance) -> str:
    """Give the kind of cause by which an entry is coloured."""
    return entry.causes[0].kind.split()[0]


def entry_row(entry: Rebalance) -> dict[str, Any]:
    """Give an entry of the timeline."""
    return {
        "number": entry.number,
        "began": entry.began,
        "ended": entry.ended,
        "moved": entry.moved,
        "kind": kind_of(entry),
        "why": entry.why[:500],
        "sum": summary(entry),
    }


def entry_detail(entry: Rebalance) -> dict[str, Any]:
    """Give all that is known of one rebalance."""
    lines = [f"Reason: {cause.text}" for cause in entry.causes[:20]]
    if entry.moved and not entry.moves:
        lines.append("It is so long ago that its moves are not kept.")
    lines += [
        f"{queue_name(pause.queue)} had no owner for {lasted(pause)}" for pause in entry.pauses[:20]
    ]
    if len(entry.pauses) > 20:
        lines.append(f"and {number(len(entry.pauses) - 20)} more had none")
    lines += [
        f"{queue_name(each.queue)} was held by {' and '.join(each.owners)} at once, "
        f"{'for ' + seconds(each.last - each.began) if each.last > each.began else 'at one look'}"
        for each in entry.doubled[:20]
    ]
    return {"number": entry.number, "lines": lines, "moves": move_rows(entry.moves)}


def open_spans(entries: Iterable[Rebalance], now: float) -> list[tuple[float, float]]:
    """Give the times in which some queue had no owner, merged."""
    spans: list[tuple[float, float]] = []
    pauses = sorted(
        (pause.began, now if pause.ended is None else pause.ended)
        for entry in entries
        for pause in entry.pauses
    )
    for began, ended in pauses:
        if spans and began <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(spans[-1][1], ended))
        else:
            spans.append((began, ended))
    return spans


def move_rows(moves: Iterable[Move]) -> list[Row]:
    """Collect moves between the same two, largest first."""
    groups: dict[tuple[str, str], list[MessageQueue]] = {}
    for move in moves:
        pair = (move.previous or "nobody", move.owner or "nobody")
        groups.setdefault(pair, []).append(move.queue)
    ranked = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return [(*pair, len(queues), compact(queues)) for pair, queues in ranked[:MOST_ROWS]]


def compact(queues: Sequence[MessageQueue]) -> str:
    """Write queues as runs: `orders broker-a 0–3, 7; broker-b 1`."""
    runs: list[tuple[str, str, int, int]] = []
    for queue in sort_queues(list(queues)):
        if runs and runs[-1][:2] == (queue.topic, queue.broker_name):
            topic, broker, first, last = runs[-1]
            if last + 1 == queue.queue_id:
                runs[-1] = topic, broker, first, queue.queue_id
                continue
        runs.append((queue.topic, queue.broker_name, queue.queue_id, queue.queue_id))
    text, before = "", ("", "")
    for topic, broker, first, last in runs[:_MOST_RUNS]:
        span = str(first) if first == last else f"{first}–{last}"
        if (topic, broker) == before:
            text += f", {span}"
        else:
            text += f"{'; ' if text else ''}{topic if topic != before[0] else ''} {broker} {span}"
        before = topic, broker
    return " ".join(text.split()) + ("; …" if len(runs) > _MOST_RUNS else "")


def queue_name(queue: MessageQueue) -> str:
    """Write a queue's name."""
    return f"{queue.topic} {queue.broker_name} {queue.queue_id}"


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


def lag_text(look: Look) -> str:
    """Write what waits in all queues."""
    total = look.total_lag[-1][1] if look.total_lag else None
    return UNKNOWN if total is None else number(total)


def _joined(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
