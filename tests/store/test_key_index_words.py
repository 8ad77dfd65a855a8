"""From records to words."""

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.protocol.records import Record, pack_record
from pocketmq.store import MessageStore, key_index_words
from pocketmq.store.key_index_run import KeyRun, RunInfo
from tests.store.keyed import HOSTILE, MODULUS, keys_of, text
from tests.store.messages import NOW_MS


def test_many_entries_of_one_key_are_searched_by_time_not_one_by_one() -> None:
    words = key_index_words.KeyWords(key_index_words.KeyHash(MODULUS))
    for number in range(10_000):
        words.take(number * 100, b"T", text(None, "k"), 1000 + number)
    info = RunInfo(start=0, end=1_000_000, oldest_ms=1000, newest_ms=10_999, time_ordered=True)
    run = KeyRun(info, sorted(words.words))
    asked = []

    def time_at(position: int) -> int:
        asked.append(position)
        return 1000 + position // 100

    bounds = key_index_words.KeyHash(MODULUS).bounds(b"T", b"k")
    assert list(run.places(bounds, 3000, 3002, time_at)) == [200_200, 200_100, 200_000]
    assert len(asked) < 40
    assert list(run.places(bounds, 0, 999, time_at)) == []
    assert list(run.places(bounds, 11_000, 1 << 62, time_at)) == []
    assert len(list(run.places(bounds, 0, 1 << 62, time_at))) == 10_000


@given(
    st.lists(
        st.tuples(
            st.sampled_from([b"T", b"T2", b"", b"U" * 127]),
            st.one_of(
                st.sampled_from(HOSTILE[:21]),
                st.binary(max_size=40),
                st.lists(
                    st.sampled_from([b"KEYS", b"UNIQ_KEY", b"\x01", b"\x02", b" ", b"a", b"b"])
                ).map(b"".join),
            ),
            st.integers(0, 3),
        ),
        max_size=30,
    )
)
@settings(max_examples=200, deadline=None)
def test_many_at_once_gives_the_same_words_as_one_by_one(
    messages: list[tuple[bytes, bytes, int]],
) -> None:
    hashes = key_index_words.KeyHash(MODULUS)
    many, single = key_index_words.KeyWords(hashes), key_index_words.KeyWords(hashes)
    data = b""
    for topic, properties, time in messages:
        record = Record(topic=topic, body=b"body", property_bytes=properties)
        single.take(len(data), topic, properties, time)
        data += pack_record(record, 0, len(data), time, bytes(8))
    assert many.take_many(data, 0) == len(data)
    assert sorted(many.words) == sorted(single.words)
    assert (many.oldest_ms, many.newest_ms, many.time_ordered, many.records) == (
        single.oldest_ms,
        single.newest_ms,
        single.time_ordered,
        single.records,
    )
    for topic, properties, _ in messages:
        for key in keys_of(properties, unique=False):
            low, high = hashes.bounds(topic, key)
            assert any(low <= word < high for word in many.words)


@given(st.binary(max_size=400), st.integers(0, 1 << 40))
def test_any_bytes_are_taken_or_refused(data: bytes, position: int) -> None:
    words = key_index_words.KeyWords(key_index_words.KeyHash(MODULUS))
    assert 0 <= words.take_many(data, position) <= len(data)


def test_the_end_of_a_rolled_back_transaction_has_no_words() -> None:
    words = key_index_words.KeyWords(key_index_words.KeyHash(MODULUS))
    record = Record(topic=b"T", body=b"", property_bytes=text("id", "k"), sys_flag=12)
    data = pack_record(record, 0, 0, NOW_MS, bytes(8))
    assert words.take_many(data, 0) == len(data)
    assert words.words == []


def test_a_modulus_is_a_prime_of_the_right_size() -> None:
    small = [n for n in range(3, 2000, 2) if all(n % d for d in range(3, 45, 2) if d < n)]
    assert [n for n in range(3, 2000, 2) if n in (7, 61) or key_index_words._is_prime(n)] == small
    assert not key_index_words._is_prime(2047)  # passes for base 2
    assert not key_index_words._is_prime(314_821)  # passes for base 7
    numbers = iter([0, 2, (1 << 28) - 3, 57])
    modulus = key_index_words.choose_modulus(lambda bits: next(numbers))
    assert key_index_words.HASH_LIMIT // 2 < modulus < key_index_words.HASH_LIMIT
    assert all(modulus % divisor for divisor in range(3, int(modulus**0.5) + 1, 2))


def test_the_modulus_of_a_store_is_its_own_and_stays(tmp_path: Path) -> None:
    first = MessageStore.open(tmp_path / "1")
    second = MessageStore.open(tmp_path / "2")
    modulus = first.keys._hash.modulus
    assert modulus != second.keys._hash.modulus
    first.close()
    second.close()
    first = MessageStore.open(tmp_path / "1")
    assert first.keys._hash.modulus == modulus
    first.close()
