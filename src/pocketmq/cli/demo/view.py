"""The display of the demo: live on a terminal, plain lines elsewhere."""

import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from pocketmq.cli.demo.cast import ConsumerProcess, DemoGroup, owned

COLOURS = ("blue", "green", "yellow", "magenta", "cyan", "red")
_NEWS = 8
_SIDE_BY_SIDE = 93
"""Columns that two blocks of queues need beside each other."""
_LEGEND = (
    "red: no owner   +: two owners   ~: the one before is finishing   !: kept, its broker is away"
)
_FINISHING = frozenset({"draining", "behind barrier", "filling hole"})


class View:
    """Shows the play; `state` returns what to draw, at every refresh. Used with `with`."""

    def __init__(self, state: "Callable[[], DemoState]") -> None:
        self._console = Console(highlight=False)
        self._live = self._console.is_terminal
        self._state = state
        self._began = time.monotonic()
        self._news: list[str] = []
        self._shown: Live | None = None
        self.title = ""

    def __enter__(self) -> Self:
        if self._live:
            self._shown = Live(
                get_renderable=self._draw, console=self._console, refresh_per_second=5,
                transient=True, redirect_stderr=False,
            )  # fmt: skip
            self._shown.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._shown is not None:
            self._shown.stop()
            self._shown = None
            for line in self._news:
                self._console.print(Text(line), soft_wrap=True)

    def act(self, title: str) -> None:
        """Start an act."""
        self.title = title
        self.tell(title)

    def tell(self, text: str) -> None:
        """Report an event."""
        line = f"{time.monotonic() - self._began:5.1f} s  {text}"
        self._news.append(line)
        if self._shown is None:
            self._console.print(Text(line), soft_wrap=True)

    def _draw(self) -> RenderableType:
        state = self._state()
        head = Text.assemble(
            (f"{time.monotonic() - self._began:5.1f} s  ", "dim"), (self.title, "bold")
        )
        news = Text("\n".join(self._news[-_NEWS:]), style="dim")
        wide = self._console.width >= _SIDE_BY_SIDE
        return Group(
            head, Text(""), state.queues(wide=wide), Text(_LEGEND, style="dim"), Text(""),
            state.members(), Text(""), news,
        )  # fmt: skip


class DemoState:
    """A snapshot of the play, and how it is drawn."""

    def __init__(
        self,
        groups: Sequence[DemoGroup],
        brokers: dict[str, bool],
        queues: int,
        *,
        sent: int,
        lag: dict[str, int],
    ) -> None:
        self._groups = [(group, list(group.members)) for group in groups]
        self._brokers = brokers
        self._queues = queues
        self._sent = sent
        self._lag = lag

    def queues(self, *, wide: bool) -> Table:
        """Return each group's queues in the colours of their owners, side by side if `wide`."""
        outer = Table.grid(padding=(0, 2, 0, 0))
        blocks = [
            self._block(group.strategy, members, named=at == 0 or not wide)
            for at, (group, members) in enumerate(self._groups)
        ]
        if wide:
            outer.add_row(*blocks)
        else:
            for block in blocks:
                outer.add_row(block)
        return outer

    def _block(self, strategy: str, members: Sequence[ConsumerProcess], *, named: bool) -> Group:
        shown = [(member.name, member.stages) for member in members]
        over = bool(members) and not any(member.there for member in members)
        table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), show_header=False)
        for broker, up in self._brokers.items():
            cells = [Text(broker, style="bold" if up else "dim strike")] if named else []
            queues = [f"{broker}:{number}" for number in range(self._queues)]
            cells += [queue_cell(queue, shown, up=up and not over) for queue in queues]
            table.add_row(*cells)
        return Group(Text(" " * 9 * named + strategy, style="bold"), table)

    def members(self) -> Table:
        """Return the table of members, the groups side by side."""
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        table.add_column("member")
        for group, _ in self._groups:
            table.add_column(group.strategy)
            table.add_column("queues", justify="right")
            table.add_column("consumed", justify="right")
        most = max((members for _, members in self._groups), key=len)
        for at, member in enumerate(most):
            cells: list[Text | str] = [Text(member.name, style=COLOURS[at % len(COLOURS)])]
            for _, members in self._groups:
                cells += _member_cells(members[at]) if at < len(members) else ["", "", ""]
            table.add_row(*cells)
        totals = [f"{self._sent:,} sent"]
        for group, _ in self._groups:
            totals += [f"lag {self._lag.get(group.name, 0):,}", "", f"{group.consumed:,}"]
        table.add_row(*(Text(total, style="bold") for total in totals))
        return table


def queue_cell(queue: str, members: Sequence[tuple[str, Mapping[str, str]]], *, up: bool) -> Text:
    """Return a queue as it is drawn: its owner, in the owner's colour, and what is unusual.

    `members` are their names and the stages of their queues.
    """
    owners = [at for at, (_, stages) in enumerate(members) if queue in owned(stages)]
    if not up:
        return Text(" --!" if owners else " -- ", style="dim")
    if not owners:
        return Text(" .. ", style="white on red")
    style = f"black on {COLOURS[owners[0] % len(COLOURS)]}"
    if len(owners) > 1:
        first, second = (members[at][0] for at in owners[:2])
        return Text(f"{first}+{second[1:]}", style=f"{style} blink")
    seen = {stages.get(queue) for _, stages in members}
    mark = "!" if "fenced" in seen else "~" if seen & _FINISHING else " "
    return Text(f" {members[owners[0]][0]}{mark}", style=style)


def _member_cells(member: ConsumerProcess) -> list[Text | str]:
    style = "" if member.there else "dim"
    return [
        Text(member.state, style=style),
        Text(str(len(member.holds)), style=style),
        Text(f"{len(member.got):,}", style=style),
    ]
