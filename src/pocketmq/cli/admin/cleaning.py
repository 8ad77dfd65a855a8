"""Commands that have brokers throw away what nobody needs."""

from collections.abc import Awaitable, Callable

from pocketmq.admin.admin import Admin
from pocketmq.admin.gathered import Gathered
from pocketmq.cli.admin.flags import BROKER, CLUSTER
from pocketmq.cli.admin.frame import admin_command
from pocketmq.cli.admin.shown import Shown, told

Order = Callable[[str | None, str | None], Awaitable[Gathered[None]]]


async def _clean(order: Order, cluster: str | None, address: str | None) -> Shown:
    done = (await order(cluster, address)).some()
    lines = ["success"] if done.complete else ["false"]
    return Shown(lines, {"brokers": [each.place for each in done]}, told(done.missing))


@admin_command(
    "cleanExpiredCQ", BROKER, CLUSTER, asks="Drop index files of queues whose messages are gone?"
)
async def clean_queues(admin: Admin, *, address: str | None, cluster: str | None) -> Shown:
    """Drop index files of queues whose messages are gone: of a broker, a cluster, or all."""
    return await _clean(admin.brokers.clean_queues, cluster, address)


@admin_command("cleanUnusedTopic", BROKER, CLUSTER, asks="Drop what is left of deleted topics?")
async def clean_topics(admin: Admin, *, address: str | None, cluster: str | None) -> Shown:
    """Drop what is left of deleted topics: of a broker, a cluster, or all."""
    return await _clean(admin.brokers.clean_topics, cluster, address)


@admin_command(
    "deleteExpiredCommitLog", BROKER, CLUSTER, asks="Delete commit log files that are too old?"
)
async def delete_log(admin: Admin, *, address: str | None, cluster: str | None) -> Shown:
    """Delete commit log files that are too old: of a broker, a cluster, or all."""
    return await _clean(admin.brokers.delete_expired_log, cluster, address)


COMMANDS = {each.name: each for each in (clean_queues, clean_topics, delete_log)}
