"""``triage engines check``: the conformance suite over an engine, and its findings as text."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from tensortriage.sdk import LimitOptions, argument, command, count, part

if TYPE_CHECKING:
    from tensortriage.api import Limits

EPILOG = """\b
Examples:
  triage engines check openvino:precision=fp32
  triage engines check script:my_engine.py --json
"""


@command("check", epilog=EPILOG)
def check_command(
    spec: str = argument("ENGINE"),
    limits: "Limits" = part(factory=LimitOptions, memory_limit=None),
    *,
    as_json: bool,
) -> None:
    """Test all that is relied on in an engine (NAME[:key=value,...]), by closed formulas; exit code 1 if it fails."""
    from tensortriage.sdk import print_document, show, to_json
    from tensortriage_engines.conformance.result import conformance_of

    found = conformance_of(spec, limits=limits)
    if as_json:
        print_document(to_json(found))
    show(conformance_lines(found.engine, found.passed, found.refused, found.failures), err=as_json)
    sys.exit(1 if found.failures else 0)


def conformance_lines(engine: str, passed: Sequence[str], refused: Mapping[str, str], failures: str) -> Iterator[str]:
    """Yield the findings of the conformance suite."""
    figures = f"{count(len(passed), 'check')} passed, {count(len(refused), 'model')} refused"
    yield from failures.splitlines()
    yield f"{figures} next to them" if failures else f"{engine} conforms: {figures}"
    yield from (f"  refused {name}: {reason}" for name, reason in refused.items())
