"""A group of consumers in processes of their own, and what befalls it: joins, departures, deaths.

Processes write to files, so that reading costs them nothing; `_rebalance_process` has the lines.
Waiting is for a condition: an event is over when every queue is delivered by its one owner and
nothing has changed for a while.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from benchmarks._handovers import Delivery, Happening, Hold, Record

PATIENCE = 100.0
"""Longer than the 60 s for which brokers keep the locks of an orderly member that was killed."""
HANDLERS = 200
"""Handler calls of a member at the same time: slow ones must keep up with the producer."""
RETURN_WITHIN = PATIENCE
"""Seconds for which the queues of a STICKY member wait for it in a rolling restart: as long as the
restart itself is waited for. Where that takes longer than this, queues have to move."""
_POLL = 0.02
_ROOT = Path(__file__).parents[1]


class Way(NamedTuple):
    """How the members of a group share their queues."""

    label: str
    options: dict[str, Any]
    """Of the consumers, such as `strategy`."""
    java_pauses: bool = False
    command: tuple[str, ...] = ()
    """Of members with another client, which write the same lines; it is followed by name server,
    topic, group, the member's name and the milliseconds of a handler."""

    @property
    def restarting(self) -> "Way":
        """The same for members that are soon back: with STICKY their queues wait for them."""
        if self.options.get("strategy") != "STICKY" or "return_within" in self.options:
            return self
        return self._replace(options={**self.options, "return_within": RETURN_WITHIN})


class Load(NamedTuple):
    """What a group has to do."""

    rate: float = 100.0
    """Messages a second for each queue."""
    handler_ms: float = 0.0


def _ours(settings: dict[str, Any]) -> list[str]:
    return [sys.executable, "-m", "benchmarks._rebalance_process", json.dumps(settings)]


class Child:
    """A process, and what it wrote as far as it was read."""

    def __init__(self, name: str, command: Sequence[str], directory: Path) -> None:
        self.name = name
        self.words: list[list[str]] = []
        self._path = directory / f"{name}-{time.monotonic_ns()}"
        self._rest = b""
        self._file = self._path.open("wb")
        self.process = subprocess.Popen(
            command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=self._file
        )
        self._reader = self._path.open("rb")

    def say(self, word: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(word.encode() + b"\n")
        self.process.stdin.flush()

    def read(self) -> list[list[str]]:
        """Take in what was written since, and return it."""
        *lines, self._rest = (self._rest + self._reader.read()).split(b"\n")
        new = [line.decode().split() for line in lines]
        self.words += new
        return new

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()
        self._file.close()
        self._reader.close()


class Member(Child):
    """A member and the queues it owns, by its own account."""

    def __init__(self, name: str, command: Sequence[str], directory: Path) -> None:
        super().__init__(name, command, directory)
        self.client_id = ""
        self.times: dict[str, float] = {}
        """When it was `joining`, `joined`, `leaving`, `left`."""
        self.owned: set[str] = set()
        self.deliveries: list[Delivery] = []
        self.holds: list[Hold] = []
        self.finished: set[tuple[str, int]] = set()

    def read(self) -> list[list[str]]:
        new = super().read()
        for words in new:
            self._take(words)
        return new

    def _take(self, words: list[str]) -> None:
        match words:
            case "got", at, queue, offset:
                self.deliveries.append(Delivery(_seconds(at), queue, int(offset), self.name))
            case "end", queue, offset:
                self.finished.add((queue, int(offset)))
            case "took", at, *queues:
                self._hold(_seconds(at), set(queues), taken=True)
            case "lost", at, *queues:
                self._hold(_seconds(at), set(queues) & self.owned, taken=False)
            case ("joining" | "joined" | "leaving" | "left") as what, at, *more:
                self.times[what] = _seconds(at)
                if what == "joined":
                    self.client_id = more[0]
                if what == "left":  # what it did not report itself, it left at once
                    self.gone(self.times["leaving"])

    def gone(self, at: float) -> None:
        """Note that it owns nothing any more."""
        self._hold(at, set(self.owned), taken=False)

    def _hold(self, at: float, queues: set[str], *, taken: bool) -> None:
        self.owned = self.owned | queues if taken else self.owned - queues
        self.holds += [Hold(at, queue, self.name, taken) for queue in sorted(queues)]


class Group:
    """Members of one group, and the producer of its topic."""

    def __init__(
        self,
        name_server: str,
        topic: str,
        queues: Iterable[str],
        way: Way,
        load: Load,
        directory: Path,
    ) -> None:
        self._directory = directory
        self._queues = tuple(queues)
        self._shared = {"name_server": name_server, "topic": topic, "group": f"group-of-{topic}"}
        self._way = way
        self._load = load
        self.present: dict[str, Member] = {}
        self._everybody: list[Member] = []
        self._happenings: list[Happening] = []
        settings = {**self._shared, "role": "producer", "rate": load.rate}
        self._producer = Child("producer", _ours(settings), directory)
        # Java's members turn a second later, and pull half a second after that.
        self.calm = 2.0 if way.java_pauses else 0.7
        """Seconds without a change after which an event is over."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for child in (self._producer, *self._everybody):
            child.close()

    def start(self, names: Iterable[str]) -> None:
        """Start to send, with these members."""
        for member in [self.load(name) for name in names]:
            member.say("start")
        self._heard(self._producer, "ready")
        self._producer.say("start")
        self._settle(time.monotonic(), "the first members")

    def load(self, name: str, way: Way | None = None) -> Member:
        """Start a member's process, up to where it would join."""
        member = Member(name, self._command(name, way or self._way), self._directory)
        self._everybody.append(member)
        self.present[name] = member
        self._heard(member, "ready")
        return member

    def _command(self, name: str, way: Way) -> list[str]:
        shared = self._shared
        if way.command:
            places = (shared["name_server"], shared["topic"], shared["group"], name)
            return [*way.command, *places, f"{self._load.handler_ms:g}"]
        settings = {
            **shared,
            "role": "member",
            "name": name,
            "handler_ms": self._load.handler_ms,
            "java_pauses": way.java_pauses,
            "options": {"threads": HANDLERS, **way.options},
        }
        return _ours(settings)

    # What befalls it

    def join(self, name: str, way: Way | None = None) -> None:
        """Let a member join; in another way than the group's, if one is named."""
        member = self.load(name, way)
        member.say("start")
        self._heard(member, "joined")
        self._over("join", member.times["joining"])

    def leave(self, name: str) -> None:
        member = self._leave(name)
        self._over("leave", member.times["leaving"])

    def kill(self, name: str) -> float:
        """Kill a member; return when that was."""
        member = self.present.pop(name)
        at = time.monotonic()
        os.kill(member.process.pid, signal.SIGKILL)
        member.process.wait()
        member.read()
        member.gone(at)
        self._over("kill", at)
        return at

    def rolling_restart(self, way: Way | None = None) -> None:
        """Restart one member after another under its name; the whole is one event.

        They are back in another way than before, if one is named.
        """
        begin = time.monotonic()
        for name in tuple(self.present):
            self._leave(name)
            member = self.load(name, way)
            member.say("start")
            self._heard(member, "joined")
            self._settle(time.monotonic(), f"the restart of {name}")
        self._happened("rolling", begin)

    def finish(self) -> Record:
        """Stop to send, let members finish, and return all that was written down."""
        self._producer.say("leave")
        self._heard(self._producer, "left")
        sent = {(words[1], int(words[2])) for words in self._producer.words if words[0] == "sent"}
        self._wait(lambda: sent <= self._finished(), "the last messages", strict=False)
        for name in tuple(self.present):
            self._leave(name)
        return Record(
            self._queues,
            [each for member in self._everybody for each in member.deliveries],
            [each for member in self._everybody for each in member.holds],
            self._finished(),
            sent,
            self._happenings,
        )

    def _leave(self, name: str) -> Member:
        member = self.present.pop(name)
        member.say("leave")
        self._heard(member, "left")
        member.process.wait(PATIENCE)
        return member

    def _finished(self) -> set[tuple[str, int]]:
        self._read()
        return set().union(*(member.finished for member in self._everybody))

    def _over(self, kind: str, begin: float) -> None:
        self._settle(begin, kind)
        self._happened(kind, begin)

    def _happened(self, kind: str, begin: float) -> None:
        end = time.monotonic()
        self._happenings.append(Happening(kind, begin, end, tuple(self.present)))

    # Waiting

    def _heard(self, child: Child, word: str) -> None:
        def heard() -> bool:
            child.read()
            if child.process.poll() not in (None, 0):
                raise RuntimeError(f"{child.name} has ended, before it said {word!r}")
            return any(words[0] == word for words in child.words)

        self._wait(heard, f"{child.name} to say {word!r}")

    def _settle(self, begin: float, what: str) -> None:
        self._wait(lambda: self._settled(begin), f"the group to settle after {what}")

    def _settled(self, begin: float) -> bool:
        """Return whether each queue is delivered by its one owner, and has been for a while."""
        self._read()
        now, present = time.monotonic(), self.present.values()
        owners = {queue: [m for m in present if queue in m.owned] for queue in self._queues}
        if any(len(found) != 1 for found in owners.values()):
            return False
        if len(self.present) <= len(self._queues) and not all(m.owned for m in present):
            return False
        last_change = max(each.time for m in self._everybody for each in m.holds[-1:])
        if now < max(begin, last_change) + self.calm:
            return False
        return all(
            any(each.queue == queue for each in reversed(found[0].deliveries[-200:]))
            for queue, found in owners.items()
        )

    def _owners(self) -> str:
        """Return who owns what, and the queue of each one's last message, for an error."""
        return "; ".join(
            f"{name} owns {sorted(each.owned)}, got {[got.queue for got in each.deliveries[-1:]]}"
            for name, each in self.present.items()
        )

    def _read(self) -> None:
        for member in self._everybody:
            member.read()

    def _wait(self, reached: Callable[[], bool], what: str, *, strict: bool = True) -> None:
        deadline = time.monotonic() + PATIENCE
        while not reached():
            if time.monotonic() > deadline:
                if strict:
                    raise TimeoutError(f"waited {PATIENCE:g} s for {what}; {self._owners()}")
                return
            time.sleep(_POLL)


def _seconds(nanoseconds: str) -> float:
    return int(nanoseconds) / 1e9
