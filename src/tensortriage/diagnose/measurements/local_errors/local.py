"""Which op is wrong by itself? Every op runs on the target with golden inputs; what differs was born right there.

All ops are packed into one exploded model (in parts when memory demands), so the answer costs one build and one run.
Local errors are judged against the local floor: the same exploded model run with results rounded to the target's format
(or in float64). Each suspect's error is then injected alone into the reference's run: its *influence* is what it does
to the model's outputs. (The local/influence split is Herbgrind's, PLDI 2018, carried from scalars to tensors.)
"""

import dataclasses
import functools
import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of, ratio_of
from tensortriage.compare.judgement.within import counts, is_decisive, stands_out
from tensortriage.compare.metrics.tensor_metrics import Metrics, measure
from tensortriage.diagnose.measurements.floors import floors_of
from tensortriage.diagnose.measurements.freedoms import maker, with_choices
from tensortriage.diagnose.measurements.local_errors.golden_operands import GoldenOperands, golden_operands
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.engines.spec import PLAIN
from tensortriage.envelope.floors import ROUNDED, Floors
from tensortriage.inputs.feed import Feed
from tensortriage.model.ir.graph import Graph
from tensortriage.model.mixed_precision.emulate_rounding import round_results
from tensortriage.model.model import Model
from tensortriage.model.transforms.mark_outputs import INJECT_PREFIX, USE_PREFIX, inject, select_outputs
from tensortriage.runs.capture import batches, size_of
from tensortriage.runs.refusals import Unseen
from tensortriage.values.spec import ValueSpec
from tensortriage.values.store import MemoryStore, ShardWriter, TensorStore, stored

MOST_SUSPECTS = 24
"""Suspects whose influence is measured, the largest ratios first."""

KEPT_BYTES = 64 << 20
"""Up to this much of tensors the local results of all ops are kept, not only of the suspects."""


@dataclasses.dataclass(frozen=True, slots=True)
class Local:
    """Local figures of every op.

    Attributes:
        metrics: Target on golden inputs against golden outputs, by value name.
        floors: Their floors.
        misshapen: Values whose shape or kind of type differs on the target, and how.
        arrays: The target's local results of the suspects, and of all ops that differ where these take little room.
        unseen: Values that the target did not show.
    """

    metrics: Mapping[str, Metrics]
    floors: Floors
    misshapen: Mapping[str, str]
    arrays: TensorStore
    unseen: Unseen = dataclasses.field(default_factory=Unseen)

    def error(self, value: str) -> float | None:
        """Return the local error of a value; None when not measured."""
        return error_of(self.metrics[value]) if value in self.metrics else None


def local_errors(inv: Investigation, feed: Feed, *, only: Collection[str] | None = None, build: int = 0) -> Local:
    """Measure the local error of every op on the target, one exploded build per part.

    Args:
        inv: The investigation.
        feed: The feed whose golden values the ops get.
        only: Names of nodes to measure; None for all.
        build: Number of the build; another number is another build, of engines whose builds differ.

    Raises:
        EngineError: When the target refuses or fails the exploded model.
    """
    operands = golden_operands(inv, feed)
    parts = parts_of(inv, operands.golden, only=only)
    found = [one_part(inv, operands, nodes, (number, len(parts)), build) for number, nodes in enumerate(parts, 1)]
    return joined(found)


def one_part(
    inv: Investigation, operands: GoldenOperands, nodes: Sequence[str], number: tuple[int, int], build: int
) -> Local:
    """Measure the local errors of some nodes in one exploded build.

    Args:
        inv: The investigation.
        operands: What the ops get.
        nodes: Their names.
        number: Which part this is, from 1, and of how many.
        build: Number of the build.
    """
    target, golden = inv.question.target, operands.golden
    ops = operands.apart([[name] for name in nodes])
    where = "each op alone" + (f", part {number[0]} of {number[1]}" if number[1] > 1 else "")
    floors = floors_of(inv, ops.model, ops.feed, ops.values, golden=golden, specs=operands.specs, what=where)
    small = sum(size_of(golden.spec(name)) for name in ops.values) <= KEPT_BYTES
    kept: dict[str, np.ndarray] = {}

    def keep(name: str, array: np.ndarray, figure: Metrics) -> None:
        ratio = ratio_of(error_of(figure), floors.target.get(name)) or 0.0
        if stands_out(ratio) or (small and ratio > 0.0):
            kept[name] = np.array(array)

    what = f"{where} on {target}"
    answer = inv.measured(target, ops.model, ops.feed, ops.values, golden=golden, what=what, keep=keep, build=build)
    errors = {name: error_of(figure) for name, figure in answer.metrics.items()}
    floors = with_choices(inv, ops.model, ops.feed, floors, errors, op_types=maker(inv), what=where)
    again = [f"build {build}"] if build else []
    folder = inv.case.runs / inv.key(target, inv.model, operands.feed, "local arrays", list(nodes), *again)
    return Local(answer.metrics, floors, answer.misshapen, arrays_in(folder, kept), answer.unseen)


def joined(parts: Sequence[Local]) -> Local:
    """Return the local figures of several parts as one."""
    metrics = {name: figure for part in parts for name, figure in part.metrics.items()}
    fp32 = {name: floor for part in parts for name, floor in part.floors.fp32.items()}
    target = {name: floor for part in parts for name, floor in part.floors.target.items()}
    emulated = {name: figure for part in parts for name, figure in part.floors.emulated.items()}
    arrays = {name: part.arrays[name] for part in parts for name in part.arrays.names()}  # mapped, not read
    source = parts[-1].floors.source if parts else ""
    taken = {name: freedom for part in parts for name, freedom in part.floors.taken.items()}
    misshapen = {name: words for part in parts for name, words in part.misshapen.items()}
    unseen = functools.reduce(Unseen.joined, (part.unseen for part in parts), Unseen())
    floors = Floors(fp32, target, emulated, source, taken=taken)
    return Local(metrics, floors, misshapen, MemoryStore(arrays), unseen)


def arrays_in(folder: Path, kept: Mapping[str, np.ndarray]) -> TensorStore:
    """Return local arrays, storing them when they are new (a resumed diagnosis finds them on disk)."""
    if kept:
        with ShardWriter(folder) as writer:
            for name, array in kept.items():
                writer.write(name, array)
    return stored(folder) or MemoryStore(kept)


def parts_of(inv: Investigation, golden: TensorStore, *, only: Collection[str] | None = None) -> list[tuple[str, ...]]:
    """Split the nodes into parts whose golden tensors fit the batch limit; one part when they all do.

    Left out are nodes outside ``only`` (None for all), and those that need a tensor without golden value (of a model
    that the golden run was not made with).
    """
    unknown = {value for value in inv.values if value not in golden}
    nodes = {
        node.outputs[0]: node.name
        for node in inv.model.graph.nodes
        if node.op_type != "Constant"
        and node.outputs
        and unknown.isdisjoint(node.uses)
        and (only is None or node.name in only)
    }
    specs: dict[str, ValueSpec] = {name: golden.spec(name) for name in golden.names()}
    limit = inv.question.batch_bytes
    groups = batches(list(nodes), specs, batch_bytes=limit // 3 if limit else None)
    return [tuple(nodes[value] for value in group) for group in groups]


def suspects(local: Local) -> list[tuple[str, float]]:
    """Return values whose local error exceeds its floor, with the ratio, worst first."""
    found: list[tuple[str, float]] = [(name, math.inf) for name in local.misshapen]
    for name in local.metrics:
        error = local.error(name)
        ratio = ratio_of(error, local.floors.target.get(name))
        if ratio is not None and stands_out(ratio):
            found.append((name, ratio))
    return sorted(found, key=lambda item: -item[1])[:MOST_SUSPECTS]


@dataclasses.dataclass(frozen=True, slots=True)
class Influence:
    """What injected local errors do to the model's outputs.

    Attributes:
        alone: Value name to the largest relative error at the outputs when only its local error is injected.
        together: The same with the named values injected at once.
        explained: Share of the target's output error that the joint injection reproduces:
            ``1 - |target - injected|^2 / |target - untouched|^2`` over all floating-point outputs, at least 0.
        rounded: Whether the run injected into had its results rounded to the target's format.
    """

    alone: Mapping[str, float]
    together: float
    explained: float
    rounded: bool = False


def influence(inv: Investigation, feed: Feed, local: Local, values: Sequence[str]) -> Influence:
    """Inject the local error of each value into the reference's run, alone and all together, in one built session.

    Where that does not reproduce the failure and the target's format is narrow, the same is done to the run with
    rounded results: some errors do harm only there (a constant added to all scores is nothing to a Softmax, until the
    sums are rounded).
    """
    golden, specs = inv.golden(feed), inv.specs(feed)
    untouched = {spec.name: golden[spec.name] for spec in inv.model.outputs if spec.name in golden}
    seen = injections(inv, feed, local, values, host=inv.model, untouched=untouched)
    if is_decisive(seen.explained) or inv.precision not in ROUNDED:
        return seen
    rounded = round_results(inv.model, inv.precision, specs=specs)
    with inv.new_runner(PLAIN, rounded) as runner:
        untouched = dict(runner.run(feed))
    again = injections(inv, feed, local, values, host=rounded, untouched=untouched)
    better = is_decisive(again.explained) and again.explained > seen.explained
    return dataclasses.replace(again, rounded=True) if better else seen


def injections(
    inv: Investigation,
    feed: Feed,
    local: Local,
    values: Sequence[str],
    *,
    host: Model,
    untouched: Mapping[str, np.ndarray],
) -> Influence:
    """Inject errors into the run of one model.

    Args:
        inv: The investigation.
        feed: The feed.
        local: Local results of the values.
        values: Suspects.
        host: The model whose run is injected into.
        untouched: Its outputs when nothing is injected.
    """
    values = [value for value in values if value in local.arrays]
    outputs = [spec.name for spec in inv.model.outputs]
    specs, graph = inv.specs(feed), inv.model.graph
    untouched = in_order(graph, untouched)
    model = select_outputs(inject(host, values, specs=specs, fixed=True), outputs)
    with inv.new_runner(PLAIN, model) as runner:
        inv.progress(f"injecting the error of {len(values)} suspects into the reference")
        alone = {
            value: output_error(untouched, in_order(graph, runner.run(injected(feed, local.arrays, values, {value}))))
            for value in values
        }
        largest = max(alone.values(), default=0.0)
        named = {value for value, error in alone.items() if counts(error, largest)}
        joint = in_order(graph, runner.run(injected(feed, local.arrays, values, named))) if named else {}
    deployed = in_order(graph, inv.runner(inv.question.target, inv.model).run(feed))
    return Influence(alone, output_error(untouched, joint), explained_share(untouched, deployed, joint))


def injected(feed: Feed, arrays: TensorStore, values: Sequence[str], used: Collection[str]) -> dict[str, np.ndarray]:
    """Return the feed of an injected model with some of its overrides switched on."""
    tensors = dict(feed.tensors)
    for value in values:
        array = np.asarray(arrays[value])
        on = value in used
        tensors[INJECT_PREFIX + value] = array if on else np.zeros(array.shape, array.dtype)  # never read
        tensors[USE_PREFIX + value] = np.array(on)
    return tensors


def in_order(graph: Graph, outputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return outputs with those of every TopK that promises no order in ascending order: they compare as sets."""
    found = dict(outputs)
    for name, array in outputs.items():
        node = graph.producer(name)
        if node is not None and (node.op_type, node.domain, node.attributes.get("sorted")) == ("TopK", "", 0):
            axis = node.attributes.get("axis", -1)
            found[name] = np.sort(array, axis=axis if isinstance(axis, int) else -1)
    return found


def output_error(untouched: Mapping[str, np.ndarray], outputs: Mapping[str, np.ndarray]) -> float:
    """Return the largest relative error over outputs; 0 when there is none."""
    errors = []
    for name, array in outputs.items():
        if name in untouched and array.shape == untouched[name].shape:
            errors.append(error_of(measure(untouched[name], array)))
        else:
            errors.append(math.inf)
    return max(errors, default=0.0)


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
        if name not in untouched or name not in joint or joint[name].shape != target.shape:
            continue
        reference, wrong, made = (np.asarray(x, np.float64) for x in (untouched[name], target, joint[name]))
        broken = ~np.isfinite(wrong) & np.isfinite(reference)
        if broken.any():
            return float((~np.isfinite(made) & broken).sum() / broken.sum())
        scale = float(np.sqrt(np.mean(reference**2))) or 1.0
        total += float(np.sum(((wrong - reference) / scale) ** 2))
        rest += float(np.sum((np.nan_to_num(wrong - made, posinf=0, neginf=0) / scale) ** 2))
    return max(0.0, 1.0 - rest / total) if total > 0.0 else 0.0
