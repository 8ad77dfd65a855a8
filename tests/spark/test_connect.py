"""Topics by way of Spark Connect: what works, and what says that it does not."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pocketmq import Cluster
from tests.early import ENVIRONMENT, ROOT, begun_early
from tests.spark.archive import quick_java
from tests.spark.topics import send

for package in ("grpc", "grpc_status", "google.rpc", "pandas"):
    pytest.importorskip(package, reason="pyspark[connect] is not installed")


def connected(folder: Path) -> dict[str, Any]:
    """Do everything with one client of one server; return the results."""
    with Cluster(in_process=False) as cluster:
        cluster.create_topic("orders", 2)
        cluster.create_topic("out", 2)
        cluster.create_topic("copied", 2)
        send(cluster, "orders", range(100))
        told = subprocess.run(
            [sys.executable, "-m", "tests.spark.connecting", cluster.address, str(folder)],
            env=ENVIRONMENT | {"JDK_JAVA_OPTIONS": quick_java()},
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=450,
        )
    found: dict[str, Any] = json.loads(told.stdout.splitlines()[-1])
    return found


@pytest.mark.timeout(500)
@begun_early(connected)
def test_a_client_of_spark_connect_reads_writes_and_streams(outcome: dict[str, Any]) -> None:
    assert outcome == {
        "read": 100,
        "first": 5,
        "by sql": 100,
        "wrong": True,
        "written": 10,
        "streamed": 110,
        "exactly once": 210,
        "lag": 0,
        "copied": 100,
        "refused": "ingest requires a classic Spark session, not Spark Connect",
    }
