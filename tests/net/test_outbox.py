"""Writes of one turn leave in one piece, in order."""

import asyncio

from pocketmq.net.limits import Limits
from pocketmq.net.outbox import PORTION, Draft, Outbox


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


async def test_drafts_become_frames_together_and_keep_their_order() -> None:
    outbox, wire = opened()
    made: list[list[int]] = []

    def make(drafts: list[Draft]) -> bytes:
        made.append([number for (number,) in drafts])
        return b"".join([b"%d," % number for (number,) in drafts])

    outbox.add((1,), make)
    outbox.add((2,), make)
    assert (len(outbox.drafts), made) == (2, [])
    outbox.write(b"a")
    outbox.add((3,), make)
    outbox.write_now(b"b")
    outbox.add((4,), make)
    assert outbox.unsent == len("1,2,a3,b4,")
    await asyncio.sleep(0)
    assert (made, wire.writes) == ([[1, 2], [3], [4]], [b"1,2,a3,b4,"])
    for number in range(PORTION):
        outbox.add((number,), make)
    assert len(wire.writes) == 2, "a portion leaves at once"
    assert (outbox.pieces, outbox.drafts, len(made)) == ([], [], 4)
    assert outbox.taken + outbox.unsent == sum(map(len, wire.writes))
    outbox.add((5,), make)
    outbox.end()
    outbox.add((6,), make)
    assert (outbox.pieces, outbox.drafts, len(made)) == ([], [], 4)
    await asyncio.sleep(0)
    assert len(wire.writes) == 2


async def test_what_is_written_through_leaves_at_once_and_after_what_is_queued() -> None:
    outbox, wire = opened()
    outbox.corked = True
    assert outbox.write_through(b"alone") == 5
    assert (wire.writes, outbox.unsent) == ([b"alone"], 5)
    outbox.write(b"piece,")
    assert outbox.write_through(b"second,") == len("alonepiece,second,")
    outbox.add((1,), lambda _: b"draft,")
    assert outbox.write_through(b"last") == len("alonepiece,second,draft,last")
    assert wire.writes == [b"alone", b"piece,second,", b"draft,last"]
    assert outbox.taken + outbox.unsent == len("alonepiece,second,draft,last")
    outbox.end()
    outbox.write_through(b"late")
    assert len(wire.writes) == 3


async def test_nothing_overtakes_a_draft() -> None:
    outbox, wire = opened()
    outbox.add((1,), lambda _: b"draft,")
    outbox.write_now(b"now")
    await asyncio.sleep(0)
    assert b"".join(wire.writes) == b"draft,now"


async def test_a_corked_outbox_keeps_its_drafts() -> None:
    outbox, wire = opened()
    outbox.corked = True
    for number in range(2 * PORTION):
        outbox.add((number,), lambda drafts: b"x" * len(drafts))
    await asyncio.sleep(0)
    assert wire.writes == []
    outbox.flush()
    assert wire.writes == [b"x" * 2 * PORTION]
