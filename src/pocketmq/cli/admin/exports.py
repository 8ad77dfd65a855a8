"""Commands that export a cluster's settings, topics, groups and figures to JSON files."""

from pathlib import Path
from typing import Any

import click
import msgspec

from pocketmq.admin.admin import Admin
from pocketmq.admin.brokers import BrokerStatus
from pocketmq.admin.gathered import ServerPlace
from pocketmq.admin.overview import TOPIC_PUT
from pocketmq.cli.admin.flags import BROKER, CLUSTER, flag, one_target, text
from pocketmq.cli.admin.frame import admin_command
from pocketmq.cli.admin.shown import Shown, told
from pocketmq.errors import Absent
from pocketmq.model import GroupConfig, TopicConfig
from pocketmq.model import names as topic_names
from pocketmq.protocol.json_values import plain
from pocketmq.protocol.peers import CURRENT_VERSION, version_name
from pocketmq.protocol.requests.stats import StatsItem

_DIRECTORY = click.option(
    "-f", "--filePath", "directory", default=".", show_default=True, help="Directory to write to."
)
_ONE_CLUSTER = text("-c", "--clusterName", "cluster", help="Cluster.", required=True)
_EXPORTED = (
    "brokerClusterName", "brokerId", "brokerName", "brokerRole", "fileReservedTime",
    "filterServerNums", "flushDiskType", "maxMessageSize", "messageDelayLevel",
    "msgTraceTopicName", "slaveReadEnable", "traceOn", "traceTopicEnable", "useTLS",
    "autoCreateTopicEnable", "autoCreateSubscriptionGroup",
)  # fmt: skip


def _written(directory: str, name: str, value: Any, problems: tuple[str, ...]) -> Shown:
    path = Path(directory) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")
    return Shown([f"export {path} success"], {"file": str(path)}, problems)


@admin_command("exportConfigs", _ONE_CLUSTER, _DIRECTORY)
async def export_configs(admin: Admin, *, cluster: str, directory: str) -> Shown:
    """Export main settings of brokers to configs.json.

    Of all masters of a cluster.
    """
    found = (await admin.brokers.config(cluster)).some()
    masters = [each for each in found if each.place.is_master]
    value = {
        "brokerConfigs": {
            each.place.broker: {key: each.value[key] for key in _EXPORTED if key in each.value}
            for each in masters
        },
        "clusterScale": {
            "namesrvSize": len(admin.name_servers.addresses),
            "masterBrokerSize": len(masters),
            "slaveBrokerSize": len(found.answers) - len(masters),
        },
    }
    return _written(directory, "configs.json", value, told(found.missing))


@admin_command(
    "exportMetadata",
    CLUSTER,
    BROKER,
    _DIRECTORY,
    flag("-t", "--topic", "topics_only", help="Only topics."),
    flag("-g", "--subscriptionGroup", "groups_only", help="Only groups."),
    flag("-s", "--specialTopic", "special", help="Include retry and dead-letter topics."),
)
async def export_metadata(
    admin: Admin,
    *,
    cluster: str | None,
    address: str | None,
    directory: str,
    topics_only: bool,
    groups_only: bool,
    special: bool,
) -> Shown:
    """Export topics and groups to metadata.json.

    The numbers of queues are summed over brokers.
    """
    one_target(cluster, address)
    topics = (await admin.topics.configs(cluster, address)).some()
    groups = (await admin.groups.configs(cluster, address)).some()
    problems = tuple(dict.fromkeys((*told(topics.missing), *told(groups.missing))))
    value: dict[str, Any] = {"exportTime": admin.now_ms()}
    if not groups_only:
        value["topicConfigTable"] = await _topics(
            admin, [(each.place, each.value) for each in topics], special=special
        )
    if not topics_only:
        value["subscriptionGroupTable"] = _groups(groups.values())
    name = "topic" if topics_only else "subscriptionGroup" if groups_only else "metadata"
    return _written(directory, f"{name}.json", value, problems)


async def _topics(
    admin: Admin, tables: list[tuple[ServerPlace, dict[str, TopicConfig]]], *, special: bool
) -> dict[str, Any]:
    merged: dict[str, TopicConfig] = {}
    for place, table in tables:
        own = set(await admin.topics.system_names(place.address))
        for name, config in table.items():
            moved = topic_names.is_retry_topic(name) or topic_names.is_dead_letter_topic(name)
            if name in own or (moved and not special):
                continue
            before = merged.get(name)
            if before is not None:
                config = msgspec.structs.replace(  # noqa: PLW2901 - the sum takes its place
                    config,
                    read_queue_nums=config.read_queue_nums + before.read_queue_nums,
                    write_queue_nums=config.write_queue_nums + before.write_queue_nums,
                )
            merged[name] = config
    return {name: plain(merged[name]) for name in sorted(merged)}


def _groups(tables: list[dict[str, GroupConfig]]) -> dict[str, Any]:
    merged: dict[str, GroupConfig] = {}
    for table in tables:
        for name, config in table.items():
            if name in topic_names.SYSTEM_GROUPS or name.startswith(
                topic_names.SYSTEM_GROUP_PREFIX
            ):
                continue
            before = merged.get(name)
            if before is not None:
                total = config.retry_queue_nums + before.retry_queue_nums
                config = msgspec.structs.replace(config, retry_queue_nums=total)  # noqa: PLW2901
            merged[name] = config
    return {name: plain(merged[name]) for name in sorted(merged)}


@admin_command("exportMetrics", _ONE_CLUSTER, _DIRECTORY)
async def export_metrics(admin: Admin, *, cluster: str, directory: str) -> Shown:
    """Export figures of brokers to metrics.json.

    Of all masters of a cluster; null stands for unknown figures.
    """
    found = (await admin.brokers.status(cluster)).some()
    masters = [each for each in found if each.place.is_master]
    if not masters:
        raise Absent("master of cluster", cluster, "only slaves responded")
    report = {}
    for each in masters:
        report[each.place.broker] = await _report(admin, each.place, each.value)
    quotas = [each["runtimeQuota"] for each in report.values()]
    total = {
        part: {name: _sum(quota[part][name] for quota in quotas) for name in quotas[0][part]}
        for part in ("tps", "oneDayNum")
    }
    totals = {f"total{name[0].upper()}{name[1:]}": number for name, number in total["tps"].items()}
    value = {
        "evaluateReport": report,
        "totalData": {"totalTps": totals, "totalOneDayNum": total["oneDayNum"]},
    }
    return _written(directory, "metrics.json", value, told(found.missing))


async def _report(admin: Admin, place: ServerPlace, status: BrokerStatus) -> dict[str, Any]:
    figure = status.figures.get
    config = (await admin.brokers.config(address=place.address)).values()
    topics = (await admin.topics.configs(address=place.address)).all()[0]
    groups = (await admin.groups.configs(address=place.address)).all()[0]
    own = set(await admin.topics.system_names(place.address))
    glances = await admin.overview.groups(sorted(_groups([groups])))
    clients = {
        f"{each.language.name if each.language is not None else None}%{version_name(each.version)}"
        for glance in glances
        for each in glance.members or ()
    }
    halves = await _counted(admin, topic_names.HALF_TOPIC, place)
    delayed = await _counted(admin, topic_names.SCHEDULE_TOPIC, place)
    user_topics = [
        name
        for name in topics
        if name not in own
        and not topic_names.is_retry_topic(name)
        and not topic_names.is_dead_letter_topic(name)
    ]
    return {
        "runtimeEnv": {
            "cpuNum": config[0].get("clientCallbackExecutorThreads") if config else None,
            "totalMemKBytes": figure("totalMemKBytes"),
        },
        "runtimeQuota": {
            "diskRatio": {
                "commitLogDiskRatio": figure("commitLogDiskRatio"),
                "consumeQueueDiskRatio": figure("consumeQueueDiskRatio"),
            },
            "tps": {
                "normalInTps": status.put_tps,
                "normalOutTps": status.get_tps,
                "transInTps": halves[0],
                "scheduleInTps": delayed[0],
            },
            "oneDayNum": {
                "normalOneDayInNum": status.put_yesterday,
                "normalOneDayOutNum": status.get_yesterday,
                "transOneDayInNum": halves[1],
                "scheduleOneDayInNum": delayed[1],
            },
            "messageAverageSize": figure("putMessageAverageSize"),
            "topicSize": len(user_topics),
            "groupSize": len(_groups([groups])),
        },
        "runtimeVersion": {
            "rocketmqVersion": version_name(CURRENT_VERSION),
            "clientInfo": sorted(clients),
        },
    }


async def _counted(admin: Admin, topic: str, place: ServerPlace) -> tuple[float, int]:
    """Return a topic's messages per second and per day; 0 if the broker never counted any."""
    found = (await admin.brokers.counter(TOPIC_PUT, topic, [place])).values()
    if not found:
        return 0.0, 0
    return (found[0].stats_minute or StatsItem()).tps, (found[0].stats_day or StatsItem()).sum


def _sum(numbers: Any) -> Any:
    known = list(numbers)
    return None if None in known else sum(known)
