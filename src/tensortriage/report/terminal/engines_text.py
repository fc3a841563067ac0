"""Engines as text: one line each, and below it where else the engine can be used."""

import shlex
from collections.abc import Iterator, Mapping, Sequence

from tensortriage.values.printable import printable
from tensortriage.values.text import count


def engine_line(name: str, *, usable: bool, version: str, device: str, reason: str, command: str) -> str:
    """Return the line of an engine: what it is here, or why it is not and the one command that makes it so."""
    if usable:
        return f"  {name:<12} {printable(' '.join(filter(None, (version, device))))}".rstrip()
    return f"- {name:<12} {printable(reason)}{f': {printable(command)}' if command else ''}"


def environment_line(target: str, version: str) -> str:
    """Return the line of an environment that was made for an engine."""
    return f"  {'':<12} {target_line(version, target)}"


def target_line(version: str, target: str) -> str:
    """Return what to write as a target, as a shell takes it."""
    return printable(f"{version}: --target {shlex.quote(target)}")


def conformance_lines(engine: str, passed: Sequence[str], refused: Mapping[str, str], failures: str) -> Iterator[str]:
    """Yield what the conformance suite says."""
    figures = f"{count(len(passed), 'check')} passed, {count(len(refused), 'model')} refused"
    if failures:
        yield from map(printable, failures.splitlines())
    yield f"{figures} beside them" if failures else f"{printable(engine)} conforms: {figures}"
    for name, reason in refused.items():
        yield f"  refused {name}: {printable(reason)}"
