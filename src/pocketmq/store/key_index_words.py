r"""From records to index entries: which keys a message can be found by, and the words that say so.

A word has 64 bits: above a hash of topic and key, below the low half of the record's position.
Words are kept as doubles of the same bits, because Python sorts and compares floats several times
faster than integers of this size. The hash sets bit 61 and none above, so every word is a positive
normal number, and words order as their bits do.

As in RocketMQ a message's own id (`UNIQ_KEY`) is a key like those it was given (`KEYS`, with spaces
between). There may be one word too many (a property given twice), never one too few: who finds
something by the index compares it with the record.
"""

import re
import struct
import sys
from array import array
from collections.abc import Callable
from typing import TypeAlias

from pocketmq.model import SysFlag
from pocketmq.native import in_core
from pocketmq.protocol.record_scan import MAGIC_V1

HASH_LIMIT = 1 << 29
"""Hashes without their topmost bit are below this, and so is the modulus they are made with."""

_ROLLED_BACK = int(SysFlag.ROLLED_BACK)
_MARK = b"\0"  # a key after each record's own, which cannot hold a zero byte
_END = b"\x02KEYS\x01" + _MARK
_BETWEEN = _END + b"\x02"
_find_values: Callable[[bytes], list[bytes]] = re.compile(
    rb"\x02(?:UNIQ_KEY|KEYS)\x01([^\x02]+)"
).findall
_find_pairs: Callable[[bytes], list[tuple[bytes, bytes]]] = re.compile(
    rb"\x02(UNIQ_KEY|KEYS)\x01([^\x02]+)"
).findall
_HEAD: Callable[[bytes, int], tuple[int, int, int, int, int, int]] = struct.Struct(
    ">ii20xqi16xq20xi"
).unpack_from
_HIGH = 1 if sys.byteorder == "little" else 0  # which half of a word in memory is the upper one
_SMALLEST = 91
_TOPICS = 4096
_NEVER = (1 << 63) - 1
_double: Callable[[bytes], tuple[float]] = struct.Struct("d").unpack


class KeyHash:
    """Hashes of topic and key: remainders by a prime that is secret to the store.

    So no client can choose keys that share a hash and make each query check all of them.
    """

    def __init__(self, modulus: int) -> None:
        self.modulus = modulus
        self._seeds: dict[bytes, int] = {}

    def seed(self, topic: bytes) -> int:
        """Return what a topic's keys are mixed with; it sets the bit above all hashes."""
        seed = self._seeds.get(topic)
        if seed is None:
            if len(self._seeds) >= _TOPICS:
                self._seeds.clear()
            seed = self._seeds[topic] = _seed(topic, self.modulus)
        return seed

    def bounds(self, topic: bytes, key: bytes) -> tuple[float, float]:
        """Return the lowest word that a topic's key can have, and the lowest above them all."""
        high = int.from_bytes(key, "big") % self.modulus ^ self.seed(topic)
        return _as_word(high << 32), _as_word(high + 1 << 32)


class KeyWords:
    """The words of some stretch of the log, with what else a run of them must know."""

    __slots__ = ("_hash", "_last", "newest_ms", "oldest_ms", "records", "time_ordered", "words")

    def __init__(self, key_hash: KeyHash) -> None:
        self.words: list[float] = []
        self.records = 0
        self.oldest_ms = _NEVER
        self.newest_ms = -_NEVER
        self.time_ordered = True  # no record was stored before the one in front of it
        self._last = -_NEVER
        self._hash = key_hash

    def take_many(self, data: bytes, position: int) -> int:
        """Index the records at the start of some bytes of the log; return their bytes.

        It stops before the first one that is not whole, or not of the common form (IPv4 hosts, a
        topic of up to 127 bytes), or not a record: `take` is for those.
        """
        taken, records, words, times = words_of_records(
            data, position, self._hash.modulus, self._last
        )
        self._last, oldest, newest, ordered = times
        self.time_ordered = self.time_ordered and ordered
        self.oldest_ms = min(oldest, self.oldest_ms)
        self.newest_ms = max(newest, self.newest_ms)
        self.records += records
        self.words += words
        return taken

    def take(self, position: int, topic: bytes, text: bytes, store_time_ms: int) -> None:
        """Take one record by its parts."""
        if store_time_ms != self._last:
            self.time_ordered = self.time_ordered and store_time_ms > self._last
            self.oldest_ms = min(store_time_ms, self.oldest_ms)
            self.newest_ms = max(store_time_ms, self.newest_ms)
            self._last = store_time_ms
        self.records += 1
        seed, modulus = self._hash.seed(topic), self._hash.modulus
        self.words += _words_of_texts([position], [seed], [text], modulus)


Times: TypeAlias = tuple[int, int, int, bool]
"""The last record's store time, the oldest and the newest that differ from the one before, and
whether they only grow."""


@in_core
def words_of_records(
    data: bytes, position: int, modulus: int, last_ms: int
) -> tuple[int, int, list[float], Times]:
    """Return the bytes of the records at the start of `data`, how many are indexed, their words.

    Words are sorted. Times go on from `last_ms`, that of the record before.
    """
    at, last_start, end = 0, len(data) - _SMALLEST, len(data)
    places: list[int] = []
    seeds: list[int] = []
    texts: list[bytes] = []
    topic, seed = b"", HASH_LIMIT
    last, oldest, newest, ordered = last_ms, _NEVER, -_NEVER, True
    while at <= last_start:
        size, magic, place, flag, time, body_size = _HEAD(data, at)
        stop = at + size
        if (
            magic != MAGIC_V1
            or place != position + at
            or flag & 0x30
            or stop > end
            or not 0 <= body_size <= size - _SMALLEST
        ):
            break
        topic_at = at + 88 + body_size
        text_at = topic_at + 1 + data[topic_at]
        if text_at > stop - 2 or text_at + 2 + (data[text_at] << 8 | data[text_at + 1]) != stop:
            break  # a damaged length would lead past the records behind it
        if flag & _ROLLED_BACK != _ROLLED_BACK:
            if data[topic_at + 1 : text_at] != topic:
                topic = data[topic_at + 1 : text_at]
                seed = _seed(topic, modulus)
            if time != last:
                ordered = ordered and time > last
                oldest, newest, last = min(time, oldest), max(time, newest), time
            places.append(place)
            seeds.append(seed)
            texts.append(data[text_at + 2 : stop])
        at = stop
    words = _words_of_texts(places, seeds, texts, modulus) if texts else []
    words.sort()
    return at, len(texts), words, (last, oldest, newest, ordered)


def _words_of_texts(
    places: list[int], seeds: list[int], texts: list[bytes], modulus: int
) -> list[float]:
    """Return the words of records, by their positions, their topics' seeds and properties."""
    count = len(texts)
    joined = b"\x02" + _BETWEEN.join(texts) + _END
    if joined.count(0) != count:  # damage, or bytes not written by us: a mark could be forged
        return [
            word
            for place, seed, text in zip(places, seeds, texts, strict=True)
            for word in _uneven_words([place], [seed], _find_pairs(b"\x02" + text), modulus)
        ]
    values = _find_values(joined)
    width, odd = divmod(len(values), count)
    even = not odd and values[width - 1 :: width].count(_MARK) == count
    if not even or (b" " in joined and b" " in b"".join(values)):
        return _uneven_words(places, seeds, _find_pairs(joined), modulus)
    # The usual case: every record has as many keys as the others.
    from_bytes = int.from_bytes
    words: list[float] = []
    for column in range(width - 1):
        hashes = [
            from_bytes(value, "big") % modulus ^ seed
            for value, seed in zip(values[column::width], seeds, strict=True)
        ]
        words += _join(places, hashes)
    return words


def _uneven_words(
    places: list[int], seeds: list[int], pairs: list[tuple[bytes, bytes]], modulus: int
) -> list[float]:
    """Return the words of records with different numbers of keys, a mark behind each one's own."""
    from_bytes = int.from_bytes
    record, last = 0, len(places) - 1
    found: list[int] = []
    hashes: list[int] = []
    for name, value in pairs:
        if value == _MARK:
            record = min(record + 1, last)
            continue
        keys = set(value.split(b" ")) if name == b"KEYS" and b" " in value else (value,)
        for key in keys:
            if key:
                found.append(places[record])
                hashes.append(from_bytes(key, "big") % modulus ^ seeds[record])
    return _join(found, hashes)


def is_rolled_back(sys_flag: int) -> bool:
    """Return whether a record only ends a transaction: RocketMQ does not index those."""
    return sys_flag & _ROLLED_BACK == _ROLLED_BACK


def choose_modulus(random_bits: Callable[[int], int]) -> int:
    """Return a prime for `KeyHash`; `random_bits` should be as hard to guess as in `secrets`."""
    while True:
        candidate = HASH_LIMIT >> 1 | random_bits(28) | 1
        if _is_prime(candidate):
            return candidate


def _is_prime(odd: int) -> bool:
    """Return it for odd numbers below 4 759 123 141, for which these three bases are enough."""
    halvings = ((odd - 1) & (1 - odd)).bit_length() - 1
    for base in (2, 7, 61):
        power = pow(base, odd - 1 >> halvings, odd)
        if power in (1, odd - 1):
            continue
        for _ in range(halvings - 1):
            power = power * power % odd
            if power == odd - 1:
                break
        else:
            return False
    return True


def _join(places: list[int], hashes: list[int]) -> list[float]:
    """Make words: the hashes take the place of the positions' upper halves."""
    halves = array("I")
    halves.frombytes(array("Q", places).tobytes())
    halves[_HIGH::2] = array("I", hashes)
    words = array("d")
    words.frombytes(halves.tobytes())
    return words.tolist()


def _seed(topic: bytes, modulus: int) -> int:
    """Return what a topic's keys are mixed with; it sets the bit above all hashes."""
    return int.from_bytes(topic, "big") % modulus | HASH_LIMIT


def _as_word(bits: int) -> float:
    return _double(bits.to_bytes(8, sys.byteorder))[0]
