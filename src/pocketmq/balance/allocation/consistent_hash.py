"""CONSISTENT_HASH: members and queues on one hash ring, so that few queues move on a change.

Owns Java's ring: its keys, its default hash and what happens when two keys meet. Spread is
uneven by nature; more virtual nodes even it out, but all members must use the same number.
Queues of a member that left move only to the members next on the ring; no other queue moves.
"""

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from sys import byteorder

import msgspec

from pocketmq.balance.allocation.strategy import check_input, may_own
from pocketmq.errors import AllocationInputInvalid
from pocketmq.model import MessageQueue
from pocketmq.native import in_core

try:  # CPython's own MD5: hashlib's goes through OpenSSL, which takes four times as long to set up
    from _md5 import md5 as _md5  # type: ignore[import-not-found]
except ImportError:  # an interpreter built without it
    from hashlib import md5

    _md5 = partial(md5, usedforsecurity=False)

JAVA_VIRTUAL_NODES = 10
_REMEMBERED_MEMBERS = 512

# Java's HashFunction: any text to a signed 64-bit number.
HashFunction = Callable[[str], int]


def md5_hash(key: str) -> int:
    """Return Java's default ring position: the first four bytes of the MD5 of the UTF-8 text."""
    return md5_hashes([key])[0]


def md5_hashes(keys: Iterable[str]) -> "array[int]":
    """Return the `md5_hash` of many keys; one call is quicker than many."""
    return md5_joined(keys, [""])


def md5_nodes(members: Iterable[str], virtual_nodes: int) -> "array[int]":
    """Return the `md5_hash` of the nodes of many members, one member's after the other's."""
    return md5_joined(members, [f"-{number}" for number in range(virtual_nodes)])


def md5_joined(starts: Iterable[str], endings: Iterable[str]) -> "array[int]":
    """Return the `md5_hash` of every start with every ending, one start's after the other's.

    Each is encoded by itself: no start may end, nor ending begin, within a surrogate pair.
    """
    return _positions(md5_starts(list(map(_encoded, starts)), list(map(_encoded, endings))))


@in_core
def md5_starts(starts: list[bytes], endings: list[bytes]) -> bytes:
    """Return the first four bytes of the MD5 of each start with each ending, concatenated."""
    digests = bytearray()
    for start in starts:
        digests += b"".join([_md5(start + ending).digest() for ending in endings])
    return array("I", bytes(digests))[::4].tobytes()


def _positions(words: bytes) -> "array[int]":
    """Return the words as Java reads them."""
    positions = array("I", words)
    if byteorder == "little":
        positions.byteswap()
    return positions


def _encoded(text: str) -> bytes:
    """Encode as Java does: surrogate pairs are one character, a half on its own becomes `?`."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        units = text.encode("utf-16-be", "surrogatepass")
        return units.decode("utf-16-be", "surrogatepass").encode("utf-8", "replace")


class ConsistentHash(msgspec.Struct, frozen=True):
    """Each queue goes to the member whose virtual node follows it on the ring.

    `virtual_nodes` per member; 0 is allowed, as in Java, and leaves every queue without an owner. A
    `hash_function` of your own must return the same numbers in every process of the group (Python's
    built-in `hash` does not).
    """

    virtual_nodes: int = JAVA_VIRTUAL_NODES
    hash_function: HashFunction = md5_hash

    def __post_init__(self) -> None:
        if self.virtual_nodes < 0:
            reason = f"virtual_nodes must be 0 or more, not {self.virtual_nodes}"
            raise AllocationInputInvalid(reason)

    @property
    def name(self) -> str:
        """Java's name."""
        return "CONSISTENT_HASH"

    def allocate(
        self, group: str, member: str, queues: Sequence[MessageQueue], members: Sequence[str]
    ) -> list[MessageQueue]:
        """Return the queues that meet one of the member's virtual nodes first."""
        if not may_own(member, queues, members):
            return []
        owners = self.allocate_all(queues, members, group)
        return [queue for queue, owner in zip(queues, owners, strict=True) if owner == member]

    def allocate_all(
        self,
        queues: Sequence[MessageQueue],
        members: Sequence[str],
        group: str = "",  # noqa: ARG002
    ) -> list[str | None]:
        """Return every queue's owner."""
        check_input(queues, members)
        positions, owners = _ring(tuple(members), self.virtual_nodes, self.hash_function)
        if not positions:
            return [None] * len(queues)
        keys, place = map(MessageQueue.java_text, queues), self.hash_function
        places = md5_hashes(keys) if place is md5_hash else map(place, keys)
        return [owners[bisect_left(positions, wanted)] for wanted in places]


@lru_cache(maxsize=64)
def _ring(
    members: tuple[str, ...], virtual_nodes: int, place: HashFunction
) -> tuple[list[int], list[str | None]]:
    """Build the ring: sorted positions, and their owners with the wrap-around appended.

    As in Java's router: a later node takes over an equal position, and a member listed again
    numbers its replicas on from those it still has.
    """
    ring: dict[int, str] = {}
    for member in members:
        ring |= dict.fromkeys(_nodes(member, virtual_nodes, place), member)
    if len(ring) < virtual_nodes * len(members):  # two nodes meet, or a member is listed twice
        ring = _contested_ring(members, virtual_nodes, place)
    positions = sorted(ring)
    owners = [ring[position] or None for position in positions]
    return positions, owners + owners[:1]


@lru_cache(maxsize=_REMEMBERED_MEMBERS)
def _nodes(member: str, virtual_nodes: int, place: HashFunction) -> Sequence[int]:
    """Return the positions of a member's nodes; rings before and after a change share them."""
    if place is md5_hash:
        return md5_nodes([member], virtual_nodes)
    return [place(f"{member}-{number}") for number in range(virtual_nodes)]


def _contested_ring(
    members: tuple[str, ...], virtual_nodes: int, place: HashFunction
) -> dict[int, str]:
    """Build the ring node by node, in the order in which Java adds them."""
    ring: dict[int, str] = {}
    replicas: Counter[str] = Counter()
    for member in members:
        first = replicas[member]
        for number in range(first, first + virtual_nodes):
            position = place(f"{member}-{number}")
            if (
                position in ring
            ):  # the node before loses a replica, and its next number is used again
                replicas[ring[position]] -= 1
            ring[position] = member
            replicas[member] += 1
    return ring
