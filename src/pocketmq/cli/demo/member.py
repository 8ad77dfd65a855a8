"""One consumer of the demo, in a process of its own.

    python -m pocketmq.cli.demo.member NAME_SERVER NAME GROUP TOPIC EVENTS_TOPIC

Prints on stdout, one JSON list per line, the queues assigned to it (`["holds", ["broker-0:1", …]]`)
and the messages it received (`["got", time, broker, queue, [[offset, number], …]]`). Publishes its
rebalances to a topic. Leaves the group when its standard input ends.
"""

import json
import sys
import threading
import time
from collections.abc import Sequence

import msgspec

from pocketmq import V5, ClientOptions, PushConsumer, ReceivedMessage

QUICK = msgspec.structs.replace(V5, rebalance_on_route_change=True, rebalance_interval=5.0)
"""Java's behaviour with short intervals, so that a viewer need not wait half a minute."""

_lock = threading.Lock()


def quick_options(name: str) -> ClientOptions:
    """Return the options of a client that reacts within seconds."""
    return ClientOptions(
        client_ip=name,
        instance_name="demo",
        profile=QUICK,
        route_interval=1.0,
        heartbeat_interval=2.0,
        persist_interval=1.0,
        persist_first_after=1.0,
        start_wait=10.0,
    )


def _report(line: list[object]) -> None:
    text = json.dumps(line)
    with _lock:
        print(text, flush=True)


def main() -> None:
    """Consume until standard input ends."""
    address, name, group, topic, events = sys.argv[1:]
    consumer = PushConsumer(
        address,
        group=group,
        options=quick_options(name),
        consume_from="first",
        handler_batch=32,
        threads=8,
        stop_wait=5.0,
    )

    def handle(messages: Sequence[ReceivedMessage]) -> None:
        first = messages[0]  # all are of one queue
        given = [[message.queue_offset, int(message.keys[0])] for message in messages]
        _report(["got", time.time(), first.broker_name, first.queue_id, given])

    def changed(_: object) -> None:
        held = consumer.assignment().get(topic, ()) if consumer.running else ()
        _report(["holds", [f"{queue.broker_name}:{queue.queue_id}" for queue in held]])

    consumer.subscribe(topic, "*", handle, batch=True)
    consumer.on_assigned(changed)
    consumer.on_revoked(changed)
    with consumer:
        consumer.publish_history(events)
        changed(None)
        sys.stdin.read()


if __name__ == "__main__":
    main()
