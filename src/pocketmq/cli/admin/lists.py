"""Commands that make many topics or groups at once, from files of JSON."""

from pathlib import Path
from typing import TypeVar

import click

from pocketmq.admin.admin import Admin
from pocketmq.admin.gathered import Gathered
from pocketmq.cli.admin.flags import BROKER, CLUSTER, one_target
from pocketmq.cli.admin.frame import admin_command
from pocketmq.cli.admin.shown import Shown, told
from pocketmq.errors import BodyMalformed
from pocketmq.model.groups import GroupConfig
from pocketmq.model.topics import TopicConfig
from pocketmq.protocol.json_values import decode_body

T = TypeVar("T")
_FILE = click.option(
    "-f",
    "--filename",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    required=True,
    help="A list of settings, by RocketMQ's names.",
)


def _read(file: Path, kind: type[T]) -> list[T]:
    try:
        return decode_body(file.read_bytes(), list[kind])  # type: ignore[valid-type]
    except BodyMalformed as error:
        raise click.UsageError(f"{file}: {error.reason}") from None


def _done(word: str, names: list[str], done: Gathered[None]) -> Shown:
    lines = [
        f"submit batch of {word} config to {each.place.address} success, "
        "please check the result later."
        for each in done.some()
    ]
    return Shown(lines, {"made": names, "brokers": [e.place for e in done]}, told(done.missing))


@admin_command("updateTopicList", _FILE, BROKER, CLUSTER)
async def topics(admin: Admin, *, file: Path, address: str | None, cluster: str | None) -> Shown:
    """Make or change many topics at once (5.x)."""
    one_target(cluster, address)
    configs = _read(file, TopicConfig)
    done = await admin.topics.create_many(configs, cluster, address)
    return _done("topic", [each.topic_name for each in configs], done)


@admin_command("updateSubGroupList", _FILE, BROKER, CLUSTER)
async def groups(admin: Admin, *, file: Path, address: str | None, cluster: str | None) -> Shown:
    """Make or change many groups at once (5.x)."""
    one_target(cluster, address)
    configs = _read(file, GroupConfig)
    done = await admin.groups.create_many(configs, cluster, address)
    word = "group" if address is not None else "subscription group"
    return _done(word, [each.group_name for each in configs], done)


COMMANDS = {each.name: each for each in (topics, groups)}
