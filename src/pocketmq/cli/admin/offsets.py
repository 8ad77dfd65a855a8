"""Commands that show and change the offsets of groups."""

from collections.abc import Mapping

import click

from pocketmq.admin.admin import Admin
from pocketmq.admin.groups import GroupProgress
from pocketmq.admin.offsets import LATEST, ResetResult
from pocketmq.admin.overview import Glance
from pocketmq.cli.admin import flags
from pocketmq.cli.admin.frame import admin_command
from pocketmq.cli.admin.java_text import java_word
from pocketmq.cli.admin.shown import Shown, front, row, told, when
from pocketmq.cli.completion import group_names, topic_names
from pocketmq.errors import Absent
from pocketmq.model import ConsumeType, MessageQueue
from pocketmq.model.names import RETRY_PREFIX, is_retry_topic
from pocketmq.protocol.peers import version_name

_FORCE = flags.truth("-f", "--force", default=True, help="With false, never skip messages.")


def _time_or_end(value: str | int) -> int:
    """Read a time; `now` is the end of each queue, which brokers before 5.3 miss by time."""
    return LATEST if str(value).strip() == "now" else flags.read_time(value)


_TIME = flags.at_time(
    "-s",
    "--timestamp",
    "time_ms",
    help="now, milliseconds, or 2026-01-31#12:00:00:000.",
    required=True,
    kind=_time_or_end,
)


def _table(result: ResetResult, last: str) -> list[str]:
    if result.online:
        pattern = "%-40s  %-40s  %-40s"
        return [
            row(pattern, "#brokerName", "#queueId", "#offset"),
            *(
                row(pattern, front(queue.broker_name, 32), queue.queue_id, each.offset)
                for queue, each in result.queues.items()
            ),
        ]
    pattern = "%-20s  %-20s  %-20s  %-20s  %-20s  %-20s"
    heads = ("#brokerName", "#queueId", "#brokerOffset", "#consumerOffset", "#timestampOffset")
    lines = [row(pattern, *heads, last)]
    for queue, each in result.queues.items():
        numbers = (each.broker_offset, each.consumer_offset, each.found_offset, each.offset)
        shown = ["?" if offset is None else offset for offset in numbers]
        lines.append(row(pattern, front(queue.broker_name, 32), queue.queue_id, *shown))
    return lines


def _said(group: str, topic: str, time_ms: int, *, force: bool, word: str) -> str:
    return f"{word}[{group}], topic[{topic}], force[{java_word(force)}], {_told_time(time_ms)}"


def _told_time(time_ms: int) -> str:
    word = "now" if time_ms == LATEST else time_ms
    return f"timestamp(string)[{word}], timestamp(long)[{time_ms}]"


@admin_command(
    "resetOffsetByTime",
    flags.GROUP,
    flags.TOPIC,
    _TIME,
    _FORCE,
    flags.CLUSTER,
    flags.text("-b", "--broker", "address", help="Address of one broker; needs -q."),
    flags.number("-q", "--queue", help="Queue id; needs -b."),
    flags.number("-o", "--offset", help="Offset for that queue instead of a time."),
    asks="Reset the offsets of group {group} in topic {topic}?",
)
async def reset(
    admin: Admin,
    *,
    group: str,
    topic: str,
    time_ms: int,
    force: bool,
    cluster: str | None,
    address: str | None,
    queue: int | None,
    offset: int | None,
) -> Shown:
    """Reset a group's offsets to a time.

    Members that are online continue from there immediately.
    """
    del cluster  # a topic is found by its name alone
    if (address is None) is not (queue is None):
        raise click.UsageError("-b and -q must be given together: a broker and one of its queues")
    if address is not None and queue is not None:
        place = await _queue_at(admin, topic, address, queue)
        target = offset if offset is not None else await _offset_at(admin, place, time_ms)
        await admin.offsets.reset_queue(group, place, target)
        said = (
            f"start reset consumer offset by specified, group[{group}], topic[{topic}], "
            f"queueId[{queue}], broker[{address}], {_told_time(time_ms)}"
        )
        return Shown(
            [said, f"reset consumer offset to {target}"], {"queue": place, "offset": target}
        )
    if offset is not None:
        raise click.UsageError("-o is an offset of one queue; give it with -b and -q")
    result = await admin.offsets.reset(group, topic, time_ms, back_only=not force)
    if result.online:
        head = "start reset consumer offset by specified, group"
    else:
        head = "reset consumer offset by specified consumerGroup"
    lines = [_said(group, topic, time_ms, force=force, word=head), *_table(result, "#resetOffset")]
    return Shown(lines, result, told(result.missing))


@admin_command(
    "resetOffsetByTimeOld",
    flags.GROUP,
    flags.TOPIC,
    _TIME,
    _FORCE,
    flags.CLUSTER,
    asks="Reset the offsets of group {group} in topic {topic}?",
)
async def reset_old(
    admin: Admin, *, group: str, topic: str, time_ms: int, force: bool, cluster: str | None
) -> Shown:
    """Reset the stored offsets of an offline group.

    Running members would overwrite them.
    """
    del cluster  # a topic is found by its name alone
    result = await admin.offsets.reset_stored(group, topic, time_ms, back_only=not force)
    head = "reset consumer offset by specified consumerGroup"
    lines = [_said(group, topic, time_ms, force=force, word=head), *_table(result, "#resetOffset")]
    return Shown(lines, result, told(result.missing))


@admin_command(
    "skipAccumulatedMessage",
    flags.GROUP,
    flags.TOPIC,
    _FORCE,
    flags.CLUSTER,
    asks="Skip all waiting messages of topic {topic} for group {group}?",
)
async def skip(admin: Admin, *, group: str, topic: str, force: bool, cluster: str | None) -> Shown:
    """Reset a group's offsets to the end of the queues."""
    del cluster  # a topic is found by its name alone
    result = await admin.offsets.reset(group, topic, LATEST, back_only=not force)
    return Shown(_table(result, "#rollbackOffset"), result, told(result.missing))


@admin_command(
    "cloneGroupOffset",
    flags.text("-s", "--srcGroup", "source", help="Group to copy from.", required=True),
    flags.text("-d", "--destGroup", "destination", help="Group to copy to.", required=True),
    flags.TOPIC,
    flags.truth("-o", "--offline", default=False, help=flags.IGNORED),
    asks="Overwrite the offsets of group {destination} in topic {topic} with those of {source}?",
)
async def clone(admin: Admin, *, source: str, destination: str, topic: str, offline: bool) -> Shown:
    """Copy a group's offsets to another group."""
    del offline
    offsets = await admin.offsets.clone(source, destination, topic)
    line = (
        f"clone group offset success. srcGroup[{source}], destGroup=[{destination}], topic[{topic}]"
    )
    return Shown([line], {"offsets": offsets})


async def _offset_at(admin: Admin, queue: MessageQueue, time_ms: int) -> int:
    if time_ms == LATEST:
        return (await admin.offsets.bounds(queue))[1]
    return await admin.offsets.at_time(queue, time_ms)


async def _queue_at(admin: Admin, topic: str, address: str, queue: int) -> MessageQueue:
    for place in await admin.topics.places(topic):
        if place.address == address:
            return MessageQueue(topic, place.broker, queue)
    raise Absent("broker", address, f"with topic {topic!r}")


_HEAD = "%-64s  %-32s  %-4s  %-20s  %-20s  %-20s %-20s%s"
_HEAD_WITH_CLIENT = "%-64s  %-32s  %-4s  %-20s  %-20s  %-20s %-20s %-20s%s"
_ROW = "%-64s  %-32s  %-4d  %-20d  %-20d  %-20d %-20d %s"
_ROW_WITH_CLIENT = "%-64s  %-32s  %-4d  %-20d  %-20d  %-20s %-20d %-20d %s"
_GROUPS = "%-64s  %-6s  %-24s %-5s  %-14s  %-7s  %s"
_UNKNOWN = "?"


@admin_command(
    "consumerProgress",
    flags.text(
        "-g",
        "--groupName",
        "group",
        help="Group.  [default: a line per group]",
        completed=group_names,
    ),
    flags.text(
        "-t",
        "--topicName",
        "--topic",
        "topic",
        help="Only this topic of the group.",
        completed=topic_names,
    ),
    flags.truth(
        "-s", "--showClientIP", "clients", default=False, help="Show the owner of each queue."
    ),
    flags.CLUSTER,
)
async def consumer_progress(
    admin: Admin, *, group: str | None, topic: str | None, clients: bool, cluster: str | None
) -> Shown:
    """Show offsets and lag of a group, or of all groups."""
    if group is None:
        return await _all_groups(admin, cluster)
    progress = await admin.groups.progress(group, topic)
    problems = told(progress.missing)
    holders: dict[MessageQueue, str] | None = None
    if clients:
        running = await admin.groups.running(group)
        holders = {
            queue: client.partition("@")[0]
            for client, info in running.members.items()
            for queue in info.mq_table
        }
        problems += tuple(f"{client}: {error}" for client, error in running.silent.items())
    data = {
        "queues": progress.queues,
        "consume_tps": progress.consume_tps,
        "lag": progress.lag,
        "in_flight": progress.in_flight,
    }
    if holders is not None:
        data["holders"] = [
            {"queue": queue, "client": holders.get(queue)} for queue in progress.queues
        ]
    return Shown(_lines(progress, holders), data, problems)


def _lines(progress: GroupProgress, holders: Mapping[MessageQueue, str] | None) -> list[str]:
    heads = ("#Topic", "#Broker Name", "#QID", "#Broker Offset", "#Consumer Offset")
    tail = ("#Diff", "#Inflight", "#LastTime")
    if holders is None:
        lines = [row(_HEAD, *heads, *tail)]
    else:
        lines = [row(_HEAD_WITH_CLIENT, *heads, "#Client IP", *tail)]
    for queue, each in progress.queues.items():
        where = (front(queue.topic, 64), front(queue.broker_name, 32), queue.queue_id)
        offsets = (each.broker_offset, each.consumer_offset)
        lag = each.broker_offset - each.consumer_offset
        flying = each.pull_offset - each.consumer_offset
        last = when(each.last_timestamp) if each.last_timestamp else "N/A"
        if holders is None:
            lines.append(row(_ROW, *where, *offsets, lag, flying, last))
        else:
            holder = holders.get(queue, "N/A")
            lines.append(row(_ROW_WITH_CLIENT, *where, *offsets, holder, lag, flying, last))
    lines += ["", f"Consume TPS: {progress.consume_tps:.2f}"]
    lines.append(f"Consume Diff Total: {progress.lag}")
    lines.append(f"Consume Inflight Total: {progress.in_flight}")
    return lines


async def _all_groups(admin: Admin, cluster: str | None) -> Shown:
    names = await admin.topics.names(cluster)
    groups = [name.removeprefix(RETRY_PREFIX) for name in names if is_retry_topic(name)]
    glances = await admin.overview.groups(groups)
    lines = [row(_GROUPS, "#Group", "#Count", "#Version", "#Type", "#Model", "#TPS", "#Diff Total")]
    lines += [_glance(each) for each in glances]
    problems = [f"group {each.group}: {error}" for each in glances for error in each.errors]
    return Shown(lines, {"groups": glances}, tuple(problems))


def _glance(glance: Glance) -> str:
    """Return the line of a group; `?` stands for unknown figures."""
    count, version = _UNKNOWN, _UNKNOWN
    if glance.members is not None:
        count = str(len(glance.members))
        oldest = glance.oldest_version
        version = "OFFLINE" if oldest is None else version_name(oldest)
    kind, model = "", ""
    if glance.members:
        kind = "PULL" if glance.type is ConsumeType.CONSUME_ACTIVELY else "PUSH"
        if glance.type is ConsumeType.CONSUME_PASSIVELY and glance.model is not None:
            model = glance.model.value
    progress = glance.progress
    tps = _UNKNOWN if progress is None else str(int(progress.consume_tps))
    lag = _UNKNOWN if progress is None else str(progress.lag)
    return row(_GROUPS, front(glance.group, 64), count, version, kind, model, tps, lag)
