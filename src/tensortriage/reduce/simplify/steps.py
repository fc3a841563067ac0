"""All steps in the order that makes the later ones cheap: dropped parts need not be shrunk."""

from collections.abc import Callable, Sequence

from tensortriage.reduce.reduction_result import Shrunk
from tensortriage.reduce.repro.repro_case import Repro
from tensortriage.reduce.simplify.interface import drop_outputs, drop_samples, fold_inputs
from tensortriage.reduce.simplify.numbers import replace_weights, simplify_values
from tensortriage.reduce.simplify.sizes import shrink_sizes
from tensortriage.reduce.simplify.trials import Trials

Step = Callable[[Repro, Trials], tuple[Repro, Shrunk | None]]
STEPS: Sequence[Step] = (drop_samples, drop_outputs, shrink_sizes, fold_inputs, replace_weights, simplify_values)
OF_THE_MODEL: Sequence[Step] = (shrink_sizes, replace_weights)
"""Steps that need no inputs: the judge has its own."""


def shrink(
    repro: Repro, trials: Trials, *, say: Callable[[str], None], steps: Sequence[Step] = STEPS
) -> tuple[Repro, tuple[Shrunk, ...]]:
    """Return the smaller case, and the changes; Ctrl-C ends it with the smallest so far."""
    changes: list[Shrunk] = []
    try:
        for number, step in enumerate(steps, start=1):
            say(f"making it smaller: step {number} of {len(steps)}")
            repro, shrunk = step(repro, trials)
            if shrunk is not None:
                changes.append(shrunk)
    except KeyboardInterrupt:
        changes.append(Shrunk("interrupted", False, "the remaining parts were not made smaller"))
    return repro, tuple(changes)
