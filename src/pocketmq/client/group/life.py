"""How a push consumer starts and stops: the steps of `balance.consumer.lifecycle`, taken."""

import asyncio
import logging

import msgspec

from pocketmq.balance.consumer import lifecycle as life
from pocketmq.balance.consumer import schedule as when
from pocketmq.balance.consumer.instructions import Instruction, SendHeartbeats
from pocketmq.balance.consumer.locks import after_unlock_batch, unlock_plan
from pocketmq.client.group.calls import check_filter
from pocketmq.client.group.persisting import persist_by_and_by
from pocketmq.client.push.member import Engine
from pocketmq.errors import NameServersUnreachable
from pocketmq.model.kinds import MessageModel

logger = logging.getLogger("pocketmq.client")

STOP_PATIENCE = 3.0
"""How long a stop waits for a rebalance under way, and for listeners."""


class Life:
    """Starts and stops one engine, once each."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._heartbeat_sent = False

    async def start(self) -> None:
        """Begin to consume; whoever calls this calls `stop` if it raises.

        Raises `GroupTaken`, `NameServersUnreachable`, `InvalidInput` for local offsets that cannot
        be read, and the `ServerError` with which a broker refuses an expression.
        """
        for step in life.start_steps(self._facts()):
            await self._start(step)

    async def stop(self, wait: float) -> None:
        """Stop in order; a step that fails does not keep the others from being taken."""
        for step in life.stop_steps(self._facts(), wait):
            try:
                await self._stop(step)
            except Exception:
                logger.exception("group %s: %s failed", self._engine.group, type(step).__name__)

    def _facts(self) -> life.Consumer:
        engine = self._engine
        return life.Consumer(
            profile=engine.profile,
            group=engine.group,
            model=engine.model,
            orderly=engine.options.orderly,
            expression_types={
                topic: each.expression_type
                for topic, each in engine.parts.subscriptions.own().items()
            },
        )

    async def _start(self, step: Instruction) -> None:
        engine, subscriptions = self._engine, self._engine.parts.subscriptions
        session = engine.session
        match step:
            case life.SubscribeRetryTopic(topic):
                subscriptions.add_own(topic, session.clock.now_ms())
            case life.LoadOffsets():
                engine.parts.offsets.load()
            case life.StartConsuming():
                self._begin_work()
            case life.RegisterGroup():
                session.add_consumer(engine)
            case when.FetchRoutes():
                try:
                    await session.fetch_routes(engine.topics())
                except NameServersUnreachable:
                    if session.options.start_wait is not None:
                        raise
            case life.CheckClientConfig(topics):
                for topic in topics:
                    await check_filter(session, engine.group, subscriptions.own()[topic])
            case SendHeartbeats():
                self._heartbeat_sent = await engine.announce()
            case life.RebalanceNow():
                engine.rebalancing.tell(when.Started(self._heartbeat_sent))
            case _:
                pass  # settings are checked, and the session is joined, before there is an engine

    def _begin_work(self) -> None:
        engine = self._engine
        client, profile = engine.session.options, engine.profile
        engine.parts.running = True
        engine.parts.work.start()
        persist_by_and_by(engine.tasks, engine.parts.offsets.table, client, engine.persist_offsets)
        if engine.options.orderly and engine.model is MessageModel.CLUSTERING:
            engine.tasks.every(
                profile.lock_interval,
                engine.renew_locks,
                "locks",
                first_after=profile.lock_first_after,
            )

    async def _stop(self, step: Instruction) -> None:
        engine, parts = self._engine, self._engine.parts
        match step:
            case life.StopConsuming(wait):
                parts.running = False
                await engine.rebalancing.stop(STOP_PATIENCE)
                for held in parts.held.values():
                    engine.puller.end(held)
                await parts.work.stop(wait)
            case life.UnlockAll():
                await self._unlock_all()
            case life.PersistAllOffsets():
                await parts.offsets.persist_last(tuple(parts.held))
            case life.Unregister():
                if engine.session.running:
                    await engine.session.remove_consumer(engine)
            case life.StopSession():
                self._tell_of_the_end()
                await engine.listeners.finish(STOP_PATIENCE)
                await engine.finish_history(STOP_PATIENCE)
                if engine.tracer is not None:
                    await engine.tracer.close(STOP_PATIENCE)
                await engine.tasks.stop()
            case life.DropAllQueues():
                engine.holdings.drop_all()

    async def _unlock_all(self) -> None:
        engine = self._engine
        plan = unlock_plan(engine.holdings.owned())
        answers = await asyncio.gather(*(engine.locks.unlock(batch) for batch in plan))
        for batch, answered in zip(plan, answers, strict=True):
            engine.holdings.perform(after_unlock_batch(batch, answered=answered))

    def _tell_of_the_end(self) -> None:
        """Let listeners and history know that no queue is held any more."""
        engine, rebalancing = self._engine, self._engine.rebalancing
        for topic in engine.topics():
            before = rebalancing.working(topic)
            if before:
                rebalancing.history.record(
                    msgspec.structs.replace(
                        rebalancing.new_event(topic, "stop"), before=before, revoked=before
                    )
                )
        engine.queues_changed(tuple(engine.parts.held), ())
