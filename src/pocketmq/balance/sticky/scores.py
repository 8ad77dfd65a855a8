"""Scores: the fixed numbers that decide between equally good assignments.

A score belongs to a topic or queue and a member, and to nothing else: not to the assignment before,
not to the other members, the process, the platform or the version of Python. Every member of a
group therefore prefers the same one of several assignments that are equally good, at any time.
"""

from collections.abc import Iterable
from hashlib import blake2b

from pocketmq.model import MessageQueue

_MASK = (1 << 64) - 1
_SEPARATOR = "\0"


def topic_key(topic: str) -> int:
    """Return the key of a topic, an odd 64-bit number."""
    return _hashed("topic", topic) | 1


def queue_key(queue: MessageQueue) -> int:
    """Return the key of a queue, an odd 64-bit number."""
    return _hashed("queue", queue.topic, queue.broker_name, str(queue.queue_id)) | 1


def member_key(member: str) -> int:
    """Return the key of a member, a 64-bit number."""
    return _hashed("member", member)


def scores(key: int, member_keys: Iterable[int]) -> list[int]:
    """Return the 64-bit scores of one topic or queue for some members.

    The low half of the product of two hashes (multiplicative hashing) stands in for a hash of the
    pair, which would take five times as long for the million pairs of a large group. The key is
    odd, so two members have different scores as long as their own hashes differ.
    """
    return [key * member_key & _MASK for member_key in member_keys]


def _hashed(*parts: str) -> int:
    # A lone surrogate cannot come from a broker, but must not raise here either.
    raw = _SEPARATOR.join(parts).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(raw, digest_size=8).digest(), "big")
