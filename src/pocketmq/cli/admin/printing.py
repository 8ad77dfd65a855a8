"""Commands that print the messages of a topic, of a queue, or the dead letters of a group."""

from collections import Counter
from collections.abc import AsyncIterator

import click

from pocketmq.admin.admin import Admin
from pocketmq.admin.messages import original_topic
from pocketmq.admin.reading import Page, PageStatus
from pocketmq.cli.admin import flags
from pocketmq.cli.admin.frame import admin_command
from pocketmq.cli.admin.java_text import body_text, one_line
from pocketmq.cli.admin.shown import Shown, row, table_lines, told, when_exactly
from pocketmq.cli.output import TableColumn
from pocketmq.errors import Absent, RouteNotFound
from pocketmq.model import MessageQueue, sort_queues
from pocketmq.protocol import ReceivedMessage

_CHARSET = flags.text(
    "-c", "--charsetName", "charset", help="Character set of bodies, such as GBK."
)
_EXPRESSION = flags.text(
    "-s", "--subExpression", "expression", help="Only these tags, such as 'a || b'."
)
_PAGE = 32
_DEAD_LETTERS = (
    TableColumn("#Message ID", least=32),
    TableColumn("#Dead Since", least=24),
    TableColumn("#Topic", least=24),
    TableColumn("#Body"),
)


async def _bounds(
    admin: Admin, queue: MessageQueue, begin: int | None, end: int | None
) -> tuple[int, int]:
    first, last = await admin.offsets.bounds(queue)
    if begin is not None:
        first = await admin.offsets.at_time(queue, begin)
    if end is not None:
        last = await admin.offsets.at_time(queue, end)
    return first, last


async def _pages(
    admin: Admin, queue: MessageQueue, first: int, last: int, expression: str | None
) -> AsyncIterator[Page]:
    """Yield pages until a queue is read up to `last`."""
    while first < last:
        page = await admin.messages.page(queue, first, _PAGE, expression or "*")
        yield page
        if page.status in {PageStatus.NO_NEW_MSG, PageStatus.OFFSET_ILLEGAL}:
            return
        if page.next_offset <= first:
            return
        first = page.next_offset


@admin_command(
    "printMsg",
    flags.TOPIC,
    _CHARSET,
    _EXPRESSION,
    flags.BEGIN,
    flags.END,
    flags.truth("-d", "--printBody", "bodies", default=True, help="Print bodies."),
    flags.text("-l", "--lmqParentTopic", "parent", help=flags.IGNORED),
)
async def print_topic(
    admin: Admin,
    *,
    topic: str,
    charset: str | None,
    expression: str | None,
    begin: int | None,
    end: int | None,
    bodies: bool,
    parent: str | None,
) -> Shown:
    """Print the messages of a topic, queue by queue.

    With --json, one object per line.
    """
    del parent
    route = await admin.topics.route(topic)
    queues = sort_queues(route.subscribe_queues(topic))

    async def shown() -> AsyncIterator[Shown]:
        for queue in queues:
            first, last = await _bounds(admin, queue, begin, end)
            yield Shown([f"minOffset={first}, maxOffset={last}, {queue.java_text()}"], [])
            async for page in _pages(admin, queue, first, last, expression):
                lines = [
                    one_line(message, body_text(message, charset) if bodies else None)
                    for message in page.messages
                ]
                yield Shown([*lines, *_remark(queue, page)], page.messages)
            yield Shown(["-" * 56], [])

    return Shown([], [], more=shown())


def _remark(queue: MessageQueue, page: Page) -> list[str]:
    """Return mqadmin's remark on a page without messages."""
    if page.status is PageStatus.FOUND:
        return []
    said = "no matched msg." if page.status is PageStatus.NO_MATCHED_MSG else "print msg finished."
    return [f"{queue.java_text()} {said} status={page.status.value}, offset={page.next_offset}"]


@admin_command(
    "printMsgByQueue",
    flags.TOPIC,
    flags.text("-a", "--brokerName", "broker", help="Name of the broker.", required=True),
    flags.QUEUE_ID,
    _CHARSET,
    _EXPRESSION,
    flags.BEGIN,
    flags.END,
    flags.truth(
        "-p", "--printMsg", "--print-msg", "messages", default=False, help="Print the messages."
    ),
    flags.truth("-d", "--printBody", "bodies", default=False, help="Print their bodies."),
    flags.truth("-f", "--calculate", "count", default=False, help="Count messages by tag."),
)
async def print_queue(
    admin: Admin,
    *,
    topic: str,
    broker: str,
    queue_id: int,
    charset: str | None,
    expression: str | None,
    begin: int | None,
    end: int | None,
    messages: bool,
    bodies: bool,
    count: bool,
) -> Shown:
    """Print or count the messages of a queue.

    With --json, one object per line.
    """
    queue = MessageQueue(topic, broker, queue_id)
    first, last = await _bounds(admin, queue, begin, end)

    async def shown() -> AsyncIterator[Shown]:
        tags: Counter[str] = Counter()
        async for page in _pages(admin, queue, first, last, expression):
            if page.status is not PageStatus.FOUND:
                break
            tags.update(message.tag for message in page.messages if message.tag)
            if messages:
                lines = [
                    one_line(message, body_text(message, charset) if bodies else None)
                    for message in page.messages
                ]
                yield Shown(lines, page.messages)
        if count:
            counted = tags.most_common()
            lines = [row("Tag: %-30s Count: %s", *pair) for pair in counted]
            yield Shown(lines, [{"tag": tag, "count": total} for tag, total in counted])

    return Shown([], [], more=shown())


@admin_command(
    "consumeMessage",
    flags.TOPIC,
    flags.text("-b", "--brokerName", "broker", help="Name of the broker."),
    flags.number("-i", "--queueId", "queue_id", help="Queue id; needs -b."),
    flags.number("-o", "--offset", help="First offset; needs -i."),
    flags.text("-g", "--consumerGroup", "group", help=flags.IGNORED),
    flags.at_time("-s", "--beginTimestamp", "begin", help="Only messages stored since then."),
    flags.END,
    flags.number(
        "-c", "--MessageNumber", "limit", default=128, least=1, help="Maximum number of messages."
    ),
)
async def consume(
    admin: Admin,
    *,
    topic: str,
    broker: str | None,
    queue_id: int | None,
    offset: int | None,
    group: str | None,
    begin: int | None,
    end: int | None,
    limit: int,
) -> Shown:
    """Print messages from an offset or time on.

    No group is joined, nothing is committed.
    """
    del group
    if queue_id is not None and broker is None:
        raise click.UsageError("-i needs the queue's broker; give -b")
    if offset is not None and queue_id is None:
        raise click.UsageError("-o needs the offset's queue; give -i")
    if begin is not None and end is not None and begin > end:
        raise click.UsageError("-s is after -e; give an earlier time")
    route = await admin.topics.route(topic)
    queues = [
        queue
        for queue in sort_queues(route.subscribe_queues(topic))
        if broker in {None, queue.broker_name} and queue_id in {None, queue.queue_id}
    ]
    if not queues:
        raise click.UsageError(f"topic {topic!r} has no such queue")
    lines: list[str] = []
    found: list[ReceivedMessage] = []
    for queue in queues:
        first, last = await _bounds(admin, queue, begin, end)
        async for page in _pages(admin, queue, max(first, offset or 0), last, None):
            part = page.messages[: limit - len(found)]
            if part:
                lines.append("Consume ok")
                lines += [one_line(message, body_text(message)) for message in part]
                found += part
            if len(found) >= limit:
                return Shown(lines, found)
    return Shown(lines, found)


@admin_command(
    "deadLetters",
    flags.GROUP,
    flags.number(
        "-m",
        "--maxNum",
        "limit",
        default=64,
        least=1,
        help="Maximum number of messages of each queue.",
    ),
    flags.flag("--resend", help="Send copies to their original topics."),
    flags.text("-i", "--msgId", "message_id", help="Only this message."),
)
async def dead_letters(
    admin: Admin, *, group: str, limit: int, resend: bool, message_id: str | None
) -> Shown:
    """Show or resend the dead letters of a group.

    Resent messages stay in the dead-letter topic, too.
    """
    try:
        found = await admin.messages.dead_letters(group, limit)
    except RouteNotFound:
        raise Absent("dead letter of group", group) from None
    messages = [
        each for each in found.messages if message_id is None or each.message_id == message_id
    ]
    if message_id is not None and not messages:
        raise Absent("dead letter", message_id, f"in group {group!r}")
    if not resend:
        rows = [
            (
                each.message_id,
                when_exactly(each.store_timestamp_ms),
                original_topic(each),
                body_text(each)[:100],
            )
            for each in messages
        ]
        return Shown(table_lines(_DEAD_LETTERS, rows), messages, told(found.missing))
    sent = await admin.messages.resend(messages)
    lines = [
        f"resent {each.message_id} to {each.topic} as {each.receipt.message_id}"
        for each in sent
        if each.receipt is not None
    ]
    problems = [f"{each.message_id}: {each.error}" for each in sent if each.receipt is None]
    return Shown(lines, sent, (*told(found.missing), *problems))
