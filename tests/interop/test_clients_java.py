"""Java clients on our cluster do what they do on Java's: the lines expected here are both's."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pocketmq.embedded import Cluster
from pocketmq.embedded.settings import Setting
from tests.interop.jvm import Jars, Process
from tests.wire_client import WireClient

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]

LEVELS = "1s 2s 3s 4s 5s 6s 7s 8s"


@pytest.fixture(scope="module")
def cluster(jars: Jars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Yield a cluster for one release: both use the same topics and groups."""
    settings: dict[str, Setting] = {"messageDelayLevel": LEVELS, "traceTopicEnable": True}
    directory = tmp_path_factory.mktemp(jars.version)
    with Cluster(data=directory, in_process=False, config=settings) as running:
        yield running


def run(jars: Jars, home: Path, program: str, *arguments: str) -> list[str]:
    """Run a program to its end and give its lines, without those about time."""
    with Process(jars.compiled(home, program, *arguments), home) as process:
        lines = process.wait_for_end()
    assert lines[-1:] == ["end"], "\n".join(lines)
    return [line for line in lines[:-1] if " took " not in line]


def test_every_way_to_send(jars: Jars, tmp_path: Path, cluster: Cluster) -> None:
    said = run(jars, tmp_path, "Producing", cluster.address)
    places = dict(line.rsplit(" ", 1) for line in said if " SEND_OK " in line)
    assert set(places) == {
        f"{way} SEND_OK"
        for way in (
            "sync", "batch", "pinned", "made", "big", "compressed", "delayed", "next", "namespace",
            *(f"ordered customer-{n}" for n in range(5)),
        )
    }  # fmt: skip
    assert {line for line in said if " SEND_OK " not in line} == {
        "ids true 32 DefaultRegion true",
        "queues 4",
        "async missing 0 failed 0",
        "batch ids 50 50",
        "made 6",
        "too large 13",
    }
    queues = {n: places[f"ordered customer-{n} SEND_OK"].split("@")[0] for n in range(5)}
    assert queues == {
        0: "orders/3", 1: "orders/2", 2: "orders/1", 3: "orders/0", 4: "orders/3",
    }  # fmt: skip
    (broker,) = cluster.brokers.values()
    with WireClient(broker.address) as client:
        topic, queue = places["batch SEND_OK"].split("@")[0].split("/")
        found = client.bodies(topic, int(queue))
        assert found == [b"part %d" % n for n in range(32)]


SCENES = {
    "concurrent": ["concurrent 600 messages 600 places"],
    "resumed": ["resumed 40 messages 40 places", "resumed 10 messages 10 places"],
    "tags": ["tags 21 messages 21 places true false"],
    "sql": ["sql [number 12, number 18, number 24, number 30, number 36]", "sql refused true"],
    "orderly": ["orderly 200 messages 200 places keys in order 7 tries [3, 3, 3, 3, 3, 3, 3]"],
    "broadcasting": ["broadcasting [30 messages 30 places, 30 messages 30 places]"],
    "retried": [f"retried retried {n} t key true" for n in range(3)],
    "deadLetter": ["dead tries 3 %DLQ%dead 3 nobody takes me"],
    "partly": ["partly [part 0, part 1, part 2, part 2, part 3, part 3]"],
    "places": [
        f"CONSUME_FROM_{where} 20 messages 20 places"
        for where in ("FIRST_OFFSET", "LAST_OFFSET", "TIMESTAMP")
    ],
    "delayed": [f"delayed level {n} late {n} s {n}" for n in (1, 2, 3)],
    "bodies": ["bodies whole true", "bodies whole true"],
    "early": ["early 10 messages 10 places"],
    "namespace": ["namespace rooms 0", "namespace rooms 1"],
    "traced": ["traced Pub SubBefore SubAfter"],
}


@pytest.mark.parametrize(
    ("first", "last"),
    [("concurrent", "broadcasting"), ("retried", "partly"), ("places", "traced")],
)
def test_every_way_to_be_pushed(
    jars: Jars, tmp_path: Path, cluster: Cluster, first: str, last: str
) -> None:
    """From one scene to another, all in one process."""
    names = list(SCENES)
    names = names[names.index(first) : names.index(last) + 1]
    said = run(jars, tmp_path, "Consuming", cluster.address, *names)
    assert said == [line for name in names for line in SCENES[name]]


def test_an_orderly_consumer_gives_up_to_the_dead_letters(
    jars: Jars, tmp_path: Path, cluster: Cluster
) -> None:
    """The count of tries in the dead letter is the client's own, and differs by its version."""
    said = run(jars, tmp_path, "Consuming", cluster.address, "orderlyDeadLetter")
    assert said == [f"orderly dead tries 3 %DLQ%orderly-dead {3 if jars.is_5 else 2} never"]


def test_lite_pull(jars: Jars, tmp_path: Path, cluster: Cluster) -> None:
    assert run(jars, tmp_path, "LitePulling", cluster.address) == [
        "subscribed 20",
        "subscribed 5",
        "from the start 30 message 0 … message 29",
        "from 25 5 message 25 … message 29",
        "from a moment 10 message 20 … message 29",
        "from the end 1 at the end … at the end",
        "committed 31",
        "seek refused",
    ]


def test_questions_and_pulls_by_hand(jars: Jars, tmp_path: Path, cluster: Cluster) -> None:
    nothing = "CODE: 208  DESC: query message by key finished, but no message."
    assert run(jars, tmp_path, "Asking", cluster.address) == [
        "empty 0 0 0 -1",
        "offsets 0 10 at first 0 earliest true",
        "middle 5",
        "by offset id asked 0@3 all key-3 odd message 3",
        "by unique id asked 0@3 all key-3 odd message 3",
        "by key [asked 0@7 all key-7 odd message 7]",
        "by common key 4",
        f"by no key {nothing}",
        f"too early {nothing}",
        "pull FOUND next 4 of 0 to 10 [message 0, message 1, message 2, message 3]",
        "pull FOUND next 10 of 0 to 10 [message 1, message 3, message 5, message 7, message 9]",
        "pull NO_MATCHED_MSG next 10 of 0 to 10 []",
        "pull NO_NEW_MSG next 10 of 0 to 10 []",
        "pull OFFSET_ILLEGAL next 10 of 0 to 10 []",
        "pull FOUND next 11 of 0 to 11 [waited for]",
        "waited true",
        "progress before 0",
        "progress 7",
    ]
