"""The warm Python: has imported what Spark's Python processes need, and is forked for each.

Spark starts processes to find a source, to plan a read, to plan a stream and to run tasks. Each
would import PySpark, Arrow and pandas anew: half a second of processor time and more. The driver
starts this program once, with a socket to listen at; it ends when its standard input does, that is
with the driver.

A fork must be what a fresh process would have been, so it gets the module, arguments, streams,
directory and environment of its request. A request whose environment differs from this one in more
than what Spark sets is refused: variables may decide how Python and its libraries start.

There is one Python thread: others would be missing in a fork, perhaps with a lock held.
"""

import gc
import os
import runpy
import selectors
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module, invalidate_caches
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from pocketmq.spark.warm_client import ACCEPTED, STREAMS
from pocketmq.spark.warm_python import AT_START, WARM
from pocketmq.spark.worker_daemon import silence_hang_ups

IMPORTED = (
    "pyspark.worker",
    "pyspark.sql.worker.commit_data_source_write",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.write_into_data_source",
    "pocketmq.spark.batch_reader",
    "pocketmq.spark.sink",
    "pocketmq.spark.source",
    "pocketmq.spark.stream_reader",
)
_SPARK_SETS = (
    "SPARK_", "PYSPARK_", "_PYSPARK_", "PYTHONUNBUFFERED", "PYTHON_WORKER_", "PYTHON_UNIX_DOMAIN_",
    "PYTHON_DAEMON_", "PYTHON_UDF_", "PYTHON_FAULTHANDLER_", "PYTHON_TRACEBACK_",
)  # fmt: skip
"""How names begin that Spark sets for each process; no fork needs them at its start."""
_OTHERS = {*AT_START, WARM, "_", "OLDPWD", "PWD", "SHLVL"}
"""Names that are compared otherwise, that are ours, or that shells set."""
_PATH = "PYTHONPATH"
_LARGEST = 4 << 20
_PATIENCE = 2.0


class ForkRequest(NamedTuple):
    """What a process was started with."""

    directory: str
    arguments: list[str]
    environment: dict[str, str]
    streams: list[int]


class Refused(Exception):
    """The request needs a fresh process."""


class WarmServer:
    """Forks this process, and reports to clients how their forks end."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._selector = selectors.DefaultSelector()
        self._forks: dict[socket.socket, int] = {}
        self._pipe = (-1, -1)

    def run(self) -> ForkRequest | None:
        """Serve until standard input ends; in a fork, return what it was asked for."""
        ended, wake = self._pipe = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for source in (self._listener, ended, sys.stdin):
            self._selector.register(source, selectors.EVENT_READ)
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is sys.stdin:
                    return None
                if key.fileobj is self._listener:
                    request = self._serve()
                    if request is not None:
                        return request
                elif isinstance(key.fileobj, socket.socket):
                    self._end(key.fileobj)
                else:
                    os.read(ended, 4096)
                    self._reap()

    def _serve(self) -> ForkRequest | None:
        client, _ = self._listener.accept()
        streams: list[int] = []
        try:
            client.settimeout(_PATIENCE)
            request = receive(client, streams)
            check(request)
            fork = os.fork()
            if not fork:
                self._forget()
                client.close()
                return request
            self._forks[client] = fork
            self._selector.register(client, selectors.EVENT_READ)
            client.sendall(ACCEPTED)
        except (OSError, ValueError, Refused):
            if client not in self._forks:
                client.close()  # it becomes a fresh process
        for stream in streams:
            os.close(stream)
        return None

    def _forget(self) -> None:
        """Be a process of its own; the selector is not asked, since the server shares it."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._selector.close()
        self._listener.close()
        for client in self._forks:
            client.close()
        for end in self._pipe:
            os.close(end)

    def _end(self, client: socket.socket) -> None:
        """End a fork whose client has ended: Spark has killed it."""
        if client not in self._forks:  # both have ended at once
            return
        self._selector.unregister(client)
        with suppress(ProcessLookupError):
            os.kill(self._forks[client], signal.SIGTERM)

    def _reap(self) -> None:
        clients = {fork: client for client, fork in self._forks.items()}
        while self._forks:
            fork, status = os.waitpid(-1, os.WNOHANG)
            if not fork:
                return
            client = clients[fork]
            del self._forks[client]
            with suppress(KeyError):  # the client has ended before
                self._selector.unregister(client)
            code = os.waitstatus_to_exitcode(status)
            with client, suppress(OSError):
                client.sendall(bytes([code if code >= 0 else 128 - code]))


def receive(client: socket.socket, streams: list[int]) -> ForkRequest:
    """Read a request; `streams` gets its open files.

    Raises `OSError`, `ValueError` and `Refused`.
    """
    start, files, _, _ = socket.recv_fds(client, 4, len(STREAMS))
    streams += files
    size = int.from_bytes(start, "big")
    if len(start) != 4 or len(files) != len(STREAMS) or size > _LARGEST:
        raise Refused
    text = b""
    while len(text) < size:
        more = client.recv(size - len(text))
        if not more:
            raise Refused
        text += more
    directory, count, *words = [os.fsdecode(word) for word in text.split(b"\0")]
    pairs = [word.partition("=") for word in words[int(count) :]]
    environment = {name: value for name, _, value in pairs}
    return ForkRequest(directory, words[: int(count)], environment, streams)


def check(request: ForkRequest) -> None:
    """Raise `Refused` unless a fork can be what a fresh process would have been."""
    if request.arguments[:1] != ["-m"] or len(request.arguments) < 2:
        raise Refused
    for name, value in AT_START.items():
        if request.environment.get(name) not in (None, os.environ.get(name, value)):
            raise Refused
    theirs = _of_user(request.environment)
    if theirs != _of_user(os.environ):
        raise Refused
    relative = not all(map(os.path.isabs, theirs.get(_PATH, "/").split(os.pathsep)))
    if relative and request.directory != str(Path.cwd()):
        raise Refused


def _of_user(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that neither Spark nor a shell sets.

    Spark may repeat paths. Shells drop empty ones, and variables whose names they cannot write.
    """
    found = {
        name: value
        for name, value in environment.items()
        if value
        and name.isidentifier()
        and name not in _OTHERS
        and not name.startswith(_SPARK_SETS)
    }
    paths = dict.fromkeys(filter(None, found.pop(_PATH, "").split(os.pathsep)))
    return found | ({_PATH: os.pathsep.join(paths)} if paths else {})


def become(request: ForkRequest) -> None:
    """Run the module that was asked for, as the main program of this process."""
    for ours, theirs in zip(STREAMS, request.streams, strict=True):
        os.dup2(theirs, ours)
        os.close(theirs)
    os.chdir(request.directory)
    os.environ.clear()
    os.environ.update(request.environment)
    time.tzset()
    _, module, *_ = request.arguments
    if not sys.flags.safe_path:
        sys.path[0] = request.directory  # as with `-m`
    sys.argv[:] = request.arguments[1:]
    invalidate_caches()  # directories on the path may have come since
    if not hasattr(sys.modules.get(module), "__path__"):
        sys.modules.pop(module, None)  # as a main program it is another one
    sys.modules["__main__"] = ModuleType("__main__")
    run_as_main = runpy._run_module_as_main  # type: ignore[attr-defined]  # noqa: SLF001 - `-m` itself
    run_as_main(module)


def main() -> None:
    """Serve at the socket whose file number is the argument."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Spark's processes ignore it, too
    listener = socket.socket(fileno=int(sys.argv[1]))
    address = Path(listener.getsockname())
    for name in IMPORTED:
        with suppress(ImportError):  # not in every version of Spark
            import_module(name)
    if threading.active_count() > 1:
        return
    silence_hang_ups()
    os.register_at_fork(after_in_child=RandomNumbers().begin_anew)
    gc.collect()
    gc.freeze()  # pages that no collection writes to stay shared
    request = WarmServer(listener).run()
    if request is not None:
        become(request)
        return
    with suppress(OSError):  # the driver was killed, or it would have done that
        address.unlink()
        address.parent.rmdir()
    os._exit(0)


class RandomNumbers:
    """Those of numpy: unlike Python's own they would be the same in all forks."""

    def __init__(self) -> None:
        self._imported = sys.modules.get("numpy.random")
        self._state = self._now()

    def begin_anew(self) -> None:
        """Seed the generator, unless a user has."""
        if self._imported is not None and self._now() == self._state:
            self._imported.seed()
            self._state = self._now()

    def _now(self) -> object:
        if self._imported is None:
            return None
        name, keys, *rest = self._imported.get_state()
        return name, keys.tobytes(), *rest


if __name__ == "__main__":
    main()
