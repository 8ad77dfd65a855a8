"""mqadmin of 4.9 beside `pocketmq admin`, on a Java cluster of that release and on ours.

Ours prints what mqadmin of 5.x does, which has more columns and lines, and other indents. So words
are compared: whatever that of 4.9 says of a cluster, ours says too.
"""

import re
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.interop.jvm import Jars
from tests.interop.test_tools_java import ASKING, BETWEEN, CHANGING
from tests.interop.tool_differences import DIFFERENCES, without_stacks
from tests.interop.tools import Tools, before_a_cluster

pytestmark = [pytest.mark.java, pytest.mark.line("4.x"), pytest.mark.timeout(600)]

LATER = ("setConsumeMode", "updateTopicList", "updateSubGroupList", "getConsumerConfig -g listed")
"""What came with 5.x, and what needs it."""
OLD = {"queryMsgById -t orders -i {id}": "queryMsgById -i {id}"}
"""What took other options."""
SAID_OTHERWISE = {
    "clusterList": ("FRACTION", "?"),  # rates a new broker does not tell yet
    "resetOffsetByTime -g billing -t orders -s now": ("rollback", "start"),
}
"""Words of the old one that ours has another for, at most as often."""


@pytest.fixture(scope="module", params=["java", "ours"])
def tools(
    request: pytest.FixtureRequest, jars: Jars, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Tools]:
    with before_a_cluster(jars, tmp_path_factory.mktemp("tools"), request.param, {}) as found:
        yield found


@pytest.mark.parametrize(
    "command", [each for each in (*ASKING, *CHANGING) if not each.startswith(LATER)]
)
def test_ours_says_all_that_the_old_one_says(
    tools: Tools, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    if command in BETWEEN:
        theirs = tools.theirs(OLD.get(command, command))
        tools.theirs(BETWEEN[command])
        ours = tools.ours(capsys, command)
    else:
        theirs, ours = tools.both(capsys, command, OLD.get(command))
    assert theirs
    assert not any("Exception" in line or "usage:" in line for line in theirs), theirs
    if (known := DIFFERENCES.get(command)) is not None:
        theirs = without_stacks(known.expected(theirs, tools))
    ours = without_stacks(ours)
    assert theirs
    assert ours
    said = words(ours)
    if command in SAID_OTHERWISE:
        old, new = SAID_OTHERWISE[command]
        said[old] += said[new]
    assert words(theirs) - said == Counter(), (theirs, ours)


def words(lines: list[str]) -> Counter[str]:
    return Counter(re.findall(r"[\w%@.-]+|\?", " ".join(lines)))
