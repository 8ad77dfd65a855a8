"""Commands that find messages."""

import click

from pocketmq.admin.admin import Admin
from pocketmq.admin.messages import FOR_EVER, TraceEvent
from pocketmq.cli.admin import flags
from pocketmq.cli.admin.frame import admin_command
from pocketmq.cli.admin.java_text import message_lines, receipt_text, track_lines
from pocketmq.cli.admin.shown import Shown, row, told, when
from pocketmq.cli.completion import group_names
from pocketmq.errors import Absent
from pocketmq.model import MessageQueue
from pocketmq.model.names import TRACE_TOPIC
from pocketmq.protocol import ReceivedMessage
from pocketmq.protocol.requests.client_calls import DirectConsumeResult
from pocketmq.protocol.trace_text import TracedDelivery, TracedHandling, TracedSend

_CLIENT = flags.text("-d", "--clientId", "client", help="Let this member consume it now; needs -g.")
_GROUP = flags.text(
    "-g", "--consumerGroup", "group", help="Group of the member; needs -d.", completed=group_names
)
_CHARSET = flags.text(
    "-f", "--bodyFormat", "charset", help="Character set of the body, such as GBK."
)


async def _shown(
    admin: Admin, message: ReceivedMessage, *, with_id: bool, charset: str | None = None
) -> Shown:
    tracks = await admin.tracks.of(message)
    lines = [*message_lines(message, with_id=with_id, charset=charset), *track_lines(tracks)]
    return Shown(lines, {"message": message, "tracks": tracks})


def _direct(result: DirectConsumeResult) -> str:
    kind = "null" if result.consume_result is None else result.consume_result.value
    return (
        f"ConsumeMessageDirectlyResult [order={str(result.order).lower()}, "
        f"autoCommit={str(result.auto_commit).lower()}, consumeResult={kind}, "
        f"remark={'null' if result.remark is None else result.remark}, "
        f"spentTimeMills={result.spent_time_mills}]"
    )


def _check_pair(group: str | None, client: str | None) -> None:
    if (group is None) is not (client is None):
        raise click.UsageError("-g and -d must be given together: a group and one of its members")


@admin_command(
    "queryMsgById",
    flags.TOPIC,
    flags.text("-i", "--msgId", "ids", help="Message ids, separated by commas.", required=True),
    _GROUP,
    _CLIENT,
    flags.truth("-s", "--sendMessage", "again", default=False, help="Send a copy of it."),
    flags.text("-u", "--unitName", "unit", help=flags.IGNORED),
    _CHARSET,
    flags.CLUSTER,
)
async def by_id(
    admin: Admin,
    *,
    topic: str,
    ids: str,
    group: str | None,
    client: str | None,
    again: bool,
    unit: str | None,
    charset: str | None,
    cluster: str | None,
) -> Shown:
    """Find messages by id.

    Shows them, lets a member consume them, or sends copies of them.
    """
    del unit, cluster
    _check_pair(group, client)
    lines: list[str] = []
    data: list[object] = []
    problems: list[str] = []
    for message_id in (each.strip() for each in ids.split(",") if each.strip()):
        if group is not None and client is not None:
            result = await admin.messages.consume_directly(group, client, topic, message_id)
            lines.append(_direct(result))
            data.append(result)
            continue
        message = await admin.messages.by_id(topic, message_id)
        if not again:
            shown = await _shown(admin, message, with_id=True, charset=charset)
            lines += shown.lines
            data.append(shown.data)
            continue
        (resent,) = await admin.messages.resend([message])
        data.append(resent)
        if resent.receipt is None:
            problems.append(str(resent.error))
        else:
            said = f"prepare resend msg. originalMsgId={message_id}"
            lines.append(said + receipt_text(resent.receipt))
    return Shown(lines, data, tuple(problems))


@admin_command(
    "queryMsgByKey",
    flags.TOPIC,
    flags.text("-k", "--msgKey", "key", help="Key.", required=True),
    flags.BEGIN,
    flags.END,
    flags.number(
        "-m", "--maxNum", "limit", default=64, least=1, help="Maximum number of messages."
    ),
    click.option(
        "-p",
        "--keyType",
        "kind",
        type=click.Choice(["K", "T"]),
        default="K",
        show_default=True,
        help="K finds by key; T by tag, on 5.5 brokers with a RocksDB index.",
    ),
    flags.text("-l", "--lastKey", "last", help="Continue after this index key."),
    flags.CLUSTER,
)
async def by_key(
    admin: Admin,
    *,
    topic: str,
    key: str,
    begin: int | None,
    end: int | None,
    limit: int,
    kind: str,
    last: str | None,
    cluster: str | None,
) -> Shown:
    """Find messages by a key."""
    del cluster
    found = await admin.messages.by_key(
        topic,
        key,
        limit,
        begin_ms=begin or 0,
        end_ms=FOR_EVER if end is None else end,
        by_tag=kind == "T",
        after=last,
    )
    if not found.messages and not found.missing:
        raise Absent("message with key", key, f"in topic {topic!r}")
    pattern = "%-50s %4s %40s %s"
    lines = [row(pattern, "#Message ID", "#QID", "#Offset", "#IndexKey")]
    for each in found.messages:
        # The key in 5.5's RocksDB index, whatever index the broker has.
        hour = each.store_timestamp_ms // 3_600_000 * 3_600_000
        index = f"{hour}@{topic}@{kind}@{key}@{each.message_id}@{each.commit_log_offset}"
        lines.append(row(pattern, each.message_id, each.queue_id, each.queue_offset, index))
    return Shown(lines, found.messages, told(found.missing))


@admin_command(
    "queryMsgByUniqueKey",
    flags.TOPIC,
    flags.text("-i", "--msgId", "message_id", help="Message id.", required=True),
    _GROUP,
    _CLIENT,
    flags.flag("-a", "--showAll", "everything", help="Show its retries, too."),
    flags.at_time("-s", "--startTime", "begin", help="Only messages stored after this time."),
    flags.at_time("-e", "--endTime", "end", help="Only messages stored before this time."),
    flags.CLUSTER,
)
async def by_unique_key(
    admin: Admin,
    *,
    topic: str,
    message_id: str,
    group: str | None,
    client: str | None,
    everything: bool,
    begin: int | None,
    end: int | None,
    cluster: str | None,
) -> Shown:
    """Find a message by its unique id.

    Shows it, or lets a member consume it.
    """
    del cluster
    _check_pair(group, client)
    if group is not None and client is not None:
        result = await admin.messages.consume_directly(group, client, topic, message_id)
        return Shown([_direct(result)], result)
    found = await admin.messages.by_unique_key(
        topic, message_id, begin_ms=begin or 0, end_ms=FOR_EVER if end is None else end
    )
    if not found.messages and not found.missing:
        raise Absent("message", message_id, f"in topic {topic!r}")
    parts = [
        await _shown(admin, message, with_id=False)
        for message in (found.messages if everything else found.messages[:1])
    ]
    lines = [line for part in parts for line in part.lines]
    return Shown(lines, [part.data for part in parts], told(found.missing))


@admin_command(
    "queryMsgByOffset",
    flags.TOPIC,
    flags.BROKER_NAME,
    flags.QUEUE_ID,
    flags.number("-o", "--offset", help="Offset in the queue.", required=True),
    _CHARSET,
    flags.text("-r", "--routeTopic", "parent", help=flags.IGNORED),
)
async def by_offset(
    admin: Admin,
    *,
    topic: str,
    broker: str,
    queue_id: int,
    offset: int,
    charset: str | None,
    parent: str | None,
) -> Shown:
    """Find a message by its offset in a queue."""
    del parent
    queue = MessageQueue(topic, broker, queue_id)
    message = await admin.messages.by_offset(queue, offset)
    return await _shown(admin, message, with_id=True, charset=charset)


@admin_command(
    "queryMsgTraceById",
    flags.text("-i", "--msgId", "message_id", help="Message id.", required=True),
    flags.text("-t", "--traceTopic", "trace_topic", help=f"Trace topic.  [default: {TRACE_TOPIC}]"),
    flags.BEGIN,
    flags.END,
    flags.number("-c", "--maxNum", "limit", default=64, least=1, help="Maximum number of records."),
)
async def trace(
    admin: Admin,
    *,
    message_id: str,
    trace_topic: str | None,
    begin: int | None,
    end: int | None,
    limit: int,
) -> Shown:
    """Show the trace of a message, if its clients trace."""
    events = await admin.messages.trace(
        message_id,
        trace_topic or TRACE_TOPIC,
        limit,
        begin_ms=begin or 0,
        end_ms=FOR_EVER if end is None else end,
    )
    if not events:
        raise Absent("trace of message", message_id, "do its clients trace?")
    return Shown(_trace_lines(events), events)


def _trace_lines(events: list[TraceEvent]) -> list[str]:
    pattern = "%-10s %-20s %-20s %-20s %-10s %-10s"
    tail = ("#CostTimes", "#Status")
    lines: list[str] = []
    handled: dict[str, list[str]] = {}
    groups = {
        each.event.request_id: (each.event.group, each.event.time_ms)
        for each in events
        if isinstance(each.event, TracedDelivery)
    }
    for each in events:
        event, host = each.event, each.client_host
        if isinstance(event, TracedSend):
            status = "success" if event.ok else "failed"
            cost = f"{event.cost_ms}ms"
            lines.append(row(pattern, "#Type", "#ProducerGroup", "#ClientHost", "#SendTime", *tail))
            lines.append(row(pattern, "Pub", event.group, host, when(event.time_ms), cost, status))
            lines.append("")
        elif isinstance(event, TracedHandling):
            group, began = groups.get(event.request_id, (event.group, event.time_ms))
            status = "success" if event.ok else "failed"
            at = when(event.time_ms or began)
            line = row(pattern, "Sub", event.group or group, host, at, f"{event.cost_ms}ms", status)
            handled.setdefault(event.group or group, []).append(line)
    for parts in handled.values():
        lines.append(row(pattern, "#Type", "#ConsumerGroup", "#ClientHost", "#ConsumerTime", *tail))
        lines += [*parts, ""]
    return lines


@admin_command(
    "decodeMessageId",
    flags.text("-i", "--messageId", "message_id", help="Message id.", required=True),
)
async def decode_id(admin: Admin, *, message_id: str) -> Shown:
    """Decode a message id: producer address and time."""
    from pocketmq.protocol.message_ids import month_span, parse_unique_id

    read = parse_unique_id(message_id)
    now_ms = admin.now_ms()
    start, _ = month_span(now_ms, 0)
    made = start + read.ms_of_month
    if made > now_ms + 86_400_000:  # it is of the previous month
        made = month_span(start - 1, 0)[0] + read.ms_of_month
    return Shown([f"ip={read.ip}date={when(made)}"], {"ip": read.ip, "made_ms": made})
