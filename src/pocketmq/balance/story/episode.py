"""One rebalance as observed, from its first sign until the assignment is stable. Pure.

Members rebalance each for itself, so one cause moves queues over several observations; they belong
together. Times are those of the observations: what lies between two of them is an interval.
"""

from collections.abc import Iterable

import msgspec

from pocketmq.balance.story.observation import LEFT, SILENT, UNEXPLAINED, Cause
from pocketmq.balance.what_if.movement import LastOwners, Move, moves_between
from pocketmq.model import MessageQueue, handover_version

_MOST_REASONS = 4


class QueuePause(msgspec.Struct, frozen=True):
    """A time without an owner of a queue: `least` seconds by what was seen, at most `most`."""

    queue: MessageQueue
    previous: str | None
    """The last owner, None if unknown."""
    owner: str | None
    """The next owner, None if there is none yet or the queue is gone."""
    began: float
    ended: float | None
    """None while it lasts."""
    least: float
    most: float | None
    """None if it lasts, or began before the first observation."""


class Doubled(msgspec.Struct, frozen=True):
    """A queue with several owners at once, between its first and its last observation."""

    queue: MessageQueue
    owners: tuple[str, ...]
    began: float
    last: float
    over: bool


class Rebalance(msgspec.Struct, frozen=True, kw_only=True):
    """What changed, why, and what it cost."""

    number: int
    began: float
    ended: float | None
    """None while members still rebalance."""
    settled: bool
    """Whether it ended in an assignment that a strategy produces."""
    causes: tuple[Cause, ...]
    moved: int
    minimum: int
    """The fewest queues that had to move for a spread as even as the one reached."""
    moves: tuple[Move, ...]
    """Empty, in spite of `moved`, once it is too old to be kept in full."""
    pauses: tuple[QueuePause, ...]
    doubled: tuple[Doubled, ...]

    @property
    def why(self) -> str:
        """The reasons in one line, the first of them if there are many."""
        texts = [cause.text for cause in self.causes]
        if len(texts) > _MOST_REASONS:
            rest = len(texts) - _MOST_REASONS + 1
            texts = [*texts[: _MOST_REASONS - 1], f"and {rest} more reasons"]
        return "; ".join(texts)


class Episode:
    """A rebalance that may still be in progress."""

    def __init__(
        self, number: int, began: float, start: LastOwners[MessageQueue], fits: str | None
    ) -> None:
        self.number = number
        self.began = began
        self.changed = began
        self.ended: float | None = None
        self.settled = False
        self.fits = fits
        self.causes: list[Cause] = []
        self.moves: tuple[Move, ...] = ()
        self.moved = 0
        self.minimum = 0
        self._start: LastOwners[MessageQueue] | None = start
        self._pauses: dict[tuple[MessageQueue, float], QueuePause] = {}
        self._doubled: dict[tuple[MessageQueue, float], Doubled] = {}
        self._cached: Rebalance | None = None

    def explain(self, found: Iterable[Cause]) -> None:
        """Add causes; a member that has left had not merely fallen silent."""
        new = [cause for cause in found if cause not in self.causes]
        left = {cause.subject for cause in new if cause.kind == LEFT}
        self.causes = [
            cause for cause in self.causes if cause.kind != SILENT or cause.subject not in left
        ]
        self.causes += new
        self._cached = None

    def put_pause(self, pause: QueuePause) -> None:
        """Note a pause, or its latest state."""
        self._pauses[pause.queue, pause.began] = pause
        self._cached = None

    def put_doubled(self, doubled: Doubled) -> None:
        """Note that a queue had several owners, or still has."""
        self._doubled[doubled.queue, doubled.began] = doubled
        self._cached = None

    def forget_moves(self) -> None:
        """Keep the number of moves alone."""
        self.moves = ()
        self._cached = None

    def compare(self, known: LastOwners[MessageQueue], members: Iterable[str]) -> None:
        """Work out what has moved since the start; members that hand over are even over all."""
        assert self._start is not None
        members = tuple(members)
        over_all = all(handover_version(member) is not None for member in members)
        moves, self.minimum = moves_between(self._start, known, members, over_all=over_all)
        self.moves = tuple([Move(*move) for move in moves])
        self.moved = len(moves)
        self._cached = None

    def end(self, at: float, *, settled: bool) -> None:
        """End the rebalance, and drop what was needed to compare."""
        self.ended, self.settled = at, settled
        self._start = None
        self._cached = None

    def only_silence_of(self, members: Iterable[str]) -> bool:
        """Whether nothing happened but that some of these members fell silent."""
        gone = set(members)
        return not self.moved and all(
            cause.kind == SILENT and cause.subject in gone for cause in self.causes
        )

    def value(self) -> Rebalance:
        """Return the rebalance as a value, the same one as long as nothing changes."""
        if self._cached is None:
            self._cached = self._build()
        return self._cached

    def _build(self) -> Rebalance:
        return Rebalance(
            number=self.number,
            began=self.began,
            ended=self.ended,
            settled=self.settled,
            causes=tuple(self.causes) or (UNEXPLAINED,),
            moved=self.moved,
            minimum=self.minimum,
            moves=self.moves,
            pauses=tuple(self._pauses.values()),
            doubled=tuple(self._doubled.values()),
        )
