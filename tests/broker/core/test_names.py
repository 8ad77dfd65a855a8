"""Names: refused exactly where the model refuses them, with Java's words for it."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pocketmq.broker.core.names import group_fault, topic_fault
from pocketmq.errors import NameInvalid
from pocketmq.model.names import check_group, check_topic

NAMES = st.one_of(
    st.text(max_size=8),
    st.text("abz019%|_- \n\té", max_size=8),
    st.builds(
        lambda prefix, size: prefix + "x" * size,
        st.sampled_from(["", "%RETRY%", "%DLQ%"]),
        st.integers(110, 260),
    ),
)


@given(NAMES)
def test_both_layers_agree_about_names(name: str) -> None:
    def refused(check: Callable[[str], None]) -> bool:
        try:
            check(name)
        except NameInvalid:
            return True
        return False

    assert (topic_fault(name) is not None) == refused(check_topic)
    assert (group_fault(name) is not None) == refused(check_group)


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("orders", None),
        ("\t ", "The specified topic is blank."),
        ("a.b", "The specified topic: a.b, contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"),
        ("ab\n", "The specified topic: ab\n, contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"),
        ("x" * 128, f"The specified topic: {'x' * 128}, is longer than topic max length: 127"),
        ("%DLQ%" + "x" * 251, f"The specified topic is DLQ or Retry topic: %DLQ%{'x' * 251}, and it's longer than topic max length: 255"),
    ],
)  # fmt: skip
def test_faults_of_topics_have_javas_words(name: str, fault: str | None) -> None:
    assert topic_fault(name) == fault


def test_faults_of_groups_have_javas_words() -> None:
    assert group_fault("billing") is None
    assert group_fault("") == "The specified group is blank."
    assert group_fault("g" * 121) == (
        f"The specified group: {'g' * 121}, is longer than group max length: 120"
    )
