"""Commands for connected clients: who they are, and what members report, in mqadmin's layout."""

from collections.abc import Mapping

from pocketmq.admin.admin import Admin
from pocketmq.admin.facts import is_orderly, is_push
from pocketmq.cli.admin.flags import BROKER, GROUP, TOPIC, flag, text
from pocketmq.cli.admin.frame import admin_command
from pocketmq.cli.admin.java_text import java_word
from pocketmq.cli.admin.shown import Shown, row, told
from pocketmq.errors import Absent
from pocketmq.model import sort_queues
from pocketmq.protocol.peers import version_name
from pocketmq.protocol.requests import client_calls
from pocketmq.protocol.requests.groups import ClientConnection

_QUEUES = "%-64s  %-32s  %-4s  %-20s"


def running_lines(info: client_calls.RunningInfo) -> list[str]:
    """Return everything a member reports."""
    lines = ["#Consumer Properties#"]
    lines += [row("%-40s: %s", *pair) for pair in sorted(info.properties.items())]
    lines += ["", "", "#Consumer Subscription#"]
    for number, each in enumerate(sorted(info.subscription_set, key=lambda s: s.topic), 1):
        mode = java_word(each.class_filter_mode)
        pattern = "%03d Topic: %-40s ClassFilter: %-8s SubExpression: %s"
        lines.append(row(pattern, number, each.topic, mode, each.sub_string))
    queues = sort_queues(set(info.mq_table))
    heads = ("#Topic", "#Broker Name", "#QID")
    lines += ["", "", "#Consumer Offset#", row(_QUEUES, *heads, "#Consumer Offset")]
    for queue in queues:
        pattern = "%-32s  %-32s  %-4d  %-20d"
        where = (queue.topic, queue.broker_name, queue.queue_id)
        lines.append(row(pattern, *where, info.mq_table[queue].commit_offset))
    lines += ["", "", "#Consumer MQ Detail#", row(_QUEUES, *heads, "#ProcessQueueInfo")]
    for queue in queues:
        where = (queue.topic, queue.broker_name, queue.queue_id)
        lines.append(row("%-64s  %-32s  %-4d  %s", *where, _held(info.mq_table[queue])))
    pattern = "%-32s  %-32s  %-4s  %-20s"
    lines += ["", "", "#Consumer Pop Detail#", row(pattern, *heads, "#ProcessQueueInfo")]
    for queue in sort_queues(set(info.mq_pop_table)):
        where = (queue.topic, queue.broker_name, queue.queue_id)
        lines.append(row("%-32s  %-32s  %-4d  %s", *where, _popped(info.mq_pop_table[queue])))
    return [*lines, *_rates(info), *_rest(info)]


def _rates(info: client_calls.RunningInfo) -> list[str]:
    heads = ("#Pull RT", "#Pull TPS", "#Consume RT", "#ConsumeOK TPS", "#ConsumeFailed TPS")
    pattern = "%-64s  %14s %14s %14s %14s %18s %25s"
    lines = ["", "", "#Consumer RT&TPS#"]
    lines.append(row(pattern, "#Topic", *heads, "#ConsumeFailedMsgsInHour"))
    for topic, status in sorted(info.status_table.items()):
        lines.append(
            row(
                "%-32s  %14.2f %14.2f %14.2f %14.2f %18.2f %25d",
                topic,
                status.pull_rt,
                status.pull_tps,
                status.consume_rt,
                status.consume_ok_tps,
                status.consume_failed_tps,
                status.consume_failed_msgs,
            )
        )
    return lines


def _rest(info: client_calls.RunningInfo) -> list[str]:
    lines = ["", "", "#User Consume Info#"]
    lines += [row("%-40s: %s", *pair) for pair in sorted(info.user_consumer_info.items())]
    if info.jstack is not None:
        lines += ["", "", "#Consumer jstack#", *info.jstack.splitlines()]
    return lines


def _held(held: client_calls.ProcessQueueBody) -> str:
    """Return what a member reports of a queue."""
    return (
        f"ProcessQueueInfo [commitOffset={held.commit_offset}, "
        f"cachedMsgMinOffset={held.cached_msg_min_offset}, "
        f"cachedMsgMaxOffset={held.cached_msg_max_offset}, "
        f"cachedMsgCount={held.cached_msg_count}, "
        f"cachedMsgSizeInMiB={held.cached_msg_size_in_mib}, "
        f"transactionMsgMinOffset={held.transaction_msg_min_offset}, "
        f"transactionMsgMaxOffset={held.transaction_msg_max_offset}, "
        f"transactionMsgCount={held.transaction_msg_count}, locked={java_word(held.locked)}, "
        f"tryUnlockTimes={held.try_unlock_times}, "
        f"lastLockTimestamp={_compact(held.last_lock_timestamp)}, "
        f"droped={java_word(held.dropped)}, "
        f"lastPullTimestamp={_compact(held.last_pull_timestamp)}, "
        f"lastConsumeTimestamp={_compact(held.last_consume_timestamp)}]"
    )


def _popped(held: client_calls.PopProcessQueueInfo) -> str:
    return (
        f"PopProcessQueueInfo [waitAckCount:{held.wait_ack_count}, "
        f"droped:{java_word(held.dropped)}, lastPopTimestamp:{held.last_pop_timestamp}]"
    )


def _compact(time_ms: int) -> str:
    """Return a time as `20260131120000123`."""
    import time

    moment = time.strftime("%Y%m%d%H%M%S", time.localtime(time_ms / 1000))
    return f"{moment}{time_ms % 1000:03d}"


_STACKS = flag("-s", "--jstack", "stacks", help="Include thread stacks.")


_CLIENT = text("-i", "--clientId", "client", help="Only this member, in full.")


async def _status(admin: Admin, group: str, client: str | None, *, stacks: bool) -> Shown:
    if client is not None:
        info = await admin.groups.running_info(group, client, stacks=stacks)
        return Shown(running_lines(info), info)
    running = await admin.groups.running(group, stacks=stacks)
    if not running.members and not running.silent:
        raise Absent("online member of group", group)
    pattern = "%-10s %-40s %-20s %s"
    lines = [row(pattern, "#Index", "#ClientId", "#Version", "#ConsumerRunningInfo")]
    for number, (member, info) in enumerate(running.members.items(), 1):
        version = info.properties.get("PROP_CLIENT_VERSION", "")
        lines.append(row(pattern, number, member, version, "below"))
    lines += _judgement(running.members, admin.now_ms())
    for member, info in running.members.items():
        lines += ["", f"== {member}", *running_lines(info)]
    problems = tuple(f"{member}: {error}" for member, error in running.silent.items())
    return Shown(lines, running.members, problems)


def _judgement(members: Mapping[str, client_calls.RunningInfo], now_ms: int) -> list[str]:
    """Return mqadmin's judgement of subscriptions, locks and handlers."""
    subscriptions = {
        frozenset((each.topic, each.sub_string) for each in info.subscription_set)
        for info in members.values()
    }
    young = any(
        now_ms - int(info.properties.get(client_calls.PROP_START_TIMESTAMP, "0") or 0) <= 120_000
        for info in members.values()
    )
    if len(subscriptions) > 1 and not young:
        return ["", "", "WARN: Different subscription in the same group of consumer!!!"]
    lines = ["", "", "Same subscription in the same group of consumer", "", "Rebalance OK"]
    for member, info in members.items():
        if not is_push(info):
            continue
        for queue, held in info.mq_table.items():
            name = queue.java_text()
            if is_orderly(info):
                if not held.locked:
                    since = now_ms - held.last_lock_timestamp
                    lines.append(f"{member} {name} can't lock for a while, {since}ms")
            elif held.cached_msg_count > 0 and now_ms - held.last_consume_timestamp > 60_000:
                since = now_ms - held.last_consume_timestamp
                lines.append(f"{member} {name} can't consume for a while, maybe blocked, {since}ms")
    return lines


@admin_command("consumerStatus", GROUP, _CLIENT, BROKER, _STACKS)
async def consumer_status(
    admin: Admin, *, group: str, client: str | None, address: str | None, stacks: bool
) -> Shown:
    """Show what a group's members report.

    mqadmin writes it to files; here it is printed.
    """
    del address  # all brokers are asked
    return await _status(admin, group, client, stacks=stacks)


@admin_command("consumer", GROUP, _CLIENT, _STACKS)
async def consumer(admin: Admin, *, group: str, client: str | None, stacks: bool) -> Shown:
    """Show what a group's members report: consumerStatus."""
    return await _status(admin, group, client, stacks=stacks)


@admin_command(
    "getConsumerStatus",
    GROUP,
    TOPIC,
    text("-i", "--originClientId", "client", help="Only this member."),
)
async def get_status(admin: Admin, *, group: str, topic: str, client: str | None) -> Shown:
    """Show the offsets that members have in memory.

    They may be ahead of the committed ones.
    """
    found = await admin.offsets.in_memory(group, topic, client)
    pattern = "%-50s  %-15s  %-15s  %-20s"
    asked = f"group={group}, topic={topic}, originClientId={client or ''}"
    lines = [
        f"get consumer status from client. {asked}",
        row(pattern, "#clientId", "#brokerName", "#queueId", "#offset"),
    ]
    for member, offsets in sorted(found.items()):
        for queue, offset in offsets.items():
            lines.append(row(pattern, member[:50], queue.broker_name, queue.queue_id, offset))
    return Shown(lines, found)


def _language(connection: ClientConnection) -> str:
    return "null" if connection.language is None else connection.language.name


@admin_command("consumerConnection", GROUP, BROKER)
async def consumer_connection(admin: Admin, *, group: str, address: str | None) -> Shown:
    """Show the members and subscriptions of a group."""
    found = (await admin.groups.connections(group, address)).some()
    views = [each.value for each in found if each.value.connection_set]
    if not views:
        raise Absent("online member of group", group)
    members = {
        (each.client_id, each.client_addr): each for view in views for each in view.connection_set
    }
    shown: dict[str | None, ClientConnection] = {}
    for connection in members.values():
        shown.setdefault(connection.client_id, connection)
    pattern = "%-36s %-22s %-10s %s"
    lines = [row(pattern, "#ClientId", "#ClientAddr", "#Language", "#Version")]
    for each in shown.values():
        version = version_name(each.version)
        lines.append(row(pattern, each.client_id, each.client_addr, _language(each), version))
    lines += ["", "Below is subscription:", row("%-20s %s", "#Topic", "#SubExpression")]
    first = views[0]
    lines += [row("%-20s %s", s.topic, s.sub_string) for s in first.subscription_table.values()]
    kinds = {
        "ConsumeType": first.consume_type,
        "MessageModel": first.message_model,
        "ConsumeFromWhere": first.consume_from_where,
    }
    lines.append("")
    lines += [f"{name}: {'null' if kind is None else kind.value}" for name, kind in kinds.items()]
    data = {each.place.broker: each.value for each in found}
    return Shown(lines, data, told(found.missing))


@admin_command(
    "producerConnection",
    text("-g", "--producerGroup", "group", help="Producer group.", required=True),
    TOPIC,
)
async def producer_connection(admin: Admin, *, group: str, topic: str) -> Shown:
    """Show the connected producers of a group.

    As the brokers of the topic list them.
    """
    found = (await admin.groups.producers(group, topic)).some()
    clients: dict[str | None, ClientConnection] = {}
    for view in found.values():
        for connection in view.connection_set:
            clients.setdefault(connection.client_id, connection)
    lines = [
        row(
            "%04d  %-32s %-22s %-8s %s",
            number,
            each.client_id,
            each.client_addr,
            _language(each),
            version_name(each.version),
        )
        for number, each in enumerate(clients.values(), 1)
    ]
    return Shown(lines, {each.place.broker: each.value for each in found})


@admin_command(
    "producer", text("-b", "--broker", "address", help="Address of the broker.", required=True)
)
async def producers(admin: Admin, *, address: str) -> Shown:
    """Show all producers connected to a broker."""
    table = await admin.brokers.producers(address)
    lines = []
    for group, instances in sorted(table.data.items()):
        if not instances:
            lines.append(f"producer group ({group}) instances are empty")
        for each in instances:
            language = "null" if each.language is None else each.language.name
            lines.append(
                f"producer group ({group}) instance : clientId={each.client_id},"
                f"remoteIP={each.remote_ip}, language={language}, "
                f"version={each.version}, lastUpdateTimestamp={each.last_update_timestamp}"
            )
    return Shown(lines, table)
