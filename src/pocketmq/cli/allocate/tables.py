"""The tables of `pocketmq allocate`, for people.

Plain words and ASCII, so that they read the same on a narrow terminal, without colour and in a
file. Many queues are named in few words: `broker-a 0-3,7  broker-b 0-1`. Piped output is never
wrapped: one member is one line for each of its topics.
"""

from collections.abc import Iterable, Sequence

from pocketmq.balance.what_if import Movement, Ownership, WhatIf, WhatIfStep
from pocketmq.balance.what_if.movement import Move
from pocketmq.cli.output import TableColumn, TextPage, numbers
from pocketmq.model import MessageQueue

MAX_ROWS = 100
MAX_RUNS = 24
"""Ranges of queues in one cell at most; `--json` has them all."""

_HAPPENED = {
    "member_joined": "joins",
    "member_left": "leaves",
    "broker_down": "goes down",
    "broker_added": "is added",
    "queues_added": "is added",
    "strategy_changed": "is the new strategy",
}


def print_answers(answers: Sequence[WhatIf]) -> None:
    """Print each strategy's tables, and how they compare if there are several."""
    _page(answers, styled=True).print()


def answer_lines(answer: WhatIf) -> list[str]:
    """Return one strategy's tables as plain lines."""
    return _page([answer], styled=False).lines()


def _page(answers: Sequence[WhatIf], *, styled: bool) -> TextPage:
    page = TextPage(styled=styled)
    for answer in answers:
        page.line(answer.strategy, "bold")
        if answer.start is not None:
            page.line(f"since the owners before: {_summary(answer.start)}")
        _add_ownership(page, answer.before)
        if answer.start is not None:
            _add_moves(page, answer.start, with_topic=len(answer.before.topics) > 1)
        for step in answer.steps:
            _add_step(page, step)
    if len(answers) > 1:
        _add_comparison(page, answers)
    return page


def _add_ownership(page: TextPage, ownership: Ownership) -> None:
    several = len(ownership.topics) > 1
    if not ownership.shares:
        page.line(f"no member is left to consume {_count(len(ownership.unowned))}\n")
        return
    rows = [
        (share.member, share.total, compact_topics(share.queues, with_topic=several))
        for share in ownership.shares[:MAX_ROWS]
    ]
    page.table([TableColumn("member"), *numbers("total"), TableColumn("queues")], rows)
    _add_rest(page, len(ownership.shares), "members")
    for line in _balance_lines(ownership):
        page.line(line)
    page.line()


def _balance_lines(ownership: Ownership) -> Iterable[str]:
    several = len(ownership.topics) > 1
    for topic in ownership.topics[:MAX_ROWS]:
        name = f"{topic.topic}: " if several else ""
        yield f"{name}spread {topic.spread} (most {topic.most}, fewest {topic.fewest})"
    if several:
        yield f"all topics together: spread {ownership.spread}"
    if ownership.unowned:
        queues = compact_topics(ownership.unowned, with_topic=several).replace("\n", "; ")
        yield f"{_count(len(ownership.unowned))} without an owner: {queues}"


def _add_step(page: TextPage, step: WhatIfStep) -> None:
    change = step.movement
    page.line(f"{step.subject} {_HAPPENED[step.event]}: {_summary(change)}", "bold")
    _add_ownership(page, step.after)
    _add_moves(page, change, with_topic=len(step.after.topics) > 1)


def _summary(change: Movement) -> str:
    text = f"{_count(change.moved)} moved, minimum {change.minimum}"
    if change.added:
        text += f", {len(change.added)} new"
    if change.removed:
        text += f", {len(change.removed)} gone"
    return text


def _add_moves(page: TextPage, change: Movement, *, with_topic: bool) -> None:
    groups = [
        *_grouped(change.moves, "no owner", "no owner"),
        *_grouped(change.added, "new", "no owner"),
        *_grouped(change.removed, "no owner", "gone"),
    ]
    if not groups:
        return
    rows = [
        (previous, owner, len(queues), compact_topics(queues, with_topic=with_topic))
        for previous, owner, queues in groups[:MAX_ROWS]
    ]
    columns = [TableColumn("from"), TableColumn("to"), *numbers("count"), TableColumn("queues")]
    page.table(columns, rows)
    _add_rest(page, len(groups), "rows")
    page.line()


def _grouped(
    moves: Iterable[Move], nobody_before: str, nobody_after: str
) -> list[tuple[str, str, list[MessageQueue]]]:
    """Collect moves between the same two, in the members' order."""
    groups: dict[tuple[str, str], list[MessageQueue]] = {}
    for move in moves:
        pair = (move.previous or nobody_before, move.owner or nobody_after)
        groups.setdefault(pair, []).append(move.queue)
    return [(*pair, groups[pair]) for pair in sorted(groups)]


def _add_comparison(page: TextPage, answers: Sequence[WhatIf]) -> None:
    changes = [_changes(answer) for answer in answers]
    several = len(answers[0].before.topics) > 1
    names = ["spread", *(["in a topic"] if several else []), "unowned", "idle"]
    names += ["moved", "minimum"] if changes[0] else []
    rows: list[list[object]] = []
    for answer, its_changes in zip(answers, changes, strict=True):
        last = answer.steps[-1].after if answer.steps else answer.before
        counts = [last.spread, *([last.worst_topic] if several else [])]
        counts += [len(last.unowned), last.idle]
        if its_changes:
            counts.append(sum(change.moved for change in its_changes))
            counts.append(sum(change.minimum for change in its_changes))
        rows.append([answer.strategy, *counts])
    page.line("compared, after all events" if answers[0].steps else "compared", "bold")
    page.table([TableColumn("strategy"), *numbers(*names)], rows)


def _changes(answer: WhatIf) -> list[Movement]:
    first = [] if answer.start is None else [answer.start]
    return [*first, *(step.movement for step in answer.steps)]


def _add_rest(page: TextPage, rows: int, what: str) -> None:
    if rows > MAX_ROWS:
        page.line(f"and {rows - MAX_ROWS} more {what}; --json shows all")


def _count(queues: int) -> str:
    return f"{queues} queue" if queues == 1 else f"{queues} queues"


def compact(queues: Iterable[MessageQueue]) -> str:
    """Name queues of one topic by broker, with neighbouring numbers as ranges."""
    brokers: dict[str, list[str]] = {}
    shown = left_out = 0
    for broker, first, last in _runs(queues):
        if shown == MAX_RUNS:
            left_out += last - first + 1
            continue
        shown += 1
        brokers.setdefault(broker, []).append(str(first) if first == last else f"{first}-{last}")
    text = "  ".join(f"{broker} {','.join(runs)}" for broker, runs in brokers.items())
    return f"{text}  and {left_out} more" if left_out else text or "-"


def compact_topics(queues: Iterable[MessageQueue], *, with_topic: bool) -> str:
    """Name queues of several topics, a line for each topic."""
    by_topic: dict[str, list[MessageQueue]] = {}
    for queue in queues:
        by_topic.setdefault(queue.topic, []).append(queue)
    if not by_topic:
        return "-"
    lines = [
        f"{topic}: {compact(some)}" if with_topic else compact(some)
        for topic, some in by_topic.items()
    ]
    return "\n".join(lines)


def _runs(queues: Iterable[MessageQueue]) -> Iterable[tuple[str, int, int]]:
    """Join neighbours on one broker into (broker, first, last)."""
    run: tuple[str, int, int] | None = None
    for queue in queues:
        if run and queue.broker_name == run[0] and queue.queue_id == run[2] + 1:
            run = run[0], run[1], queue.queue_id
            continue
        if run:
            yield run
        run = queue.broker_name, queue.queue_id, queue.queue_id
    if run:
        yield run
