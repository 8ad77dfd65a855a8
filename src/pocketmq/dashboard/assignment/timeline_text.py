"""Rebalances as text and small tables, for pages and screen readers. Pure."""

from collections.abc import Iterable, Sequence
from typing import Any

from pocketmq.balance.story.episode import QueuePause, Rebalance
from pocketmq.balance.story.spans import Span, joined
from pocketmq.balance.what_if.movement import Move
from pocketmq.dashboard.formatting import count as number
from pocketmq.model import MessageQueue, sort_queues

MOST_ROWS = 200
"""Rows of moves listed."""
_MOST_RUNS = 12
_FINE = 5.0
"""Seconds between two polls that are not far apart."""

Row = tuple[str, str, int, str]


class TimelineText:
    """Formats a history repeatedly; entries that have not changed are reused."""

    def __init__(self) -> None:
        self._told: dict[int, tuple[Rebalance, dict[str, Any], list[Span]]] = {}

    def rows(
        self, entries: Sequence[Rebalance], now: float
    ) -> tuple[list[dict[str, Any]], list[Span]]:
        """Return the rows of a timeline, and the times in which some queue had no owner."""
        before, self._told = self._told, {}
        for entry in entries:
            known = before.get(entry.number)
            if known is None or known[0] is not entry:
                known = (entry, entry_row(entry), open_spans(entry.pauses, now))
            self._told[entry.number] = known
        spans = [span for _, _, each in self._told.values() for span in each]
        return [row for _, row, _ in self._told.values()], joined(spans)


def summary(entry: Rebalance) -> str:
    """Return a summary of a rebalance."""
    parts = [f"{queues_of(entry.moved)} moved, minimum {number(entry.minimum)}"]
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
        parts.append("in progress")
    elif not entry.settled and entry.moved:
        parts.append("no known strategy explains the final assignment")
    return " · ".join(parts)


def lasted(pause: QueuePause) -> str:
    """Format the duration of a pause; polls only bound it."""
    if pause.ended is None:
        return f"{seconds(pause.least)} so far"
    if pause.most is None:
        return f"at least {seconds(pause.least)}"
    if pause.least == 0:
        return f"at most {seconds(pause.most)}"
    return f"{seconds(pause.least)} to {seconds(pause.most)}"


def kind_of(entry: Rebalance) -> str:
    """Return the kind of cause that an entry is coloured by."""
    return entry.causes[0].kind.split()[0]


def entry_row(entry: Rebalance) -> dict[str, Any]:
    """Return an entry of the timeline."""
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
    """Return the details of one rebalance."""
    lines = [f"Reason: {cause.text}" for cause in entry.causes[:20]]
    if entry.moved and not entry.moves:
        lines.append("Its moves are no longer kept.")
    lines += [
        f"{queue_name(pause.queue)} had no owner for {lasted(pause)}" for pause in entry.pauses[:20]
    ]
    if len(entry.pauses) > 20:
        lines.append(f"and {number(len(entry.pauses) - 20)} more had no owner")
    lines += [
        f"{queue_name(each.queue)} was owned by {' and '.join(each.owners)} at the same time, "
        f"{'for ' + seconds(each.last - each.began) if each.last > each.began else 'seen once'}"
        for each in entry.doubled[:20]
    ]
    return {"number": entry.number, "lines": lines, "moves": move_rows(entry.moves)}


def open_spans(pauses: Iterable[QueuePause], now: float) -> list[Span]:
    """Return the times in which some queue had no owner, merged."""
    return joined(
        (pause.began, now if pause.ended is None else _seen_until(pause)) for pause in pauses
    )


def _seen_until(pause: QueuePause) -> float:
    """Return the time up to which a queue is shown without an owner.

    That is when it was seen with one, or last seen without one if the polls were far apart.
    """
    assert pause.ended is not None
    seen = pause.began + pause.least
    return pause.ended if pause.ended - seen <= _FINE else seen


def move_rows(moves: Iterable[Move]) -> list[Row]:
    """Group moves by previous and next owner, largest first."""
    groups: dict[tuple[str, str], list[MessageQueue]] = {}
    for move in moves:
        pair = (move.previous or "no owner", move.owner or "no owner")
        groups.setdefault(pair, []).append(move.queue)
    ranked = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return [(*pair, len(queues), compact(queues)) for pair, queues in ranked[:MOST_ROWS]]


def compact(queues: Sequence[MessageQueue]) -> str:
    """Format queues as runs: `orders broker-a 0–3, 7; broker-b 1`."""
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
    """Format a queue's name."""
    return f"{queue.topic} {queue.broker_name} {queue.queue_id}"


def queues_of(count: int) -> str:
    """Format a number of queues."""
    return f"{number(count)} queue" if count == 1 else f"{number(count)} queues"


def seconds(value: float) -> str:
    """Format a duration."""
    if value < 1:
        return f"{value:.1f} s"
    return f"{value:.0f} s" if value < 120 else f"{value / 60:.0f} min"
