"""Blocking consumers with STICKY: threads begin calls at any time, and still nothing is twice."""

import threading
import time
from collections import Counter

import pytest

import pocketmq as mq
from pocketmq.model.group_balance import BalanceMode
from tests.server_process import wait_for


class Shop:
    """Members of a group whose handlers run in threads, and what they handled."""

    def __init__(self, address: str, **settings: object) -> None:
        self._address = address
        self._settings = settings
        self._lock = threading.Lock()
        self.seen: Counter[bytes] = Counter()

    def member(self, name: str) -> mq.PushConsumer:
        consumer = mq.PushConsumer(
            self._address,
            group="billing",
            instance_name=name,
            strategy="STICKY",
            settle=0.01,
            consume_from="first",
            request_timeout=30.0,
            threads=8,
            **self._settings,  # type: ignore[arg-type]
        )
        return consumer.subscribe("orders", "*", self._handle)

    def _handle(self, message: mq.ReceivedMessage) -> None:
        time.sleep(0.001)
        with self._lock:
            self.seen[message.body] += 1


@pytest.mark.parametrize("orderly", [False, True])
def test_nothing_is_handled_twice_while_queues_move_under_load(orderly: bool) -> None:
    with mq.Cluster(brokers=1) as cluster:
        cluster.create_topic("orders", 4)
        shop = Shop(cluster.address, orderly=orderly)
        bodies = [b"%d" % number for number in range(3000)]
        with (
            mq.Producer(cluster.address, group="shop", send_timeout=30.0) as producer,
            shop.member("a") as a,
        ):
            assert a.balance.mode is BalanceMode.STICKY
            producer.send_batch([mq.Message("orders", body) for body in bodies[:1000]])
            for name in ("b", "c"):
                with shop.member(name) as other:
                    wait_for(lambda: other.assignment()["orders"], "a share")
                    some = bodies[1000:2000] if name == "b" else bodies[2000:]
                    for start in range(0, 1000, 50):
                        batch = [mq.Message("orders", body) for body in some[start : start + 50]]
                        producer.send_batch(batch)
            wait_for(lambda: len(shop.seen) == len(bodies), "all messages")
        assert {body: count for body, count in shop.seen.items() if count > 1} == {}
