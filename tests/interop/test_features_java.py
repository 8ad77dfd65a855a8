"""What else our consumers and producers can do, on a Java broker: each once."""

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import pocketmq as mq
from pocketmq.model import MessageQueue
from pocketmq.protocol import ReceivedMessage
from tests.interop.java_broker import JavaBroker, java_brokers
from tests.interop.jvm import PATIENCE, Jars, wait_until
from tests.interop.rows import ROWS, Row

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]

LEVEL, DELAY = 2, 3.0
LEVELS = " ".join(["1s", f"{DELAY:g}s", *["40s"] * 16])
"""Another level than the one a test asks for shows: less, or far more."""


@pytest.fixture(scope="module")
def brokers(jars: Jars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaBroker]:
    home = tmp_path_factory.mktemp("java")
    settings = {"enablePropertyFilter": True, "messageDelayLevel": LEVELS}
    with java_brokers(jars, home, "java-0", **settings) as running:
        yield running


def filled(brokers: JavaBroker, topic: str, count: int = 10, queues: int = 1) -> list[bytes]:
    """Make a topic with messages: even and odd ones by tag, with their number as a property."""
    brokers.create_topic(topic, queues)
    bodies = [b"%d" % number for number in range(count)]
    with mq.Producer(brokers.address, group="senders") as producer:
        for number, body in enumerate(bodies):
            tag = "odd" if number % 2 else "even"
            message = mq.Message(topic, body, tag=tag, properties={"number": str(number)})
            queue = MessageQueue(topic, "java-0", number % queues)
            assert producer.send(message, queue=queue).ok
    return bodies


@pytest.mark.parametrize(
    ("name", "wanted", "numbers"),
    [
        ("tags", "odd", [1, 3, 5, 7, 9]),
        ("either", "odd || even", list(range(10))),
        ("sql", mq.by_sql("number > 6 AND TAGS = 'odd'"), [7, 9]),
    ],
)
def test_a_push_consumer_gets_what_it_selects(
    brokers: JavaBroker, name: str, wanted: str | mq.Filter, numbers: list[int]
) -> None:
    topic = f"selected-{name}"
    filled(brokers, topic)
    got: list[bytes] = []
    consumer = mq.PushConsumer(brokers.address, group=topic, consume_from="first")
    consumer.subscribe(topic, wanted, handler=lambda message: got.append(message.body))
    with consumer:
        wait_until(lambda: len(got) >= len(numbers), "what was selected")
        with mq.Producer(brokers.address, group="senders") as producer:  # behind all others
            last = mq.Message(topic, b"99", tag="odd", properties={"number": "99"})
            producer.send(last)
        wait_until(lambda: b"99" in got, "the last")
    assert sorted(map(int, got)) == [*numbers, 99]


def test_handlers_get_lists_and_finish_a_part_of_them(brokers: JavaBroker) -> None:
    """The rest of a list comes again through the retry topic, at the level that was asked for."""
    bodies = filled(brokers, "lists", 12)
    calls: list[list[tuple[bytes, int]]] = []
    times: dict[tuple[bytes, int], float] = {}

    def handle(messages: list[ReceivedMessage]) -> mq.RetryLater | None:
        for message in messages:
            times[message.body, message.reconsume_times] = time.monotonic()
        calls.append([(message.body, message.reconsume_times) for message in messages])
        if messages[0].reconsume_times == 0:
            return mq.RetryLater(delay_level=LEVEL, done=len(messages) - 1)
        return None

    consumer = mq.PushConsumer(
        brokers.address, group="lists", consume_from="first", handler_batch=4, threads=1
    )
    consumer.subscribe("lists", "*", handler=handle)
    with consumer:
        wait_until(
            lambda: {body for call in calls for body, tries in call if tries} == set(bodies[3::4]),
            "the last of each list to come again",
        )
    first = [call for call in calls if not call[0][1]]
    assert first == [[(body, 0) for body in bodies[at : at + 4]] for at in (0, 4, 8)]
    for body in bodies[3::4]:
        assert DELAY <= times[body, 1] - times[body, 0] < 30.0


def test_an_orderly_queue_rests_as_long_as_its_handler_says(brokers: JavaBroker) -> None:
    bodies = filled(brokers, "resting", 4)
    seen: list[bytes] = []
    times: list[float] = []

    def handle(message: ReceivedMessage) -> mq.RetryLater | None:
        times.append(time.monotonic())
        seen.append(message.body)
        return mq.RetryLater(wait=2.0) if seen == [b"0", b"1"] else None

    consumer = mq.PushConsumer(brokers.address, group="resting", consume_from="first", orderly=True)
    consumer.subscribe("resting", "*", handler=handle)
    with consumer:
        wait_until(lambda: len(seen) == 5, "all, and one twice")
    assert seen == [b"0", b"1", b"1", b"2", b"3"]
    assert set(bodies) == set(seen)
    assert times[2] - times[1] >= 2.0  # a second, if the handler does not say


def test_new_groups_start_where_they_say(jars: Jars, tmp_path: Path) -> None:
    """On a queue whose first message is gone: else Java's brokers let any new group start with it."""
    got: dict[str, list[bytes]] = {"first": [], "timestamp": [], "last": []}
    with ExitStack() as stack:
        address = aged(jars, tmp_path, stack)
        moment = time.time()  # seconds after 2: brokers of 4.x take the message that is nearest
        producer = stack.enter_context(mq.Producer(address, group="senders"))
        for number in (3, 4, 5):
            assert producer.send(mq.Message("aged", b"%d" % number)).ok
        for start, bodies in got.items():
            options: dict[str, Any] = {"consume_from": start, "threads": 1}
            if start == "timestamp":
                options["start_at"] = moment
            consumer = mq.PushConsumer(address, group=f"from-{start}", **options)
            consumer.subscribe("aged", "*", handler=_noting(bodies))
            stack.enter_context(consumer)
        wait_until(
            lambda: (
                producer.send(mq.Message("aged", b"new")).ok
                and all(b"new" in bodies for bodies in got.values())
            ),
            "messages that were sent when all had started",
        )
    old = {start: [int(body) for body in bodies if body != b"new"] for start, bodies in got.items()}
    assert old == {"first": [0, 1, 2, 3, 4, 5], "timestamp": [3, 4, 5], "last": []}


def _noting(bodies: list[bytes]) -> Callable[[ReceivedMessage], None]:
    return lambda message: bodies.append(message.body)


def aged(jars: Jars, home: Path, stack: ExitStack) -> str:
    """Start a broker that has lost its oldest file; give the name server's address.

    Its queue begins at 1, with messages 0 to 2.
    """
    cluster = Row(jars, home, stack, ROWS["java-java"], "java-0")
    for topic in ("aged", "filling"):
        cluster.create_topic(topic, 1)
    with mq.Producer(cluster.address, group="senders") as producer:
        producer.send(mq.Message("aged", b"gone"))
        for _ in range(5):  # files are of 16 MiB
            producer.send(mq.Message("filling", os.urandom(7 << 19)))
        for number in range(3):
            producer.send(mq.Message("aged", b"%d" % number))
    cluster.kill("java-0")
    log = home / "java-0" / "store" / "commitlog"
    (log / f"{0:020}").unlink()
    cluster.restart("java-0")
    with mq.Admin(cluster.address) as admin:
        (queue,) = admin.topics.status("aged").queues.values()
    assert (queue.min_offset, queue.max_offset) == (1, 4)
    return cluster.address


def test_a_push_consumer_is_paused_resumed_and_sought(brokers: JavaBroker) -> None:
    bodies = filled(brokers, "steered", 6)
    others = filled(brokers, "unsteered", 6)
    got: dict[str, list[bytes]] = {"steered": [], "unsteered": []}
    consumer = mq.PushConsumer(brokers.address, group="steered", consume_from="first", threads=1)
    for topic in got:
        consumer.subscribe(topic, handler=lambda message: got[message.topic].append(message.body))
    with consumer:
        consumer.pause("steered")  # before it has any queue
        wait_until(lambda: got["unsteered"] == others, "the topic that is not paused")
        assert got["steered"] == []
        consumer.resume("steered")
        wait_until(lambda: got["steered"] == bodies, "the topic that was paused")
        consumer.seek(MessageQueue("steered", "java-0", 0), 4)
        wait_until(lambda: got["steered"] == [*bodies, *bodies[4:]], "the last two again")


def test_queues_are_assigned_by_hand(brokers: JavaBroker) -> None:
    filled(brokers, "assigned", 9, queues=3)
    queues = [MessageQueue("assigned", "java-0", number) for number in (0, 2)]
    with mq.PullConsumer(brokers.address, group="assigned", consume_from="first") as consumer:
        consumer.assign(queues)
        for queue in queues:
            consumer.seek_to_begin(queue)
        got: list[ReceivedMessage] = []
        while len(got) < 6:
            found = consumer.poll(PATIENCE)
            assert found, "waited in vain"
            got += found
        assert {message.queue_id for message in got} == {0, 2}
        assert sorted(int(message.body) for message in got) == [0, 2, 3, 5, 6, 8]
        assert consumer.offset_for_time(queues[0], 0.0) == 0


def test_a_selector_chooses_the_queue(brokers: JavaBroker) -> None:
    brokers.create_topic("chosen", 4)

    def last(queues: Sequence[MessageQueue], _: mq.Message) -> MessageQueue:
        return queues[-1]

    with mq.Producer(brokers.address, group="senders") as producer:
        receipts = [producer.send(mq.Message("chosen", b"x"), selector=last) for _ in range(3)]
    assert [receipt.queue.queue_id for receipt in receipts] == [3, 3, 3]


def test_a_namespace_separates_consumers(brokers: JavaBroker) -> None:
    brokers.create_topic("prod%spaced", 1)
    filled(brokers, "spaced", 2)
    got: list[tuple[str, bytes]] = []
    consumer = mq.PushConsumer(
        brokers.address, group="spaced", consume_from="first", namespace="prod"
    )
    consumer.subscribe("spaced", "*", lambda message: got.append((message.topic, message.body)))
    with (
        consumer,
        mq.Producer(brokers.address, group="spacers", namespace="prod") as producer,
    ):
        assert producer.send(mq.Message("spaced", b"ours")).ok
        wait_until(lambda: got, "the message of the namespace")
    assert got == [("spaced", b"ours")]


class Notes:
    """A hook that notes what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def before_send(self, context: mq.SendContext) -> None:
        self.told.append(f"sending to {context.queue.broker_name}")

    def after_send(self, context: mq.SendContext) -> None:
        assert context.receipt is not None
        self.told.append(f"sent {context.receipt.status.name}")

    def before_consume(self, context: mq.ConsumeContext) -> None:
        self.told.append(f"consuming {len(context.messages)}")

    def after_consume(self, context: mq.ConsumeContext) -> None:
        self.told.append(f"consumed {context.success}")


def test_hooks_see_sends_and_handler_calls(brokers: JavaBroker) -> None:
    brokers.create_topic("watched", 1)
    notes, over = Notes(), threading.Event()
    consumer = mq.PushConsumer(brokers.address, group="watched", consume_from="first")
    consumer.add_consume_hook(notes)
    consumer.subscribe("watched", "*", handler=lambda _: over.set())
    with mq.Producer(brokers.address, group="senders") as producer:
        producer.add_send_hook(notes)
        producer.send(mq.Message("watched", b"x"))
        assert notes.told == ["sending to java-0", "sent SEND_OK"]
    with consumer:
        assert over.wait(PATIENCE)
    assert notes.told[2:] == ["consuming 1", "consumed True"]


@pytest.mark.line("5.x")  # brokers of 4.x know no POP
def test_what_is_popped_is_selected_by_sql(brokers: JavaBroker) -> None:
    filled(brokers, "popped-by-sql")
    wanted = mq.by_sql("number BETWEEN 3 AND 5")
    with mq.PopConsumer(brokers.address, group="sql-poppers", consume_from="first") as consumer:
        consumer.subscribe("popped-by-sql", wanted)
        got: list[int] = []
        while len(got) < 3:
            messages = consumer.receive(timeout=PATIENCE)
            assert messages, "waited in vain"
            got += [int(message.body) for message in messages]
            consumer.ack(messages)
    assert sorted(got) == [3, 4, 5]
