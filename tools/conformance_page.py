"""Write docs/reference/conformance.md from the tests that exist; `--check` only compares.

Features and differences are in `conformance.toml`. The tests' sources are read, so that the page
cannot name one that is not there, leave one out, or claim a release that it is not run with.
"""

import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.interop.tool_differences import DIFFERENCES as OF_TOOLS  # noqa: E402

PAGE = ROOT / "docs" / "reference" / "conformance.md"
TESTS = ROOT / "tests" / "interop"
RELEASES = {"5.x": "5.5.0", "4.x": "4.9.7"}
CONTENT = tomllib.loads(Path(__file__).with_name("conformance.toml").read_text())
IN_DETAIL = """
In detail: [admin requests](admin-requests.md), [admin commands](admin.md),
[name server](nameserver.md), [transactions and timers](transactions-and-timers.md),
[coming from Java](../explanation/coming-from-java.md).
"""
HEAD = """# Conformance with Apache RocketMQ

What works with Apache's own processes, and the tests that show it. `make interop` fetches
RocketMQ 5.5.0 and 4.9.7 and runs them all; ✓ marks the releases a feature is tested with. Tests are
in `tests/interop`: `producer.java_reads_what_we_send` is `test_java_reads_what_we_send` of
`test_producer_java.py`. `python tools/conformance_page.py` writes this page.

A feature without ✓ for 4.9.7 is not part of it (POP, users and rules, assignment by the broker,
other codecs), has other columns there (tools), or does not depend on the release.
"""


def lines_of(marks: ast.expr | None) -> set[str]:
    """Return the lines of RocketMQ that marks leave, both if they do not say."""
    if marks is not None:
        for node in ast.walk(marks):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.line":
                return {ast.literal_eval(node.args[0])}
    return set(RELEASES)


def tests_of(path: Path) -> Iterator[tuple[str, set[str]]]:
    """Return the names of a file's tests with the lines they are run with."""
    tree = ast.parse(path.read_text())
    of_all = set(RELEASES)
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
            of_all = lines_of(node.value)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name[:5] == "test_":
            own = set(RELEASES)
            for decorator in node.decorator_list:
                if "parametrize" not in ast.unparse(decorator):
                    own &= lines_of(decorator)
            module = path.stem.removeprefix("test_").removesuffix("_java")
            yield f"{module}.{node.name.removeprefix('test_')}", own & of_all


def found() -> dict[str, set[str]]:
    """Return all tests with Java's processes."""
    return {
        name: on for path in sorted(TESTS.glob("test_*_java.py")) for name, on in tests_of(path)
    }


def sections(kind: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Return features or differences by section, in their order."""
    for title in dict.fromkeys(each["section"] for each in CONTENT[kind]):
        yield title, [each for each in CONTENT[kind] if each["section"] == title]


def mistakes() -> list[str]:
    """Return which named tests do not exist, and which of those that exist are not named."""
    named = {name for feature in CONTENT["feature"] for name in feature["tests"]}
    there = set(found())
    absent = [f"{name} is named but does not exist" for name in sorted(named - there)]
    return absent + [f"{name} is shown nowhere" for name in sorted(there - named)]


def features() -> Iterator[str]:
    """Return the tables of features."""
    tests = found()
    for title, rows in sections("feature"):
        yield f"\n## {title}\n"
        yield f"| feature | {' | '.join(RELEASES.values())} | shown by |"
        yield "|---|---|---|---|"
        for row in rows:
            on = {line for name in row["tests"] for line in tests.get(name, ())}
            ticks = " | ".join("✓" if line in on else "" for line in RELEASES)
            shown = ", ".join(f"`{name}`" for name in row["tests"])
            yield f"| {row['name']} | {ticks} | {shown} |"


def differences() -> Iterator[str]:
    """Return the tables of differences."""
    yield "\n## Differences from Java that remain"
    for title, rows in sections("difference"):
        yield f"\n### {title}\n"
        yield "| | what differs | why |\n|---|---|---|"
        yield from (f"| {row['name']} | {row['how']} | {row['why']} |" for row in rows)
    yield "\n### What the tools print\n"
    yield "| command | what differs, and why |\n|---|---|"
    yield from (f"| `{command}` | {each.reason} |" for command, each in OF_TOOLS.items())
    yield "\n### Subcommands of mqadmin that `pocketmq admin` does not have\n"
    yield "| about | subcommands | why |\n|---|---|---|"
    for row in CONTENT["left_out"]:
        names = ", ".join(f"`{name}`" for name in row["commands"])
        yield f"| {row['about']} | {names} | {row['why']} |"


def page() -> str:
    """Return the page's text."""
    return "\n".join([HEAD.rstrip("\n"), *features(), *differences()]) + "\n" + IN_DETAIL


def main() -> int:
    """Write or check."""
    for mistake in (wrong := mistakes()):
        print(mistake, file=sys.stderr)
    if "--check" not in sys.argv:
        PAGE.write_text(page())
    return 1 if wrong or PAGE.read_text() != page() else 0


if __name__ == "__main__":
    sys.exit(main())
