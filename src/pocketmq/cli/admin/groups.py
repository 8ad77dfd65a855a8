"""Commands for the settings of groups."""

from pathlib import Path

import click

from pocketmq.admin.admin import Admin
from pocketmq.cli.admin import flags, java_text
from pocketmq.cli.admin.frame import admin_command
from pocketmq.cli.admin.shown import Shown, changed, row, told
from pocketmq.cli.completion import topic_names
from pocketmq.errors import Absent
from pocketmq.model import GroupConfig, MessageRequestMode
from pocketmq.model.delay import RetryPolicy
from pocketmq.protocol import decode_body


@admin_command(
    "updateSubGroup",
    flags.GROUP,
    flags.BROKER,
    flags.CLUSTER,
    flags.truth("-s", "--consumeEnable", "enable", default=True, help="Allow consuming."),
    flags.truth(
        "-m",
        "--consumeFromMinEnable",
        "from_min",
        default=False,
        help="Allow starting at the first message.",
    ),
    flags.truth(
        "-d", "--consumeBroadcastEnable", "broadcast", default=False, help="Allow broadcasting."
    ),
    flags.truth(
        "-o", "--consumeMessageOrderly", "orderly", default=False, help="Pop messages in order."
    ),
    flags.number(
        "-q", "--retryQueueNums", "retry_queues", default=1, help="Queues of the retry topic."
    ),
    flags.number(
        "-r",
        "--retryMaxTimes",
        "retries",
        default=16,
        least=-1,
        help="Retries before a message goes to the dead-letter topic.",
    ),
    flags.text("-p", "--groupRetryPolicy", "policy", help="Delays between retries, as JSON (5.x)."),
    flags.number("-i", "--brokerId", "broker_id", default=0, help="Id of the broker to read from."),
    flags.number(
        "-w",
        "--whichBrokerWhenConsumeSlowly",
        "slow_id",
        default=1,
        help="Id of the broker to read from while lagging.",
    ),
    flags.truth(
        "-a",
        "--notifyConsumerIdsChanged",
        "notify",
        default=True,
        help="Notify members of joins and leaves.",
    ),
    flags.text("--attributes", "changes", help="Attributes to set or remove, such as +a=b,-c."),
)
async def update_group(
    admin: Admin,
    *,
    group: str,
    address: str | None,
    cluster: str | None,
    enable: bool,
    from_min: bool,
    broadcast: bool,
    orderly: bool,
    retry_queues: int,
    retries: int,
    policy: str | None,
    broker_id: int,
    slow_id: int,
    notify: bool,
    changes: str | None,
) -> Shown:
    """Create or change a group.

    On one broker, or on all masters of a cluster.
    """
    flags.one_target(cluster, address)
    config = GroupConfig(
        group_name=group,
        consume_enable=enable,
        consume_from_min_enable=from_min,
        consume_broadcast_enable=broadcast,
        consume_message_orderly=orderly,
        retry_queue_nums=retry_queues,
        retry_max_times=retries,
        group_retry_policy=decode_body(policy, RetryPolicy) if policy else RetryPolicy(),
        broker_id=broker_id,
        which_broker_when_consume_slowly=slow_id,
        notify_consumer_ids_changed_enable=notify,
        attributes=java_text.attributes(changes),
    )
    done = (await admin.groups.create(config, cluster, address)).some()
    lines = [f"create subscription group to {each.place.address} success." for each in done]
    made = {"group": config, "brokers": [each.place for each in done]}
    return Shown([*lines, java_text.group_text(config)], made, told(done.missing))


@admin_command(
    "deleteSubGroup",
    flags.GROUP,
    flags.BROKER,
    flags.CLUSTER,
    flags.truth("-r", "--removeOffset", "offsets", default=False, help="Delete its offsets, too."),
    asks="Delete group {group}?",
)
async def delete_group(
    admin: Admin, *, group: str, address: str | None, cluster: str | None, offsets: bool
) -> Shown:
    """Delete a group.

    From one broker, or from a cluster with its retry and dead-letter topics.
    """
    flags.one_target(cluster, address)
    if not (await admin.groups.config(group)).answers:
        raise Absent("group", group)
    done = (await admin.groups.delete(group, cluster, address, offsets=offsets)).some()
    where = "" if cluster is None else f" in cluster [{cluster}]"
    lines = [
        f"delete subscription group [{group}] from broker [{each.place.address}]{where} success."
        for each in done
    ]
    if cluster is not None and done.complete:
        for topic in (f"%RETRY%{group}", f"%DLQ%{group}"):
            lines.append(f"delete topic [{topic}] from cluster [{cluster}] success.")
            lines.append(f"delete topic [{topic}] from NameServer success.")
    deleted = {"group": group, "brokers": [each.place for each in done]}
    return Shown(lines, deleted, told(done.missing))


@admin_command("getConsumerConfig", flags.GROUP)
async def get_config(admin: Admin, *, group: str) -> Shown:
    """Show the settings of a group.

    On every broker that has it.
    """
    found = (await admin.groups.config(group)).some()
    if not found.answers:
        raise Absent("group", group, "no broker has it")
    bar = "=" * 29
    lines = []
    for each in found:
        lines.append(f"{bar}{each.place.cluster}:{each.place.broker}{bar}")
        for name, value in java_text.group_fields(each.value).items():
            lines.append(row("%-40s=  %s", name, "" if value == "null" else value))
    data = {each.place.broker: each.value for each in found}
    return Shown(lines, data, told(found.missing))


@admin_command(
    "setConsumeMode",
    flags.text(
        "-t", "--topicName", "--topic", "topic", help="Topic.", required=True, completed=topic_names
    ),
    flags.GROUP,
    flags.BROKER,
    flags.CLUSTER,
    click.option(
        "-m",
        "--mode",
        type=click.Choice(["PULL", "POP"]),
        required=True,
        help="How members get messages.",
    ),
    flags.number(
        "-q", "--popShareQueueNum", "share", default=0, help="Queues shared by members that pop."
    ),
)
async def set_mode(
    admin: Admin,
    *,
    topic: str,
    group: str,
    address: str | None,
    cluster: str | None,
    mode: str,
    share: int,
) -> Shown:
    """Make a group pull or pop a topic (5.x)."""
    flags.one_target(cluster, address)
    wanted = MessageRequestMode(mode)
    done = await admin.groups.set_mode(topic, group, wanted, cluster, address, share=share)
    lines = [f"set consume mode to {each.place.address} success." for each in done.some()]
    lines.append(f"topic[{topic}] group[{group}] consume mode[{mode}] popShareQueueNum[{share}]")
    data = {"topic": topic, "group": group, "mode": mode, "brokers": [e.place for e in done]}
    return Shown(lines, data, told(done.missing))


@admin_command("updateSubGroupList", flags.CONFIGS_FILE, flags.BROKER, flags.CLUSTER)
async def update_many(
    admin: Admin, *, file: Path, address: str | None, cluster: str | None
) -> Shown:
    """Create or change many groups (5.x)."""
    flags.one_target(cluster, address)
    configs = flags.read_configs(file, GroupConfig)
    done = await admin.groups.create_many(configs, cluster, address)
    word = "group" if address is not None else "subscription group"
    line = f"submit batch of {word} config to {{}} success, please check the result later."
    return changed(done, line, made=[each.group_name for each in configs])
