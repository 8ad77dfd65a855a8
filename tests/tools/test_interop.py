"""`make interop` runs both releases at once and counts each by itself."""

import importlib
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"
REPORT = """<testsuites><testsuite>
<testcase name="test_a[5.5.0]"/>
<testcase name="test_a[java-5.5.0-statsAll -t orders]"><failure message="m"/></testcase>
<testcase name="test_once"/>
<testcase name="test_a[4.9.7]"><error message="m"/></testcase>
<testcase name="test_b[4.9.7-10.0.0.1]"><skipped message="m"/></testcase>
<testcase name="test_c[java-ours-4.9.7]"/>
</testsuite></testsuites>"""


def test_tests_count_for_the_release_they_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(TOOLS))
    interop = importlib.import_module("interop")
    report = tmp_path / "report.xml"
    versions = ["5.5.0", "4.9.7"]
    assert list(interop.counts(report, versions)) == [(each, "not run") for each in versions]
    report.write_text(REPORT)
    assert list(interop.counts(report, versions)) == [
        ("5.5.0", "2 passed, 1 failed, 0 skipped"),
        ("4.9.7", "1 passed, 1 failed, 1 skipped"),
    ]
