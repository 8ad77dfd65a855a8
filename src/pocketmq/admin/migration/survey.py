"""Surveying a cluster for the plan, and creating on another what the plan says."""

from collections.abc import Awaitable
from typing import TypeVar

import msgspec

from pocketmq.admin.gathered import Gathered
from pocketmq.admin.migration.plan import ClusterContents, MigrationPlan, TopicPlan
from pocketmq.admin.migration.side import Side
from pocketmq.errors import CannotMigrate, MQError
from pocketmq.model import GroupConfig, MessageQueue, TopicConfig
from pocketmq.protocol.requests.stats import OffsetRange

T = TypeVar("T")


async def survey(side: Side) -> ClusterContents:
    """Return the contents of a cluster. Raises `CannotMigrate` if a broker does not answer."""
    topics: dict[str, dict[str, TopicConfig]] = {}
    groups: dict[str, GroupConfig] = {}
    places = list(side.places.values())
    for answer in _whole(await side.topics.configs(side.cluster)):
        for topic, config in answer.value.items():
            topics.setdefault(topic, {})[answer.place.broker] = config
    for table in _whole(await side.groups.configs(side.cluster)).values():
        for group, settings in table.items():
            groups.setdefault(group, settings)
    own: set[str] = set()
    for place in places:
        own |= {place.broker, place.cluster, f"{place.cluster}_REPLY_TOPIC"}
        own |= set(await side.topics.system_names(place.address))
    return ClusterContents(
        cluster=places[0].cluster,
        brokers=tuple(sorted(side.places)),
        topics=topics,
        groups=groups,
        own_topics=frozenset(own),
    )


def _whole(gathered: Gathered[T]) -> Gathered[T]:
    for missing in gathered.missing:
        subject = f"broker {missing.place.broker!r} at {missing.place.address}"
        raise CannotMigrate(subject, str(missing.error))
    return gathered


async def holdings(side: Side, topic: str, brokers: list[str]) -> dict[MessageQueue, OffsetRange]:
    """Return the offsets of a topic's queues on some brokers."""
    return {
        queue: held
        for broker in brokers
        for queue, held in (await side.held(topic, broker)).items()
    }


async def make_groups(target: Side, groups: tuple[GroupConfig, ...]) -> None:
    """Create missing groups. Raises `CannotMigrate` if a broker refuses."""
    for group in groups:
        await _make(target.groups.create(group, target.cluster), f"group {group.group_name!r}")


async def prepare(target: Side, plan: MigrationPlan) -> None:
    """Create missing topics and groups. Raises `CannotMigrate` if a broker refuses."""
    await make_groups(target, plan.groups)
    for topic in plan.topics:
        for broker, config in sorted(topic.create.items()):
            making = target.topics.create(config, address=target.address(broker))
            await _make(making, f"topic {topic.topic!r}")


async def settle(target: Side, topic: TopicPlan) -> None:
    """Set the permissions a topic has in the source, now that all is copied."""
    if not topic.final:
        return
    there = await survey(target)
    for broker, permission in sorted(topic.final.items()):
        config = there.topics[topic.topic][broker]
        final = msgspec.structs.replace(config, perm=permission, attributes={})
        making = target.topics.create(final, address=target.address(broker))
        await _make(making, f"topic {topic.topic!r}")


async def _make(making: Awaitable[Gathered[None]], subject: str) -> None:
    try:
        done = await making
    except MQError as error:
        raise CannotMigrate(subject, str(error)) from error
    for missing in done.missing:
        raise CannotMigrate(subject, f"the target's broker {missing}")
