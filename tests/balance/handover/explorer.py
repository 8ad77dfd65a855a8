"""Every way in which some members can hand one queue over: the shipped machine, all interleavings.

The members' stays are the shipped values, changed by the shipped functions and nothing else. Around
them is a small model of all that can happen: a broker with two locks and a stored offset, a bus that
brings messages in any order or not at all, shells that start, finish and commit messages, and
faults. Who is to have the queue changes at any time. Members know nothing of each other: who is to
have the queue claims it from anybody, or takes it as if nobody had it, at any time. So what a table
says cannot matter for safety.

A request is carried out and answered in one step, unless a case has `late` answers: what others do
between the two matters where a member tells something before its request is answered.

`explore` counts states in which a law is broken. `stuck` are states from which the end, all messages
finished and stored, cannot be reached any more without another fault or change of target.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec
from msgspec.structs import replace

from pocketmq.balance.consumer.instructions import Instruction
from pocketmq.balance.handover import (
    HandoverSettings,
    HandoverTimes,
    giving,
    leases,
    lock_owner,
    queue,
    steps,
    taking,
)
from pocketmq.balance.handover import events as ev
from pocketmq.balance.handover import instructions as do
from pocketmq.balance.handover.messages import Give
from pocketmq.balance.handover.stay import Phase, Stay, Step
from pocketmq.balance.handover.tail import Others
from pocketmq.model import MessageQueue

QUEUE = MessageQueue("t", "b", 0)
NAMES = ("A@pm1", "B@pm1", "C@pm1")
NEVER = 1e12
_WAITING = (Phase.WANTED, Phase.CLAIMED)


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """What to explore: sizes, and how many of each fault may happen."""

    overlap: bool = True
    members: int = 2
    messages: int = 2
    claims: int = 2
    """How often each member may claim."""
    flips: int = 2
    """How often the target changes."""
    at_once: int = 1
    """How many messages of a queue a member handles at the same time."""
    loss: int = 0
    """Messages on the bus that get lost."""
    crash: int = 0
    blip: int = 0
    """A member is on no list for a while and learns of it late."""
    restart: int = 0
    """The broker restarts: all locks are free."""
    expire: int = 0
    """A fenced member's locks end by time."""
    lost: bool = False
    """A fenced member that hears of another owner drops the queue before it asks again."""
    silence: int = 0
    """A request is carried out, or not, and its answer gets lost."""
    renew: int = 0
    release: int = 0
    """An owner that is not the target releases the queue, though nobody claimed it."""
    impatient: int = 0
    """`drain_wait` is over before the messages are finished."""
    late: int = 0
    """A request is carried out, and others do something before it is answered."""
    copies: int = 0
    """Messages on the bus that are heard again."""
    reborn: int = 0
    """A process ends and starts again at once with its id: it counts its claims from 1 again."""
    patient: bool = False
    """An heir whose lock is refused may ask again before it gives the attempt up."""
    fresh: bool = False
    """The group has no stored offset yet, and new groups start at the end of the queue."""

    @property
    def budgets(self) -> tuple[int, ...]:
        return (
            self.loss,
            self.crash,
            self.blip,
            self.restart,
            self.expire,
            self.silence,
            self.renew,
            self.release,
            self.impatient,
            self.late,
            self.copies,
            self.reborn,
        )


_BUDGETS = {
    name: place
    for place, name in enumerate(
        (
            *("loss", "crash", "blip", "restart", "expire", "silence"),
            *("renew", "release", "impatient", "late", "copies", "reborn"),
        )
    )
}


class Value(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """Part of a world, or a world. Most of its parts are those of the world before, hashed already."""


class Shelf(Value, frozen=True):
    """A queue in a shell."""

    start: int
    next: int
    barrier: int | None
    committed: int
    in_flight: frozenset[int] = frozenset()
    hole: frozenset[int] = frozenset()
    commit: int | None = None
    stopped: bool = False
    fenced: bool = False
    draining: bool = False
    filling: bool = False
    tried: int = -1
    """The highest offset of a commit that was not answered."""

    def low(self) -> int:
        return min([self.next, *self.in_flight, *self.hole])


class Member(Value, frozen=True):
    stay: int
    shelf: Shelf | None
    requests: frozenset[tuple[Any, ...]]
    claims: int


class World(Value, frozen=True):
    run: int | None
    tail: int | None
    stored: int
    target: int
    flips: int
    members: tuple[Member, ...]
    started: tuple[int, ...]
    finished: tuple[bool, ...]
    bus: frozenset[tuple[Any, ...]]
    listed: tuple[bool, ...]
    alive: tuple[bool, ...]
    left: tuple[int, ...]


Label = tuple[Any, ...]
"""What happened; made a text only where a way is shown, since most are not."""
Move = tuple[Label, World, bool]


class Found(msgspec.Struct):
    """What an exploration found: numbers of states, and one way to the first of each kind."""

    states: int = 0
    both: int = 0
    """Two members start messages."""
    twice: int = 0
    lost: int = 0
    """The stored offset is above a message that nobody finished."""
    backwards: int = 0
    stuck: int = 0
    ways: dict[str, str] = {}

    def broken(self) -> dict[str, int]:
        names = ("both", "twice", "lost", "backwards", "stuck")
        return {name: getattr(self, name) for name in names if getattr(self, name)}


@cache
def order(request: tuple[Any, ...]) -> str:
    """Return a key that sorts requests the same way in every run."""
    return str(
        [
            sorted(map(str, part))
            if isinstance(part, frozenset)
            else order(part)
            if isinstance(part, tuple)
            else part
            for part in request
            if not isinstance(part, msgspec.Struct)
        ]
    )


class Explorer:
    """A breadth-first search over all worlds of a case."""

    def __init__(self, case: Case) -> None:
        self.case = case
        times = HandoverTimes(lock_given=float(case.patient), first_recheck=NEVER)
        self.settings = [
            HandoverSettings(group="g", client_id=name, boot="1", overlap=case.overlap, times=times)
            for name in NAMES[: case.members]
        ]
        self.owners = [settings.owner for settings in self.settings]
        self.owners += [lock_owner(settings.client_id, "0") for settings in self.settings]
        self.stays: list[Stay | None] = [None]
        self.ids: dict[Stay | None, int] = {None: 0}
        self.steps: dict[tuple[Any, ...], tuple[int, tuple[Instruction, ...]]] = {}

    # The shipped machine.

    def keep(self, stay: Stay | None) -> int:
        """Return the number of a stay; times do not matter here, only their order."""
        if stay is not None:
            stay = replace(
                stay,
                since=0.0,
                retry_at=None if stay.retry_at is None else 0.0,
                recheck_at=NEVER,
                tries=stay.tries if stay.tries < 3 else 2 - stay.tries % 2,
                asked_at=0.0,
                leased=0.0,
                fenced=None if stay.fenced is None else 0.0,
            )
            if stay.phase is Phase.WANTED:
                stay = replace(stay, retry_at=None, tries=0)
        number = self.ids.get(stay)
        if number is None:
            number = self.ids[stay] = len(self.stays)
            self.stays.append(stay)
        return number

    def shipped(
        self, i: int, name: str, number: int, *facts: Any
    ) -> tuple[int, tuple[Instruction, ...]]:
        key = (i, name, number, *facts)
        known = self.steps.get(key)
        if known is None:
            step = self.call(i, name, self.stays[number] or Stay(queue=QUEUE), facts)
            known = self.steps[key] = (self.keep(step.stay), step.instructions)
        return known

    def call(self, i: int, name: str, stay: Stay, facts: tuple[Any, ...]) -> Step:
        settings = self.settings[i]
        match name:
            case "claim":
                return Step(taking.claim(stay, NAMES[facts[0]], facts[1], 0.0))
            case "take":
                return taking.take(stay, facts[0], do.HandoverKind.ORPHAN, 0.0)
            case "given":
                return taking.given(stay, NAMES[facts[0]], facts[1], settings, 0.0)
            case "claimed":
                return giving.claimed(stay, NAMES[facts[0]], facts[1], 0.0)
            case "release":
                return giving.release(stay, do.HandoverKind.ORPHAN, 0.0)
            case "answer":
                return queue.answer(stay, facts[0], settings, *facts[1:] or (0.0,))
            case "poll":
                return queue.poll(stay, facts[0], settings, facts[1])
            case "fence":
                return leases.fence(stay, 0.0)
            case "drop":
                return steps.drop(stay, settings, 0.0, do.HandoverKind.LOST)
            case "renewing":
                return Step(leases.renewing(stay))
            case "renewed":
                return leases.renewed(stay, facts[0], facts[1], settings, 0.0, sent_at=0.0)
        raise AssertionError(name)

    def advance(self, world: World, i: int, name: str, *facts: Any) -> World:
        """Return the world after one function was called for a member."""
        member = world.members[i]
        number, instructions = self.shipped(i, name, member.stay, *facts)
        member = replace(member, stay=number)
        bus = world.bus
        for what in instructions:
            member, bus = self.carry_out(i, member, bus, what)
        return self.settled(replace(self.put(world, i, member), bus=bus), i)

    def put(self, world: World, i: int, member: Member) -> World:
        members = world.members
        return replace(world, members=(*members[:i], member, *members[i + 1 :]))

    def carry_out(
        self, i: int, member: Member, bus: frozenset[Any], what: Instruction
    ) -> tuple[Member, frozenset[Any]]:
        shelf, requests = member.shelf, member.requests
        match what:
            case do.Tell(message=Give(to=to, offset=offset, number=number)):
                bus |= {("give", i, NAMES.index(to), number, offset)}
            case do.Lock(parts=parts):
                requests |= {("lock", parts)}
            case do.Unlock(parts=parts, owner=owner):
                requests |= {("unlock", parts, owner)}
            case do.ReadStart():
                requests |= {("read",)}
            case do.StoreOffset(offset=offset):
                requests |= {("store", offset)}
            case do.Run(offset=offset, barrier=barrier):
                assert shelf is None
                shelf = Shelf(offset, offset, barrier, offset if barrier is None else -1)
            case do.Drop():
                assert shelf is not None
                shelf = None
                requests = frozenset(r for r in requests if r[0] not in ("resume", "stopped"))
            case do.Recheck() | do.ReportChange() | do.Warn():
                pass
            case _:
                assert shelf is not None, what
                shelf, requests = self.on_shelf(shelf, requests, what)
        return replace(member, shelf=shelf, requests=requests), bus

    def on_shelf(
        self, shelf: Shelf, requests: frozenset[Any], what: Instruction
    ) -> tuple[Shelf, frozenset[Any]]:
        match what:
            case do.LiftBarrier():
                assert shelf.barrier is not None
                shelf = replace(shelf, committed=shelf.barrier, barrier=None)
            case do.FillHole(first=first, end=end):
                hole = frozenset(range(first, end))
                shelf = replace(shelf, barrier=None, committed=first, hole=hole, filling=True)
            case do.StopStarting():
                shelf = replace(shelf, stopped=True)
                requests |= {("stopped", shelf.next)}
            case do.Drain():
                shelf = replace(shelf, draining=True)
            case do.Fence():
                shelf = replace(shelf, fenced=True)
            case do.Resume():
                requests |= {("resume",)}
            case _:
                raise AssertionError(what)
        return shelf, requests

    def settled(self, world: World, i: int) -> World:
        """Report what a shell has finished waiting for, and start the commit of a drain."""
        member = world.members[i]
        shelf = member.shelf
        if shelf is None:
            return world
        if shelf.filling and not shelf.hole:
            member = replace(member, shelf=replace(shelf, filling=False))
            return self.advance(self.put(world, i, member), i, "answer", ev.HoleFilled(QUEUE))
        idle = not shelf.in_flight and not shelf.hole and shelf.commit is None
        if shelf.draining and idle and not shelf.fenced:
            if shelf.next > shelf.committed:
                shelf = replace(shelf, commit=shelf.next)
                return self.put(world, i, replace(member, shelf=shelf))
            member = replace(member, shelf=replace(shelf, draining=False))
            return self.advance(self.put(world, i, member), i, "answer", ev.Drained(QUEUE))
        return world

    # What can happen.

    def first(self) -> World:
        case = self.case
        return World(
            None,
            None,
            -1 if case.fresh else 0,
            0,
            0,
            (Member(0, None, frozenset(), 0),) * case.members,
            (0,) * case.messages,
            (False,) * case.messages,
            frozenset(),
            (True,) * case.members,
            (True,) * case.members,
            case.budgets,
        )

    def spend(self, world: World, name: str) -> World | None:
        place = _BUDGETS[name]
        left = world.left
        if not left[place]:
            return None
        return replace(world, left=(*left[:place], left[place] - 1, *left[place + 1 :]))

    def moves(self, world: World) -> Iterator[Move]:
        """Yield what can happen next; the last value says whether it happens by itself."""
        if world.flips < self.case.flips:
            for i in range(self.case.members):
                if i != world.target and world.listed[i]:
                    yield ("target", i), replace(world, target=i, flips=world.flips + 1), False
        yield from self.bus_moves(world)
        spent = self.spend(world, "restart")
        if spent is not None and (world.run is not None or world.tail is not None):
            yield ("broker restarts",), self.restarted(spent), False
        for i, member in enumerate(world.members):
            if not world.alive[i]:
                continue
            yield from self.faults(world, i, member)
            for request in sorted(member.requests, key=order):
                yield from self.served(world, i, member, request)
            yield from self.wishes(world, i, member)
            if member.shelf is not None:
                yield from self.handling(world, i, member, member.shelf)

    def gone(self, world: World, i: int) -> frozenset[str]:
        """Return the lock owners on no list, as member i may know them."""
        members = self.case.members
        return frozenset(
            owner
            for j, owner in enumerate(self.owners)
            if (j in (world.run, world.tail) if j >= members else j != i and not world.listed[j])
        )

    def bus_moves(self, world: World) -> Iterator[Move]:
        for message in sorted(world.bus):
            spent = self.spend(world, "loss")
            if spent is not None:
                yield ("lost", message), replace(spent, bus=world.bus - {message}), False
            spent = self.spend(world, "copies")
            if spent is not None:
                yield from self.hearing(spent, message, natural=False)
            yield from self.hearing(replace(world, bus=world.bus - {message}), message)

    def hearing(
        self, heard: World, message: tuple[Any, ...], *, natural: bool = True
    ) -> Iterator[Move]:
        kind, sender, to, number, *more = message
        if not heard.alive[to]:
            yield ("nobody hears", message), heard, natural
            return
        member = heard.members[to]
        if kind == "give":
            give = Give(NAMES[to], QUEUE, more[0], number)
            after = self.advance(heard, to, "given", sender, give)
            yield (to, "hears", message), after, natural
            return
        stay = self.stays[member.stay]
        if stay is None or stay.phase in _WAITING:
            yield (to, "has nothing for", message), heard, natural
        elif heard.target != to or stay.phase is not Phase.RUNNING:
            after = self.advance(heard, to, "claimed", sender, number)
            changed = after.members[to].stay != member.stay or after.bus != heard.bus
            if changed or stay.phase is not Phase.RUNNING:
                yield (to, "hears", message), after, natural

    def faults(self, world: World, i: int, member: Member) -> Iterator[Move]:
        spent = self.spend(world, "crash")
        if spent is not None:
            dead = replace(
                spent,
                alive=(*world.alive[:i], False, *world.alive[i + 1 :]),
                listed=(*world.listed[:i], False, *world.listed[i + 1 :]),
            )
            dead = self.put(dead, i, Member(0, None, frozenset(), 0))
            yield (i, "crashes"), self.retargeted(dead, i), False
        spent = self.spend(world, "reborn")
        if spent is not None and member.stay:
            former = self.case.members + i
            again = replace(
                spent,
                run=former if world.run == i else world.run,
                tail=former if world.tail == i else world.tail,
            )
            again = self.put(again, i, Member(0, None, frozenset(), 0))
            yield (i, "starts again"), again, False
        spent = self.spend(world, "blip")
        if spent is not None and world.listed[i] and member.shelf is not None:
            away = replace(spent, listed=(*world.listed[:i], False, *world.listed[i + 1 :]))
            yield (i, "is not listed"), self.retargeted(away, i), False
        if not world.listed[i]:
            # It learns of it: the connection closed. Then it comes back, and asks for its locks.
            back = self.fenced(world, i)
            back = replace(back, listed=(*world.listed[:i], True, *world.listed[i + 1 :]))
            yield (i, "is back"), self.renewing(back, i), True
        stay = self.stays[member.stay]
        spent = self.spend(world, "expire")
        if spent is not None and stay is not None and stay.locks:
            yield (i, "is fenced"), self.fenced(spent, i), False
        if stay is not None and stay.fenced is not None and not stay.renewing:
            yield (i, "asks again"), self.renewing(world, i), True
            if self.case.expire and (world.run == i or world.tail == i):
                run = None if world.run == i else world.run
                tail = None if world.tail == i else world.tail
                yield ("the leases of", i, "end"), replace(world, run=run, tail=tail), False
            if self.case.lost and world.run not in (i, None):
                yield (i, "drops what was taken"), self.advance(world, i, "drop"), True
        spent = self.spend(world, "renew")
        if spent is not None and stay is not None and stay.locks and not stay.renewing:
            yield (i, "renews"), self.renewing(spent, i), True

    def retargeted(self, world: World, i: int) -> World:
        if world.target != i:
            return replace(world, flips=self.case.flips)
        heirs = [j for j in range(self.case.members) if world.listed[j]]
        return replace(world, target=heirs[0] if heirs else i, flips=self.case.flips)

    def fenced(self, world: World, i: int) -> World:
        """Close a member's connection: requests are not answered, and it fences."""
        member = world.members[i]
        if member.stay:
            world = self.advance(world, i, "fence")
        shelf = world.members[i].shelf
        if shelf is not None and shelf.commit is not None:
            shelf = replace(shelf, commit=None, tried=max(shelf.tried, shelf.commit))
            world = self.put(world, i, replace(world.members[i], shelf=shelf))
        for request in sorted(world.members[i].requests, key=order):
            if request not in world.members[i].requests or request[0] == "stopped":
                continue
            world = self.failed(world, i, request)
        return world

    def renewing(self, world: World, i: int) -> World:
        stay = self.stays[world.members[i].stay]
        if stay is None or not stay.locks or stay.renewing:
            return world
        world = self.advance(world, i, "renewing")
        member = world.members[i]
        return self.put(
            world, i, replace(member, requests=member.requests | {("renew", stay.locks)})
        )

    def restarted(self, world: World) -> World:
        world = replace(world, run=None, tail=None)
        for i in range(self.case.members):
            if world.alive[i]:
                world = self.fenced(world, i)
        return world

    # Requests to the broker.

    def resumed(self, world: World, i: int) -> World:
        member = world.members[i]
        shelf = member.shelf
        if shelf is None:
            return world
        known = max(shelf.start, shelf.committed, shelf.tried, shelf.barrier or 0)
        if world.stored > known:
            return self.advance(world, i, "answer", ev.Overtaken(QUEUE))
        member = replace(member, shelf=replace(shelf, fenced=False))
        return self.settled(self.put(world, i, member), i)

    def served(
        self, world: World, i: int, member: Member, request: tuple[Any, ...]
    ) -> Iterator[Move]:
        asked = self.put(world, i, replace(member, requests=member.requests - {request}))
        if request[0] == "stopped":
            event = ev.StartingStopped(QUEUE, request[1])
            yield (i, "stopped at", request[1]), self.advance(asked, i, "answer", event), True
            return
        if request[0] == "resume":
            yield (i, "resumes"), self.resumed(asked, i), True
            return
        if request[0] == "late":
            yield from self.answered(asked, i, request[1], request[2])
            return
        done, event = self.at_broker(asked, i, request)
        yield from self.answered(done, i, request, event)
        spent = self.spend(done, "late")
        if spent is not None:
            waiting = done.members[i].requests | {("late", request, event)}
            late = self.put(spent, i, replace(done.members[i], requests=waiting))
            yield (i, ":", request, "done"), late, False
        spent = self.spend(world, "silence")
        if spent is not None:
            yield (i, ":", request, "without answer"), self.failed(spent, i, request), False
            late = replace(done, left=spent.left)
            late = self.put(late, i, spent.members[i])
            yield (i, ":", request, "done, no answer"), self.failed(late, i, request), False

    def answered(self, done: World, i: int, request: tuple[Any, ...], event: Any) -> Iterator[Move]:
        if isinstance(event, frozenset):
            after = self.advance(done, i, "renewed", request[1], event)
        else:
            after = self.advance(done, i, "answer", event)
        yield (i, ":", request, "->", event), after, True
        if self.case.patient and isinstance(event, ev.Locked):
            after = self.advance(done, i, "answer", event, NEVER)
            yield (i, ":", request, "-> in the end", event), after, True

    def at_broker(self, world: World, i: int, request: tuple[Any, ...]) -> tuple[World, Any]:
        match request:
            case ("lock", parts):
                world, granted = self.locked(world, i, parts)
                return world, ev.Locked(QUEUE, granted)
            case ("renew", parts):
                return self.locked(world, i, parts)
            case ("unlock", parts, owner):
                j = self.owners.index(owner)
                if ev.LockPart.RUN in parts and world.run == j:
                    world = replace(world, run=None)
                if ev.LockPart.TAIL in parts and world.tail == j:
                    world = replace(world, tail=None)
                return world, ev.Unlocked(QUEUE, parts, owner, True)
            case ("read",):
                if world.stored < 0:
                    return world, ev.StartRead(QUEUE, self.end(world), False)
                return world, ev.StartRead(QUEUE, world.stored)
            case ("store", offset):
                return replace(world, stored=offset), ev.OffsetStored(QUEUE, True)
        raise AssertionError(request)

    def end(self, world: World) -> int:
        """Return where a new group starts: messages are there from the first start on."""
        return 0 if not any(world.started) else self.case.messages

    def locked(self, world: World, i: int, parts: Any) -> tuple[World, frozenset[ev.LockPart]]:
        granted = set()
        if ev.LockPart.RUN in parts and world.run in (None, i):
            granted.add(ev.LockPart.RUN)
            world = replace(world, run=i)
        if ev.LockPart.TAIL in parts and world.tail in (None, i):
            granted.add(ev.LockPart.TAIL)
            world = replace(world, tail=i)
        return world, frozenset(granted)

    def failed(self, world: World, i: int, request: tuple[Any, ...]) -> World:
        member = world.members[i]
        world = self.put(world, i, replace(member, requests=member.requests - {request}))
        match request:
            case ("late", asked, _):
                return self.failed(world, i, asked)
            case ("resume",):
                return world
            case ("lock", _):
                return self.advance(world, i, "answer", ev.Locked(QUEUE, None))
            case ("renew", parts):
                return self.advance(world, i, "renewed", parts, None)
            case ("unlock", parts, owner):
                return self.advance(world, i, "answer", ev.Unlocked(QUEUE, parts, owner, False))
            case ("read",):
                return self.advance(world, i, "answer", ev.StartRead(QUEUE, None))
            case ("store", _):
                return self.advance(world, i, "answer", ev.OffsetStored(QUEUE, False))
        raise AssertionError(request)

    # What a member decides, and time.

    def wishes(self, world: World, i: int, member: Member) -> Iterator[Move]:
        stay = self.stays[member.stay]
        waiting = stay is None or stay.phase in _WAITING
        if waiting and world.target == i and world.listed[i]:
            if member.claims < self.case.claims:
                number = member.claims + 1
                for j in range(self.case.members):
                    if j != i and world.listed[j]:
                        claimed = self.put(world, i, replace(member, claims=number))
                        claimed = self.advance(claimed, i, "claim", j, number)
                        bus = claimed.bus | {("claim", i, j, number)}
                        yield (i, "claims from", j), replace(claimed, bus=bus), True
            yield (i, "takes"), self.advance(world, i, "take", self.gone(world, i)), True
        if stay is None:
            return
        if waiting and world.target != i:
            yield (i, "gives up"), self.advance(world, i, "release"), True
        spent = self.spend(world, "release")
        if spent is not None and world.target != i and stay.phase is Phase.RUNNING:
            yield (i, "releases"), self.advance(spent, i, "release"), False
        if stay.retry_at is not None:
            for away in (False, True) if stay.barrier is not None else (False,):
                others = Others(self.gone(world, i), away)
                yield (i, "polls,", away), self.advance(world, i, "poll", others, 0.0), True
        spent = self.spend(world, "impatient")
        if spent is not None and stay.phase in (Phase.STOPPING, Phase.DRAINING):
            others = Others(self.gone(world, i))
            yield (i, "drained enough"), self.advance(spent, i, "poll", others, NEVER), False

    def handling(self, world: World, i: int, member: Member, shelf: Shelf) -> Iterator[Move]:
        may_start = not shelf.stopped and not shelf.fenced
        if (
            may_start
            and shelf.next < self.case.messages
            and len(shelf.in_flight) < self.case.at_once
        ):
            offset = shelf.next
            after = replace(shelf, next=offset + 1, in_flight=shelf.in_flight | {offset})
            started = self.counted(world.started, offset)
            world2 = self.put(world, i, replace(member, shelf=after))
            yield (i, "starts", offset), replace(world2, started=started), True
        for offset in sorted(shelf.in_flight | shelf.hole):
            after = replace(shelf, in_flight=shelf.in_flight - {offset}, hole=shelf.hole - {offset})
            finished = (*world.finished[:offset], True, *world.finished[offset + 1 :])
            world2 = self.put(world, i, replace(member, shelf=after))
            world2 = replace(world2, finished=finished)
            if offset in shelf.hole:
                world2 = replace(world2, started=self.counted(world.started, offset))
            yield (i, "finishes", offset), self.settled(world2, i), True
        if shelf.commit is not None:
            committed = max(shelf.committed, shelf.commit)
            done = replace(shelf, commit=None, committed=committed)
            world2 = self.put(world, i, replace(member, shelf=done))
            # An owner that had no answer looks first: the next one may have committed since.
            if not (shelf.stopped and shelf.tried >= shelf.commit <= world.stored):
                world2 = replace(world2, stored=shelf.commit)
            yield (i, "commits", shelf.commit), self.settled(world2, i), True
            yield from self.commit_unanswered(world, i, member, shelf)
        elif shelf.barrier is None and not shelf.fenced and shelf.low() > shelf.committed:
            sent = replace(shelf, commit=shelf.low())
            yield (i, "sends commit"), self.put(world, i, replace(member, shelf=sent)), True
        if self.stays[member.stay] and shelf.commit is None and may_start and shelf.barrier is None:
            yield from self.rechecked(world, i, member, shelf)

    def commit_unanswered(
        self, world: World, i: int, member: Member, shelf: Shelf
    ) -> Iterator[Move]:
        spent = self.spend(world, "silence")
        if spent is None or shelf.commit is None:
            return
        tried = replace(shelf, commit=None, tried=max(shelf.tried, shelf.commit))
        last = shelf.draining and not shelf.in_flight and shelf.commit == shelf.next
        for stored in (world.stored, shelf.commit):
            shelf2 = replace(tried, draining=False) if last else tried
            after = self.put(replace(spent, stored=stored), i, replace(member, shelf=shelf2))
            if last:
                after = self.advance(after, i, "answer", ev.Drained(QUEUE, False))
            yield (i, "commits", shelf.commit, "without answer", stored), after, False

    def rechecked(self, world: World, i: int, member: Member, shelf: Shelf) -> Iterator[Move]:
        if world.stored < shelf.committed:
            sent = replace(shelf, commit=shelf.committed)
            yield (i, "repairs"), self.put(world, i, replace(member, shelf=sent)), True
        elif world.stored > max(shelf.start, shelf.committed, shelf.tried):
            event = ev.Overtaken(QUEUE)
            yield (i, "is overtaken"), self.advance(world, i, "answer", event), True

    @staticmethod
    def counted(started: tuple[int, ...], offset: int) -> tuple[int, ...]:
        return (*started[:offset], min(2, started[offset] + 1), *started[offset + 1 :])

    # The search.

    def explore(self, limit: int, *, deep: bool) -> Found:
        first = self.first()
        known: dict[World, int] = {first: 0}
        came: list[tuple[int, Label]] = [(-1, ())]
        back: list[list[int]] = [[]]
        ends: list[int] = []
        found = Found(ways={})
        waiting = deque([first])
        while waiting:
            world = waiting.pop() if deep else waiting.popleft()
            number = known[world]
            self.judge(world, number, came, found)
            if world.stored == self.case.messages and all(world.finished):
                ends.append(number)
            for label, after, natural in self.moves(world):
                if after == world:
                    continue
                place = known.get(after)
                if place is None:
                    if len(known) >= limit:
                        raise AssertionError(f"more than {limit} states")
                    place = known[after] = len(came)
                    came.append((number, label))
                    back.append([])
                    waiting.append(after)
                if natural:
                    back[place].append(number)
                if after.stored < world.stored:
                    self.note(found, "backwards", place, came)
        found.states = len(known)
        self.find_stuck(back, ends, came, found)
        return found

    def judge(self, world: World, number: int, came: list[tuple[int, Label]], found: Found) -> None:
        starters = [
            i
            for i, member in enumerate(world.members)
            if member.shelf is not None and not member.shelf.stopped and not member.shelf.fenced
        ]
        if len(starters) > 1:
            self.note(found, "both", number, came)
        if any(count > 1 for count in world.started):
            self.note(found, "twice", number, came)
        if not all(world.finished[: max(0, world.stored)]):
            self.note(found, "lost", number, came)

    def find_stuck(
        self, back: list[list[int]], ends: list[int], came: list[tuple[int, Label]], found: Found
    ) -> None:
        """Count the states from which no end can be reached."""
        reached = bytearray(len(back))
        waiting = list(ends)
        for number in ends:
            reached[number] = 1
        while waiting:
            for number in back[waiting.pop()]:
                if not reached[number]:
                    reached[number] = 1
                    waiting.append(number)
        for number, good in enumerate(reached):
            if not good:
                self.note(found, "stuck", number, came)

    @staticmethod
    def note(found: Found, law: str, number: int, came: list[tuple[int, Label]]) -> None:
        setattr(found, law, getattr(found, law) + 1)
        if law not in found.ways:
            way = []
            while number > 0:
                number, label = came[number]
                way.append(" ".join(map(str, label)))
            found.ways[law] = "; ".join(reversed(way))


def explore(case: Case, limit: int = 5_000_000, *, deep: bool = False) -> Found:
    """Explore a case to its end; `deep` finds harm sooner, but not the shortest way to it."""
    return Explorer(case).explore(limit, deep=deep)


if __name__ == "__main__":
    import time

    case = Case(**dict(word.split("=") for word in sys.argv[1:]))  # type: ignore[arg-type]
    case = msgspec.convert(msgspec.to_builtins(case), Case, strict=False)
    begun = time.process_time()
    result = explore(case)
    print(f"{case}: {result.states} states, {time.process_time() - begun:.1f} s, {result.broken()}")
    for law, way in result.ways.items():
        print(f"  {law}: {way.replace(str(QUEUE), 'Q').replace(repr(QUEUE), 'Q')}")
