"""The blocking clients and those for asyncio: same names, same arguments, same results."""

import asyncio
import collections.abc
import inspect
import subprocess
import sys
from concurrent.futures import Future
from typing import Any, get_args, get_origin, get_type_hints

import pytest

import pocketmq
from pocketmq import aio

CLIENTS = ["PopConsumer", "Producer", "PullConsumer", "PushConsumer"]

# Of the loop, and so of nobody who blocks.
OF_THE_LOOP = {
    "PopConsumer": {"member"},
    "Producer": {"parts", "sending", "session", "submitting"},
    "PullConsumer": {"begun"},
    "PushConsumer": {"session"},
}
BLOCKING_ALONE = {"options"}  # an attribute in asyncio
SAME_THING = {
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "__aiter__": "__iter__",
    "__anext__": "__next__",
}


def public(cls: type) -> dict[str, Any]:
    """Methods and properties, with the names that a blocking client has for them."""
    found = {}
    for name in dir(cls):
        known = SAME_THING.get(name, name)
        if not known.startswith("_") or known in SAME_THING.values() or name == "__init__":
            found[known] = inspect.getattr_static(cls, name)
    return found


@pytest.mark.parametrize("name", CLIENTS)
def test_both_have_the_same_methods_and_properties(name: str) -> None:
    of_asyncio = set(public(getattr(aio, name))) - OF_THE_LOOP[name]
    assert set(public(getattr(pocketmq, name))) - BLOCKING_ALONE == of_asyncio - BLOCKING_ALONE


def returned(annotation: object) -> object:
    """What a blocking method gives where one for asyncio gives `annotation`."""
    if get_origin(annotation) is asyncio.Future:
        return Future[get_args(annotation)[0]]  # type: ignore[misc]
    return annotation


@pytest.mark.parametrize("name", CLIENTS)
def test_methods_have_the_same_arguments_defaults_and_types(name: str) -> None:
    blocking, of_asyncio = getattr(pocketmq, name), getattr(aio, name)
    theirs = public(of_asyncio)
    compared = 0
    for method, own in public(blocking).items():
        if method in BLOCKING_ALONE or isinstance(own, property):
            continue
        other = theirs[method]
        mine, ours = inspect.signature(own), inspect.signature(other)
        assert list(mine.parameters.values()) == list(ours.parameters.values()), method
        hints, expected = get_type_hints(own), get_type_hints(other)
        result = expected.pop("return", None)
        if method != "start":  # gives the blocking client, to go on with
            assert _named(hints.pop("return", None)) == _named(returned(result)), method
        else:
            hints.pop("return")
        assert hints == expected, method
        compared += 1
    assert compared >= 8


def _named(annotation: object) -> str:
    return str(annotation)


@pytest.mark.parametrize("name", CLIENTS)
def test_nothing_that_blocks_is_a_coroutine(name: str) -> None:
    for method, own in public(getattr(pocketmq, name)).items():
        assert not inspect.iscoroutinefunction(own), method
        assert not inspect.isasyncgenfunction(own), method


OWN_WORDS = {
    "PopConsumer": {"start", "close"},
    "Producer": {"start", "submit"},
    "PullConsumer": {"start", "close"},
    "PushConsumer": {"start", "run", "close", "on_assigned"},
}
"""Methods that a thread needs other words for than a coroutine."""


@pytest.mark.parametrize("name", CLIENTS)
def test_docstrings_are_whole_where_editors_read_them(name: str) -> None:
    theirs, compared = public(getattr(aio, name)), 0
    for method, own in public(getattr(pocketmq, name)).items():
        if method in OWN_WORDS[name] or method.startswith("__") or method in BLOCKING_ALONE:
            continue
        _, _, expected = (inspect.getdoc(theirs[method]) or "").partition("\n\n")
        assert (inspect.getdoc(own) or "").partition("\n\n")[2] == expected, method
        compared += bool(expected)
    assert compared >= 4


@pytest.mark.parametrize("name", CLIENTS)
def test_internals_are_not_among_the_arguments(name: str) -> None:
    for cls in (getattr(pocketmq, name), getattr(aio, name)):
        known = {"self", "name_servers", "group", "options", "check", "settings"}
        known |= {"codec", "interceptors"}
        assert set(inspect.signature(cls.__init__).parameters) <= known


def test_both_modules_offer_the_same_names() -> None:
    assert set(pocketmq.__all__) - {"Cluster", "__version__", "aio"} == set(aio.__all__)
    for module in (pocketmq, aio):
        for name in module.__all__:
            assert getattr(module, name) is getattr(module, name)
            assert name in dir(module)


def test_values_are_the_same_in_both_modules() -> None:
    clients = {"Admin", "Cluster", "__version__", "aio", *CLIENTS}
    for name in set(pocketmq.__all__) - clients:
        assert getattr(pocketmq, name) is getattr(aio, name)


def test_a_name_that_is_not_there_is_told_as_python_does() -> None:
    for module in (pocketmq, aio):
        with pytest.raises(AttributeError, match=f"module '{module.__name__}' has no attribute"):
            _ = module.Consummer


def imported_after(statement: str) -> set[str]:
    program = f"import sys\n{statement}\nprint(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    return set(run.stdout.split())


def test_importing_pocketmq_imports_nothing_but_itself() -> None:
    found = imported_after("import pocketmq, pocketmq.aio")
    assert {name for name in found if name.startswith("pocketmq")} == {"pocketmq", "pocketmq.aio"}
    assert not found & {"asyncio", "msgspec", "click", "socket", "threading"} - {"threading"}


def test_a_message_needs_no_client_and_a_producer_no_consumer_or_broker() -> None:
    assert not [
        name
        for name in imported_after("import pocketmq; pocketmq.Message")
        if name.startswith(("pocketmq.client", "pocketmq.net", "pocketmq.blocking"))
    ]
    others = ("pocketmq.broker", "pocketmq.store", "pocketmq.nameserver", "pocketmq.embedded")
    consumers = ("pocketmq.client.pop", "pocketmq.client.pull", "pocketmq.client.push.consumer")
    found = imported_after("import pocketmq; pocketmq.Producer")
    assert not [name for name in found if name.startswith((*others, *consumers))]


def test_a_push_consumer_imports_what_only_some_use_when_they_use_it() -> None:
    """A command's first message waits for all that is imported."""
    rare = (
        *("pocketmq.client.producer.", "pocketmq.client.pop.consumer", "pocketmq.balance.handover"),
        *("pocketmq.client.group.handover.driver", "sqlite3"),
    )
    found = imported_after("import pocketmq; pocketmq.PushConsumer")
    assert not [name for name in found if name.startswith(rare)]


def test_types_of_arguments_are_real_classes() -> None:
    """Whoever reads annotations at run time finds them."""
    assert get_type_hints(pocketmq.Producer.send)["message"] is pocketmq.Message
    assert get_type_hints(pocketmq.PullConsumer.poll)["return"] == list[pocketmq.ReceivedMessage]
    assert issubclass(pocketmq.PullConsumer, collections.abc.Iterator)
