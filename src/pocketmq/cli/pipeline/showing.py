"""How pipelines show themselves: a line of progress on a terminal, tables, files written whole."""

import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import click
import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pocketmq.cli.output import printable

UNWRAPPED = 1_000_000


class ProgressLine:
    """One line on stderr that is written over; nothing at all where stderr is no terminal."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()
        self._length = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.say("")

    def say(self, text: str) -> None:
        """Show this instead of what was shown."""
        if self._shown and (text or self._length):
            line = printable(text)[:200]
            print(
                f"\r{line}{' ' * (self._length - len(line))}", end="", file=sys.stderr, flush=True
            )
            self._length = len(line)
            if not text:
                print("\r", end="", file=sys.stderr, flush=True)


def print_table(
    title: str, columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[object]]
) -> None:
    """Print a table; a column is its name and `left` or `right`."""
    terminal = Console().is_terminal
    console = Console(
        highlight=False, markup=False, emoji=False, width=None if terminal else UNWRAPPED
    )
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name, side in columns:
        table.add_column(name, justify="right" if side == "right" else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(str(cell))) for cell in row))
    with console.capture() as printed:
        if title:
            console.print(Text(printable(title), style="bold"))
        console.print(table)
    for line in printed.get().rstrip().split("\n"):
        print(line.rstrip())


def print_json(value: Any) -> None:
    """Print one JSON document."""
    rest = memoryview(msgspec.json.encode(value) + b"\n")
    while rest:  # an unbuffered stream may take a part only
        rest = rest[sys.stdout.buffer.write(rest) :]


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it is there whole or not at all; a mistake is told as wrong input."""
    draft = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(content)
        draft.replace(path)
    except OSError as problem:
        raise click.UsageError(f"cannot write {path}: {problem.strerror}") from problem
