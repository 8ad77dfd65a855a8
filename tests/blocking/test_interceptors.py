"""Interceptors of blocking clients on a real cluster: on the caller's and the handler's threads."""

import contextvars
import threading
from collections.abc import Callable

import pocketmq as mq
from pocketmq import Cluster, HandlerCall, Message, SendCall, SendKind, TransactionState

WAIT = 20.0
user = contextvars.ContextVar("user", default="a handler")


class Stamping:
    """Stamps messages with the caller's context, and remembers threads and ends."""

    def __init__(self) -> None:
        self.threads: list[int] = []
        self.ended: list[SendCall] = []
        self.all_ended = threading.Semaphore(0)

    def __call__(self, call: SendCall) -> Callable[[SendCall], object]:
        self.threads.append(threading.get_ident())
        for at in range(len(call.messages)):
            call.add_properties({"user": user.get(), "kind": call.kind.value}, at)
        return self.end

    def end(self, call: SendCall) -> None:
        self.ended.append(call)
        self.all_ended.release()


def test_every_way_to_send_carries_the_callers_context(cluster: Cluster, topic: str) -> None:
    stamping, handled, calls = Stamping(), list[tuple[str, str]](), list[tuple[int, int]]()
    replier = mq.Producer(
        cluster.address, group="replier", interceptors=[stamping], send_timeout=30.0
    )
    arrived = threading.Semaphore(0)

    def around(call: HandlerCall) -> Callable[[HandlerCall], object]:
        assert (call.group, call.topic) == ("billing", topic)
        began = threading.get_ident()
        return lambda call: calls.append((began, threading.get_ident()))

    def handle(message: mq.ReceivedMessage) -> None:
        handled.append((message.properties["user"], message.properties["kind"]))
        if message.properties["kind"] == "request":
            replier.reply(message, b"yes")
        arrived.release()

    consumer = mq.PushConsumer(
        cluster.address, group="billing", consume_from="first", profile="4.x", interceptors=[around]
    )
    consumer.subscribe(topic, "*", handle)
    user.set("ada")
    message = Message(topic, b"42 EUR")
    with replier, consumer, mq.Producer(
        cluster.address, group="shop", interceptors=[stamping], send_timeout=30.0
    ) as producer:  # fmt: skip
        sent = [producer.send(message), producer.submit(message).result(WAIT)]
        producer.send_oneway(message)
        sent.append(producer.send_batch([message, message]))
        sent.append(producer.send_in_transaction(message, lambda *_: TransactionState.COMMIT))
        reply = producer.request(message, WAIT)
        assert (reply.body, reply.properties["kind"]) == (b"yes", "reply")
        for _ in range(7):
            assert stamping.all_ended.acquire(timeout=WAIT)
            assert arrived.acquire(timeout=WAIT)
    kinds = ["send", "submit", "send_oneway", "send_batch", "send_batch", "send_in_transaction"]
    assert sorted(handled) == sorted(("ada", kind) for kind in [*kinds, "request"])
    assert len(calls) == 7
    assert all(began == ended for began, ended in calls)
    ended = [call.kind for call in stamping.ended]
    assert sorted(ended, key=lambda kind: kind.value) == sorted(SendKind, key=lambda k: k.value)
    assert all(call.error is None for call in stamping.ended)
    receipts = [receipt for call in stamping.ended for receipt in call.receipts]
    assert {receipt.message_id for receipt in sent} <= {each.message_id for each in receipts}
    mine = threading.get_ident()
    assert stamping.threads.count(mine) == 6, "all but the reply, which a handler's thread sends"
