"""Commands for name servers."""

import click

from pocketmq.admin.admin import Admin
from pocketmq.admin.gathered import Gathered
from pocketmq.admin.name_servers import ORDER_NAMESPACE
from pocketmq.cli.admin.flags import BROKER_NAME, TOPIC, text
from pocketmq.cli.admin.frame import admin_command
from pocketmq.cli.admin.shown import Shown, row, told
from pocketmq.errors import Absent

_NAMESPACE = text("-s", "--namespace", help="Namespace.", required=True)
_KEY = text("-k", "--key", help="Key.", required=True)
_VALUE = text("-v", "--value", help="Value.", required=True)


@admin_command("getNamesrvConfig")
async def get_config(admin: Admin) -> Shown:
    """Show the settings of name servers."""
    found = (await admin.name_servers.config()).some()
    lines = []
    for each in found:
        lines.append(f"============{each.place.address}============")
        lines += [row("%-50s=  %s", *pair) for pair in sorted(each.value.items())]
    data = {each.place.address: each.value for each in found}
    return Shown(lines, data, told(found.missing))


@admin_command("updateNamesrvConfig", _KEY, _VALUE)
async def update_config(admin: Admin, *, key: str, value: str) -> Shown:
    """Change a setting of running name servers."""
    done = (await admin.name_servers.change_config({key: value})).some()
    servers = [each.place.address for each in done]
    lines = [f"update name server config success![{', '.join(servers)}]", f"{key} : {value}"]
    return Shown(lines, {"changed": {key: value}, "servers": servers}, told(done.missing))


@admin_command("updateKvConfig", _NAMESPACE, _KEY, _VALUE)
async def update_value(admin: Admin, *, namespace: str, key: str, value: str) -> Shown:
    """Store a value on every name server."""
    done = (await admin.name_servers.put(namespace, key, value)).some()
    lines = ["create or update kv config to namespace success."]
    return Shown(lines, {"namespace": namespace, "key": key, "value": value}, told(done.missing))


@admin_command(
    "deleteKvConfig", _NAMESPACE, _KEY, asks="Delete {key} of {namespace} from all name servers?"
)
async def delete_value(admin: Admin, *, namespace: str, key: str) -> Shown:
    """Delete a value from every name server."""
    done = (await admin.name_servers.delete(namespace, key)).some()
    lines = ["delete kv config from namespace success."]
    return Shown(lines, {"namespace": namespace, "key": key}, told(done.missing))


@admin_command(
    "updateOrderConf",
    TOPIC,
    text("-v", "--orderConf", "order", help="Brokers and queues, such as broker-a:4;broker-b:4."),
    click.option(
        "-m",
        "--method",
        type=click.Choice(["put", "get", "delete"]),
        required=True,
        help="What to do.",
    ),
)
async def update_order(admin: Admin, *, topic: str, order: str | None, method: str) -> Shown:
    """Set, show or delete the order of a topic's queues."""
    if method == "get":
        known = await admin.name_servers.get(ORDER_NAMESPACE, topic)
        if known is None:
            raise Absent("order configuration for topic", topic)
        line = f"get orderConf success. topic=[{topic}], orderConf=[{known}] "
        return Shown([line], {"topic": topic, "order": known})
    if method == "delete":
        done = (await admin.name_servers.delete(ORDER_NAMESPACE, topic)).some()
        return Shown(
            [f"delete orderConf success. topic=[{topic}]"], {"topic": topic}, told(done.missing)
        )
    if not (order or "").strip():
        raise click.UsageError("no order; give -v, such as broker-a:4;broker-b:4")
    done = (await admin.name_servers.put(ORDER_NAMESPACE, topic, order or "")).some()
    line = f"update orderConf success. topic=[{topic}], orderConf=[{order}]"
    return Shown([line], {"topic": topic, "order": order}, told(done.missing))


@admin_command("wipeWritePerm", BROKER_NAME, asks="Disable writes to broker {broker}?")
async def wipe(admin: Admin, *, broker: str) -> Shown:
    """Disable writes to a broker."""
    return _changed("wipe", broker, await admin.name_servers.wipe_write_permission(broker))


@admin_command("addWritePerm", BROKER_NAME)
async def add(admin: Admin, *, broker: str) -> Shown:
    """Enable writes to a broker."""
    return _changed("add", broker, await admin.name_servers.add_write_permission(broker))


def _changed(verb: str, broker: str, done: Gathered[int]) -> Shown:
    said = f"{verb} write perm of broker[{broker}] in name server"
    lines = [f"{said}[{each.place.address}] OK, {each.value}" for each in done.some()]
    data = {"broker": broker, "topics": {each.place.address: each.value for each in done}}
    return Shown(lines, data, told(done.missing))
