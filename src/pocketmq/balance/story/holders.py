"""Who holds each queue at a moment of a timeline, moment after moment."""

from collections import defaultdict

from pocketmq.balance.story.timeline import HELD, Owned, Timeline
from pocketmq.model.queue import QueueName

Picture = dict[QueueName, str | None]
"""The owner of each queue that exists; the later of two at once, None for nobody."""

# What happens to a queue. At one time queues come before they go, holders take before they let go.
_KNOWN, _BACK, _GONE, _TAKES, _LETS_GO = range(5)


class Holders:
    """Goes through a timeline once: times asked for must not go back."""

    def __init__(self, story: Timeline) -> None:
        edges: list[tuple[float, int, float, QueueName, Owned | None]] = []
        for queue, (since, _) in story.known.items():
            edges.append((since, _KNOWN, 0.0, queue, None))
            for gone, back in story.absent.get(queue, ()):
                if gone < back:
                    edges += [(gone, _GONE, 0.0, queue, None), (back, _BACK, 0.0, queue, None)]
        for queue, spans in story.owned.items():
            for one in spans:
                if one.ended == HELD:  # beyond the end, too
                    edges.append((one.since, _TAKES, one.until, queue, one))
                elif one.since < one.until:
                    edges.append((one.since, _TAKES, one.until, queue, one))
                    edges.append((one.until, _LETS_GO, 0.0, queue, one))
        edges.sort(key=lambda edge: edge[:3])
        self._edges = edges[::-1]  # the next one last; those of one time stay in their order
        self._held: dict[QueueName, list[Owned]] = defaultdict(list)
        self._there: dict[QueueName, int] = defaultdict(int)  # 1 if it exists
        self._unsettled: set[QueueName] = set()

    def owners_at(self, time: float) -> Picture:
        """Return the owner of each queue that exists."""
        self._advance(time)
        return {
            queue: self._held[queue][-1].member if self._held[queue] else None
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
                self._held[queue].append(one)
            elif one is not None:
                self._held[queue].remove(one)
            if self._there[queue] > 0 and len(self._held[queue]) != 1:
                self._unsettled.add(queue)
            else:
                self._unsettled.discard(queue)
