"""What a pop's answer says of its messages, and handles put together."""

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from pocketmq.client.pop.popped import batch_acks, handle_of, read_popped, with_handle
from pocketmq.errors import HeaderMalformed, InvalidInput
from pocketmq.model import property_names
from pocketmq.protocol import DeliveryContext
from pocketmq.protocol.handles import PopHandle, TopicMark
from pocketmq.protocol.pulled import decode_pulled
from pocketmq.protocol.requests.pop import PopResponse
from tests.client.pop.shelves import record


def answer(
    starts: str | None = "0 0 7", offsets: str | None = "0 0 7,8", counts: str | None = None
) -> PopResponse:
    return PopResponse(
        pop_time=1000,
        invisible_time=60000,
        revive_qid=5,
        rest_num=0,
        start_offset_info=starts,
        msg_offset_info=offsets,
        order_count_info=counts,
    )


def test_each_message_has_the_handle_javas_client_would_give_it() -> None:
    first, second = read_popped(answer(), record(7) + record(8), "broker-a", "orders").messages
    assert first.get_property(property_names.POP_CHECKPOINT) == "7 1000 60000 5 0 broker-a 0 7"
    assert second.get_property(property_names.POP_CHECKPOINT) == "7 1000 60000 5 0 broker-a 0 8"
    assert second.properties[property_names.FIRST_POP_TIME] == "1000"
    assert (first.topic, first.broker_name, first.body) == ("orders", "broker-a", b"7")


def test_a_retried_message_is_shown_under_its_own_topic_and_keeps_its_mark() -> None:
    body = record(3, topic="%RETRY%billing_orders", reconsume_times=2)
    (message,) = read_popped(answer("1 0 3", "1 0 3"), body, "b", "orders").messages
    assert (message.topic, message.reconsume_times) == ("orders", 2)
    assert handle_of(message).mark is TopicMark.RETRY
    assert handle_of(message).mark.real_topic("orders", "billing") == "%RETRY%billing_orders"


def test_a_handle_that_the_broker_gave_and_the_time_of_the_first_pop_are_kept() -> None:
    given = {
        property_names.POP_CHECKPOINT: "3 900 60000 1 2 b 0 3",
        property_names.FIRST_POP_TIME: "800",
    }
    (message,) = read_popped(answer(), record(3, properties=given), "b", "orders").messages
    assert str(handle_of(message)) == "3 900 60000 1 2 b 0 3"
    assert message.properties[property_names.FIRST_POP_TIME] == "800"


def test_without_offsets_in_the_answer_the_messages_own_count() -> None:
    first, second = read_popped(answer(None, None), record(7) + record(8), "b", "orders").messages
    assert str(handle_of(first)) == "7 1000 60000 5 0 b 0 7"
    assert str(handle_of(second)) == "8 1000 60000 5 0 b 0 8"


def test_the_broker_counts_how_often_ordered_messages_were_taken() -> None:
    both = read_popped(
        answer(counts="0 qo0%8 3;0 0 1"), record(7) + record(8), "b", "orders"
    ).messages
    assert [message.reconsume_times for message in both] == [1, 3]


def test_messages_behind_a_broken_record_come_back_by_themselves() -> None:
    messages = read_popped(answer(), record(7) + record(8)[:-5], "b", "orders").messages
    assert [message.queue_offset for message in messages] == [7]


def test_an_answer_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(HeaderMalformed):
        read_popped(answer(starts="7"), record(7), "b", "orders")


def test_a_message_that_was_not_popped_has_no_handle() -> None:
    (message,) = decode_pulled(record(1), DeliveryContext())
    with pytest.raises(InvalidInput, match="not received by a POP consumer"):
        handle_of(message)


def test_a_new_handle_takes_the_place_of_the_old_one() -> None:
    message, _ = read_popped(answer(), record(7) + record(8), "b", "orders").messages
    assert message.properties[property_names.POP_CHECKPOINT]  # read before, and so remembered
    new = PopHandle.parse("7 2000 30000 5 0 b 0 7")
    changed = with_handle(message, new)
    assert handle_of(changed) == new
    assert changed.properties[property_names.POP_CHECKPOINT] == str(new)
    assert changed == message


places = st.tuples(
    st.sampled_from(["orders", "refunds"]),
    st.sampled_from(list(TopicMark)),
    st.integers(0, 3),
    st.integers(0, 50),
    st.integers(0, 30),
)


@given(st.sets(places, min_size=1, max_size=40))
def test_acks_put_together_say_the_same_as_one_by_one(
    some: set[tuple[str, TopicMark, int, int, int]],
) -> None:
    handles = [
        (
            topic,
            PopHandle(
                start_offset=start,
                pop_time_ms=9,
                invisible_time_ms=60000,
                revive_queue_id=1,
                mark=mark,
                broker_name="b",
                queue_id=queue,
                queue_offset=start + behind,
            ),
        )
        for topic, mark, queue, start, behind in some
    ]
    acks = batch_acks("billing", handles)
    said = {
        (ack.topic, ack.retry, ack.queue_id, ack.start_offset, offset)
        for ack in acks
        for offset in ack.acked_offsets()
    }
    assert said == {
        (topic, h.mark.value, h.queue_id, h.start_offset, h.queue_offset) for topic, h in handles
    }
    assert len(acks) == len({(t, h.mark, h.queue_id, h.start_offset) for t, h in handles})


words = st.sampled_from(
    ["7", "0", "1", "2", "12345678901", "9" * 19, "+3", "-4", "b", "", "٣", "x y"]
)


@given(st.lists(words, min_size=5, max_size=10).map(" ".join))
@example("7 1 2 3 0 b  8")
def test_a_handle_is_read_as_the_protocol_reads_it(text: str) -> None:
    (message,) = decode_pulled(
        record(4), DeliveryContext(added={property_names.POP_CHECKPOINT: text})
    )

    def read(reader: Callable[[], PopHandle]) -> PopHandle | str:
        try:
            return reader()
        except HeaderMalformed as error:
            return str(error)

    expected = read(lambda: PopHandle.parse(text))
    if isinstance(expected, PopHandle) and expected.queue_offset is None:
        expected = replace(expected, queue_offset=4)
    assert read(lambda: handle_of(message)) == expected


def test_messages_of_several_queues_have_their_own_handles_and_counts() -> None:
    body = b"".join(
        [
            record(7),
            record(3, topic="%RETRY%billing_orders"),
            record(8),
            record(20, queue_id=1),
            record(4, topic="%RETRY%billing_orders"),
        ]
    )
    told = answer("0 0 7;1 0 3;0 1 20", "0 0 7,8;1 0 3,4;0 1 20", "0 0 2;1 qo0%4 5")
    messages = read_popped(told, body, "b", "orders").messages
    assert [str(handle_of(message)) for message in messages] == [
        "7 1000 60000 5 0 b 0 7",
        "3 1000 60000 5 1 b 0 3",
        "7 1000 60000 5 0 b 0 8",
        "20 1000 60000 5 0 b 1 20",
        "3 1000 60000 5 1 b 0 4",
    ]
    assert [message.reconsume_times for message in messages] == [2, 0, 2, 0, 5]


def test_a_message_whose_text_only_looks_like_a_handle_has_the_answers() -> None:
    body = record(7, properties={"NOT_POP_CK": "1", "x": "1ST_POP_TIME"}) + record(8)
    first, second = read_popped(answer(), body, "b", "orders").messages
    assert str(handle_of(first)) == "7 1000 60000 5 0 b 0 7"
    assert str(handle_of(second)) == "7 1000 60000 5 0 b 0 8"
    assert first.properties[property_names.FIRST_POP_TIME] == "1000"
