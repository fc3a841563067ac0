"""A task metric over many samples as text: the difference, how sure it is, and the samples that lose."""

from collections.abc import Iterator

from tensortriage.compare.task_metric import SampleScore, TaskComparison
from tensortriage.values.text import count, magnitude, percent

MOST_CHANGES = 3
"""Classes of one sample that are listed."""


def task_lines(found: TaskComparison) -> Iterator[str]:
    """Yield what a task metric says of a target; nothing where there is one sample and it does not differ."""
    samples = count(found.samples, "sample")
    if found.differing_at_most is not None:
        if found.samples > 1:
            share = percent(found.differing_at_most)
            yield f"  no sample of {found.samples} differs: with 95 % confidence at most {share} do"
    elif found.low is not None and found.high is not None:
        ends = f"{found.low:+.3g} to {found.high:+.3g}"
        sure = "" if found.low > 0 or found.high < 0 else "; it may as well be none"
        yield f"  {found.difference:+.3g} over {samples}; 95 % interval {ends} (paired bootstrap){sure}"
    moved = f"  worse on {found.worse}, better on {found.better}"
    if found.worse or found.better or found.flips:
        yield moved + ("" if found.flips is None else f"; another class wins on {found.flips}")
    for sample in found.worst:
        yield _sample(sample)
    for common in found.common:
        yield f"  in common: {common}"


def _sample(sample: SampleScore) -> str:
    text = f"    {sample.feed}: {magnitude(sample.reference)} -> {magnitude(sample.target)}"
    if sample.flips:
        changed = [(ours, theirs) for ours, theirs in zip(sample.label, sample.other, strict=False) if ours != theirs]
        text += ", class " + ", ".join(f"{ours} -> {theirs}" for ours, theirs in changed[:MOST_CHANGES])
        text += f" and {len(changed) - MOST_CHANGES} more" if len(changed) > MOST_CHANGES else ""
    if sample.margin is not None:
        text += f", margin {magnitude(sample.margin)}"
    return f"{text}, largest input {magnitude(sample.largest_input)}"
