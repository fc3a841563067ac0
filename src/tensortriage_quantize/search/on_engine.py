"""A quantized model on its target engine, and the nodes that stay float to make it good enough.

Emulation sets the order of the nodes to try; the engine has the last word, for it optimizes the file that it loads: the
written file counts, on the engine that will run it.
"""

import contextlib
import dataclasses
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np

from tensortriage.api import Model, TriageError
from tensortriage.precision.sdk import (
    PLAIN,
    Choosable,
    EngineSetup,
    GoalSample,
    Lab,
    Precision,
    PrecisionGoal,
    Questions,
    TaskMetric,
    groups_of,
    mean_metric,
    settle,
    usable,
)
from tensortriage.sdk import EngineSpec, ModelError, value_specs
from tensortriage_quantize.calibration.calibrated_model import ModelQuantizer
from tensortriage_quantize.calibration.calibration_search import outputs_of
from tensortriage_quantize.output_errors import errors_of
from tensortriage_quantize.search.pair_emulation import of_quantizers
from tensortriage_quantize.search.quantized_candidates import QuantizedCandidates

MOST_BUILDS = 10
"""Builds after which a choice that is good enough is no longer made smaller, as in ``debug precision``."""


class NothingQuantizedError(TriageError):
    """The required accuracy leaves no node in 8 bits: there is no such model."""

    exit_code = 4


@dataclasses.dataclass(frozen=True, slots=True)
class DeployedEngine:
    """Where a file will run, as far as that can be tried here.

    Attributes:
        spec: The engine that judges.
        doubt: Why it is not the one that the file is for; empty where it is.
    """

    spec: EngineSpec
    doubt: str = ""

    @classmethod
    def of(cls, word: str) -> "DeployedEngine":
        """Return the judge of files for an engine: it, where it runs here, else ONNX Runtime without optimizations."""
        if word == "qnn":  # a provider: without its device it would be another engine
            return cls(PLAIN, _doubt(word, "it needs a Qualcomm device"))
        try:
            return cls(usable(word))
        except TriageError as error:
            return cls(PLAIN, _doubt(word, error.message))


def _doubt(word: str, why: str) -> str:
    return f"judged by {PLAIN}, not on {word}: {why}"


@dataclasses.dataclass(frozen=True, slots=True)
class WrittenModel:
    """The results of a written file on an engine.

    Attributes:
        errors: Relative RMS error of every output, the largest of all samples.
        metric: Mean of the task metric; None without one.
        within: Whether it is as good as required; None without a requirement.
    """

    errors: dict[str, float]
    metric: float | None
    within: bool | None


@dataclasses.dataclass(frozen=True, slots=True)
class Judges:
    """The judge of candidates, and the goal.

    Attributes:
        samples: Samples with the outputs of the float model.
        goal: The required accuracy; None for no requirement.
        metric: Task metric; None without one.
        lab: Runs models.
    """

    deployed: DeployedEngine
    samples: Sequence[GoalSample]
    goal: PrecisionGoal | None
    metric: TaskMetric | None
    lab: Lab

    def on(self, model: Model) -> WrittenModel:
        """Return the reading of a model on the engine."""
        outputs = outputs_of(model, [sample.feed for sample in self.samples], self.lab, self.deployed.spec)
        return self.of(outputs)

    def of(self, outputs: Sequence[dict[str, np.ndarray]]) -> WrittenModel:
        """Return the reading of outputs, one dict per sample."""
        return WrittenModel(
            errors_of([sample.outputs for sample in self.samples], outputs),
            None if self.metric is None else mean_metric(self.metric, self.samples, outputs),
            None if self.goal is None else self.goal.judge(self.samples, outputs).within,
        )

    def on_file(self, path: Path) -> WrittenModel:
        """Return the reading of a file on the engine."""
        return self.on(Model.load(path))


def fewest_kept(
    model: Model, precision: Precision, quantizer: ModelQuantizer, kept: Collection[str], judges: Judges
) -> tuple[str, ...]:
    """Return the fewest nodes that have to stay float on the engine, the most influential first.

    Args:
        model: The float model.
        precision: int8 or fp8e4m3.
        quantizer: The best one.
        kept: Nodes that stay float in any case.
        judges: Judges candidates by a goal.

    Raises:
        ModelError: When not even leaving all of them float is good enough (``quantize-goal-unreachable``).
        NothingQuantizedError: When none is left in 8 bits (``quantize-none-left``).
    """
    goal, lab = judges.goal, judges.lab
    if goal is None:
        return ()
    own = quantizer.keeping(kept)
    emulation = of_quantizers(own.quantized(float_weights=True), judges.samples, goal, lab=lab, nodes=own.choices)
    with contextlib.closing(emulation) as nodes:
        stage = Choosable(model=model, precision=precision, specs=value_specs(model), items=nodes.items)
        bench = EngineSetup(spec=judges.deployed.spec, samples=judges.samples, goal=goal, lab=lab)
        candidates = QuantizedCandidates(stage, own, bench=bench)
        if candidates.read(()).within:
            return ()
        first = nodes.fewest()
        if first is None:
            raise ModelError(
                f"even the float model does not reach {goal.words}", slug="quantize-goal-unreachable",
                cure="lower the goal",
            )  # fmt: skip
        questions = Questions(
            engine=candidates.read,
            emulated=nodes.read,
            stricter=nodes.fewest,
            items=stage.items,
            suspicion=lambda node: nodes.influences.ratio(node) if node in nodes.influences.power else 0.0,
            limited=goal.limits,
            exact=False,
            suspects=list,
            groups=lambda: groups_of(model.graph, stage.items, stage.movers, ()),
            builds_left=lambda: MOST_BUILDS - candidates.asked,
        )
        found = settle(first, questions).kept
    if len(found) == len(nodes.items):
        raise NothingQuantizedError(
            f"{goal.words} leaves none of {len(nodes.items)} nodes in {precision.value} on {judges.deployed.spec}",
            slug="quantize-none-left",
            cure="lower the goal, or keep the float model",
        )
    return found
