"""The influence of errors on the model's outputs: results of ops put into the reference's run in place of its own.

The error of one op, injected alone, gives its *influence*; the errors of several, injected together, give their share
of the target's failure. Many experiments share one build, since a run decides which results are overridden.
"""

import contextlib
import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.judgement.within import counts, is_decisive
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.diagnose.measurements.local_errors.local import Local
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.engines.spec import PLAIN
from tensortriage.envelope.explanations import ROUNDED
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.feed import Feed
from tensortriage.model.inspect.output_parts import OutputPart, with_parts
from tensortriage.model.ir.graph import Graph
from tensortriage.model.mixed_precision.emulate_rounding import round_results
from tensortriage.model.model import Model
from tensortriage.model.transforms.mark_outputs import inject, select_outputs
from tensortriage.runs.budget import BudgetSpent
from tensortriage.runs.lab import OpenSession
from tensortriage.runs.observation.capture import size_of
from tensortriage.values.dtype import DType, Precision
from tensortriage.values.store import TensorStore

WORK_BYTES = 4 << 30
"""Tensors that runs for ops which are no suspects may make all together: each makes all of the reference's again."""

GROUP = 32
"""Ops that are no suspects and made replaceable in one model: switches are cheap to run past, but not to build."""

Arrays = Mapping[str, np.ndarray]


@frozen_dataclass
class Influence:
    """The effect of injected local errors on the model's outputs.

    Attributes:
        alone: Value name to the largest relative error at the outputs when only its local error is injected.
        together: The same with all named values injected at once.
        explained: Share of the target's output error that the joint injection reproduces:
            ``1 - |target - injected|^2 / |target - untouched|^2`` over all floating-point outputs, at least 0.
        rounded: Whether the run injected into had its results rounded to the target's format.
    """

    alone: Mapping[str, float]
    together: float
    explained: float
    rounded: bool = False


@frozen_dataclass
class InjectedRuns:
    """Runs of the reference on one feed in which results of ops can be overridden.

    Attributes:
        graph: The model's.
        ask: Answers a run of the model with overridden results.
        untouched: Its outputs without overrides.
        deployed: The target's outputs.
        cut_off: Whether the target's format ends where its range does, so that outputs beyond are not seen.
        parts: Parts that outputs are composed of; each counts as an output of its own.
    """

    graph: Graph
    feed: Feed
    ask: OpenSession
    untouched: Arrays
    deployed: Arrays
    cut_off: bool = False
    parts: Sequence[OutputPart] = ()

    def with_results(self, arrays: TensorStore | Arrays, names: Iterable[str]) -> Arrays:
        """Return the outputs with the named results replaced by the given arrays."""
        return self.ask(self.feed, injected={name: np.asarray(arrays[name]) for name in names})

    def error(self, outputs: Arrays) -> float:
        """Return the largest relative error over outputs; 0 when there is none."""
        errors = [
            error_of(measure(self.untouched[name], array))
            if name in self.untouched and array.shape == self.untouched[name].shape
            else math.inf
            for name, array in with_parts(in_order(self.graph, outputs), self.parts).items()
        ]
        return max(errors, default=0.0)

    def explained(self, outputs: Arrays) -> float:
        """Return the share of the target's output error that outputs reproduce."""
        untouched, made = self.untouched, with_parts(in_order(self.graph, outputs), self.parts)
        if self.cut_off:
            untouched, made = (_cut_off(arrays, self.deployed) for arrays in (untouched, made))
        return explained_share(untouched, self.deployed, made)


@contextlib.contextmanager
def injected_runs(
    inv: Investigation,
    feed: Feed,
    values: Iterable[str],
    *,
    host: Model | None = None,
    shown: Sequence[str] = (),
    fixed: bool = True,
) -> Iterator[InjectedRuns]:
    """Yield runs of the reference in which values can be overridden, in one build.

    Args:
        inv: The investigation.
        feed: The feed.
        values: Names of the values that can be overridden.
        host: Another model of the same outputs, to inject into; None for the investigation's.
        shown: Values that are outputs as well.
        fixed: Whether replacements have the shapes of the reference's values.
    """
    graph, outputs = inv.model.graph, [spec.name for spec in inv.model.outputs]
    if host is None:
        golden = inv.golden.of(feed)
        untouched = {name: np.asarray(golden[name]) for name in outputs if name in golden}
    else:
        untouched = dict(inv.lab.outputs(PLAIN, host, feed))
    model = inject(host or inv.model, list(values), specs=inv.golden.specs(feed), fixed=fixed)
    with inv.lab.session(PLAIN, select_outputs(model, dict.fromkeys([*outputs, *shown]))) as ask:
        parts, cut_off = inv.setting(feed).parts, inv.precision is Precision.INT8
        right, deployed = (with_parts(in_order(graph, each), parts) for each in (untouched, inv.deployed(feed)))
        yield InjectedRuns(graph, feed, ask, right, deployed, cut_off, parts)


def influence(inv: Investigation, feed: Feed, arrays: TensorStore, values: Sequence[str]) -> Influence:
    """Inject the target's result of each value into the reference's run, alone and all together, in one built session.

    Where that does not reproduce the failure and the target's format is narrow, the same is done to the run with
    rounded results: some errors do harm only there (a constant added to all scores is nothing to a Softmax, until the
    sums are rounded).

    Args:
        inv: The investigation.
        feed: The feed.
        arrays: The target's results, by value; of others nothing is known.
        values: Suspects.
    """
    known = [value for value in values if value in arrays]
    seen = _influence(inv, feed, arrays, known, None)
    if is_decisive(seen.explained) or inv.precision not in ROUNDED:
        return seen
    again = _influence(inv, feed, arrays, known, round_results(inv.model, inv.precision, specs=inv.golden.specs(feed)))
    better = is_decisive(again.explained) and again.explained > seen.explained
    return dataclasses.replace(again, rounded=True) if better else seen


def _influence(
    inv: Investigation, feed: Feed, arrays: TensorStore, values: Sequence[str], host: Model | None
) -> Influence:
    inv.lab.progress(f"injecting the error of {len(values)} suspects into the reference")
    with injected_runs(inv, feed, values, host=host) as runs:
        alone = {value: runs.error(runs.with_results(arrays, [value])) for value in values}
        largest = max(alone.values(), default=0.0)
        named = [value for value, error in alone.items() if counts(error, largest)]
        joint = runs.with_results(arrays, named) if named else {}
        return Influence(alone, runs.error(joint), runs.explained(joint))


def with_the_rest(inv: Investigation, feed: Feed, local: Local, known: Influence) -> Influence:
    """Return the influence with that of further ops, for the ranking of all: the largest errors over floors first.

    As many as the work limit allows, and only for influence in the reference's own run, the basis of all ops' figures.
    """
    if known.rounded:
        return known
    golden = inv.golden.of(feed)
    ratios = {
        name: local.floor_ratio(name) or 0.0
        for name in local.arrays.names()
        if name not in known.alone and golden.spec(name).dtype in (DType.FLOAT, DType.DOUBLE, DType.FLOAT16)
    }
    size = max(sum(size_of(golden.spec(name)) for name in golden.names()), 1)
    chosen = sorted(ratios, key=lambda name: -ratios[name])[: WORK_BYTES // size]
    alone = dict(known.alone)
    for start in range(0, len(chosen), GROUP):
        group = chosen[start : start + GROUP]
        inv.lab.progress(f"injecting the errors of {start + len(group)} of {len(chosen)} further ops")
        try:
            with injected_runs(inv, feed, group) as runs:
                alone |= {value: runs.error(runs.with_results(local.arrays, [value])) for value in group}
        except BudgetSpent:
            break
    return dataclasses.replace(known, alone=alone)


def in_order(graph: Graph, outputs: Arrays) -> dict[str, np.ndarray]:
    """Return outputs with those of every TopK that promises no order in ascending order: they compare as sets."""
    found = dict(outputs)
    for name, array in outputs.items():
        node = graph.producer(name)
        if node is not None and (node.op_type, node.domain, node.attributes.get("sorted")) == ("TopK", "", 0):
            axis = node.attributes.get("axis", -1)
            found[name] = np.sort(array, axis=axis if isinstance(axis, int) else -1)
    return found


def _cut_off(arrays: Arrays, deployed: Arrays) -> dict[str, np.ndarray]:
    """Return outputs within the range of the target's, whose integers hold nothing beyond."""
    ranges = {name: (found.min(), found.max()) for name, found in deployed.items() if found.size}
    return {name: np.clip(array, *ranges[name]) if name in ranges else array for name, array in arrays.items()}


def explained_share(
    untouched: Mapping[str, np.ndarray], deployed: Mapping[str, np.ndarray], joint: Mapping[str, np.ndarray]
) -> float:
    """Return the share of the output error that an injection reproduces, element by element, NaN for NaN.

    Args:
        untouched: Outputs without error.
        deployed: Outputs of the target.
        joint: Outputs with the errors injected.
    """
    total = rest = 0.0
    for name, target in deployed.items():
        if name not in untouched or name not in joint or joint[name].shape != target.shape or not target.size:
            continue
        reference, wrong, made = (np.asarray(x, np.float64) for x in (untouched[name], target, joint[name]))
        broken = ~np.isfinite(wrong) & np.isfinite(reference)
        if broken.any():
            return float((~np.isfinite(made) & broken).sum() / broken.sum())
        scale = float(np.sqrt(np.mean(reference**2))) or 1.0
        total += float(np.sum(((wrong - reference) / scale) ** 2))
        rest += float(np.sum((np.nan_to_num(wrong - made, posinf=0, neginf=0) / scale) ** 2))
    return max(0.0, 1.0 - rest / total) if total > 0.0 else 0.0
