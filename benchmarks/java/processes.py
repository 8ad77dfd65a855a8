"""Child processes that are measured: what they say, and what they cost."""

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from queue import Empty, Queue

PATIENCE = 300.0
_TICK = os.sysconf("SC_CLK_TCK")


def tree(pid: int) -> list[int]:
    """Return a process and all below it."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has just ended
            for child in task.read_text().split():
                found += tree(int(child))
    return found


def cpu(pid: int) -> float:
    """Return the seconds of processor time a process has used, threads that ended included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def memory(pid: int) -> tuple[float, float]:
    """Return the MB a process has in memory and those of its own, with its part of shared ones."""
    found = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        name, _, rest = line.partition(":")
        if rest.strip().endswith("kB"):
            found[name] = int(rest.split()[0]) / 1024
    return found["Pss"], found.get("Pss_Anon", found["Anonymous"])


class Child:
    """A process that talks in lines."""

    def __init__(
        self, command: list[str], home: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        self.process = subprocess.Popen(
            command,
            cwd=home,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={**os.environ, **(environment or {})},
        )
        self._lines: Queue[str] = Queue()
        self._gathering = threading.Thread(target=self._gather, daemon=True)
        self._gathering.start()

    def _gather(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.strip())

    def complaints(self) -> list[str]:
        """Return the lines it has written to its standard error."""
        size = os.fstat(self._errors.fileno()).st_size
        return os.pread(self._errors.fileno(), size, 0).decode("utf-8", "replace").splitlines()

    @property
    def pid(self) -> int:
        return self.process.pid

    def say(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def wait_for(self, word: str, patience: float = PATIENCE) -> list[str]:
        """Wait for a line that begins with a word; give the others on it."""
        deadline = time.monotonic() + patience
        while True:
            try:
                line = self._lines.get(timeout=0.5)
            except Empty:
                if self.process.poll() is None and time.monotonic() < deadline:
                    continue
                how = f"ended with {self.process.poll()}"
                if self.process.poll() is None:
                    how = f"did not say {word!r} within {patience:g} s"
                how += f": {(self.complaints() or ['nothing on its standard error'])[-1]}"
                raise TimeoutError(f"{self.process.args!r} {how}") from None
            words = line.split()
            if words and words[0] == word:
                return words[1:]

    def lines(self) -> list[list[str]]:
        """Return the lines that came since the last look."""
        found = []
        while not self._lines.empty():
            found.append(self._lines.get().split())
        return found

    def cpu(self) -> float:
        return sum(map(cpu, tree(self.pid)))

    def signal(self, number: int) -> None:
        """Send a signal to it and all below it; one that is gone needs none."""
        if self.process.poll() is not None:
            return
        for pid in tree(self.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self) -> None:
        """End it; all that it said is there then."""
        self.process.kill()
        self.process.wait()
        self._gathering.join(5)

    def stop(self) -> None:
        """Ask it to end; if it does not, end it."""
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()
        self._gathering.join(5)
        self._errors.close()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


def until(condition: Callable[[], bool], what: str, patience: float = PATIENCE) -> None:
    """Wait for a condition, looking now and then; raises TimeoutError."""
    deadline = time.monotonic() + patience
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {patience:g} s in vain for {what}")
        time.sleep(0.01)
