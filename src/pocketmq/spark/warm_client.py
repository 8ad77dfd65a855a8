"""Started by Spark instead of Python: asks the warm Python for a fork, else becomes a fresh one.

A program by itself, started by its path with nothing but Python's own modules, so that it is quick:
`warm_client.py SOCKET PYTHON ARGUMENT…`. It passes its standard streams, environment and directory
on, and ends as the fork does. If it is killed, so is the fork: the connection closes.
"""

import os
import socket
import struct
import sys

ACCEPTED = b"\1"
STREAMS = (0, 1, 2)
_CREDENTIALS = struct.Struct("3i")


def main(address: str, python: str, arguments: list[str]) -> int:
    """Return the exit code of the fork; does not return if there is none."""
    line = _accepted(address, arguments)
    if line is None:
        os.execv(python, [python, *arguments])  # noqa: S606 - what Spark has asked for
    return _follow(line)


def _accepted(address: str, arguments: list[str]) -> socket.socket | None:
    try:
        for stream in STREAMS:
            os.fstat(stream)  # one that is closed cannot be passed on
        line = socket.socket(socket.AF_UNIX)
        return line if _ask(line, address, arguments) else None
    except OSError:  # the warm Python has ended
        return None


def _ask(line: socket.socket, address: str, arguments: list[str]) -> bool:
    words = [os.getcwdb(), b"%d" % len(arguments)]  # noqa: PTH109 - pathlib takes long to import
    words += map(os.fsencode, arguments)
    words += [name + b"=" + value for name, value in os.environb.items()]
    text = b"\0".join(words)
    line.connect(address)
    peer = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    if _CREDENTIALS.unpack(peer)[1] != os.getuid():  # the environment holds secrets
        return False
    socket.send_fds(line, [len(text).to_bytes(4, "big")], STREAMS)
    line.sendall(text)
    return line.recv(1) == ACCEPTED


def _follow(line: socket.socket) -> int:
    """Wait for the fork's end; what Spark reads and writes is the fork's alone from now on."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in STREAMS:
        os.dup2(nothing, stream)
    code = line.recv(1)
    return code[0] if code else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
