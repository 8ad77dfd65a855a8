"""The tables of `pocketmq allocate`, for people.

Plain words and ASCII, so that they read the same on a narrow terminal, without colour and in a
file. Piped output is never wrapped: one member is one line for each of its topics.
"""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pocketmq.balance.what_if import Move, Movement, Ownership, WhatIf, WhatIfStep
from pocketmq.cli.allocate.tables import compact_topics
from pocketmq.model.queue import MessageQueue

MAX_ROWS = 100
UNWRAPPED = 1_000_000
NUMBERS = {"total", "count", "spread", "unowned", "moved", "had to"}

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
    terminal = Console().is_terminal
    console = Console(
        highlight=False, markup=False, emoji=False, width=None if terminal else UNWRAPPED
    )
    with console.capture() as printed:
        for answer in answers:
            _print_line(console, answer.strategy, "bold")
            _print_ownership(console, answer.before)
            for step in answer.steps:
                _print_step(console, step)
        if len(answers) > 1:
            _print_comparison(console, answers)
    for line in printed.get().rstrip().split("\n"):
        print(line.rstrip())


def _print_ownership(console: Console, ownership: Ownership) -> None:
    several = len(ownership.topics) > 1
    if not ownership.shares:
        _print_line(console, f"no member is left to consume {_count(len(ownership.unowned))}\n")
        return
    table = _table("member", "total", "queues")
    for share in ownership.shares[:MAX_ROWS]:
        queues = compact_topics(share.queues, with_topic=several)
        table.add_row(Text(share.member), str(share.total), Text(queues))
    _print_table(console, table, len(ownership.shares), "members")
    for line in _balance_lines(ownership):
        _print_line(console, line)
    _print_line(console, "")


def _balance_lines(ownership: Ownership) -> Iterable[str]:
    several = len(ownership.topics) > 1
    for topic in ownership.topics[:MAX_ROWS]:
        name = f"{topic.topic}: " if several else ""
        yield f"{name}spread {topic.spread} (most {topic.most}, fewest {topic.fewest})"
    if several:
        yield f"all topics together: spread {ownership.spread}"
    if ownership.unowned:
        queues = compact_topics(ownership.unowned, with_topic=several).replace("\n", "; ")
        yield f"nobody consumes {_count(len(ownership.unowned))}: {queues}"


def _print_step(console: Console, step: WhatIfStep) -> None:
    change = step.movement
    _print_line(console, f"{step.subject} {_HAPPENED[step.event]}: {_summary(change)}", "bold")
    _print_ownership(console, step.after)
    if change.moves or change.added or change.removed:
        _print_moves(console, change, with_topic=len(step.after.topics) > 1)


def _summary(change: Movement) -> str:
    text = f"{_count(change.moved)} moved, {change.minimum} had to"
    if change.added:
        text += f", {len(change.added)} new"
    if change.removed:
        text += f", {len(change.removed)} gone"
    return text


def _print_moves(console: Console, change: Movement, *, with_topic: bool) -> None:
    table = _table("from", "to", "count", "queues")
    groups = [
        *_grouped(change.moves, "nobody", "nobody"),
        *_grouped(change.added, "new", "nobody"),
        *_grouped(change.removed, "nobody", "gone"),
    ]
    for previous, owner, queues in groups[:MAX_ROWS]:
        text = compact_topics(queues, with_topic=with_topic)
        table.add_row(Text(previous), Text(owner), str(len(queues)), Text(text))
    _print_table(console, table, len(groups), "rows")
    _print_line(console, "")


def _grouped(
    moves: Iterable[Move], nobody_before: str, nobody_after: str
) -> list[tuple[str, str, list[MessageQueue]]]:
    """Collect moves between the same two, in the members' order."""
    groups: dict[tuple[str, str], list[MessageQueue]] = {}
    for move in moves:
        pair = (move.previous or nobody_before, move.owner or nobody_after)
        groups.setdefault(pair, []).append(move.queue)
    return [(*pair, groups[pair]) for pair in sorted(groups)]


def _print_comparison(console: Console, answers: Sequence[WhatIf]) -> None:
    moving = bool(answers[0].steps)
    table = _table("strategy", "spread", "unowned", *(["moved", "had to"] if moving else []))
    for answer in answers:
        last = answer.steps[-1].after if moving else answer.before
        numbers = [last.spread, len(last.unowned)]
        if moving:
            changes = [step.movement for step in answer.steps]
            numbers.append(sum(change.moved for change in changes))
            numbers.append(sum(change.minimum for change in changes))
        table.add_row(Text(answer.strategy), *map(str, numbers))
    _print_line(console, "compared, after all events" if moving else "compared", "bold")
    console.print(table)


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in columns:
        table.add_column(column, justify="right" if column in NUMBERS else "left", overflow="fold")
    return table


def _print_table(console: Console, table: Table, rows: int, what: str) -> None:
    console.print(table)
    if rows > MAX_ROWS:
        _print_line(console, f"and {rows - MAX_ROWS} more {what}; --json shows all")


def _print_line(console: Console, line: str, style: str = "") -> None:
    console.print(Text(line, style=style, overflow="fold"))


def _count(queues: int) -> str:
    return f"{queues} queue" if queues == 1 else f"{queues} queues"
