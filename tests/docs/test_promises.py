"""Every promise of the guarantees page and of SECURITY.md names a test that exists."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "docs" / "explanation" / "guarantees.md", ROOT / "SECURITY.md"]
NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
ROW = re.compile(r"^\| .* \|$")


def names_in(path: Path) -> set[str]:
    """Return the names of tests and of assigned test classes (state machines) in a file."""
    names = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return {name for name in names if name.lower().startswith("test")}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_named_test_exists(page: Path) -> None:
    named = NAMED.findall(page.read_text())
    assert named
    missing = [
        f"{file}::{test}"
        for file, test in named
        if not (ROOT / file).is_file() or (test and test not in names_in(ROOT / file))
    ]
    assert missing == []


def test_every_promise_has_a_test() -> None:
    """A row of a table whose last column is headed "shown by" names a test there."""
    bare = []
    for page in PAGES:
        shown = False
        for line in page.read_text().splitlines():
            if not ROW.match(line):
                shown = False
                continue
            last = line.split("|")[-2].strip()
            if last == "shown by":
                shown = True
            elif shown and set(last) != {"-"} and not NAMED.search(last):
                bare.append(line)
    assert bare == []
