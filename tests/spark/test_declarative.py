"""A declarative pipeline as the how-to shows it: a topic to tables, and to another topic."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import pocketmq as mq
from pocketmq.spark.batch_reader import batch_reader
from pocketmq.spark.schema import full_schema
from tests.early import ENVIRONMENT, ROOT, begun_early
from tests.spark.archive import quick_java
from tests.spark.topics import rows

for package in ("grpc", "grpc_status", "google.rpc", "pandas", "yaml"):
    pytest.importorskip(package, reason="pyspark[pipelines] is not installed")

PAGE = ROOT / "docs" / "how-to" / "run-declarative-pipelines.md"
PATIENCE = 450.0


class Seen(NamedTuple):
    """What a run left: its messages, its tables, the topic of its sink."""

    code: int
    said: str
    table: int
    by_tag: dict[str, int]
    sent: list[bytes]


def block(language: str) -> str:
    """Return the block of the page in a language."""
    found = re.search(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


def table(folder: Path, name: str) -> list[dict[str, Any]]:
    from pyarrow import parquet

    read: list[dict[str, Any]] = parquet.read_table(folder / "spark-warehouse" / name).to_pylist()
    return read


def java_home() -> str:
    """Ask a process of its own for it: tests of this one have an environment with false ones."""
    code = "from pocketmq.spark.engine import java_home; print(java_home())"
    asked = subprocess.run(
        [sys.executable, "-c", code], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, check=True
    )
    return asked.stdout.strip()


def run_pipeline(folder: Path) -> Seen:
    """Make the project of the page, and run it as the page says."""
    with mq.Cluster(in_process=False) as cluster:
        cluster.create_topic("orders", 2)
        cluster.create_topic("paid-orders", 2)
        with mq.Producer(cluster.address, group="shop", send_timeout=30.0) as producer:
            for number in range(30):
                tag = "paid" if number % 3 == 0 else "open"
                producer.send(mq.Message("orders", b"%d" % number, tag=tag))
        spec = re.sub("file://.*", f"{(folder / 'storage').as_uri()}", block("yaml"))
        (folder / "spark-pipeline.yml").write_text(spec)
        (folder / "transformations").mkdir()
        code = block("py").replace("127.0.0.1:9876", cluster.address)
        (folder / "transformations" / "orders.py").write_text(code)
        run = subprocess.run(
            [str(Path(sys.executable).with_name("spark-pipelines")), "run"],
            cwd=folder,
            env=ENVIRONMENT
            | {
                "JAVA_HOME": java_home(),
                "JDK_JAVA_OPTIONS": f"{quick_java()} -Xmx700m",
                "PYSPARK_PYTHON": sys.executable,
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                "SPARK_LOCAL_IP": "127.0.0.1",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        options = {"nameServer": cluster.address, "subscribe": "paid-orders"}
        reader = batch_reader(options, full_schema())
        sent = sorted(row["body"] for row in rows(reader, reader.partitions()))
    if run.returncode:
        return Seen(run.returncode, run.stdout, 0, {}, sent)
    counted = {row["tags"]: row["count"] for row in table(folder, "orders_by_tag")}
    return Seen(0, run.stdout, len(table(folder, "orders")), counted, sent)


@pytest.mark.timeout(500)
@begun_early(run_pipeline)
def test_a_declarative_pipeline_reads_a_topic_and_writes_one(outcome: Seen) -> None:
    assert outcome.code == 0, outcome.said
    assert outcome.table == 30
    assert outcome.by_tag == {"paid": 10, "open": 20}
    assert outcome.sent == sorted(b"%d" % number for number in range(0, 30, 3))
