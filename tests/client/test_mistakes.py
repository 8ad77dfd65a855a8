"""What people do wrong in their first hours, and the exact words they are answered with.

Each mistake is a typed error on one line, with what is allowed or what to do instead; nothing is
sent. Mistakes that are none for certain are one warning in the log: `test_silences.py`.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import pocketmq as mq
from pocketmq import errors

A = "127.0.0.1:9876"
WEEK = "from 0.001 to 604800"
REFUSED = "is not running; use it inside `with`, or between start() and close(). A closed client "
NOT_RUNNING = REFUSED + "cannot be restarted: create a new one"
ALLOWED = "allowed are letters, digits and % | _ -"
RESERVED = "it is reserved by RocketMQ; choose another name"


def producer(*address: Any, **settings: Any) -> object:
    return mq.Producer(*(address or (A,)), **{"group": "shop", **settings})


def push(**settings: Any) -> Any:
    return mq.PushConsumer(A, **{"group": "billing", **settings})


def message(body: Any = b"42 EUR", topic: Any = "orders", **more: Any) -> mq.Message:
    return mq.Message(topic, body, **more)


def select(expression: Any) -> object:
    return mq.PullConsumer(A, group="audit").subscribe("orders", expression)


def two_arguments(message: object, context: object) -> None:
    """A handler as other libraries have it."""


def pointed(expression: str, column: int, reason: str) -> str:
    start = f"invalid filter expression, column {column}: {reason}"
    return f"{start}\n  {expression}\n  {' ' * (column - 1)}^"


def like_sql(text: str, column: int) -> str:
    reason = f"text selects tags, and this reads like SQL92; write by_sql({text!r}), "
    return pointed(text, column, f"{reason}or by_tags({text!r}) if that is one tag")


def not_separated(text: str, column: int, by: str) -> str:
    reason = f"{by!r} does not separate tags; write 'paid || refunded', "
    return pointed(text, column, f"{reason}or by_tags({text!r}) if that is one tag")


Mistake = tuple[Callable[[], object], type[errors.MQError], str]
INVALID = errors.InvalidInput

MADE: dict[str, Mistake] = {
    # name servers
    "a list of name servers": (lambda: producer([A]), INVALID,
        f"name servers must be text such as 'host1:9876;host2:9876', not ['{A}']"),
    "no name servers": (lambda: producer(None), INVALID,
        "name servers must be text such as 'host1:9876;host2:9876', not None"),
    "a port is missing": (lambda: producer("localhost"), INVALID,
        "'localhost' is not an address; write it as host:port"),
    "a URL": (lambda: producer("http://a:9876"), INVALID,
        "'http://a:9876' is not an address; write it as host:port"),
    "a port that none can be": (lambda: producer("a:98765"), INVALID,
        "'a:98765' is not an address; write it as host:port"),
    "IPv6 without brackets": (lambda: producer("::1:9876"), INVALID,
        "'::1:9876' is not an address; put IPv6 hosts in brackets, [::1]:9876"),
    "no address at all": (lambda: mq.Producer(group="shop").start(), errors.NameServersUnreachable,
        ("no name server address is configured; pass one, such as '127.0.0.1:9876', or set "
        "NAMESRV_ADDR")),
    "joined by a comma": (lambda: producer("a:9876,b:9876"), INVALID,
        "'a:9876,b:9876' is not an address; join several by ';': 'a:9876;b:9876'"),
    "joined by a comma and a blank": (lambda: producer("a:9876, b:9876"), INVALID,
        "'a:9876, b:9876' is not an address; join several by ';': 'a:9876;b:9876'"),
    "joined by a blank": (lambda: producer("a:9876 b:9876"), INVALID,
        "'a:9876 b:9876' is not an address; join several by ';': 'a:9876;b:9876'"),
    # options
    "options as a dict": (lambda: producer(options={}), INVALID,
        "options must be a ClientOptions, not a dict"),
    "an option misspelt": (lambda: producer(retrys=3), INVALID,
        "unknown setting 'retrys'; did you mean 'retries'?"),
    "an option by Java's name": (lambda: producer(sendMsgTimeout=3000), INVALID,
        "unknown setting 'sendMsgTimeout'; did you mean 'send_timeout'?"),
    "another one by Java's name": (lambda: push(consumeFromWhere="first"), INVALID,
        "unknown setting 'consumeFromWhere'; did you mean 'consume_from'?"),
    "an option of another client": (lambda: push(send_timeout=3.0), INVALID,
        "unknown setting 'send_timeout'; did you mean 'request_timeout'?"),
    "an empty group": (lambda: producer(group=""), errors.NameInvalid,
        "invalid group name '': it must not be empty"),
    "a blank in a group": (lambda: producer(group="my shop"), errors.NameInvalid,
        f"invalid group name 'my shop': {ALLOWED}"),
    "Java's default group": (lambda: producer(group="DEFAULT_PRODUCER"), errors.NameInvalid,
        f"invalid group name 'DEFAULT_PRODUCER': {RESERVED}"),
    "Java's default consumer group": (lambda: push(group="DEFAULT_CONSUMER"), errors.NameInvalid,
        f"invalid group name 'DEFAULT_CONSUMER': {RESERVED}"),
    "no group": (lambda: producer(group=None), INVALID, "group must be text, not None"),
    "a timeout as text": (lambda: producer(send_timeout="3"), INVALID,
        "send_timeout must be a number, not '3'"),
    "a negative timeout": (lambda: producer(send_timeout=-1), INVALID,
        f"send_timeout must be in seconds, {WEEK}, not -1"),
    "no time at all": (lambda: producer(send_timeout=0), INVALID,
        f"send_timeout must be in seconds, {WEEK}, not 0"),
    "an hour in milliseconds": (lambda: producer(send_timeout=3_600_000), INVALID,
        f"send_timeout must be in seconds, {WEEK}, not 3600000"),
    "linger in milliseconds": (lambda: producer(linger=5), INVALID,
        "linger must be in seconds, from 0 to less than 1, not 5; 5 ms are linger=0.005"),
    "half a retry": (lambda: producer(retries=1.5), INVALID, "retries must be a whole number, not 1.5"),
    "negative retries": (lambda: producer(retries=-1), INVALID,
        "retries must be from 0 to 1000, not -1"),
    "a codec that brokers lack": (lambda: producer(compression="gzip"), INVALID,
        "compression must be 'lz4', 'zstd' or 'zlib', not 'gzip'"),
    "a window without room": (lambda: producer(window=0), INVALID,
        "window must be from 1 to 1000000, not 0"),
    "a check that is no function": (lambda: producer(check=True), INVALID,
        "check must be a function of a half message, not True"),
    "credentials as a tuple": (lambda: producer(credentials=("me", "secret")), INVALID,
        "credentials must be a Credentials or None, not a tuple"),
    "TLS as a switch": (lambda: producer(tls=True), INVALID, "tls must be a Tls or None, not a bool"),
    "a version as a profile": (lambda: producer(profile="5"), INVALID,
        "profile must be '4.x' or '5.x', not '5'"),
    "an empty instance name": (lambda: producer(instance_name=""), INVALID,
        "instance_name is part of the client id: printable text, not ''"),
    "Kafka's word for the beginning": (lambda: push(consume_from="earliest"), INVALID,
        "consume_from must be 'first', 'last' or 'timestamp', not 'earliest'"),
    "a time to start from alone": (lambda: push(start_at=5.0), INVALID,
        "start_at needs consume_from='timestamp'"),
    "a time to start from in ms": (lambda: push(consume_from="timestamp", start_at=1.7e12), INVALID,
        "start_at must be in seconds since 1970, not 1700000000000.0"),
    "half a word": (lambda: push(model="broadcast"), INVALID,
        "model must be 'clustering' or 'broadcasting', not 'broadcast'"),
    "a strategy misspelt": (lambda: push(strategy="AVERAGE"), errors.StrategyUnknown,
        "unknown allocation strategy 'AVERAGE'; did you mean AVG?"),
    "threads as text": (lambda: push(threads="20"), INVALID, "threads must be a whole number, not '20'"),
    "no threads": (lambda: push(threads=0), INVALID, "threads must be from 1 to 1000, not 0"),
    "a switch as text": (lambda: push(orderly="yes"), INVALID,
        "orderly must be True or False, not 'yes'"),
    "limits as a number": (lambda: push(limits=5), INVALID, "limits must be a PullLimits, not an int"),
    "a hand-over of Java's": (lambda: push(handover="drain"), INVALID,
        ("handover='drain' needs strategy='STICKY'; with Java's strategies queues change hands "
        "as in Java")),
    "STICKY for all": (lambda: push(strategy="STICKY", model="broadcasting"), INVALID,
        "strategy='STICKY' needs model='clustering'; with 'broadcasting' every member has all queues"),
    # messages
    "a body of text": (lambda: message("42 EUR"), INVALID,
        "a message body must be bytes, not str; use text.encode() for text"),
    "no body": (lambda: message(None), INVALID,
        "a message body must be bytes, not NoneType; use text.encode() for text"),
    "one key as text": (lambda: message(keys="A17"), INVALID,
        "keys must be a sequence of strings, such as keys=['A17']"),
    "a blank in a key": (lambda: message(keys=["A 17"]), INVALID,
        "key 'A 17' must not be empty or contain white space, which separates keys"),
    "a number as key": (lambda: message(keys=[17]), INVALID,
        "key 17 must be a string, such as keys=['A17']"),
    "a number as property": (lambda: message(properties={"price": 42}), INVALID,
        "property 'price' must be a string, not 42; use str(...)"),
    "a property of RocketMQ's": (lambda: message(properties={"TAGS": "paid"}), INVALID,
        "property 'TAGS' is reserved by RocketMQ; choose another name"),
    "a blank property": (lambda: message(properties={"region": ""}), INVALID,
        "property 'region': name and value must not be blank"),
    "several tags": (lambda: message(tag=["paid", "eu"]), INVALID,
        "a tag must be one string, not ['paid', 'eu']"),
    "several tags in one": (lambda: message(tag="paid || eu"), INVALID,
        ("tag 'paid || eu' contains '||', which separates tags in subscriptions: no consumer could "
        "select it; a message has one tag")),
    # subscriptions
    "SQL as tags": (lambda: select("price > 10"), errors.FilterSyntaxError,
        like_sql("price > 10", 7)),
    "SQL with a text": (lambda: select("tag = 'paid'"), errors.FilterSyntaxError,
        like_sql("tag = 'paid'", 4)),
    "SQL with a keyword": (lambda: select("price BETWEEN 1 AND 5"), errors.FilterSyntaxError,
        like_sql("price BETWEEN 1 AND 5", 6)),
    "SQL about null": (lambda: select("price is not null"), errors.FilterSyntaxError,
        like_sql("price is not null", 6)),
    "a comma": (lambda: select("paid,refunded"), errors.FilterSyntaxError,
        not_separated("paid,refunded", 5, ",")),
    "a semicolon": (lambda: select("paid; refunded"), errors.FilterSyntaxError,
        not_separated("paid; refunded", 5, ";")),
    "one bar": (lambda: select("paid | refunded"), errors.FilterSyntaxError,
        not_separated("paid | refunded", 5, "|")),
    "OR": (lambda: select("paid OR refunded"), errors.FilterSyntaxError,
        not_separated("paid OR refunded", 5, "OR")),
    "everything and a tag": (lambda: select("paid || *"), errors.FilterSyntaxError,
        pointed("paid || *", 9, "'*' selects everything and cannot be combined with tags")),
    "a blank": (lambda: select("  "), errors.FilterSyntaxError,
        pointed("  ", 1, "there is no tag; write '*' to receive everything")),
    "separators alone": (lambda: select("||"), errors.FilterSyntaxError,
        pointed("||", 1, "separators without a tag; write '*' to receive everything")),
    "a list of tags": (lambda: select(["paid"]), INVALID,
        "an expression must be text such as 'paid || refunded', or a Filter, not ['paid']"),
    "tags as a list": (lambda: mq.by_tags(["paid", "refunded"]), INVALID,  # type: ignore[arg-type]
        "a tag must be text, as in by_tags('paid', 'refunded'), not ['paid', 'refunded']"),
    "SQL misspelt": (lambda: mq.by_sql("price >> 10"), errors.FilterSyntaxError,
        pointed("price >> 10", 8, "expected a property, a value or '(', found '>'")),
    "tags as SQL": (lambda: mq.by_sql("paid || refunded"), errors.FilterSyntaxError,
        pointed("paid || refunded", 6, "'|' is not allowed here")),
    "a number as SQL": (lambda: mq.by_sql(5), INVALID,  # type: ignore[arg-type]
        "an expression must be text, as in by_sql('price > 10'), not 5"),
    "a topic with a blank": (lambda: push().subscribe("my orders", "*", print), errors.NameInvalid,
        f"invalid topic name 'my orders': {ALLOWED}"),
    # handlers
    "no handler": (lambda: push().subscribe("orders"), INVALID,
        "topic 'orders' needs a handler: subscribe(topic, '*', handler)"),
    "a handler in the filter's place": (lambda: push().subscribe("orders", print), INVALID,
        "topic 'orders' needs a handler: subscribe(topic, '*', handler)"),
    "a handler's name": (lambda: push().subscribe("orders", "*", "print"), INVALID,
        "a handler must be a function that takes messages, not print"),
    "a handler of two arguments": (lambda: push().subscribe("orders", "*", two_arguments), INVALID,
        (f"a handler must take one argument, the message or messages; {two_arguments} does not: "
        "missing a required argument: 'context'")),
    "a delay level and a half": (lambda: mq.RetryLater(1.5), INVALID,  # type: ignore[arg-type]
        "a delay level and a count must be whole numbers: 1.5, 0"),
}  # fmt: skip


@pytest.mark.parametrize("what", MADE)
def test_a_mistake_is_refused_where_it_is_made(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    answered(*MADE[what])


class Desk:
    """Running clients of one cluster."""

    def __init__(self, cluster: mq.Cluster) -> None:
        cluster.create_topic("orders", queues=2)
        cluster.create_topic("refunds", queues=1)
        self.cluster = cluster
        self.at = cluster.address
        self.foreign = mq.MessageQueue("refunds", "broker-0", 0)
        self.producer = mq.Producer(self.at, group="shop", instance_name="desk").start()
        self.pull = mq.PullConsumer(self.at, group="audit").subscribe("orders").start()
        self.pop = mq.PopConsumer(self.at, group="stock").start()
        self.push = mq.PushConsumer(self.at, group="billing")
        self.push.subscribe("orders", "*", lambda message: None).start()
        self.closed = mq.Producer(self.at, group="closed").start()
        self.closed.close()

    def send(self, message: Any = None, **how: Any) -> object:
        return self.producer.send(mq.Message("orders", b"x") if message is None else message, **how)

    def close(self) -> None:
        for client in (self.producer, self.pull, self.pop, self.push):
            client.close()


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    with mq.Cluster() as cluster:
        made = Desk(cluster)
        yield made
        made.close()


Done = tuple[Callable[[Desk], object], type[errors.MQError], str]
FOREIGN = "MessageQueue(topic='refunds', broker_name='broker-0', queue_id=0)"

DONE: dict[str, Done] = {
    "sent before the start": (lambda d: mq.Producer(d.at, group="new").send(message()),
        errors.ClientClosed, f"producer of group new {NOT_RUNNING}"),
    "sent after the end": (lambda d: d.closed.send(message()), errors.ClientClosed,
        f"producer of group closed {NOT_RUNNING}"),
    "started again": (lambda d: d.closed.start(), errors.ClientClosed,
        f"producer of group closed {NOT_RUNNING}"),
    "text instead of a message": (lambda d: d.send("hello"), INVALID,
        "a message must be a Message with a topic, not str"),
    "an empty body": (lambda d: d.send(message(b"")), INVALID,
        "a message needs a body: brokers refuse empty ones"),
    "a body of five megabytes": (lambda d: d.send(message(bytes(5_000_000))), INVALID,
        "a body of 5000000 bytes is over the limit of 4194304 (max_message_size)"),
    "a topic that is none": (lambda d: d.send(message(topic="my orders")), errors.NameInvalid,
        f"invalid topic name 'my orders': {ALLOWED}"),
    "no topic": (lambda d: d.send(message(topic=None)), INVALID, "a topic must be text, not NoneType"),
    "a topic of RocketMQ's": (lambda d: d.send(message(topic="SCHEDULE_TOPIC_XXXX")), INVALID,
        "topic 'SCHEDULE_TOPIC_XXXX' is RocketMQ's own: no client may send to it"),
    "a flag as text": (lambda d: d.send(message(flag="1")), INVALID,
        "a message's flag must be a 32-bit number, not '1'"),
    "two delays": (lambda d: d.send(delay=1, delay_level=2), INVALID,
        "give one of delay, delay_level and deliver_at, not several"),
    "a delay into the past": (lambda d: d.send(delay=-1), INVALID, "delay must be in seconds, not -1"),
    "a time in milliseconds": (lambda d: d.send(deliver_at=1.8e12), INVALID,
        "deliver_at must be in seconds, not 1800000000000.0"),
    "a queue of another topic": (lambda d: d.send(queue=d.foreign), INVALID,
        "the message is for topic 'orders', but the queue belongs to 'refunds'"),
    "a queue that is not there": (lambda d: d.send(queue=mq.MessageQueue("orders", "broker-0", 9)),
        errors.QueueNotSelected,
        ("cannot select a queue of topic 'orders': MessageQueue(topic='orders', "
        "broker_name='broker-0', queue_id=9) is not a writable queue of the route")),
    "a queue's number": (lambda d: d.send(queue=1), INVALID,
        "queue must be a MessageQueue, such as queues() returns, not 1"),
    "a queue and a key": (lambda d: d.send(queue=d.foreign, ordering_key="c7"), INVALID,
        "give one of queue, ordering_key and selector, not several"),
    "a key that is a list": (lambda d: d.send(ordering_key=["c7"]), INVALID,
        "an ordering key must be str or int, not list"),
    "a selector of nothing": (lambda d: d.send(selector=lambda queues, message: None),
        errors.QueueNotSelected,
        ("cannot select a queue of topic 'orders': the selector returned NoneType, "
        "not a MessageQueue")),
    "a timeout of a send as text": (lambda d: d.send(timeout="3"), INVALID,
        "timeout must be in seconds, up to 604800, not '3'"),
    "an empty batch": (lambda d: d.producer.send_batch([]), INVALID,
        "a batch needs at least one message"),
    "a batch of one": (lambda d: d.producer.send_batch(message()), INVALID,  # type: ignore[call-overload]
        "a batch must be a list of Message"),
    "a batch for two topics": (
        lambda d: d.producer.send_batch([message(), message(topic="refunds")]), INVALID,
        "all messages of a batch need the same topic, not 'orders' and 'refunds'"),
    "a transaction without function": (
        lambda d: d.producer.send_in_transaction(message(), True), INVALID,  # type: ignore[arg-type]
        "local must be a function of a message and a transaction id, not True"),
    "a hook that is none": (lambda d: d.producer.add_send_hook(print), INVALID,  # type: ignore[arg-type]
        f"a hook must have the methods before_send and after_send; {print} does not"),
    "one group twice": (lambda d: mq.Producer(d.at, group="shop", instance_name="desk").start(),
        errors.GroupTaken, ("client '{ip}@desk' already has a producer in group 'shop'; close that "
        "one first, or use another group or instance name")),
    "one name with other options": (
        lambda d: mq.Producer(d.at, group="b", instance_name="desk", request_timeout=9).start(),
        INVALID, ("client '{ip}@desk' runs with other options (request_timeout); use the same ones, "
        "or another instance name")),
    "a broker's port": (lambda d: mq.Producer(d.cluster.brokers["broker-0"].address, group="b")
        .start(), errors.NotANameServer,
        ("{broker} refused GET_ROUTEINFO_BY_TOPIC: REQUEST_CODE_NOT_SUPPORTED (3),  request type 105 "
        "not supported; this is not a name server but probably a broker; name servers listen on "
        "port 9876")),
    "nothing listens": (lambda d: mq.Producer("127.0.0.1:1", group="b").start(),
        errors.NameServersUnreachable, ("no name server responds at 127.0.0.1:1: connection refused; "
        "no server listens there")),
    "polled before the start": (lambda d: mq.PullConsumer(d.at, group="b").poll(),
        errors.ClientClosed, f"consumer of group b {NOT_RUNNING}"),
    "polled for a negative time": (lambda d: d.pull.poll(-1), INVALID,
        "timeout must be in seconds, from 0 to 604800, not -1"),
    "no queues assigned": (lambda d: d.pull.assign([]), INVALID,
        "no queues given; pass some of queues(topic)"),
    "subscribed and assigned": (lambda d: d.pull.assign([d.foreign]), INVALID,
        "topics are subscribed; subscribe and assign exclude each other"),
    "sought in another's queue": (lambda d: d.pull.seek(d.foreign, 5), INVALID,
        (f"{FOREIGN} is not assigned to this consumer (now); see assignment(), and assign() for "
        "queues of your own choice")),
    "another push consumer's queue": (lambda d: d.push.seek(d.foreign, 5), INVALID,
        f"{FOREIGN} is not assigned to this consumer now"),
    "the queues of no topic": (lambda d: d.pull.queues("nope"), errors.RouteNotFound,
        "no route for topic 'nope'; create the topic, or check the name server address"),
    "received without subscription": (lambda d: d.pop.receive(), INVALID,
        "no topic is subscribed; call subscribe() first"),
    "received of another topic": (lambda d: d.pop.receive(topic="orders"), INVALID,
        "'orders' is not subscribed; call subscribe() first"),
    "a hundred at once": (lambda d: d.pop.receive(100), INVALID,
        "max_messages must be from 1 to 32, not 100"),
    "acknowledged what was not popped": (lambda d: d.pop.ack("x"), INVALID,  # type: ignore[arg-type]
        "the message was not received by a POP consumer"),
}  # fmt: skip


@pytest.mark.parametrize("what", DONE)
def test_a_mistake_is_answered_before_anything_is_sent(desk: Desk, what: str) -> None:
    mistake, kind, text = DONE[what]
    ip = repr(desk.producer).partition("client ")[2].partition("@")[0]
    text = text.replace("{ip}", ip).replace("{broker}", desk.cluster.brokers["broker-0"].address)
    answered(lambda: mistake(desk), kind, text)


def answered(mistake: Callable[[], object], kind: type[errors.MQError], text: str) -> None:
    with pytest.raises(errors.MQError) as caught:
        mistake()
    assert type(caught.value) is kind
    assert str(caught.value) == text
    if kind is not errors.FilterSyntaxError:  # which points at the column, on lines of its own
        assert "\n" not in text
    if issubclass(kind, errors.InvalidInput):
        assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    "text",
    ["", "*", "paid", "paid || refunded", "paid||refunded", " paid ", "in progress", "env=prod",
     "v1.2", "a-b_c", "äöü", "AND", "or", "not"],
)  # fmt: skip
def test_tags_that_may_be_meant_are_taken(text: str) -> None:
    select(text)


@pytest.mark.parametrize("tag", ["paid,refunded", "price > 10", "it's", "a | b", "x OR y"])
def test_any_tag_can_be_selected_by_its_name(desk: Desk, tag: str) -> None:
    """A producer, Java's too, may give a message any tag."""
    with mq.PullConsumer(desk.at, group="odd", consume_from="first") as consumer:
        consumer.subscribe("refunds", mq.by_tags(tag))
        desk.producer.send(mq.Message("refunds", tag.encode(), tag=tag))
        assert [each.body for each in consumer.poll(10)] == [tag.encode()]


def test_what_another_producer_tagged_with_bars_is_received_and_can_be_copied(desk: Desk) -> None:
    from pocketmq.model.message import CopiedMessage

    desk.cluster.create_topic("foreign", queues=1)
    desk.producer.send(CopiedMessage("foreign", b"x", tag="a || b"))
    with mq.PullConsumer(desk.at, group="all", consume_from="first") as consumer:
        (got,) = consumer.subscribe("foreign").poll(10)
        assert got.tag == "a || b"
    with mq.Admin(desk.at) as admin:
        (copied,) = admin.messages.resend([got])
    assert copied.error is None
