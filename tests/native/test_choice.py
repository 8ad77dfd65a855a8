"""Which path runs is chosen once, at import, and said by the command."""

import os
import subprocess
import sys
from functools import cache

import pytest

from pocketmq import native

IMPORT_ALL = """
import pkgutil, importlib, pocketmq
for found in pkgutil.walk_packages(pocketmq.__path__, "pocketmq."):
    if found.name.split(".")[1] in {"protocol", "store", "net", "client", "broker", "blocking"}:
        importlib.import_module(found.name)
"""
NOT_INSTALLED = "import sys; sys.modules['pocketmq_core'] = None\n"
OF_ANOTHER_VERSION = """
import sys, types
core = sys.modules["pocketmq_core"] = types.ModuleType("pocketmq_core")
core.API, core.__version__, core.pack_batch = 0, "0.0.9", None
"""
DESCRIBE = "from pocketmq import native; print(native.description)"
ASK = "from pocketmq.cli import run; run(['--version'])\n"
SEND_ONE = """
from pocketmq.protocol.batch_records import pack_batch
from pocketmq.protocol.records import Record
print(pack_batch(b"", Record(topic=b"T", body=b""), 0, 0, store_timestamp_ms=0, store_host=bytes(8)).data)
"""


@cache
def imported(pure: str = "") -> list[str]:
    """Return what was noted as pure once all is imported, and whether a pure function runs."""
    code = IMPORT_ALL + (
        "from pocketmq import native\n"
        "from pocketmq.protocol import batch_records\n"
        "print(*sorted(native.pure), batch_records.pack_batch is native.pure['pack_batch'])"
    )
    return run(code, POCKETMQ_PURE=pure).split()


def run(code: str, **environment: str) -> str:
    kept = {name: value for name, value in os.environ.items() if name != "POCKETMQ_PURE"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=kept | environment,
        capture_output=True,
        check=False,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_command_names_the_native_core() -> None:
    core = pytest.importorskip("pocketmq_core")
    assert core.API == native.API, "build the core again"
    named = f"pocketmq 0.1.0, native core {core.__version__}, asyncio\n"
    assert run(ASK, POCKETMQ_LOOP="asyncio") == named
    found = [run(DESCRIBE, **each) for each in ({"POCKETMQ_PURE": "0"}, {"POCKETMQ_PURE": ""}, {})]
    assert found == [f"native core {core.__version__}\n"] * 3


@pytest.mark.parametrize(
    ("before", "environment", "why"),
    [
        ("", {"POCKETMQ_PURE": "1"}, "POCKETMQ_PURE is set"),
        (NOT_INSTALLED, {}, "pocketmq-core is not installed"),
        (
            OF_ANOTHER_VERSION,
            {},
            "pocketmq-core 0.0.9 does not fit this version of pocketmq",
        ),
    ],
)
def test_without_it_pure_python_runs_and_the_command_says_why(
    before: str, environment: dict[str, str], why: str
) -> None:
    said = f"pocketmq 0.1.0, pure Python ({why}), asyncio\n"
    environment = environment | {"POCKETMQ_LOOP": "asyncio"}
    assert run(before + SEND_ONE + ASK, **environment) == "b''\n" + said


WITHOUT_A_TWIN = {
    *("API", "SendLane", "Spin", "Followers", "Turns", "PulledRun"),
    *("GrpcConnection", "GrpcShortcuts", "GrpcDeliveries"),
}
"""The number of the interface; the lane, spinning, and messages that follow another one, which go the
usual way without the core; HTTP/2, for which the proxy has grpcio instead, its plain calls and its
messages; and what pulled messages share, which without the core each has for itself."""


def test_every_function_and_class_of_the_core_has_a_pure_one_of_the_same_name() -> None:
    core = pytest.importorskip("pocketmq_core")
    from tests.native.both import functions  # is skipped as a whole without the core

    classes = {name for name in dir(core) if name[0].isupper()} - WITHOUT_A_TWIN
    twins = sorted([*functions(core), *classes])
    assert imported()[:-1] == imported("1")[:-1] == twins


def test_pure_functions_are_those_that_run_without_the_core() -> None:
    assert imported("1")[-1] == "True"
    if native.core is not None:
        assert imported()[-1] == "False"
