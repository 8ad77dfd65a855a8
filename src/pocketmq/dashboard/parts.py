"""Building blocks of pages: cards, tiles, buttons, fields, dialogs that confirm or ask for a form.

Text is always passed as text; nothing here makes HTML of what a server or client sent. What is
filled into a form is checked before one is asked to confirm it.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from fastapi import Request
from nicegui import ui
from nicegui.element import Element

from pocketmq.dashboard.desk import HOW_TO_ALLOW, Desk
from pocketmq.dashboard.frame import heading
from pocketmq.errors import InvalidInput, MQError

T = TypeVar("T")


@contextmanager
def card(title: str = "") -> Iterator[ui.element]:
    """Put what is made inside into a card, under a heading if there is a title."""
    if title:
        heading(title)
    with ui.element("section").classes("pm-card") as made:
        if title:
            made.props["aria-label"] = title
        yield made


def note(text: str) -> ui.label:
    """Add a short remark."""
    return ui.label(text).classes("pm-note")


def facts(pairs: Iterable[tuple[str, str]]) -> None:
    """Show names and values as a definition list."""
    with ui.element("dl").classes("pm-facts"):
        for name, value in pairs:
            with ui.element("dt"):
                ui.label(name)
            with ui.element("dd"):
                ui.label(value)


def button(
    text: str, pressed: Callable[[], Any] | None = None, *, primary: bool = False, kind: str = ""
) -> ui.element:
    """Make a real button."""
    made = ui.element("button").classes("pm-button")
    made.props["type"] = kind or "button"
    if primary:
        made.classes("pm-primary")
    if pressed is not None:
        made.on("click", lambda _: pressed(), args=[])
    with made:
        ui.label(text).classes("pm-inline")
    return made


def action_button(desk: Desk, text: str, pressed: Callable[[], Any]) -> ui.element:
    """Make a button for an action, disabled where actions are off; the server checks as well."""
    made = button(text, pressed)
    if not desk.actions.allowed:
        made.props["disabled"] = True
        made.props["title"] = f"Actions are off: {HOW_TO_ALLOW}"
    return made


def field(
    label: str, name: str, value: str = "", *, kind: str = "text", **attributes: str
) -> ui.element:
    """Make an input of a form, with its label."""
    with ui.element("div").classes("pm-field"):
        with ui.element("label") as caption:
            ui.label(label).classes("pm-inline")
        made = ui.element("input").classes("pm-input")
        made.props.update({"type": kind, "name": name, "value": value, **attributes})
        made.props["id"] = f"field-{name}"
        caption.props["for"] = f"field-{name}"
    return made


class _Suggestions(Element, component="suggestions.js"):
    """Suggestions of an input."""


def suggestions(name: str, words: list[str]) -> None:
    """Add suggestions for an input with `list=name`."""
    _Suggestions().props.update({"id": name, "words": words})


def choice(label: str, name: str, options: Mapping[str, str], chosen: str) -> ui.element:
    """Make a select of a form, with its label; `options` maps values to texts."""
    with ui.element("div").classes("pm-field"):
        with ui.element("label") as caption:
            ui.label(label).classes("pm-inline")
        with ui.element("select").classes("pm-input") as made:
            for value, text in options.items():
                with ui.element("option") as option:
                    ui.label(text).classes("pm-inline")
                option.props["value"] = value
                if value == chosen:
                    option.props["selected"] = True
        made.props.update({"name": name, "id": f"field-{name}"})
        caption.props["for"] = f"field-{name}"
    return made


def visitor(request: Request) -> str:
    """Return the visitor for the log: the address, and the session if there was a login."""
    address = request.client.host if request.client is not None else "?"
    session = request.scope.get("pocketmq.who")
    return address if session is None else f"{address} (session {session})"


class Tiles:
    """A row of tiles, each with a name, a label and an optional link."""

    def __init__(self, *tiles: tuple[str, str, str | None]) -> None:
        self._values: dict[str, ui.label] = {}
        self._notes: dict[str, ui.label] = {}
        with ui.element("div").classes("pm-tiles"):
            for name, label, target in tiles:
                tile = ui.element("div") if target is None else ui.link(target=target)
                with tile.classes("pm-tile"):
                    self._values[name] = ui.label("…").classes("pm-tile-value")
                    ui.label(label).classes("pm-tile-label")
                    self._notes[name] = ui.label("").classes("pm-tile-note")

    def show(self, name: str, value: str, note: str = "", *, bad: int = 0) -> None:
        """Show a value; only what has changed is sent."""
        label = self._values[name]
        if label.text != value:
            label.set_text(value)
        if self._notes[name].text != note:
            self._notes[name].set_text(note)
        label.classes(add="pm-bad" if bad else "", remove="" if bad else "pm-bad")


async def confirm(title: str, consequences: Iterable[str], do: str, typed: str = "") -> bool:
    """Ask for confirmation, listing the consequences; `typed` must be typed to confirm."""
    with ui.dialog() as dialog, ui.element("div").classes("pm-dialog"):
        heading(title)
        with ui.element("ul"):
            for line in consequences:
                with ui.element("li"):
                    ui.label(line).classes("pm-inline")
        if typed:
            name = ui.input(f"Type {typed} to confirm").props("outlined dense autocomplete=off")

        def agree() -> None:
            if not typed or str(name.value or "").strip() == typed:
                dialog.submit(True)
            else:
                ui.notify(f"Type {typed} to confirm.", type="warning")

        with ui.element("div").classes("pm-buttons"):
            button(do, agree, primary=True)
            button("Cancel", lambda: dialog.submit(False))
    try:
        return bool(await dialog)
    finally:
        if not dialog.is_deleted:
            dialog.delete()


async def perform(work: Awaitable[T], done: Callable[[T], str]) -> T | None:
    """Run an action and show its result; an error is shown, not raised."""
    try:
        result = await work
    except MQError as error:
        ui.notify(str(error), type="negative", multi_line=True, close_button="Close", timeout=0)
        return None
    ui.notify(done(result), type="positive", multi_line=True)
    return result


_LONGEST = 1024


@dataclass(frozen=True)
class FormField:
    """One field of a form: text by default."""

    label: str
    value: str | int | bool = ""
    options: tuple[str, ...] = ()
    """If given, one of these is chosen."""
    long: bool = False
    """Whether it has several lines."""
    secret: bool = False
    """Whether what is typed stays hidden."""
    longest: int = _LONGEST


async def fill_in(
    title: str, fields: Mapping[str, FormField], check: Callable[[dict[str, Any]], T]
) -> T | None:
    """Return what `check` makes of the form; None if the dialog was left.

    An error that `check` raises is shown in the dialog, to be corrected.
    """
    made: list[T] = []
    with ui.dialog() as dialog, ui.element("div").classes("pm-dialog"):
        heading(title)
        inputs = {name: _input(each) for name, each in fields.items()}
        problem = ui.label("").classes("pm-bad").props("role=alert")

        def submit() -> None:
            values = {name: _value(fields[name], each.value) for name, each in inputs.items()}
            try:
                made.append(check(values))
            except (MQError, InvalidInput) as error:
                problem.set_text(str(error))
                return
            dialog.submit(True)

        with ui.element("div").classes("pm-buttons"):
            button("Continue", submit, primary=True)
            button("Cancel", lambda: dialog.submit(False))
    wanted = await dialog
    if not dialog.is_deleted:
        dialog.delete()
    return made[-1] if wanted and made else None


def _input(each: FormField) -> Any:
    if isinstance(each.value, bool):
        return ui.checkbox(each.label, value=each.value)
    if each.options:
        return ui.select(list(each.options), label=each.label, value=each.value).props(
            "outlined dense"
        )
    if isinstance(each.value, int):
        return ui.number(each.label, value=each.value, precision=0).props("outlined dense")
    limit = f"outlined dense maxlength={each.longest}"
    if each.long:
        return ui.textarea(each.label, value=each.value).props(f"{limit} autogrow")
    complete = "new-password" if each.secret else "off"
    made = ui.input(each.label, value=each.value, password=each.secret)
    return made.props(f"{limit} autocomplete={complete}")


def _value(each: FormField, sent: object) -> str | int | bool:
    """Return what a browser sent, as the type of the field: it may send anything."""
    if isinstance(each.value, bool):
        return sent is True
    if each.options:
        return sent if isinstance(sent, str) and sent in each.options else each.value
    if isinstance(each.value, int):
        return int(sent) if isinstance(sent, int | float) and abs(sent) < 2**31 else -1
    return str(sent or "")[: each.longest]
