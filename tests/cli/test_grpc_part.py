"""`pocketmq up` and embedded clusters where the packages of the extra `grpc` are missing."""

import sys
from contextlib import ExitStack

import pytest

from pocketmq import errors
from pocketmq.embedded import Cluster
from tests.cli.in_process import command
from tests.server_process import POCKETMQ, ServerProcess

WITHOUT = "import sys; sys.modules['grpc'] = None; from pocketmq.cli import main; main()"
CURE = "pip install 'pocketmq[grpc]'"


def test_without_the_extra_up_starts_and_says_how_to_get_it() -> None:
    own = (sys.executable, "-c", WITHOUT, "up")
    with ServerProcess("--port", "0", command=own) as cluster:
        assert "grpc=" not in cluster.ready
        assert cluster.stop() == 0
    (line,) = [each for each in cluster.lines if "gRPC" in each]
    assert line.endswith(
        f"INFO cluster: gRPC clients are not served: packages are missing: {CURE}\n"
    )


@pytest.mark.parametrize("words", [("up", "--port", "0", "--grpc", "0"), ("proxy", "-n", "h:1")])
def test_a_service_that_was_asked_for_is_not_left_out(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)
    done = command(*words)
    assert done.returncode == 2
    assert CURE in done.stderr.decode()


def test_an_embedded_cluster_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)
    with Cluster() as cluster, pytest.raises(errors.CannotStart, match="pip install"):
        _ = cluster.grpc_address
    with pytest.raises(errors.CannotStart, match="pip install"):
        Cluster(grpc=0).start()


def test_options_that_contradict_each_other_are_refused() -> None:
    done = command("up", "--grpc", "0", "--no-grpc")
    assert done.returncode == 2
    assert b"exclude each other" in done.stderr


def test_clusters_that_start_at_once_do_not_fail_for_the_port_of_another() -> None:
    """Each finds 8081 free, and one of them gets it."""
    own = (str(POCKETMQ), "up")
    with ExitStack() as all_:
        starting = [ServerProcess("--port", "0", command=own) for _ in range(3)]
        ready = [all_.enter_context(each).ready for each in starting]
        assert len({line.rpartition("grpc=")[2] for line in ready}) == 3
