"""Commands for static topics: creating them, adding queues, moving queues to other brokers."""

import os
import tempfile
from pathlib import Path

import click

from pocketmq.admin.admin import Admin
from pocketmq.admin.static_topics import StaticTopicChange
from pocketmq.cli.admin import flags
from pocketmq.cli.admin.frame import admin_command
from pocketmq.cli.admin.shown import Shown
from pocketmq.errors import BodyMalformed
from pocketmq.model.topics import TopicMappingPlan
from pocketmq.protocol import decode_body, encode_body

_WRITTEN = "The {} mapping data is written to file {}"
_CLUSTERS = flags.text("-c", "--clusters", help="Clusters, separated by commas.")
_BROKERS = flags.text("-b", "--brokers", help="Names of brokers, separated by commas.")
_FILE = click.option(
    "-mf",
    "--mapFile",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Apply the mapping of a file that this command has written.",
)
_FORCE = flags.truth(
    "-fr", "--forceReplace", "force", default=False, help="Replace the mapping that brokers have."
)


@admin_command(
    "updateStaticTopic",
    flags.TOPIC,
    _BROKERS,
    _CLUSTERS,
    flags.number(
        "-qn", "--totalQueueNum", "queues", least=1, help="Number of queues.", required=True
    ),
    _FILE,
    _FORCE,
)
async def update_static_topic(
    admin: Admin,
    *,
    topic: str,
    brokers: str | None,
    clusters: str | None,
    queues: int,
    file: Path | None,
    force: bool,
) -> Shown:
    """Create a static topic, or add queues to one.

    The number of its queues is fixed; which broker has a queue can change.
    """
    flags.one_target(clusters, brokers)
    if file is not None:
        return await _apply(admin, topic, file, force=force)
    change = await admin.static_topics.create(
        topic, queues, flags.names_in(brokers), flags.names_in(clusters)
    )
    return _shown(change, "new")


@admin_command("remappingStaticTopic", flags.TOPIC, _BROKERS, _CLUSTERS, _FILE, _FORCE)
async def move_static_topic(
    admin: Admin,
    *,
    topic: str,
    brokers: str | None,
    clusters: str | None,
    file: Path | None,
    force: bool,
) -> Shown:
    """Move the queues of a static topic to brokers.

    Consumers read the messages that stay behind through the new broker of a queue.
    """
    flags.one_target(clusters, brokers)
    if file is not None:
        return await _apply(admin, topic, file, force=force)
    change = await admin.static_topics.move(
        topic, flags.names_in(brokers), flags.names_in(clusters)
    )
    return _shown(change, "old")  # mqadmin's word, for the second file, too


def _shown(change: StaticTopicChange, word: str) -> Shown:
    lines = [
        _WRITTEN.format("old", _written(change.before, "before")),
        _WRITTEN.format(word, _written(change.after, "after")),
    ]
    return Shown(lines, change)


def _written(plan: TopicMappingPlan, suffix: str) -> Path:
    """Write a mapping where mqadmin does; no link of another user is followed."""
    path = Path(tempfile.gettempdir()) / f"{plan.topic}-{plan.epoch}.{suffix}"
    flags_of_open = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(path, flags_of_open, 0o600), "wb") as file:
        file.write(encode_body(plan))
    return path


def _read(file: Path) -> TopicMappingPlan:
    try:
        return decode_body(file.read_bytes(), TopicMappingPlan)
    except BodyMalformed as error:
        raise click.UsageError(f"{file}: {error.reason}") from None


async def _apply(admin: Admin, topic: str, file: Path, *, force: bool) -> Shown:
    plan = _read(file)
    if plan.topic != topic:
        raise click.UsageError(f"{file} has the mapping of topic {plan.topic!r}")
    await admin.static_topics.apply(plan, force=force)
    return Shown([f"applied the mapping in {file}"], plan)
