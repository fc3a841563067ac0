"""The influence of ops that are no suspects: what their small errors would do, for the ranking of all ops.

Suspects are injected because the verdict needs it (`tensortriage.diagnose.measurements.local_errors.local`). The others
are injected too as far as that is cheap: many into one built session, one run each, the largest errors over their
floors first.
"""

import dataclasses
from collections.abc import Sequence

from tensortriage.compare.judgement.relative_error import ratio_of
from tensortriage.diagnose.measurements.local_errors.local import Influence, Local, in_order, injected, output_error
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.engines.spec import PLAIN
from tensortriage.inputs.feed import Feed
from tensortriage.model.transforms.mark_outputs import inject, select_outputs
from tensortriage.runs.budget import BudgetSpent
from tensortriage.runs.capture import size_of
from tensortriage.values.dtype import DType

WORK_BYTES = 4 << 30
"""Tensors that these runs may make all together: every run of the reference makes all of its own again."""

GROUP = 32
"""Values made replaceable in one model: switches are cheap to run past, but not to build."""


def with_the_rest(inv: Investigation, feed: Feed, local: Local, known: Influence) -> Influence:
    """Return the influence with that of as many further ops as the work limit allows.

    Only for influence measured in the reference's own run, which is what the figures of all ops are compared in.
    """
    if known.rounded:
        return known
    golden = inv.golden(feed)
    ratios = {
        name: ratio_of(local.error(name), local.floors.target.get(name)) or 0.0
        for name in local.arrays.names()
        if name not in known.alone and golden.spec(name).dtype in (DType.FLOAT, DType.DOUBLE, DType.FLOAT16)
    }
    size = max(sum(size_of(golden.spec(name)) for name in golden.names()), 1)
    chosen = sorted(ratios, key=lambda name: -ratios[name])[: WORK_BYTES // size]
    alone = dict(known.alone)
    for start in range(0, len(chosen), GROUP):
        group = chosen[start : start + GROUP]
        inv.progress(f"injecting the errors of {start + len(group)} of {len(chosen)} further ops")
        try:
            alone |= one_group(inv, feed, local, group)
        except BudgetSpent:
            break
    return dataclasses.replace(known, alone=alone)


def one_group(inv: Investigation, feed: Feed, local: Local, values: Sequence[str]) -> dict[str, float]:
    """Return the influence of some values, injected one at a time into one session."""
    golden = inv.golden(feed)
    graph = inv.model.graph
    untouched = in_order(graph, {spec.name: golden[spec.name] for spec in inv.model.outputs if spec.name in golden})
    outputs = [spec.name for spec in inv.model.outputs]
    model = select_outputs(inject(inv.model, values, specs=inv.specs(feed), fixed=True), outputs)
    with inv.new_runner(PLAIN, model) as runner:
        return {
            value: output_error(untouched, in_order(graph, runner.run(injected(feed, local.arrays, values, {value}))))
            for value in values
        }
