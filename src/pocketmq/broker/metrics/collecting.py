"""Collecting a broker's families for its exporters, while its clients are served."""

import asyncio

from prometheus_client.metrics_core import Metric

from pocketmq.broker.metrics.families import families
from pocketmq.broker.state import BrokerState

_SLICE = 0.01
"""Seconds of work after which the loop runs other tasks."""


async def collected(state: BrokerState) -> list[Metric]:
    """Return all families. Runs on the broker's loop, and lets it run between pieces."""
    loop = asyncio.get_running_loop()
    found = []
    until = loop.time() + _SLICE
    for each in families(state):
        if each is not None:
            found.append(each)
        if loop.time() > until:
            await asyncio.sleep(0)
            until = loop.time() + _SLICE
    return found
