"""`pocketmq dashboard` and `pocketmq up --dashboard` as a user meets them."""

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.dashboard.conftest import DashboardProcess
from tests.dashboard.raw_http import ask
from tests.dashboard.shop import Shop
from tests.server_process import POCKETMQ, ServerProcess, is_alive, wait_for


def run(*arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [POCKETMQ, "dashboard", *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == ""
    return done.returncode, done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_one_signal_stops_it_and_nothing_is_left(
    shop: Shop, tmp_path: Path, number: signal.Signals
) -> None:
    """Also while a browser holds a connection."""
    with DashboardProcess("-n", shop.address, "--port", "0", cwd=tmp_path) as process:
        host, _, port = process.url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), 10):
            assert ask(process.url, "/").status == 200
            assert process.stop(number) == 0
    assert list(tmp_path.iterdir()) == []
    assert "Traceback" not in process.errors()


def test_a_name_server_that_is_not_there_is_told_in_one_line() -> None:
    code, told = run("-n", "127.0.0.1:1", "--port", "0")
    assert code == 1
    assert told.count("\n") == 1
    assert "127.0.0.1:1" in told


def test_a_port_that_is_taken_is_told_in_one_line(shop: Shop) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, told = run("-n", shop.address, "--port", str(port))
    assert code == 2
    assert told == (
        f"pocketmq: the dashboard cannot start: it cannot listen on 127.0.0.1:{port}: "
        "Address already in use\n"
    )


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7", "::", "example.org"])
def test_others_are_not_let_in_without_a_password(host: str) -> None:
    code, told = run("-n", "127.0.0.1:1", "--host", host)
    assert code == 2
    assert "--password-file or POCKETMQ_DASHBOARD_PASSWORD" in told


def test_a_password_of_a_few_letters_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("short")
    code, told = run("-n", "127.0.0.1:1", "--password-file", str(file))
    assert (code, told) == (2, "pocketmq: the password must have at least 8 characters\n")
    code, told = run("-n", "127.0.0.1:1", "--password-file", str(tmp_path / "nowhere"))
    assert code == 2
    assert "No such file" in told


def test_packages_that_are_missing_are_told(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['nicegui'] = None; from pocketmq.cli import run; "
        "sys.exit(run(sys.argv[1:]))"
    )
    for arguments in (
        ("dashboard", "-n", "127.0.0.1:1"),
        ("up", "--port", "0", "--dashboard", "0"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode in {1, 2}
        assert done.stderr.count("\n") == 1
        assert "pip install 'pocketmq[dashboard]'" in done.stderr


def test_a_cluster_comes_with_a_dashboard_that_ends_with_it() -> None:
    with ServerProcess("up", "--port", "0", "--dashboard", "0") as cluster:
        url = cluster.ready.strip().rpartition(" dashboard=")[2]
        assert url.startswith("http://127.0.0.1:")
        assert ask(url, "/topics").status == 200
        children = cluster.children()
        assert len(children) == 2
        assert cluster.stop() == 0
        assert not any(map(is_alive, children))


def test_the_dashboard_of_a_killed_cluster_ends_too() -> None:
    with ServerProcess("up", "--port", "0", "--dashboard", "0") as cluster:
        children = cluster.children()
        cluster.process.kill()
        wait_for(lambda: not any(map(is_alive, children)), "all children to end")


def test_the_dashboard_of_up_keeps_its_charts_in_the_data_directory(tmp_path: Path) -> None:
    words = ("up", "--port", "0", "--dashboard", "0", "--data", str(tmp_path))
    with ServerProcess(*words) as process:
        assert " dashboard=http://" in process.ready
        assert (tmp_path / "dashboard.sqlite").is_file()
        assert process.stop() == 0
