"""The key index finds what is in the log: everything, at once, and nothing else."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pocketmq.protocol import RecordView
from pocketmq.protocol.hosts import V6_SIZE
from pocketmq.protocol.records import Record, pack_record
from pocketmq.store import MessageStore
from pocketmq.store.key_index import MOST_BYTES
from pocketmq.store.key_index_words import (
    KeyHash,
)
from tests.store.keyed import ALWAYS, HOSTILE, MODULUS, expected, found, open_store, text
from tests.store.messages import NOW_MS, put


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MessageStore]:
    opened = open_store(tmp_path)
    yield opened
    opened.close()


def test_a_message_is_found_as_soon_as_it_was_appended(store: MessageStore) -> None:
    put(store, "T", b"first", text=text("id-1", "a"))
    assert found(store, "a") == [b"first"]
    record = Record(topic=b"T", body=b"second", property_bytes=text("id-2", "a"))
    store.append(store.make_queue("T", 0), [record], [0], NOW_MS)
    assert found(store, "a") == [b"first", b"second"]


def test_a_message_is_found_by_its_id_and_by_each_of_its_keys(store: MessageStore) -> None:
    put(store, "T", b"one", text=text("id-1", " a  bc a "))
    put(store, "T", b"two", text=text("a", "id-1"))
    assert found(store, "id-1") == [b"one", b"two"]
    assert found(store, "a") == [b"one", b"two"]
    assert found(store, "bc") == [b"one"]
    assert found(store, "id-1", unique=True) == [b"one"]
    assert found(store, "a", unique=True) == [b"two"]
    assert [found(store, key) for key in ("b", "a  bc", "", " ", "id", "A")] == [[]] * 6


def test_the_newest_come_up_to_the_limit_in_the_order_of_the_log(store: MessageStore) -> None:
    for number in range(100):
        put(store, "T", b"%d" % number, text=text(None, "k"), now_ms=NOW_MS + number)
    for limit in (-1, 0, 1, 7, 99, 100, 101):
        records = store.find_by_key("T", "k", *ALWAYS, limit)
        bodies = [RecordView(record, 0).stored_body for record in records]
        assert bodies == [b"%d" % number for number in range(max(0, 100 - max(0, limit)), 100)]


def test_both_ends_of_a_time_range_belong_to_it(store: MessageStore) -> None:
    for number in range(100):
        put(store, "T", b"%d" % number, text=text(None, "k"), now_ms=NOW_MS + 10 * number)
    for first, last in ((0, 99), (5, 5), (17, 63), (98, 99), (60, 40)):
        records = store.find_by_key("T", "k", NOW_MS + 10 * first, NOW_MS + 10 * last, 1000)
        bodies = [int(RecordView(record, 0).stored_body) for record in records]
        assert bodies == list(range(first, last + 1))
        records = store.find_by_key("T", "k", NOW_MS + 10 * first + 1, NOW_MS + 10 * last - 1, 1000)
        bodies = [int(RecordView(record, 0).stored_body) for record in records]
        assert bodies == list(range(first + 1, last))


def test_a_clock_that_goes_back_hides_nothing(store: MessageStore) -> None:
    times = [NOW_MS + (number * 37) % 100 for number in range(100)]
    for number, time in enumerate(times):
        put(store, "T", b"%d" % number, text=text(None, "k"), now_ms=time)
    for begin, end in ((0, 99), (50, 50), (10, 30)):
        records = store.find_by_key("T", "k", NOW_MS + begin, NOW_MS + end, 1000)
        bodies = [int(RecordView(record, 0).stored_body) for record in records]
        assert bodies == [n for n, time in enumerate(times) if begin <= time - NOW_MS <= end]


def test_keys_of_other_topics_are_not_found(store: MessageStore) -> None:
    put(store, "T", b"here", text=text("id", "k"))
    put(store, "T2", b"there", text=text("id", "k"))
    assert found(store, "k") == [b"here"]
    assert found(store, "k", topic="T2") == [b"there"]
    assert found(store, "k", topic="T3") == []


@pytest.mark.parametrize("modulus", [1, 2, 3])
def test_keys_that_share_a_hash_are_told_apart(tmp_path: Path, modulus: int) -> None:
    store = open_store(tmp_path, modulus=modulus)
    names = ["key-1", "key-2", "k", "T"]
    for name in names:
        for topic in ("T", "T2"):
            put(store, topic, f"{topic} {name}".encode(), text=text(f"id-{name}", name))
    for name in names:
        for topic in ("T", "T2"):
            assert found(store, name, topic=topic) == [f"{topic} {name}".encode()]
    store.close()


def test_colliding_keys_are_chosen_for_the_real_modulus(store: MessageStore) -> None:
    key, twin = _twins()
    hashes = KeyHash(MODULUS)
    assert hashes.bounds(b"T", key.encode()) == hashes.bounds(b"T", twin.encode())
    put(store, "T", b"one", text=text(None, key))
    put(store, "T", b"two", text=text(None, twin))
    assert (found(store, key), found(store, twin)) == ([b"one"], [b"two"])


def _twins() -> tuple[str, str]:
    """Return two readable keys with the same remainder."""
    start = int.from_bytes(b"aaaaaaaa")
    for step in range(1, 1_000_000):
        raw = (start + step * MODULUS).to_bytes(8)
        if raw.isalnum():
            return "aaaaaaaa", raw.decode()
    raise AssertionError


def test_only_the_end_of_a_rolled_back_transaction_is_left_out(store: MessageStore) -> None:
    queue = store.make_queue("T", 0)
    for flag in (0, 4, 8, 12):
        record = Record(
            topic=b"T", body=b"%d" % flag, property_bytes=text("id", "k"), sys_flag=flag
        )
        store.append(queue, [record], [0], NOW_MS)
    assert found(store, "k") == [b"0", b"4", b"8"]
    assert found(store, "id", unique=True) == [b"0", b"4", b"8"]


def test_odd_properties_are_read_as_everywhere_else(store: MessageStore) -> None:
    """A message is found by exactly the keys that a reader of its properties sees."""
    for number, properties in enumerate(HOSTILE * 2):
        put(store, "T", b"%d" % number, text=properties)
        put(store, "T", b"plain", text=text("id", "plain"))
    probes = ["a", "b", "\x01a", "\x01", "a\tb", " a ", "a b", " ", "0", "4999", "X", "\ufffd"]
    for key in probes:
        for unique in (False, True):
            positions = expected(store, "T", key, *ALWAYS, 1000, unique=unique)
            records = store.find_by_key("T", key, *ALWAYS, 1000, unique=unique)
            assert [RecordView(r, 0).commit_log_offset for r in records] == positions
    assert len(found(store, "plain")) == 2 * len(HOSTILE)
    right = [5, 6, 8, 9, 14, 16, 18, 21]
    assert found(store, "a") == [b"%d" % (n + len(HOSTILE) * k) for k in (0, 1) for n in right]


def test_half_a_surrogate_pair_finds_what_java_would_have_stored(store: MessageStore) -> None:
    put(store, "T", b"odd", text=text(None, "a?b"))
    assert found(store, "a\ud800b") == [b"odd"]


def test_a_body_that_looks_like_keys_or_records_finds_nothing(store: MessageStore) -> None:
    fake = pack_record(
        Record(topic=b"T", body=b"fake", property_bytes=text("id", "k")), 0, 88, NOW_MS, bytes(8)
    )
    put(store, "T", fake + b"\x02KEYS\x01k\x02UNIQ_KEY\x01k\x02" + fake, text=text(None, "real"))
    assert found(store, "k") == []
    assert len(found(store, "real")) == 1


def test_records_of_every_form_and_size_are_found(tmp_path: Path) -> None:
    store = open_store(tmp_path, segment_size=1 << 16)
    wide = "W" * 200
    queue, wide_queue = store.make_queue("T", 0), store.make_queue(wide, 0)
    expected_bodies = []
    for number in range(400):
        body = bytes([number % 256]) * (300_000 if number % 100 == 50 else number)
        expected_bodies.append(body)
        record = Record(
            topic=b"T",
            body=body,
            property_bytes=text(f"id-{number}", f"k shared n{number % 3}"),
            born_host=bytes(V6_SIZE) if number % 7 < 3 else bytes(8),
        )
        store.append(queue, [record], [0], NOW_MS)
        put(store, wide, body, text=text(None, "shared"))
    assert wide_queue.next_offset == 400
    assert len(store.log.segments) > 5
    assert found(store, "k")[-20:] == expected_bodies[-20:]
    for number in (0, 50, 149, 150, 151, 399):
        assert found(store, f"id-{number}", unique=True) == [expected_bodies[number]]
    store.close()


def test_many_large_messages_do_not_make_a_frame_that_clients_refuse(store: MessageStore) -> None:
    for number in range(5):
        put(store, "T", bytes([number]) * (3 << 20), text=text(None, "k"))
    bodies = found(store, "k")
    assert [body[0] for body in bodies] == [2, 3, 4]
    assert sum(map(len, bodies[1:])) < MOST_BYTES


def test_messages_of_a_deleted_topic_are_not_found_even_if_it_is_made_again(
    store: MessageStore,
) -> None:
    put(store, "T", b"old", text=text("id", "k"))
    assert found(store, "k") == [b"old"]
    store.delete_topic("T")
    assert found(store, "k") == []
    put(store, "T", b"new", text=text("id", "k"))
    assert found(store, "k") == [b"new"]


def test_a_store_in_memory_has_an_index_too() -> None:
    store = open_store(None)
    for number in range(1000):
        put(store, "T", b"%d" % number, text=text(f"id-{number}", f"k{number % 10}"))
    assert found(store, "k3") == [b"%d" % number for number in range(3, 1000, 10)]
    assert store.keys.catch_up(5.0)
    assert found(store, "id-17") == [b"17"]
    store.close()
