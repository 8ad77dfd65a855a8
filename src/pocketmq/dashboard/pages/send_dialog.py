"""A dialog that writes a message, shows what will happen, and sends it."""

from nicegui import ui

from pocketmq.dashboard.actions.sending import written_message
from pocketmq.dashboard.desk import Desk
from pocketmq.dashboard.formatting import size
from pocketmq.dashboard.frame import heading
from pocketmq.dashboard.parts import button, confirm, perform
from pocketmq.errors import InvalidInput
from pocketmq.model import Message

_LONGEST_BODY = 256 * 1024


async def write_and_send(desk: Desk, who: str, topic: str) -> None:
    """Ask for a message to a topic, then for confirmation, then send it."""
    message = await _written(topic)
    if message is None:
        return
    consequences = [
        f"A message of {size(len(message.body))} is sent to {topic}.",
        "Every group of the topic receives it. It cannot be taken back.",
    ]
    if await confirm(f"Send a message to {topic}?", consequences, "Send"):
        work = desk.actions.sending.send(who, message)
        await perform(work, lambda receipt: f"Sent: {receipt.message_id}.")


async def _written(topic: str) -> Message | None:
    """Return the message that was written; None if the dialog was left."""
    with ui.dialog() as dialog, ui.element("div").classes("pm-dialog"):
        heading(f"New message to {topic}")
        body = ui.textarea("Body").props(f"outlined dense autogrow maxlength={_LONGEST_BODY}")
        tag = ui.input("Tag").props("outlined dense maxlength=255")
        keys = ui.input("Keys, separated by blanks").props("outlined dense maxlength=1024")
        properties = ui.textarea("Properties, such as region=eu, one in a line")
        properties.props("outlined dense autogrow maxlength=8192")
        problem = ui.label("").classes("pm-bad").props("role=alert")
        made: list[Message] = []

        def check() -> None:
            given = (each.value or "" for each in (tag, keys, properties, body))
            try:
                made.append(written_message(topic, *map(str, given)))
            except InvalidInput as error:
                problem.set_text(str(error))
                return
            dialog.submit(True)

        with ui.element("div").classes("pm-buttons"):
            button("Continue", check, primary=True)
            button("Cancel", lambda: dialog.submit(False))
    wanted = await dialog
    if not dialog.is_deleted:
        dialog.delete()
    return made[-1] if wanted and made else None
