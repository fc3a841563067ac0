from pathlib import Path

import pytest

from tensortriage.errors import UsageError
from tensortriage.report.renderers import FORMATS, find_format
from unit.report.samples import early_overflow, healthy_match, hostile, local_fault, range_overflow


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("report", [healthy_match(), early_overflow(), range_overflow(), local_fault(), hostile()])
def test_every_format_renders_every_report_the_same_way_twice(name: str, report: object) -> None:
    first = FORMATS[name].render(report)  # type: ignore[arg-type]  # parametrize loses the type
    assert first == FORMATS[name].render(report)  # type: ignore[arg-type]  # parametrize loses the type
    assert first.endswith("\n") or name == "html"


@pytest.mark.parametrize(
    ("name", "output", "expected"),
    [
        (None, None, "console"),
        (None, "x.html", "html"),
        (None, "x.HTM", "html"),
        (None, "x.md", "markdown"),
        (None, "x.json", "json"),
        (None, "x.txt", "console"),
        ("markdown", "x.txt", "markdown"),
        ("model-explorer", None, "model-explorer"),
    ],
)
def test_the_name_wins_then_the_ending_then_the_console(name: str | None, output: str | None, expected: str) -> None:
    assert find_format(name, Path(output) if output else None).name == expected


@pytest.mark.parametrize(
    ("name", "output", "hint"), [("markdwn", None, "did you mean 'markdown'"), (None, "x.pdf", "--format")]
)
def test_unknown_formats_are_answered_with_the_known(name: str | None, output: str | None, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_format(name, Path(output) if output else None)
    assert hint in caught.value.cure
    assert "model-explorer" in caught.value.cure
