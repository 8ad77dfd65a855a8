"""`consumerProgress`: the offsets and lag of groups."""

from collections.abc import Mapping

from pocketmq.admin.admin import Admin
from pocketmq.admin.groups import GroupProgress
from pocketmq.admin.overview import Glance
from pocketmq.cli.admin.flags import CLUSTER, text, truth
from pocketmq.cli.admin.frame import admin_command
from pocketmq.cli.admin.shown import Shown, front, row, told, when
from pocketmq.model import ConsumeType, MessageQueue
from pocketmq.model.names import RETRY_PREFIX, is_retry_topic
from pocketmq.protocol.peers import version_name

_HEAD = "%-64s  %-32s  %-4s  %-20s  %-20s  %-20s %-20s%s"
_HEAD_WITH_CLIENT = "%-64s  %-32s  %-4s  %-20s  %-20s  %-20s %-20s %-20s%s"
_ROW = "%-64s  %-32s  %-4d  %-20d  %-20d  %-20d %-20d %s"
_ROW_WITH_CLIENT = "%-64s  %-32s  %-4d  %-20d  %-20d  %-20s %-20d %-20d %s"
_GROUPS = "%-64s  %-6s  %-24s %-5s  %-14s  %-7s  %s"
_UNKNOWN = "?"


@admin_command(
    "consumerProgress",
    text("-g", "--groupName", "group", help="Group.  [default: a line per group]"),
    text("-t", "--topicName", "--topic", "topic", help="Only this topic of the group."),
    truth("-s", "--showClientIP", "clients", default=False, help="Show the owner of each queue."),
    CLUSTER,
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
