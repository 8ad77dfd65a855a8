"""A migration, step by step: plan, copy, follow, move groups, verify."""

import asyncio
from collections.abc import Callable, Sequence
from itertools import count
from types import TracebackType
from typing import Self

import msgspec

from pocketmq.admin.migration.copy_run import CopyRun, MigrationProgress
from pocketmq.admin.migration.copying import CopyRules
from pocketmq.admin.migration.delayed import WaitingCount, count_waiting
from pocketmq.admin.migration.group_offsets import GroupMove, GroupOffsets
from pocketmq.admin.migration.ledger import MigrationLedger
from pocketmq.admin.migration.plan import MigrationChoice, MigrationPlan, make_plan
from pocketmq.admin.migration.side import Side, holdings, make_groups, survey
from pocketmq.admin.migration.verifying import CopyVerdict, Verifying
from pocketmq.errors import CannotMigrate
from pocketmq.model.names import HALF_TOPIC


class Outlook(msgspec.Struct, frozen=True):
    """A plan, and the amount of work."""

    plan: MigrationPlan
    messages: dict[str, int]
    """The number of messages of each topic in the source."""
    there: dict[str, int]
    """The number of messages of each existing topic on the target."""
    waiting: WaitingCount
    transactions: int
    """Half messages the source has ever stored; some may be unresolved."""


class TopicCopyStatus(msgspec.Struct, frozen=True):
    """The progress of a topic."""

    topic: str
    queues: int
    copied: int
    behind: int
    """Messages of the source that are still to be copied."""
    lost: int


class Migration:
    """Moves one cluster to another. Belongs to one event loop."""

    def __init__(
        self,
        source: Side,
        target: Side,
        *,
        wanted: MigrationChoice | None = None,
        rules: CopyRules | None = None,
    ) -> None:
        self._source = source
        self._target = target
        self._wanted = MigrationChoice() if wanted is None else wanted
        self._rules = CopyRules() if rules is None else rules
        self._turns = asyncio.Semaphore(self._rules.parallel)
        self.progress = MigrationProgress()
        self.stop = asyncio.Event()
        """Set it to stop a run after in-flight work; a later run resumes."""

    async def __aenter__(self) -> Self:
        try:
            await self._source.open()
            await self._target.open()
            self._check_apart()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections. Idempotent."""
        await self._source.close()
        await self._target.close()

    def _check_apart(self) -> None:
        """Refuse one cluster under two addresses: copying it to itself would never end."""
        here = {place.address for place in self._source.places.values()}
        for place in self._target.places.values():
            if place.address in here:
                reason = f"broker {place.broker!r} at {place.address} is on both sides"
                raise CannotMigrate("a cluster to itself", reason)

    # Planning

    async def plan(self, made: frozenset[str] = frozenset()) -> MigrationPlan:
        """Return the plan; nothing is changed. Raises `CannotMigrate`."""
        source, target = await survey(self._source), await survey(self._target)
        return make_plan(source, target, msgspec.structs.replace(self._wanted, made=made))

    async def outlook(self, ledger: MigrationLedger | None = None) -> Outlook:
        """Return the plan, and the work that earlier runs have left."""
        plan = await self.plan(frozenset() if ledger is None else ledger.made_topics)
        messages, there = {}, {}
        for topic in plan.topics:
            brokers = sorted({source.broker_name for source, _ in topic.queues})
            found = await holdings(self._source, topic.topic, brokers)
            messages[topic.topic] = sum(h.max_offset - h.min_offset for h in found.values())
            if not topic.create:
                brokers = sorted({target.broker_name for _, target in topic.queues})
                found = await holdings(self._target, topic.topic, brokers)
                there[topic.topic] = sum(h.max_offset - h.min_offset for h in found.values())
        halves = await holdings(self._source, HALF_TOPIC, sorted(self._source.places))
        open_at_most = sum(held.max_offset for held in halves.values())
        waiting = await count_waiting(self._source, ledger)
        return Outlook(plan, messages, there, waiting, open_at_most)

    # Copying

    async def copy(
        self,
        ledger: MigrationLedger,
        *,
        follow: bool = False,
        quiet: float | None = None,
        move_delayed: bool = False,
        adopt: bool = False,
    ) -> MigrationProgress:
        """Copy the source; with `follow`, also new messages until `stop` is set.

        With `quiet`, following ends when that many seconds pass without a message and none is
        delayed. Raises `CannotMigrate`, `MigrationFileUnusable`, and the error of a server that
        does not respond for too long.
        """
        sides = (self._source, self._target)
        run = CopyRun(
            sides, ledger, self.plan, rules=self._rules, progress=self.progress, stop=self.stop
        )
        await run.run(follow=follow, quiet=quiet, move_delayed=move_delayed, adopt=adopt)
        return self.progress

    # Groups

    async def move_groups(
        self, ledger: MigrationLedger, groups: Sequence[str], wait: float = 10.0
    ) -> list[GroupMove]:
        """Copy the offsets of groups, so that they resume on the target.

        Waits for a running copy, up to `wait` seconds for each queue. Raises `CannotMigrate`.
        """
        plan = await self.plan(ledger.made_topics)
        for group in groups:
            if group not in plan.known_groups:
                raise CannotMigrate(f"group {group!r}", "it does not exist in the source")
        new = tuple(each for each in plan.groups if not groups or each.group_name in groups)
        await make_groups(self._target, new)
        moving = GroupOffsets(self._source, self._target, ledger, wait)
        return [await moving.move(group) for group in groups or plan.known_groups]

    # Proof

    async def status(self, ledger: MigrationLedger) -> list[TopicCopyStatus]:
        """Return the progress of every topic."""
        rows = []
        states = ledger.queues()
        for topic in sorted({state.source.topic for state in states}):
            mine = [state for state in states if state.source.topic == topic]
            brokers = sorted({state.source.broker_name for state in mine})
            held = await holdings(self._source, topic, brokers)
            behind = 0
            for state in mine:
                bounds = held.get(state.source)
                if bounds is not None:
                    first = bounds.min_offset if state.next is None else state.next
                    behind += max(bounds.max_offset - first, 0)
            copied = sum(ledger.copied(state.id) for state in mine)
            lost = sum(state.lost for state in mine)
            rows.append(TopicCopyStatus(topic, len(mine), copied, behind, lost))
        return rows

    async def verify(
        self, ledger: MigrationLedger, progress: Callable[[int, int], None] | None = None
    ) -> list[CopyVerdict]:
        """Compare every queue with its copy.

        `progress` is called with the number of queues that were compared, and of all.
        """
        verifying = Verifying(self._source, self._target, ledger)
        compared = count(1)

        async def one(position: int) -> CopyVerdict:
            async with self._turns:
                verdict = await verifying.queue(states[position])
            if progress is not None:
                progress(next(compared), len(states))
            return verdict

        states = ledger.queues()
        return list(await asyncio.gather(*map(one, range(len(states)))))
