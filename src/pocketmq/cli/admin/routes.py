"""A topic's route, as a table and as the JSON that mqadmin prints."""

from typing import Any

import msgspec

from pocketmq.cli.admin.shown import row
from pocketmq.model.route import TopicRoute
from pocketmq.protocol.json_values import plain

_TABLE = "%-45s %-32s %-50s %-10s %-11s %-5s"


def route_table(route: TopicRoute) -> list[str]:
    """Lay a route out, a broker a line."""
    queues = {data.broker_name: data for data in route.queue_datas}
    lines = [
        row(
            _TABLE,
            "#ClusterName",
            "#BrokerName",
            "#BrokerAddrs",
            "#ReadQueue",
            "#WriteQueue",
            "#Perm",
        )
    ]
    for broker in sorted(route.broker_datas, key=lambda data: data.broker_name):
        data = queues.get(broker.broker_name)
        addresses = ", ".join(f"{key}={each}" for key, each in sorted(broker.broker_addrs.items()))
        numbers: tuple[object, ...] = ("", "", "")
        if data is not None:
            numbers = (data.read_queue_nums, data.write_queue_nums, data.perm)
        lines.append(row(_TABLE, broker.cluster, broker.broker_name, f"{{{addresses}}}", *numbers))
    read = sum(data.read_queue_nums for data in queues.values())
    write = sum(data.write_queue_nums for data in queues.values())
    return [*lines, "-" * 158, row(_TABLE, "Total:", len(queues), "", read, write, "")]


def route_json(route: TopicRoute) -> str:
    """Write a route as JSON over several lines, as fastjson does: broker ids are bare keys."""
    return "\n".join(_pretty(plain(route), ""))


def _pretty(value: Any, indent: str) -> list[str]:
    deeper = indent + "\t"
    if isinstance(value, dict):
        items = [(_key(key), item) for key, item in value.items() if item is not None]
        return _block("{", "}", items, indent, deeper)
    if isinstance(value, list):
        return _block("[", "]", [("", item) for item in value], indent, deeper)
    return [msgspec.json.encode(value).decode()]


def _block(
    start: str, end: str, items: list[tuple[str, Any]], indent: str, deeper: str
) -> list[str]:
    if not items:
        return [start + end]
    lines = [start]
    for position, (key, item) in enumerate(items):
        first, *rest = _pretty(item, deeper)
        lines += [f"{deeper}{key}{first}", *rest]
        if position < len(items) - 1:
            lines[-1] += ","
    return [*lines, indent + end]


def _key(key: object) -> str:
    return f"{key}:" if isinstance(key, int) else f"{msgspec.json.encode(str(key)).decode()}:"
