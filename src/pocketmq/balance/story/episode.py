"""One rebalance, from its first sign until the picture has settled. Pure.

Members share out anew each for itself, so one cause moves queues over several looks; they belong
together. Times are those of the looks: what lies between two of them is told as an interval.
"""

from collections.abc import Iterable

import msgspec

from pocketmq.balance.story.observation import LEFT, SILENT, UNEXPLAINED, Cause
from pocketmq.balance.what_if import Move
from pocketmq.balance.what_if.movement import LastOwners, moves_between
from pocketmq.model.queue import MessageQueue

_MOST_REASONS = 4


class QueuePause(msgspec.Struct, frozen=True):
    """A time in which nobody held a queue: `least` seconds by what was seen, at most `most`."""

    queue: MessageQueue
    previous: str | None
    """Who held it last, None if not known."""
    owner: str | None
    """Who took it up, None if it goes on or the queue is gone."""
    began: float
    ended: float | None
    """None while it goes on."""
    least: float
    most: float | None
    """None if it goes on, or began before anybody looked."""


class Doubled(msgspec.Struct, frozen=True):
    """A queue that several members held at once, between the first and the last look at it."""

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
    """None while members still share out."""
    settled: bool
    """Whether it ended in a picture that a common strategy gives."""
    causes: tuple[Cause, ...]
    moved: int
    minimum: int
    """How few queues had to move for a spread as even as the one reached."""
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
    """A rebalance that may still go on."""

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
        self._told: Rebalance | None = None

    def explain(self, found: Iterable[Cause]) -> None:
        """Add causes; a member that has left had not merely fallen silent."""
        new = [cause for cause in found if cause not in self.causes]
        left = {cause.subject for cause in new if cause.kind == LEFT}
        self.causes = [
            cause for cause in self.causes if cause.kind != SILENT or cause.subject not in left
        ]
        self.causes += new
        self._told = None

    def put_pause(self, pause: QueuePause) -> None:
        """Note a pause, or how it went on."""
        self._pauses[pause.queue, pause.began] = pause
        self._told = None

    def put_doubled(self, doubled: Doubled) -> None:
        """Note that a queue had several owners, or still has."""
        self._doubled[doubled.queue, doubled.began] = doubled
        self._told = None

    def forget_moves(self) -> None:
        """Keep the number of moves alone."""
        self.moves = ()
        self._told = None

    def compare(self, known: LastOwners[MessageQueue], members: Iterable[str]) -> None:
        """Work out what has moved since the start."""
        assert self._start is not None
        moves, self.minimum = moves_between(self._start, known, members)
        self.moves = tuple([Move(*move) for move in moves])
        self.moved = len(moves)
        self._told = None

    def end(self, at: float, *, settled: bool) -> None:
        """Be over; what is needed to compare goes."""
        self.ended, self.settled = at, settled
        self._start = None
        self._told = None

    def only_silence_of(self, members: Iterable[str]) -> bool:
        """Whether nothing happened but that some of these members fell silent."""
        gone = set(members)
        return not self.moved and all(
            cause.kind == SILENT and cause.subject in gone for cause in self.causes
        )

    def told(self) -> Rebalance:
        """Give it as a value, the same one as long as nothing changes."""
        if self._told is None:
            self._told = self._value()
        return self._told

    def _value(self) -> Rebalance:
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
