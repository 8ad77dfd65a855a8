"""Secrets come from files, standard input or a hidden prompt; on the command line they are warned of."""

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pocketmq import Cluster
from pocketmq.embedded.settings import Setting
from tests.server_process import POCKETMQ, ServerProcess, children_of

WARNING = "pocketmq: warning: other users of this machine can see the secret of {} in the list of"
PASSWORD = "a-long-secret"
ON_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # the terminal on standard input is this session's
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    config: dict[str, Setting] = {
        "authenticationEnabled": True,
        "initAuthenticationUser": f'{{"username":"root","password":"{PASSWORD}"}}',
    }
    with Cluster(config=config) as running:
        yield running


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    file = tmp_path / "secret"
    file.write_text(f"{PASSWORD}\n")
    return file


def admin(
    cluster: Cluster, name: str, *arguments: str, typed: str = "", **variables: str
) -> tuple[int, str]:
    """Run a command with something on its standard input; return its exit code and its stderr."""
    done = subprocess.run(
        [POCKETMQ, "admin", name, "-n", cluster.address, *arguments],
        input=typed,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ | {"POCKETMQ_ACCESS_KEY": "root"} | variables,
    )
    assert PASSWORD not in done.stdout + done.stderr
    return done.returncode, done.stderr


def test_a_secret_key_is_taken_from_a_file_from_input_and_from_the_environment(
    cluster: Cluster, secret_file: Path
) -> None:
    assert admin(cluster, "getNamesrvConfig", "--secret-key-file", str(secret_file)) == (0, "")
    assert admin(cluster, "getNamesrvConfig", "--secret-key", "-", typed=f"{PASSWORD}\n") == (0, "")
    assert admin(cluster, "getNamesrvConfig", POCKETMQ_SECRET_KEY=PASSWORD) == (0, "")


def test_a_secret_among_the_arguments_works_and_is_warned_of_once(cluster: Cluster) -> None:
    given = ("-u", "ann", "-p", "hers-12345", "-c", "DefaultCluster")
    code, told = admin(cluster, "createUser", *given, "--secret-key", PASSWORD)
    assert code == 0
    assert told.count("warning") == 1
    assert told.startswith(WARNING.format("--secret-key"))
    code, told = admin(cluster, "updateUser", *given, POCKETMQ_SECRET_KEY=PASSWORD)
    assert code == 0
    assert told.startswith(WARNING.format("-p"))
    assert "use --password-file FILE, or -p - for a prompt" in told
    assert "hers-12345" not in told


def test_a_new_users_password_is_taken_from_a_file_or_from_input(
    cluster: Cluster, tmp_path: Path
) -> None:
    file = tmp_path / "password"
    file.write_text("his-12345\r\nmore\n")
    where = ("-c", "DefaultCluster")
    root = {"POCKETMQ_SECRET_KEY": PASSWORD}
    done = admin(cluster, "createUser", "-u", "bob", "--password-file", str(file), *where, **root)
    assert done == (0, "")
    done = admin(cluster, "createUser", "-u", "eve", *where, typed="hers-12345\n", **root)
    assert done == (0, "")
    for user, password in (("bob", "his-12345"), ("eve", "hers-12345")):
        variables = {"POCKETMQ_ACCESS_KEY": user, "POCKETMQ_SECRET_KEY": password}
        assert admin(cluster, "listUser", *where, **variables) == (0, ""), user


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--secret-key-file", "/nowhere"], "cannot read /nowhere: No such file or directory"),
        (["--secret-key-file", "/dev/null"], "the first line of /dev/null is empty"),
        (["--secret-key", "-"], "no secret for --secret-key on standard input"),
        (["--secret-key", "x", "--secret-key-file", "f"], "contradict each other"),
    ],
)
def test_where_there_is_no_secret_the_command_says_so(
    cluster: Cluster, arguments: list[str], told: str
) -> None:
    code, err = admin(cluster, "getNamesrvConfig", *arguments)
    assert code == 2
    assert told in err


def test_on_a_terminal_a_user_is_asked_and_nothing_is_shown(cluster: Cluster) -> None:
    command = ["admin", "getNamesrvConfig", "-n", cluster.address, "--access-key", "root"]
    ours, theirs = pty.openpty()
    try:
        with subprocess.Popen(
            [sys.executable, "-c", ON_TERMINAL, POCKETMQ, *command],
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=theirs,
            start_new_session=True,
        ) as process:
            shown = b""
            while b"Secret for user root: " not in shown:
                shown += os.read(ours, 1000)
            os.write(ours, f"{PASSWORD}\n".encode())
            out, _ = process.communicate(timeout=60)
            assert process.returncode == 0
            assert b"authenticationEnabled" in out
            os.set_blocking(ours, False)
            with suppress(BlockingIOError):
                shown += os.read(ours, 1000)
            assert PASSWORD.encode() not in shown + out
    finally:
        os.close(ours)
        os.close(theirs)


def test_no_process_of_a_cluster_carries_a_secret_among_its_arguments(tmp_path: Path) -> None:
    config = tmp_path / "cluster.conf"
    user = f'{{"username":"root","password":"{PASSWORD}"}}'
    config.write_text(f"authenticationEnabled=true\ninitAuthenticationUser={user}\n")
    with ServerProcess("up", "--port", "0", "--brokers", "2", "--config", str(config)) as server:
        lines = _command_lines(server.process.pid)
        assert len(lines) == 3
        for line in lines:
            assert PASSWORD.encode() not in line
            assert b"pocketmq-cluster" not in line
        assert server.stop() == 0
        assert PASSWORD not in server.errors()


def test_a_secret_setting_among_the_arguments_is_warned_of() -> None:
    user = f'initAuthenticationUser={{"username":"root","password":"{PASSWORD}"}}'
    with ServerProcess("namesrv", "--port", "0", "--set", user) as server:
        assert server.stop() == 0
        assert WARNING.format("--set initAuthenticationUser") in server.errors()
        assert PASSWORD not in server.errors()


def _command_lines(pid: int) -> list[bytes]:
    """Return the command lines of a process and all below it."""
    found = [Path(f"/proc/{pid}/cmdline").read_bytes()]
    for child in children_of(pid):
        found += _command_lines(child)
    return found


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc and terminals")
