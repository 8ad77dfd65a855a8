"""Changing a cluster from a page: `Audit`, the one way to do it, and what brokers keep.

Every action is checked, then done, then logged. Here are topics, groups and settings, on every
broker that has them; what a form does not show stays as it is on each broker.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol, TypeVar

import msgspec

from pocketmq.admin.admin import Admin
from pocketmq.errors import Absent, InvalidInput
from pocketmq.model import GroupConfig, TopicConfig
from pocketmq.model import names as topic_names

T = TypeVar("T")


class Audit(Protocol):
    """Does some work on behalf of a visitor."""

    async def __call__(
        self,
        who: str,
        what: str,
        work: Callable[[], Awaitable[T]],
        result: Callable[[T], str] | None = None,
        /,
    ) -> T:
        """Return the result of `work`; the log says who did what, and `result` of it.

        Raises `InvalidInput` if actions are off, before anything is done.
        """
        ...


MOST_QUEUES = 1024
MOST_RETRIES = 1000


class TopicChange(msgspec.Struct, frozen=True):
    """New values of a topic's settings."""

    read_queues: int
    write_queues: int
    permission: int

    def __post_init__(self) -> None:
        for queues in (self.read_queues, self.write_queues):
            if not 1 <= queues <= MOST_QUEUES:
                raise InvalidInput(f"a topic must have 1 to {MOST_QUEUES} queues, not {queues}")
        if self.permission not in (2, 4, 6):
            raise InvalidInput("a topic must be readable, writable or both")


class GroupChange(msgspec.Struct, frozen=True):
    """New values of a group's settings."""

    retries: int
    consume: bool
    broadcast: bool
    orderly: bool

    def __post_init__(self) -> None:
        if not 0 <= self.retries <= MOST_RETRIES:
            raise InvalidInput(f"a group must have 0 to {MOST_RETRIES} retries, not {self.retries}")

    def applied_to(self, config: GroupConfig) -> GroupConfig:
        """Return a group's settings with the new values; attributes stay as they are."""
        return msgspec.structs.replace(
            config,
            retry_max_times=self.retries,
            consume_enable=self.consume,
            consume_broadcast_enable=self.broadcast,
            consume_message_orderly=self.orderly,
            attributes={},  # an update lists changes of attributes
        )


class ChangeActions:
    """Changes on behalf of a visitor; each returns the number of brokers that took part."""

    def __init__(self, admin: Admin, audit: Audit) -> None:
        self._admin = admin
        self._audit = audit

    async def change_topic(self, who: str, topic: str, change: TopicChange) -> int:
        """Change a topic on every broker that has it. Raises `Absent`."""

        async def work() -> int:
            check_not_system(topic)
            done = 0
            for answer in await self._admin.topics.configs():
                config = answer.value.get(topic)
                if config is not None:
                    changed = TopicConfig(
                        topic_name=topic,
                        read_queue_nums=change.read_queues,
                        write_queue_nums=change.write_queues,
                        perm=change.permission,
                        topic_filter_type=config.topic_filter_type,
                        topic_sys_flag=config.topic_sys_flag,
                        order=config.order,
                    )
                    place = answer.place
                    (await self._admin.topics.create(changed, address=place.address)).all()
                    done += 1
            if not done:
                raise Absent("topic", topic)
            return done

        what = (
            f"change topic {topic!r} to {change.read_queues} read and {change.write_queues} write "
            f"queues, permission {change.permission}"
        )
        return await self._audit(who, what, work)

    async def delete_topic(self, who: str, topic: str) -> int:
        """Delete a topic and its messages in all its clusters."""

        async def work() -> int:
            check_not_system(topic)
            done = 0
            for cluster in await self._admin.topics.clusters(topic):
                done += len((await self._admin.topics.delete(topic, cluster)).all())
            return done

        return await self._audit(who, f"delete topic {topic!r}", work)

    async def create_group(self, who: str, group: str, change: GroupChange) -> int:
        """Create a group on every broker."""

        async def work() -> int:
            topic_names.check_group(group)
            if (await self._admin.groups.config(group)).answers:
                raise InvalidInput(f"group {group!r} exists already")
            config = change.applied_to(GroupConfig(group_name=group))
            return len((await self._admin.groups.create(config)).all())

        return await self._audit(who, f"create group {group!r}: {_told(change)}", work)

    async def change_group(self, who: str, group: str, change: GroupChange) -> int:
        """Change a group on every broker that has it. Raises `Absent`."""

        async def work() -> int:
            check_not_system_group(group)
            done = 0
            for answer in await self._admin.groups.config(group):
                changed = change.applied_to(answer.value)
                address = answer.place.address
                (await self._admin.groups.create(changed, address=address)).all()
                done += 1
            if not done:
                raise Absent("group", group)
            return done

        return await self._audit(who, f"change group {group!r}: {_told(change)}", work)

    async def delete_group(self, who: str, group: str) -> int:
        """Delete a group with its offsets, retries and dead letters."""

        async def work() -> int:
            check_not_system_group(group)
            done = 0
            for cluster in sorted({each.cluster for each in await self._admin.brokers.masters()}):
                gone = await self._admin.groups.delete(group, cluster, offsets=True)
                done += len(gone.all())
            return done

        return await self._audit(who, f"delete group {group!r}", work)

    async def change_setting(self, who: str, address: str, name: str, value: str) -> int:
        """Change a setting of the running broker at an address."""

        async def work() -> int:
            known = (await self._admin.brokers.config(address=address)).all()
            if name not in known[0]:
                raise InvalidInput(f"the broker has no setting {name!r}")
            changes: Mapping[str, str] = {name: value}
            changed = await self._admin.brokers.change_config(changes, address=address, slaves=True)
            return len(changed.all())

        return await self._audit(who, f"set {name!r} of broker {address} to {value!r}", work)


def check_not_system(topic: str) -> None:
    """Raise `InvalidInput` for a topic that brokers need for themselves."""
    if topic_names.is_system_topic(topic) or topic.startswith("%SYS%"):
        raise InvalidInput(f"{topic} is a system topic; it cannot be changed here")


def check_not_system_group(group: str) -> None:
    """Raise `InvalidInput` for a group that brokers need for themselves."""
    if topic_names.is_system_group(group) or group in topic_names.SYSTEM_GROUPS:
        raise InvalidInput(f"{group} is a system group; it cannot be changed here")


def _told(change: GroupChange) -> str:
    return (
        f"retries {change.retries}, consume {change.consume}, broadcast {change.broadcast}, "
        f"orderly {change.orderly}"
    )
