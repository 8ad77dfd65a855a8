"""Locks on queues: at most one member of a group consumes a queue whose order counts.

Leases in memory: a member renews its locks every 20 s (`balance.consumer.locks`) and loses them
60 s after the last renewal.
A closed connection keeps them until then, as in Java. Pulls do not ask for locks. Belongs to the
broker's loop; `now` is an argument.
"""

from collections.abc import Iterable

from pocketmq.model import MessageQueue

LEASE = 60.0
"""Seconds a lock lives without being renewed."""
MAX_LOCKS = 200_000
"""Locks of all groups; further ones are not granted. Expired ones count until `expire`."""


class GroupQueueLocks:
    """Queue locks of orderly consumers, by group."""

    def __init__(self, lease: float = LEASE, limit: int = MAX_LOCKS) -> None:
        self._lease = lease
        self._limit = limit
        self._count = 0
        self._groups: dict[str, dict[MessageQueue, tuple[str, float]]] = {}

    def lock(
        self, group: str, client_id: str, queues: Iterable[MessageQueue], now: float
    ) -> list[MessageQueue]:
        """Lock queues, or renew the locks; return those that the member owns now."""
        held = self._groups.setdefault(group, {})
        granted = []
        for queue in queues:
            holder = held.get(queue)
            if holder is None:
                if self._count >= self._limit:
                    continue
                self._count += 1
            elif holder[0] != client_id and not self._over(holder[1], now):
                continue
            held[queue] = client_id, now
            granted.append(queue)
        return granted

    def unlock(self, group: str, client_id: str, queues: Iterable[MessageQueue]) -> None:
        """Release the member's locks; those of other members stay."""
        held = self._groups.get(group, {})
        for queue in queues:
            holder = held.get(queue)
            if holder is not None and holder[0] == client_id:
                del held[queue]
                self._count -= 1
        if not held:
            self._groups.pop(group, None)

    def all_free(self, group: str, now: float) -> bool:
        """Return whether no queue of a group is locked."""
        held = self._groups.get(group, {})
        return all(self._over(renewed, now) for _, renewed in held.values())

    def expire(self, now: float) -> None:
        """Drop expired locks. They are free either way; this only saves memory."""
        for group, held in tuple(self._groups.items()):
            left = {queue: each for queue, each in held.items() if not self._over(each[1], now)}
            if left:
                self._groups[group] = left
            else:
                del self._groups[group]
        self._count = sum(map(len, self._groups.values()))

    def _over(self, renewed: float, now: float) -> bool:
        return now - renewed > self._lease
