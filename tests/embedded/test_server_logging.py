"""Log lines: what they look like, and that nobody can break them."""

import json
import logging
import re
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from pocketmq.embedded.server_logging import JsonLines, LogSettings, TextLines, escaped


def record(
    message: str, *, level: int = logging.INFO, name: str = "pocketmq.store"
) -> logging.LogRecord:
    made = logging.LogRecord(name, level, "file.py", 1, message, None, None)
    made.created, made.msecs = 1_700_000_000.25, 250.0
    return made


def test_a_line_has_time_level_area_and_text() -> None:
    line = TextLines(LogSettings()).format(record("recovered"))
    assert line == "2023-11-14T22:13:20.250Z INFO store: recovered"


def test_a_broker_process_names_itself() -> None:
    settings = LogSettings(process="broker-1")
    assert TextLines(settings).format(record("x")).endswith(" INFO broker-1/store: x")
    assert json.loads(JsonLines(settings).format(record("x")))["process"] == "broker-1"


def test_a_json_line_has_the_same_as_fields() -> None:
    line = JsonLines(LogSettings()).format(record("recovered", level=logging.ERROR))
    assert json.loads(line) == {
        "time": "2023-11-14T22:13:20.250Z",
        "level": "error",
        "area": "store",
        "message": "recovered",
    }


def test_a_traceback_follows_indented_or_is_a_field() -> None:
    problem = ValueError("bad\nworse")
    made = record("failed")
    made.exc_info = (ValueError, problem, None)
    text = TextLines(LogSettings()).format(made).split("\n")
    assert text[0].endswith("INFO store: failed")
    assert all(line.startswith("    ") for line in text[1:])
    assert text[-2:] == ["    ValueError: bad", "    worse"]
    entry = json.loads(JsonLines(LogSettings()).format(made))
    assert entry["traceback"].endswith("ValueError: bad\nworse")


@given(st.text(st.characters(codec=None)))
def test_whatever_a_peer_says_stays_within_one_line(said: str) -> None:
    made = record("%s")
    made.args = (said,)
    text = TextLines(LogSettings()).format(made)
    assert text.isprintable()
    assert text.startswith("2023-11-14T22:13:20.250Z INFO store: ")
    line = JsonLines(LogSettings()).format(made)
    assert "\n" not in line
    assert json.loads(line)["message"] == said.encode(errors="replace").decode()


def test_escapes_are_those_of_python() -> None:
    assert escaped("a\tb\x1b[31m\u2028é") == r"a\tb\x1b[31m\u2028é"


PROGRAM = """
import logging
from pocketmq.embedded.server_logging import LogSettings, set_up_logging
log = set_up_logging(LogSettings(level={level!r}))
logging.getLogger("pocketmq.a").debug("debug")
logging.getLogger("pocketmq.a").info("info")
logging.getLogger("pocketmq.a").warning("warning")
logging.getLogger("asyncio").info("not ours")
{more}
"""


def lines_of(level: str, more: str = "") -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(level=level, more=more)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return [re.sub(r"^\S+ ", "", line) for line in done.stderr.splitlines()]


def test_until_a_server_has_started_only_warnings_are_shown() -> None:
    assert lines_of("info") == ["WARNING a: warning"]
    assert lines_of("info", "log.started()") == ["WARNING a: warning", "INFO a: info"]


def test_debug_shows_everything_of_ours_at_once() -> None:
    assert lines_of("debug") == ["DEBUG a: debug", "INFO a: info", "WARNING a: warning"]


def test_a_closed_stderr_stops_nobody() -> None:
    more = "import os; os.close(2); log.started(); logging.getLogger('pocketmq').error('x')"
    assert lines_of("info", more) == ["WARNING a: warning"]
