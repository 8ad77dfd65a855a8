"""The display of the demo: live on a terminal, plain lines elsewhere."""

import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from pocketmq.cli.demo.cast import ConsumerProcess

COLOURS = ("blue", "green", "yellow", "magenta", "cyan", "red")
_NEWS = 6


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
                self._console.print(Text(line))

    def act(self, title: str) -> None:
        """Start an act."""
        self.title = title
        self.tell(title)

    def tell(self, text: str) -> None:
        """Report an event."""
        line = f"{time.monotonic() - self._began:5.1f} s  {text}"
        self._news.append(line)
        if self._shown is None:
            self._console.print(Text(line))

    def _draw(self) -> RenderableType:
        state = self._state()
        head = Text.assemble(
            (f"{time.monotonic() - self._began:5.1f} s  ", "dim"), (self.title, "bold")
        )
        news = Text("\n".join(self._news[-_NEWS:]), style="dim")
        return Group(
            head, Text(""), state.queues(), Text(""), state.members(), state.summary(), news
        )


class DemoState:
    """A snapshot of the play, and how it is drawn."""

    def __init__(
        self,
        members: Sequence[ConsumerProcess],
        brokers: dict[str, bool],
        queues: int,
        numbers: dict[str, int],
    ) -> None:
        self._members = members
        self._brokers = brokers
        self._queues = queues
        self._numbers = numbers

    def queues(self) -> Table:
        """Return the queues of each broker in the colours of their owners."""
        table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), show_header=False)
        for broker, up in self._brokers.items():
            cells = [Text(broker, style="bold" if up else "dim strike")]
            cells += [self._cell(f"{broker}:{number}", up) for number in range(self._queues)]
            table.add_row(*cells)
        return table

    def _cell(self, queue: str, up: bool) -> Text:
        owners = [at for at, member in enumerate(self._members) if queue in member.holds]
        if not up:
            return Text("  --  ", style="dim")
        if not owners:
            return Text("  ..  ", style="white on red")
        names = "+".join(self._members[at].name for at in owners)
        style = f"black on {COLOURS[owners[0] % len(COLOURS)]}"
        return Text(f"{names:^6}", style=f"{style} blink" if len(owners) > 1 else style)

    def members(self) -> Table:
        """Return the table of members."""
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        table.add_column("member")
        table.add_column("")
        table.add_column("queues", justify="right")
        table.add_column("consumed", justify="right")
        for at, member in enumerate(self._members):
            colour = COLOURS[at % len(COLOURS)] if member.there else "dim"
            table.add_row(
                Text(member.name, style=colour),
                Text(member.state, style="" if member.there else "dim"),
                str(len(member.holds)), f"{len(member.numbers):,}",
            )  # fmt: skip
        return table

    def summary(self) -> Text:
        """Return the totals."""
        text = "   ".join(f"{name} {value:,}" for name, value in self._numbers.items())
        return Text(f"\n{text}\n", style="bold")
