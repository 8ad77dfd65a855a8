"""What commands print: safe text, JSON and tables, and files that are written whole.

Tables are rich's. It is imported where it is used, since that takes longer than most
commands take to start; so are msgspec and pathlib, since every command imports this module.
"""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

if TYPE_CHECKING:
    from pathlib import Path

UNWRAPPED = 1_000_000
"""The width of piped output: a row is always one line."""


def printable(text: str, keep: str = "") -> str:
    r"""Return the text with control characters as escapes such as `\x1b`, except those to keep.

    Names and bodies come from files and peers; a terminal must not obey them.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else repr(c)[1:-1] for c in text)


def counted(count: int, one: str, many: str) -> str:
    """Return a count with its noun: `1 batch`, `2 batches`."""
    return f"{count:,} {one if count == 1 else many}"


def print_json(value: Any) -> None:
    """Print one JSON document."""
    import msgspec

    rest = memoryview(msgspec.json.encode(value) + b"\n")
    while rest:  # an unbuffered stream may accept only a part
        rest = rest[sys.stdout.buffer.write(rest) :]


class TableColumn(NamedTuple):
    """A column of a table."""

    name: str
    right: bool = False
    least: int = 0
    """The minimal width."""


def numbers(*names: str) -> list[TableColumn]:
    """Return columns of numbers, which are right-justified."""
    return [TableColumn(name, right=True) for name in names]


class TextPage:
    """Lines and tables for people, fitted to the terminal; plain and unwrapped when piped.

    `styled` headings are bold on a terminal.
    """

    def __init__(self, *, styled: bool = True) -> None:
        from rich.console import Console

        self._console = Console(
            color_system="auto" if styled else None,
            highlight=False,
            markup=False,
            emoji=False,
            width=None if Console().is_terminal else UNWRAPPED,
        )
        self._console.begin_capture()

    def line(self, text: str = "", style: str = "") -> None:
        """Add a line of text."""
        from rich.text import Text

        self._console.print(Text(printable(text, keep="\n"), style=style, overflow="fold"))

    def table(self, columns: Sequence[TableColumn], rows: Sequence[Sequence[object]]) -> None:
        """Add a table."""
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        for name, right, least in columns:
            justify: Any = "right" if right else "left"
            table.add_column(name, justify=justify, overflow="fold", min_width=least or None)
        for row in rows:
            table.add_row(*(Text(printable(str(cell), keep="\n")) for cell in row))
        self._console.print(table)

    def lines(self) -> list[str]:
        """Return everything that was added; the page is finished."""
        text = self._console.end_capture().rstrip()
        return [line.rstrip() for line in text.split("\n")] if text else []

    def print(self) -> None:
        """Print everything that was added."""
        for line in self.lines():
            print(line)


def print_table(
    title: str, columns: Sequence[TableColumn], rows: Sequence[Sequence[object]]
) -> None:
    """Print a table under a title, if it has one."""
    page = TextPage()
    if title:
        page.line(title, "bold")
    page.table(columns, rows)
    page.print()


def write_whole(path: "Path", content: bytes) -> None:
    """Write a file completely or not at all. Raises `click.UsageError` if it cannot be written."""
    draft = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(content)
        draft.replace(path)
    except OSError as problem:
        raise click.UsageError(f"cannot write {path}: {problem.strerror}") from problem
