"""Tiles: a few numbers that matter, large."""

from nicegui import ui


class Tiles:
    """A row of tiles, each with a name, a label and a page it leads to, if any."""

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
