"""A Kafka broker with its own controller as a process, and confluent-kafka as a client at it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.ports import free_port

from benchmarks.java.kafka_parts import KafkaParts
from benchmarks.java.pairs import Pair
from benchmarks.java.processes import Child
from benchmarks.java.rows import KAFKA
from benchmarks.java.servers import HEAP, QUEUES, Servers

CLUSTER = "AAAAAAAAAAAAAAAAAAAAAQ"
_ROOT = Path(__file__).parents[2]


class KafkaServers(Servers):
    """One process: broker and controller."""

    name = "Kafka"

    def __init__(self, parts: KafkaParts, home: Path) -> None:
        super().__init__(home)
        self._parts = parts

    def start(self) -> None:
        controller = free_port()
        settings = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://{self.broker},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.broker}",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": self.home / "logs",
            "num.partitions": QUEUES,
            "offsets.topic.replication.factor": 1,
            "group.initial.rebalance.delay.ms": 0,
            # Stopped while others have their turns, it must not be given up by its controller.
            "broker.session.timeout.ms": 600_000,
        }
        written = "".join(f"{name}={value}\n" for name, value in settings.items())
        (self.home / "server.properties").write_text(written)
        storing = ("kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", "server.properties")
        subprocess.run(self._command(*storing), cwd=self.home, check=True, capture_output=True)
        self.children.append(Child(self._command("kafka.Kafka", "server.properties"), self.home))

    def _command(self, *words: str) -> list[str]:
        heap = HEAP["broker"]
        return ["java", f"-Xms{heap}", f"-Xmx{heap}", "-cp", f"{self._parts.jars}/*", *words]

    def is_known(self) -> bool:
        return self.listens()

    def create_topic(self, topic: str) -> None:
        """Do nothing: a topic is made by its first message, with as many partitions."""

    def change(self, settings: dict[str, int]) -> None:
        """Do nothing: clients alone say how much they fetch at once."""


@contextmanager
def kafka_pair(parts: KafkaParts, home: Path) -> Iterator[Pair]:
    """Start the broker and a client."""
    with KafkaServers(parts, home) as servers:

        def load() -> Child:
            command = [sys.executable, "-m", "benchmarks.java._kafka_load", servers.broker]
            places = [str(parts.client), os.environ.get("PYTHONPATH", "")]
            child = Child(command, _ROOT, {"PYTHONPATH": os.pathsep.join(filter(None, places))})
            child.wait_for("ready")
            return child

        pair = Pair(KAFKA, servers, load)
        try:
            yield pair
        finally:
            pair.stop()
