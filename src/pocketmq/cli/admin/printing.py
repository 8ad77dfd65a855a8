"""Commands that print the messages of a topic."""

from collections import Counter
from collections.abc import AsyncIterator

import click

from pocketmq.admin.admin import Admin
from pocketmq.admin.reading import Page, PageStatus
from pocketmq.cli.admin.flags import GROUP, TOPIC, at_time, flag, number, text, truth
from pocketmq.cli.admin.frame import admin_command
from pocketmq.cli.admin.java_text import body_text, one_line
from pocketmq.cli.admin.shown import Shown, row, told, when_exactly
from pocketmq.errors import Absent, RouteNotFound
from pocketmq.model.queue import MessageQueue, sort_queues
from pocketmq.protocol.received import ReceivedMessage

_CHARSET = text("-c", "--charsetName", "charset", help="Character set of bodies, such as GBK.")
_EXPRESSION = text("-s", "--subExpression", "expression", help="Tags, such as 'a || b'.")
_BEGIN = at_time("-b", "--beginTimestamp", "begin", help="From this time on.")
_END = at_time("-e", "--endTimestamp", "end", help="Up to this time.")
_MOST = 32


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
    """Give pages until a queue is read, or until it gives no more."""
    while first < last:
        page = await admin.messages.page(queue, first, _MOST, expression or "*")
        yield page
        if page.status in {PageStatus.NO_NEW_MSG, PageStatus.OFFSET_ILLEGAL}:
            return
        if page.next_offset <= first:
            return
        first = page.next_offset


@admin_command(
    "printMsg",
    TOPIC,
    _CHARSET,
    _EXPRESSION,
    _BEGIN,
    _END,
    truth("-d", "--printBody", "bodies", default=True, help="false: without bodies."),
    text("-l", "--lmqParentTopic", "parent", help="Taken for mqadmin's sake."),
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
    """Print the messages of a topic, queue by queue; with --json, an object a line."""
    del parent
    route = await admin.topics.route(topic)
    queues = sort_queues(route.subscribe_queues(topic))

    async def shown() -> AsyncIterator[Shown]:
        for queue in queues:
            first, last = await _bounds(admin, queue, begin, end)
            yield Shown([f"minOffset={first}, maxOffset={last}, {queue}"], [])
            async for page in _pages(admin, queue, first, last, expression):
                lines = [
                    one_line(message, body_text(message, charset) if bodies else None)
                    for message in page.messages
                ]
                yield Shown([*lines, *_remark(queue, page)], page.messages)
            yield Shown(["-" * 56], [])

    return Shown([], [], more=shown())


def _remark(queue: MessageQueue, page: Page) -> list[str]:
    """Say why a page has no messages."""
    if page.status is PageStatus.FOUND:
        return []
    said = "no matched msg." if page.status is PageStatus.NO_MATCHED_MSG else "print msg finished."
    return [f"{queue} {said} status={page.status.value}, offset={page.next_offset}"]


@admin_command(
    "printMsgByQueue",
    TOPIC,
    text("-a", "--brokerName", "broker", help="Broker's name.", required=True),
    click.option(
        "-i", "--queueId", "queue_id", type=click.IntRange(0), required=True, help="Queue."
    ),
    _CHARSET,
    _EXPRESSION,
    _BEGIN,
    _END,
    truth("-p", "--printMsg", "--print-msg", "messages", default=False, help="Print the messages."),
    truth("-d", "--printBody", "bodies", default=False, help="With their bodies."),
    truth("-f", "--calculate", "count", default=False, help="Count them by tag."),
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
    """Print the messages of a queue, or count them by tag; with --json, an object a line."""
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
            yield Shown(lines, [{"tag": tag, "count": number} for tag, number in counted])

    return Shown([], [], more=shown())


@admin_command(
    "consumeMessage",
    TOPIC,
    text("-b", "--brokerName", "broker", help="Broker's name."),
    number("-i", "--queueId", "queue_id", help="Queue, with -b."),
    number("-o", "--offset", help="Offset, with -i."),
    text("-g", "--consumerGroup", "group", help="Taken for mqadmin's sake: nothing is committed."),
    at_time("-s", "--beginTimestamp", "begin", help="From this time on."),
    _END,
    number("-c", "--MessageNumber", "limit", default=128, least=1, help="So many at most."),
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
    """Print messages from a place or time on; no group, nothing is committed."""
    del group
    if queue_id is not None and broker is None:
        raise click.UsageError("name the broker of the queue with -b")
    if offset is not None and queue_id is None:
        raise click.UsageError("name the queue of the offset with -i")
    if begin is not None and end is not None and begin > end:
        raise click.UsageError("the time to begin with is after the one to end with")
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
