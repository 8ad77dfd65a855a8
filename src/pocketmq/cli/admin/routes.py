"""A topic's route as a table."""

from pocketmq.cli.admin.shown import row
from pocketmq.model.route import TopicRoute

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
