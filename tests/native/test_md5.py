"""The core makes the same MD5 words as the pure function."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.native.both import alone, same

sizes = st.sampled_from([0, 1, 20, 54, 55, 56, 63, 64, 65, 118, 119, 120, 127, 128, 129, 300])
texts = sizes.flatmap(lambda size: st.binary(min_size=size, max_size=size)) | st.binary()


@settings(max_examples=150)
@given(st.lists(texts, max_size=20), st.lists(texts, max_size=12))
def test_texts_of_all_sizes(starts: list[bytes], endings: list[bytes]) -> None:
    same("md5_starts", starts, endings)


def test_the_usual_input_is_not_left_to_the_pure_function() -> None:
    assert len(alone("md5_starts", [b"10.0.0.1@7"], [b"-0", b"-1"])) == 8


@given(st.sampled_from([[1], ["a"], (b"a",), None, [bytearray(b"a")], [b"a", None]]))
def test_other_types_have_the_pure_outcome(starts: Any) -> None:
    same("md5_starts", starts, [b"-0"])
    same("md5_starts", [b"a"], starts)
