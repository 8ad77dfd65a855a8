"""Our side of the comparison, without Java: every order, to open and to guarded servers."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.java.guards import OPEN, Certificate, Guard
from benchmarks.java.pairs import Pair, alone, prepare
from benchmarks.java.processes import Child, until
from benchmarks.java.servers import OurServers, PureServers, load_of_ours
from benchmarks.java.steady import STEADY_TOPIC, until_steady

SECONDS = 0.1


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with OurServers(tmp_path_factory.mktemp("home")) as servers:
        prepare(servers)
        made = Pair("ours/ours", servers, lambda: load_of_ours(servers))
        yield made
        made.stop()


@pytest.mark.parametrize(
    "order",
    [
        "one sends {}",
        "one sends {} 18",
        "flight sends 8 {}",
        "flight sends 8 {} 18",
        "batch batches 32 {}",
        "submit batches {}",
        "transact sends {}",
    ],
)
def test_sends_are_counted_and_timed(pair: Pair, order: str) -> None:
    cell = pair.rate(order.format(SECONDS))
    assert cell.value > 0


@pytest.mark.parametrize("size", [1, 32])
def test_a_backlog_is_popped_until_it_is_over(pair: Pair, size: int) -> None:
    topic = f"pops-{size}"
    pair.servers.create_topic(topic)
    pair.load.say(f"fill {topic} 64")
    assert pair.load.wait_for("done")[0] == "64"
    pair.load.say(f"pop {topic} group-{size} {size} 30")
    pair.load.wait_for("begun")
    count, seconds = pair.load.wait_for("done")
    assert 64 - size <= int(count) < 64  # the first receive does not count
    assert 0 < float(seconds) < 25  # to the last message, not to the end of the time


def test_others_are_stopped_while_one_has_its_turn(pair: Pair) -> None:
    def state(child: Child) -> str:
        return Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0]

    other = Pair("other", pair.servers, lambda: load_of_ours(pair.servers))
    try:
        with alone(pair, [pair, other]):
            until(lambda: state(other.load) == "T", "the other to be stopped", 10)
            assert state(pair.load) != "T"
        until(lambda: state(other.load) != "T", "the other to go on", 10)
    finally:
        other.stop()


def test_a_broker_is_asked_until_it_is_steady_or_the_time_is_over(pair: Pair) -> None:
    pair.servers.create_topic(STEADY_TOPIC)
    rounds = until_steady(pair.servers.port, 60.0)
    assert len(rounds) >= 5
    assert all(lock > 0 and send > 0 for lock, send in rounds)
    assert len(until_steady(pair.servers.port, 0.0)) == 1


@pytest.mark.parametrize("kind", ["accounts", "TLS", "pure"])
def test_guarded_servers_take_what_our_client_sends(tmp_path: Path, kind: str) -> None:
    guard = OPEN
    if kind == "accounts":
        guard = Guard(accounts=True)
    elif kind == "TLS":
        guard = Guard(certificate=Certificate.make(tmp_path))
    pure = kind == "pure"
    with (PureServers if pure else OurServers)(tmp_path, guard) as servers:
        prepare(servers)
        made = Pair("ours/ours", servers, lambda: load_of_ours(servers, pure=pure))
        try:
            for order in ("one sends {}", "flight sends 4 {}"):
                assert made.rate(order.format(SECONDS)).value > 0
            environment = Path(f"/proc/{made.load.pid}/environ").read_bytes().split(b"\0")
            assert (b"POCKETMQ_PURE=1" in environment) == pure
        finally:
            made.stop()
