"""Offsets of every group: committed, pulled, and the target of a reset.

The table in memory is the truth; changes are saved every few seconds, in one transaction for all of
them. Commits come by the thousand a second, so `commit` does as little as possible. Belongs to the
broker's loop.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from pocketmq.model import DataVersion

OffsetRow = tuple[str, str, int, int]
"""Topic, group, queue id, next offset."""
Pair = tuple[str, str]
"""Topic and group."""

_VERSION_STEP = 500
"""Commits after which the version moves, as in Java."""


class Unsaved(msgspec.Struct, frozen=True):
    """What has to be saved: forget these pairs, then write these rows, all or nothing."""

    rows: list[OffsetRow]
    gone: list[Pair]

    def __bool__(self) -> bool:
        return bool(self.rows or self.gone)


class Lowered(NamedTuple):
    """Offsets of a group in a topic that were beyond the ends of its queues."""

    group: str
    topic: str
    queue_ids: list[int]
    beyond: int
    """By how much they were beyond, in sum."""


class ConsumerOffsetTable:
    """Offsets by topic, group and queue."""

    def __init__(self, *, now_ms: int = 0) -> None:
        self.committed: dict[Pair, dict[int, int]] = {}
        self.pulled: dict[Pair, dict[int, int]] = {}
        self._resets: dict[Pair, dict[int, int]] = {}
        self._dirty: set[tuple[str, str, int]] = set()
        self._gone: dict[Pair, None] = {}
        self._commits = 0
        self._version = DataVersion(timestamp=now_ms)

    # Commits and queries

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Record a group's next offset in a queue; also one smaller than before."""
        self._commits += 1
        offsets = self.committed.get((topic, group))
        if offsets is None:
            offsets = self.committed[topic, group] = {}
        elif offsets.get(queue_id) == offset:
            return  # idle consumers repeat theirs every few seconds: nothing to save again
        offsets[queue_id] = offset
        self._dirty.add((topic, group, queue_id))

    def advance(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Commit an offset unless the group is further, or a reset of the queue is pending."""
        pair = topic, group
        if self._resets and queue_id in self._resets.get(pair, _NONE):
            return
        committed = self.committed.get(pair, _NONE).get(queue_id)
        if committed is None or committed < offset:
            self.commit(group, topic, queue_id, offset)

    def query(self, group: str, topic: str, queue_id: int) -> int | None:
        """Return a group's next offset in a queue; a pending reset comes first."""
        pair = topic, group
        if self._resets:
            target = self._resets.get(pair, _NONE).get(queue_id)
            if target is not None:
                return target
        return self.committed.get(pair, _NONE).get(queue_id)

    def record_pull(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Record up to where a group has pulled, for tools that show the part in flight."""
        try:
            self.pulled[topic, group][queue_id] = offset
        except KeyError:
            self.pulled[topic, group] = {queue_id: offset}

    def query_pull(self, group: str, topic: str, queue_id: int) -> int | None:
        """Return up to where a group has pulled, or else what it has committed."""
        offset = self.pulled.get((topic, group), _NONE).get(queue_id)
        return self.query(group, topic, queue_id) if offset is None else offset

    # Resets

    def reset(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Move a group: commits are ignored until its next pull carries the reset out."""
        self._resets.setdefault((topic, group), {})[queue_id] = offset
        self.commit(group, topic, queue_id, offset)

    def has_reset(self, group: str, topic: str, queue_id: int) -> bool:
        """Return whether a reset of this queue waits to be carried out."""
        return bool(self._resets) and queue_id in self._resets.get((topic, group), _NONE)

    def resets_of(self, group: str, topic: str) -> Mapping[int, int]:
        """Return the targets of the resets that wait to be carried out, by queue id."""
        return self._resets.get((topic, group), _NONE) if self._resets else _NONE

    def take_reset(self, group: str, topic: str, queue_id: int) -> int | None:
        """Return the target of a waiting reset, and forget it."""
        if not self._resets:
            return None
        targets = self._resets.get((topic, group))
        if targets is None:
            return None
        target = targets.pop(queue_id, None)
        if not targets:
            del self._resets[topic, group]
        return target

    # Whole groups and topics

    def topics_of(self, group: str) -> list[str]:
        """List the topics of which a group has committed something."""
        return [topic for topic, name in self.committed if name == group]

    def groups_of(self, topic: str) -> list[str]:
        """List the groups that have committed something of a topic."""
        return [group for name, group in self.committed if name == topic]

    def offsets_of(self, group: str, topic: str) -> Mapping[int, int]:
        """Return what a group has committed of a topic, by queue id."""
        return self.committed.get((topic, group), _NONE)

    def clone(self, source: str, target: str, topic: str) -> None:
        """Copy the offsets of a group in a topic to another group."""
        offsets = self.committed.get((topic, source))
        if offsets is not None:
            self._remove([(topic, target)])
            for queue_id, offset in offsets.copy().items():
                self.commit(target, topic, queue_id, offset)

    def remove_group(self, group: str) -> None:
        """Forget a group's offsets."""
        self._remove([pair for pair in self._pairs() if pair[1] == group])

    def remove_topic(self, topic: str) -> None:
        """Forget all groups' offsets of a topic."""
        self._remove([pair for pair in self._pairs() if pair[0] == topic])

    def version(self, now_ms: int) -> DataVersion:
        """Return the table's version."""
        if self._commits >= _VERSION_STEP:
            self._commits = 0
            self._version = self._version.following(now_ms)
        return self._version

    # Saving

    def load(self, rows: Iterable[OffsetRow]) -> None:
        """Take over what was saved before."""
        for topic, group, queue_id, offset in rows:
            self.committed.setdefault((topic, group), {})[queue_id] = offset

    def lower(self, ends: Mapping[tuple[str, int], int]) -> list[Lowered]:
        """Lower offsets to the ends of their queues, given by topic and queue id.

        A queue without an end is empty.
        """
        found = []
        for (topic, group), offsets in self.committed.items():
            beyond = {
                queue_id: offset - end
                for queue_id, offset in offsets.items()
                if offset > (end := ends.get((topic, queue_id), 0))
            }
            if beyond:
                found.append(Lowered(group, topic, sorted(beyond), sum(beyond.values())))
                for queue_id, excess in beyond.items():
                    self.commit(group, topic, queue_id, offsets[queue_id] - excess)
        return found

    def take_unsaved(self) -> Unsaved:
        """Return what differs from what was saved last, and count it as saved."""
        dirty, self._dirty = self._dirty, set()
        gone, self._gone = self._gone, {}
        committed = self.committed
        rows = [
            (topic, group, queue_id, committed[topic, group][queue_id])
            for topic, group, queue_id in dirty
        ]
        return Unsaved(rows, list(gone))

    def not_saved(self, unsaved: Unsaved) -> None:
        """Mark as unsaved what could not be saved; what changed since stays as it is now."""
        self._gone = dict.fromkeys(unsaved.gone) | self._gone
        for topic, group in unsaved.gone:  # rows saved since will be deleted with the others
            for queue_id in self.committed.get((topic, group), _NONE):
                self._dirty.add((topic, group, queue_id))
        for topic, group, queue_id, _ in unsaved.rows:
            if queue_id in self.committed.get((topic, group), _NONE):
                self._dirty.add((topic, group, queue_id))

    # Inside

    def _pairs(self) -> set[Pair]:
        return {*self.committed, *self.pulled, *self._resets}

    def _remove(self, pairs: list[Pair]) -> None:
        if not pairs:
            return
        for pair in pairs:
            self.pulled.pop(pair, None)
            self._resets.pop(pair, None)
            if self.committed.pop(pair, None) is not None:
                self._gone[pair] = None
        removed = set(pairs)
        self._dirty = {each for each in self._dirty if each[:2] not in removed}


_NONE: dict[int, int] = {}
