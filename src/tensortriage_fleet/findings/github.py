"""Findings as annotations of GitHub Actions: lines that its runner takes out of a log and shows at a file and line.

Escaping is that of GitHub's own toolkit (``packages/core/src/command.ts``): per cent, carriage return and line feed of
a message, and of a property also colon and comma.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from tensortriage.sdk import StoreError, printable
from tensortriage_fleet.findings.finding import Document
from tensortriage_fleet.findings.located import Located, located_in
from tensortriage_fleet.findings.repository import Repository

_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})


def render(document: Document, source: Path) -> str:
    """Return the findings of a document as a line each; an empty text for none."""
    return "\n".join(annotations(located_in(document, source), Repository.here()))


def is_github() -> bool:
    """Return whether this is a job of GitHub Actions."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def annotations(found: Iterable[Located], repository: Repository) -> Iterator[str]:
    """Yield a line for each finding; GitHub shows ten errors and ten warnings of a step."""
    for located in found:
        finding = located.finding
        place = repository.place(finding, located.model)
        title = printable(f"{located.subject}: {finding.title}")
        properties = {"file": place.file, "line": str(place.line or ""), "title": title}
        fields = ",".join(f"{name}={value.translate(_PROPERTY)}" for name, value in properties.items() if value)
        message = "\n".join(map(printable, located.sentences)).translate(_DATA)
        yield f"::{'error' if finding.is_sure else 'warning'} {fields}::{message}"


def tell(document: Document, source: Path, page: str, *, err: bool) -> None:
    """Annotate the faults in a document, and add to the page of the job; elsewhere do nothing.

    Args:
        document: A command's ``--json`` document.
        source: Its case.
        page: The result in Markdown.
        err: Print the annotations on stderr, where the runner finds them too.

    Raises:
        StoreError: When GitHub's file cannot be written.
    """
    if is_github():
        for line in annotations(located_in(document, source), Repository.here()):
            click.echo(line, err=err)
        add_to_summary(page)


def add_to_summary(text: str) -> None:
    """Add Markdown to the page of the job, where there is one (``GITHUB_STEP_SUMMARY``).

    Raises:
        StoreError: When the file cannot be written (``file-unwritable``).
    """
    place = os.environ.get("GITHUB_STEP_SUMMARY")
    if not place:
        return
    try:
        with Path(place).open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"{text}\n")
    except OSError as error:
        raise StoreError(
            f"cannot write {place}: {error.strerror or error}",
            slug="file-unwritable",
            cure="let GITHUB_STEP_SUMMARY name a file that can be written, or unset it",
        ) from error
