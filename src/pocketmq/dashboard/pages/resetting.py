"""Moving a group to another place in a topic: a form, a question, an answer."""

from datetime import datetime

from nicegui import ui

from pocketmq.admin.offsets import LATEST, ResetResult
from pocketmq.dashboard.desk import Desk
from pocketmq.dashboard.frame import heading
from pocketmq.dashboard.parts import button, confirm, note, perform
from pocketmq.dashboard.words import moment

FIRST, LAST, AT = "The first message", "Behind the last message", "A moment"


class Resetting:
    """Asks which topic and where to, then whether it is meant, then does it."""

    def __init__(self, desk: Desk, who: str, group: str, topics: list[str]) -> None:
        self._desk = desk
        self._who = who
        self._group = group
        self._topics = topics

    async def ask(self) -> None:
        """Go through all of it."""
        if not self._topics:
            ui.notify(f"{self._group} has consumed no topic yet.", type="warning")
            return
        with ui.dialog() as dialog, ui.element("div").classes("pm-dialog"):
            heading(f"Reset offsets of {self._group}")
            topic = ui.select(self._topics, label="Topic", value=self._topics[0])
            where = ui.select([FIRST, LAST, AT], label="Go on at", value=FIRST)
            when = ui.input("Moment, such as 2026-01-31 12:00").props("outlined dense")
            for each in (topic, where):
                each.props("outlined dense")
            when.bind_visibility_from(where, "value", value=AT)
            note("Moments are in the time of the machine the dashboard runs on.")
            with ui.element("div").classes("pm-buttons"):
                button("Go on", lambda: dialog.submit(True), primary=True)
                button("Cancel", lambda: dialog.submit(False))
        wanted = await dialog
        chosen, place, text = str(topic.value), str(where.value), str(when.value or "")
        if not dialog.is_deleted:
            dialog.delete()
        time_ms = _time(place, text)
        if wanted and time_ms is None:
            ui.notify(f"{text!r} is no moment.", type="negative")
        elif wanted and time_ms is not None:
            await self._do(chosen, time_ms)

    async def _do(self, topic: str, time_ms: int) -> None:
        goal = {0: "at the first message", LATEST: "behind the last message"}.get(
            time_ms, f"at {moment(time_ms)}"
        )
        consequences = [
            f"{self._group} goes on {goal} in every queue of {topic}.",
            "Messages it goes back over are consumed again; those it skips are not consumed.",
            "Members that are online go there at once. Other groups are not touched.",
        ]
        if await confirm(f"Reset {self._group} in {topic}?", consequences, "Reset"):
            work = self._desk.actions.reset_offset(self._who, self._group, topic, time_ms)
            await perform(work, _told)


def _told(result: ResetResult) -> str:
    told = "its members were told" if result.online else "stored for members to come"
    silent = "".join(f"; did not answer: {each}" for each in result.missing)
    return f"{len(result.queues)} queues were reset, {told}{silent}."


def _time(place: str, text: str) -> int | None:
    """Give where to go, None if the text is no moment."""
    if place != AT:
        return LATEST if place == LAST else 0
    try:
        return int(datetime.fromisoformat(text.strip()).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        return None
