"""A small world for several members: brokers with leased locks and offsets, a bus, and shells.

Everything takes a random time, decided by one seed. The world watches the invariants itself and
keeps what was broken in `broken`: S1 two starters, S2 an offset stored above an unfinished message,
S3 messages twice, S4 an offset that went back.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter, defaultdict
from collections.abc import Callable

from pocketmq.balance.consumer.instructions import Instruction
from pocketmq.balance.handover import HandoverSettings, advance, lock_owner, new_group
from pocketmq.balance.handover import events as ev
from pocketmq.balance.handover import instructions as do
from pocketmq.balance.handover.messages import BusMessage
from pocketmq.model import MessageQueue

LEASE = 60.0


class Held:
    """A queue in a shell: what is pulled, started, finished and committed."""

    def __init__(self, offset: int, barrier: int | None) -> None:
        self.next = offset
        self.start = offset
        self.barrier = barrier
        self.hole: set[int] = set()
        self.in_flight: set[int] = set()
        self.committed = -1
        self.stopped = False
        self.fenced = False
        self.draining = False
        self.filling = False
        self.committing = False
        self.dropped = False

    def low(self) -> int:
        """Return the offset below which all is finished, as far as this stay knows."""
        return min([*self.in_flight, *self.hole, self.next])


class Shell:
    """One member: its machine, and queues."""

    def __init__(self, world: World, settings: HandoverSettings) -> None:
        self.world = world
        self.settings = settings
        self.me = settings.client_id
        self.owner = lock_owner(settings.client_id, settings.boot)
        self.group = new_group(settings)
        self.held: dict[MessageQueue, Held] = {}
        self.alive = True
        self.left = False
        self.down: set[str] = set()
        self.shown: frozenset[str] = frozenset()
        self.unheard: dict[int, tuple[float, ev.Heard]] = {}
        """What is on its way to it on the bus, and when the broker stores it."""
        self.timer = 0
        self.wakes = 0
        self.log: list[str] = []
        self.reports: list[do.ReportChange] = []
        self.warnings: list[str] = []

    def feed(self, event: ev.HandoverEvent) -> None:
        if not self.alive:
            return
        result = advance(self.group, event, self.world.now)
        self.group = result.group
        if self.world.trace:
            self.log.append(f"{self.world.now:.4f} {self.me} < {event}")
        for instruction in result.instructions:
            if self.world.trace:
                self.log.append(f"{self.world.now:.4f} {self.me} > {instruction}")
            self.carry_out(instruction)

    def carry_out(self, what: Instruction) -> None:  # noqa: C901
        world = self.world
        match what:
            case do.WakeAt(when=when):
                self.timer += 1
                number = self.timer
                world.at(max(when, world.now), lambda: self.wake(number))
            case do.Tell(broker=broker, message=message):
                if broker not in self.down:
                    world.tell(self, broker, message)
            case do.AskMembers():
                world.later(lambda: world.show_members(self))
            case do.Lock(queue=queue, parts=parts):
                self.request(
                    queue,
                    lambda: world.lock(self, queue, parts),
                    lambda granted: ev.Locked(queue, granted),
                    None,
                )
            case do.Unlock(queue=queue, parts=parts, owner=owner):
                self.request(
                    queue,
                    lambda: world.unlock(self, owner, queue, parts),
                    lambda done: ev.Unlocked(queue, parts, owner, done),
                    False,
                )
            case do.Renew(broker=broker, locks=locks):
                sent = world.now

                def renew() -> frozenset[tuple[MessageQueue, ev.LockPart]]:
                    return frozenset(
                        (queue, part)
                        for queue, part in locks
                        if world.lock(self, queue, frozenset({part}))
                    )

                some = next(iter(locks))[0]
                self.request(some, renew, lambda granted: ev.Renewed(broker, sent, granted), None)
            case do.ReadStart(queue=queue):
                self.request(
                    queue,
                    lambda: world.read(queue),
                    lambda value: ev.StartRead(queue, *value),
                    (None, True),
                )
            case do.StoreOffset(queue=queue, offset=offset):
                self.request(
                    queue,
                    lambda: world.store(self, queue, offset),
                    lambda done: ev.OffsetStored(queue, done),
                    False,
                )
            case do.Run(queue=queue, offset=offset, barrier=barrier):
                assert queue not in self.held
                self.held[queue] = Held(offset, barrier)
                self.pump(queue, self.held[queue])
                self.commit_loop(queue, self.held[queue])
            case do.LiftBarrier(queue=queue):
                self.held[queue].barrier = None
            case do.FillHole(queue=queue, first=first, end=end):
                held = self.held[queue]
                held.hole = set(range(first, end))
                held.barrier, held.filling = None, True
                for offset in sorted(held.hole):
                    self.handle(queue, held, offset, hole=True)
                self.settle(queue, held)
            case do.StopStarting(queue=queue):
                held = self.held[queue]
                held.stopped = True
                self.say_stopped(queue, held)
            case do.Drain(queue=queue):
                self.held[queue].draining = True
                self.settle(queue, self.held[queue])
            case do.Drop(queue=queue):
                self.held.pop(queue).dropped = True
            case do.Fence(queue=queue):
                self.held[queue].fenced = True
            case do.Resume(queue=queue):
                self.resume(queue, self.held[queue])
            case do.Recheck(queue=queue):
                self.recheck(queue, self.held[queue])
            case do.ReportChange():
                self.reports.append(what)
            case do.Warn(text=text):
                self.warnings.append(text)
            case do.LeaveGroup():
                self.left = True
                world.depart(self)

    def say_stopped(self, queue: MessageQueue, held: Held) -> None:
        """Answer that starting has stopped; where order is kept, after the last handler."""
        if not self.settings.overlap and held.in_flight and not held.dropped:
            self.world.later(lambda: self.say_stopped(queue, held), 20.0)
            return
        event = ev.StartingStopped(queue, held.next)
        self.world.later(lambda: self.live(queue, held, event))

    def live(self, queue: MessageQueue, held: Held, event: ev.HandoverEvent) -> None:
        if self.held.get(queue) is held:
            self.feed(event)

    def wake(self, number: int) -> None:
        if number == self.timer:
            self.wakes += 1
            self.feed(ev.TimerElapsed())

    def request(self, queue, work, answer, failed) -> None:  # type: ignore[no-untyped-def]
        """Send a request: it is carried out after a while, and answered after another one."""
        world = self.world

        def arrive() -> None:
            if queue.broker_name in self.down:
                world.later(lambda: self.feed(answer(failed)))
                return
            value = work()
            lost = world.chance(world.lose_answers)
            world.later(lambda: self.feed(answer(failed if lost else value)))

        if queue.broker_name in self.down:
            world.later(lambda: self.feed(answer(failed)))
        else:
            world.later(arrive)

    # Messages.

    def pump(self, queue: MessageQueue, held: Held) -> None:
        """Start messages as long as the queue is this member's."""
        if held.dropped or held.stopped or not self.alive:
            return
        if not held.fenced and held.next < self.world.end[queue] and len(held.in_flight) < 3:
            self.world.starting(self, queue, held.next)
            offset, held.next = held.next, held.next + 1
            self.handle(queue, held, offset)
        self.world.later(lambda: self.pump(queue, held), 30.0)

    def handle(self, queue: MessageQueue, held: Held, offset: int, hole: bool = False) -> None:
        if not hole:
            held.in_flight.add(offset)
        self.world.began[queue, offset] += 1
        if self.world.began[queue, offset] > 1:
            self.world.note("S3", f"{queue.queue_id}@{offset} twice, by {self.me}")

        def finish() -> None:
            if not self.alive or held.dropped:
                return
            held.in_flight.discard(offset)
            held.hole.discard(offset)
            self.world.finished[queue, offset] += 1
            self.settle(queue, held)

        if not self.world.hang:
            self.world.later(finish, self.world.work)

    def settle(self, queue: MessageQueue, held: Held) -> None:
        if held.filling and not held.hole:
            held.filling = False
            self.world.later(lambda: self.live(queue, held, ev.HoleFilled(queue)))
        if held.draining and not held.in_flight and not held.fenced and not held.committing:
            held.draining = False
            x = held.next
            if x <= held.committed:
                self.world.later(lambda: self.live(queue, held, ev.Drained(queue)))
                return
            self.commit(
                queue, held, x, lambda done: self.live(queue, held, ev.Drained(queue, done))
            )

    def commit(
        self, queue: MessageQueue, held: Held, offset: int, then: Callable[[bool], None]
    ) -> None:
        assert held.barrier is None
        assert not held.committing
        held.committing = True
        held.committed = max(held.committed, offset)

        def done(value: bool) -> None:
            held.committing = False
            if not held.dropped and self.alive:
                then(value)
                self.settle(queue, held)

        def arrive() -> None:
            if queue.broker_name in self.down:
                self.world.later(lambda: done(False))
                return
            self.world.store(self, queue, offset)
            self.world.later(lambda: done(True))

        self.world.later(arrive)

    def commit_loop(self, queue: MessageQueue, held: Held) -> None:
        if held.dropped or not self.alive:
            return
        free = held.barrier is None and not held.fenced and not held.stopped
        if free and not held.committing and held.low() > held.committed:
            self.commit(queue, held, held.low(), lambda _: None)
        self.world.later(lambda: self.commit_loop(queue, held), 100.0)

    def resume(self, queue: MessageQueue, held: Held) -> None:
        def arrive() -> None:
            if held.dropped or not self.alive or queue.broker_name in self.down:
                return
            known = max(held.start, held.committed, held.barrier or 0)
            if self.world.stored.get(queue, -1) > known:
                self.live(queue, held, ev.Overtaken(queue))
                return
            held.fenced = False
            self.settle(queue, held)

        self.world.later(arrive)

    def recheck(self, queue: MessageQueue, held: Held) -> None:
        def arrive() -> None:
            if held.dropped or not self.alive or queue.broker_name in self.down:
                return
            stored = self.world.stored.get(queue, -1)
            if held.committing or held.fenced or held.stopped or held.barrier is not None:
                return
            if stored > max(held.start, held.committed):
                self.live(queue, held, ev.Overtaken(queue))
            elif 0 <= stored < held.committed:
                self.commit(queue, held, held.committed, lambda _: None)

        self.world.later(arrive)


class World:
    """Brokers, the bus, the clock, and the watch over invariants."""

    def __init__(self, queues: list[MessageQueue], seed: int, *, work: float = 20.0) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self.heap: list[tuple[float, int, Callable[[], None]]] = []
        self.count = 0
        self.queues = frozenset(queues)
        self.locks: dict[tuple[MessageQueue, ev.LockPart, bool], tuple[str, float]] = {}
        """By queue, part, and whether orderly members took them: they lock under another name."""
        self.stored: dict[MessageQueue, int] = {}
        self.end: dict[MessageQueue, int] = defaultdict(int)
        self.finished: Counter[tuple[MessageQueue, int]] = Counter()
        self.began: Counter[tuple[MessageQueue, int]] = Counter()
        self.first: dict[MessageQueue, int] = {}
        self.shells: list[Shell] = []
        self.registered: list[str] = []
        self.bus_time: dict[tuple[str, str], float] = {}
        self.bus_scale = 0.001
        self.told = 0
        self.broken: list[str] = []
        self.faulty = False
        self.start_at_end = True
        self.complete = True
        """False: a broker does not list the members."""
        self.lose_answers = 0.0
        self.lose_bus = 0.0
        self.work = work
        self.hang = False
        self.scale = 0.001
        self.trace = False
        self.moves: Counter[MessageQueue] = Counter()
        self.last_owner: dict[MessageQueue, str] = {}

    def note(self, law: str, text: str) -> None:
        self.broken.append(f"{law} {'faulty ' if self.faulty else ''}{self.now:.4f} {text}")

    def chance(self, share: float) -> bool:
        return share > 0 and self.random.random() < share

    def at(self, when: float, what: Callable[[], None]) -> None:
        self.count += 1
        heapq.heappush(self.heap, (when, self.count, what))

    def later(self, what: Callable[[], None], factor: float = 1.0) -> None:
        self.at(self.now + self.random.random() ** 2 * factor * self.scale, what)

    def run(self, seconds: float) -> None:
        until = self.now + seconds
        while self.heap and self.heap[0][0] <= until:
            self.now, _, what = heapq.heappop(self.heap)
            what()
        self.now = until

    # Members.

    def listing(self) -> ev.MembersListed:
        return ev.MembersListed(tuple(self.registered), self.complete)

    def notify(self) -> None:
        for shell in self.shells:
            if shell.alive and not shell.left:
                self.later(lambda shell=shell: self.show_members(shell))  # type: ignore[misc]

    def show_members(self, shell: Shell) -> None:
        """Report the list as a shell does: if it lacks a member, after all that is on the bus."""
        members = self.listing()
        missing, shell.shown = shell.shown - {*members.members}, frozenset(members.members)
        if missing:
            stored = [number for number, (at, _) in shell.unheard.items() if at <= self.now]
            for number in stored:
                shell.feed(shell.unheard.pop(number)[1])
        shell.feed(members)

    def join(self, settings: HandoverSettings) -> Shell:
        shell = Shell(self, settings)
        self.shells.append(shell)
        self.registered.append(settings.client_id)
        shell.feed(ev.Routed(self.queues))
        shell.feed(ev.Started())
        self.notify()
        return shell

    def depart(self, shell: Shell) -> None:
        self.registered.remove(shell.me)
        shell.alive = False
        self.notify()

    def crash(self, shell: Shell) -> None:
        self.faulty = True
        shell.alive = False
        for held in shell.held.values():
            held.dropped = True
        self.registered.remove(shell.me)
        self.notify()

    def tell(self, sender: Shell, broker: str, message: BusMessage) -> None:
        # A log: all hear the messages of one broker in the order in which it stored them.
        stored = max(
            self.now + self.random.random() * self.bus_scale, self.bus_time.get(("", broker), 0)
        )
        self.bus_time["", broker] = stored
        for shell in self.shells:
            if broker in shell.down or self.chance(self.lose_bus):
                continue
            key = (shell.owner, broker)
            delay = self.random.random() * self.bus_scale
            heard = self.bus_time[key] = max(stored + delay, self.bus_time.get(key, 0.0))
            self.told += 1
            shell.unheard[self.told] = (
                stored,
                ev.Heard(broker, sender.me, sender.settings.boot, message),
            )
            self.at(heard, lambda shell=shell, number=self.told: self.hear(shell, number))  # type: ignore[misc]

    def hear(self, shell: Shell, number: int) -> None:
        if number in shell.unheard:
            shell.feed(shell.unheard.pop(number)[1])

    # Broker.

    def lock(
        self, shell: Shell, queue: MessageQueue, parts: frozenset[ev.LockPart]
    ) -> frozenset[ev.LockPart]:
        granted, owner = set(), shell.owner
        for part in parts:
            key = queue, part, shell.settings.orderly
            who, until = self.locks.get(key, (owner, 0.0))
            if who == owner or until < self.now:
                self.locks[key] = owner, self.now + LEASE
                granted.add(part)
        return frozenset(granted)

    def unlock(
        self, sender: Shell, owner: str, queue: MessageQueue, parts: frozenset[ev.LockPart]
    ) -> bool:
        if owner != sender.owner and any(
            shell.owner == owner and shell.alive and shell.me in self.registered
            for shell in self.shells
        ):
            self.note("S6", f"{sender.me} unlocks for {owner}")
        for part in parts:
            key = queue, part, sender.settings.orderly
            if self.locks.get(key, ("", 0.0))[0] == owner:
                del self.locks[key]
        return True

    def read(self, queue: MessageQueue) -> tuple[int, bool]:
        if queue in self.stored:
            return self.stored[queue], True
        return (self.end[queue] if self.start_at_end else 0), False

    def store(self, shell: Shell, queue: MessageQueue, offset: int) -> bool:
        before = self.stored.get(queue)
        if before is None:
            self.first[queue] = offset  # what lies before a new group's start is not its business
        elif offset < before:
            self.note("S4", f"{queue.queue_id}: {before} -> {offset} by {shell.me}")
        self.stored[queue] = offset
        for each in range(self.first[queue], offset):
            if not self.finished[queue, each]:
                self.note("S2", f"{queue.queue_id}: {offset} stored, {each} open, by {shell.me}")
                break
        return True

    def starting(self, shell: Shell, queue: MessageQueue, offset: int) -> None:
        if self.last_owner.get(queue) != shell.owner:
            if queue in self.last_owner:
                self.moves[queue] += 1
            self.last_owner[queue] = shell.owner
        for other in self.shells:
            held = other.held.get(queue)
            if other is shell or not other.alive or held is None:
                continue
            if not held.stopped and not held.fenced:
                self.note("S1", f"{queue.queue_id}@{offset}: {shell.me} beside {other.me}")

    def owners(self) -> dict[MessageQueue, list[str]]:
        found: dict[MessageQueue, list[str]] = {queue: [] for queue in self.queues}
        for shell in self.shells:
            if shell.alive:
                for queue, held in shell.held.items():
                    if not held.stopped and not held.dropped:
                        found[queue].append(shell.me)
        return found

    def produce(self, seconds: float, rate: float) -> None:
        """Let messages come in for a while, `rate` a second in each queue."""
        step = 1.0 / rate
        for queue in sorted(self.queues, key=str):
            for number in range(int(seconds * rate)):
                when = self.now + (number + self.random.random()) * step

                def come(queue: MessageQueue = queue) -> None:
                    self.end[queue] += 1

                self.at(when, come)

    def unfinished(self) -> list[tuple[MessageQueue, int]]:
        return [
            (queue, offset)
            for queue in self.queues
            for offset in range(self.first.get(queue, 0), self.end[queue])
            if not self.finished[queue, offset]
        ]
