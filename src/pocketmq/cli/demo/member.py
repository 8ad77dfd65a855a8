"""One consumer of the demo, in a process of its own.

    python -m pocketmq.cli.demo.member NAME_SERVER NAME GROUP STRATEGY TOPIC EVENTS_TOPIC

Prints on stdout, one JSON list per line, its queues with their stages whenever they change
(`["holds", {"broker-0:1": "running", …}]`) and the messages it received (`["got", time, broker,
queue, [[offset, number, stored], …]]`). Publishes its rebalances to a topic. Leaves the group when
its standard input ends.
"""

import json
import select
import sys
import threading
import time
from collections.abc import Sequence

import msgspec

from pocketmq import V5, ClientOptions, PushConsumer, ReceivedMessage

QUICK = msgspec.structs.replace(V5, rebalance_on_route_change=True, rebalance_interval=5.0)
"""Java's behaviour with short intervals, so that a viewer need not wait half a minute."""

PERSIST_INTERVAL = 1.0
"""Seconds between two commits with Java's strategies."""
COMMIT_INTERVAL = 0.1
"""The same with STICKY."""
_LOOK = 0.05

_lock = threading.Lock()


def quick_options(name: str) -> ClientOptions:
    """Return the options of a client that reacts within seconds."""
    return ClientOptions(
        client_ip=name,
        instance_name="demo",
        profile=QUICK,
        route_interval=1.0,
        heartbeat_interval=2.0,
        persist_interval=PERSIST_INTERVAL,
        persist_first_after=1.0,
        start_wait=10.0,
    )


def _report(line: list[object]) -> None:
    text = json.dumps(line)
    with _lock:
        print(text, flush=True)


def _watch(consumer: PushConsumer, topic: str) -> None:
    """Report the stages of the queues whenever they change, until standard input ends."""
    reported: dict[str, str] | None = None
    while True:
        stages = {
            f"{queue.broker_name}:{queue.queue_id}": stage.value
            for queue, stage in consumer.balance.stages.items()
            if queue.topic == topic
        }
        if stages != reported:
            _report(["holds", stages])
            reported = stages
        if select.select([sys.stdin], [], [], _LOOK)[0]:  # nothing is ever sent: it has ended
            return


def main() -> None:
    """Consume until standard input ends."""
    address, name, group, strategy, topic, events = sys.argv[1:]
    consumer = PushConsumer(
        address,
        group=group,
        strategy=strategy,
        options=quick_options(name),
        consume_from="first",
        handler_batch=32,
        threads=8,
        stop_wait=5.0,
        commit_interval=COMMIT_INTERVAL,
    )

    def handle(messages: Sequence[ReceivedMessage]) -> None:
        now, first = time.time(), messages[0]  # all are of one queue
        given = [[m.queue_offset, int(m.keys[0]), m.store_timestamp] for m in messages]
        _report(["got", now, first.broker_name, first.queue_id, given])

    consumer.subscribe(topic, "*", handle, batch=True)
    with consumer:
        consumer.publish_history(events)
        _watch(consumer, topic)


if __name__ == "__main__":
    main()
