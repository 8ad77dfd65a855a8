"""A timeline walked through from its beginning: who owns what at each time."""

from collections import defaultdict

from pocketmq.balance.story.timeline import HELD, Owned, OwnershipTimeline
from pocketmq.model import QueueName

OwnersAt = dict[QueueName, str | None]
"""The owner of each existing queue, the later of two at once; None for an unowned queue."""
# What happens to a queue. At one time queues appear before they go, owners take before they
# release.
_KNOWN, _BACK, _GONE, _TAKES, _RELEASES = range(5)


class OwnersOverTime:
    """Walks through a timeline once: requested times must not go back."""

    def __init__(self, story: OwnershipTimeline) -> None:
        edges: list[tuple[float, int, float, QueueName, Owned | None]] = []
        for queue, (since, _) in story.known.items():
            edges.append((since, _KNOWN, 0.0, queue, None))
            for gone, back in story.absent.get(queue, ()):
                if gone < back:
                    edges += [(gone, _GONE, 0.0, queue, None), (back, _BACK, 0.0, queue, None)]
        for queue, spans in story.owned.items():
            for one in spans:
                if one.ended == HELD:  # it lasts beyond the end
                    edges.append((one.since, _TAKES, one.until, queue, one))
                elif one.since < one.until:
                    edges.append((one.since, _TAKES, one.until, queue, one))
                    edges.append((one.until, _RELEASES, 0.0, queue, one))
        edges.sort(key=lambda edge: edge[:3])
        self._edges = edges[::-1]  # the next one last; those of one time stay in their order
        self._owned: dict[QueueName, list[Owned]] = defaultdict(list)
        self._there: dict[QueueName, int] = defaultdict(int)  # 1 if it exists
        self._unsettled: set[QueueName] = set()

    def owners_at(self, time: float) -> OwnersAt:
        """Return the owner of each queue that exists."""
        self._advance(time)
        return {
            queue: self._owned[queue][-1].member if self._owned[queue] else None
            for queue, there in self._there.items()
            if there > 0
        }

    def settled_at(self, time: float) -> bool:
        """Return whether every queue has exactly one owner."""
        self._advance(time)
        return not self._unsettled

    def _advance(self, time: float) -> None:
        while self._edges and self._edges[-1][0] <= time:
            _, kind, _, queue, one = self._edges.pop()
            if kind in (_KNOWN, _BACK):
                self._there[queue] += 1
            elif kind == _GONE:
                self._there[queue] -= 1
            elif one is not None and kind == _TAKES:
                self._owned[queue].append(one)
            elif one is not None:
                self._owned[queue].remove(one)
            if self._there[queue] > 0 and len(self._owned[queue]) != 1:
                self._unsettled.add(queue)
            else:
                self._unsettled.discard(queue)
