"""What a new user tries, mistakes included: each is told in one sentence, where it is made."""

import inspect
import threading
from collections.abc import Callable
from typing import Any, cast

import pytest

import pocketmq as mq
from pocketmq import Cluster, aio
from pocketmq.errors import ClientClosed, InvalidInput

CLIENTS = ["PopConsumer", "Producer", "PullConsumer", "PushConsumer"]
Attempt = Callable[[], object]


def told(attempt: Attempt) -> str:
    with pytest.raises(InvalidInput) as caught:
        attempt()
    return str(caught.value)


def test_a_send_names_what_is_of_the_wrong_kind(cluster: Cluster, topic: str) -> None:
    message = mq.Message(topic, b"x")
    with mq.Producer(cluster.address, group="mistakes") as producer:
        send = cast("Any", producer.send)
        attempts: dict[Attempt, str] = {
            lambda: send("hello"): "a message must be a Message with a topic, not str",
            lambda: send(message, delay="3"): "delay must be in seconds, not '3'",
            lambda: send(
                message, delay_level="3"
            ): "a delay level must be 0 (none), 1, 2, …, not '3'",
            lambda: send(message, timeout="1"): "timeout must be in seconds, up to 604800, not '1'",
            lambda: send(
                message, timeout=True
            ): "timeout must be in seconds, up to 604800, not True",
            lambda: send(
                message, selector=5
            ): "selector must be a function of queues and a message, not 5",
            lambda: producer.send_in_transaction(
                message, cast("Any", 5)
            ): "local must be a function of a message and a transaction id, not 5",
            lambda: producer.add_send_hook(
                cast("Any", 5)
            ): "a hook must have the methods before_send and after_send; 5 does not",
        }
        for attempt, expected in attempts.items():
            assert told(attempt) == expected
    assert told(lambda: mq.Producer("a:1", group="g", check=cast("Any", 5))) == (
        "check must be a function of a half message, not 5"
    )


def test_a_message_names_what_is_of_the_wrong_kind() -> None:
    message = cast("Any", mq.Message)
    assert told(lambda: message("a", b"x", tag=5)) == "a tag must be one string, not 5"
    assert "keys=['A17']" in told(lambda: message("a", b"x", keys=5))
    assert "{'region': 'eu'}" in told(lambda: message("a", b"x", properties=["eu"]))


def test_a_handler_in_the_place_of_the_expression_is_recognised() -> None:
    consumer = mq.PushConsumer("127.0.0.1:9876", group="mistakes")
    for attempt in (
        lambda: consumer.subscribe("orders", cast("Any", print)),
        lambda: consumer.subscribe("orders"),
    ):
        expected = "topic 'orders' needs a handler: subscribe(topic, '*', handler)"
        assert told(attempt) == expected
    assert told(lambda: consumer.subscribe("orders", "*", cast("Any", lambda: None))).startswith(
        "a handler must take one argument, the message or messages; "
    )
    pull = mq.PullConsumer("127.0.0.1:9876", group="mistakes")
    assert "text such as 'paid || refunded', or a Filter" in told(
        lambda: pull.subscribe("orders", cast("Any", print))
    )
    assert "it must be a string" in told(lambda: consumer.subscribe(cast("Any", 5), "*", print))
    assert "before_consume" in told(lambda: consumer.add_consume_hook(cast("Any", 5)))


def test_pull_and_pop_consumers_name_mistakes(cluster: Cluster, topic: str) -> None:
    with mq.PullConsumer(cluster.address, group="mistakes") as pull:
        assert "as queues() returns them, not 'a'" in told(lambda: pull.assign(cast("Any", ["a"])))
        assert "timeout must be in seconds" in told(lambda: pull.poll(cast("Any", "5")))
    with mq.PopConsumer(cluster.address, group="mistakes") as pop:
        assert told(pop.receive) == "no topic is subscribed; call subscribe() first"
        assert told(lambda: pop.receive(topic="b")) == (
            "'b' is not subscribed; call subscribe() first"
        )
        expected = "the message was not received by a POP consumer"
        assert told(lambda: pop.ack(cast("Any", 5))) == expected
        assert told(lambda: pop.ack(cast("Any", [mq.Message(topic, b"x")]))) == expected


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_shows_its_group_its_id_and_its_state(cluster: Cluster, name: str) -> None:
    client = getattr(mq, name)(cluster.address, group="shown", instance_name="me", client_ip="::1")
    assert repr(client) == f"<{name} of group 'shown', not started>"
    with client:
        assert repr(client).startswith(f"<{name} of group 'shown', client ::1@me")
        assert repr(client).endswith(", running>")
    assert repr(client).endswith(", closed>")


@pytest.mark.parametrize("module", [mq, aio], ids=["blocking", "asyncio"])
def test_subscribe_gives_the_consumer_to_go_on_with(module: Any) -> None:
    for kind, handler in ((module.PushConsumer, (print,)), (module.PullConsumer, ()),
                          (module.PopConsumer, ())):  # fmt: skip
        consumer = kind("127.0.0.1:9876", group="chained")
        assert consumer.subscribe("orders", "*", *handler) is consumer


def test_whoever_uses_a_client_too_early_learns_how_it_is_used() -> None:
    with pytest.raises(ClientClosed, match="consumer of group early is not running; use it inside"):
        mq.PullConsumer("127.0.0.1:9876", group="early").poll()


def test_dir_shows_what_is_public_and_nothing_else() -> None:
    for module in (mq, aio):
        assert dir(module) == sorted(module.__all__)
        assert not [name for name in dir(module) if name.startswith("_") and name[:2] != "__"]
    assert {"Consumed", "ConsumeContext", "ConsumeHook", "RetryLater"} <= set(dir(mq))


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize("module", [mq, aio], ids=["blocking", "asyncio"])
def test_help_says_something_of_every_method(module: Any, name: str) -> None:
    cls = getattr(module, name)
    for method in dir(cls):
        if not method.startswith("_"):
            assert inspect.getdoc(getattr(cls, method)), f"{name}.{method}"
    assert inspect.getdoc(cls)


@pytest.mark.parametrize("name", CLIENTS)
def test_help_of_a_blocking_method_says_all_that_asyncios_does(name: str) -> None:
    for method in ("start", "close", "send", "subscribe", "poll", "receive", "commit"):
        blocking, other = getattr(getattr(mq, name), method, None), getattr(aio, name)
        if blocking is not None:
            text = inspect.getdoc(getattr(other, method)) or ""
            raises = [word for word in text.replace("(", " ").split() if word[:1] == "`"]
            own = inspect.getdoc(blocking) or ""
            assert [word for word in raises if word.rstrip(".,;") not in own] == [], method


class Counting:
    """A hook."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int, bool]] = []

    def before_consume(self, context: mq.ConsumeContext) -> None:
        context.notes["size"] = len(context.messages)

    def after_consume(self, context: mq.ConsumeContext) -> None:
        self.seen.append((context.group, context.notes["size"], context.success))


def test_consume_hooks_are_told_before_and_after_the_start(cluster: Cluster, topic: str) -> None:
    """The end of `with` lets the call and its hooks finish."""
    early, late = Counting(), Counting()
    got: list[bytes] = []
    arrived = threading.Event()

    def handle(message: mq.ReceivedMessage) -> None:
        got.append(message.body)
        arrived.set()

    with mq.Producer(cluster.address, group="hooks", send_timeout=30.0) as producer:
        producer.send(mq.Message(topic, b"one"))
    consumer = mq.PushConsumer(cluster.address, group="hooks", consume_from="first")
    consumer.add_consume_hook(early)
    consumer.subscribe(topic, "*", handle)
    with consumer:
        consumer.add_consume_hook(late)
        assert arrived.wait(60)
    assert got == [b"one"]
    assert early.seen == late.seen == [("hooks", 1, True)]
