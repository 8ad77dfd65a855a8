"""Java programs as child processes: name servers, brokers, mqadmin, and small ones of our own."""

import re
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self
from zipfile import ZipFile

from tests.server_process import looked

PROGRAMS = [
    *sorted((Path(__file__).parent / "java").glob("*.java")),
    Path(__file__).parents[2] / "benchmarks" / "java" / "GroupMember.java",
]
"""Our Java programs, and the one of the benchmarks that tests use."""
PATIENCE = 90.0
# Clients look every second, not every twenty, for what nobody told them of; the queue locks of an
# orderly member that died are over soon, and those of one that gives a queue away in the midst of
# its messages.
_QUICK = {
    "client.rebalance.waitInterval": 1000,
    "client.rebalance.lockInterval": 1000,
    "client.rebalance.lockMaxLiveTime": 4000,
    "client.unlockDelayTimeMills": 1000,
    "broker.rebalance.lockMaxLiveTime": 8000,
}
# A 5.x broker burns a core by itself unless told otherwise. One that starts makes two keys for a TLS
# that nobody speaks, watches the clock in a loop before it first writes a count down, and reads
# through the wheel of its timers every second. When a transaction has ended it does not wait for
# the next end to write down, but asks in a loop whether there is one; so it is told to write each at
# once, and else to have a minute.
QUICK_BROKER: dict[str, object] = {
    "transactionMetricFlushInterval": 200,
    "timerFlushIntervalMs": 60_000,
    "transactionOpMsgMaxSize": 1,
    "transactionOpBatchInterval": 60_000,
    "waitTimeMillsInSendQueue": 5_000,  # a busy machine is no busy broker
}
_NO_TLS: dict[str, object] = {"tls.server.mode": "disabled"}
_OPENED = ("java.nio", "sun.nio.ch", "jdk.internal.ref")
_SILENT = "<configuration><root level='OFF'/></configuration>"


@cache
def java_major() -> int:
    """Return the version of the Java that is found: 8, 17."""
    said = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(found[1]) if found else 8


class Jars:
    """A RocketMQ release: the directory its jars are in, and one for programs made with them.

    The second may be shared by several processes.
    """

    def __init__(self, directory: Path, classes: Path) -> None:
        self.directory = directory
        self._classes = classes

    @property
    def version(self) -> str:
        names = [path.name for path in self.directory.glob("rocketmq-client-*.jar")]
        found = re.fullmatch(r"rocketmq-client-(.*)\.jar", names[0]) if names else None
        assert found, f"no jar of RocketMQ's client in {self.directory}"
        return found[1]

    @property
    def is_5(self) -> bool:
        """Whether this is RocketMQ 5.x: clients know how to let a broker balance."""
        return self.line == "5.x"

    @property
    def line(self) -> str:
        """`5.x` or `4.x`."""
        return f"{self.version.partition('.')[0]}.x"

    def compiled(self, home: Path, program: str, *arguments: str) -> list[str]:
        """Return the command line of one of our programs, compiled once.

        Libraries say nothing on the standard output.
        """
        if not self.programs.exists():
            self.compile()
        return self.command(home, program, *arguments)

    @property
    def programs(self) -> Path:
        """The programs, once they are compiled."""
        return self._classes / "programs.jar"

    @property
    def archive(self) -> Path:
        """Classes that Java has loaded once, if they were kept: processes start faster."""
        return self._classes / "classes.jsa"

    def compile(self) -> None:
        """Make the programs; another process may do so at the same time."""
        with TemporaryDirectory(dir=self._classes) as directory:
            options = ["--release", "8"] if java_major() > 8 else []
            options += ["-nowarn", "-Xlint:none", "-d", directory]
            files = list(map(str, PROGRAMS))
            command = ["javac", *options, "-cp", f"{self.directory}/*", *files]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            made = Path(directory) / "made.jar"
            with ZipFile(made, "w") as jar:
                for path in sorted(Path(directory).glob("*.class")):
                    jar.write(path, path.name)
                for name in ("logback.xml", "rmq.logback.xml"):
                    jar.writestr(name, _SILENT)
            made.rename(self.programs)

    def command(self, home: Path, program: str, *arguments: str) -> list[str]:
        """Return the command line of a class."""
        (home / "conf").mkdir(parents=True, exist_ok=True)
        for part in ("broker", "tools", "namesrv"):  # 4.x does not start without them
            (home / "conf" / f"logback_{part}.xml").write_text(_SILENT)
        options = ["-Xms64m", "-Xmx256m", "-XX:MaxDirectMemorySize=256m", "-XX:+UseSerialGC"]
        options += ["-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"]  # they live for seconds
        options += [f"-Drocketmq.{name}={value}" for name, value in _QUICK.items()]
        if java_major() > 8:  # a 4.x broker lets go of files it has mapped only so
            options += [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENED]
        places = [f"-Drocketmq.home.dir={home}", f"-Duser.home={home}"]
        if self.archive.exists():
            options += [f"-XX:SharedArchiveFile={self.archive}", "-Xlog:disable"]
        jars = ["-cp", ":".join(map(str, [self.programs, *sorted(self.directory.glob("*.jar"))]))]
        return ["java", *options, *places, *jars, program, *arguments]


class Process:
    """A child process whose output is gathered; it is killed when the test is over."""

    def __init__(self, command: list[str], directory: Path) -> None:
        self.child = subprocess.Popen(
            command,
            cwd=directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: list[str] = []
        self._gathering = threading.Thread(target=self._gather)
        self._gathering.start()

    def _gather(self) -> None:
        assert self.child.stdout is not None
        for line in self.child.stdout:
            if "|-" not in line:  # how the logging library talks about itself
                self.lines.append(line.rstrip())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
        self._gathering.join(PATIENCE)
        for pipe in (self.child.stdin, self.child.stdout):
            assert pipe is not None
            pipe.close()

    def kill(self) -> None:
        self.child.kill()
        self.child.wait()

    def check_alive(self) -> None:
        """Fail with what a process said that ended by itself."""
        if (code := self.child.poll()) is not None:
            self._gathering.join(PATIENCE)
            raise AssertionError(f"ended with {code}: " + "\n".join(self.lines))

    def say(self, line: str) -> None:
        assert self.child.stdin is not None
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()

    def wait_for_end(self) -> list[str]:
        """Return what it said; fails with that if it goes on for too long."""
        try:
            self.child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError("still runs: " + "\n".join(self.lines)) from None
        self._gathering.join(PATIENCE)
        return self.lines


class Admin(Process):
    """mqadmin, started once for many commands."""

    def __init__(self, jars: Jars, home: Path) -> None:
        super().__init__(jars.compiled(home, "Admin"), home)

    def run(self, command: str) -> str:
        """Return all that a command prints."""
        start = len(self.lines)
        self.say(command)
        wait_until(lambda: "#done" in self.lines[start:], f"an answer to {command}")
        return "\n".join(self.lines[start:]).split("#done")[0]


def broker(jars: Jars, home: Path, nameservers: str, **settings: object) -> Process:
    """Start a Java broker that keeps its files in `home`.

    Settings of TLS are system properties in Java.
    """
    properties = _write_broker_settings(home, nameservers, settings)
    command = jars.command(home, "org.apache.rocketmq.broker.BrokerStartup", "-c", "broker.conf")
    return Process(with_properties(command, properties), home)


def named_broker(jars: Jars, home: Path, nameserver: str, **settings: object) -> Process:
    """Start a Java name server and a broker of it in one process, which costs little more than one.

    The name server listens when this returns, as others may come to it.
    """
    properties = _write_broker_settings(home, nameserver, settings)
    (home / "namesrv.conf").write_text(f"listenPort={nameserver.rpartition(':')[2]}\n")
    command = jars.compiled(home, "NamesAndBroker", "namesrv.conf", "broker.conf")
    process = Process(with_properties(command, properties), home)
    return _listening(process, nameserver)


def _write_broker_settings(
    home: Path, nameservers: str, settings: dict[str, object]
) -> dict[str, object]:
    """Write a broker's file of settings; return those that are system properties."""
    properties = {name: settings.pop(name) for name in list(settings) if name.startswith("tls.")}
    settings = QUICK_BROKER | settings
    settings |= {
        "namesrvAddr": nameservers,
        "brokerIP1": "127.0.0.1",
        "storePathRootDir": home / "store",
        "storePathCommitLog": home / "store" / "commitlog",
        "mappedFileSizeCommitLog": 1 << 24,
    }
    lines = [f"{name}={value}\n" for name, value in settings.items()]
    (home / "broker.conf").write_text("".join(lines))
    return _NO_TLS | properties


def with_properties(command: list[str], properties: Mapping[str, object]) -> list[str]:
    """Return a command line of `Jars` with further system properties."""
    first, *rest = command
    return [first, *(f"-D{name}={value}" for name, value in properties.items()), *rest]


def nameserver(jars: Jars, home: Path, port: int, **properties: object) -> Process:
    """Start a Java name server; it listens when this returns.

    A broker that finds none when it starts tries again only after ten seconds.
    """
    command = jars.command(home, "org.apache.rocketmq.namesrv.NamesrvStartup", "-c", "namesrv.conf")
    (home / "namesrv.conf").write_text(f"listenPort={port}\n")
    process = Process(with_properties(command, _NO_TLS | properties), home)
    return _listening(process, f"127.0.0.1:{port}")


def _listening(process: Process, nameserver: str) -> Process:
    """Return a name server's process once it listens; it is ended if it does not."""

    def listening() -> bool:
        process.check_alive()
        return listens(nameserver)

    try:
        wait_until(listening, "a Java name server to listen")
    except AssertionError:
        process.__exit__(None, None, None)
        raise
    return process


def listens(address: str) -> bool:
    """Return whether somebody takes connections there."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), 10).close()
    except OSError:
        return False
    return True


def wait_until(
    condition: Callable[[], object], what: str, patience: float = PATIENCE, pause: float = 0.02
) -> None:
    deadline = time.monotonic() + patience
    while not looked(condition, pause):
        in_time = time.monotonic() < deadline or condition()
        assert in_time, f"waited {patience:g} s in vain for {what}"
