"""`deadLetters`: the messages a group gave up, shown or sent again."""

from pocketmq.admin.admin import Admin
from pocketmq.cli.admin.flags import GROUP, flag, number, text
from pocketmq.cli.admin.frame import admin_command
from pocketmq.cli.admin.java_text import body_text
from pocketmq.cli.admin.shown import Shown, row, told, when_exactly
from pocketmq.errors import Absent, RouteNotFound

_COLUMNS = "%-32s %-24s %-24s %s"


@admin_command(
    "deadLetters",
    GROUP,
    number("-m", "--maxNum", "limit", default=64, least=1, help="So many of each queue at most."),
    flag("--resend", help="Send copies to the topics they came from; the originals stay."),
    text("-i", "--msgId", "message_id", help="One message."),
)
async def dead_letters(
    admin: Admin, *, group: str, limit: int, resend: bool, message_id: str | None
) -> Shown:
    """Show the messages a group gave up, or send them again."""
    try:
        found = await admin.messages.dead_letters(group, limit)
    except RouteNotFound:
        raise Absent("dead letter", group, "the group has given up no message") from None
    messages = [
        each for each in found.messages if message_id is None or each.message_id == message_id
    ]
    if message_id is not None and not messages:
        raise Absent("dead letter", message_id, f"of group {group!r}")
    if not resend:
        lines = [row(_COLUMNS, "#Message ID", "#Given Up", "#Topic", "#Body")]
        for each in messages:
            topic = each.get_property("DLQ_ORIGIN_TOPIC") or each.get_property("RETRY_TOPIC") or ""
            moment = when_exactly(each.store_timestamp_ms)
            lines.append(row(_COLUMNS, each.message_id, moment, topic, body_text(each)[:100]))
        return Shown(lines, messages, told(found.missing))
    sent = await admin.messages.resend(messages)
    lines = [
        f"resent {each.message_id} to {each.topic} as {each.receipt.message_id}"
        for each in sent
        if each.receipt is not None
    ]
    problems = [f"{each.message_id}: {each.error}" for each in sent if each.receipt is None]
    return Shown(lines, sent, (*told(found.missing), *problems))


COMMANDS = {"deadLetters": dead_letters}
