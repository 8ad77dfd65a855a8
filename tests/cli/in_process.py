"""`pocketmq` in this process, for tests of what it says: a process of its own takes half a second.

Every command that tests run this way is also run by a few of them as users do. What concerns the
process itself (signals, terminals, pipes that end, imports) is always tested with real ones.
"""

import io
import logging
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager, nullcontext
from pathlib import Path

from pocketmq.cli import run


def command(
    *arguments: str,
    stdin: bytes = b"",
    variables: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run it; give the exit code and what came on stdout and stderr."""
    with (
        _environment(variables or {}),
        _logging(),
        nullcontext() if cwd is None else chdir(cwd),
        _streams(stdin) as (out, error),
    ):
        code = run(list(arguments))
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), error.getvalue())


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _logging() -> Iterator[None]:
    """Undo what a server sets, which has the process for itself."""
    logger = logging.getLogger("pocketmq")
    before = logger.level, logger.propagate, logger.handlers[:]
    try:
        yield
    finally:
        logger.setLevel(before[0])
        logger.propagate, logger.handlers[:] = before[1:]


@contextmanager
def _streams(stdin: bytes) -> Iterator[tuple[io.BytesIO, io.BytesIO]]:
    before = sys.stdin, sys.stdout, sys.stderr
    given, out, error = io.BytesIO(stdin), io.BytesIO(), io.BytesIO()
    texts = [io.TextIOWrapper(each, encoding="utf-8") for each in (given, out, error)]
    sys.stdin, sys.stdout, sys.stderr = texts
    try:
        yield out, error
    finally:
        sys.stdin, sys.stdout, sys.stderr = before
        for text in texts:
            text.flush()
            text.detach()
