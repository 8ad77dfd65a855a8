"""`pocketmq admin` and static topics: what the commands print, and the files they write."""

import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import pocketmq as mq
from pocketmq import Cluster
from pocketmq.model import TopicRoute
from pocketmq.protocol import decode_body
from tests.cli.admin_desk import Desk, columns

WRITTEN = re.compile(r"The (old|new) mapping data is written to file (.*)")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=2) as running:
        yield running


@pytest.fixture
def desk(
    cluster: Cluster,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Desk:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return Desk(cluster, capsys)


def files(lines: list[str]) -> list[Path]:
    found = [WRITTEN.fullmatch(line) for line in lines]
    assert all(found), lines
    return [Path(each[2]) for each in found if each is not None]


def test_a_topic_is_created_given_more_queues_and_moved(desk: Desk) -> None:
    made = files(desk.lines("updateStaticTopic", "-t", "fixed", "-qn", "2", "-b", "broker-0"))
    before, after = (json.loads(path.read_bytes()) for path in made)
    assert before["brokerConfigMap"] == {}
    assert list(after["brokerConfigMap"]) == ["broker-0"]
    desk.lines("updateStaticTopic", "-t", "fixed", "-qn", "3", "-c", "DefaultCluster")
    with mq.Producer(desk.cluster.address, group="shop", send_timeout=30.0) as producer:
        for number in range(3):
            producer.send(mq.Message("fixed", b"%d" % number))
    moved = desk.lines("remappingStaticTopic", "-t", "fixed", "-b", "broker-1")
    assert len(files(moved)) == 2
    rows = [row[:4] for row in columns(desk.lines("topicStatus", "-t", "fixed"))]
    logical = [row for row in rows if row[0] == "__syslo__global__"]
    assert logical == [
        ["__syslo__global__", "0", "0", "10000"],
        ["__syslo__global__", "1", "0", "10000"],
        ["__syslo__global__", "2", "0", "1"],
    ]
    route = decode_body("\n".join(desk.lines("topicRoute", "-t", "fixed")), TopicRoute)
    assert set(route.leaders("fixed").values()) == {"broker-1"}


def test_a_mapping_is_applied_from_a_file(desk: Desk) -> None:
    made = files(desk.lines("updateStaticTopic", "-t", "kept", "-qn", "1", "-b", "broker-0"))
    desk.lines("remappingStaticTopic", "-t", "kept", "-b", "broker-1")
    options = ("-t", "kept", "-b", "broker-0", "-mf", str(made[1]))
    code, _, err = desk.ends("updateStaticTopic", "-qn", "1", *options)
    assert code == 1
    assert "small epoch" in err
    desk.lines("updateStaticTopic", "-qn", "1", *options, "-fr", "true")
    code, _, err = desk.ends("updateStaticTopic", "-qn", "1", "-t", "x", *options[2:])
    assert (code, "has the mapping of topic 'kept'" in err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (("updateStaticTopic", "-t", "a", "-qn", "1"), 2, "give either"),
        (("updateStaticTopic", "-t", "a", "-qn", "0", "-b", "broker-0"), 2, "0 is not in"),
        (("updateStaticTopic", "-t", "a", "-qn", "1", "-b", "none"), 3, "none"),
        (("updateStaticTopic", "-t", "a", "-qn", "99999", "-b", "broker-0"), 2, "16384 queues"),
        (("remappingStaticTopic", "-t", "none", "-b", "broker-0"), 2, "No topic route"),
        (("remappingStaticTopic", "-t", "none", "-c", "none"), 2, "no broker was found"),
    ],
)
def test_what_cannot_be_done_is_refused_with_the_reason(
    desk: Desk, arguments: tuple[str, ...], code: int, reason: str
) -> None:
    ended, _, err = desk.ends(*arguments)
    assert reason in err
    assert ended == code
