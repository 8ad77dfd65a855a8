"""What a running broker consists of, put together in the order the parts need each other.

Everything here happens in one go, without giving the loop away: clients that connect meanwhile are
served when it is all there.
"""

import asyncio
import os
import secrets
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from pocketmq.broker.answers import SendAnswers
from pocketmq.broker.appending import tag_rules
from pocketmq.broker.clock import Clock
from pocketmq.broker.config import BrokerConfig
from pocketmq.broker.delays import Delays, delay_tag_rules
from pocketmq.broker.dispatch import Dispatcher
from pocketmq.broker.flows import Flows
from pocketmq.broker.groups import GroupTable
from pocketmq.broker.handlers.by_code import HANDLERS
from pocketmq.broker.housekeeping import Housekeeping
from pocketmq.broker.long_polling import SuspendedPulls
from pocketmq.broker.name_server_calls import calls_of
from pocketmq.broker.offsets import OffsetTable
from pocketmq.broker.registration import Registrar
from pocketmq.broker.replies import Replies
from pocketmq.broker.retention import store_options
from pocketmq.broker.route_questions import RouteQuestions
from pocketmq.broker.saving import load_tables
from pocketmq.broker.state import BrokerState
from pocketmq.broker.system_topics import system_groups, system_topics
from pocketmq.broker.timers import Timers, timer_tag_rules
from pocketmq.broker.topics import TopicTable
from pocketmq.broker.transaction_checks import TransactionChecks, half_tag_rules
from pocketmq.model import properties as names
from pocketmq.model.names import REVIVE_TOPIC_PREFIX
from pocketmq.net import Dialer
from pocketmq.protocol.message_ids import UniqueIds
from pocketmq.protocol.property_text import encode_properties
from pocketmq.store import Flusher, MessageStore


class Feature(Protocol):
    """A part that works by itself while the broker runs, such as delayed messages."""

    def start(self) -> None:
        """Begin; called before the first request."""
        ...

    async def stop(self) -> None:
        """End, leaving everything saved; called while the store is still open."""
        ...


class Parts:
    """One broker's parts. Belongs to its loop."""

    def __init__(
        self,
        config: BrokerConfig,
        store: MessageStore,
        clock: Clock,
        *,
        address: str,
        store_host: bytes,
        name_servers: Sequence[str],
        dialer: Dialer,
    ) -> None:
        """Take an open store.

        Raises `BodyMalformed` if what was saved in it cannot be read, `InvalidInput` for an access
        file that cannot be.
        """
        loop = asyncio.get_running_loop()
        self.state = state = make_state(config, store, clock, address, store_host, loop.time)
        state.call_soon = loop.call_soon
        load_tables(state)
        if config.metrics_exporter_type == "PROM":
            from pocketmq.broker.metrics.measures import Measures  # most brokers do without

            state.measures = Measures()
        self.dispatcher = Dispatcher(state, HANDLERS, loop)
        calls = calls_of(dialer, config.name_server_user())
        self.registrar = Registrar(state, name_servers, calls)
        self.questions = RouteQuestions(name_servers, calls)
        self.dispatcher.when_announced = self.registrar.when_announced
        state.end_turn = self.dispatcher.end_turn
        state.begin_popping = self._begin_popping
        state.routes.fetch = self.questions.fetch
        state.register_topics = self.registrar.register_topics
        state.replies = Replies(loop)
        self.features: list[Feature] = [
            Delays(state, self.dispatcher, loop),
            Timers(state, self.dispatcher, loop),
            TransactionChecks(state, self.dispatcher, loop),
            state.replies,
            Housekeeping(state, self.dispatcher, loop),
        ]
        if config.knows_people:
            from pocketmq.broker.access.opening import AccessControl  # most brokers do without

            self.features.append(AccessControl(state, loop))

    def start(self) -> None:
        """Begin with everything that works by itself."""
        for feature in self.features:
            feature.start()
        if has_popped(self.state):
            self._begin_popping()

    def _begin_popping(self) -> None:
        from pocketmq.broker.pop.popping import Popping  # most brokers do without

        popping = Popping(self.state, self.dispatcher, asyncio.get_running_loop())
        popping.start()
        self.features.append(popping)

    async def stop(self) -> None:
        """End what works by itself, last first."""
        for feature in reversed(self.features):
            await feature.stop()


def has_popped(state: BrokerState) -> bool:
    """Tell whether messages were popped before that may still be out."""
    journal = state.store.queue(REVIVE_TOPIC_PREFIX + state.config.broker_cluster_name, 0)
    return journal is not None and journal.next_offset > 0


def open_store(config: BrokerConfig, data: Path | None, store_host: bytes) -> MessageStore:
    """Open a broker's store as its settings say. Raises `StoreError`."""
    options = store_options(config, in_memory=data is None)
    flusher = Flusher(asyncio.get_running_loop().call_soon_threadsafe)
    rules = tag_rules() | delay_tag_rules(config.message_delay_level)
    rules |= half_tag_rules() | timer_tag_rules()
    return MessageStore.open(data, options, store_host=store_host, flusher=flusher, tag_rules=rules)


def make_state(  # noqa: PLR0917 - what makes one broker differ from another
    config: BrokerConfig,
    store: MessageStore,
    clock: Clock,
    address: str,
    store_host: bytes,
    steady: Callable[[], float],
) -> BrokerState:
    """Give a state whose tables hold what every broker knows from the beginning."""
    now_ms = clock.now_ms()
    offset = time.localtime().tm_gmtoff
    ids = UniqueIds(store_host[:-4], os.getpid(), secrets.randbits(32), utc_offset_ms=offset * 1000)
    return BrokerState(
        config=config,
        store=store,
        clock=clock,
        address=address,
        topics=TopicTable(system_topics(config), now_ms=now_ms),
        groups=GroupTable(system_groups(), now_ms=now_ms),
        offsets=OffsetTable(now_ms=now_ms),
        send_answers=SendAnswers(config.region_id, store_host, trace_on=config.trace_on),
        unique_ids=ids,
        waiting=SuspendedPulls(
            limit=config.max_suspended_pulls,
            connection_limit=config.max_suspended_pulls_of_connection,
        ),
        stats=Flows(config.broker_cluster_name, steady()),
        stamp=_stamp(config),
        steady=steady,
        booted_ms=now_ms,
    )


def _stamp(config: BrokerConfig) -> str:
    stamp = encode_properties(
        {
            names.MSG_REGION: config.region_id,
            names.TRACE_ON: "true" if config.trace_on else "false",
            names.CLUSTER: config.broker_cluster_name,
        }
    )
    return stamp.decode()
