"""The measured table of a page is replaced, and nothing else."""

from pathlib import Path

import pytest
from benchmarks._kafka_page import END, START, write_table

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "spark-and-kafka.md"


def test_what_is_between_the_marks_is_replaced(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.read_text("utf-8"), "utf-8")
    write_table(page, "| a | b |")
    before, _, rest = page.read_text("utf-8").partition(START)
    measured, _, after = rest.partition(END)
    assert measured == "\n| a | b |\n"
    whole = PAGE.read_text("utf-8")
    assert whole.startswith(before)
    assert whole.endswith(after)


def test_a_page_without_marks_is_left_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"text {START} text", "utf-8")
    with pytest.raises(ValueError, match="does not have"):
        write_table(page, "x")
    assert page.read_text("utf-8") == f"text {START} text"
