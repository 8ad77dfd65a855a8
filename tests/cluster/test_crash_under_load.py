"""A broker killed again and again while it takes messages loses none it acknowledged."""

import random
import threading
from itertools import count
from pathlib import Path

import pytest

from pocketmq.embedded import Cluster
from pocketmq.model import MessageQueue
from pocketmq.protocol import RequestCode
from pocketmq.protocol.requests.sending import SendResponse
from tests.cluster.raw import RawClient, everything_in, send_header

QUEUES = 4
WINDOW = 16
ROUNDS = 4
NUMBERS = count(1)


def send_until_it_breaks(
    address: str, lane: int, acknowledged: dict[str, tuple[int, int]], enough: threading.Event
) -> None:
    """Keep `WINDOW` sends in flight and note what is acknowledged, until the connection breaks."""
    sent: dict[int, tuple[str, int]] = {}
    try:
        with RawClient(address) as client:
            while True:
                while len(sent) < WINDOW:
                    number = next(NUMBERS)  # one that was not acknowledged may be stored, too
                    key = f"{lane}-{number}"
                    queue = MessageQueue("load", "broker-0", number % QUEUES)
                    header = send_header(queue, key)
                    sent[client.send(RequestCode.SEND_MESSAGE_V2, header, key.encode())] = (
                        key,
                        queue.queue_id,
                    )
                answer = client.receive()
                key, queue_id = sent.pop(answer.opaque)
                if answer.code == 0:
                    acknowledged[key] = (queue_id, answer.header(SendResponse).queue_offset)
                if len(acknowledged) % 500 == 499:
                    enough.set()
    except OSError:
        enough.set()


@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
def test_kill_9_under_load_loses_nothing_acknowledged(tmp_path: Path, flush: str) -> None:
    chance = random.Random(7)
    acknowledged: list[dict[str, tuple[int, int]]] = [{} for _ in range(3)]
    config = {"flushDiskType": flush}
    with Cluster(data=tmp_path, in_process=False, config=config) as cluster:
        cluster.create_topic("load", QUEUES)
        for _ in range(ROUNDS):
            address = cluster.brokers["broker-0"].address
            enough = threading.Event()
            threads = [
                threading.Thread(target=send_until_it_breaks, args=(address, lane, taken, enough))
                for lane, taken in enumerate(acknowledged)
            ]
            for thread in threads:
                thread.start()
            enough.wait(20)
            threading.Event().wait(chance.random() * 0.05)  # a random moment, not a wait for one
            cluster.kill("broker-0")
            for thread in threads:
                thread.join(20)
                assert not thread.is_alive()
            cluster.restart("broker-0")
        every = {key: place for taken in acknowledged for key, place in taken.items()}
        assert len(every) > 200
        found: dict[str, list[tuple[int, int]]] = {}
        with RawClient(cluster.brokers["broker-0"].address) as client:
            for queue_id in range(QUEUES):
                queue = MessageQueue("load", "broker-0", queue_id)
                messages = list(everything_in(client, queue))
                offsets = [message.queue_offset for message in messages]
                assert offsets == list(range(len(messages)))
                for message in messages:
                    place = (queue_id, message.queue_offset)
                    found.setdefault(message.body.decode(), []).append(place)
    wrong = {key: found.get(key) for key, place in every.items() if found.get(key) != [place]}
    assert wrong == {}
