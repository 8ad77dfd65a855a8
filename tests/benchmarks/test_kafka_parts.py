"""Kafka is left out, with the reason, where something that it needs is not there."""

from pathlib import Path

import pytest
from benchmarks.java.kafka_parts import NoKafkaError, find_kafka


def program(place: Path, name: str, script: str) -> None:
    path = place / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only programs that are found, and an empty cache."""
    place = tmp_path / "tools"
    place.mkdir()
    monkeypatch.setenv("PATH", str(place))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return place


def test_without_a_jdk(tools: Path) -> None:
    assert list(tools.iterdir()) == []
    with pytest.raises(NoKafkaError, match=r"^no JDK$"):
        find_kafka()


def test_without_maven(tools: Path) -> None:
    program(tools, "java", "exit 0")
    with pytest.raises(NoKafkaError, match=r"^no Maven$"):
        find_kafka()


def test_without_a_network_nothing_half_fetched_is_left(tools: Path, tmp_path: Path) -> None:
    program(tools, "java", "exit 0")
    program(tools, "mvn", "exit 1")
    with pytest.raises(NoKafkaError, match="Maven could not fetch its jars"):
        find_kafka()
    assert list((tmp_path / "cache" / "pocketmq" / "java").iterdir()) == []


def test_without_the_client(tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tools, "java", "exit 0")
    making = f'for word; do case "$word" in -Dout*) {_path("mkdir")} "${{word#*=}}";; esac; done'
    program(tools, "mvn", making)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(NoKafkaError, match="pip could not fetch confluent-kafka"):
        find_kafka()
    (jars,) = (tmp_path / "cache" / "pocketmq" / "java").iterdir()
    assert jars.name.startswith("kafka-")


def _path(name: str) -> str:
    return next(place for place in (f"/bin/{name}", f"/usr/bin/{name}") if Path(place).exists())
