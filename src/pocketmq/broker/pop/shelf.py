"""The messages of one queue that one group has popped and not acknowledged.

Pure bookkeeping, times are the caller's. A pop is one `Taken`, whatever it holds, so that little is
done for each message. Knows neither store nor journal. Belongs to the broker's loop.
"""

from collections import deque
from collections.abc import Iterable


class Taken:
    """Messages taken together, or one whose time was changed: hidden until the same moment."""

    __slots__ = ("bucket", "left", "offsets", "pop_time_ms", "shelf", "until_ms")

    def __init__(
        self, shelf: "Shelf", offsets: Iterable[int], pop_time_ms: int, until_ms: int
    ) -> None:
        self.shelf = shelf
        self.offsets = tuple(offsets)
        self.pop_time_ms = pop_time_ms
        self.until_ms = until_ms
        self.left = len(self.offsets)
        self.bucket = 0  # see `deadlines`

    def out(self) -> list[int]:
        """Give the offsets that are still out with this pop."""
        held = self.shelf.held
        return [offset for offset in self.offsets if held.get(offset) is self]


class Shelf:
    """What a group has out of one queue."""

    __slots__ = ("_order", "group", "held", "next", "queue_id", "topic")

    def __init__(self, topic: str, group: str, queue_id: int) -> None:
        self.topic = topic
        self.group = group
        self.queue_id = queue_id
        self.next = 0
        """Messages before this one were taken, or passed over; counts while any are out."""
        self.held: dict[int, Taken] = {}
        self._order: deque[int] = deque()  # as taken; those no longer held go when they are first

    @property
    def low(self) -> int:
        """The first offset that is not done with."""
        order, held = self._order, self.held
        while order and order[0] not in held:
            order.popleft()
        return order[0] if order else self.next

    def take(self, offsets: Iterable[int], following: int, times: tuple[int, int]) -> Taken:
        """Note a pop: its messages, where the next begins, when it was and how long it hides."""
        taken = Taken(self, offsets, *times)
        if not self.held:
            self._order.clear()
        for offset in taken.offsets:
            before = self.held.get(offset)
            if before is not None:
                before.left -= 1
            self.held[offset] = taken
        self._order.extend(taken.offsets)
        self.next = following
        return taken

    def sort(self) -> None:
        """Bring what was taken over from elsewhere into order."""
        self._order = deque(sorted(self.held))

    def settle(self, offset: int, pop_time_ms: int) -> Taken | None:
        """Note that a message is done with; give its pop, None if another one has it by now."""
        taken = self.held.get(offset)
        if taken is None or taken.pop_time_ms != pop_time_ms:
            return None
        del self.held[offset]
        taken.left -= 1
        return taken

    def change(
        self, offset: int, pop_time_ms: int, times: tuple[int, int]
    ) -> tuple[Taken, Taken] | None:
        """Hide a message until another moment; give its old pop and its new one."""
        taken = self.held.get(offset)
        if taken is None or taken.pop_time_ms != pop_time_ms:
            return None
        taken.left -= 1
        changed = self.held[offset] = Taken(self, (offset,), *times)
        return taken, changed
