"""Commands that change the offsets of groups."""

import click

from pocketmq.admin.admin import Admin
from pocketmq.admin.offsets import LATEST, ResetResult
from pocketmq.cli.admin import flags
from pocketmq.cli.admin.frame import admin_command
from pocketmq.cli.admin.java_text import java_word
from pocketmq.cli.admin.shown import Shown, front, row, told
from pocketmq.errors import Absent
from pocketmq.model import MessageQueue

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

    Members that are online continue from there at once.
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
