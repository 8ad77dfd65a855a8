"""A run ends even if what a test leaves behind would wait for ever."""

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
ROOT = Path(__file__).parents[1]
CONFTEST = """
    from tests.watchdog import Watchdog

    def pytest_configure(config):
        config.pluginmanager.register(Watchdog(config, overtime=3))
    """
STUCK = {
    "on its way out": """
        def test_one():
            try:
                wait()
            finally:
                wait()
        """,
    "in a fixture, after an error": """
        @pytest.fixture
        def left():
            yield
            wait()

        def test_one(left):
            assert False
        """,
}


@pytest.mark.parametrize("stuck", STUCK)
def test_a_test_that_outlives_its_timeout_ends_its_process(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, stuck: str
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeconftest(CONFTEST)
    pytester.makeini("[pytest]\ntimeout = 2")
    wait = "import pytest, threading\n\ndef wait():\n    threading.Event().wait()\n"
    pytester.makepyfile(wait + "\n".join(line[8:] for line in STUCK[stuck].splitlines()))
    result = pytester.runpytest_subprocess("-p", "timeout", timeout=60)
    assert result.ret == 1
    result.stderr.fnmatch_lines(["Timeout (*)!", "*in wait"])
    result.stdout.no_fnmatch_line("*1 failed*")


OVERSEEN = """
    import threading
    from tests.watchdog import Overseer

    def pytest_configure(config):
        if Overseer.wanted(config):
            config.pluginmanager.register(Overseer(silence=5))

    def pytest_sessionfinish(session):
        if hasattr(session.config, "workerinput"):
            threading.Event().wait()
    """


def test_a_worker_that_hangs_after_its_last_test_ends_the_run(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeconftest(OVERSEEN)
    pytester.makepyfile("def test_one(): pass")
    words = ("-p", "timeout", "-p", "xdist", "-n", "1")
    result = pytester.runpytest_subprocess(*words, timeout=60)
    assert result.ret == 1
    result.stderr.fnmatch_lines(["Timeout (*)!"])
