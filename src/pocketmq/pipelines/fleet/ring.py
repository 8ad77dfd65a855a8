"""CONSISTENT_HASH for many groups at once: one sort and one search over all their rings.

The only rule with an array form beside `pocketmq.balance`: its result depends on every name, so no
group can stand for another. Keys and hashes are those of the rule, and whatever the arrays cannot
express (a member listed twice, nodes that collide) is left to the rule itself.
"""

from collections.abc import Sequence
from itertools import islice

import numpy as np
import numpy.typing as npt

from pocketmq.balance.allocation import ConsistentHash
from pocketmq.balance.allocation.consistent_hash import md5_hash, md5_joined, md5_nodes
from pocketmq.balance.what_if import Owners, Situation, owners_in
from pocketmq.model import MessageQueue

Queues = tuple[MessageQueue, ...]
"""The queues of one topic."""
Layout = tuple[tuple[str, int], ...]
"""Their brokers and numbers."""
Positions = npt.NDArray[np.uint64]

# A node is one number: its group, its position on the ring, its member's place in the group.
_PLACE_BITS, _RING_BITS = np.uint64(12), np.uint64(32)
_MOST_MEMBERS = 1 << 12
_TOPIC = "\0"  # stands for a topic in the text of a queue; no topic, broker or number has it


class Rings:
    """Finds owners on rings; caches positions, so that further steps cost little more."""

    def __init__(self, virtual_nodes: int) -> None:
        self._nodes = virtual_nodes
        self._rows: dict[str, int] = {}
        self._members: Positions = np.empty((0, virtual_nodes), np.uint64)
        self._queues: dict[int, tuple[Queues, Positions]] = {}  # by identity, kept alive

    @classmethod
    def of(cls, strategy: object) -> "Rings | None":
        """Return the rings of a strategy; None if it is another one, or hashes in its own way."""
        if isinstance(strategy, ConsistentHash) and strategy.hash_function is md5_hash:
            return cls(strategy.virtual_nodes) if strategy.virtual_nodes else None
        return None

    def owners_in(self, situations: Sequence[Situation]) -> list[Owners]:
        """Return what `pocketmq.balance.what_if.owners_in` returns for each situation."""
        plain = [situation for situation in situations if _plain(situation)]
        found = self._search(plain) if plain else {}
        return [found.get(id(s)) or owners_in(s) for s in situations]

    def _search(self, situations: list[Situation]) -> dict[int, Owners]:
        """Return the owners by the situation's identity, without those where two nodes collide."""
        sizes = np.array([len(s.members) for s in situations])
        first = np.concatenate([[0], np.cumsum(sizes)])
        members = [member for s in situations for member in s.members]
        group = np.repeat(np.arange(len(sizes), dtype=np.uint64), sizes) << _RING_BITS
        place = np.arange(len(members), dtype=np.uint64) - np.repeat(first[:-1], sizes).astype("u8")
        at = (group[:, None] | self._member_positions(members)).ravel()
        nodes = np.sort(at << _PLACE_BITS | np.repeat(place, self._nodes))
        at = nodes >> _PLACE_BITS
        colliding = {int(node >> _RING_BITS) for node in at[1:][at[1:] == at[:-1]]}

        topics = [(n, queues) for n, s in enumerate(situations) for queues in s.topics.values()]
        lengths = np.array([len(queues) for _, queues in topics])
        number = np.repeat(np.array([n for n, _ in topics]), lengths)
        wanted = self._queue_positions([queues for _, queues in topics])
        found = np.searchsorted(at, number.astype(np.uint64) << _RING_BITS | wanted)
        past_the_last = found >= first[number + 1] * self._nodes
        found[past_the_last] = first[number[past_the_last]] * self._nodes
        owner = first[number] + (nodes[found] & np.uint64(_MOST_MEMBERS - 1)).astype(np.int64)
        owners = np.array(members, dtype=object)[owner].tolist()

        rest = iter(owners)
        dealt = [{t: list(islice(rest, len(q))) for t, q in s.topics.items()} for s in situations]
        return {id(s): dealt[n] for n, s in enumerate(situations) if n not in colliding}

    def _member_positions(self, members: list[str]) -> Positions:
        """Return the positions of each member's nodes: [member, node]."""
        rows, known = self._rows, len(self._rows)
        at = [rows.setdefault(member, len(rows)) for member in members]
        words = np.frombuffer(md5_nodes(list(rows)[known:], self._nodes), np.uint32)
        more = words.astype(np.uint64).reshape(-1, self._nodes)
        self._members = np.concatenate([self._members, more])
        return self._members[at]

    def _queue_positions(self, topics: list[Queues]) -> Positions:
        """Return the position of each queue; topics that several groups share are hashed once."""
        fresh: dict[Layout, list[Queues]] = {}
        for queues in {id(queues): queues for queues in topics}.values():
            if queues and id(queues) not in self._queues:
                layout = tuple([(queue.broker_name, queue.queue_id) for queue in queues])
                fresh.setdefault(layout, []).append(queues)
        for layout, alike in fresh.items():
            start, endings = _texts(layout)
            words = md5_joined([start + queues[0].topic for queues in alike], endings)
            positions = np.frombuffer(words, np.uint32).astype(np.uint64).reshape(len(alike), -1)
            for queues, row in zip(alike, positions, strict=True):
                self._queues[id(queues)] = queues, row
        none: Positions = np.empty(0, np.uint64)
        return np.concatenate([self._queues[id(q)][1] if q else none for q in topics])


def _texts(layout: Layout) -> tuple[str, list[str]]:
    """Return what comes before the topic in the text of a queue, and what comes after it."""
    texts = [MessageQueue(_TOPIC, *place).java_text().partition(_TOPIC) for place in layout]
    return texts[0][0], [after for _, _, after in texts]


def _plain(situation: Situation) -> bool:
    """Return whether arrays describe a group: it has topics, and members that differ."""
    members = situation.members
    return bool(situation.topics) and 0 < len(set(members)) == len(members) < _MOST_MEMBERS
