"""Writes of one turn leave in one piece, in order."""

import asyncio

from pocketmq.net.limits import Limits
from pocketmq.net.outbox import Outbox


class Wire(asyncio.Transport):
    """A socket that takes nothing: remembers each write by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self.limits = (high, low)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writes.append(bytes(data))

    def get_write_buffer_size(self) -> int:
        return sum(map(len, self.writes))


def opened(limits: Limits | None = None) -> tuple[Outbox, Wire]:
    outbox, wire = Outbox(asyncio.get_running_loop(), limits or Limits()), Wire()
    outbox.start(wire)
    return outbox, wire


async def test_writes_of_one_turn_leave_in_one_piece() -> None:
    outbox, wire = opened()
    outbox.write(b"a", memoryview(b"bc"))
    outbox.write(bytearray(b"d"))
    assert wire.writes == []
    assert outbox.unsent == 4
    await asyncio.sleep(0)
    assert wire.writes == [b"abcd"]
    outbox.write(b"e")
    await asyncio.sleep(0)
    assert wire.writes == [b"abcd", b"e"]


async def test_large_pieces_leave_together_and_in_order() -> None:
    outbox, wire = opened()
    outbox.write(b"a" * 70_000, b"b" * 70_000)
    outbox.flush()
    assert b"".join(wire.writes) == b"a" * 70_000 + b"b" * 70_000


async def test_a_flush_sends_now_and_the_turns_end_nothing_more() -> None:
    outbox, wire = opened()
    outbox.write(b"a")
    outbox.flush()
    assert wire.writes == [b"a"]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert wire.writes == [b"a"]


async def test_a_corked_outbox_waits_for_its_flush() -> None:
    outbox, wire = opened()
    outbox.corked = True
    outbox.write(b"a")
    await asyncio.sleep(0)
    assert wire.writes == []
    outbox.corked = False
    outbox.flush()
    assert wire.writes == [b"a"]


async def test_clogged_counts_what_is_queued_and_what_the_socket_holds() -> None:
    outbox, wire = opened(Limits(write_high=10, write_low=5))
    assert wire.limits == (10, 5)
    outbox.write(b"x" * 6)
    outbox.flush()
    outbox.write(b"x" * 4)
    clogged = [outbox.clogged]
    outbox.write(b"x")
    clogged.append(outbox.clogged)
    assert clogged == [False, True]
    assert outbox.taken == 0
    wire.writes.clear()
    assert outbox.taken == 6


async def test_nothing_leaves_before_the_start_or_after_the_end() -> None:
    outbox, wire = Outbox(asyncio.get_running_loop(), Limits()), Wire()
    outbox.write(b"early")
    outbox.start(wire)
    outbox.write(b"queued")
    outbox.end()
    outbox.write(b"late")
    outbox.flush()
    await asyncio.sleep(0)
    assert wire.writes == []
    assert outbox.unsent == 0
