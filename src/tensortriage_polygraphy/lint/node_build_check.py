"""Runs a model on an engine node by node, to find every node that the engine refuses and not only the first.

The whole model runs first; when it does, every node passes. Otherwise each node runs alone on the results of the nodes
before it, in topological order, and a node behind a failing one is skipped: nothing is known of it. A value is dropped
as soon as its last user has run.
"""

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping

import numpy as np

from tensortriage.api import EngineError, EngineSpec, Feed, Model
from tensortriage.envelope.sdk import OK, Lab, Outcome, OutcomeKind, ValueSpec
from tensortriage.model.sdk import Node, extract, inseparable_units
from tensortriage.sdk import LintFinding, ModelError, Severity, value_specs

Say = Callable[[str], None]

SLUGS: Mapping[str, str] = {
    "engine-refuses": "The engine does not build it",
    "engine-fails": "The engine builds it and fails to run it",
    "engine-crashes": "The engine's process dies of it",
    "engine-hangs": "The engine hangs",
    "engine-out-of-memory": "The engine needs more memory than there is",
    "engine-not-asked": "The engine could not be tried, because no inputs could be made up",
}
"""Rules by an engine's outcome; docs/lint.md explains each."""

_SLUG_OF = {
    OutcomeKind.BUILD_FAILED: "engine-refuses",
    OutcomeKind.RUN_FAILED: "engine-fails",
    OutcomeKind.CRASH: "engine-crashes",
    OutcomeKind.HANG: "engine-hangs",
    OutcomeKind.OUT_OF_MEMORY: "engine-out-of-memory",
}


@dataclasses.dataclass(frozen=True, slots=True)
class NodeCheck:
    """The outcome of building each node on an engine.

    Attributes:
        passing: Nodes that ran.
        failing: Nodes that did not.
        skipped: Nodes that could not be tried, because they depend on one that failed.
        findings: One per failure.
    """

    passing: tuple[str, ...]
    failing: tuple[str, ...]
    skipped: tuple[str, ...]
    findings: tuple[LintFinding, ...]


def check_nodes(
    model: Model,
    spec: EngineSpec,
    feed: Feed,
    lab: Lab,
) -> NodeCheck:
    """Run a model on an engine, and each of its nodes when that fails.

    Args:
        model: The model.
        spec: The engine and its options.
        feed: Inputs for the whole model.
        lab: The lab that asks it.

    Raises:
        EngineMissing: When the engine cannot be used here.
        UsageError: For options it does not know.
        DataError: When the feed does not fit the model.
    """
    walk = _Walk(model, spec, lab)
    lab.progress("the whole model")
    whole, _ = walk.run(model, feed.tensors)
    units = inseparable_units(model)
    if whole.ok:
        return NodeCheck(tuple(node.name for unit in units for node in unit), (), (), ())
    walk.values.update(feed.tensors)
    for number, unit in enumerate(units, 1):
        lab.progress(f"node {number} of {len(units)}: {unit[0].op_type} {unit[0].name}")
        walk.visit(unit)
    if not walk.failing:
        walk.findings.append(_whole_model(spec, whole, skipped=len(walk.skipped)))
    return NodeCheck(tuple(walk.passing), tuple(walk.failing), tuple(walk.skipped), tuple(walk.findings))


class _Walk:
    """The state of running one node after the other."""

    def __init__(self, model: Model, spec: EngineSpec, lab: Lab) -> None:
        self.passing: list[str] = []
        self.failing: list[str] = []
        self.skipped: list[str] = []
        self.findings: list[LintFinding] = []
        self.values: dict[str, np.ndarray] = {}
        self._model = model
        self._spec = spec
        self._lab = lab
        self._specs = dict(value_specs(model))
        self._pending = Counter(value for node in model.graph.nodes for value in dict.fromkeys(node.uses))

    def visit(self, unit: tuple[Node, ...]) -> None:
        """Run one node, or several that cannot be separated, on the values there are."""
        names = [node.name for node in unit]
        made = {value for node in unit for value in node.outputs}
        needed = {value for node in unit for value in node.uses} - made - self._model.graph.constants.keys()
        if needed <= self.values.keys():
            try:
                cut = extract(self._model, names, specs=self._specs)
                outcome, results = self.run(cut, {name: self.values[name] for name in (s.name for s in cut.inputs)})
                self._note(unit, outcome, results)
            except ModelError:  # nothing tells the type of what it uses
                self.skipped += names
        else:
            self.skipped += names
        self._drop(unit)

    def run(self, model: Model, tensors: Mapping[str, np.ndarray]) -> tuple[Outcome, Mapping[str, np.ndarray]]:
        """Build and run a model once."""
        try:
            with self._lab.session(self._spec, model, sequence=True) as run:
                return OK, run(tensors)
        except EngineError as error:
            return Outcome.of(error), {}

    def _note(self, unit: tuple[Node, ...], outcome: Outcome, results: Mapping[str, np.ndarray]) -> None:
        names = [node.name for node in unit]
        if outcome.ok:
            self.passing += names
            self.values.update(results)
            self._specs.update((name, ValueSpec.of(name, array)) for name, array in results.items())
            return
        self.failing += names
        slug, message = _SLUG_OF[outcome.kind], outcome.message
        cure = outcome.cure or "replace the operator, use another opset, or file it with the engine"
        first = unit[0]
        finding = LintFinding(
            slug, Severity.EXCEPTION, first.name, first.op_type, "", "", message, cure, self._spec.name
        )
        self.findings.append(finding)

    def _drop(self, unit: tuple[Node, ...]) -> None:
        for node in unit:
            for value in dict.fromkeys(node.uses):
                self._pending[value] -= 1
                if not self._pending[value]:
                    self.values.pop(value, None)


def _whole_model(spec: EngineSpec, outcome: Outcome, *, skipped: int) -> LintFinding:
    alone = "every node runs by itself" if not skipped else f"the nodes that could be tried run, {skipped} could not"
    return LintFinding(
        _SLUG_OF[outcome.kind],
        Severity.EXCEPTION,
        "",
        "",
        "",
        "",
        f"{outcome.message}; {alone}, so the fault is in how they are combined",
        f"find the smallest piece that fails: triage debug reduce MODEL --target {spec}",
        spec.name,
    )
