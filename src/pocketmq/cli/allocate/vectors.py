"""Checking files of allocations that Java computed: `pocketmq allocate --vectors FILE`.

A line is a JSON object. `topic`, `cid` (the member), `cids` (all members) and `mqs` (queues as
[broker, id]) are the question, in any order of members and queues; `rooms` (for MACHINE_ROOM),
`virtualNodes`, `hash` ("md5" or "hashCode") and `config` (for CONFIG) may add to it. Every other
field is named like a strategy and holds Java's answer: queues in Java's order, or {"error": ...}
where Java throws. `NEARBY` is short for MACHINE_ROOM_NEARBY-AVG. Rooms of brokers and members
are the part of their names before the first `@`.
"""

from collections.abc import Iterable, Iterator
from typing import IO, Annotated, Literal

import click
import msgspec

from pocketmq.balance import allocation
from pocketmq.cli.allocate.tables import compact
from pocketmq.cli.output import printable
from pocketmq.errors import AllocationInputInvalid, InvalidInput
from pocketmq.model import MessageQueue
from pocketmq.model.java_strings import java_hash

# The rooms of lines without `rooms`, unless the option says otherwise.
DEFAULT_ROOMS = frozenset({"room0", "room2"})

# A line for a thousand brokers has a megabyte; a file without line ends is refused, too.
MAX_LINE = 16 * 1024 * 1024
MAX_RING = 200_000

_ALIASES = {"NEARBY": "MACHINE_ROOM_NEARBY-AVG"}

Queue = tuple[str, int]


class Question(msgspec.Struct, frozen=True, rename="camel"):
    """The fields of a line that are not answers."""

    topic: str
    cid: str
    cids: list[str]
    mqs: list[Queue]
    rooms: list[str] | None = None
    virtual_nodes: Annotated[int, msgspec.Meta(ge=0, le=10_000)] | None = None
    hash: Literal["md5", "hashCode"] = "md5"
    config: list[Queue] = []


class JavaError(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Java's answer where it throws."""

    error: str


class VectorTally(msgspec.Struct, frozen=True):
    """The number of equal answers of one strategy, and its first difference."""

    strategy: str
    equal: int
    total: int
    first_difference: str | None = None


_QUESTION_FIELDS = {field.encode_name for field in msgspec.structs.fields(Question)}
_questions = msgspec.json.Decoder(Question)
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_answers = msgspec.json.Decoder(list[Queue] | JavaError)


def bounded_lines(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines; raises `click.UsageError` for one that is too long."""
    number = 0
    while line := file.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            raise click.UsageError(f"line {number} has more than {MAX_LINE} bytes")
        yield line


def check_lines(lines: Iterable[bytes], settings: allocation.StrategySettings) -> list[VectorTally]:
    """Recompute every answer and compare; raises `click.UsageError` for a malformed line."""
    tallies: dict[str, VectorTally] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            question, answers = _read(line)
            for name, expected in answers.items():
                computed = _answer(_strategy(name, question, settings), question)
                difference = _difference(question, expected, computed)
                tallies[name] = _count(
                    tallies.get(name) or VectorTally(name, 0, 0), number, difference
                )
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, InvalidInput) as problem:
            raise click.UsageError(f"line {number}: {problem}") from problem
    if not tallies:
        raise click.UsageError("it contains no allocations to check")
    return list(tallies.values())


def _read(line: bytes) -> tuple[Question, dict[str, list[Queue] | JavaError]]:
    answers = {
        name: _answers.decode(raw)
        for name, raw in _fields.decode(line).items()
        if name not in _QUESTION_FIELDS
    }
    return _questions.decode(line), answers


def print_tallies(tallies: list[VectorTally]) -> None:
    """Print a line per strategy, then the first difference of each that has one."""
    width = max(len(tally.strategy) for tally in tallies)
    for tally in tallies:
        print(f"{tally.strategy:<{width}}  {tally.equal} of {tally.total} equal")
    for tally in tallies:
        if tally.first_difference:
            print(f"first difference of {tally.strategy}: {printable(tally.first_difference)}")


def _strategy(
    name: str, question: Question, settings: allocation.StrategySettings
) -> allocation.Strategy:
    rooms = settings.rooms or DEFAULT_ROOMS
    settings = allocation.StrategySettings(
        virtual_nodes=(
            settings.virtual_nodes if question.virtual_nodes is None else question.virtual_nodes
        ),
        rooms=rooms if question.rooms is None else frozenset(question.rooms),
        queues=_queues(question.topic, question.config),
    )
    strategy = allocation.java_strategy_by_name(_ALIASES.get(name, name), settings)
    members = len(question.cids)
    if "CONSISTENT_HASH" in strategy.name and members * settings.virtual_nodes > MAX_RING:
        reason = f"{members} members with {settings.virtual_nodes} virtual nodes each are too many"
        raise InvalidInput(reason)
    if question.hash == "hashCode":
        ring = allocation.ConsistentHash(settings.virtual_nodes, java_hash)
        if strategy.name == ring.name:
            return ring
        if isinstance(strategy, allocation.MachineRoomNearby) and strategy.inner.name == ring.name:
            return allocation.MachineRoomNearby(ring, strategy.resolver)
    return strategy


def _queues(topic: str, queues: Iterable[Queue]) -> tuple[MessageQueue, ...]:
    return tuple(MessageQueue(topic, broker, number) for broker, number in queues)


def _answer(strategy: allocation.Strategy, question: Question) -> list[Queue] | None:
    """Return our answer; None where we raise an error."""
    queues = _queues(question.topic, question.mqs)
    try:
        share = allocation.allocate(strategy, "group", question.cid, queues, question.cids)
    except AllocationInputInvalid:
        return None
    return [(queue.broker_name, queue.queue_id) for queue in share]


def _difference(
    question: Question, expected: list[Queue] | JavaError, computed: list[Queue] | None
) -> str | None:
    wanted = None if isinstance(expected, JavaError) else expected
    if wanted == computed:
        return None
    return (
        f"member {question.cid}: expected {_shown(question.topic, wanted)}, "
        f"computed {_shown(question.topic, computed)}"
    )


def _count(tally: VectorTally, line: int, difference: str | None) -> VectorTally:
    first = tally.first_difference or (difference and f"line {line}, {difference}")
    return VectorTally(tally.strategy, tally.equal + (not difference), tally.total + 1, first)


def _shown(topic: str, queues: list[Queue] | None) -> str:
    return "an error" if queues is None else compact(_queues(topic, queues))
