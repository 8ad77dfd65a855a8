"""A Java broker's store given to our broker: refused with a clear word, and left as it was."""

import hashlib
import subprocess
from pathlib import Path

import pytest

import pocketmq as mq
from tests.interop.java_broker import java_brokers
from tests.interop.jvm import Jars
from tests.server_process import POCKETMQ

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]


def files(directory: Path) -> dict[str, tuple[str, int]]:
    """Return content and time of every file."""
    return {
        str(path.relative_to(directory)): (
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder",
            path.stat().st_mtime_ns,
        )
        for path in sorted(directory.rglob("*"))
    }


def test_a_java_store_is_refused_and_not_touched(jars: Jars, tmp_path: Path) -> None:
    with java_brokers(jars, tmp_path, "java-0", mappedFileSizeConsumeQueue=6000) as running:
        running.create_topic("kept", 2)
        with mq.Producer(running.address, group="shop") as producer:
            assert producer.send(mq.Message("kept", b"x")).ok
    store = tmp_path / "java-0" / "store"
    before = files(store)
    assert any(name.startswith("commitlog/") for name in before)
    for command in (["broker", "--port", "0", "--namesrv", "127.0.0.1:1"], ["up"]):
        done = subprocess.run(
            [POCKETMQ, *command, "--data", store],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode != 0
        (line,) = done.stderr.splitlines()
        assert "looks like a Java broker's store, which PocketMQ cannot take over" in line
        assert "choose an empty directory" in line
    assert files(store) == before
