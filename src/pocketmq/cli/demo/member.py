"""One consumer of the demo, in a process of its own.

Reports to the play as JSON lists: its queues with their stages whenever they change (`["holds",
{"broker-0:1": "running", …}]`) and the messages it received (`["got", time, broker, queue,
[[offset, number, stored], …]]`). Publishes its rebalances to a topic. Leaves the group when the
play says anything, or is gone.
"""

import os
import threading
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection

import msgspec

from pocketmq import V5, ClientOptions, PushConsumer, ReceivedMessage

TOPIC, EVENTS = "orders", "rebalances"
HOST = "demo"
"""What all client ids begin with: an address tells which members have one clock."""
QUICK = msgspec.structs.replace(V5, rebalance_on_route_change=True, rebalance_interval=5.0)
"""Java's behaviour with short intervals, so that a viewer need not wait half a minute."""

PERSIST_INTERVAL = 1.0
"""Seconds between two commits with Java's strategies."""
COMMIT_INTERVAL = 0.1
"""The same with STICKY."""
HANDLER_TIME = 0.02
"""Seconds that a handler works: so messages are in flight whenever queues move."""
_LOOK = 0.05


def quick_options(name: str) -> ClientOptions:
    """Return the options of a client that reacts within seconds."""
    return ClientOptions(
        client_ip=HOST,
        instance_name=name,
        profile=QUICK,
        route_interval=1.0,
        heartbeat_interval=2.0,
        persist_interval=PERSIST_INTERVAL,
        persist_first_after=1.0,
        request_timeout=10.0,  # a busy machine is no reason to close a connection
        start_wait=30.0,
    )


def run_member(play: Connection, address: str, name: str, group: str, strategy: str) -> None:
    """Consume until the play says something, or is gone."""
    os.setsid()  # Ctrl-C is for the play, which makes its members leave
    encode, lock = msgspec.json.Encoder().encode, threading.Lock()

    def report(line: list[object]) -> None:
        encoded = encode(line)
        with lock:
            play.send_bytes(encoded)

    def handle(messages: Sequence[ReceivedMessage]) -> None:
        now, first = time.time(), messages[0]  # all are of one queue
        given = [[m.queue_offset, int(m.keys[0]), m.store_timestamp] for m in messages]
        report(["got", now, first.broker_name, first.queue_id, given])
        time.sleep(HANDLER_TIME)

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
    consumer.subscribe(TOPIC, "*", handle, batch=True)
    reported: dict[str, str] | None = None
    with consumer:
        consumer.publish_history(EVENTS)
        while not play.poll(_LOOK):
            stages = _stages(consumer)
            if stages != reported:
                report(["holds", stages])
                reported = stages


def _stages(consumer: PushConsumer) -> dict[str, str]:
    return {
        f"{queue.broker_name}:{queue.queue_id}": stage.value
        for queue, stage in consumer.balance.stages.items()
        if queue.topic == TOPIC
    }
