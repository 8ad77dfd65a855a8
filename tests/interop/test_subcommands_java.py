"""Which subcommands mqadmin has, by its own list: ours has them, or it is written why not."""

import re
import tomllib
from pathlib import Path

import pytest

from pocketmq.cli.admin import listed_commands
from tests.interop.jvm import Jars, Process
from tests.interop.test_old_tools_java import LATER
from tests.interop.test_tools_java import ACCOUNTS, ASKING, CHANGING

pytestmark = [pytest.mark.java, pytest.mark.timeout(120)]

TOLD = Path(__file__).parents[2] / "tools" / "conformance.toml"
LEFT_OUT = {
    name: row["why"]
    for row in tomllib.loads(TOLD.read_text())["left_out"]
    for name in row["commands"]
}
"""What mqadmin of some release has and ours has not, with the reason."""
EXPORTS = {"exportMetadata", "exportConfigs", "exportMetrics"}
RULES_OF_4 = {
    *("updateAclConfig", "deleteAclConfig", "updateGlobalWhiteAddr"),
    "clusterAclConfigVersion",
}
SINCE_5 = {
    *("createUser", "updateUser", "deleteUser", "getUser", "listUser", "copyUser"),
    *("createAcl", "updateAcl", "deleteAcl", "getAcl", "listAcl", "copyAcl"),
    *("setConsumeMode", "updateTopicList", "updateSubGroupList"),
    *("updateStaticTopic", "remappingStaticTopic"),
}
BEYOND = {
    *("explain", "what-if", "rebalance", "top", "deadLetters"),
    *("consumer", "decodeMessageId", "getConsumerStatus", "resetOffsetByTimeOld"),
}
"""What is ours alone; the last row is in mqadmin's source, but it does not offer it."""
COMPARED = {
    "5.x": {each.split()[0] for each in (*ASKING, *CHANGING, *ACCOUNTS)} | EXPORTS,
    "4.x": {each.split()[0] for each in (*ASKING, *CHANGING) if not each.startswith(LATER)},
}
FOR_EVER = {"clusterRT": "mqadmin's never ends"}
NOT_COMPARED: dict[str, dict[str, str]] = {
    "5.x": FOR_EVER
    | dict.fromkeys(
        ("updateStaticTopic", "remappingStaticTopic"), "test_static_java.py compares them"
    ),
    "4.x": FOR_EVER
    | dict.fromkeys(EXPORTS, "ours writes the files of 5.x; test_mqadmin_java.py has those of 4.9")
    | dict.fromkeys(
        RULES_OF_4, "needs a guarded cluster: test_access_java.py, test_admin_special.py"
    ),
}


@pytest.fixture
def theirs(jars: Jars, tmp_path: Path) -> set[str]:
    """Return what mqadmin lists when it is called without a word."""
    command = jars.command(tmp_path, "org.apache.rocketmq.tools.command.MQAdminStartup")
    with Process(command, tmp_path) as mqadmin:
        said = "\n".join(mqadmin.wait_for_end())
    found = set(re.findall(r"(?m)^   (\w+) ", said))
    assert "clusterList" in found, said
    return found


def test_each_of_mqadmin_is_here_or_is_left_out_for_a_reason(jars: Jars, theirs: set[str]) -> None:
    of_others = {"5.x": RULES_OF_4, "4.x": SINCE_5}[jars.line]
    listed = {name for name in LEFT_OUT if name in theirs}
    assert theirs == ({*listed_commands()} - BEYOND - of_others) | listed
    assert not LEFT_OUT.keys() & listed_commands().keys()


@pytest.mark.line("5.x")
def test_nothing_is_left_out_that_no_mqadmin_has(theirs: set[str]) -> None:
    assert LEFT_OUT.keys() - theirs == {"getAclConfig"}, "which only that of 4.9 has"


def test_each_that_both_have_is_compared_or_is_not_for_a_reason(
    jars: Jars, theirs: set[str]
) -> None:
    both = theirs & listed_commands().keys()
    assert both - COMPARED[jars.line] == NOT_COMPARED[jars.line].keys()
