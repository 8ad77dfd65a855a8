"""Connections never take the last file descriptors."""

import resource
from collections.abc import Iterator

import pytest

from pocketmq.host import raise_open_files_limit
from pocketmq.net.limits import for_connections


@pytest.fixture
def hard() -> Iterator[int]:
    """The system's limit; this process's own is put back afterwards."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield before[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize(
    ("files", "connections"), [(1000, 936), (128, 64), (100, 50), (100_000, 10_000)]
)
def test_some_files_are_left_for_others(files: int, connections: int, hard: int) -> None:
    if hard < files:
        pytest.skip("the system does not allow so many files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    assert for_connections(10_000) == connections


def test_a_server_may_have_as_many_files_as_the_system_allows(hard: int) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    raise_open_files_limit()
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
