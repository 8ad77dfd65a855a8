"""The page of what works with Apache RocketMQ names tests that exist, all of them, and no others."""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_of_conformance_is_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "conformance_page.py"), "--check"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{done.stderr}run: python tools/conformance_page.py"


def test_the_page_of_admin_commands_names_those_that_are_left_out_and_why() -> None:
    page = (ROOT / "docs" / "reference" / "admin.md").read_text()
    for row in tomllib.loads((ROOT / "tools" / "conformance.toml").read_text())["left_out"]:
        names = ", ".join(f"`{name}`" for name in row["commands"])
        assert f"| {row['about']} | {names} | {row['why']} |" in page
