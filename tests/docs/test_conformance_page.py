"""The page of what works with Apache RocketMQ names tests that exist, all of them, and no others."""

import subprocess
import sys
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
