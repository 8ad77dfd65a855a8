"""One run of copying: everything that is there now, and then, if wanted, new messages."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from pocketmq.admin.migration.copies import ORIGIN, origin_of
from pocketmq.admin.migration.copying import CopyRules, QueueCopier
from pocketmq.admin.migration.delayed import count_waiting, move_waiting
from pocketmq.admin.migration.ledger import MigrationLedger
from pocketmq.admin.migration.plan import MigrationPlan
from pocketmq.admin.migration.side import Patience, Side, prepare, settle
from pocketmq.errors import CannotMigrate, TopicNotFound
from pocketmq.model import MessageQueue
from pocketmq.protocol.requests.stats import OffsetRange

_ROUND = 0.2
"""Minimal seconds between two polls for new messages."""
_SHARE = 5
"""Polling takes at most one part in this many of the time while nothing arrives."""


class MigrationProgress:
    """The counts of a run. Changed by the run alone, read by the display on the same loop."""

    def __init__(self) -> None:
        self.copied = 0
        self.behind = 0
        self.lost = 0
        self.moved_delayed = 0
        self.topics = 0
        self.queues = 0
        self.caught_up = False
        self.deleted: set[str] = set()
        """Topics that were deleted in the source during the run."""


class CopyRun:
    """Copies for one migration. Belongs to one event loop; runs once."""

    def __init__(
        self,
        sides: tuple[Side, Side],
        ledger: MigrationLedger,
        make_plan: Callable[[frozenset[str]], Awaitable[MigrationPlan]],
        *,
        rules: CopyRules,
        progress: MigrationProgress,
        stop: asyncio.Event,
    ) -> None:
        self._source, self._target = self._sides = sides
        self._ledger = ledger
        self._make_plan = make_plan
        self._rules = rules
        self._turns = asyncio.Semaphore(rules.parallel)
        self._patience = Patience(sides, rules.patience, stop)
        self._copiers: dict[MessageQueue, QueueCopier] = {}
        self.progress = progress
        self.stop = stop

    async def run(
        self, *, follow: bool, quiet: float | None, move_delayed: bool, adopt: bool
    ) -> None:
        """Copy; see `Migration.copy`."""
        self._ledger.lock()
        plan = await self._set_up(adopt=adopt)
        if move_delayed:
            moved = await move_waiting(self._source, self._target, self._ledger)
            self.progress.moved_delayed = moved
        await self._round()
        self.progress.caught_up = not self.stop.is_set()
        if follow:
            plan = await self._follow(plan, quiet)
        if self.progress.behind == 0:
            for topic in plan.topics:
                await settle(self._target, topic)

    async def _set_up(self, *, adopt: bool) -> MigrationPlan:
        plan = await self._make_plan(self._ledger.made_topics)
        if plan.problems:
            more = f" (and {len(plan.problems) - 1} more; run `plan`)" * (len(plan.problems) > 1)
            raise CannotMigrate("the cluster", plan.problems[0] + more)
        known = {state.source for state in self._ledger.queues()}
        for topic in plan.topics:
            if topic.create:
                self._ledger.note_topic(topic.topic)
        await prepare(self._target, plan)
        for topic in plan.topics:
            new = [pair for pair in topic.queues if pair[0] not in known]
            if not topic.create:
                await self._check_strangers(new, adopt=adopt)
            for source, target in new:
                self._ledger.add_queue(source, target)
        chosen = {topic.topic for topic in plan.topics}
        for queue in [queue for queue in self._copiers if queue.topic not in chosen]:
            del self._copiers[queue]
        for state in self._ledger.queues():
            if state.source.topic in chosen and state.source not in self._copiers:
                copier = QueueCopier(self._sides, self._ledger, state, self._rules, self.stop)
                self._copiers[state.source] = copier
        self.progress.topics = len(plan.topics)
        self.progress.queues = len(self._copiers)
        return plan

    async def _check_strangers(
        self, pairs: Sequence[tuple[MessageQueue, MessageQueue]], *, adopt: bool
    ) -> None:
        """Refuse to copy to a queue with copies of another file: everything would be there twice.

        With `adopt` they become copies of this migration, whose file was lost.
        """
        for target in sorted({target for _, target in pairs}, key=MessageQueue.java_sort_key):
            _, messages, told = await self._target.read(target, 0)
            messages += (await self._target.read(target, max(told.max_offset - 1, 0)))[1]
            origins = [found for each in messages if (found := origin_of(each)) is not None]
            strange = [each for each in origins if each.migration != self._ledger.migration]
            if not strange:
                continue
            origin = strange[-1]
            if not adopt:
                reason = (
                    f"queue {target.queue_id} on the target's broker {target.broker_name!r} holds "
                    f"copies ({ORIGIN}) that this state file does not list; give the file of the "
                    "migration that made them, or adopt them with --adopt"
                )
                raise CannotMigrate(f"topic {target.topic!r}", reason)
            self._ledger.adopt(origin.migration)

    async def _round(self) -> int:
        """Copy what the queues hold now; return the number of messages."""
        before = self.progress.copied
        places = sorted({(queue.topic, queue.broker_name) for queue in self._copiers})
        held = dict(zip(places, await self._held(places), strict=True))
        work = []
        for queue, copier in self._copiers.items():
            if not held[queue.topic, queue.broker_name]:
                self.progress.deleted.add(queue.topic)
                continue
            bounds = held[queue.topic, queue.broker_name].get(queue)
            copier.check_end(0 if bounds is None else bounds.max_offset)
            if bounds is not None and (copier.next is None or copier.next < bounds.max_offset):
                work.append((copier, bounds.min_offset, bounds.max_offset))
        self.progress.behind = sum(end - (c.next or first) for c, first, end in work)
        tasks = [asyncio.create_task(self._run(*each)) for each in work]
        try:
            await asyncio.gather(*tasks)
        except BaseException:
            # The other copiers finish and record the request they have in flight: cancelled in the
            # middle, a stored batch would be unknown to the ledger until the next scan.
            self.stop.set()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise
        self.progress.behind = sum(
            max(end - (c.next or first), 0)
            for c, first, end in work
            if c.state.source.topic not in self.progress.deleted
        )
        return self.progress.copied - before

    async def _held(self, places: list[tuple[str, str]]) -> list[dict[MessageQueue, OffsetRange]]:
        """Return the offsets of queues, for each topic and broker."""

        async def ask(topic: str, broker: str) -> dict[MessageQueue, OffsetRange]:
            return await self._patience.until_done(lambda: self._source.held(topic, broker))

        return list(await asyncio.gather(*(ask(*each) for each in places)))

    async def _run(self, copier: QueueCopier, first: int, end: int) -> None:
        async with self._turns:
            if self.stop.is_set():
                return
            lost = copier.lost
            try:
                await copier.run(end, first, self._count)
            except TopicNotFound:
                queue = copier.state.source
                if await self._source.held(queue.topic, queue.broker_name):
                    raise  # it is the target that has no such topic
                self.progress.deleted.add(queue.topic)
            finally:
                self.progress.lost += copier.lost - lost

    def _count(self, messages: int) -> None:
        self.progress.copied += messages
        self.progress.behind = max(self.progress.behind - messages, 0)

    async def _follow(self, plan: MigrationPlan, quiet: float | None) -> MigrationPlan:
        loop = asyncio.get_running_loop()
        planned = last = loop.time()
        while not self.stop.is_set():
            began = loop.time()
            if began - planned > self._rules.replan:
                again = partial(self._set_up, adopt=False)
                plan = await self._patience.until_done(again)
                planned = loop.time()
            if await self._round():
                last = loop.time()
                continue
            if quiet is not None and loop.time() - last >= quiet:
                if not (await count_waiting(self._source, self._ledger)).messages:
                    break
                last = loop.time()
            pause = max(_ROUND, (loop.time() - began) * (_SHARE - 1))
            try:
                await asyncio.wait_for(self.stop.wait(), pause)
            except TimeoutError:
                continue
        return plan
