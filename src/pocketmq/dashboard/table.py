"""Tables of any length: the server keeps all rows and sends the browser the page it shows.

Quasar's table draws them (see `table.js`), in its server-side mode: rows are sorted, searched and
cut here, and a page is sent again only if something on it has changed. Text is always text, never
HTML.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from nicegui.element import Element
from nicegui.events import GenericEventArguments

T = TypeVar("T")

PAGE = 50
"""Rows of one page, sent together."""
LONGEST_SEARCH = 200


@dataclass(frozen=True)
class Cell:
    """The content of one cell: text, and what makes it easier to read."""

    text: str
    href: str | None = None
    """A link to a page of the dashboard, as `link_to` makes it."""
    tone: str | None = None
    """good, warn, bad, faint or mono."""
    hint: str | None = None
    """A tooltip."""
    share: float | None = None
    """A bar under the text, from 0 to 1."""

    def __post_init__(self) -> None:
        if self.href is not None and not self.href.startswith("/"):
            raise ValueError(f"a link must lead to a page of the dashboard, not to {self.href!r}")

    def as_json(self) -> dict[str, Any]:
        """Return it for the browser, without what is not set."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class Column(Generic[T]):
    """One column: its cells, and what it is sorted by."""

    label: str
    cell: Callable[[T], Cell]
    sort: Callable[[T], Any] | None = None
    """Returns a value to sort by; None, which means unknown, comes last."""
    kind: str = "text"
    """text, number, time, or wrap for long text that may break anywhere."""


class _Table(Element, component="table.js"):
    """The table in the browser."""


class LiveTable(Generic[T]):
    """A table on a page. `show` replaces its rows; page, order and search stay as they are."""

    def __init__(
        self,
        label: str,
        columns: Sequence[Column[T]],
        key: Callable[[T], str],
        *,
        search: Callable[[T], str] | None = None,
        sorted_by: int | None = None,
        descending: bool = False,
        empty: str = "No entries.",
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
        self._selected: set[str] = set()
        self._waiting = True
        self._sent: dict[str, Any] = {}
        self._element = _Table()
        self._element.props.update(
            label=label,
            columns=[_column(at, column) for at, column in enumerate(columns)],
            searchable=search is not None,
            selectable=selectable,
        )
        self._element.on("request", self._request).on("search", self._search)
        self._element.on("select", self._select)
        self._update()

    @property
    def selected(self) -> set[str]:
        """The keys of the selected rows; never one that is not among the rows."""
        return {key for key in map(self._key, self._all) if key in self._selected}

    def show(self, rows: Sequence[T]) -> None:
        """Show these rows from now on."""
        self._all = rows
        self._waiting = False
        self._update()

    def _update(self) -> None:
        """Send what has changed."""
        rows = self._sorted_rows(self._found())
        pages = max(1, -(-len(rows) // PAGE))
        self._page = min(self._page, pages - 1)
        shown = rows[self._page * PAGE : (self._page + 1) * PAGE]
        wanted = {
            "rows": [self._row(row) for row in shown],
            "all": len(self._all),
            "empty": "…" if self._waiting else self._empty,
            "pagination": {
                "page": self._page + 1,
                "rowsPerPage": PAGE,
                "rowsNumber": len(rows),
                "sortBy": None if self._sorted is None else str(self._sorted),
                "descending": self._descending,
            },
        }
        changed = {name: value for name, value in wanted.items() if self._sent.get(name) != value}
        if changed:
            self._sent = wanted
            self._element.props.update(changed)
            self._element.update()

    def _row(self, row: T) -> dict[str, Any]:
        cells = {str(at): column.cell(row).as_json() for at, column in enumerate(self._columns)}
        return {"key": self._key(row), **cells}

    def _found(self) -> Sequence[T]:
        words, text = self._query.lower().split(), self._text
        if not words or text is None:
            return self._all
        return [row for row in self._all if all(word in text(row).lower() for word in words)]

    def _sorted_rows(self, rows: Sequence[T]) -> Sequence[T]:
        sort = None if self._sorted is None else self._columns[self._sorted].sort
        if sort is None:
            return rows
        valued = [(sort(row), row) for row in rows]
        unknown = [row for value, row in valued if value is None]
        known = [pair for pair in valued if pair[0] is not None]
        known.sort(key=lambda pair: pair[0], reverse=self._descending)
        return [row for _, row in known] + unknown

    # A browser may send anything, so whatever it sends is checked.

    def _request(self, event: GenericEventArguments) -> None:
        """Turn the page or change the order, as Quasar's pagination asks for."""
        match event.args:
            case {"sortBy": by, "page": page, "descending": descending}:
                pass
            case _:
                return
        column = int(by) if isinstance(by, str) and by.isascii() and by.isdigit() else None
        if column is not None and column < len(self._columns) and self._columns[column].sort:
            self._sorted, self._descending = column, descending is True
        if isinstance(page, int) and not isinstance(page, bool) and page >= 1:
            self._page = page - 1
        self._update()

    def _search(self, event: GenericEventArguments) -> None:
        if isinstance(event.args, str):
            self._query = event.args[:LONGEST_SEARCH]
            self._page = 0
            self._update()

    def _select(self, event: GenericEventArguments) -> None:
        if isinstance(event.args, list):
            sent = {each for each in event.args if isinstance(each, str)}
            self._selected = sent & set(map(self._key, self._all))


def _column(at: int, column: Column[T]) -> dict[str, Any]:
    """Return a column as Quasar takes it; columns are named by their numbers."""
    return {
        "name": str(at),
        "field": str(at),
        "label": column.label,
        "sortable": column.sort is not None,
        "align": "right" if column.kind == "number" else "left",
        "classes": column.kind,
        "headerClasses": column.kind,
    }
