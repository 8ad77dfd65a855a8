"""The broker's modules and features build on each other: none imports another in a circle."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import pocketmq.broker

ROOT = Path(pocketmq.broker.__file__).parent
MODULES = {
    ".".join(("pocketmq", "broker", *path.relative_to(ROOT).with_suffix("").parts)): path
    for path in ROOT.rglob("*.py")
    if path.stem != "__init__"
}
EVERY_FEATURES = {"saving", "state"}
"""What holds the tables of all features, and what saves them: their requests use both."""
ABOVE_THE_STATE = {"assembly", "broker", "by_code", "saving", "serving", "settings", "state"}
"""What knows the state, or what does."""


def imported(path: Path) -> set[str]:
    """Return the broker's modules that a file imports anywhere, also late or for types alone."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            found |= {f"{node.module}.{name.name}" for name in node.names} | {node.module}
    return found & MODULES.keys()


def test_no_module_imports_another_in_a_circle() -> None:
    try:
        TopologicalSorter({name: imported(path) for name, path in MODULES.items()}).prepare()
    except CycleError as error:
        pytest.fail(f"circle of imports: {error.args[1]}")


def test_no_feature_uses_another_in_a_circle() -> None:
    features: dict[str, set[str]] = {}
    for name, path in MODULES.items():
        own = name.split(".")[2]
        others = {each.split(".")[2] for each in imported(path)} - {own}
        features.setdefault(own, set()).update(others - EVERY_FEATURES)
    for each in EVERY_FEATURES:
        features.pop(each)
    try:
        TopologicalSorter(features).prepare()
    except CycleError as error:
        pytest.fail(f"circle of features: {error.args[1]}")


def test_what_the_state_holds_does_not_know_the_state() -> None:
    """Tables and rules of the features can be read, used and tested alone."""
    graph = {name: imported(path) for name, path in MODULES.items()}
    seen: set[str] = set()
    todo = ["pocketmq.broker.state"]
    while todo:
        for name in graph[todo.pop()] - seen:
            seen.add(name)
            todo.append(name)
    assert not {name for name in seen if name.split(".")[2] in ABOVE_THE_STATE}
