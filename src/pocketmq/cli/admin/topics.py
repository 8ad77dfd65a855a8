"""Commands for topics: names, routes and queues; creating, changing and deleting them."""

from pathlib import Path

from pocketmq.admin.admin import Admin
from pocketmq.cli.admin import flags
from pocketmq.cli.admin.frame import admin_command
from pocketmq.cli.admin.java_text import attributes, java_word, pretty_json, topic_text
from pocketmq.cli.admin.shown import Shown, changed, front, row, told, when_exactly
from pocketmq.cli.completion import group_names
from pocketmq.errors import Absent, RouteNotFound
from pocketmq.model import TopicConfig, TopicRoute, sort_queues
from pocketmq.model.names import is_dead_letter_topic, is_retry_topic
from pocketmq.protocol import encode_body
from pocketmq.protocol.requests.reading import ConsumeQueueEntry

_STATUS = "%-32s  %-4s  %-20s  %-20s    %s"
_BAR = "=" * 38
_TABLE = "%-45s %-32s %-50s %-10s %-11s %-5s"


@admin_command(
    "topicList",
    flags.flag("-c", "--clusterModel", "detailed", help="Show clusters and groups, too."),
)
async def topic_list(admin: Admin, *, detailed: bool) -> Shown:
    """List topics."""
    names = await admin.topics.names()
    if not detailed:
        return Shown(names, names)
    names = [each for each in names if not is_retry_topic(each) and not is_dead_letter_topic(each)]
    found = await admin.topics.with_consumers(names)
    lines = [row("%-20s  %-48s  %-48s", "#Cluster Name", "#Topic", "#Consumer Group")]
    for each in found:
        lines += [
            row("%-20s  %-64s  %-64s", front(each.cluster, 20), front(each.topic, 64), group[:64])
            for group in each.groups or ("",)
        ]
    problems = [problem for each in found for problem in told(each.missing)]
    return Shown(lines, found, tuple(dict.fromkeys(problems)))


@admin_command(
    "topicRoute",
    flags.TOPIC,
    flags.flag("-l", "--list", "as_list", help="Print a table instead of JSON."),
)
async def topic_route(admin: Admin, *, topic: str, as_list: bool) -> Shown:
    """Show the brokers and queues of a topic."""
    route = await admin.topics.route(topic)
    return Shown(route_table(route) if as_list else [pretty_json(route)], route)


@admin_command("topicStatus", flags.TOPIC, flags.CLUSTER)
async def topic_status(admin: Admin, *, topic: str, cluster: str | None) -> Shown:
    """Show the offsets of a topic's queues."""
    if cluster is not None and cluster not in await admin.topics.clusters(topic):
        raise Absent("topic", topic, f"in cluster {cluster!r}")
    status = await admin.topics.status(topic)
    lines = [row(_STATUS, "#Broker Name", "#QID", "#Min Offset", "#Max Offset", "#Last Updated")]
    for queue, held in status.queues.items():
        updated = held.last_update_timestamp
        lines.append(
            row(
                _STATUS,
                front(queue.broker_name, 32),
                queue.queue_id,
                held.min_offset,
                held.max_offset,
                when_exactly(updated) if updated > 0 else "",
            )
        )
    lines += ["", f"Topic Put TPS: {status.put_tps}"]
    return Shown(lines, status, told(status.missing))


@admin_command("topicClusterList", flags.TOPIC)
async def topic_clusters(admin: Admin, *, topic: str) -> Shown:
    """List the clusters of a topic."""
    clusters = await admin.topics.clusters(topic)
    return Shown(clusters, clusters)


@admin_command(
    "allocateMQ",
    flags.TOPIC,
    flags.text("-i", "--ipList", "members", help="Client ids, separated by commas.", required=True),
)
async def allocate_queues(admin: Admin, *, topic: str, members: str) -> Shown:
    """Preview the allocation of a topic's queues (AVG)."""
    from pocketmq.balance.allocation import Average, allocate

    route = await admin.topics.route(topic)
    queues = sort_queues(route.subscribe_queues(topic))
    names = flags.names_in(members)
    data = {"result": {name: allocate(Average(), "aa", name, queues, names) for name in names}}
    return Shown([encode_body(data).decode()], data)


def route_table(route: TopicRoute) -> list[str]:
    """Return a route as a table, one broker per line."""
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


@admin_command(
    "queryCq",
    flags.TOPIC,
    flags.number("-q", "--queue", help="Queue id.", required=True),
    flags.number("-i", "--index", help="First entry.", required=True),
    flags.number("-c", "--count", default=10, least=1, help="Number of entries."),
    flags.text(
        "-b", "--broker", "address", help="Address of the broker.  [default: the topic's first]"
    ),
    flags.text(
        "-g", "--consumer", "group", help="Apply the filter of this group.", completed=group_names
    ),
)
async def query(
    admin: Admin,
    *,
    topic: str,
    queue: int,
    index: int,
    count: int,
    address: str | None,
    group: str | None,
) -> Shown:
    """Show entries of a queue's index."""
    if address is None:
        address = (await admin.topics.places(topic))[0].address
    page = await admin.topics.index(topic, address, queue, index, count, group=group)
    lines: list[str] = []
    if page.subscription_data is not None:
        lines += ["Subscription data:", pretty_json(page.subscription_data), _BAR]
    if page.filter_data is not None:
        lines += ["Filter data:", page.filter_data, _BAR]
    lines.append("Queue data:")
    lines += [f"max: {page.max_queue_index}, min: {page.min_queue_index}", _BAR]
    for step, each in enumerate(page.queue_data or ()):
        lines += [f"idx: {index + step}", _entry(each), _BAR]
    return Shown(lines, page)


def _entry(entry: ConsumeQueueEntry) -> str:
    return (
        f"ConsumeQueueData{{physicOffset={entry.physic_offset}, "
        f"physicSize={entry.physic_size}, tagsCode={entry.tags_code}, "
        f"extendDataJson='{java_word(entry.extend_data_json)}', "
        f"bitMap='{java_word(entry.bit_map)}', eval={java_word(entry.eval)}, "
        f"msg='{java_word(entry.msg)}'}}"
    )


@admin_command(
    "updateTopic",
    flags.TOPIC,
    flags.BROKER,
    flags.CLUSTER,
    flags.number("-r", "--readQueueNums", "read", default=8, help="Queues to read from."),
    flags.number("-w", "--writeQueueNums", "write", default=8, help="Queues to write to."),
    flags.number("-p", "--perm", default=6, help="Permission: 2 write, 4 read, 6 both."),
    flags.truth("-o", "--order", default=False, help="Keep the order also while a broker is down."),
    flags.truth("-u", "--unit", default=False, help="Topic of a unit."),
    flags.truth("-s", "--hasUnitSub", "unit_sub", default=False, help="Subscribed by units."),
    flags.text(
        "-a", "--attributes", "changes", help="Attributes to set or remove, such as +a=b,-c."
    ),
)
async def update_topic(
    admin: Admin,
    *,
    topic: str,
    address: str | None,
    cluster: str | None,
    read: int,
    write: int,
    perm: int,
    order: bool,
    unit: bool,
    unit_sub: bool,
    changes: str | None,
) -> Shown:
    """Create or change a topic.

    On one broker, or on all masters of a cluster.
    """
    flags.one_target(cluster, address)
    config = TopicConfig(
        topic_name=topic,
        read_queue_nums=read,
        write_queue_nums=write,
        perm=perm,
        order=order,
        topic_sys_flag=unit | unit_sub << 1,
        attributes=attributes(changes),
    )
    done = (await admin.topics.create(config, cluster, address)).some()
    lines = [f"create topic to {each.place.address} success." for each in done]
    if order:
        where = "broker" if address is not None else "cluster"
        conf = ";".join(f"{each.place.broker}:{write}" for each in done)
        said = f"set {where} orderConf. isOrder=true, orderConf=[{conf}]"
        lines = [said, *lines] if address is not None else [*lines, said]
    lines.append(topic_text(config))
    made = {"topic": config, "brokers": [each.place for each in done]}
    return Shown(lines, made, told(done.missing))


@admin_command(
    "deleteTopic",
    flags.TOPIC,
    flags.text("-c", "--clusterName", "--cluster", "cluster", help="Cluster.", required=True),
    asks="Delete topic {topic} and its messages from cluster {cluster}?",
)
async def delete_topic(admin: Admin, *, topic: str, cluster: str) -> Shown:
    """Delete a topic and its messages."""
    try:
        known = cluster in await admin.topics.clusters(topic)
    except RouteNotFound:
        known = False
    places = await admin.brokers.masters(cluster)
    if not known and places:
        raise Absent("topic", topic, f"in cluster {cluster!r}")
    done = (await admin.topics.delete(topic, cluster)).some()
    lines = []
    if done.complete:
        lines = [
            f"delete topic [{topic}] from cluster [{cluster}] success.",
            f"delete topic [{topic}] from NameServer success.",
        ]
    deleted = {"topic": topic, "brokers": [each.place for each in done]}
    return Shown(lines, deleted, told(done.missing))


@admin_command(
    "updateTopicPerm",
    flags.TOPIC,
    flags.BROKER,
    flags.CLUSTER,
    flags.number("-p", "--perm", help="Permission: 2 write, 4 read, 6 both."),
)
async def update_permission(
    admin: Admin, *, topic: str, address: str | None, cluster: str | None, perm: int | None
) -> Shown:
    """Change the permission of a topic.

    On one broker, or on all masters of a cluster.
    """
    flags.one_target(cluster, address)
    if perm is None:
        import click

        raise click.UsageError("no permission; give -p: 2 write, 4 read, 6 both")
    done = (await admin.topics.set_permission(topic, perm, cluster, address)).some()
    if not done.answers:
        raise Absent("topic", topic, f"on {address or cluster}")
    lines = []
    for each in done:
        before, where = each.value.before, each.place.address
        lines.append(f"update topic perm from {before} to {perm} in {where} success.")
        if address is not None:
            lines.append(f"{topic_text(each.value.config)}.")
    return Shown(lines, done.answers, told(done.missing))


@admin_command("updateTopicList", flags.CONFIGS_FILE, flags.BROKER, flags.CLUSTER)
async def update_many(
    admin: Admin, *, file: Path, address: str | None, cluster: str | None
) -> Shown:
    """Create or change many topics (5.x)."""
    flags.one_target(cluster, address)
    configs = flags.read_configs(file, TopicConfig)
    done = await admin.topics.create_many(configs, cluster, address)
    line = "submit batch of topic config to {} success, please check the result later."
    return changed(done, line, made=[each.topic_name for each in configs])
