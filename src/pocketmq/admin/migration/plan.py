"""The plan of a migration: target of each queue, what is created, what is skipped and why.

Pure decisions over the contents of both clusters.
"""

from collections.abc import Mapping, Sequence

import msgspec

from pocketmq.model import GroupConfig, MessageQueue, Permission, TopicConfig
from pocketmq.model import names as topic_names

Topics = Mapping[str, Mapping[str, TopicConfig]]
"""Settings of topics by topic and broker."""
_BOTH = int(Permission.READ | Permission.WRITE)


class ClusterContents(msgspec.Struct, frozen=True, kw_only=True):
    """The brokers, topics and groups of a cluster."""

    cluster: str
    brokers: tuple[str, ...]
    topics: Topics
    groups: Mapping[str, GroupConfig]
    own_topics: frozenset[str]
    """Topics that brokers created for themselves."""


class TopicPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How a topic is moved."""

    topic: str
    queues: tuple[tuple[MessageQueue, MessageQueue], ...]
    """Pairs of a source queue and its target queue."""
    create: dict[str, TopicConfig]
    """Settings to create or change, by broker of the target."""
    final: dict[str, int]
    """Permissions to set on brokers of the target once all is copied, where they differ."""


class MigrationPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a migration will do."""

    topics: tuple[TopicPlan, ...]
    groups: tuple[GroupConfig, ...]
    """Groups to create on every broker of the target."""
    known_groups: tuple[str, ...]
    """All groups that are moved."""
    left_out: dict[str, str]
    """Topics and groups that are skipped, and why."""
    notes: tuple[str, ...]
    """What an operator should know first."""
    problems: tuple[str, ...]
    """What has to be fixed first."""


class MigrationChoice(msgspec.Struct, frozen=True):
    """The topics and groups to move; none named means all."""

    topics: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    """Topics and groups to skip."""
    made: frozenset[str] = frozenset()
    """Topics that an earlier run has created on the target."""


def make_plan(
    source: ClusterContents, target: ClusterContents, wanted: MigrationChoice
) -> MigrationPlan:
    """Decide what goes where."""
    left_out = dict.fromkeys(wanted.without, "excluded by --without")
    problems = [
        f"topic {topic!r} does not exist in the source"
        for topic in wanted.topics
        if topic not in source.topics
    ]
    problems += [
        f"group {group!r} does not exist in the source"
        for group in wanted.groups
        if group not in source.groups
    ]
    groups = _groups(source, wanted, left_out)
    notes: list[str] = []
    topics = []
    for topic in _topics(source, wanted, groups, left_out):
        outcome = _topic_plan(topic, source, target, made=topic in wanted.made)
        if isinstance(outcome, str):
            problems.append(outcome)
        else:
            topics.append(outcome)
            notes += _topic_notes(outcome, source.topics[topic])
    made = []
    for group in groups:
        mine, theirs = source.groups[group], target.groups.get(group)
        if theirs is None:
            made.append(mine)
        elif theirs != mine:
            notes.append(f"group {group} exists on the target with other settings, which are kept")
    return MigrationPlan(
        topics=tuple(topics),
        groups=tuple(made),
        known_groups=tuple(groups),
        left_out=left_out,
        notes=tuple(notes),
        problems=tuple(problems),
    )


def _groups(
    source: ClusterContents, wanted: MigrationChoice, left_out: dict[str, str]
) -> list[str]:
    chosen = []
    for group in sorted(source.groups):
        if group in topic_names.SYSTEM_GROUPS or topic_names.is_system_group(group):
            continue
        if group in left_out or (wanted.groups and group not in wanted.groups):
            continue
        chosen.append(group)
    return chosen


def _topics(
    source: ClusterContents,
    wanted: MigrationChoice,
    groups: Sequence[str],
    left_out: dict[str, str],
) -> list[str]:
    """Return the topics to move; retry and dead-letter topics go with their groups."""
    chosen = []
    for topic in sorted(source.topics):
        if topic_names.is_system_topic(topic) or topic in source.own_topics:
            continue
        if topic in left_out:
            continue
        if topic_names.is_retry_topic(topic) or topic_names.is_dead_letter_topic(topic):
            bare = topic.split("%", 2)[2]
            # Those of groups that pop have the topic after the group's name.
            ours = any(bare == each or bare.startswith((f"{each}_", f"{each}+")) for each in groups)
            if not ours:
                if topic_names.is_dead_letter_topic(topic) and not wanted.groups:
                    left_out[topic] = "its group is not moved"
                continue
        elif wanted.topics and topic not in wanted.topics:
            continue
        chosen.append(topic)
    return chosen


def _topic_plan(
    topic: str, source: ClusterContents, target: ClusterContents, *, made: bool
) -> TopicPlan | str:
    """Return the plan of a topic, or why there cannot be one."""
    configs = source.topics[topic]
    problem = _unreadable(topic, configs)
    if problem is not None:
        return problem
    queues = [
        MessageQueue(topic, broker, queue_id)
        for broker in sorted(configs)
        for queue_id in range(_size(configs[broker]))
    ]
    there = target.topics.get(topic, {})
    wanted = _wanted(configs, target.brokers, len(queues))
    if there:
        problem = _unlike(topic, len(queues), there, made=made)
        if problem is not None:
            return problem
    places = [
        MessageQueue(topic, broker, queue_id)
        for broker, config in sorted((there or wanted).items())
        for queue_id in range(_size(config))
    ]
    ours = {
        broker: config
        for broker, config in wanted.items()
        if broker not in there or (made and not _is_open(there[broker]))
    }
    closed = {b: config.perm for b, config in wanted.items() if not _is_open(config)}
    return TopicPlan(
        topic=topic,
        queues=tuple((queue, places[at % len(places)]) for at, queue in enumerate(queues)),
        create={} if there and not made else {b: _opened(each) for b, each in ours.items()},
        final={} if there and not made else closed,
    )


def _is_open(config: TopicConfig) -> bool:
    return config.perm & _BOTH == _BOTH


def _opened(config: TopicConfig) -> TopicConfig:
    """Return settings that allow writing the topic while it is copied."""
    attributes = {f"+{name}": value for name, value in config.attributes.items()}
    return msgspec.structs.replace(config, perm=config.perm | _BOTH, attributes=attributes)


def _size(config: TopicConfig) -> int:
    return max(config.read_queue_nums, config.write_queue_nums)


def _wanted(
    configs: Mapping[str, TopicConfig], brokers: Sequence[str], total: int
) -> dict[str, TopicConfig]:
    """Return the settings of a topic on each broker of the target, with all its queues."""
    if len(configs) == len(brokers):
        return {b: configs[own] for b, own in zip(sorted(brokers), sorted(configs), strict=True)}
    model = configs[min(configs)]
    each = -(-total // len(brokers))
    return {
        broker: msgspec.structs.replace(model, read_queue_nums=each, write_queue_nums=each)
        for broker in sorted(brokers)
    }


def _unreadable(topic: str, configs: Mapping[str, TopicConfig]) -> str | None:
    for broker, config in sorted(configs.items()):
        if not config.perm & Permission.READ:
            return (
                f"topic {topic!r} is not readable on the source's broker {broker!r}: allow it with "
                f"`pocketmq admin updateTopicPerm -t '{topic}' -p 6`, or skip it with --without"
            )
        if config.read_queue_nums < config.write_queue_nums:
            return (
                f"topic {topic!r} has {config.write_queue_nums} queues on the source's broker "
                f"{broker!r}, but only {config.read_queue_nums} are readable"
            )
    return None


def _unlike(topic: str, total: int, there: Mapping[str, TopicConfig], *, made: bool) -> str | None:
    """Return why an existing topic cannot receive the queues, None if it can."""
    for broker, config in sorted(there.items()):
        if not made and not config.perm & Permission.WRITE:
            return f"topic {topic!r} is not writable on the target's broker {broker!r}"
    has = sum(map(_size, there.values()))
    if (
        has != total
        and not topic_names.is_retry_topic(topic)
        and not topic_names.is_dead_letter_topic(topic)
    ):
        return (
            f"topic {topic!r} exists on the target with {has} queues, the source has {total}: "
            "messages of a key would change their queue; delete it there, or give it as many queues"
        )
    return None


def _topic_notes(plan: TopicPlan, configs: Mapping[str, TopicConfig]) -> list[str]:
    places = {target for _, target in plan.queues}
    size = sum(map(_size, plan.create.values())) if plan.create else len(places)
    if size != len(plan.queues) and not topic_names.is_retry_topic(plan.topic):
        kind = "ordered topic" if any(each.order for each in configs.values()) else "topic"
        note = (
            f"{kind} {plan.topic} has {len(plan.queues)} queues in the source and {size} on the "
            "target: producers will send a key to another queue than before"
        )
        return [note]
    return []
