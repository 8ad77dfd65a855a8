"""Every command shown in the README and the docs prints what is shown."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


def shown_commands() -> list[tuple[str, str, str]]:
    """Return page, command and output of each `$ pocketmq …` in a console block."""
    found = []
    for page in PAGES:
        for block in BLOCK.findall(page.read_text()):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                if command.startswith("pocketmq "):
                    found.append((str(page.relative_to(ROOT)), command, output.strip()))
    return found


@pytest.mark.parametrize(("page", "command", "output"), shown_commands())
def test_a_command_in_the_docs_prints_what_is_shown(page: str, command: str, output: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pocketmq", *shlex.split(command)[1:]],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=60,
        check=False,
    )
    assert (done.stdout + done.stderr).strip() == output


def test_the_worked_examples_are_there() -> None:
    assert len(shown_commands()) >= 6


LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    missing = [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()]
    assert missing == []
