"""Messages by the moment they were stored, with the bounds of RocketMQ 5.x."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.protocol.hosts import encode_host
from pocketmq.store import MessageStore
from tests.store.messages import put


def stored_at(times: list[int], store_host: bytes = bytes(8)) -> MessageStore:
    store = MessageStore.open(None, store_host=store_host)
    store.make_queue("T", 0)
    for time in times:
        put(store, "T", b"x", now_ms=time)
    return store


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 20), min_size=1, max_size=30).map(sorted), st.integers(-1, 21))
def test_the_bounds_of_a_moment(times: list[int], moment: int) -> None:
    store = stored_at(times)
    queue = store.make_queue("T", 0)
    lower = sum(time < moment for time in times)
    upper = sum(time <= moment for time in times) - 1
    assert store.offset_by_time(queue, moment) == lower
    assert store.offset_by_time(queue, moment, upper=True) == max(upper, 0)
    store.close()


@pytest.mark.parametrize("host", [bytes(8), encode_host("[::1]:10911")])
def test_the_time_of_a_message(host: bytes) -> None:
    store = stored_at([5, 7], host)
    queue = store.make_queue("T", 0)
    assert [store.store_time(queue, offset) for offset in (-1, 0, 1, 2)] == [-1, 5, 7, -1]
    assert store.earliest_time(queue) == 5
    store.close()


def test_a_queue_without_messages_has_no_times() -> None:
    store = stored_at([])
    queue = store.make_queue("T", 0)
    assert store.earliest_time(queue) == -1
    assert store.offset_by_time(queue, 5) == 0
    assert store.offset_by_time(queue, 5, upper=True) == 0
    store.close()
