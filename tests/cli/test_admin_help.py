"""How commands are found: sections of the help, short names, what a shell completes."""

import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from click.shell_completion import ShellComplete

from pocketmq import Cluster, Message, Producer, PushConsumer
from pocketmq.cli import SUBCOMMANDS, pocketmq, run
from pocketmq.cli.admin import SECTIONS, command, listed_commands
from tests.server_process import wait_for


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster() as running:
        for name in ("orders", "offers", "paid"):
            running.create_topic(name, queues=1)
        with Producer(running.address, group="shop", send_timeout=30.0) as producer:
            producer.send(Message("orders", b"1"))
        yield running


def offered(*words: str) -> list[str]:
    """Return what a shell offers for the last word."""
    *given, incomplete = words
    completing = ShellComplete(pocketmq, {}, "pocketmq", "_POCKETMQ_COMPLETE")
    return [item.value for item in completing.get_completions(given, incomplete)]


def test_every_command_is_in_one_section() -> None:
    modules = [module for section in SECTIONS.values() for module in section]
    assert len(modules) == len(set(modules))
    known = {each.module.rpartition(".")[2] for each in listed_commands().values()}
    assert set(modules) == known


def test_the_help_lists_each_command_once(capsys: pytest.CaptureFixture[str]) -> None:
    run(["admin", "--help"])
    lines = capsys.readouterr().out.splitlines()
    assert {f"{title}:" for title in SECTIONS} <= set(lines)
    names = [line.split()[0] for line in lines if line.startswith("  ") and line[2:3].isalpha()]
    listed = [name for name in names if name in listed_commands()]
    assert sorted(listed) == sorted(listed_commands())


@pytest.mark.parametrize("name", ["explain", "top", "what-if"])
def test_the_views_have_short_names(name: str) -> None:
    assert name in SUBCOMMANDS
    context = click.Context(pocketmq)
    assert pocketmq.get_command(context, name) is command.get_command(context, name)


CHANGING = {
    "addWritePerm", "cleanExpiredCQ", "cleanUnusedTopic", "cloneGroupOffset", "copyAcl", "copyUser",
    "createAcl", "createUser", "deleteAcl", "deleteAclConfig", "deleteExpiredCommitLog",
    "deleteKvConfig", "deleteSubGroup", "deleteTopic", "deleteUser", "exportConfigs",
    "exportMetadata", "exportMetrics", "rebalance", "remappingStaticTopic", "resetOffsetByTime",
    "resetOffsetByTimeOld", "setConsumeMode", "skipAccumulatedMessage", "updateAcl", "updateAclConfig",
    "updateBrokerConfig", "updateGlobalWhiteAddr", "updateKvConfig", "updateNamesrvConfig",
    "updateOrderConf", "updateStaticTopic", "updateSubGroup", "updateSubGroupList", "updateTopic",
    "updateTopicList", "updateTopicPerm", "updateUser", "wipeWritePerm",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(listed_commands()))
def test_only_commands_that_change_nothing_can_be_repeated(name: str) -> None:
    found = command.get_command(click.Context(command), name)
    assert found is not None
    options = {option for each in found.params for option in each.opts}
    assert ("--watch" in options) is (name not in CHANGING)


def test_explain_exits_with_1_when_it_finds_a_problem(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    def explained() -> tuple[int, str]:
        code = run(["explain", "-g", "billing", "-n", cluster.address])
        return code, capsys.readouterr().out

    consumer = PushConsumer(cluster.address, group="billing", instance_name="one")
    consumer.subscribe("orders", "*", lambda _: None)
    other = PushConsumer(cluster.address, group="billing", instance_name="two")
    other.subscribe("offers", "*", lambda _: None)
    with consumer:
        wait_for(lambda: explained()[0] == 0, "every queue to have an owner")
        assert "no problems found" in explained()[1]
        with other:
            wait_for(lambda: explained()[0] == 1, "the difference to be found")
            assert "fix:" in explained()[1]


def test_a_shell_completes_topics_and_groups(cluster: Cluster) -> None:
    where = ("-n", cluster.address)
    assert offered("consume", *where, "-t", "o") == ["offers", "orders"]
    assert offered("admin", "topicRoute", *where, "-t", "pa") == ["paid"]
    assert "billing" in offered("explain", *where, "-g", "b")


def test_a_shell_gets_nothing_from_a_cluster_that_is_away() -> None:
    assert offered("consume", "-n", "127.0.0.1:1", "-t", "o") == []
    assert offered("consume", "-n", "no address", "-t", "o") == []


WITHOUT_SPARK = """
import sys

class NotInstalled:
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in ("numpy", "pyarrow", "pyspark"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NotInstalled())
from pocketmq.cli import run
sys.exit(run(sys.argv[1:]))
"""


def without_spark(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_SPARK, *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("name", ["copy", "fleet", "health", "ingest"])
def test_the_help_of_a_pipeline_needs_no_spark(name: str) -> None:
    done = without_spark("pipeline", name, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"Usage: pocketmq pipeline {name}" in done.stdout


def test_a_pipeline_without_spark_says_what_to_install() -> None:
    done = without_spark("pipeline", "fleet", "--uniform", "10,4,2")
    told = "pocketmq: pipeline fleet cannot start: numpy is not installed; pip install 'pocketmq[spark]'\n"
    assert (done.returncode, done.stderr) == (2, told)
