"""Commands for brokers: figures, settings, cleaning."""

from collections.abc import Awaitable, Callable

from pocketmq.admin.admin import Admin
from pocketmq.admin.gathered import Gathered
from pocketmq.cli.admin.flags import BROKER, CLUSTER, number, one_target, text, truth
from pocketmq.cli.admin.frame import admin_command
from pocketmq.cli.admin.shown import Shown, changed, front, row, told, when
from pocketmq.model import sort_queues

_STATS = "%-64s  %-64s  %-32s  %-4s  %-20s  %-20s  %-20s  %s"
_ONE_BROKER = text("-b", "--brokerAddr", "address", help="Address of the broker.", required=True)


@admin_command("brokerStatus", BROKER, CLUSTER)
async def broker_status(admin: Admin, *, address: str | None, cluster: str | None) -> Shown:
    """Show the runtime figures of brokers.

    Of one broker, or of all of a cluster.
    """
    one_target(cluster, address)
    found = (await admin.brokers.status(cluster, address)).some()
    lines = []
    for each in found:
        for name, value in sorted(each.value.figures.items()):
            if address is not None:
                lines.append(row("%-32s: %s", name, value))
            else:
                lines.append(row("%-24s %-32s: %s", each.place.address, name, value))
    data = {each.place.address: each.value.figures for each in found}
    return Shown(lines, data, told(found.missing))


@admin_command(
    "brokerConsumeStats",
    _ONE_BROKER,
    number(
        "-t",
        "--timeoutMillis",
        "patience",
        default=50_000,
        least=1,
        help="Timeout in milliseconds.",
    ),
    number("-l", "--level", default=0, help="Show only queues with at least this lag."),
    truth("-o", "--order", default=False, help="Show ordered topics instead of the others."),
)
async def broker_consume_stats(
    admin: Admin, *, address: str, patience: int, level: int, order: bool
) -> Shown:
    """Show the progress of every group of a broker."""
    stats = await admin.brokers.consume_stats(address, ordered=order, timeout=patience / 1000)
    heads = ("#Topic", "#Group", "#Broker Name", "#QID", "#Broker Offset", "#Consumer Offset")
    lines = [row(_STATS, *heads, "#Diff", "#LastTime")]
    for table in stats.consume_stats_list:
        for group, parts in table.items():
            for part in parts:
                for queue in sort_queues(set(part.offset_table)):
                    progress = part.offset_table[queue]
                    lag = progress.broker_offset - progress.consumer_offset
                    if lag < level or progress.last_timestamp <= 0:
                        continue
                    lines.append(
                        row(
                            _STATS,
                            front(queue.topic, 64),
                            group,
                            front(queue.broker_name, 32),
                            queue.queue_id,
                            progress.broker_offset,
                            progress.consumer_offset,
                            lag,
                            when(progress.last_timestamp),
                        )
                    )
    lines += ["", f"Diff Total: {stats.total_diff}"]
    return Shown(lines, stats)


@admin_command("getBrokerConfig", BROKER, CLUSTER)
async def get_config(admin: Admin, *, address: str | None, cluster: str | None) -> Shown:
    """Show the settings of brokers.

    Of one broker, or of all of a cluster.
    """
    one_target(cluster, address)
    found = (await admin.brokers.config(cluster, address)).some()
    masters = {each.place.broker: each.place.address for each in found if each.place.is_master}
    lines = []
    for each in found:
        place = each.place
        if address is not None:
            lines.append(f"============{place.address}============")
        elif place.is_master:
            lines.append(f"============Master: {place.address}============")
        else:
            master = masters.get(place.broker, "NO_MASTER")
            lines.append(f"============My Master: {master}=====Slave: {place.address}============")
        lines += [row("%-50s=  %s", *pair) for pair in sorted(each.value.items())]
        lines.append("")
    data = {each.place.address: each.value for each in found}
    return Shown(lines, data, told(found.missing))


@admin_command(
    "updateBrokerConfig",
    BROKER,
    CLUSTER,
    truth("-a", "--updateAllBroker", "slaves", default=False, help="Change slaves, too."),
    text("-k", "--key", help="Name of the setting.", required=True),
    text("-v", "--value", help="New value.", required=True),
)
async def update_config(
    admin: Admin, *, address: str | None, cluster: str | None, slaves: bool, key: str, value: str
) -> Shown:
    """Change a setting of running brokers.

    Of one broker, or of all masters of a cluster.
    """
    one_target(cluster, address)
    change = {key.strip(): value.strip()}
    done = await admin.brokers.change_config(change, cluster, address, slaves=slaves)
    return changed(done, "update broker config success, {}", changed=change)


Order = Callable[[str | None, str | None], Awaitable[Gathered[None]]]


async def _clean(order: Order, cluster: str | None, address: str | None) -> Shown:
    done = (await order(cluster, address)).some()
    lines = ["success"] if done.complete else ["false"]
    return Shown(lines, {"brokers": [each.place for each in done]}, told(done.missing))


@admin_command(
    "cleanExpiredCQ", BROKER, CLUSTER, asks="Delete index files of queues whose messages are gone?"
)
async def clean_queues(admin: Admin, *, address: str | None, cluster: str | None) -> Shown:
    """Delete index files of queues without messages.

    Of one broker, of a cluster, or of all brokers.
    """
    return await _clean(admin.brokers.clean_queues, cluster, address)


@admin_command("cleanUnusedTopic", BROKER, CLUSTER, asks="Delete the remains of deleted topics?")
async def clean_topics(admin: Admin, *, address: str | None, cluster: str | None) -> Shown:
    """Delete the remains of deleted topics.

    Of one broker, of a cluster, or of all brokers.
    """
    return await _clean(admin.brokers.clean_topics, cluster, address)


@admin_command("deleteExpiredCommitLog", BROKER, CLUSTER, asks="Delete expired commit log files?")
async def delete_log(admin: Admin, *, address: str | None, cluster: str | None) -> Shown:
    """Delete expired commit log files.

    Of one broker, of a cluster, or of all brokers.
    """
    return await _clean(admin.brokers.delete_expired_log, cluster, address)
