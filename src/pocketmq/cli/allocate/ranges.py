"""Many queues in few words: `broker-a 0-3,7  broker-b 0-1`."""

from collections.abc import Iterable

from pocketmq.model.queue import MessageQueue

# A cell names so many runs of queues at most; `--json` has them all.
MAX_RUNS = 24


def compact(queues: Iterable[MessageQueue]) -> str:
    """Name queues of one topic by broker, with neighbouring numbers as ranges."""
    brokers: dict[str, list[str]] = {}
    shown = left_out = 0
    for broker, first, last in _runs(queues):
        if shown == MAX_RUNS:
            left_out += last - first + 1
            continue
        shown += 1
        brokers.setdefault(broker, []).append(str(first) if first == last else f"{first}-{last}")
    text = "  ".join(f"{broker} {','.join(runs)}" for broker, runs in brokers.items())
    return f"{text}  and {left_out} more" if left_out else text or "-"


def compact_topics(queues: Iterable[MessageQueue], *, with_topic: bool) -> str:
    """Name queues of several topics, a line for each topic."""
    by_topic: dict[str, list[MessageQueue]] = {}
    for queue in queues:
        by_topic.setdefault(queue.topic, []).append(queue)
    if not by_topic:
        return "-"
    lines = [
        f"{topic}: {compact(some)}" if with_topic else compact(some)
        for topic, some in by_topic.items()
    ]
    return "\n".join(lines)


def _runs(queues: Iterable[MessageQueue]) -> Iterable[tuple[str, int, int]]:
    """Join neighbours on one broker into (broker, first, last)."""
    run: tuple[str, int, int] | None = None
    for queue in queues:
        if run and queue.broker_name == run[0] and queue.queue_id == run[2] + 1:
            run = run[0], run[1], queue.queue_id
            continue
        if run:
            yield run
        run = queue.broker_name, queue.queue_id, queue.queue_id
    if run:
        yield run
