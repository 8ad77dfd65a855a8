"""Commands for connected clients: consumers and producers."""

from pocketmq.admin.admin import Admin
from pocketmq.cli.admin.flags import BROKER, GROUP, TOPIC, text
from pocketmq.cli.admin.frame import admin_command
from pocketmq.cli.admin.shown import Shown, row, told
from pocketmq.errors import Absent
from pocketmq.protocol.peers import version_name
from pocketmq.protocol.requests.groups import ClientConnection


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
