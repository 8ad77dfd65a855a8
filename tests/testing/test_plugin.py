"""The pytest plugin as its users meet it: their tests, in a pytest of their own."""

import socket
from pathlib import Path

import pytest

import pocketmq.broker.broker  # noqa: F401 - pytester forgets what its first test has imported
from pocketmq import Admin, Cluster

pytest_plugins = ["pytester"]

CLIENT = str(Path(__file__).parents[2])
STRICT = ("-W", "error", "--strict-markers", "--strict-config", "-p", "no:cacheprovider")


class Run:
    """Runs a test file in a fresh pytest."""

    def __init__(self, pytester: pytest.Pytester, *plugins: str) -> None:
        self._pytester = pytester
        self._plugins = [word for plugin in plugins for word in ("-p", plugin)]

    def __call__(self, source: str, *arguments: str) -> pytest.RunResult:
        self._pytester.makepyfile(source)
        return self._pytester.runpytest_subprocess(*STRICT, *self._plugins, *arguments)


@pytest.fixture
def installed(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a pytest that finds the plugin, and those of all other packages, by itself."""
    monkeypatch.setenv("PYTHONPATH", CLIENT)  # for the tests' own client
    return Run(pytester)


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a pytest that loads the plugin alone: finding others takes longer than most tests."""
    monkeypatch.setenv("PYTHONPATH", CLIENT)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return Run(pytester, "pocketmq.testing.plugin")


def test_a_first_test_needs_nothing_but_the_fixture(installed: Run) -> None:
    result = installed(
        """
        from tests.wire_client import WireClient

        def test_an_order_is_stored(rocketmq, rocketmq_topic):
            with WireClient(rocketmq.brokers["broker-0"].address) as client:
                client.send(rocketmq_topic, b"42 EUR")
                assert client.bodies(rocketmq_topic) == [b"42 EUR"]
        """
    )
    result.assert_outcomes(passed=1)


def test_coroutines_await_what_the_shared_cluster_does(run: Run) -> None:
    result = run(
        """
        import pytest
        from pocketmq import Message, aio

        pytestmark = pytest.mark.anyio

        @pytest.fixture
        def anyio_backend():
            return "asyncio"

        async def test_an_order_is_sent(rocketmq_aio, rocketmq_group):
            topic = await rocketmq_aio.create_topic("orders", queues=2)
            where = {"group": rocketmq_group, "send_timeout": 30.0}
            async with aio.Producer(rocketmq_aio.address, **where) as producer:
                receipt = await producer.send(Message(topic, b"42 EUR"))
            assert receipt.queue.queue_id in (0, 1)
            [message] = await rocketmq_aio.wait_for(topic, 1)
            assert message.body == b"42 EUR"
            assert await rocketmq_aio.messages(topic) == [message]
            with pytest.raises(TimeoutError, match="'orders' has 1 of 2 messages"):
                await rocketmq_aio.wait_for(topic, 2, timeout=0.05)

        async def test_the_next_one_starts_afresh(rocketmq, rocketmq_aio):
            assert rocketmq_aio.address == rocketmq.address
            assert len(rocketmq.messages("orders")) == 1
            await rocketmq_aio.reset()
            assert rocketmq.messages("orders") == []
        """,
        "-p",
        "anyio",
    )
    result.assert_outcomes(passed=2)


def test_all_tests_share_one_cluster_but_no_topic_and_no_group(run: Run) -> None:
    result = run(
        """
        import re
        import pytest

        seen = []

        @pytest.mark.parametrize("what", ["a b", "ü/%", "x" * 300])
        def test_names(what, rocketmq, rocketmq_topic, rocketmq_group):
            seen.append((rocketmq.address, rocketmq_topic, rocketmq_group))
            for name in (rocketmq_topic, rocketmq_group):
                assert re.fullmatch("[a-zA-Z0-9_-]{1,120}", name)
                assert name.startswith("test_names")

        def test_all_differ():
            assert len({address for address, _, _ in seen}) == 1
            assert len({name for _, *names in seen for name in names}) == 6
        """
    )
    result.assert_outcomes(passed=4)


def test_a_test_can_have_clusters_of_its_own_which_end_with_it(run: Run) -> None:
    result = run(
        """
        import pytest
        from tests.wire_client import WireClient

        addresses = []

        def test_own(rocketmq, rocketmq_cluster, tmp_path):
            one = rocketmq_cluster(2, faults=True)
            two = rocketmq_cluster(in_process=False, data=tmp_path)
            assert len(one.brokers) == 2
            assert (tmp_path / "broker-0").is_dir()
            addresses.extend([one.address, two.address])
            assert len({rocketmq.address, *addresses}) == 3

        @pytest.mark.parametrize("number", [0, 1])
        def test_gone(number):
            with pytest.raises(ConnectionRefusedError):
                WireClient(addresses[number])
        """
    )
    result.assert_outcomes(passed=3)


def test_workers_of_xdist_have_clusters_of_their_own(run: Run) -> None:
    result = run(
        """
        import pytest

        @pytest.mark.parametrize("number", range(4))
        def test_it(number, rocketmq, rocketmq_topic, worker_id):
            print("saw", worker_id, rocketmq.address, rocketmq_topic)
        """,
        "-p",
        "xdist",
        "-n2",
        "--dist=each",
        "-rP",
    )
    result.assert_outcomes(passed=8)
    seen = [line.split()[1:] for line in result.outlines if line.startswith("saw ")]
    assert len({(worker, address) for worker, address, _ in seen}) == 2
    assert len({address for _, address, _ in seen}) == 2
    assert len({topic for _, _, topic in seen}) == 8


def test_a_cluster_that_cannot_start_is_told_in_one_line(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run(f"def test_it(rocketmq_cluster): rocketmq_cluster(port={port})", "-q")
    result.assert_outcomes(failed=1)
    told = (
        "no RocketMQ cluster for this test: the name server cannot start: "
        f"it cannot listen on 127.0.0.1:{port}: the port is in use"
    )
    assert told in result.outlines
    assert "Traceback" not in result.stdout.str()


def test_the_shared_cluster_can_be_another_one(run: Run) -> None:
    result = run(
        """
        import pytest
        from pocketmq import Cluster

        @pytest.fixture(scope="session")
        def rocketmq():
            with Cluster(brokers=2) as cluster:
                yield cluster

        def test_it(rocketmq, rocketmq_topic):
            assert len(rocketmq.brokers) == 2
        """
    )
    result.assert_outcomes(passed=1)


@pytest.mark.parametrize("way", ["option", "setting"])
def test_tests_can_run_on_a_cluster_that_is_there(
    run: Run, pytester: pytest.Pytester, way: str
) -> None:
    with Cluster() as there:
        words = [f"--rocketmq-address={there.address}"] if way == "option" else []
        if way == "setting":
            pytester.makeini(f"[pytest]\nrocketmq_address = {there.address}")
        result = run(
            f"""
            import pocketmq as mq

            def test_it(rocketmq, rocketmq_topic, rocketmq_group):
                assert rocketmq.address == {there.address!r}
                where = {{"group": rocketmq_group, "send_timeout": 30.0}}
                with mq.Producer(rocketmq.address, **where) as producer:
                    producer.send(mq.Message(rocketmq_topic, b"1"))
                assert [one.body for one in rocketmq.wait_for(rocketmq_topic, 1)] == [b"1"]
            """,
            *words,
        )
        result.assert_outcomes(passed=1)
        with Admin(there.address) as admin:
            assert not [name for name in admin.topics.names() if name.startswith("test_it")]


def test_the_proxy_of_an_external_cluster_has_an_option_of_its_own(run: Run) -> None:
    test = """
        def test_it(rocketmq):
            assert rocketmq.grpc_address == "there:8081"
        """
    with Cluster() as there:
        where = f"--rocketmq-address={there.address}"
        run(test, where, "--rocketmq-grpc-address=there:8081").assert_outcomes(passed=1)
        result = run(test, where)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*run pytest --rocketmq-grpc-address HOST:PORT*"])


def test_who_does_not_use_it_does_not_pay_for_it(installed: Run) -> None:
    result = installed(
        """
        import sys

        def test_nothing_is_imported_but_the_plugin():
            ours = {name for name in sys.modules if name.split(".")[0] == "pocketmq"}
            assert ours == {
                "pocketmq", "pocketmq.aio", "pocketmq.testing", "pocketmq.testing.plugin"
            }
            assert "msgspec" not in sys.modules
            assert "click" not in sys.modules
        """
    )
    result.assert_outcomes(passed=1)


def test_a_package_imported_before_pytest_looks_at_it_causes_no_warning(
    installed: Run, pytester: pytest.Pytester
) -> None:
    """What pytest does with each installed package that brings a plugin."""
    pytester.makeconftest(
        """
        import pytest
        import pocketmq

        pytest.register_assert_rewrite("pocketmq")
        """
    )
    result = installed("def test_it(): pass")
    result.assert_outcomes(passed=1)


def test_fixtures_explain_themselves(run: Run) -> None:
    result = run("", "--fixtures")
    for name in (
        "rocketmq [session scope]",
        "rocketmq_cluster",
        "rocketmq_topic",
        "rocketmq_group",
    ):
        assert any(line.startswith(name) for line in result.outlines)
