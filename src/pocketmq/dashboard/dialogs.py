"""Dialogs with a form: what is filled in is checked before one is asked to confirm it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from nicegui import ui

from pocketmq.dashboard.frame import heading
from pocketmq.dashboard.parts import button
from pocketmq.errors import InvalidInput, MQError

T = TypeVar("T")

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
