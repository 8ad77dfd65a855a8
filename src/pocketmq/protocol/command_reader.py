"""One connection's bytes as commands: frames cut and their headers read, a whole read at a time.

Owns nothing of the layout: `frame` has the prefix and what is kept of an unfinished frame,
`command` the headers.
"""

from pocketmq.errors import HeaderMalformed, ProtocolError
from pocketmq.native import in_core
from pocketmq.protocol.command import Command, read_command
from pocketmq.protocol.frame import (
    HEADER_LIMIT,
    PREFIX_SIZE,
    WORD_LIMIT,
    Frame,
    FrameReader,
    unpack_prefix,
)

_LARGEST_JOINED = 1024 * 1024


@in_core
def cut_commands(
    data: bytes, start: int, limit: int
) -> tuple[list[Command], int, HeaderMalformed | None]:
    """Return the commands of the whole frames from a position on, and where the last one ends.

    It ends before a frame that is not whole, or whose prefix is broken: a `FrameReader` keeps the
    one and refuses the other. It also ends before a frame whose header cannot be read, and then
    returns why.
    """
    commands: list[Command] = []
    position, size = start, len(data)
    while size - position >= PREFIX_SIZE:
        length, word = unpack_prefix(data, position)
        header_at = position + PREFIX_SIZE
        body_at = header_at + (word & HEADER_LIMIT)
        end = position + 4 + length
        if end > size or body_at > end or length > limit - 4 or word > WORD_LIMIT:
            break
        try:
            command = read_command(Frame(word >> 24, data[header_at:body_at], data[body_at:end]))
        except HeaderMalformed as error:
            return commands, position, error.with_traceback(None)
        commands.append(command)
        position = end
    return commands, position, None


class CommandReader(FrameReader):
    """Cuts one connection's bytes into commands, however the bytes are split."""

    __slots__ = ()

    def read(self, data: bytes, start: int = 0) -> list[Command]:
        """Take the next bytes of the stream and return the commands they complete.

        Commands that came before broken bytes are still returned; then `failure` is set, and
        nothing more can be read.
        """
        commands: list[Command] = []
        if self.unfinished:
            commands, start = self.finish(data, start)
        if self.failure is None and start < len(data):
            more, position, self.failure = cut_commands(data, start, self._limit)
            commands = commands + more if commands else more
            if position < len(data) and self.failure is None:
                self._keep_rest(data[position:])
        return commands

    def joined(self, data: bytes) -> bytes:
        """Return the next bytes with the unfinished frame before them, if they complete it.

        Then nothing is unfinished any more: the bytes are those of a read. A frame that is very
        large, or not complete, is left as it is.
        """
        unfinished, wanted = self.unfinished, self.wanted
        if not wanted or wanted > _LARGEST_JOINED or len(unfinished) + len(data) < wanted:
            return data
        self.clear()
        return bytes(unfinished) + data

    def finish(self, data: bytes, start: int = 0) -> tuple[list[Command], int]:
        """Complete the unfinished frame; return its command, if it is whole, and where it ends."""
        stop = len(data)
        if self.wanted:
            stop = min(stop, start + self.wanted - len(self.unfinished))
        else:  # part of a prefix
            stop = min(stop, start + self.missing_prefix)
        try:
            commands = [read_command(frame) for frame in self.feed(data[start:stop])]
        except ProtocolError as error:
            self.failure = error.with_traceback(None)
            return [], len(data)
        if commands or stop == len(data):
            return commands, stop
        return self.finish(data, stop)  # the prefix is known now

    def _keep_rest(self, rest: bytes) -> None:
        """Keep the beginning of a frame; a broken prefix sets `failure`."""
        try:
            self.feed(rest)
        except ProtocolError as error:
            error.with_traceback(None)
