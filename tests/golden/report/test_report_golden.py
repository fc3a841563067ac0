"""What the text formats of a report look like, for the cases people meet most and for hostile names."""

from pathlib import Path

import pytest

from golden.compare import check_golden
from tensortriage.report.document import Report
from tensortriage.report.renderers import FORMATS
from unit.report import samples

SAMPLES = {
    "match": samples.healthy_match(),
    "overflow": samples.range_overflow(9, origin=5),
    "fault": samples.local_fault(9, culprits=(2, 6)),
    "many-culprits": samples.local_fault(40, culprits=tuple(range(20))),
    "hostile": samples.hostile(),
}
ENDINGS = {"console": "txt", "markdown": "md", "json": "json", "model-explorer": "model-explorer.json"}
CASES = [
    (name, format_name)
    for name in SAMPLES
    for format_name in ENDINGS
    # The JSON of these two adds length to the repository, not insight.
    if name not in ("hostile", "many-culprits") or format_name in ("console", "markdown")
]


@pytest.mark.parametrize(("name", "format_name"), CASES)
def test_rendered_text_is_as_accepted(name: str, format_name: str) -> None:
    report: Report = SAMPLES[name]
    text = FORMATS[format_name].render(report)
    check_golden(text, Path(__file__).with_name(f"{name}.{ENDINGS[format_name]}"))
