"""After each test, `pocketmq store check` must find every store sound that the test left behind.

A broker that was stopped or killed leaves a sound store: what a crash cut short is no damage. Tests
that damage a store on purpose say so with `pytest.mark.damaged_store`.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pocketmq.errors import StoreInUse
from pocketmq.store.directory import METADATA

_LARGEST = 64 << 20
"""Bytes of a log that are still checked: it must cost next to nothing."""
_DEEPEST = 3
"""Folders below the test's own in which stores are looked for."""


@pytest.fixture(autouse=True)
def stores_are_sound(request: pytest.FixtureRequest) -> Iterator[None]:
    """Check the stores in the test's own folder once everything else of it has ended."""
    path: Path | None = None
    if "tmp_path" in request.fixturenames and not _is_excused(request.node):
        path = request.getfixturevalue("tmp_path")
    yield
    if path is not None:
        for store in _stores(path, _DEEPEST):
            _check(store)


def _is_excused(item: pytest.Item) -> bool:
    # Tests of the store itself break it in every way, and call the check themselves.
    return item.path.parent.name == "store" or item.get_closest_marker("damaged_store") is not None


def _stores(path: Path, depth: int) -> Iterator[Path]:
    try:
        entries = list(os.scandir(path))
    except OSError:
        return
    if any(entry.name == METADATA for entry in entries):
        yield path
    elif depth:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _stores(Path(entry.path), depth - 1)


def _check(path: Path) -> None:
    from pocketmq.broker.upkeep.stored_formats import check_broker_store
    from pocketmq.store.check_values import Severity

    log = path / "commitlog"
    used = sum(file.stat().st_blocks * 512 for file in log.iterdir()) if log.is_dir() else 0
    if used > _LARGEST:
        return
    try:
        report = check_broker_store(path)
    except StoreInUse:  # shared with tests to come
        return
    wrong = [each.text for each in report.findings if each.severity is not Severity.NOTE]
    assert not wrong, f"{path}: {wrong}"
