"""Apache's gRPC clients for Go, Node and Rust, unmodified, on `pocketmq up`."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pocketmq import Admin
from tests.interop.jvm import Process
from tests.interop.official_clients import go_program, node_program, rust_program
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


KINDS = [
    "normal normal 0, normal 1, normal 2, normal 3, normal 4",
    "fifo 0, 1, 2, 3, 4",
    "delay late, true",
    "tx commit, orphan",
    "end",
]


@pytest.mark.parametrize(
    ("tool", "program"), [("go", go_program), ("npm", node_program)], ids=["go", "node"]
)
def test_an_official_client_sends_and_receives_messages_of_all_kinds(
    tool: str, program: Callable[[], list[str]], cluster: ServerProcess, tmp_path: Path
) -> None:
    """Go with TLS, which is its default; Node without, as is its."""
    if shutil.which(tool) is None:
        pytest.skip(f"there is no {tool}")
    assert ran(program(), cluster, tmp_path) == KINDS


@pytest.mark.timeout(1800)
def test_the_official_rust_client_sends_and_receives_messages_of_all_kinds(
    cluster: ServerProcess, tmp_path: Path
) -> None:
    """With TLS, which is its default. It logs where the program prints."""
    if not os.environ.get("POCKETMQ_RUST"):
        pytest.skip("compiling the client takes minutes; POCKETMQ_RUST=1 asks for it")
    if shutil.which("cargo") is None:
        pytest.skip("there is no cargo")
    words = {line.split()[0] for line in KINDS}
    lines = ran(rust_program(), cluster, tmp_path)
    assert [line for line in lines if line.partition(" ")[0] in words] == KINDS, lines


def ran(program: list[str], cluster: ServerProcess, home: Path) -> list[str]:
    """Return what a program prints."""
    with Process(["env", f"HOME={home}", *program, cluster.grpc], home) as process:
        return process.wait_for_end()
