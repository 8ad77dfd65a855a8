"""Which loop is made where PocketMQ makes one, and what the environment may say about it."""

import asyncio
import importlib.util
import os
import subprocess
import sys

import pytest

from pocketmq import errors
from pocketmq.net import loops

INSTALLED = importlib.util.find_spec("uvloop") is not None
needs_uvloop = pytest.mark.skipif(not INSTALLED, reason="uvloop is not installed")


async def _running() -> type[asyncio.AbstractEventLoop]:
    return type(asyncio.get_running_loop())


def test_servers_use_uvloop_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(loops.CHOICE, raising=False)
    assert loops.loop_kind() == ("uvloop" if INSTALLED else "asyncio")
    assert loops.run(_running()).__module__.startswith(loops.loop_kind())
    assert loops.run(_running(), "asyncio").__module__.startswith("asyncio")


def test_the_environment_can_choose_the_loop_of_asyncio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(loops.CHOICE, "asyncio")
    assert loops.loop_description() == "asyncio"
    assert loops.run(_running()).__module__.startswith("asyncio")
    loop = loops.loop_maker()()
    assert type(loop).__module__.startswith("asyncio")
    loop.close()


@needs_uvloop
def test_the_environment_can_choose_uvloop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(loops.CHOICE, "uvloop")
    assert loops.loop_description().startswith("uvloop 0.")
    assert loops.run(_running()).__module__.startswith("uvloop")
    assert loops.run(_running(), "asyncio").__module__.startswith("uvloop")


def test_uvloop_that_is_chosen_but_not_installed_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)  # as if it were not there
    monkeypatch.delenv(loops.CHOICE, raising=False)
    assert loops.loop_kind() == "asyncio"
    monkeypatch.setenv(loops.CHOICE, "uvloop")
    with pytest.raises(errors.InvalidInput, match="uvloop, which is not installed; run `pip"):
        loops.loop_kind()


def test_an_unknown_loop_is_an_error_and_runs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(loops.CHOICE, "trio")
    with pytest.raises(
        errors.InvalidInput, match=r"POCKETMQ_LOOP is 'trio'; it must be asyncio or"
    ):
        loops.run(_running())  # a coroutine that was never awaited would warn


@pytest.mark.parametrize(
    ("asked", "kind"),
    [("", "asyncio"), ("asyncio", "asyncio"), *([("uvloop", "uvloop")] if INSTALLED else [])],
)
def test_blocking_clients_run_on_the_loop_that_was_chosen(asked: str, kind: str) -> None:
    code = (
        "from pocketmq.blocking.process_loop import loop_thread;"
        "print(type(loop_thread().loop).__module__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {loops.CHOICE: asked},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(kind)
