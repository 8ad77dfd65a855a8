"""Java's clients with TLS on a cluster that was given no certificate, as they are on Apache's."""

from pathlib import Path

import pytest

from pocketmq.embedded import Cluster
from pocketmq.net.self_signed import FILE_NAME
from tests.interop.jvm import Jars, Process

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]


def test_java_clients_use_tls_without_a_certificate(jars: Jars, tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Cluster(data=data, in_process=False) as cluster:
        cluster.create_topic("orders", 2)
        command = jars.compiled(tmp_path, "SendAndConsume", cluster.address, "orders", "5")
        command.insert(1, "-Dtls.enable=true")
        with Process(command, tmp_path) as process:
            assert process.wait_for_end() == ["sent 5 to [broker-0]", "consumed 5"]
    assert (data / FILE_NAME).exists()  # made for TLS alone
