"""CONTRIBUTING's worked example adds a request that a broker answers and a command asks for."""

import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = """
import asyncio, sys
import pocketmq as mq
from click.testing import CliRunner
from pocketmq.broker.access.needs_by_code import NEEDS
from pocketmq.broker.by_code import HANDLERS
from pocketmq.cli.admin import command
from pocketmq.embedded import Cluster
from pocketmq.protocol.catalogue import request_of

assert request_of(777).code.name == "GET_TOPIC_COLOUR"
assert 777 in HANDLERS and 777 in NEEDS
with Cluster() as cluster:
    cluster.create_topic("orders", queues=1)
    with mq.Admin(cluster.address) as admin:
        assert [each.value for each in admin.topics.colours("orders")] == ["green"]
    given = ["topicColour", "-n", cluster.address, "-t", "orders"]
    done = CliRunner().invoke(command, given)
    print(done.output)
    sys.exit(done.exit_code)
"""


def blocks(text: str) -> list[tuple[str, list[str]]]:
    """Return the path and the lines of each block of changes."""
    found = re.findall(r"^ *```diff\n(.*?)^ *```$", text, re.DOTALL | re.MULTILINE)
    changes = []
    for block in found:
        head, *lines = textwrap.dedent(block).splitlines()
        changes.append((head.removeprefix("@@ "), lines))
    return changes


def change(text: str, lines: list[str]) -> str:
    """Insert the lines with `+` behind those without, which stand in the text in this order."""
    result, rest = [], text.splitlines()
    for line in lines:
        if line.startswith("+"):
            result.append(line[1:])
            continue
        at = next(index for index, each in enumerate(rest) if each == line[1:])
        result += rest[: at + 1]
        rest = rest[at + 1 :]
    return "\n".join([*result, *rest, ""])


def test_the_example_runs_from_the_wire_to_the_command(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    changes = blocks((ROOT / "CONTRIBUTING.md").read_text())
    for path, lines in changes:
        file = tmp_path / path
        file.write_text(change(file.read_text(), lines))
    assert len({path for path, _ in changes}) == 6
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={"PYTHONPATH": str(tmp_path / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split() == ["broker-0", "green"]
