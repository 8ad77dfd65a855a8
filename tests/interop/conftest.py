"""Tests with Java's RocketMQ; `POCKETMQ_JAVA` names a directory with all its jars."""

import os
from pathlib import Path

import pytest

from tests.interop.jvm import Jars


@pytest.fixture(scope="session")
def jars(tmp_path_factory: pytest.TempPathFactory) -> Jars:
    directory = os.environ.get("POCKETMQ_JAVA")
    if not directory:
        pytest.skip("POCKETMQ_JAVA does not name a directory of RocketMQ's jars")
    return Jars(Path(directory), tmp_path_factory.mktemp("classes"))
