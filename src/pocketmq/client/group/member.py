"""A consumer as a member of its group, from its start to its stop.

`RunningMember` takes the steps of `balance.consumer.lifecycle` for every kind of consumer; what is
the same for all is done here, the rest by each kind. `SharingMember` adds what consumers need that
share queues. Both are `ConsumerMember`s of their session, where methods without a docstring are
documented. Names of groups and topics are those of the wire. Belongs to one event loop.
"""

import logging
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from pocketmq.balance.consumer import lifecycle as life
from pocketmq.balance.consumer import schedule as when
from pocketmq.balance.consumer.instructions import Instruction, SendHeartbeats
from pocketmq.client.group.calls import check_filter
from pocketmq.client.group.held_queue import HeldQueue
from pocketmq.client.group.listeners import QueueListeners
from pocketmq.client.group.no_messages import NoMessages
from pocketmq.client.group.parts import MemberParts
from pocketmq.client.group.rebalancing import Rebalancing
from pocketmq.client.group.subscriptions import Subscriptions
from pocketmq.client.routes import KnownRoute
from pocketmq.client.session import Session
from pocketmq.client.tasks import Tasks
from pocketmq.errors import NameServersUnreachable, ResponseCode, SystemFailure
from pocketmq.model import ConsumerData, MessageQueue
from pocketmq.model.group_balance import BalanceMode, GroupBalance, QueueStage, stages_text
from pocketmq.protocol import ReceivedMessage
from pocketmq.protocol.requests import client_calls

if TYPE_CHECKING:
    from pocketmq.client.group.handover.driver import StickyBalancing

logger = logging.getLogger("pocketmq.client")

Q = TypeVar("Q", bound=HeldQueue)

STOP_PATIENCE = 3.0
"""Seconds for which a stop waits for a rebalance in flight, and for listeners."""


class RunningMember:
    """A consumer of any kind, in its session."""

    kind = ""

    def __init__(
        self, session: Session, group: str, subscriptions: Subscriptions, tasks: Tasks
    ) -> None:
        self.session = session
        self.group = group
        self.subscriptions = subscriptions
        self.tasks = tasks
        self.started_at_ms = session.clock.now_ms()
        self.announced = False
        """Whether a broker took the heartbeat of the start."""

    # Start and stop

    async def start(self) -> None:
        """Join the group; if this raises, call `stop`.

        Raises `GroupTaken`, `NameServersUnreachable`, `InvalidInput` for local offsets that cannot
        be read, and the `ServerError` with which a broker refuses an expression.
        """
        for step in self.start_steps():
            await self.start_step(step)

    async def stop(self, wait: float = 0.0) -> None:
        """Leave the group gracefully; handlers in flight have `wait` seconds to finish.

        A step that fails is logged, and the next ones are taken all the same: whatever else goes
        wrong, offsets have to be stored and the member has to unregister.
        """
        for step in self.stop_steps(wait):
            try:
                await self.stop_step(step)
            except Exception:
                logger.exception("stop failed: group=%s step=%s", self.group, type(step).__name__)

    def start_steps(self) -> tuple[Instruction, ...]:
        """Return the steps of a start."""
        raise NotImplementedError

    def stop_steps(self, wait: float) -> tuple[Instruction, ...]:
        """Return the steps of a stop."""
        raise NotImplementedError

    async def start_step(self, step: Instruction) -> None:
        """Take a step that is the same for all kinds; others mean nothing here.

        Settings are checked, and the session is joined, before there is a member.
        """
        match step:
            case life.RegisterGroup():
                self.session.add_consumer(self)
            case when.FetchRoutes():
                await self.fetch_routes(self.topics())
            case life.CheckClientConfig(topics):
                for each in self.subscriptions.all():
                    # As in Java: there is no broker to ask about a topic that does not exist yet.
                    if each.topic in topics and self.session.routes.cached(each.topic) is not None:
                        await check_filter(self.session, self.group, each)
            case SendHeartbeats():
                self.announced = await self.announce()
            case _:
                pass

    async def stop_step(self, step: Instruction) -> None:
        """Take a step that is the same for all kinds; the session is stopped by its last user."""
        if isinstance(step, life.Unregister) and self.session.running:
            await self.session.remove_consumer(self)

    async def announce(self) -> bool:
        """Send brokers the subscriptions; return whether one took them."""
        return await self.session.heartbeats.beat(in_full=True)

    async def fetch_routes(self, topics: Iterable[str]) -> None:
        """Fetch routes; without name servers raise only if the options make `start` ask for one."""
        try:
            await self.session.fetch_routes(topics)
        except NameServersUnreachable:
            if self.session.options.start_wait is not None:
                raise

    # For the session

    def topics(self) -> Collection[str]:  # noqa: D102
        return self.subscriptions.topics()

    def consumer_data(self) -> ConsumerData:  # noqa: D102
        raise NotImplementedError

    def on_ids_changed(self) -> None:  # noqa: D102
        pass

    def on_route_changed(self, known: KnownRoute) -> None:  # noqa: D102
        pass

    def on_broker_active(self, address: str) -> None:  # noqa: D102
        pass

    def on_broker_lost(self, address: str) -> None:  # noqa: D102
        pass

    async def reset_offsets(self, topic: str, offsets: dict[MessageQueue, int]) -> None:  # noqa: D102
        pass

    async def offsets_reached(self, topic: str) -> dict[MessageQueue, int]:  # noqa: ARG002, D102
        return {}

    async def running_info(self, *, with_stacks: bool) -> client_calls.RunningInfo:  # noqa: D102
        raise NotImplementedError

    async def consume_directly(  # noqa: D102
        self,
        message: ReceivedMessage,  # noqa: ARG002 - for those with handlers
        broker_name: str | None,  # noqa: ARG002 - for those with handlers
    ) -> client_calls.DirectConsumeResult:
        raise SystemFailure(ResponseCode.SYSTEM_ERROR, f"a {self.kind} consumer has no handler")


class SharingMember(RunningMember, Generic[Q]):
    """A consumer that shares the queues of its topics with its group: push or pull."""

    rebalancing: "Rebalancing[Q] | StickyBalancing[Q]"

    def __init__(self, parts: MemberParts[Q], listeners: QueueListeners, reason: str = "") -> None:
        super().__init__(parts.session, parts.group, parts.subscriptions, parts.tasks)
        self.parts = parts
        self.listeners = listeners
        self._reason = reason
        self._no_messages = NoMessages(
            parts.session, parts.group, parts.subscriptions, parts.tasks, self.assigned_by_hand
        )

    def assigned_by_hand(self) -> bool:
        """Return whether the application assigns the queues."""
        return False

    @property
    def sticky(self) -> "StickyBalancing[Q] | None":
        """What hands queues over; None with Java's strategies."""
        return None if isinstance(self.rebalancing, Rebalancing) else self.rebalancing

    def balance(self) -> GroupBalance:
        """Return the balance of the group as this member sees it."""
        if self.sticky is not None:
            return self.sticky.balance()
        events = self.rebalancing.history.events
        listed = next((each.members for each in reversed(events) if each.members), ())
        client_id = self.session.client_id
        mine = [held.queue for held in self.parts.queues if held.mine]
        return GroupBalance(
            group=self.group,
            client_id=client_id,
            strategy=self.parts.options.allocation().name,
            mode=BalanceMode.JAVA,
            reason=self._reason,
            members=listed,
            owners=dict.fromkeys(mine, client_id),
            stages=dict.fromkeys(mine, QueueStage.RUNNING),
        )

    def balance_properties(self) -> dict[str, str]:
        """Return the balance as operators see it (307)."""
        balance = self.balance()
        found = {client_calls.PROP_BALANCE_MODE: balance.mode.value}
        if balance.reason:
            found[client_calls.PROP_BALANCE_REASON] = balance.reason
        if self.sticky is not None:
            found[client_calls.PROP_BALANCE_STAGES] = stages_text(balance.stages)
        return found

    async def start_step(self, step: Instruction) -> None:
        """Take a step."""
        if isinstance(step, life.LoadOffsets):
            self.parts.offsets.load()
            return
        if isinstance(step, SendHeartbeats) and self.sticky is not None:
            await self.sticky.listen()
        await super().start_step(step)

    async def stop_step(self, step: Instruction) -> None:
        """Take a step."""
        if isinstance(step, life.PersistAllOffsets):
            await self.parts.offsets.persist_last(tuple(self.parts.queues.pulled))
        else:
            await super().stop_step(step)

    async def announce(self) -> bool:
        """Send brokers the subscriptions; return whether one took them."""
        self._no_messages.look_soon()
        return await super().announce()

    async def persist_offsets(self) -> None:
        """Store the offsets of all queues now."""
        await self.parts.offsets.persist_all(tuple(self.parts.queues.pulled))

    def queues_changed(
        self, released: tuple[MessageQueue, ...], acquired: tuple[MessageQueue, ...]
    ) -> None:
        """Call the application's listeners, with its own names."""
        self.listeners.revoked([self.shown(queue) for queue in released], self.tasks)
        self.listeners.assigned([self.shown(queue) for queue in acquired], self.tasks)

    def shown(self, queue: MessageQueue) -> MessageQueue:
        """Return a queue under the name by which the application calls its topic."""
        topic = self.subscriptions.shown(queue.topic)
        return queue if topic == queue.topic else msgspec.structs.replace(queue, topic=topic)

    # For the session

    def on_ids_changed(self) -> None:  # noqa: D102
        self.rebalancing.tell(when.IdsChanged())

    def on_route_changed(self, known: KnownRoute) -> None:  # noqa: D102
        if self.subscriptions.get(known.topic) is not None:
            self.rebalancing.route_changed(known)

    def on_broker_active(self, address: str) -> None:  # noqa: D102
        self.rebalancing.tell(when.BrokerChannelActive(address))

    def on_broker_lost(self, address: str) -> None:  # noqa: D102
        if self.sticky is not None:
            self.sticky.broker_lost(address)

    async def offsets_reached(self, topic: str) -> dict[MessageQueue, int]:  # noqa: D102
        return self.parts.offsets.table.of_topic(topic)
