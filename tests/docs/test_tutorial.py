"""The tutorial, word by word: its commands and files are run as real processes, on a free port."""

import queue
import re
import shlex
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from tests.server_process import CommandProcess

PAGE = Path(__file__).parents[2] / "docs" / "tutorial" / "first-message.md"
ADDRESS = "127.0.0.1:9876"
WAIT = 60.0


def blocks_of_steps() -> list[list[str]]:
    """Return the code blocks of each step."""
    text = PAGE.read_text().partition("The same in one file")[0]
    block = re.compile(r"^   ```\w*\n(.*?)^   ```", re.MULTILINE | re.DOTALL)
    found = [block.findall(step) for step in re.split(r"^\d+\. ", text, flags=re.MULTILINE)[1:]]
    return [[textwrap.dedent(block) for block in blocks] for blocks in found]


class Terminal:
    """A program that runs; its lines come into one queue with those of others."""

    def __init__(self, file: Path, said: "queue.Queue[tuple[Terminal, str]]") -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-u", str(file)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._said = said
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._said.put((self, line.rstrip("\n")))

    def press_ctrl_c(self) -> int:
        """Return the exit code; all lines have come then."""
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(WAIT)
        self._reader.join(WAIT)
        return code

    def close(self) -> None:
        self.process.kill()
        self.process.wait(WAIT)
        self._reader.join(WAIT)
        assert self.process.stdout is not None
        self.process.stdout.close()


class Desk:
    """A folder with the tutorial's files, and terminals that run them."""

    def __init__(self, folder: Path, address: str, stack: ExitStack) -> None:
        self.said: queue.Queue[tuple[Terminal, str]] = queue.Queue()
        self._folder, self._address, self._stack = folder, address, stack

    def write(self, name: str, text: str) -> Path:
        assert ADDRESS in text
        file = self._folder / name
        file.write_text(text.replace(ADDRESS, self._address))
        return file

    def open(self, file: Path) -> Terminal:
        terminal = Terminal(file, self.said)
        self._stack.callback(terminal.close)
        return terminal

    def forget(self) -> None:
        """Drop the lines that have come: two owners of a queue may both have said one."""
        with suppress(queue.Empty):
            while True:
                self.said.get_nowait()

    def run(self, file: Path) -> str:
        done = subprocess.run(
            [sys.executable, str(file)], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout


@contextmanager
def cluster_of(command: str, ready: str, home: Path) -> Iterator[str]:
    """Run the tutorial's cluster on a free port; yield its address."""
    name, *words = shlex.split(command)
    assert name == "pocketmq"
    with CommandProcess(*words, "--port", "0", variables={"HOME": str(home)}) as server:
        assert re.sub(r":\d+", ":", server.ready) == re.sub(r":\d+", ":", ready)
        found = re.search(r"namesrv=(\S+)", server.ready)
        assert found is not None
        yield found[1]
        assert server.stop(signal.SIGINT) == 0


@pytest.mark.timeout(240)
def test_every_step_does_what_it_says(tmp_path: Path) -> None:
    _, (up, ready), (producer_text,), (consumer_text,), _, _ = blocks_of_steps()
    with cluster_of(up, ready, tmp_path) as address, ExitStack() as stack:
        desk = Desk(tmp_path, address, stack)
        producer = desk.write("producer.py", producer_text)
        assert re.fullmatch(r"[0-9A-F]{32} .*orders.*\n", desk.run(producer))

        consumer = desk.write("consumer.py", consumer_text)
        first = desk.open(consumer)
        assert desk.said.get(timeout=WAIT) == (first, "paid 42 EUR")
        desk.run(producer)
        assert desk.said.get(timeout=WAIT) == (first, "paid 42 EUR")

        second = desk.open(consumer)
        who = {first}
        for _ in range(40):
            desk.run(producer)
            terminal, line = desk.said.get(timeout=WAIT)
            assert line == "paid 42 EUR"
            who.add(terminal)
            if second in who:
                break
        assert who == {first, second}
        assert first.press_ctrl_c() == 0
        desk.forget()
        desk.run(producer)
        assert desk.said.get(timeout=WAIT) == (second, "paid 42 EUR")
        assert second.press_ctrl_c() == 0

        printing = "print(message.tag, message.body.decode())"
        assert printing in consumer_text
        failing = consumer_text.replace(printing, 'raise RuntimeError("no")')
        third = desk.open(desk.write("consumer.py", failing))
        desk.run(producer)
        lines = [desk.said.get(timeout=WAIT)[1]]
        while "RuntimeError: no" not in lines[-1]:
            lines.append(desk.said.get(timeout=WAIT)[1])
        assert third.press_ctrl_c() == 0
