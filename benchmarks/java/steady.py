"""Ask a broker the same again and again, until it answers no faster.

The code of a Java broker is compiled while it runs: its first thousands of requests of a kind are
several times as slow as later ones, and would show as pauses of the first groups that change.
"""

import json
import time
from statistics import median

from benchmarks.broker import QUEUES, Client
from benchmarks.java.pairs import Warmth
from pocketmq.protocol import Command, RequestCode
from pocketmq.protocol.requests.sending import SendRequestV2

STEADY_TOPIC = "steady"
ASKED = 500
"""Requests of a kind in a round."""
SYSTEM_BUSY = 2
"""What a broker answers that is too slow for its queue of sends, as a cold one may be."""
PATIENCE = 4
"""Rounds without progress: compilation goes in steps."""


def lock_frames() -> list[bytes]:
    """Return requests that lock all queues, and unlock them."""
    queues = [
        {"topic": STEADY_TOPIC, "brokerName": "broker-0", "queueId": number}
        for number in range(QUEUES)
    ]
    body = {"consumerGroup": "steady", "clientId": "steady", "mqSet": queues}
    data = json.dumps(body).encode()
    codes = (RequestCode.LOCK_BATCH_MQ, RequestCode.UNLOCK_BATCH_MQ)
    return [Command.request(int(code), 1, None, data).encode() for code in codes]


def send_frame() -> bytes:
    """Return a request that stores a message."""
    header = SendRequestV2(
        producer_group="steady",
        topic=STEADY_TOPIC,
        default_topic="TBW102",
        default_topic_queue_nums=QUEUES,
        queue_id=0,
        sys_flag=0,
        born_timestamp=int(time.time() * 1000),
        flag=0,
        properties="",
    )
    return Command.request(int(RequestCode.SEND_MESSAGE_V2), 1, header, b"x" * 100).encode()


def until_steady(port: int, seconds: float) -> list[tuple[float, float]]:
    """Lock and send in turns until both get no faster, or the time is over.

    Returns the median seconds of a lock and of a send in each round.
    """
    lock, unlock = lock_frames()
    kinds = {"lock": [lock, unlock], "send": [send_frame()]}
    warmth = {kind: Warmth(PATIENCE) for kind in kinds}
    rounds: list[tuple[float, float]] = []
    client, deadline = Client(port), time.monotonic() + seconds
    try:
        while not rounds or (
            time.monotonic() < deadline and not all(each.reached for each in warmth.values())
        ):
            found = {kind: _median_time(client, frames) for kind, frames in kinds.items()}
            for kind, taken in found.items():
                warmth[kind].add(1 / taken)
            rounds.append((found["lock"], found["send"]))
    finally:
        client.socket.close()
    return rounds


def _median_time(client: Client, frames: list[bytes]) -> float:
    taken = []
    for _ in range(ASKED // len(frames)):
        for frame in frames:
            started = time.perf_counter()
            answer = client.ask(frame)
            taken.append(time.perf_counter() - started)
            assert answer.code in (0, SYSTEM_BUSY), answer.remark
    return median(taken)
