"""The history of a group from observations of it: rebalances and pauses. Pure, bounded.

Takes successive observations. What is unknown is neither a move nor a pause: a queue of a silent
member stays with its last known owner until another owner is seen, or certainly none.
"""

from collections import deque

import msgspec

from pocketmq.balance.story import observation
from pocketmq.balance.story.episode import Doubled, Episode, QueuePause, Rebalance
from pocketmq.balance.what_if.movement import LastOwners
from pocketmq.model import MessageQueue

QUIET = 30.0
"""Seconds without change after which a rebalance is over; members check every 20 by themselves."""
MOST_ENTRIES = 200
MOST_MOVES = 100_000
"""Moves kept in total; older entries keep only their number."""
_SOON = 5.0
"""Seconds in which a member that did not answer may turn out to have left."""


class GroupHistory:
    """The history of one group. One thread at a time may use it."""

    def __init__(self, *, most_entries: int = MOST_ENTRIES, most_moves: int = MOST_MOVES) -> None:
        self._most_moves = most_moves
        self._episodes: deque[Episode] = deque(maxlen=most_entries)
        self._count = 0
        self._last: observation.GroupObservation | None = None
        self._fits: str | None = None
        self._known: dict[MessageQueue, tuple[str, ...]] = {}
        self._since: dict[MessageQueue, float] = {}
        self._owned_until: dict[MessageQueue, float] = {}
        self._pauses: dict[MessageQueue, tuple[Episode | None, QueuePause]] = {}
        self._doubled: dict[MessageQueue, tuple[Episode | None, Doubled]] = {}

    def observe(self, now: observation.GroupObservation) -> None:
        """Add the next observation of the group; times must not go back."""
        last, self._last = self._last, now
        if last is None:
            self._begin(now)
            return
        found = observation.causes(last, now)
        before = dict(self._known) if found or now.owners != last.owners else self._known
        changes = self._differences(last, now)
        self._forget(now)
        if found or changes:
            episode = self._episode(
                now, before, {c.subject for c in found if c.kind == observation.LEFT}
            )
            episode.explain(found)
            if not episode.causes:
                episode.explain(observation.weak_causes(last, now))
            for queue in changes:
                self._change_hands(queue, before, episode, last)
            if now.shared:
                episode.compare(self._known, now.members)
            self._limit_moves()
        self._extend(now)
        self._settle(now)

    def entries(self) -> list[Rebalance]:
        """Return the rebalances seen, oldest first."""
        return [episode.value() for episode in self._episodes]

    def since(self, queue: MessageQueue) -> float | None:
        """Return when a queue was first seen with its owner; None if it had it from the first."""
        return self._since.get(queue)

    def owners(self, queue: MessageQueue) -> tuple[str, ...] | None:
        """Return a queue's last known owners; None if they never were."""
        return self._known.get(queue)

    def _begin(self, now: observation.GroupObservation) -> None:
        self._fits = now.fits
        for queue, owners in now.owners.items():
            if owners is not None and now.shared:
                self._known[queue] = owners
                self._note(queue, owners, None, now.at, None)

    def _differences(
        self, last: observation.GroupObservation, now: observation.GroupObservation
    ) -> list[MessageQueue]:
        """Update the last known owners; return the queues that really changed hands."""
        changed: list[MessageQueue] = []
        if not now.shared or now.owners == last.owners:
            return changed
        for queue, owners in now.owners.items():
            if not owners and last.shared and last.owners.get(queue):
                self._owned_until.setdefault(queue, last.at)
            known = self._known.get(queue)
            if owners is None:
                continue
            if owners == known:
                if owners:  # its owner kept it, as far as can be seen
                    self._owned_until.pop(queue, None)
                continue
            self._known[queue] = owners
            if known is None and queue in last.owners:
                self._note(queue, owners, None, now.at, None)  # learned now, which is not a change
            else:
                self._since[queue] = now.at
                changed.append(queue)
        return changed

    def _change_hands(
        self,
        queue: MessageQueue,
        before: LastOwners[MessageQueue],
        episode: Episode,
        last: observation.GroupObservation,
    ) -> None:
        """End or start a queue's pause, and its time with several owners."""
        assert self._last is not None
        now, owners, was = self._last.at, self._known[queue], before.get(queue)
        owned_until = self._owned_until.pop(queue, None)
        its, pause = self._pauses.pop(queue, (None, None))
        if pause is not None:
            most = None if owned_until is None else now - owned_until
            owner = owners[0] if owners else None
            over = msgspec.structs.replace(pause, owner=owner, ended=now, most=most)
            (its or episode).put_pause(over)
        its, doubled = self._doubled.pop(queue, (None, None))
        if doubled is not None:
            (its or episode).put_doubled(msgspec.structs.replace(doubled, over=True))
        if not owners:
            self._owned_until[queue] = last.at if owned_until is None else owned_until
        self._note(queue, owners, episode, now, was[0] if was else None)

    def _note(
        self,
        queue: MessageQueue,
        owners: tuple[str, ...],
        episode: Episode | None,
        at: float,
        previous: str | None,
    ) -> None:
        """Start a pause, or a time with several owners."""
        if not owners:
            pause = QueuePause(queue, previous, None, at, None, 0.0, None)
            self._pauses[queue] = episode, pause
            if episode is not None:
                episode.put_pause(pause)
        elif len(owners) > 1:
            doubled = Doubled(queue, owners, at, at, over=False)
            self._doubled[queue] = episode, doubled
            if episode is not None:
                episode.put_doubled(doubled)

    def _extend(self, now: observation.GroupObservation) -> None:
        """Extend pauses and double owners that are still seen until now."""
        for queue, (episode, pause) in self._pauses.items():
            if now.owners.get(queue) == ():
                longer = msgspec.structs.replace(pause, least=now.at - pause.began)
                self._pauses[queue] = episode, longer
                if episode is not None:
                    episode.put_pause(longer)
        for queue, (episode, doubled) in self._doubled.items():
            if len(now.owners.get(queue) or ()) > 1:
                later = msgspec.structs.replace(doubled, last=now.at)
                self._doubled[queue] = episode, later
                if episode is not None:
                    episode.put_doubled(later)

    def _forget(self, now: observation.GroupObservation) -> None:
        """Forget queues that do not exist any more; their pauses end with them."""
        for queue in self._known.keys() - now.owners.keys():
            del self._known[queue]
            self._since.pop(queue, None)
            self._owned_until.pop(queue, None)
            episode, pause = self._pauses.pop(queue, (None, None))
            if episode is not None and pause is not None:
                episode.put_pause(msgspec.structs.replace(pause, ended=now.at))
            episode, doubled = self._doubled.pop(queue, (None, None))
            if episode is not None and doubled is not None:
                episode.put_doubled(msgspec.structs.replace(doubled, over=True))

    def _episode(
        self, now: observation.GroupObservation, before: LastOwners[MessageQueue], left: set[str]
    ) -> Episode:
        """Return the rebalance in progress, or start one."""
        latest = self._episodes[-1] if self._episodes else None
        if latest is not None and latest.ended is None:
            latest.changed = now.at
            return latest
        if (
            latest is not None
            and left
            and now.at - latest.began <= _SOON
            and latest.only_silence_of(left)
        ):
            self._episodes.pop()
        self._count += 1
        episode = Episode(self._count, now.at, before, self._fits)
        self._episodes.append(episode)
        return episode

    def _settle(self, now: observation.GroupObservation) -> None:
        """End the rebalance in progress if the assignment is whole again, or nothing happens."""
        episode = self._episodes[-1] if self._episodes else None
        if episode is not None and episode.ended is None:
            if now.fits is not None or not now.shared:
                if not episode.causes and episode.fits and now.fits and episode.fits != now.fits:
                    episode.explain([observation.strategy_cause(episode.fits, now.fits)])
                episode.end(now.at, settled=now.fits is not None)
            elif now.at - episode.changed >= QUIET:
                episode.end(episode.changed, settled=False)
        self._fits = now.fits or self._fits

    def _limit_moves(self) -> None:
        kept = 0
        for episode in reversed(self._episodes):
            kept += len(episode.moves)
            if kept > self._most_moves and episode is not self._episodes[-1]:
                kept -= len(episode.moves)
                episode.forget_moves()
