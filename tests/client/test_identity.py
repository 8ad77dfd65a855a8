"""Client ids, as Java makes them."""

import os
from ipaddress import ip_address

from pocketmq.client.clock import SystemClock
from pocketmq.client.options import client_id, instance_name, local_ip


def test_an_id_is_made_of_ip_instance_unit_and_stream() -> None:
    assert client_id("10.0.0.1", "DEFAULT") == "10.0.0.1@DEFAULT"
    assert client_id("10.0.0.1", "a", "unit") == "10.0.0.1@a@unit"
    assert client_id("10.0.0.1", "a", " ") == "10.0.0.1@a"
    assert client_id("[::1]", "a", "unit", stream=True) == "[::1]@a@unit@STREAM"


def test_unnamed_clients_get_names_of_their_own() -> None:
    clock = SystemClock()
    names = [instance_name("DEFAULT", clock) for _ in range(1000)]
    assert len(set(names)) == 1000
    assert {name.split("#")[0] for name in names} == {str(os.getpid())}
    assert all(name.split("#")[1].isdigit() for name in names)


def test_named_and_broadcasting_clients_keep_their_name() -> None:
    clock = SystemClock()
    assert instance_name("a", clock) == "a"
    assert instance_name("DEFAULT", clock, shared=True) == "DEFAULT"


def test_the_local_address_is_one_of_a_host() -> None:
    found = ip_address(local_ip().strip("[]"))
    assert not found.is_unspecified
    assert not found.is_multicast
