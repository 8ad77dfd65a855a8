"""A dialog that writes a message, shows what will happen, and sends it."""

from typing import Any

from pocketmq.dashboard.actions.sending import written_message
from pocketmq.dashboard.desk import Desk
from pocketmq.dashboard.dialogs import FormField, fill_in
from pocketmq.dashboard.formatting import size
from pocketmq.dashboard.parts import confirm, perform
from pocketmq.model import Message

_FIELDS = {
    "body": FormField("Body", long=True, longest=256 * 1024),
    "tag": FormField("Tag"),
    "keys": FormField("Keys, separated by blanks"),
    "properties": FormField(
        "Properties, such as region=eu, one in a line", long=True, longest=8192
    ),
}


async def write_and_send(desk: Desk, who: str, topic: str) -> None:
    """Ask for a message to a topic, then for confirmation, then send it."""

    def checked(given: dict[str, Any]) -> Message:
        return written_message(
            topic, given["tag"], given["keys"], given["properties"], given["body"]
        )

    message = await fill_in(f"New message to {topic}", _FIELDS, checked)
    if message is None:
        return
    consequences = [
        f"A message of {size(len(message.body))} is sent to {topic}.",
        "Every group of the topic receives it. It cannot be taken back.",
    ]
    if await confirm(f"Send a message to {topic}?", consequences, "Send"):
        work = desk.actions.sending.send(who, message)
        await perform(work, lambda receipt: f"Sent: {receipt.message_id}.")
