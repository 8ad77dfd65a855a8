"""Run `tests/interop` with each release of Apache RocketMQ: what `make interop` does.

Words beginning with a digit name releases, all others go to pytest, which runs `tests/interop`
unless some of them are paths. Ends with a line of counts for
each release; the exit code is that of the worst.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from contextlib import suppress
from pathlib import Path

from interop_jars import VERSIONS, Missing, check_tools, fetch

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.interop.ready import made_ready  # noqa: E402

# Three on two cores: much of a test is waiting for what brokers do in their own time.
PARALLEL = ["-n", "3", "--dist", "loadgroup"]
TIME_TO_END = 30.0


def run(version: str, jars: Path, words: list[str]) -> tuple[int, str]:
    """Run the suite with one release; give pytest's exit code and the line of counts."""
    print(f"\nApache RocketMQ {version}", flush=True)
    began = time.monotonic()
    programs = made_ready(jars)
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "report.xml"
        command = [sys.executable, "-m", "pytest", *PARALLEL, f"--junitxml={report}", "-q"]
        code = ended(
            [*command, *words, *([] if named(words) else ["tests/interop"])],
            os.environ | {"POCKETMQ_JAVA": str(jars), "POCKETMQ_JAVA_PROGRAMS": str(programs)},
        )
        return code, f"RocketMQ {version}: {counts(report)} in {time.monotonic() - began:.0f} s"


def named(words: list[str]) -> bool:
    """Tell whether words for pytest name tests, not only options."""
    return any((ROOT / word.partition("::")[0]).exists() for word in words)


def ended(command: list[str], environment: dict[str, str]) -> int:
    """Give the exit code of a command; nothing it started lives on, whatever ends this one."""
    child = subprocess.Popen(command, cwd=ROOT, env=environment, start_new_session=True)
    try:
        return child.wait()
    except KeyboardInterrupt:
        os.killpg(child.pid, signal.SIGINT)
        child.wait(TIME_TO_END)
        raise
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def counts(report: Path) -> str:
    """Tell how many passed, failed and were skipped, from pytest's report."""
    if not report.exists():
        return "not run"
    suites = list(ET.parse(report).iter("testsuite"))
    told = {
        name: sum(int(suite.get(name, 0)) for suite in suites)
        for name in ("tests", "failures", "errors", "skipped")
    }
    failed = told["failures"] + told["errors"]
    passed = told["tests"] - failed - told["skipped"]
    return f"{passed} passed, {failed} failed, {told['skipped']} skipped"


def main(words: list[str]) -> int:
    """Fetch what is missing, run all, print the counts."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    versions = [word for word in words if word[0].isdigit()] or list(VERSIONS)
    rest = [word for word in words if not word[0].isdigit()]
    try:
        check_tools()
        places = {version: fetch(version) for version in versions}
    except Missing as missing:
        print(f"interop: {missing}", file=sys.stderr)
        return 1
    told = [run(version, jars, rest) for version, jars in places.items()]
    print()
    for _, line in told:
        print(line)
    return max(code for code, _ in told)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
