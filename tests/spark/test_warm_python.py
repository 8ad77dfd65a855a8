"""Processes that Spark starts are forks of the warm Python, and are what fresh ones would be."""

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from numpy import random

from pocketmq.spark.warm_python import OFF, WARM
from pocketmq.spark.worker_python import VARIABLE
from tests.server_process import children_of, command_line, is_alive, wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only on Linux")

DRIVER = """
import os, sys
from pocketmq.spark.worker_python import VARIABLE, choose_python
from pocketmq.spark.warm_python import WARM
choose_python(local=True)
print(os.environ[VARIABLE], os.environ[WARM], sep="\\n", flush=True)
sys.stdin.read()
"""
SHOWN = """
import json, os, sys
if __name__ == "__main__":
    print(json.dumps({
        "parent": os.getppid(), "argv": sys.argv, "path": sys.path, "cwd": os.getcwd(),
        "said": sys.stdin.read(), "seed": hash("x"), "own": os.environ.get("SPARK_OWN"),
        "main": sys.modules["__main__"].__spec__.name, "arrow": "pyarrow" in sys.modules,
    }))
    print("wrong", file=sys.stderr)
    sys.exit(7)
"""


class Driver:
    """A process that has chosen its Python, as one with a session has."""

    def __init__(self, home: Path, **more: str) -> None:
        self.home = home
        (home / "shown.py").write_text(SHOWN)
        (home / "slow.py").write_text("import time\nprint('here', flush=True)\ntime.sleep(600)\n")
        environment = {
            key: value for key, value in os.environ.items() if key not in {VARIABLE, WARM}
        } | more
        self.process = subprocess.Popen(
            [sys.executable, "-c", DRIVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert self.process.stdout is not None
        self.python = self.process.stdout.readline().strip()
        self.socket = Path(self.process.stdout.readline().strip())
        self.environment = environment | {WARM: str(self.socket), "PYTHONHASHSEED": "0"}
        (self.warm,) = children_of(self.process.pid)

    def start(self, module: str, *words: str, **more: str) -> "subprocess.Popen[str]":
        """Start a module as Spark does."""
        return subprocess.Popen(
            [self.python, "-m", module, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.home,
            env=self.environment | more,
        )

    def show(self, *words: str, **more: str) -> dict[str, object]:
        """Return what a process saw of itself."""
        process = self.start("shown", *words, **more)
        told, wrong = process.communicate("some words", 60)
        assert (process.returncode, wrong) == (7, "wrong\n")
        seen: dict[str, object] = json.loads(told)
        return seen

    @contextmanager
    def slow(self) -> Iterator[tuple["subprocess.Popen[str]", int]]:
        """Run a process that does not end; give it and the fork that it follows."""
        others = set(children_of(self.warm))
        with self.start("slow") as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "here\n"
            (fork,) = set(children_of(self.warm)) - others
            yield process, fork
            process.kill()

    def stop(self) -> None:
        """End it as a program ends."""
        self.process.communicate("", 60)


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Driver]:
    one = Driver(tmp_path)
    yield one
    one.stop()


def test_a_fork_is_what_a_fresh_process_would_have_been(driver: Driver) -> None:
    fork = driver.show("a b", "", SPARK_OWN="mine")
    fresh = driver.show("a b", "", SPARK_OWN="mine", **{WARM: ""})
    assert (fork.pop("parent"), fork.pop("arrow")) == (driver.warm, True)
    assert (fresh.pop("parent"), fresh.pop("arrow")) == (os.getpid(), False)
    assert fork == fresh
    assert fork["argv"] == [str(driver.home / "shown.py"), "a b", ""]
    assert fork["said"] == "some words"


def test_another_start_of_python_is_a_fresh_process(driver: Driver) -> None:
    for name, value in (("PYTHONHASHSEED", "1"), ("TZ", "Asia/Tokyo"), ("OMP_NUM_THREADS", "2")):
        assert driver.show(**{name: value})["parent"] == os.getpid(), name
    path = os.environ.get("PYTHONPATH", "")
    extended = os.pathsep.join(filter(None, [path, str(driver.home)]))
    assert driver.show(PYTHONPATH=extended)["parent"] == os.getpid()
    twice = os.pathsep.join([path, path])
    assert driver.show(PYTHONPATH=twice)["parent"] == driver.warm


def test_paths_are_searched_as_a_fresh_process_does(tmp_path: Path) -> None:
    before, later = os.environ.get("PYTHONPATH", ""), tmp_path / "later"
    paths = os.pathsep.join(filter(None, [before, str(later), "relative"]))
    driver = Driver(tmp_path, PYTHONPATH=f"{paths}{os.pathsep}")
    try:
        assert driver.show()["parent"] == os.getpid()  # another directory, and a relative path
        driver.home = Path.cwd()
        driver.start("nosuch").communicate("", 60)  # now it has looked for the directory
        later.mkdir()
        (tmp_path / "shown.py").rename(later / "shown.py")
        assert driver.show(**{"not-a-name": "x"})["parent"] == driver.warm
    finally:
        driver.stop()


def test_a_main_program_stays_until_its_threads_have_ended(driver: Driver) -> None:
    (driver.home / "threads.py").write_text(
        textwrap.dedent("""
            import atexit, pickle, sys, threading
            class Mine: pass
            def work():
                threading.main_thread().join()
                print(len(pickle.loads(pickle.dumps([Mine()]))), sys.argv[1:])
            threading.Thread(target=work).start()
            atexit.register(lambda: print(__name__, sys.modules["__main__"].__spec__.name))
        """)
    )
    told, wrong = driver.start("threads", "x").communicate("", 60)
    assert (told, wrong) == ("1 ['x']\n__main__ threads\n", "")
    missing = driver.start("nosuch")
    assert missing.communicate("", 60)[1].endswith("No module named nosuch\n")
    assert missing.returncode == 1


def test_it_can_be_turned_off() -> None:
    text = DRIVER.replace("choose_python(", f"os.environ[WARM] = {OFF!r}; choose_python(")
    shown = subprocess.run(
        [sys.executable, "-c", text], input=b"", stdout=subprocess.PIPE, check=True
    )
    script, warm = shown.stdout.decode().splitlines()
    assert warm == OFF
    command = [script, "-m", "pocketmq", "--version"]
    subprocess.run(command, env=os.environ | {WARM: OFF}, stdout=subprocess.DEVNULL, check=True)


def test_a_fork_ends_with_the_process_that_asked_for_it(driver: Driver) -> None:
    with driver.slow() as (process, fork):
        process.kill()
        wait_for(lambda: not is_alive(fork), "the fork's end")
    with driver.slow() as (process, fork):
        os.kill(fork, signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM
    assert driver.show()["parent"] == driver.warm


def test_a_fork_and_its_client_may_end_at_once(driver: Driver) -> None:
    with driver.slow() as (stays, _), driver.slow() as (ends, fork):
        with socket.socket(socket.AF_UNIX) as silent:
            silent.connect(str(driver.socket))  # the server waits for its request, and not for us
            os.kill(fork, signal.SIGKILL)
            wait_for(lambda: not is_alive(fork), "the fork's end")
            ends.kill()
            ends.wait(60)
        assert driver.show()["parent"] == driver.warm
        assert stays.poll() is None


def test_processes_are_fresh_when_the_warm_one_is_gone(driver: Driver) -> None:
    os.kill(driver.warm, signal.SIGKILL)
    wait_for(lambda: not is_alive(driver.warm), "the end of the warm Python")
    assert driver.socket.exists()
    assert driver.show()["parent"] == os.getpid()


@pytest.mark.parametrize("killed", [False, True], ids=["ended", "killed"])
def test_nothing_is_left_after_the_driver(tmp_path: Path, killed: bool) -> None:
    driver = Driver(tmp_path)
    assert driver.show()["parent"] == driver.warm
    if killed:
        driver.process.kill()
    driver.stop()
    wait_for(lambda: not driver.socket.parent.exists(), "the end of the warm Python")


def test_nonsense_at_the_socket_ends_nothing(driver: Driver) -> None:
    five = b"\0\0\0\5"
    wrong = [b"abc", b"\xff\xff\xff\xff", five + b"abc", five + b"abcde", five + b"a\0b\0c"]
    for text, files in product(wrong, ([], [0], [0, 1, 2])):
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(str(driver.socket))
            with suppress(ConnectionError):  # it may have refused before all was sent
                socket.send_fds(line, [text[:4]], files)
                line.sendall(text[4:])
                line.shutdown(socket.SHUT_WR)
                assert line.recv(1) == b"", text
    assert driver.show()["parent"] == driver.warm


def test_random_numbers_of_numpy_differ_between_workers(spark: "SparkSession") -> None:
    def drawn(_: int) -> tuple[float, bool]:
        number = random.rand()
        random.seed(1)
        before = str(random.get_state())
        fork = os.fork()
        if not fork:
            os._exit(str(random.get_state()) != before)
        return number, os.waitpid(fork, 0)[1] == 0

    tasks = spark.sparkContext.parallelize(range(2), 2)
    (one, kept), (other, also_kept) = tasks.map(drawn).collect()
    assert one != other
    assert kept
    assert also_kept


def test_workers_of_a_session_are_forks(spark: "SparkSession") -> None:
    (daemon,) = spark.sparkContext.parallelize([1], 1).map(lambda _: os.getppid()).collect()
    assert "warm_server" in command_line(daemon)
    assert len(list(Path(f"/proc/{daemon}/task").iterdir())) == 1  # forks again, for each worker
