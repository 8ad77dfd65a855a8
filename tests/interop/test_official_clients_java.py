"""Apache's gRPC clients for Go and Node, unmodified, on `pocketmq up`."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pocketmq import Admin
from tests.interop.jvm import Process
from tests.interop.official_clients import go_program, node_program
from tests.interop.test_official_java import make_ready
from tests.server_process import ServerProcess

pytest.importorskip("grpc")

# With one release only: it does not matter to them which of Apache's jars are there.
pytestmark = [pytest.mark.java, pytest.mark.line("5.x"), pytest.mark.timeout(600)]


@pytest.fixture
def cluster() -> Iterator[ServerProcess]:
    quick = ("transactionCheckInterval=1000", "transactionTimeOut=1000")
    words = [word for pair in quick for word in ("--set", pair)]
    with ServerProcess("up", "--port", "0", "--grpc", "0", *words) as running:
        with Admin(running.namesrv) as admin:
            make_ready(admin)
        yield running


@pytest.mark.parametrize(
    ("tool", "program"), [("go", go_program), ("npm", node_program)], ids=["go", "node"]
)
def test_an_official_client_sends_and_receives_messages_of_all_kinds(
    tool: str, program: Callable[[], list[str]], cluster: ServerProcess, tmp_path: Path
) -> None:
    """Go with TLS, which is its default; Node without, as is its."""
    if shutil.which(tool) is None:
        pytest.skip(f"there is no {tool}")
    with Process(["env", f"HOME={tmp_path}", *program(), cluster.grpc], tmp_path) as process:
        lines = process.wait_for_end()
    assert lines == [
        "normal normal 0, normal 1, normal 2, normal 3, normal 4",
        "fifo 0, 1, 2, 3, 4",
        "delay late, true",
        "tx commit, orphan",
        "end",
    ]
