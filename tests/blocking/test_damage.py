"""Damaged records on the way to consumers: passed over with one error, all others arrive."""

import threading
from collections.abc import Iterator

import pytest

import pocketmq as mq
from pocketmq import Cluster, Message, MessageQueue
from pocketmq.errors import MessagesCutShort
from pocketmq.model import MessageModel
from tests.client.group.groups import BRISK
from tests.damaged_wire import BODY, SIZE, damaging
from tests.server_process import wait_for

BODIES = [b"%03d" % n for n in range(40)]
BAD = {0: BODY, 7: SIZE, 8: BODY, 20: SIZE, 21: SIZE, 39: BODY}
SOUND = [body for n, body in enumerate(BODIES) if n not in BAD]


@pytest.fixture(scope="module")
def whole() -> threading.Event:
    return threading.Event()


@pytest.fixture(scope="module")
def names(whole: threading.Event) -> Iterator[str]:
    """A cluster with a topic of one queue, in which some messages are damaged."""
    with Cluster() as cluster:
        cluster.create_topic("orders", queues=1)
        with mq.Producer(cluster.address, group="shop", send_timeout=30.0) as producer:
            for n, body in enumerate(BODIES):
                text = BAD.get(n, b"") + body
                producer.send(Message("orders", text, tag=f"tag{n % 2}", keys=[f"k{n}"]))
        with damaging(cluster, whole=whole) as address:
            yield address


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelname == "ERROR"]


def poll(consumer: mq.PullConsumer, got: list[bytes]) -> int:
    """Add what is there to `got`, and tell how many these are."""
    got.extend(message.body for message in consumer.poll(0.1))
    return len(got)


def skipped(caplog: pytest.LogCaptureFixture) -> list[int]:
    """Offsets that errors name as skipped, each as often as it is named."""
    start = "damaged message skipped: topic=orders queue=broker-0:0 offset="
    told = errors(caplog)
    assert all(text.startswith(start) for text in told), told
    return [int(text.removeprefix(start).split()[0]) for text in told]


@pytest.mark.parametrize("model", [MessageModel.CLUSTERING, MessageModel.BROADCASTING])
@pytest.mark.parametrize("orderly", [False, True], ids=["concurrent", "orderly"])
def test_a_push_consumer_gets_all_but_the_damaged_messages(
    names: str,
    model: MessageModel,
    orderly: bool,
    caplog: pytest.LogCaptureFixture,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    got: list[bytes] = []
    directory = str(tmp_path_factory.mktemp("offsets"))
    with mq.PushConsumer(
        names, group=f"push-{model.value}-{orderly}", consume_from="first", orderly=orderly,
        model=model, offsets_dir=directory, threads=1, profile=BRISK,
    ) as consumer:  # fmt: skip
        consumer.subscribe("orders", "*", lambda message: got.append(message.body))
        wait_for(lambda: len(got) == len(SOUND) and len(errors(caplog)) == len(BAD), "all")
    assert sorted(got) == SOUND
    assert skipped(caplog) == list(BAD)


def test_a_pull_consumer_gets_all_but_the_damaged_messages(
    names: str, caplog: pytest.LogCaptureFixture
) -> None:
    got: list[bytes] = []
    with mq.PullConsumer(names, group="pull", consume_from="first", profile=BRISK) as consumer:
        consumer.subscribe("orders")
        wait_for(lambda: poll(consumer, got) >= len(SOUND), "all")
        wait_for(lambda: len(errors(caplog)) == len(BAD), "the last one is passed over")
    assert got == SOUND
    assert skipped(caplog) == list(BAD)


def test_a_pull_consumer_with_a_filter_passes_over_damage_too(
    names: str, caplog: pytest.LogCaptureFixture
) -> None:
    odd, got = [n for n in BAD if n % 2], list[bytes]()
    sound = [body for n, body in enumerate(BODIES) if n % 2 and n not in BAD]
    with mq.PullConsumer(names, group="filter", consume_from="first", profile=BRISK) as consumer:
        consumer.subscribe("orders", "tag1")
        wait_for(lambda: poll(consumer, got) >= len(sound), "all")
        wait_for(lambda: len(errors(caplog)) == len(odd), "the last one is passed over")
    assert got == sound
    assert skipped(caplog) == odd


def test_a_pop_consumer_gets_all_but_the_damaged_messages(
    names: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Behind a record whose size is damaged an answer is lost; what it held comes again later."""
    got: set[bytes] = set()
    with mq.PopConsumer(
        names, group="pop", consume_from="first", max_messages=1, invisible=30.0
    ) as consumer:
        consumer.subscribe("orders")

        def receive() -> bool:
            for message in consumer.receive(timeout=0.2):
                got.add(message.body)
                consumer.ack(message)
            return len(got) >= len(SOUND)

        wait_for(receive, "all sound messages")
    assert sorted(got) == SOUND
    told = errors(caplog)
    bodies = [n for n, kind in BAD.items() if kind == BODY and n != 39]
    start = "damaged message skipped: topic=orders "
    named = [text for text in told if text.startswith(f"{start}queue=")]
    assert [int(text.split("offset=")[1].split()[0]) for text in named[: len(bodies)]] == bodies
    assert any(text.startswith(f"{start}broker=") for text in told)


def test_a_consumer_told_to_stop_holds_the_queue_until_the_damage_is_gone(
    names: str, whole: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    got: list[bytes] = []
    with mq.PushConsumer(
        names, group="stop", consume_from="first", damaged="stop", pull_retry=0.05
    ) as consumer:
        consumer.subscribe("orders", "*", lambda message: got.append(message.body))
        wait_for(lambda: errors(caplog), "the error")
        assert got == []
        try:
            whole.set()
            wait_for(lambda: len(got) == len(BODIES), "all of them")
        finally:
            whole.clear()
    (told,) = errors(caplog)
    assert told.startswith(
        "damaged message stops its queue: topic=orders queue=broker-0:0 offset=0"
    )


def test_tools_show_what_is_sound_and_name_what_is_not(
    names: str, caplog: pytest.LogCaptureFixture
) -> None:
    queue = MessageQueue("orders", "broker-0", 0)
    with mq.Admin(names) as admin:
        found, at = [], 0
        while at < len(BODIES):
            page = admin.messages.page(queue, at)
            found += [message.body for message in page.messages]
            assert page.next_offset > at
            at = page.next_offset
        assert found == SOUND
        assert skipped(caplog) == list(BAD)
        assert admin.messages.by_offset(queue, 1).body == b"001"
        assert [each.body for each in admin.messages.by_key("orders", "k9").messages] == [b"009"]
        assert admin.messages.by_key("orders", "k8").messages == []
        assert "damaged message skipped: topic=orders broker=broker-0" in errors(caplog)[-1]
        for offset, kind in ((8, "does not match its checksum"), (7, "a body of")):
            with pytest.raises(MessagesCutShort, match=kind):
                admin.messages.by_offset(queue, offset)
