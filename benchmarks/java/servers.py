"""A name server and a broker, Apache's or ours, as processes on free ports."""

import json
import os
import socket
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

from tests.ports import free_port

import pocketmq as mq
from benchmarks.java.guards import OPEN, Guard
from benchmarks.java.processes import Child, memory, tree, until
from pocketmq.errors import MQError
from pocketmq.model import TopicConfig

QUEUES = 8
LARGE_PULLS = {
    "maxTransferCountOnMessageInMemory": 1024,
    "maxTransferBytesOnMessageInMemory": 1 << 20,
}
"""What brokers must be told before they give more than 32 messages a pull."""
HEAP = {"namesrv": "128m", "broker": "512m", "client": "512m", "member": "128m"}
PURE_PATH = {"POCKETMQ_PURE": "1"}
_SILENT = "<configuration><root level='OFF'/></configuration>"


class Java:
    """The jars of one release, our programs compiled with them, and what brokers are told."""

    def __init__(
        self, jars: Path, home: Path, settings: Mapping[str, object] | None = None
    ) -> None:
        self.jars = jars
        self.settings = settings or {}
        self.classes = home / "classes"
        self.classes.mkdir()
        for name in ("logback.xml", "rmq.logback.xml"):
            (self.classes / name).write_text(_SILENT)
        sources = sorted(map(str, Path(__file__).parent.glob("*.java")))
        command = ["javac", "-nowarn", "-Xlint:none", "-XDsuppressNotes", "-d", str(self.classes)]
        subprocess.run([*command, "-cp", f"{jars}/*", *sources], check=True)

    @property
    def version(self) -> str:
        (client,) = self.jars.glob("rocketmq-client-[0-9]*.jar")
        return client.stem.removeprefix("rocketmq-client-")

    def command(
        self, home: Path, part: str, *arguments: str, properties: Mapping[str, object] | None = None
    ) -> list[str]:
        heap = [f"-Xms{HEAP[part]}", f"-Xmx{HEAP[part]}"]
        given = {"rocketmq.home.dir": home, "user.home": home, **(properties or {})}
        told = [f"-D{name}={value}" for name, value in given.items()]
        return ["java", *heap, *told, "-cp", f"{self.classes}:{self.jars}/*", *arguments]


class Servers(ABC):
    """One name server, one broker; used with `with`."""

    name = ""

    def __init__(self, home: Path, guard: Guard = OPEN, **settings: object) -> None:
        self._place = tempfile.TemporaryDirectory(dir=home)
        self.home = Path(self._place.name)
        self.guard = guard
        self.settings = settings
        self.port = free_port()
        self.namesrv = f"127.0.0.1:{free_port()}"
        self.children: list[Child] = []

    @abstractmethod
    def start(self) -> None:
        """Start the processes."""

    def __enter__(self) -> Self:
        self.start()
        until(self.listens, f"the broker of {self.name}")
        until(self.is_known, f"the broker of {self.name} at its name server")
        return self

    def __exit__(self, *_: object) -> None:
        for child in reversed(self.children):
            child.stop()
        with suppress(OSError):
            self._place.cleanup()

    def listens(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 0.1).close()
        except OSError:
            return False
        return True

    def is_known(self) -> bool:
        """Return whether the name server has the broker."""
        try:
            with self._admin() as admin:
                return bool(admin.brokers.masters())
        except MQError:
            return False

    @property
    def broker(self) -> str:
        return f"127.0.0.1:{self.port}"

    def _admin(self) -> mq.Admin:
        return mq.Admin(self.namesrv, timeout=10.0, **self.guard.admin_options())

    def create_topic(self, topic: str) -> None:
        config = TopicConfig(topic_name=topic, read_queue_nums=QUEUES, write_queue_nums=QUEUES)
        with self._admin() as admin:
            admin.topics.create(config, address=self.broker).all()

    def admit(self, topic: str) -> None:
        """Let clients send to a topic, where the broker asks who they are."""
        with self._admin() as admin:
            self.guard.admit(admin, self.broker, topic)

    def change(self, settings: dict[str, int]) -> None:
        """Change settings of the running broker."""
        texts = {name: str(value) for name, value in settings.items()}
        with self._admin() as admin:
            admin.brokers.change_config(texts, address=self.broker).all()

    def cpu(self) -> float:
        return sum(child.cpu() for child in self.children)

    def memory(self) -> tuple[float, float]:
        """Return the MB of all processes: in memory, and their own."""
        each = [memory(pid) for child in self.children for pid in tree(child.pid)]
        return sum(whole for whole, _ in each), sum(own for _, own in each)


class JavaServers(Servers):
    name = "Java"

    def __init__(self, java: Java, home: Path, guard: Guard = OPEN, **settings: object) -> None:
        super().__init__(home, guard, **settings)
        self._java = java

    def start(self) -> None:
        (self.home / "namesrv.conf").write_text(f"listenPort={self.namesrv.partition(':')[2]}\n")
        store = self.home / "store"
        settings = {
            "namesrvAddr": self.namesrv,
            "brokerIP1": "127.0.0.1",
            "listenPort": self.port,
            "brokerName": "broker-0",
            "storePathRootDir": store,
            "storePathCommitLog": store / "commitlog",
            **self._java.settings,
            **self.guard.java_broker_settings(),
            **self.settings,
        }
        lines = [f"{name}={value}\n" for name, value in settings.items()]
        (self.home / "broker.conf").write_text("".join(lines))
        (self.home / "conf").mkdir()
        package = "org.apache.rocketmq"
        for part, program, tls_mode in (
            ("namesrv", f"{package}.namesrv.NamesrvStartup", "permissive"),
            ("broker", f"{package}.broker.BrokerStartup", "enforcing"),
        ):  # a Java broker comes to its name server without TLS
            told = self.guard.java_server_properties(tls_mode)
            # 4.x does not start without this file.
            (self.home / "conf" / f"logback_{part}.xml").write_text(_SILENT)
            words = (part, program, "-c", f"{part}.conf")
            command = self._java.command(self.home, *words, properties=told)
            self.children.append(Child(command, self.home))


class OurServers(Servers):
    name = "ours"
    environment: Mapping[str, str] = {}

    def start(self) -> None:
        command = [sys.executable, "-m", "pocketmq", "up", "--host", "127.0.0.1"]
        command += ["--port", self.namesrv.partition(":")[2], "--broker-port", str(self.port)]
        command += ["--data", str(self.home / "data"), "--log-level", "error"]
        settings = {**self.guard.broker_settings(), **self.settings}
        written = self.home / "broker.conf"
        written.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        command += ["--config", str(written)]
        if certificate := self.guard.certificate:
            command += ["--tls-cert", certificate.server, "--tls-key", certificate.key]
            command += ["--tls-mode", "enforcing"]
        self.children.append(Child(command, Path.cwd(), self.environment))


class PureServers(OurServers):
    """Ours without the native core."""

    environment = PURE_PATH


def load_of_java(java: Java, servers: Servers) -> Child:
    told = servers.guard.java_client_properties()
    words = ("client", "SideLoad", servers.namesrv)
    child = Child(java.command(servers.home, *words, properties=told), servers.home)
    child.wait_for("ready")
    return child


def load_of_ours(servers: Servers, *, pure: bool = False) -> Child:
    words = [servers.namesrv, json.dumps(servers.guard)]
    command = [sys.executable, "-m", "benchmarks.java._load", *words]
    child = Child(command, Path.cwd(), PURE_PATH if pure else {})
    child.wait_for("ready")
    return child


def file_system(path: Path) -> str:
    """Name the kind of file system that a path lies on, such as ext4."""
    best = ("", "unknown")
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        about, _, kind = line.partition(" - ")
        place = about.split()[4]
        if path.resolve().is_relative_to(place) and len(place) >= len(best[0]):
            best = place, kind.split()[0]
    return best[1]


def machine() -> str:
    """Return what this runs on."""
    model = ""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    memory_kb = int(Path("/proc/meminfo").read_text().split()[1])
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr
    python = ".".join(map(str, sys.version_info[:3]))
    return (
        f"{os.cpu_count()} × {model or 'processor'}, {memory_kb / 2**20:.0f} GB; "
        f"{java.splitlines()[0] if java else 'java'}; Python {python}"
    )
