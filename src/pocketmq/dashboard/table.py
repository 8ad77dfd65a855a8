"""Tables of any length: the server keeps all rows and sends the browser the page it looks at.

Rows are sorted, searched and cut here. A page is sent again only if something on it has changed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from nicegui.element import Element
from nicegui.events import GenericEventArguments

T = TypeVar("T")

PAGE = 50
"""Rows sent at once."""
LONGEST_SEARCH = 200


@dataclass(frozen=True)
class Cell:
    """What stands in one place: text, and what makes it easier to read."""

    text: str
    href: str | None = None
    """Where it leads: a path of ours, such as `link_to` gives."""
    tone: str | None = None
    """good, warn, bad, faint or mono."""
    hint: str | None = None
    """Shown when the mouse rests on it."""
    share: float | None = None
    """A bar under the text, from 0 to 1."""

    def __post_init__(self) -> None:
        if self.href is not None and not self.href.startswith("/"):
            raise ValueError(f"a link leads to a page of ours, not to {self.href!r}")

    def told(self) -> dict[str, Any]:
        """Give it for the browser, without what is not set."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class Column(Generic[T]):
    """One column: what stands in it, and by what it is sorted."""

    label: str
    cell: Callable[[T], Cell]
    sort: Callable[[T], Any] | None = None
    """Gives a value to sort by; None, which means unknown, comes last."""
    kind: str = "text"
    """text, number, time, or wrap for long text that may be cut anywhere."""


class _Grid(Element, component="table.js"):
    """The table in the browser."""


class LiveTable(Generic[T]):
    """A table on a page. `show` replaces its rows; the browser's view stays where it is."""

    def __init__(
        self,
        label: str,
        columns: Sequence[Column[T]],
        key: Callable[[T], str],
        *,
        search: Callable[[T], str] | None = None,
        sorted_by: int | None = None,
        descending: bool = False,
        empty: str = "Nothing here.",
        selectable: bool = False,
    ) -> None:
        self._columns = columns
        self._key = key
        self._text = search
        self._sorted = sorted_by
        self._descending = descending
        self._empty = empty
        self._all: Sequence[T] = ()
        self._query = ""
        self._page = 0
        self.chosen: set[str] = set()
        """The keys of chosen rows, if rows can be chosen."""
        self.grid = _Grid()
        self.grid.props.update(
            label=label,
            columns=[
                {"label": each.label, "kind": each.kind, "sortable": each.sort is not None}
                for each in columns
            ],
            searchable=search is not None,
            selectable=selectable,
        )
        self.grid.on("sort", self._sort).on("turn", self._turn)
        self.grid.on("search", self._search).on("choose", self._choose)
        self._told: dict[str, Any] = {}
        self._waiting = True
        self._tell()

    def show(self, rows: Sequence[T]) -> None:
        """Show these rows from now on."""
        self._all = rows
        self._waiting = False
        self.chosen &= {self._key(row) for row in rows} if self.chosen else set()
        self._tell()

    def _tell(self) -> None:
        rows = self._sorted_rows(self._wanted())
        pages = max(1, -(-len(rows) // PAGE))
        self._page = min(self._page, pages - 1)
        shown = rows[self._page * PAGE : (self._page + 1) * PAGE]
        told = {
            "rows": [
                {
                    "key": self._key(row),
                    "cells": [column.cell(row).told() for column in self._columns],
                }
                for row in shown
            ],
            "total": len(rows),
            "all": len(self._all),
            "page": self._page,
            "pages": pages,
            "sorted": -1 if self._sorted is None else self._sorted,
            "descending": self._descending,
            "chosen": sorted(self.chosen),
            "empty": "…" if self._waiting else self._empty,
        }
        changed = {name: value for name, value in told.items() if self._told.get(name) != value}
        if changed:
            self._told = told
            self.grid.props.update(changed)
            self.grid.update()

    def _wanted(self) -> Sequence[T]:
        words, text = self._query.lower().split(), self._text
        if not words or text is None:
            return self._all
        return [row for row in self._all if all(word in text(row).lower() for word in words)]

    def _sorted_rows(self, rows: Sequence[T]) -> Sequence[T]:
        sort = None if self._sorted is None else self._columns[self._sorted].sort
        if sort is None:
            return rows
        known = [(sort(row), row) for row in rows]
        unknown = [row for value, row in known if value is None]
        told = [pair for pair in known if pair[0] is not None]
        told.sort(key=lambda pair: pair[0], reverse=self._descending)
        return [row for _, row in told] + unknown

    # What a browser says is checked: anybody can say anything.

    def _sort(self, event: GenericEventArguments) -> None:
        column = _whole(event.args)
        if column is None or not 0 <= column < len(self._columns):
            return
        if self._columns[column].sort is None:
            return
        self._descending = self._sorted == column and not self._descending
        self._sorted = column
        self._tell()

    def _turn(self, event: GenericEventArguments) -> None:
        page = _whole(event.args)
        if page is not None and page >= 0:
            self._page = page
            self._tell()

    def _search(self, event: GenericEventArguments) -> None:
        if isinstance(event.args, str):
            self._query = event.args[:LONGEST_SEARCH]
            self._page = 0
            self._tell()

    def _choose(self, event: GenericEventArguments) -> None:
        match event.args:
            case [str() as key, bool() as wanted] if key in {self._key(row) for row in self._all}:
                (self.chosen.add if wanted else self.chosen.discard)(key)
                self._told["chosen"] = sorted(self.chosen)  # the browser shows it already


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
