"""Commands about topics."""

from pocketmq.admin.admin import Admin
from pocketmq.cli.admin.flags import (
    BROKER,
    CLUSTER,
    TOPIC,
    flag,
    number,
    one_target,
    text,
    truth,
)
from pocketmq.cli.admin.frame import admin_command
from pocketmq.cli.admin.java_text import attributes, pretty_json, topic_text
from pocketmq.cli.admin.shown import Shown, front, row, told, when_exactly
from pocketmq.cli.admin.topics import route_table
from pocketmq.errors import Absent, RouteNotFound
from pocketmq.model.names import is_dead_letter_topic, is_retry_topic
from pocketmq.model.topics import TopicConfig
from pocketmq.protocol.json_values import encode_body

_STATUS = "%-32s  %-4s  %-20s  %-20s    %s"


@admin_command("topicList", flag("-c", "--clusterModel", "detailed", help="With cluster, groups."))
async def topic_list(admin: Admin, *, detailed: bool) -> Shown:
    """Name all topics."""
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


@admin_command("topicRoute", TOPIC, flag("-l", "--list", "as_list", help="As a table."))
async def topic_route(admin: Admin, *, topic: str, as_list: bool) -> Shown:
    """Show where a topic lives."""
    route = await admin.topics.route(topic)
    return Shown(route_table(route) if as_list else [pretty_json(route)], route)


@admin_command("topicStatus", TOPIC, CLUSTER)
async def topic_status(admin: Admin, *, topic: str, cluster: str | None) -> Shown:
    """Show what a topic's queues hold."""
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


@admin_command("topicClusterList", TOPIC)
async def topic_clusters(admin: Admin, *, topic: str) -> Shown:
    """Name the clusters a topic lives in."""
    clusters = await admin.topics.clusters(topic)
    return Shown(clusters, clusters)


@admin_command(
    "updateTopic",
    TOPIC,
    BROKER,
    CLUSTER,
    number("-r", "--readQueueNums", "read", default=8, help="Queues to read from."),
    number("-w", "--writeQueueNums", "write", default=8, help="Queues to write to."),
    number("-p", "--perm", default=6, help="2 write, 4 read, 6 both."),
    truth("-o", "--order", default=False, help="Ordered, also while a broker is down."),
    truth("-u", "--unit", default=False, help="A topic of a unit."),
    truth("-s", "--hasUnitSub", "unit_sub", default=False, help="Subscribed by units."),
    text("-a", "--attributes", "changes", help="Changes of attributes, such as +a=b,-c."),
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
    """Make or change a topic on one broker, or on all masters of a cluster."""
    one_target(cluster, address)
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
    TOPIC,
    text("-c", "--clusterName", "--cluster", "cluster", help="Cluster.", required=True),
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
    TOPIC,
    BROKER,
    CLUSTER,
    number("-p", "--perm", help="2 write, 4 read, 6 both."),
)
async def update_permission(
    admin: Admin, *, topic: str, address: str | None, cluster: str | None, perm: int | None
) -> Shown:
    """Say what a topic may be used for, on one broker or on all masters of a cluster."""
    one_target(cluster, address)
    if perm is None:
        import click

        raise click.UsageError("say the permission with -p: 2 write, 4 read, 6 both")
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


@admin_command(
    "allocateMQ", TOPIC, text("-i", "--ipList", "members", help="Members' ids.", required=True)
)
async def allocate_queues(admin: Admin, *, topic: str, members: str) -> Shown:
    """Show how a topic's queues would be shared among clients, by averaging."""
    from pocketmq.balance.allocation import Average, allocate
    from pocketmq.model.queue import sort_queues

    route = await admin.topics.route(topic)
    queues = sort_queues(route.subscribe_queues(topic))
    names = [name.strip() for name in members.split(",") if name.strip()]
    data = {"result": {name: allocate(Average(), "aa", name, queues, names) for name in names}}
    return Shown([encode_body(data).decode()], data)


COMMANDS = {
    each.name: each
    for each in (
        topic_list,
        topic_route,
        topic_status,
        topic_clusters,
        update_topic,
        delete_topic,
        update_permission,
        allocate_queues,
    )
}
