"""Places on the consistent-hash ring for many names at once: MD5 over arrays.

Owns the array form of `pocketmq.balance.allocation.md5_hash`. Names that Java would encode in
another way than plain UTF-8 are hashed one by one by the rule itself.
"""

from collections.abc import Sequence
from math import floor, sin

import numpy as np
import numpy.typing as npt

from pocketmq.balance.allocation import md5_hash
from pocketmq.pipelines.fleet.part import Part, Roster

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint32]
Places = npt.NDArray[np.uint64]

_AT_ONCE = 8192  # keys; their blocks and the work on them stay in the processor's cache
_SHIFTS = ((7, 12, 17, 22), (5, 9, 14, 20), (4, 11, 16, 23), (6, 10, 15, 21))
_SINES = np.array([floor(abs(sin(i + 1)) * 2**32) for i in range(64)], dtype=np.uint32)
_START = np.array([0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476], dtype=np.uint32)
_WORD_OF = [
    *range(16),
    *((5 * i + 1) % 16 for i in range(16)),
    *((3 * i + 5) % 16 for i in range(16)),
    *((7 * i) % 16 for i in range(16)),
]


def places_of(names: Sequence[str], endings: Sequence[str]) -> Places:
    """Give the ring position of every name with every ending: [name, ending].

    Names of one length, and endings of one length, are laid out and hashed together.
    """
    result = np.zeros((len(names), len(endings)), dtype=np.uint64)
    raw: dict[int, tuple[list[int], list[bytes]]] = {}
    for at, name in enumerate(names):
        try:
            text = name.encode()
        except UnicodeEncodeError:  # halves of surrogate pairs
            result[at] = [md5_hash(name + ending) for ending in endings]
        else:
            places, texts = raw.setdefault(len(text), ([], []))
            places.append(at)
            texts.append(text)
    by_length: dict[int, list[int]] = {}
    encoded = [ending.encode() for ending in endings]
    for at, text in enumerate(encoded):
        by_length.setdefault(len(text), []).append(at)
    for length, (places, texts) in raw.items():
        heads = np.frombuffer(b"".join(texts), dtype=np.uint8).reshape(len(texts), length)
        for size, columns in by_length.items():
            joined = b"".join([encoded[at] for at in columns])
            tails = np.frombuffer(joined, dtype=np.uint8).reshape(len(columns), size)
            step = max(1, _AT_ONCE // len(columns))
            for first in range(0, len(places), step):
                some = heads[first : first + step]
                result[np.ix_(places[first : first + step], columns)] = _hashed(some, tails)
    return result


def member_positions(part: Part, nodes: int) -> Places:
    """Give the positions of each roster's members: [group, place, node]."""
    result = np.zeros((*part.members.shape[1:], nodes), dtype=np.uint64)
    names = [member for roster in part.rosters for member in roster]
    sizes = np.array([len(roster) for roster in part.rosters])
    held = np.arange(part.roster_size)[None, :] < sizes[:, None]
    result[held] = places_of(names, [f"-{node}" for node in range(nodes)])
    return result


def queue_positions(part: Part) -> Places:
    """Give the position of every row's queue; a topic that several groups share is hashed once."""
    alike: dict[int, dict[str, None]] = {}
    rosters: dict[int, Roster] = {}
    for topic, roster in zip(part.pair_topic, part.pair_roster, strict=True):
        alike.setdefault(id(roster), {})[topic] = None
        rosters[id(roster)] = roster
    of_topic: dict[str, Places] = {}
    for key, topics in alike.items():
        starts = [f"MessageQueue [topic={topic}" for topic in topics]  # MessageQueue.__str__
        of_topic |= zip(topics, places_of(starts, rosters[key].endings), strict=True)
    return np.concatenate([of_topic[topic] for topic in part.pair_topic])


def _hashed(heads: Bytes, tails: Bytes) -> Places:
    """Give the first four bytes, read as Java reads them, of the MD5 of every head with tail."""
    (count, length), (ends, size) = heads.shape, tails.shape
    total = length + size
    blocks = (total + 8) // 64 + 1
    padded = np.zeros((count, ends, 64 * blocks), dtype=np.uint8)
    padded[:, :, :length] = heads[:, None, :]
    padded[:, :, length:total] = tails[None, :, :]
    padded[:, :, total] = 0x80
    padded[:, :, -8:] = np.frombuffer((8 * total).to_bytes(8, "little"), dtype=np.uint8)
    words = padded.view("<u4").reshape(count * ends, blocks, 16)
    # One row for each word, so that every step below runs over neighbours in memory.
    by_word = np.ascontiguousarray(words.transpose(1, 2, 0)).astype(np.uint32, copy=False)
    state = tuple(np.full(count * ends, word, dtype=np.uint32) for word in _START)
    for block in by_word:
        state = _compressed(state, block)
    return state[0].byteswap().astype(np.uint64).reshape(count, ends)


def _compressed(state: tuple[Words, ...], block: Words) -> tuple[Words, ...]:
    """Mix one block into the state: RFC 1321's 64 steps, each for all names."""
    a, b, c, d = (word.copy() for word in state)
    mixed, turned = np.empty_like(a), np.empty_like(a)
    for step in range(64):
        kind = step // 16
        if kind == 0:  # d ^ (b & (c ^ d))
            np.bitwise_xor(c, d, out=mixed)
            np.bitwise_and(mixed, b, out=mixed)
            np.bitwise_xor(mixed, d, out=mixed)
        elif kind == 1:  # c ^ (d & (b ^ c))
            np.bitwise_xor(b, c, out=mixed)
            np.bitwise_and(mixed, d, out=mixed)
            np.bitwise_xor(mixed, c, out=mixed)
        elif kind == 2:
            np.bitwise_xor(b, c, out=mixed)
            np.bitwise_xor(mixed, d, out=mixed)
        else:  # c ^ (b | ~d)
            np.bitwise_not(d, out=mixed)
            np.bitwise_or(mixed, b, out=mixed)
            np.bitwise_xor(mixed, c, out=mixed)
        mixed += a
        mixed += block[_WORD_OF[step]]
        mixed += _SINES[step]
        shift = _SHIFTS[kind][step % 4]
        np.left_shift(mixed, np.uint32(shift), out=turned)
        np.right_shift(mixed, np.uint32(32 - shift), out=mixed)
        np.bitwise_or(turned, mixed, out=turned)
        turned += b
        a, d, c, b, turned = d, c, b, turned, a
    return tuple(old + new for old, new in zip(state, (a, b, c, d), strict=True))
