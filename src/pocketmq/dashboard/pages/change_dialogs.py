"""Dialogs that change or delete a topic or a group, or send a message to a topic.

Each is a form, the consequences, then the deed.
"""

from typing import Any

from nicegui import ui

from pocketmq.dashboard.actions.changing import GroupChange, TopicChange
from pocketmq.dashboard.actions.sending import written_message
from pocketmq.dashboard.desk import Desk
from pocketmq.dashboard.formatting import size
from pocketmq.dashboard.parts import FormField, confirm, fill_in, perform
from pocketmq.errors import InvalidInput
from pocketmq.model import GroupConfig, Message, TopicConfig
from pocketmq.model.names import check_group

PERMISSIONS = {"read and write": 6, "read": 4, "write": 2}


async def change_topic(desk: Desk, who: str, topic: str, config: TopicConfig) -> None:
    """Change a topic; the form starts with the settings of one broker."""
    names = {bits: name for name, bits in PERMISSIONS.items()}
    fields = {
        "read": FormField("Read queues on each broker", config.read_queue_nums),
        "write": FormField("Write queues on each broker", config.write_queue_nums),
        "permission": FormField(
            "Permissions", names.get(config.perm, "read and write"), tuple(PERMISSIONS)
        ),
    }

    def checked(given: dict[str, Any]) -> TopicChange:
        return TopicChange(given["read"], given["write"], PERMISSIONS[given["permission"]])

    change = await fill_in(f"Change topic {topic}", fields, checked)
    if change is None:
        return
    queues = f"{change.read_queues} read and {change.write_queues} write queues"
    consequences = [
        f"On every broker that has it, {topic} gets {queues}.",
        "If the number of queues changes, members rebalance, and ordered keys may change queues.",
    ]
    if change.read_queues < config.read_queue_nums:
        consequences.append("Messages in queues that are no longer read are not delivered.")
    if await confirm(f"Change topic {topic}?", consequences, "Change"):
        work = desk.actions.changing.change_topic(who, topic, change)
        await perform(work, lambda brokers: f"Topic {topic} changed on {brokers} brokers.")


async def delete_topic(desk: Desk, who: str, topic: str, messages: str) -> None:
    """Delete a topic after its name was typed."""
    consequences = [
        f"Topic {topic} and its messages ({messages}) are deleted on every broker.",
        "This cannot be undone. Clients that use it fail, or create it again.",
    ]
    if await confirm(f"Delete topic {topic}?", consequences, "Delete", topic):
        work = desk.actions.changing.delete_topic(who, topic)
        if await perform(work, lambda brokers: f"Topic {topic} deleted on {brokers} brokers."):
            ui.navigate.to("/topics")


def _group_fields(config: GroupConfig) -> dict[str, FormField]:
    return {
        "retries": FormField("Retries before a dead letter", config.retry_max_times),
        "consume": FormField("May consume", config.consume_enable),
        "broadcast": FormField("May broadcast", config.consume_broadcast_enable),
        "orderly": FormField("Orderly", config.consume_message_orderly),
    }


def _group_change(given: dict[str, Any]) -> GroupChange:
    return GroupChange(given["retries"], given["consume"], given["broadcast"], given["orderly"])


async def create_group(desk: Desk, who: str, known: set[str]) -> None:
    """Create a group."""
    fields = {"name": FormField("Name", longest=255)}

    def checked(given: dict[str, Any]) -> tuple[str, GroupChange]:
        group = given["name"].strip()
        check_group(group)
        if group in known:
            raise InvalidInput(f"group {group!r} exists already")
        return group, _group_change(given)

    wanted = await fill_in(
        "Create group", fields | _group_fields(GroupConfig(group_name="x")), checked
    )
    if wanted is None:
        return
    group, change = wanted
    consequences = [
        f"Group {group} is created on every broker, with {change.retries} retries.",
        "Members can join it immediately. Nothing else changes.",
    ]
    if await confirm(f"Create group {group}?", consequences, "Create"):
        work = desk.actions.changing.create_group(who, group, change)
        await perform(work, lambda brokers: f"Group {group} created on {brokers} brokers.")


async def change_group(desk: Desk, who: str, group: str, config: GroupConfig) -> None:
    """Change a group; the form starts with the settings of one broker."""
    change = await fill_in(f"Change group {group}", _group_fields(config), _group_change)
    if change is None:
        return
    consequences = [
        f"On every broker that has it, {group} gets {change.retries} retries.",
        "It may consume." if change.consume else "It may not consume: its messages accumulate.",
    ]
    if await confirm(f"Change group {group}?", consequences, "Change"):
        work = desk.actions.changing.change_group(who, group, change)
        await perform(work, lambda brokers: f"Group {group} changed on {brokers} brokers.")


async def delete_group(desk: Desk, who: str, group: str, members: str) -> None:
    """Delete a group after its name was typed."""
    consequences = [
        f"Group {group} ({members} members), its offsets, retries and dead letters are deleted.",
        "Members that are online may create it again, and then start where new groups start.",
        "This cannot be undone.",
    ]
    if await confirm(f"Delete group {group}?", consequences, "Delete", group):
        work = desk.actions.changing.delete_group(who, group)
        if await perform(work, lambda brokers: f"Group {group} deleted on {brokers} brokers."):
            ui.navigate.to("/groups")


_MESSAGE_FIELDS = {
    "body": FormField("Body", long=True, longest=256 * 1024),
    "tag": FormField("Tag"),
    "keys": FormField("Keys, separated by blanks"),
    "properties": FormField("Properties, such as region=eu, one per line", long=True, longest=8192),
}


async def write_and_send(desk: Desk, who: str, topic: str) -> None:
    """Ask for a message to a topic, then for confirmation, then send it."""

    def checked(given: dict[str, Any]) -> Message:
        return written_message(
            topic, given["tag"], given["keys"], given["properties"], given["body"]
        )

    message = await fill_in(f"New message to {topic}", _MESSAGE_FIELDS, checked)
    if message is None:
        return
    consequences = [
        f"A message of {size(len(message.body))} is sent to {topic}.",
        "Every group of the topic receives it. It cannot be taken back.",
    ]
    if await confirm(f"Send a message to {topic}?", consequences, "Send"):
        work = desk.actions.sending.send(who, message)
        await perform(work, lambda receipt: f"Sent: {receipt.message_id}.")
