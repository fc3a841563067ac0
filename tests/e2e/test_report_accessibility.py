"""Pages of real cases without a violation that axe-core finds, at the widths and in the colours that people use.

axe-core is a tool of these tests alone: ``npm pack axe-core`` fetches it, and ``AXE_CORE`` names its axe.min.js.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.chromium import Page, chromium, find_chromium
from tensortriage.report.document import Report
from tensortriage.report.formats import html
from unit.report.samples import early_overflow, healthy_match, hostile, local_fault

PROGRAM, AXE = find_chromium(), Path(os.environ.get("AXE_CORE", "axe-core"))
pytestmark = [
    pytest.mark.lengthy,
    pytest.mark.browser,
    pytest.mark.skipif(PROGRAM is None, reason="no chromium or chrome is installed: the page cannot be opened"),
    pytest.mark.skipif(not AXE.is_file(), reason="AXE_CORE names no axe.min.js (npm pack axe-core)"),
]
VIOLATIONS = """
axe.run(document).then((found) => JSON.stringify(found.violations.map(
  (each) => [each.id, each.nodes.slice(0, 3).map((node) => [node.html.slice(0, 200), node.failureSummary])])))
"""
SAMPLES = {
    "match": healthy_match(),
    "early-overflow": early_overflow(),
    "many": local_fault(300, culprits=(40, 80)),
    "hostile": hostile(),
}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    assert PROGRAM is not None
    with chromium(PROGRAM, tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(params=["scaled-conv", "overflow", *SAMPLES])
def report(request: pytest.FixtureRequest) -> Report:
    """Reports of real diagnoses, and of what these do not show."""
    if request.param in SAMPLES:
        return SAMPLES[request.param]
    return Report.load(request.getfixturevalue("diagnosed")(request.param).folder / "case")


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("colours", ["light", "dark"])
def test_axe_finds_nothing(page: Page, report: Report, width: int, colours: str, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(html.render(report), encoding="utf-8")
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 500)
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": colours}])
    page.open(path)
    assert page.run("matchMedia('(prefers-color-scheme: dark)').matches") is (colours == "dark")
    assert page.run("innerWidth") == width
    assert page.run("document.documentElement.scrollWidth <= innerWidth")  # nothing is beyond the edge
    page.run(AXE.read_text(encoding="utf-8") + "; 0")
    assert json.loads(page.run(VIOLATIONS)) == []
