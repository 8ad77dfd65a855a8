"""Rebalances in words and small tables, as pages and screen readers tell them. Pure."""

from collections.abc import Iterable, Sequence
from typing import Any

from pocketmq.balance.story.episode import Pause, Rebalance
from pocketmq.balance.story.spans import Span, joined
from pocketmq.balance.what_if import Move
from pocketmq.dashboard.formatting import count as number
from pocketmq.model.queue import MessageQueue, sort_queues

MOST_ROWS = 200
"""Rows of moves that are listed."""
_MOST_RUNS = 12

Row = tuple[str, str, int, str]


class Recounting:
    """Tells of a history again and again; what has not changed is told as before."""

    def __init__(self) -> None:
        self._told: dict[int, tuple[Rebalance, dict[str, Any], list[Span]]] = {}

    def tell(
        self, entries: Sequence[Rebalance], now: float
    ) -> tuple[list[dict[str, Any]], list[Span]]:
        """Give the rows of a timeline, and the times in which some queue had no owner."""
        before, self._told = self._told, {}
        for entry in entries:
            known = before.get(entry.number)
            if known is None or known[0] is not entry:
                known = (entry, entry_row(entry), open_spans(entry.pauses, now))
            self._told[entry.number] = known
        spans = [span for _, _, each in self._told.values() for span in each]
        return [row for _, row, _ in self._told.values()], joined(spans)


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


def open_spans(pauses: Iterable[Pause], now: float) -> list[Span]:
    """Give the times in which some queue had no owner, merged."""
    return joined((pause.began, now if pause.ended is None else pause.ended) for pause in pauses)


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


def queues_of(count: int) -> str:
    """Write how many queues."""
    return f"{number(count)} queue" if count == 1 else f"{number(count)} queues"


def seconds(value: float) -> str:
    """Write a time in seconds, short."""
    if value < 1:
        return f"{value:.1f} s"
    return f"{value:.0f} s" if value < 120 else f"{value / 60:.0f} min"
