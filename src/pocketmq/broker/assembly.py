"""What a running broker consists of, built in the order the parts need each other.

Everything here happens in one event-loop iteration: clients that connect meanwhile are served when
it is all there.
"""

import asyncio
import os
import secrets
import time
from collections.abc import Sequence
from pathlib import Path

from pocketmq.broker.by_code import HANDLERS
from pocketmq.broker.config import BrokerConfig
from pocketmq.broker.core.answers import SendAnswers
from pocketmq.broker.core.write_batch import WriteBatch
from pocketmq.broker.delay.delays import Delays, delay_tag_rules
from pocketmq.broker.groups.table import GroupConfigTable
from pocketmq.broker.metrics.measures import Measures
from pocketmq.broker.name_servers.registration import Registrar
from pocketmq.broker.name_servers.routes import RouteCache, RouteQuestions, calls_of
from pocketmq.broker.offsets.table import ConsumerOffsetTable
from pocketmq.broker.pop.entry import has_popped, start_popping
from pocketmq.broker.pulling.suspended_pulls import SuspendedPulls
from pocketmq.broker.saving import load_tables
from pocketmq.broker.sending.reply_delivery import ReplyDelivery
from pocketmq.broker.serving.dispatch import Dispatcher
from pocketmq.broker.settings import store_options
from pocketmq.broker.state import BrokerState
from pocketmq.broker.static_topics.neighbours import Neighbours
from pocketmq.broker.static_topics.upkeep import StaticTopicUpkeep
from pocketmq.broker.statistics.counters import BrokerTotals, TopicStatistics
from pocketmq.broker.timers.timers import Timers, timer_tag_rules
from pocketmq.broker.topics.table import TopicConfigTable, system_groups, system_topics
from pocketmq.broker.transactions.checks import TransactionChecks, half_tag_rules
from pocketmq.broker.upkeep.housekeeping import Housekeeping
from pocketmq.broker.writing.log_writer import CommitLogWriter, Counters
from pocketmq.model import property_names
from pocketmq.net import Dialer
from pocketmq.net.clock import WallClock
from pocketmq.protocol.message_ids import UniqueIds
from pocketmq.protocol.property_text import encode_properties
from pocketmq.store import Flusher, MessageStore


class BrokerParts:
    """One broker's parts. Belongs to its loop."""

    def __init__(
        self,
        config: BrokerConfig,
        store: MessageStore,
        clock: WallClock,
        *,
        address: str,
        store_host: bytes,
        name_servers: Sequence[str],
        dialer: Dialer,
    ) -> None:
        """Build everything on an open store.

        Raises `BodyMalformed` for saved tables that are malformed, `InvalidInput` for an invalid
        access file.
        """
        loop = asyncio.get_running_loop()
        calls = calls_of(dialer, config.name_server_user())
        self.questions = RouteQuestions(name_servers, calls)
        routes = RouteCache(self.questions.fetch)
        self.state = state = make_state(config, store, clock, address, store_host, routes)
        state.neighbours = Neighbours(calls, self.questions.fetch)
        load_tables(state)
        self.registrar = Registrar(state, name_servers, calls)
        self.dispatcher = Dispatcher(state, HANDLERS, loop)
        state.replies = ReplyDelivery(loop)
        state.features += [
            Delays(state, loop),
            Timers(state, loop),
            TransactionChecks(state, loop),
            state.replies,
            state.neighbours,
            StaticTopicUpkeep(state),
            Housekeeping(state, loop),
        ]
        if config.knows_people:
            from pocketmq.broker.access.opening import AccessControl  # most brokers do without

            state.features.append(AccessControl(state, loop))

    def start(self) -> None:
        """Start everything that works by itself."""
        for feature in tuple(self.state.features):
            feature.start()
        if has_popped(self.state):
            start_popping(self.state)

    async def stop(self) -> None:
        """Stop what works by itself, in reverse order of starting."""
        for feature in reversed(self.state.features):
            await feature.stop()


def open_store(config: BrokerConfig, data: Path | None, store_host: bytes) -> MessageStore:
    """Open a broker's store with the options of its settings. Raises `StoreError`."""
    options = store_options(config, in_memory=data is None)
    flusher = Flusher(asyncio.get_running_loop().call_soon_threadsafe)
    rules = delay_tag_rules(config.message_delay_level) | half_tag_rules() | timer_tag_rules()
    return MessageStore.open(data, options, store_host=store_host, flusher=flusher, tag_rules=rules)


def make_state(  # noqa: PLR0917 - what makes one broker differ from another
    config: BrokerConfig,
    store: MessageStore,
    clock: WallClock,
    address: str,
    store_host: bytes,
    routes: RouteCache,
) -> BrokerState:
    """Build a state whose tables hold what every broker has from the start."""
    now_ms, steady = clock.now_ms(), asyncio.get_running_loop().time
    offset = time.localtime().tm_gmtoff
    ids = UniqueIds(store_host[:-4], os.getpid(), secrets.randbits(32), utc_offset_ms=offset * 1000)
    answers = SendAnswers(config.region_id, store_host, trace_on=config.trace_on)
    counters = Counters(
        traffic=BrokerTotals(),
        stats=TopicStatistics(config.broker_cluster_name, steady()),
        measures=None if config.metrics_exporter_type == "DISABLE" else Measures(),
    )
    batch = WriteBatch()
    return BrokerState(
        config=config,
        store=store,
        clock=clock,
        address=address,
        topics=TopicConfigTable(system_topics(config), now_ms=now_ms),
        groups=GroupConfigTable(system_groups(), now_ms=now_ms),
        offsets=ConsumerOffsetTable(now_ms=now_ms),
        send_answers=answers,
        unique_ids=ids,
        waiting=SuspendedPulls(
            limit=config.max_suspended_pulls,
            connection_limit=config.max_suspended_pulls_of_connection,
        ),
        batch=batch,
        writer=CommitLogWriter(
            batch, store, clock, config, steady=steady, answers=answers, counters=counters
        ),
        routes=routes,
        traffic=counters.traffic,
        stats=counters.stats,
        measures=counters.measures,
        stamp=_stamp(config),
        steady=steady,
        booted_ms=now_ms,
    )


def _stamp(config: BrokerConfig) -> str:
    stamp = encode_properties(
        {
            property_names.MSG_REGION: config.region_id,
            property_names.TRACE_ON: "true" if config.trace_on else "false",
            property_names.CLUSTER: config.broker_cluster_name,
        }
    )
    return stamp.decode()
