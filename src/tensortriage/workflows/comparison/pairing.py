"""Pairs of outputs to compare, and the results of all pairs.

Outputs that cannot be paired are an error.
"""

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from tensortriage.compare.alignment.align import align, paired_by_value
from tensortriage.compare.comparison import Comparison, Row
from tensortriage.compare.judgement.judgement import Basis
from tensortriage.compare.metrics.tensor_metrics import measure_many
from tensortriage.errors import DataError, EngineError, UsageError
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.model import Model
from tensortriage.report.run_result import FeedComparison, Invalid
from tensortriage.runs.lab import FLOAT64, Lab
from tensortriage.values.spec import ValueSpec

Arrays = Mapping[str, np.ndarray]


@frozen_dataclass
class Paired:
    """The target's counterpart of each output of the reference.

    Attributes:
        outputs: The target's outputs under the names of the reference.
        renamed: Names of the reference's tensors that the target calls otherwise, recognized by their values, each with
            the target's name.
        only_target: Names that the reference lacks.
        incompatible: Name to why it cannot be compared element by element.
    """

    outputs: dict[str, np.ndarray]
    renamed: Mapping[str, str]
    only_target: tuple[str, ...]
    incompatible: Mapping[str, str]


def paired(names: tuple[str, str], reference: Arrays, target: Arrays) -> Paired:
    """Pair outputs by name, and names that are missing by value.

    Args:
        names: How reference and target are called in an error.
        reference: Outputs of the reference.
        target: Outputs of the target.

    Raises:
        DataError: When the target lacks an output (``output-missing``).
    """
    outputs, renamed = dict(target), paired_by_value(reference, target)
    if renamed:
        outputs = {renamed.get(name, name): array for name, array in target.items()}
    alignment = align(*([ValueSpec.of(name, array) for name, array in side.items()] for side in (reference, outputs)))
    if alignment.only_reference:
        lacking = ", ".join(f"'{name}'" for name in alignment.only_reference[:5])
        raise DataError(
            f"{names[1]} has no output {lacking} that {names[0]} has",
            slug="output-missing",
            cure="compare the same model, or choose common tensors with --onnx-outputs",
        )
    incompatible = {problem.name: problem.reason for problem in alignment.incompatible}
    twins = {ours: theirs for theirs, ours in renamed.items()}
    return Paired(outputs, twins, tuple(alignment.only_target), incompatible)


def check_compatible(pair: Paired, reference: Arrays, target: str, *, flatten: bool, but: Collection[str] = ()) -> None:
    """Refuse outputs that cannot be compared element by element.

    Args:
        pair: The paired outputs.
        reference: Outputs of the reference.
        target: How the target is called.
        flatten: Whether outputs of equal size and other shape are compared flattened.
        but: Outputs that are not compared element by element.

    Raises:
        DataError: With slug ``output-incompatible``.
    """
    for name, reason in pair.incompatible.items():
        if name not in but and not (flatten and reference[name].size == pair.outputs[name].size):
            raise DataError(
                f"output '{name}' of {target} cannot be compared: {reason}",
                slug="output-incompatible",
                cure="check that both run the same model on the same feed",
            )


def flat(reference: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both arrays, flattened when their shapes differ."""
    return (reference, target) if reference.shape == target.shape else (reference.ravel(), target.ravel())


@dataclasses.dataclass(slots=True)
class _Gathered:
    """The results of one target on one feed."""

    rows: list[Row] = dataclasses.field(default_factory=list)
    unmatched: dict[str, None] = dataclasses.field(default_factory=dict)
    renamed: dict[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(slots=True)
class Gathered:
    """The results of the pairs compared so far.

    Attributes:
        validate: Whether a NaN or Inf is a failure.
        invalid: Results with NaN or Inf.
        silent: Whether every tensor of the reference is empty or constant on every feed.
    """

    validate: bool = False
    invalid: list[Invalid] = dataclasses.field(default_factory=list)
    silent: bool = True
    _pairs: dict[tuple[str, str], _Gathered] = dataclasses.field(default_factory=dict)

    def add(
        self, target: str, feed: str, rows: Iterable[Row], unmatched: Iterable[str], renamed: Mapping[str, str]
    ) -> None:
        """Add the comparison of a target on a feed: all of it, or the next tensors; fields as of `Comparison`."""
        known = self._pairs.setdefault((target, feed), _Gathered())
        known.rows += rows
        known.unmatched |= dict.fromkeys(unmatched)
        known.renamed |= renamed

    def check(self, participant: str, feed: str, outputs: Arrays) -> None:
        """Look for NaN and Inf in the results of one participant."""
        if self.validate:
            for name, figure in measure_many((name, array, array) for name, array in outputs.items()):
                self.note(participant, feed, name, figure.nan_target, figure.inf_target)

    def note(self, participant: str, feed: str, output: str, nan: int, inf: int) -> None:
        """Take how many of the elements of one output are NaN and Inf."""
        if self.validate and (nan or inf):
            self.invalid.append(Invalid(participant, feed, output, nan, inf))

    @property
    def failed(self) -> bool:
        """Whether anything is beyond its limit, or invalid."""
        return bool(self.invalid) or any(not row.judgement.within for row in self.rows)

    @property
    def rows(self) -> Sequence[Row]:
        """The comparisons of all pairs."""
        return [row for pair in self._pairs.values() for row in pair.rows]

    def proves_nothing(self) -> str:
        """Return why tensors that pass prove nothing, with the cure; empty where they do."""
        judged = [row for row in self.rows if row.judgement.basis is not Basis.USER]
        if judged and self.silent:
            return (
                "every tensor is empty or constant on these data, so that agreement proves nothing; give inputs on "
                "which the model does something, or a tolerance"
            )
        if not self.noise:
            return ""
        return (
            f"these data make '{self.noise}' noise: healthy engines differ by a tenth of it or more; give real data, "
            "or a tolerance"
        )

    @property
    def noise(self) -> str:
        """The first tensor that passes because healthy engines disagree about it; empty for none."""
        judged = (row for row in self.rows if row.judgement.within and row.judgement.basis is Basis.NOISE)
        return next((row.value for row in judged), "")

    def comparisons(self, reference: str) -> tuple[FeedComparison, ...]:
        """Return all comparisons; there is none for a target and feed without comparable outputs."""
        return tuple(
            FeedComparison(feed, Comparison(reference, target, tuple(pair.rows), tuple(pair.unmatched), pair.renamed))
            for (target, feed), pair in self._pairs.items()
            if pair.rows
        )


def same(one: np.ndarray, other: np.ndarray) -> bool:
    """Return whether two arrays hold the same bits (NaNs included)."""
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


def why_unevaluated(gathered: Gathered, lab: Lab, model: Model) -> str:
    """Return why no limit can be set, where a tensor passes for lack of one; or nothing."""
    if proves_nothing := gathered.proves_nothing():
        return proves_nothing
    if not any(row.judgement.within and row.judgement.basis is Basis.SENSITIVITY for row in gathered.rows):
        return ""
    try:
        lab.plan(FLOAT64, model)
    except (EngineError, UsageError) as problem:
        return f"the model cannot be evaluated: {problem.message}"
    return "the model cannot be evaluated: its evaluation in float64 fails"
