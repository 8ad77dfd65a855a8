"""The Python that Spark starts: this one, by a script that spares it most of the work of a start.

Spark puts its largest jar on the path of Python's modules. It holds no module, but every process
reads its directory of 6,000 entries, twice: a tenth of a second for each stream that starts. And
every process imports the same modules, if it is not a fork of the warm Python, which has.
"""

import os
import shlex
import sys
from pathlib import Path

from pocketmq.spark.scripts import MARK, directory_for, started_by, write
from pocketmq.spark.warm_python import CLIENT, WARM, warm_up

VARIABLE = "PYSPARK_PYTHON"

_SCRIPT = """#!/bin/sh
{mark}{python} for Spark.
# Jars of Spark hold no Python modules, but Python would search them.
set -f
IFS=:
path=
for entry in $PYTHONPATH; do
  case "$entry" in
    */spark-core_*.jar) ;;
    *) path="$path${{path:+:}}$entry" ;;
  esac
done
unset IFS
export PYTHONPATH="$path"
if [ "$1" = -m ] && [ -S "${warm}" ]; then
  exec {quoted} -I -S {client} "${warm}" {quoted} "$@"
fi
exec {quoted} "$@"
"""


def choose_python(*, local: bool) -> None:
    """Name the Python of Spark's processes by its variable, unless the user has.

    On a cluster this Python is named itself: its machines do not have the script. Raises
    `CannotStart`.
    """
    named = os.environ.get(VARIABLE)
    if named and started_by(Path(named)) is None:
        return
    script = local and os.name == "posix"
    os.environ[VARIABLE] = str(_script(sys.executable)) if script else sys.executable
    if script:
        warm_up()


def _script(python: str) -> Path:
    client, quoted = shlex.quote(str(CLIENT)), shlex.quote(python)
    text = _SCRIPT.format(mark=MARK, python=python, quoted=quoted, client=client, warm=WARM)
    path = directory_for("python", text) / "bin" / "python"
    write(path, text, 0o700)
    return path
