"""One table of formats: a new way to see a report is one module with ``render(report) -> str`` and one line here.

A package adds one by an entry point of `GROUP`, called as the format. It is for the documents of all commands: its
module has ``render(document, source) -> str``, for plain data and the case or file that holds it.
"""

import importlib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from tensortriage.errors import UsageError, did_you_mean
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.values.registered import registered

GROUP = "tensortriage.report_formats"
"""Entry-point group of modules with ``render``, and ``SUFFIXES`` if files have one."""


class Renderer(Protocol):
    """Turns a report, or a document and its place, into text."""

    def __call__(self, *shown: object) -> str:
        """Return the whole text."""


@frozen_dataclass
class ReportFormat:
    """One output format.

    Attributes:
        name: The word after ``--format``.
        module: Module whose function ``render`` is the `Renderer`; imported when used.
        suffixes: File name endings that imply this format.
        file_name: Its file inside the case when no other place is named; empty for formats that go to stdout.
    """

    name: str
    module: str
    suffixes: tuple[str, ...]
    file_name: str = ""

    def render(self, *shown: object) -> str:
        """Return a report in this format; in one of another package a document, with its place."""
        renderer: Renderer = importlib.import_module(self.module).render
        return renderer(*shown)

    def prepare(self) -> None:
        """Import the renderer and do its slow preparations ahead of time."""
        getattr(importlib.import_module(self.module), "prepare", lambda: None)()


FORMATS: Mapping[str, ReportFormat] = MappingProxyType(
    {
        f.name: f
        for f in (
            ReportFormat("console", "tensortriage.report.formats.console", (".txt",)),
            ReportFormat("html", "tensortriage.report.formats.html", (".html", ".htm"), "report.html"),
            ReportFormat("json", "tensortriage.report.formats.json_", (".json",)),
            ReportFormat("markdown", "tensortriage.report.formats.markdown", (".md", ".markdown")),
            ReportFormat("model-explorer", "tensortriage.report.formats.model_explorer", (), "model-explorer.json"),
        )
    }
)


def formats() -> Mapping[str, ReportFormat]:
    """Return every format by name: ours, then those of packages."""
    points = registered(GROUP).items()
    added = {name: ReportFormat(name, point.value, getattr(point.load(), "SUFFIXES", ())) for name, point in points}
    return {**added, **FORMATS}


def find_format(name: str | None, output: Path | None) -> ReportFormat:
    """Return the format requested by name, else the one that the output file's ending implies, else console.

    Raises:
        UsageError: For an unknown name or ending (``report-format-unknown``); the cure lists the known ones.
    """
    known = formats()
    if name is not None:
        if name in known:
            return known[name]
        raise UsageError(
            f"'{name}' is not a report format",
            slug="report-format-unknown",
            cure=f"{did_you_mean(name, known)} use one of: {', '.join(known)}".lstrip(),
        )
    if output is None:
        return known["console"]
    for candidate in known.values():
        if output.suffix.lower() in candidate.suffixes:
            return candidate
    raise UsageError(
        f"the ending of {output} implies no report format",
        slug="report-format-unknown",
        cure=f"add --format, one of: {', '.join(known)}",
    )
