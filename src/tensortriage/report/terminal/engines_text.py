"""The findings of the conformance suite about an engine, as text."""

from collections.abc import Iterator, Mapping, Sequence

from tensortriage.values.text import count


def conformance_lines(engine: str, passed: Sequence[str], refused: Mapping[str, str], failures: str) -> Iterator[str]:
    """Yield the findings of the conformance suite."""
    figures = f"{count(len(passed), 'check')} passed, {count(len(refused), 'model')} refused"
    yield from failures.splitlines()
    yield f"{figures} beside them" if failures else f"{engine} conforms: {figures}"
    yield from (f"  refused {name}: {reason}" for name, reason in refused.items())
