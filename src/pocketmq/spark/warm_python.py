"""The driver's side of the warm Python, of which Spark's Python processes are forks.

One for all sessions of a process, on Linux. Spark works without it, too: `warm_client` starts a
fresh process then. The server and why it exists are in `warm_server`.
"""

import atexit
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

WARM = "POCKETMQ_SPARK_WARM"
"""Names the socket; Spark's JVM passes it on. Users may set it to `off`."""
OFF = "off"
AT_START = {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
"""What Spark sets for workers unless the user has, and what only counts at a start: of Python, and
of numpy's threads."""
CLIENT = Path(__file__).with_name("warm_client.py")

_running: "subprocess.Popen[bytes] | None" = None


def warm_up() -> None:
    """Start the warm Python, unless it runs; processes of sessions that start later use it."""
    global _running  # noqa: PLW0603 - one for all sessions
    if sys.platform != "linux" or os.environ.get(WARM) == OFF:
        return
    if _running is not None and _running.poll() is None:
        return
    home = Path(tempfile.mkdtemp(prefix="pocketmq-warm-"))
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(home / "socket"))
            listener.listen(64)
            number = listener.fileno()
            _running = subprocess.Popen(  # noqa: S603 - our own module, by our own interpreter
                [sys.executable, "-m", "pocketmq.spark.warm_server", str(number)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=AT_START | os.environ | {"PYTHONUNBUFFERED": "YES"},  # as Spark has it
                pass_fds=[number],
                process_group=0,  # Ctrl-C goes to the driver alone
            )
    except OSError:  # a path too long for a socket, no more processes
        shutil.rmtree(home)
        return
    os.environ[WARM] = str(home / "socket")
    atexit.register(_stop, _running, home, os.getpid())


def warm_process() -> int | None:
    """Return the process id of the warm Python, if there is one."""
    return None if _running is None else _running.pid


def _stop(warm: "subprocess.Popen[bytes]", home: Path, driver: int) -> None:
    """End it when the driver ends; a fork of the driver that ends does nothing."""
    if os.getpid() == driver:
        warm.kill()
        warm.communicate()
        shutil.rmtree(home, ignore_errors=True)
