"""Samples of a group's offsets, taken from the brokers while they run."""

import time
from collections.abc import Iterable, Iterator
from typing import Self

from pocketmq import ClientOptions
from pocketmq.blocking.record_reader import RecordReader
from pocketmq.errors import MQError
from pocketmq.pipelines.health.observed import OffsetSample

PATIENCE = 1.0
"""Seconds to wait for a broker; one that is away is left out of the sample."""


class OffsetSampler:
    """Asks brokers how far groups have come. Used with `with`.

    A cluster is named by its name servers, or by options that say how to be let in, too.
    """

    def __init__(self, cluster: str | ClientOptions, wanted: Iterable[tuple[str, str]]) -> None:
        self._wanted = sorted(set(wanted))
        named = ClientOptions(name_servers=cluster) if isinstance(cluster, str) else cluster
        self._reader = RecordReader(named, patience=PATIENCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()

    def sample(self) -> list[OffsetSample]:
        """Take one sample of every queue that can be reached."""
        found = []
        now = time.time()
        for group, topic in self._wanted:
            try:
                queues = self._reader.queues(topic)
            except MQError:
                continue
            for queue in queues:
                try:
                    bounds = self._reader.bounds(queue)
                    committed = self._reader.committed(group, queue)
                except MQError:
                    continue
                found.append(
                    OffsetSample(
                        time=now, group=group, topic=topic, broker=queue.broker_name,
                        queue=queue.queue_id, committed=committed, lowest=bounds.first,
                        highest=bounds.end,
                    )
                )  # fmt: skip
        return found


def watch_offsets(
    cluster: str | ClientOptions,
    wanted: Iterable[tuple[str, str]],
    seconds: float,
    every: float = 1.0,
) -> Iterator[list[OffsetSample]]:
    """Sample groups' topics at once, and again and again until so many seconds later."""
    with OffsetSampler(cluster, wanted) as sampler:
        yield sampler.sample()
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            time.sleep(min(every, left))
            yield sampler.sample()
