"""Commands about connected clients: consumers and producers."""

from collections.abc import Mapping

from pocketmq.admin.admin import Admin
from pocketmq.admin.facts import is_orderly, is_push
from pocketmq.cli.admin.flags import BROKER, GROUP, TOPIC, flag, text
from pocketmq.cli.admin.frame import admin_command
from pocketmq.cli.admin.member_status import running_lines
from pocketmq.cli.admin.shown import Shown, row, told
from pocketmq.errors import Absent
from pocketmq.protocol.peers import version_name
from pocketmq.protocol.requests.client_calls import PROP_START_TIMESTAMP, RunningInfo
from pocketmq.protocol.requests.groups import ClientConnection

_STACKS = flag("-s", "--jstack", "stacks", help="With what their threads do.")
_CLIENT = text("-i", "--clientId", "client", help="One member, in full.")


def _language(connection: ClientConnection) -> str:
    return "null" if connection.language is None else connection.language.name


@admin_command("consumerConnection", GROUP, BROKER)
async def consumer_connection(admin: Admin, *, group: str, address: str | None) -> Shown:
    """Show a group's members and subscriptions."""
    found = (await admin.groups.connections(group, address)).some()
    views = [each.value for each in found if each.value.connection_set]
    if not views:
        raise Absent("member", group, "the group is offline")
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
    text("-g", "--producerGroup", "group", help="Group.", required=True),
    TOPIC,
)
async def producer_connection(admin: Admin, *, group: str, topic: str) -> Shown:
    """Show the producers of a group that are connected to the brokers of a topic."""
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
    "producer", text("-b", "--broker", "address", help="Broker's address.", required=True)
)
async def producers(admin: Admin, *, address: str) -> Shown:
    """Show all producers of a broker."""
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


async def _status(admin: Admin, group: str, client: str | None, *, stacks: bool) -> Shown:
    if client is not None:
        info = await admin.groups.running_info(group, client, stacks=stacks)
        return Shown(running_lines(info), info)
    running = await admin.groups.running(group, stacks=stacks)
    if not running.members and not running.silent:
        raise Absent("member", group, "the group is offline")
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


def _judgement(members: Mapping[str, RunningInfo], now_ms: int) -> list[str]:
    """Judge as mqadmin does: same subscriptions, queues locked, handlers that do not hang."""
    wishes = {
        frozenset((each.topic, each.sub_string) for each in info.subscription_set)
        for info in members.values()
    }
    young = any(
        now_ms - int(info.properties.get(PROP_START_TIMESTAMP, "0") or 0) <= 120_000
        for info in members.values()
    )
    if len(wishes) > 1 and not young:
        return ["", "", "WARN: Different subscription in the same group of consumer!!!"]
    lines = ["", "", "Same subscription in the same group of consumer", "", "Rebalance OK"]
    for member, info in members.items():
        if not is_push(info):
            continue
        for queue, held in info.mq_table.items():
            if is_orderly(info):
                if not held.locked:
                    since = now_ms - held.last_lock_timestamp
                    lines.append(f"{member} {queue} can't lock for a while, {since}ms")
            elif held.cached_msg_count > 0 and now_ms - held.last_consume_timestamp > 60_000:
                since = now_ms - held.last_consume_timestamp
                lines.append(
                    f"{member} {queue} can't consume for a while, maybe blocked, {since}ms"
                )
    return lines


@admin_command("consumerStatus", GROUP, _CLIENT, BROKER, _STACKS)
async def consumer_status(
    admin: Admin, *, group: str, client: str | None, address: str | None, stacks: bool
) -> Shown:
    """Show what a group's members do; mqadmin writes it to files, here it is printed."""
    del address  # every broker is asked
    return await _status(admin, group, client, stacks=stacks)


@admin_command("consumer", GROUP, _CLIENT, _STACKS)
async def consumer(admin: Admin, *, group: str, client: str | None, stacks: bool) -> Shown:
    """Show what a group's members do; the same as consumerStatus."""
    return await _status(admin, group, client, stacks=stacks)


@admin_command(
    "getConsumerStatus",
    GROUP,
    TOPIC,
    text("-i", "--originClientId", "client", help="One member."),
)
async def get_status(admin: Admin, *, group: str, topic: str, client: str | None) -> Shown:
    """Show the offsets members have in memory, which may be ahead of those stored."""
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


COMMANDS = {
    each.name: each
    for each in (
        consumer_connection,
        producer_connection,
        producers,
        consumer_status,
        consumer,
        get_status,
    )
}
