"""Secrets of a command: from a file, from standard input, or from a hidden prompt.

A secret among the arguments works, as in mqadmin, but other users of the machine can see it in the
list of processes and it stays in the shell's history: a warning on stderr says so, once.
"""

import os
import sys
from pathlib import Path

import click
from click.core import ParameterSource

FROM_INPUT = "-"
"""The value of an option whose secret is prompted for, or read from standard input."""
_LONGEST = 4096
_WARNED = "pocketmq.secret-warned"


def read_secret(
    name: str,
    given: str | None,
    file: str | None,
    *,
    flag: str,
    safe: str,
    confirm: bool = False,
) -> str | None:
    """Return a secret: from a file, from the prompt for `-`, or as it was given.

    `name` is the parameter, `flag` its option, `safe` the option that takes a file.
    Raises `click.UsageError`.
    """
    if file:
        if given and _source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{flag} and {safe} contradict each other; give one of them")
        return _from_file(file, safe)
    if given == FROM_INPUT:
        return ask_secret(flag, confirm=confirm)
    if given and _source(name) is ParameterSource.COMMANDLINE:
        warn_of_argument(flag, f"{safe} FILE, or {flag} - for a prompt")
    return given


def ask_secret(what: str, *, confirm: bool = False) -> str:
    """Prompt for a secret without showing it; without a terminal, read a line of stdin."""
    if sys.stdin.isatty():
        asked: str = click.prompt(
            f"Secret for {what}", hide_input=True, confirmation_prompt=confirm, err=True
        )
        return asked
    line = _line_of_input()
    if not line:
        raise click.UsageError(f"no secret for {what} on standard input")
    return line


def warn_of_argument(flag: str, instead: str) -> None:
    """Warn on stderr that other users can read a secret, once per command."""
    context = click.get_current_context(silent=True)
    meta = {} if context is None else context.meta
    if _WARNED not in meta:
        meta[_WARNED] = True
        click.echo(
            f"pocketmq: warning: other users of this machine can see the secret of {flag} in the "
            f"list of processes; use {instead}",
            err=True,
        )


def _source(name: str) -> ParameterSource | None:
    context = click.get_current_context(silent=True)
    return None if context is None else context.get_parameter_source(name)


def _from_file(file: str, flag: str) -> str:
    """Return the first line of a file."""
    try:
        with Path(file).open("rb") as content:
            line = content.read(_LONGEST).split(b"\n", 1)[0]
        secret = line.decode().rstrip("\r")
    except OSError as problem:
        raise click.UsageError(f"{flag}: cannot read {file}: {problem.strerror}") from problem
    except UnicodeDecodeError:
        raise click.UsageError(f"{flag}: {file} is not UTF-8 text") from None
    if not secret:
        raise click.UsageError(f"{flag}: the first line of {file} is empty")
    return secret


def _line_of_input() -> str:
    """Read one line and no byte after it: the rest may be messages."""
    line = b""
    while len(line) < _LONGEST:
        byte = os.read(0, 1)
        if byte in {b"", b"\n"}:
            break
        line += byte
    return line.decode("utf-8", "replace").rstrip("\r")
