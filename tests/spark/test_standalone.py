"""A Spark cluster of processes: a master, two workers, executors that share pipelines' work."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyspark
import pytest

from pocketmq import Cluster
from pocketmq.spark.engine import installed_java, java_home
from tests.early import ENVIRONMENT, ROOT, begun_early
from tests.spark.archive import quick_java
from tests.spark.topics import send

PATIENCE = 100.0
ROWS = 4000

SETTINGS = """
spark.driver.memory 600m
spark.executor.memory 600m
spark.executor.cores 1
spark.cores.max 2
spark.driver.host 127.0.0.1
spark.ui.enabled false
spark.sql.shuffle.partitions 2
spark.scheduler.minRegisteredResourcesRatio 1.0
spark.scheduler.maxRegisteredResourcesWaitingTime 60s
"""

PROGRAM = """
import json, sys
from pocketmq.pipelines.copy import CopySettings, copy_topics
from pocketmq.pipelines.ingest import IngestSettings, ingest
from pocketmq.spark import spark_session
from pocketmq.spark.engine import stop_session

master, address, topic, folder = sys.argv[1:]
spark = spark_session(master=master)
try:
    ingest(
        spark, address, [topic], folder + "/lake",
        IngestSettings(once=True, largest_batch=1500))
    copy_topics(
        spark, address, [topic], to_name_server=address, checkpoint=folder + "/state",
        settings=CopySettings(to_topic="copied", once=True))
    options = {"nameServer": address, "minPartitions": 8}
    batch = spark.read.format("rocketmq").options(subscribe=topic, **options).load()
    copied = spark.read.format("rocketmq").options(subscribe="copied", **options).load()
    ingested = spark.read.parquet(folder + "/lake/data")
    executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
    print(json.dumps({
        "rows": batch.count(),
        "places": batch.select("queueId", "queueOffset").distinct().count(),
        "copied": copied.select("body").distinct().count(),
        "ingested": ingested.count(),
        "texts": ingested.select("body").distinct().count(),
        "executors": executors}))
finally:
    stop_session(spark)
"""


class Processes:
    """Java processes of a test, each with all it starts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self, name: str, *arguments: str) -> Path:
        """Start a class of Spark's; give the file with what it says."""
        home = Path(pyspark.__file__).parent
        java = installed_java(ENVIRONMENT)
        environment = ENVIRONMENT | {
            "JAVA_HOME": str(java_home(light=False) if java is None else java.parent.parent),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "200m",
            "JAVA_TOOL_OPTIONS": quick_java(),
            "PYSPARK_PYTHON": sys.executable,
        }
        said = self.folder / f"{name}-{len(self._started)}.log"
        with said.open("wb") as file:
            command = [str(home / "bin" / "spark-class"), *arguments]
            self._started.append(
                subprocess.Popen(
                    command, stdout=file, stderr=file, env=environment, start_new_session=True
                )
            )
        return said

    def stop(self) -> None:
        """End all of them."""
        for process in self._started:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait_for(said: Path, text: str) -> str:
    """Return the line that holds a text."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for line in said.read_text().splitlines():
            if text in line:
                return line
        time.sleep(0.05)
    pytest.fail(f"{said.name} never said {text!r}:\n{said.read_text()[-2000:]}")


@contextmanager
def standalone(folder: Path) -> Iterator[str]:
    """Yield the address of a master with two workers of one core each."""
    processes = Processes(folder)
    try:
        listening = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        said = processes.start("master", "org.apache.spark.deploy.master.Master", *listening)
        line = wait_for(said, "Starting Spark master at spark://")
        address = line.partition("Starting Spark master at ")[2].strip()
        workers = []
        for number in range(2):
            small = ("--host", "127.0.0.1", "--webui-port", "0", "-c", "1", "-m", "700m")
            place = ("-d", str(folder / f"worker-{number}"))
            name = "org.apache.spark.deploy.worker.Worker"
            workers.append(processes.start("worker", name, *small, *place, address))
        for worker in workers:
            wait_for(worker, "Successfully registered with master")
        yield address
    finally:
        processes.stop()


def work_between_executors(folder: Path) -> dict[str, int]:
    """Run pipelines and queries on a cluster of Spark's; give what was counted.

    One application: to start Java for the driver and each executor costs more than all they do.
    """
    settings = folder / "settings"
    settings.write_text(SETTINGS)
    # Not as SPARK_CONF_DIR: that is part of the class path, and Java would ignore the archive.
    environment = ENVIRONMENT | {
        "PYSPARK_SUBMIT_ARGS": f"--properties-file {settings} pyspark-shell",
        "JAVA_TOOL_OPTIONS": quick_java(),
    }
    with Cluster() as cluster, standalone(folder) as master:
        topic = cluster.create_topic("between-executors", queues=2)
        cluster.create_topic("copied", queues=2)
        send(cluster, topic, range(ROWS))

        told = subprocess.run(
            [sys.executable, "-c", PROGRAM, master, cluster.address, topic, str(folder)],
            env=environment,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=450,
        )
    return dict(json.loads(told.stdout.splitlines()[-1]))


@pytest.mark.timeout(500)
@begun_early(work_between_executors)
def test_executors_of_a_cluster_read_and_write_topics_between_them(outcome: dict[str, int]) -> None:
    executors = outcome.pop("executors")
    assert set(outcome.values()) == {ROWS}, outcome
    assert executors == 2
