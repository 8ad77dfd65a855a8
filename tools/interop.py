"""Run `tests/interop` with each release of Apache RocketMQ: what `make interop` does.

Words beginning with a digit name releases, all others go to pytest, which runs `tests/interop`
unless some of them are paths. Ends with a line of counts for each release.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from interop_jars import VERSIONS, Missing, check_tools, fetch

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.grouping import RELEASE  # noqa: E402
from tests.interop.ready import made_ready  # noqa: E402

# Four on two cores: much of a test is waiting for what brokers do in their own time.
PARALLEL = ["-n", "4", "--dist", "loadgroup"]
TIME_TO_END = 30.0


def run(places: dict[str, Path], words: list[str]) -> tuple[int, list[str]]:
    """Run the suite with some releases; give pytest's exit code and a line of counts for each.

    One run for all, so that no processor is idle at the end of each.
    """
    print(f"\nApache RocketMQ {' and '.join(places)}", flush=True)
    began = time.monotonic()
    programs = [made_ready(jars) for jars in places.values()]
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "report.xml"
        command = [sys.executable, "-m", "pytest", *PARALLEL, f"--junitxml={report}", "-q"]
        code = ended(
            [*command, *words, *([] if named(words) else ["tests/interop"])],
            os.environ
            | {
                "POCKETMQ_JAVA": os.pathsep.join(map(str, places.values())),
                "POCKETMQ_JAVA_PROGRAMS": os.pathsep.join(map(str, programs)),
            },
        )
        lines = [f"RocketMQ {version}: {text}" for version, text in counts(report, [*places])]
    return code, [*lines, f"{time.monotonic() - began:.0f} s"]


def named(words: list[str]) -> bool:
    """Return whether words for pytest name tests, not only options."""
    return any((ROOT / word.partition("::")[0]).exists() for word in words)


def ended(command: list[str], environment: dict[str, str]) -> int:
    """Return the exit code of a command; nothing it started lives on, whatever ends this one."""
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


def counts(report: Path, versions: list[str]) -> Iterator[tuple[str, str]]:
    """Return how many passed, failed and were skipped with each release, from pytest's report.

    A test names its release in its brackets; what has none runs once and counts for the first.
    """
    if not report.exists():
        yield from ((version, "not run") for version in versions)
        return
    outcomes = {version: Counter[str]() for version in versions}
    for test in ET.parse(report).iter("testcase"):
        release = RELEASE.search(test.get("name", ""))
        of = release[1] if release else versions[0]
        kinds = {part.tag for part in test} & {"failure", "error", "skipped"}
        outcomes[of][min(kinds, default="passed")] += 1
    for version, found in outcomes.items():
        failed = found["failure"] + found["error"]
        yield version, f"{found['passed']} passed, {failed} failed, {found['skipped']} skipped"


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
    code, lines = run(places, rest)
    print("", *lines, sep="\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
