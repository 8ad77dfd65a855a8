"""Every Python snippet in the README and the docs runs as it stands."""

import re
import subprocess
import sys
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


@pytest.mark.parametrize(("place", "code"), snippets(), ids=lambda value: value[:60])
def test_a_snippet_runs(place: str, code: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, f"{place}\n{done.stderr}"


@pytest.mark.parametrize("tool", ["errors_page.py", "options_page.py"])
def test_a_page_that_is_written_by_a_tool_is_up_to_date(tool: str) -> None:
    done = subprocess.run([sys.executable, str(ROOT / "tools" / tool), "--check"], check=False)
    assert done.returncode == 0, f"run: python tools/{tool}"
