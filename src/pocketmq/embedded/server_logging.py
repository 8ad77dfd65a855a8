"""Log lines of a server process on stderr: time, level, area and text, or one JSON object a line.

An area is the part that speaks (`nameserver`, `store`, …); in a broker process of a cluster its
broker's name stands before it. A line is written in one piece, so those of several processes that
share a stderr do not mix. What a peer said cannot break a line: control characters are escaped.
"""

import logging
import sys
import time
from typing import TextIO

import msgspec

LEVELS = ("debug", "info", "warning", "error")


class LogSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How much a server logs, and in which form."""

    level: str = "info"
    as_json: bool = False
    process: str = ""  # the broker's name, in a process of its own


class StderrLines(logging.StreamHandler[TextIO]):
    """Writes the log; can hold back what is not worth reading if the start fails."""

    def __init__(self, settings: LogSettings) -> None:
        super().__init__(sys.stderr)
        self.setFormatter(JsonLines(settings) if settings.as_json else TextLines(settings))
        self._held: list[logging.LogRecord] | None = None if settings.level == "debug" else []

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, or keep it for later."""
        if self._held is None or record.levelno >= logging.WARNING:
            super().emit(record)
        else:
            self._held.append(record)

    def started(self) -> None:
        """Write what was held back, and hold back no more."""
        held, self._held = self._held, None
        for record in held or ():
            super().emit(record)


def set_up_logging(settings: LogSettings) -> StderrLines:
    """Send the log of this process to stderr; what was set up before is replaced.

    Until `started` is called on the handler, only warnings and errors are written, so that a wrong
    option leads to one line. The level `debug` shows everything at once.
    """
    handler = StderrLines(settings)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    level = logging.getLevelNamesMapping()[settings.level.upper()]
    logging.getLogger("pocketmq").setLevel(level)
    # If stderr is closed, logging must not try to report that on stderr.
    logging.raiseExceptions = False
    return handler


class TextLines(logging.Formatter):
    """`2026-01-31T12:00:00.123Z INFO broker-0/store: text`; a traceback follows indented."""

    def __init__(self, settings: LogSettings) -> None:
        super().__init__()
        self._process = f"{settings.process}/" if settings.process else ""

    def format(self, record: logging.LogRecord) -> str:
        """Make one line, and further ones for a traceback."""
        head = f"{_timestamp(record)} {record.levelname} {self._process}{_area(record)}: "
        line = head + escaped(record.getMessage())
        if record.exc_info:
            trace = self.formatException(record.exc_info)
            line += "".join(f"\n    {escaped(each)}" for each in trace.splitlines())
        return line


class JsonLines(logging.Formatter):
    """`{"time":…,"level":…,"area":…,"process":…,"message":…,"traceback":…}`."""

    def __init__(self, settings: LogSettings) -> None:
        super().__init__()
        self._process = settings.process

    def format(self, record: logging.LogRecord) -> str:
        """Make one line, whatever it is about."""
        entry = {
            "time": _timestamp(record),
            "level": record.levelname.lower(),
            "area": _area(record),
            "message": record.getMessage(),
        }
        if self._process:
            entry["process"] = self._process
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        try:
            return msgspec.json.encode(entry).decode()
        except UnicodeEncodeError:  # half of a surrogate pair, from a peer's text
            safe = {key: value.encode(errors="replace").decode() for key, value in entry.items()}
            return msgspec.json.encode(safe).decode()


def escaped(text: str) -> str:
    """Return text that is safe within one line on a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _timestamp(record: logging.LogRecord) -> str:
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{seconds}.{int(record.msecs):03d}Z"


def _area(record: logging.LogRecord) -> str:
    return record.name.removeprefix("pocketmq.")
