"""The examples on the Spark pages run as they stand, in the session of the tests."""

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"
BLOCK = re.compile(r"^```py\n(.*?)^```", re.MULTILINE | re.DOTALL)
PLACE = re.compile(r'((?:path=|checkpointLocation=|checkpointLocation", |parquet\()")')
"""What stands before the name of a directory."""
PAGES = [page for page in sorted(HOW_TO.glob("*spark*.md")) if BLOCK.search(page.read_text())]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_an_example_runs(
    spark: SparkSession, page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    spark.conf.set("spark.sql.streaming.stopTimeout", "60s")
    names: dict[str, object] = {}
    here = str(tmp_path)  # Java's working directory is where the session was started
    for code in BLOCK.findall(page.read_text()):
        placed = PLACE.sub(rf"\g<1>{here}/", code)
        exec(compile(placed, page.name, "exec"), names)


def test_there_is_an_example() -> None:
    assert "read-topics-with-spark.md" in [page.name for page in PAGES]
