"""A consumer's report about itself (307), as Java's tools read and print it, and its counters.

The counters say how quickly it pulls and consumes, as Java's ConsumerStatsManager. Belongs to
one event loop.
"""

import asyncio
import sys
import threading
import traceback
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from pocketmq.balance.consumer.process_queue import ProcessQueueState as Cache
from pocketmq.balance.consumer.pulling import PULL_BATCH, PULL_BYTES
from pocketmq.client.consumer_options import PushConsumerOptions
from pocketmq.client.push.work import Consuming
from pocketmq.model import ConsumeType
from pocketmq.protocol.peers import CURRENT_VERSION, version_name
from pocketmq.protocol.requests import client_calls
from pocketmq.protocol.requests.client_calls import ConsumeStatus

MINUTE_STEP = 10.0
HOUR_STEP = 600.0
_READINGS = 7


class CounterReading(NamedTuple):
    """A counter at some time."""

    at: float
    value: float
    times: int


class CounterWindow:
    """The last readings of a counter."""

    __slots__ = ("_readings", "_step")

    def __init__(self, step: float) -> None:
        self._step = step
        self._readings: deque[CounterReading] = deque(maxlen=_READINGS)

    def read(self, now: float, value: float, times: int) -> None:
        """Take a reading; before the first, the counter was 0 for one step."""
        if not self._readings:
            self._readings.append(CounterReading(now - self._step, 0, 0))
        self._readings.append(CounterReading(now, value, times))

    @property
    def total(self) -> float:
        """What was added within the window."""
        return self._readings[-1].value - self._readings[0].value if self._readings else 0

    @property
    def rate(self) -> float:
        """What was added in a second."""
        if not self._readings:
            return 0.0
        seconds = self._readings[-1].at - self._readings[0].at
        return self.total / seconds if seconds > 0 else 0.0

    @property
    def mean(self) -> float:
        """What was added at once, on average."""
        if not self._readings:
            return 0.0
        times = self._readings[-1].times - self._readings[0].times
        return self.total / times if times > 0 else 0.0


class Counter:
    """A sum that grows, and how it grew lately."""

    __slots__ = ("hour", "minute", "times", "value")

    def __init__(self) -> None:
        self.value = 0.0
        self.times = 0
        self.minute = CounterWindow(MINUTE_STEP)
        self.hour = CounterWindow(HOUR_STEP)

    def add(self, value: float, times: int = 1) -> None:
        """Add to the sum, as `times` values."""
        self.value += value
        self.times += times


class TopicHandlingStats:
    """The counters of one topic. Durations are milliseconds."""

    __slots__ = ("consume_rt", "failed", "ok", "pull_rt", "pulled")

    def __init__(self) -> None:
        self.pull_rt = Counter()
        self.pulled = Counter()
        self.consume_rt = Counter()
        self.ok = Counter()
        self.failed = Counter()

    def counters(self) -> tuple[Counter, ...]:
        """Return all counters."""
        return self.pull_rt, self.pulled, self.consume_rt, self.ok, self.failed

    def status(self) -> ConsumeStatus:
        """Return the rates in wire form."""
        spent = self.consume_rt
        # Java: with nothing consumed within the minute, the mean of the hour is used.
        recent = spent.minute if spent.minute.total else spent.hour
        return ConsumeStatus(
            pull_rt=self.pull_rt.minute.mean,
            pull_tps=self.pulled.minute.rate,
            consume_rt=recent.mean,
            consume_ok_tps=self.ok.minute.rate,
            consume_failed_tps=self.failed.minute.rate,
            consume_failed_msgs=int(self.failed.hour.total),
        )


class HandlingStats:
    """The counters of a consumer, by topic as on the wire.

    They are read every ten seconds for the last minute and every ten minutes for the last hour;
    rates are what lies between the first and the last of seven readings.
    """

    def __init__(self) -> None:
        self._topics: dict[str, TopicHandlingStats] = {}

    def of(self, topic: str) -> TopicHandlingStats:
        """Return the counters of a topic."""
        found = self._topics.get(topic)
        if found is None:
            found = self._topics[topic] = TopicHandlingStats()
        return found

    def status(self, topic: str) -> ConsumeStatus:
        """Return the rates of a topic; all 0 for an unknown one."""
        found = self._topics.get(topic)
        return ConsumeStatus() if found is None else found.status()

    def read_minute(self, now: float) -> None:
        """Take the readings that are due every ten seconds."""
        for topic in self._topics.values():
            for counter in topic.counters():
                counter.minute.read(now, counter.value, counter.times)

    def read_hour(self, now: float) -> None:
        """Take the readings that are due every ten minutes."""
        for topic in self._topics.values():
            for counter in topic.counters():
                counter.hour.read(now, counter.value, counter.times)


_DEEPEST = 100


def running_info(
    consuming: Consuming,
    stats: HandlingStats,
    *,
    orderly: bool,
    stacks_of: Iterable[asyncio.Task[Any]] | None,
) -> client_calls.RunningInfo:
    """Describe a consumer, with the stacks of all threads and the given tasks, unless None."""
    subscriptions = sorted(consuming.subscribed(), key=lambda one: one.topic)
    # The cache keeps the loop's time, operators read the wall's.
    behind = consuming.session.clock.now() - consuming.now()
    return client_calls.RunningInfo(
        properties=_properties(consuming, orderly=orderly),
        subscription_set=subscriptions,
        mq_table={
            queue: _cache(held.process.info(), consuming.noted_offset(queue), behind)
            for queue, held in consuming.held().items()
        },
        status_table={one.topic: stats.status(one.topic) for one in subscriptions},
        jstack=None if stacks_of is None else stacks(stacks_of),
    )


def stacks(tasks: Iterable[asyncio.Task[Any]] = ()) -> str:
    """Show where every thread is, and each of the given tasks, in the form of Java's dumps."""
    frames = sys._current_frames()  # noqa: SLF001 - the only way to see other threads
    parts = []
    for thread in threading.enumerate():
        frame = frames.get(thread.ident or 0)
        if frame is not None:
            steps = traceback.extract_stack(frame)
            parts.append(_stack(thread.name, thread.native_id or 0, "RUNNABLE", steps))
    parts += [_stack(task.get_name(), id(task), "WAITING", _awaited(task)) for task in tasks]
    return "\n".join(parts)


def _stack(name: str, number: int, state: str, steps: Sequence[traceback.FrameSummary]) -> str:
    lines = [f"{name:<40}TID: {number} STATE: {state}"]
    # As in Java, the innermost step first.
    lines += [f"{name:<40}{one.name}({one.filename}:{one.lineno})" for one in reversed(steps)]
    return "\n".join(lines) + "\n"


def _awaited(task: asyncio.Task[Any]) -> list[traceback.FrameSummary]:
    """Follow what a task waits for, from coroutine to coroutine."""
    steps: list[traceback.FrameSummary] = []
    waiting: Any = task.get_coro()
    while len(steps) < _DEEPEST:
        frame = getattr(waiting, "cr_frame", None) or getattr(waiting, "gi_frame", None)
        if frame is None:
            break
        steps += traceback.extract_stack(frame, limit=1)
        waiting = getattr(waiting, "cr_await", None) or getattr(waiting, "gi_yieldfrom", None)
    return steps


def _cache(info: Cache, noted: int, behind: float) -> client_calls.ProcessQueueBody:
    def wall_ms(at: float) -> int:
        return round((at + behind) * 1000)

    return client_calls.ProcessQueueBody(
        commit_offset=noted,
        cached_msg_min_offset=info.cached_min_offset,
        cached_msg_max_offset=info.cached_max_offset,
        cached_msg_count=info.cached_count,
        cached_msg_size_in_mib=info.cached_size_mib,
        transaction_msg_min_offset=info.consuming_min_offset,
        transaction_msg_max_offset=info.consuming_max_offset,
        transaction_msg_count=info.consuming_count,
        locked=info.locked,
        try_unlock_times=info.unlock_tries,
        last_lock_timestamp=wall_ms(info.last_lock),
        dropped=info.dropped,
        last_pull_timestamp=wall_ms(info.last_pull),
        last_consume_timestamp=wall_ms(info.last_consume),
    )


def _properties(consuming: Consuming, *, orderly: bool) -> dict[str, str]:
    session = consuming.session
    addresses = session.routes.name_servers.addresses
    return {
        **_settings(consuming.options),
        "consumerGroup": consuming.group,
        "clientIP": session.client_id.partition("@")[0],
        "instanceName": session.client_id.split("@")[1],
        "namesrvAddr": ";".join(addresses),
        client_calls.PROP_ORDERLY: str(orderly).lower(),
        client_calls.PROP_THREADS: str(consuming.options.threads),
        client_calls.PROP_START_TIMESTAMP: str(consuming.started_at_ms),
        client_calls.PROP_NAME_SERVER: "".join(f"{address};" for address in addresses),
        client_calls.PROP_CONSUME_TYPE: ConsumeType.CONSUME_PASSIVELY.name,
        client_calls.PROP_CLIENT_VERSION: version_name(CURRENT_VERSION),
    }


def _settings(options: PushConsumerOptions) -> dict[str, str]:
    """Return the settings under the names of Java's fields, times in Java's units."""
    limits = options.limits
    values: dict[str, object] = {
        "messageModel": options.model.name,
        "consumeFromWhere": options.consume_from.name,
        "allocateMessageQueueStrategy": options.allocation().name,
        "consumeThreadMin": options.threads,
        "consumeThreadMax": options.threads,
        "consumeConcurrentlyMaxSpan": limits.span,
        "pullThresholdForQueue": limits.count,
        "pullThresholdSizeForQueue": limits.size_mib,
        "pullThresholdForTopic": limits.topic_count,
        "pullThresholdSizeForTopic": limits.topic_size_mib,
        "pullInterval": round(options.pull_interval * 1000),
        "consumeMessageBatchMaxSize": options.handler_batch,
        "pullBatchSize": options.pull_batch or PULL_BATCH,
        "pullBatchSizeInBytes": options.pull_batch_bytes or PULL_BYTES,
        "postSubscriptionWhenPull": str(options.subscription_in_pull).lower(),
        "unitMode": str(options.unit_mode).lower(),
        "maxReconsumeTimes": options.max_reconsume_times,
        "suspendCurrentQueueTimeMillis": round(options.suspend_queue * 1000),
        "consumeTimeout": round(options.consume_timeout / 60),
        "awaitTerminationMillisWhenShutdown": round(options.stop_wait * 1000),
        "clientRebalance": str(options.client_rebalance).lower(),
    }
    return {name: str(value) for name, value in values.items()}
