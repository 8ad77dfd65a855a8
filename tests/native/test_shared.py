"""The core's places and receipts of batches that threads fill do as the pure ones do."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pocketmq import native
from pocketmq.balance.producer.plan import SendMode
from pocketmq.blocking.shared_futures import ThreadBatch
from pocketmq.blocking.submitting import SubmitWindow
from pocketmq.client.producer.lanes import Lane
from pocketmq.client.producer.shared_batches import LoopBatch
from pocketmq.client.producer.window import ByteBudget
from pocketmq.model import Message, MessageQueue, SendReceipt, SendStatus
from tests.native.both import core, outcome

PREFIX = "7F000001004D000000050001ABCD"
ID = f"{PREFIX}0000"


class Louder(Message, frozen=True):
    pass


bodies = st.binary(max_size=12)
messages = st.one_of(
    st.builds(Message, st.just("t"), bodies),
    st.builds(
        Message,
        st.just("t"),
        bodies,
        st.sampled_from([None, "", "tag"]),
        st.sampled_from([(), [], ("key",)]),
        st.sampled_from([{}, {"a": "b"}]),
        st.sampled_from([0, 7]),
        st.sampled_from([None, 0]),
    ),
    st.builds(Louder, st.just("t"), bodies),
    st.just("no message"),
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), messages, st.sampled_from([None, None, None, 3.0])),
        st.tuples(
            st.just("append"), st.builds(Message, st.just("t"), bodies), st.none() | st.just((b"entry", ID))
        ),
        st.tuples(st.just("grant"), st.integers(0, 3), st.integers(0, 300)),
        st.just(("reclaim",)),
    ),
    max_size=12,
)  # fmt: skip


class Story:
    """One kind of places, and a batch around them."""

    def __init__(self, kind: Any) -> None:
        window = SubmitWindow(10, ByteBudget(1000, 3.0))
        self.batch = ThreadBatch(window, "t", None, 0.0, 3.0)
        place: Any = core.Place if kind is core.OpenPlaces else native.pure["Place"]
        futures = type("Send", (place,), {})
        self.places = kind(self.batch, self.batch.messages, None, futures, 10, len(ID))

    def do(self, name: str, *args: Any) -> Any:
        done = outcome(getattr(self.places, name), *args)
        if name == "add" and done[0] == "returned" and done[1][1] is not None:
            _, at, receipt = done[1][1]._leave_place()
            return at, receipt
        return done

    def all(self, step: int) -> Any:
        return self.places.size, outcome(self.places.packed, PREFIX, step), self.batch.messages


@given(steps, st.sampled_from([0, 5, 65_534]))
def test_any_messages(story: Sequence[tuple[Any, ...]], first: int) -> None:
    mine, pure = Story(core.OpenPlaces), Story(native.pure["OpenPlaces"])
    for step in story:
        assert mine.do(*step) == pure.do(*step)
    assert mine.all(first) == pure.all(first)


def test_places_are_taken_until_they_are_used_up_or_reclaimed() -> None:
    for kind in (core.OpenPlaces, native.pure["OpenPlaces"]):
        story = Story(kind)
        plain = Message("t", b"body")
        assert story.places.add(plain, None) is None
        story.places.grant(2, 1000)
        assert story.places.add(plain, None) is not None
        assert story.places.reclaim() == (1, 1000 - story.places.size)
        assert story.places.add(plain, None) is None
        story.places.grant(2, story.places.size)
        assert [story.places.add(plain, None) is None for _ in range(2)] == [False, True]


def test_only_messages_with_nothing_but_a_body_of_the_right_size_take_granted_places() -> None:
    odd: list[Any] = [
        Message("t", b"x", "tag"),
        Message("t", b"x", keys=["key"]),
        Message("t", b"x", properties={"a": "b"}),
        Message("t", b"x", flag=7),
        Message("t", b"x", priority=0),
        Message("t", b""),
        Message("t", b"x" * 10),
        Louder("t", b"x"),
        "no message",
    ]
    for kind in (core.OpenPlaces, native.pure["OpenPlaces"]):
        places = Story(kind).places
        places.grant(100, 10_000)
        assert [places.add(each, None) for each in odd] == [None] * len(odd)
        assert places.add(Message("t", b"x"), 3.0) is None
        assert places.add(Message("t", b"x" * 9), None) is not None


def on_a_thread(call: Callable[[], Any]) -> Any:
    """Call a function where messages may be submitted: not where the submits were made."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(call()))
    thread.start()
    thread.join()
    (result,) = results
    return result


class Submits(Story):
    """One kind of submits, to a topic with an open batch and to one without."""

    def __init__(self, kind: Any) -> None:
        super().__init__(
            core.OpenPlaces if kind is core.PlainSubmits else native.pure["OpenPlaces"]
        )
        self.lanes = {topic: Lane(topic, SendMode.ASYNC, LoopBatch) for topic in ("t", "closed")}
        self.lanes["t"].places = self.places
        self.submits = kind(self.lanes)

    def add(self, *args: Any) -> Any:
        future = on_a_thread(lambda: self.submits.add(*args))
        return None if future is None else future._leave_place()[1:]


KINDS = (core.PlainSubmits, native.pure["PlainSubmits"])


@given(st.lists(messages, max_size=6), st.sampled_from([None, 3.0]), st.integers(0, 4))
def test_any_submits(given: Sequence[Any], timeout: float | None, places: int) -> None:
    def each(kind: Any) -> Any:
        story = Submits(kind)
        story.places.grant(places, 1000)
        return [outcome(story.add, message, timeout) for message in given], story.all(0)

    mine, pure = map(each, KINDS)
    assert mine == pure


def test_a_message_is_submitted_into_the_open_batch_of_its_topic() -> None:
    for kind in KINDS:
        story = Submits(kind)
        story.places.grant(9, 1000)
        for topic in ("closed", "unknown", ["unhashable"]):
            odd: Any = topic
            assert story.add(Message(odd, b"x"), None) is None
        assert story.add(Message("t", b"x"), None) == (0, None)
        assert story.add(Message("t", b"y"), None) == (1, None)
        assert [each.body for each in story.batch.messages] == [b"x", b"y"]


def test_nothing_is_submitted_on_the_loop_or_after_a_stop() -> None:
    for kind in KINDS:
        story = Submits(kind)
        story.places.grant(9, 1000)
        assert story.submits.add(Message("t", b"x"), None) is None
        assert story.add(Message("t", b"x"), None) is not None
        story.submits.stop()
        assert story.add(Message("t", b"x"), None) is None


def whole(places: str | None) -> SendReceipt:
    return SendReceipt(
        status=SendStatus.SEND_OK,
        message_id="all",
        offset_message_id=places,
        queue=MessageQueue("t", "b", 0),
        queue_offset=2**40,
        transaction_id="T",
        recall_handle="R",
        region_id="eu",
        trace_on=False,
    )


@given(
    st.none() | st.sampled_from(["", "11", "11,22", "11,22,33"]),
    st.sampled_from(["", "AA", "AA,BB", "AA,BB,CC"]),
    st.integers(1, 4),
)
def test_any_receipts(places: str | None, ids: str, count: int) -> None:
    def each(kind: Any) -> tuple[Any, ...]:
        receipts = kind(whole(places), ids, count)
        return outcome(lambda: list(receipts.each())), outcome(receipts.own, count)

    mine, pure = each(core.BatchReceipts), each(native.pure["BatchReceipts"])
    assert mine == pure
    assert mine[0][0] == "returned"
