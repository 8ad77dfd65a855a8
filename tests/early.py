"""Work of tests that takes long and needs nobody: begun with the first test of Spark, looked at last.

A test that starts Java processes of its own mostly waits for them. Its work is a function of a
folder that gives what was seen; it runs in one thread, one work after the other, while other tests
use the shared session. The test itself comes after those, and says what must have been seen.
Other tests change the environment and the working directory meanwhile: processes of a work are
given `ENVIRONMENT` and `ROOT`.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

ENVIRONMENT = dict(os.environ)
ROOT = Path(__file__).parents[1]

Work = Callable[[Path], Any]


def begun_early(work: Work) -> pytest.MarkDecorator:
    """Name the work of a test, whose outcome the fixture `outcome` is."""
    return pytest.mark.begun_early.with_args(work)


def work_of(item: pytest.Item) -> Work | None:
    """Return the work of a test, if it has one."""
    mark = item.get_closest_marker("begun_early")
    return None if mark is None else mark.args[0]


@pytest.fixture(scope="session")
def early_works(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, "Future[Any]"]]:
    """Begin the works of all tests that were chosen."""
    pool = ThreadPoolExecutor(1, "early")
    begun = {
        item.nodeid: pool.submit(work, tmp_path_factory.mktemp("early"))
        for item in request.session.items
        if (work := work_of(item)) is not None
    }
    yield begun
    pool.shutdown(cancel_futures=True)


@pytest.fixture
def outcome(
    request: pytest.FixtureRequest, early_works: dict[str, "Future[Any]"], tmp_path: Path
) -> Any:
    """Wait for what the work of a test gives; a test that is run again works again."""
    begun = early_works.pop(request.node.nodeid, None)
    if begun is not None:
        return begun.result()
    work = work_of(request.node)
    assert work is not None
    return work(tmp_path)
