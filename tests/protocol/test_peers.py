"""Versions by number and name, on ordinals taken from Java's own enum."""

import pytest

from pocketmq.protocol.peers import CURRENT_VERSION, VersionGate, version_name, version_number

JAVA_ORDINALS = {
    (4, 0, 0): 213,
    (4, 3, 0): 273,
    (4, 5, 2): 317,
    (4, 7, 1): 355,
    (4, 8, 0): 373,
    (4, 9, 0): 393,
    (4, 9, 3): 399,
    (4, 9, 4): 401,
    (4, 9, 8): 409,
    (5, 0, 0): 413,
    (5, 1, 4): 441,
    (5, 3, 1): 475,
    (5, 3, 3): 479,
    (5, 5, 6): 525,
    (5, 9, 9): 611,
}


@pytest.mark.parametrize(("release", "ordinal"), JAVA_ORDINALS.items())
def test_a_release_has_javas_ordinal_and_back(release: tuple[int, int, int], ordinal: int) -> None:
    assert version_number(*release) == ordinal
    assert version_name(ordinal) == "V" + "_".join(map(str, release))


@pytest.mark.parametrize(
    ("ordinal", "name"),
    [
        (212, "V4_0_0_SNAPSHOT"),
        (480, "V5_3_4_SNAPSHOT"),
        (612, "HIGHER_VERSION"),
        (9999, "HIGHER_VERSION"),
        (121, "V3"),
    ],
)
def test_other_ordinals_have_names_too(ordinal: int, name: str) -> None:
    assert version_name(ordinal) == name


def test_gates_lie_where_javas_checks_do() -> None:
    assert version_number(4, 9, 3) == VersionGate.UNIQUE_KEY_QUERY_UNSIGNED
    assert version_number(4, 9, 4) == VersionGate.STANDARD_JSON
    assert version_number(5, 0, 0) == VersionGate.TOPIC_QUEUE_MAPPING
    assert version_number(5, 3, 0) == VersionGate.EXACT_TIMES
    assert version_number(5, 3, 1) == VersionGate.GO_AWAY
    assert VersionGate.GO_AWAY < CURRENT_VERSION
