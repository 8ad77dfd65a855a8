"""Started by Spark instead of Python: asks the warm Python for a fork, else becomes a fresh one.

A program by itself, started by its path with nothing but Python's own modules, so that it is quick:
`warm_client.py SOCKET PYTHON ARGUMENT…`. It passes its standard streams, environment and directory
on, and ends as the fork does. If it is killed, so is the fork: the connection closes.
"""

import os
import socket
import sys

ACCEPTED = b"\1"
STREAMS = (0, 1, 2)


def main(address: str, python: str, arguments: list[str]) -> int:
    """Return the exit code of the fork; does not return if there is none."""
    with socket.socket(socket.AF_UNIX) as line:
        if not _ask(line, address, arguments):
            os.execv(python, [python, *arguments])  # noqa: S606 - what Spark has asked for
        # What Spark reads and writes is the fork's alone from now on.
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in STREAMS:
            os.dup2(nothing, stream)
        code = line.recv(1)
        return code[0] if code else 1


def _ask(line: socket.socket, address: str, arguments: list[str]) -> bool:
    words = [os.getcwdb(), b"%d" % len(arguments)]  # noqa: PTH109 - pathlib takes long to import
    words += map(os.fsencode, arguments)
    words += [name + b"=" + value for name, value in os.environb.items()]
    text = b"\0".join(words)
    try:
        line.connect(address)
        socket.send_fds(line, [len(text).to_bytes(4, "big")], STREAMS)
        line.sendall(text)
        return line.recv(1) == ACCEPTED
    except OSError:  # the warm Python has ended
        return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
