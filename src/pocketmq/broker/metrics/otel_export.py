"""A broker's metrics, pushed to OpenTelemetry at an interval and once more at the end.

Families are collected on the loop. The exporter blocks, so it has a thread, a daemon one: neither
the broker's stop nor the process waits longer than `_LAST` for a collector that does not respond.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from prometheus_client.metrics_core import Metric

from pocketmq.broker.metrics.families import collected
from pocketmq.broker.state import BrokerState
from pocketmq.errors import InvalidInput

try:
    from opentelemetry.sdk.metrics.export import MetricExporter, MetricExportResult

    from pocketmq.broker.metrics import otel_sdk
except ImportError as _missing:
    raise InvalidInput(
        "metrics for OpenTelemetry need its SDK; run: pip install 'pocketmq[otel]'"
    ) from _missing

logger = logging.getLogger("pocketmq.broker")

_LAST = 2.0
"""Seconds that the last export may take."""


class OtelExport:
    """Exports a running broker's metrics. Belongs to the broker's loop."""

    def __init__(self, state: BrokerState) -> None:
        """Choose the exporter. Raises `InvalidInput` for wrong settings or a missing package."""
        self._state = state
        self._interval = otel_sdk.interval(state.config)
        self._exporter: MetricExporter = otel_sdk.make_exporter(state.config)
        self._resource = otel_sdk.describe_source(state.config.broker_name)
        self._task: asyncio.Task[None] | None = None
        self._failing = False

    def start(self) -> None:
        """Export from now on."""
        name, seconds = type(self._exporter).__module__, self._interval
        logger.info("metrics exported: exporter=%s interval=%g s", name, seconds)
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Export once more, what happened since the last time, and stop."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST):
                    await self._export()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST):
                await _in_thread(self._exporter.shutdown)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._interval)
            await self._export()

    async def _export(self) -> None:
        families = await collected(self._state)
        failure = await _in_thread(lambda: self._pushed(families))
        if failure is not None and not self._failing:
            logger.warning("metrics export failed: error=%r; retrying each interval", failure)
        elif failure is None and self._failing:
            logger.info("metrics exported again")
        self._failing = failure is not None

    def _pushed(self, families: list[Metric]) -> str | None:
        """Push; return the reason if that failed. Runs in a thread."""
        start_ns = self._state.booted_ms * 1_000_000
        data = otel_sdk.metrics_data(families, self._resource, start_ns, time.time_ns())
        try:
            done = self._exporter.export(data)
        except Exception as error:  # noqa: BLE001 - any exporter's: metrics must not stop a broker
            return str(error) or type(error).__name__
        return None if done is MetricExportResult.SUCCESS else "the exporter reported a failure"


async def _in_thread(call: Callable[[], str | None]) -> str | None:
    """Return what a blocking call returns, from a thread that no exit waits for."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[str | None] = loop.create_future()

    def settle(result: str | None) -> None:
        if not done.done():
            done.set_result(result)

    def run() -> None:
        result = call()
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, result)

    threading.Thread(target=run, name="pocketmq-otel", daemon=True).start()
    return await done
