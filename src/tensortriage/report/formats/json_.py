"""The report as one JSON document: the same data that the HTML page embeds, for scripts and CI."""

from tensortriage.report.document import Report
from tensortriage.values.serial import to_json


def render(report: Report) -> str:
    """Return the report as JSON (``tensortriage.report/1``); non-finite numbers are strings, as in every file."""
    return to_json(report) + "\n"
