"""The subcommands of mqadmin beside those of `pocketmq admin`, on a Java cluster and on ours.

Both tools ask the same cluster in the same state; but for times and ports they print the same.
Which there are on both sides: test_subcommands_java.py.
"""

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.interop.jvm import Jars
from tests.interop.test_access_java import PROVIDERS
from tests.interop.tool_differences import DIFFERENCES, without_stacks
from tests.interop.tools import Tools, before_a_cluster

pytestmark = [pytest.mark.java, pytest.mark.line("5.x"), pytest.mark.timeout(600)]

METADATA = {name: kind for name, kind in PROVIDERS.items() if "Metadata" in name}


@pytest.fixture(scope="module", params=["java", "ours"])
def tools(
    request: pytest.FixtureRequest, jars: Jars, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Tools]:
    accounts = METADATA if request.param == "java" else {}
    with before_a_cluster(jars, tmp_path_factory.mktemp("tools"), request.param, accounts) as found:
        yield found


ASKING = [
    "clusterList",
    "clusterList -m",
    "topicList",
    "topicList -c",
    "topicRoute -t orders",
    "topicRoute -t orders -l",
    "topicStatus -t orders",
    "topicClusterList -t orders",
    "getConsumerConfig -g billing",
    "consumerProgress",
    "consumerProgress -g billing",
    "consumerProgress -g billing -s true",
    "consumerConnection -g billing",
    "consumerStatus -g billing",
    "consumerStatus -g billing -s",
    "consumerStatus -g billing -i {client}",
    "producerConnection -g shop -t orders",
    "producer -b {a}",
    "brokerStatus -b {a}",
    "brokerConsumeStats -b {a} -l 1000",
    "getBrokerConfig -b {a}",
    "getNamesrvConfig",
    "queryMsgById -t orders -i {id}",
    "queryMsgByKey -t orders -k k3",
    "queryMsgByUniqueKey -t orders -i {unique}",
    "queryMsgByOffset -t orders -b broker-a -i 0 -o 0",
    "queryMsgTraceById -i {unique}",
    "printMsg -t orders",
    "printMsgByQueue -t orders -a broker-a -i 0 -p true",
    "printMsgByQueue -t orders -a broker-a -i 0 -p true -d true",
    "printMsgByQueue -t orders -a broker-a -i 0 -f true",
    "consumeMessage -t orders -b broker-a -i 0 -o 0",
    "statsAll -t orders",
    "allocateMQ -t orders -i 10.0.0.1,10.0.0.2",
    "queryCq -t orders -q 0 -i 0 -c 2 -b {a}",
    "queryCq -t orders -q 0 -i 0 -c 1 -b {a} -g billing",
]
CHANGING = [
    "updateTopic -c {c} -t made -r 2 -w 2",
    "updateTopic -b {a} -t single -r 3 -w 3 -p 4",
    "updateTopicPerm -b {a} -t single -p 6",
    "updateSubGroup -c {c} -g made -r 3 -d true",
    "getConsumerConfig -g made",
    "updateBrokerConfig -b {b} -k defaultTopicQueueNums -v 5",
    "updateNamesrvConfig -k orderMessageEnable -v true",
    "updateKvConfig -s space -k key -v value",
    "deleteKvConfig -s space -k key",
    "updateOrderConf -t made -m put -v broker-a:2",
    "updateOrderConf -t made -m get",
    "updateOrderConf -t made -m delete",
    "wipeWritePerm -b broker-b",
    "addWritePerm -b broker-b",
    "setConsumeMode -b {a} -t orders -g made -m PULL",
    "resetOffsetByTime -g billing -t orders -s now",
    "skipAccumulatedMessage -g billing -t orders",
    "cloneGroupOffset -s billing -d made -t orders",
    "cleanExpiredCQ -c {c}",
    "cleanUnusedTopic -c {c}",
    "deleteExpiredCommitLog -c {c}",
    "sendMessage -t single -p hello -b broker-a -i 0",
    "checkMsgSendRT -t orders -a 2",
    "sendMsgStatus -b broker-a -c 2",
    "deleteSubGroup -c {c} -g made",
    "deleteTopic -c {c} -t made",
    "updateTopicList -b {a} -f {home}/topics.json",
    "updateTopicList -c {c} -f {home}/topics.json",
    "updateSubGroupList -b {a} -f {home}/groups.json",
    "updateSubGroupList -c {c} -f {home}/groups.json",
    "getConsumerConfig -g listed-1",
]
ACCOUNTS = [
    "createUser -b {a} -u alice -p alice-secret -t Normal",
    "createUser -c {c} -u bob -p bob-secret -t Super",
    "updateUser -b {a} -u alice -s disable",
    "updateUser -c {c} -u bob -p another-secret",
    "getUser -b {a} -u alice",
    "listUser -b {a}",
    "listUser -c {c} -f bob",
    "copyUser -f {a} -t {b} -u alice",
    "createAcl -b {a} -s User:alice -r Topic:orders,Group:* -a Pub,Sub -d Allow",
    "createAcl -c {c} -s User:bob -r Topic:orders -a Pub -d Deny -i 10.0.0.0/8",
    "updateAcl -b {a} -s User:alice -r Topic:orders -a Sub -d Deny",
    "getAcl -b {a} -s User:alice",
    "listAcl -b {a}",
    "listAcl -c {c} -s bob",
    "copyAcl -f {a} -t {b} -s User:alice",
    "deleteAcl -b {a} -s User:alice -r Topic:orders",
    "deleteAcl -c {c} -s User:bob",
    "deleteUser -b {a} -u alice",
    "deleteUser -c {c} -u bob",
]


BETWEEN = {
    "updateTopicPerm -b {a} -t single -p 6": "updateTopicPerm -b {a} -t single -p 4",
    "deleteSubGroup -c {c} -g made": "updateSubGroup -c {c} -g made",
    "deleteTopic -c {c} -t made": "updateTopic -c {c} -t made -r 2 -w 2",
    "createUser -b {a} -u alice -p alice-secret -t Normal": "deleteUser -b {a} -u alice",
    "createUser -c {c} -u bob -p bob-secret -t Super": "deleteUser -c {c} -u bob",
    "createAcl -b {a} -s User:alice -r Topic:orders,Group:* -a Pub,Sub -d Allow": (
        "deleteAcl -b {a} -s User:alice"
    ),
    "createAcl -c {c} -s User:bob -r Topic:orders -a Pub -d Deny -i 10.0.0.0/8": (
        "deleteAcl -c {c} -s User:bob"
    ),
    "deleteAcl -b {a} -s User:alice -r Topic:orders": (
        "updateAcl -b {a} -s User:alice -r Topic:orders -a Sub -d Deny"
    ),
    "deleteAcl -c {c} -s User:bob": "createAcl -c {c} -s User:bob -r Topic:orders -a Pub -d Deny",
    "deleteUser -b {a} -u alice": "createUser -b {a} -u alice -p alice-secret -t Normal",
    "deleteUser -c {c} -u bob": "createUser -c {c} -u bob -p bob-secret -t Super",
}
"""What makes the state again that the first tool has changed."""


@pytest.mark.parametrize("command", [*ASKING, *CHANGING, *ACCOUNTS])
def test_the_same_lines(tools: Tools, capsys: pytest.CaptureFixture[str], command: str) -> None:
    if command in BETWEEN:
        theirs = tools.theirs(command)
        tools.theirs(BETWEEN[command])
        ours = tools.ours(capsys, command)
    else:
        theirs, ours = tools.both(capsys, command)
    assert not any("Exception" in line for line in theirs), theirs
    assert theirs
    assert ours
    if (known := DIFFERENCES.get(command)) is not None:
        assert ours != theirs, "there is no difference any more"
        theirs = known.expected(theirs, tools)
    assert without_stacks(ours) == without_stacks(theirs)


def test_exports_are_equal(
    tools: Tools, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    found = []
    for tool in (tools.theirs, partial(tools.ours, capsys)):
        for kind in ("Metadata", "Configs"):
            tool(f"export{kind} -c {{c}} -f {tmp_path}")
        found.append([_json(tmp_path / f"{kind}.json") for kind in ("metadata", "configs")])
    assert list(differing(found[0], found[1])) == []


def test_figures_are_equal_but_for_rates(
    tools: Tools, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    own = "/runtimeVersion/rocketmqVersion: "  # that of the tool, not of the broker
    different: list[str] = []

    def are_equal() -> bool:
        found = []
        for tool in (tools.theirs, partial(tools.ours, capsys)):
            tool(f"exportMetrics -c {{c}} -f {tmp_path}")
            found.append(_without_rates(_json(tmp_path / "metrics.json")))
        different[:] = [each for each in differing(found[0], found[1]) if own not in each]
        return not different

    for _ in range(5):  # traces of what was done before may come in between
        if are_equal():
            break
    assert different == []


def _without_rates(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _coarse(key, _without_rates(each)) for key, each in value.items()}
    return "RATE" if isinstance(value, float) else value


def _coarse(key: str, value: Any) -> Any:
    """Leave three digits of how full the disk is: other programs write to it between two looks."""
    return f"{float(value):.3f}" if key.endswith("DiskRatio") else value


def differing(theirs: Any, ours: Any, path: str = "") -> Iterator[str]:
    """Return where two JSON values differ."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in sorted({*theirs, *ours}):
            yield from differing(theirs.get(key), ours.get(key), f"{path}/{key}")
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for index, pair in enumerate(zip(theirs, ours, strict=True)):
            yield from differing(*pair, f"{path}/{index}")
    elif theirs != ours:
        yield f"{path}: {theirs!r} there, {ours!r} here"


def _json(path: Path) -> Any:
    read = json.loads(re.sub(r"\b1[5-9]\d{11}\b", "0", path.read_text()))
    path.unlink()
    return read
