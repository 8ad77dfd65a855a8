"""A cluster and the admin command line before it, in this process."""

import json
from typing import Any

import pytest

from pocketmq import Cluster
from pocketmq.cli import run


class Desk:
    """Runs `pocketmq admin` and tells what came of it."""

    def __init__(self, cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
        self.cluster = cluster
        self.brokers = {name: info.address for name, info in cluster.brokers.items()}
        self._capsys = capsys

    def ends(self, *arguments: str) -> tuple[int, str, str]:
        """Return the exit code and what came on stdout and stderr."""
        name, *rest = arguments
        if "--timeout" not in rest:
            rest += ["--timeout", "60"]  # the cluster of this process may have to wait for it
        code = run(["admin", name, "-n", self.cluster.address, *rest])
        captured = self._capsys.readouterr()
        return code, captured.out, captured.err

    def lines(self, *arguments: str) -> list[str]:
        """Return the lines on stdout of a command that must succeed."""
        code, out, err = self.ends(*arguments)
        assert (code, err) == (0, "")
        return [line.rstrip() for line in out.splitlines()]

    def json(self, *arguments: str) -> Any:
        """Return the JSON document of a command that must succeed."""
        code, out, err = self.ends(*arguments, "--json")
        assert (code, err) == (0, "")
        return json.loads(out)


def columns(lines: list[str]) -> list[list[str]]:
    """Split lines into their words."""
    return [line.split() for line in lines if line]
