"""Commands that create, change and delete topics."""

from pathlib import Path

from pocketmq.admin.admin import Admin
from pocketmq.cli.admin import flags
from pocketmq.cli.admin.frame import admin_command
from pocketmq.cli.admin.java_text import attributes, topic_text
from pocketmq.cli.admin.shown import Shown, changed, told
from pocketmq.errors import Absent, RouteNotFound
from pocketmq.model import TopicConfig


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
