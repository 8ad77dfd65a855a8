"""Every Python snippet in the README and the docs runs as it stands."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def snippets() -> list[tuple[str, str]]:
    return [
        (f"{page.relative_to(ROOT)}:{number}", code)
        for page in PAGES
        for number, code in enumerate(BLOCK.findall(page.read_text()), 1)
    ]


class Forks:
    """Runs programs, each in a process of its own that has imported PocketMQ already."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "tests.docs.forks"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            start_new_session=True,
        )

    def run(self, code: str, folder: Path) -> tuple[int, str]:
        """Return the exit code of a program, and what it printed."""
        printed = folder / "printed"
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([code, str(folder), str(printed)]), file=self._process.stdin, flush=True)
        ended = int(self._process.stdout.readline())
        return ended, printed.read_text()

    def stop(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    made = Forks()
    yield made
    made.stop()


@pytest.mark.parametrize(("place", "code"), snippets(), ids=lambda value: value[:60])
def test_a_snippet_runs(forks: Forks, place: str, code: str, tmp_path: Path) -> None:
    ended, printed = forks.run(code, tmp_path)
    assert ended == 0, f"{place}\n{printed}"


@pytest.mark.parametrize(
    "wrong", ["raise ValueError", "import sys; sys.exit(3)", "import warnings; warnings.warn('w')"]
)
def test_a_snippet_that_fails_is_noticed(forks: Forks, wrong: str, tmp_path: Path) -> None:
    assert forks.run(wrong, tmp_path)[0] != 0


@pytest.mark.parametrize("tool", ["errors_page.py", "options_page.py"])
def test_a_page_that_is_written_by_a_tool_is_up_to_date(tool: str) -> None:
    done = subprocess.run([sys.executable, str(ROOT / "tools" / tool), "--check"], check=False)
    assert done.returncode == 0, f"run: python tools/{tool}"
