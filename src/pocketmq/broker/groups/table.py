"""The consumer groups of a broker: their settings, and which topics each may not read.

Pure rules over a table in memory; saving what changed is the callers' business (`saving`).
"""

from collections.abc import Iterable

import msgspec

from pocketmq.broker.core.config_table import ConfigTable
from pocketmq.broker.core.names import group_fault
from pocketmq.broker.topics.attributes import GROUP_ATTRIBUTES, apply_changes
from pocketmq.model import GroupConfig, Permission
from pocketmq.model.names import is_system_group
from pocketmq.protocol import decode_body, encode_body

MAX_GROUPS = 50_000
"""As for topics: a client with random names must not fill the memory."""

_READ = int(Permission.READ)


class GroupConfigTable(ConfigTable[GroupConfig]):
    """Groups by name."""

    kind = "group"

    def __init__(
        self, system: Iterable[GroupConfig] = (), *, now_ms: int = 0, limit: int = MAX_GROUPS
    ) -> None:
        super().__init__(GroupConfig, limit, now_ms)
        self.entries = {config.group_name: config for config in system}
        self.forbidden = ForbiddenTable()

    def find(self, group: str, *, auto_create: bool, now_ms: int) -> GroupConfig | None:
        """Return a group, created if it is missing and may be; None if there is and will be none.

        RocketMQ's own groups may always be created.
        """
        known = self.entries.get(group)
        if known is not None:
            return known
        may_create = auto_create or is_system_group(group)
        if not may_create or self.full or group_fault(group) is not None:
            return None
        config = GroupConfig(group_name=group)
        self.put(group, config, now_ms)
        return config

    def update(self, wanted: GroupConfig, now_ms: int) -> None:
        """Create or replace a group; its attributes are changes, with signed keys.

        Raises `AttributeRefused`.
        """
        name = wanted.group_name
        known = self.entries.get(name)
        current = None if known is None else known.attributes
        attributes = apply_changes(GROUP_ATTRIBUTES, current, wanted.attributes)
        self.put(name, msgspec.structs.replace(wanted, attributes=attributes), now_ms)

    def remove(self, name: str, now_ms: int) -> bool:
        """Remove a group and what it was forbidden."""
        self.forbidden.clear(name)
        return super().remove(name, now_ms)

    def may_read(self, group: str, topic: str) -> bool:
        """Return whether a group may read a topic."""
        return not self.forbidden.bits(group, topic) & _READ

    def allow_reading(self, group: str, topic: str, *, allowed: bool, now_ms: int) -> None:
        """Forbid a group to read a topic, or allow it again."""
        bits = self.forbidden.bits(group, topic)
        wanted = bits & ~_READ if allowed else bits | _READ
        if wanted != bits:
            self.forbidden.set(group, topic, wanted)
            self.version = self.version.following(now_ms)


class ForbiddenTable:
    """Per group and topic the permission bits that are switched off (5.x)."""

    kind = "forbidden"

    def __init__(self) -> None:
        self.entries: dict[str, dict[str, int]] = {}
        self._unsaved: set[str] = set()

    def bits(self, group: str, topic: str) -> int:
        """Return what a group may not do with a topic."""
        topics = self.entries.get(group)
        return 0 if topics is None else topics.get(topic, 0)

    def set(self, group: str, topic: str, bits: int) -> None:
        """Replace what a group may not do with a topic."""
        topics = self.entries.setdefault(group, {})
        if bits:
            topics[topic] = bits
        else:
            topics.pop(topic, None)
        if not topics:
            del self.entries[group]
        self._unsaved.add(group)

    def clear(self, group: str) -> None:
        """Allow a group everything."""
        if self.entries.pop(group, None) is not None:
            self._unsaved.add(group)

    def load(self, documents: Iterable[tuple[str, bytes]]) -> None:
        """Take over what was saved before. Raises `BodyMalformed` for what was not."""
        for group, document in documents:
            self.entries[group] = decode_body(document, dict[str, int])

    def unsaved(self) -> dict[str, bytes | None]:
        """Return the documents to save, None for those to delete."""
        return {
            group: None if (topics := self.entries.get(group)) is None else encode_body(topics)
            for group in self._unsaved
        }

    def saved(self, groups: Iterable[str]) -> None:
        """Record that these documents were saved as they are now."""
        self._unsaved.difference_update(groups)
