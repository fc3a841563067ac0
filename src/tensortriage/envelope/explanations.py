"""The definition of an explanation: one way in which a healthy engine may differ from its reference, as data.

An explanation excuses an error by its cost and no more. Its row in `tensortriage.envelope.registry` names the function
for the cost, the limit for a cost, further conditions, the hardware and formats in which engines take it, and how
common that is. `tensortriage.envelope.judge` walks the rows; no code depends on which row it has.
"""

import dataclasses
import enum
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from tensortriage.compare.judgement.relative_error import ErrorFigures, say_gap
from tensortriage.compare.judgement.thresholds import MATCH_FACTOR
from tensortriage.compare.metrics.tensor_metrics import Metrics
from tensortriage.engines.spec import EngineSpec, Hardware
from tensortriage.envelope.limits import Limit, of_prediction
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.model import Model
from tensortriage.values.block_format import BLOCK_FORMATS
from tensortriage.values.dtype import Precision

ROUNDED = (Precision.FP16, Precision.BF16, Precision.FP8E4M3, Precision.FP8E5M2, Precision.INT8)
"""Formats whose rounding can be emulated result by result."""

PREDICTED = (*ROUNDED, Precision.TF32, *BLOCK_FORMATS)
"""Formats whose error can be predicted; TF32 and formats of blocks shorten operands of products, not results."""

Cost = Callable[..., Mapping[str, float]]
"""Finds the cost of explanations, as relative errors by name: a function of `tensortriage.envelope.costs`."""

Allows = Callable[[float, ErrorFigures], float]
"""Returns the largest error of a value that a cost explains; of its figures none counts that the target made."""


class Usual(enum.Enum):
    """How common a freedom is among the engines that may take it."""

    EXPECTED = "all engines that compute in the format are assumed to do it"
    SELDOM = "in unknown ops: added where the expected freedoms do not suffice"
    WHERE_IT_FAILS = "tried only at ops that are otherwise wrong: it is expensive to evaluate, or would allow much"


@frozen_dataclass
class Needs:
    """Conditions on the target, apart from its outputs, under which an explanation counts.

    Attributes:
        inside: Whether every inner value that its own run shows must be within the explanation's limit as well.
        finite: Whether inner values must be free of a NaN or Inf of the target's own: quantizers turn it into a number.
        taken: Whether the target must take it at most of the values where that would show.
        alone: Allowed error of an op run alone, in multiples of its own limit; None where ops are not run alone.
        makes_it: Whether only ops that may make the error are run alone.
        unproven: Whether it also counts where the ops cannot be run alone.
    """

    inside: bool = False
    finite: bool = False
    taken: bool = False
    alone: float | None = None
    makes_it: bool = False
    unproven: bool = False


_ALWAYS = dict.fromkeys(Precision, Usual.EXPECTED)
_ANYONE = frozenset({Hardware.CPU, Hardware.LIGHT, Hardware.GPU, Hardware.NPU})


@frozen_dataclass(eq=False, kw_only=True)
class Explanation:
    """One way in which a healthy engine may differ from its reference.

    Attributes:
        name: Short name, for files.
        words: The explanation, after the name of an operator and a colon: ``sums kept in fp16, usual on GPUs``.
        source: Source of its size.
        cost: Returns the cost.
        allows: Returns the limit that a cost gives.
        needs: Further conditions.
        options: Options of the engine ``float64``, on top of those of the target's format; where it is evaluated.
        rewrite: Returns the model that shows its cost; None where it costs nothing.
        draws: Number of evaluations on moved inputs.
        applies: Returns whether it concerns a model.
        avoided: How to avoid it, for people; empty when there is no general way.
        hardware: Classes of hardware that may do it; `Hardware.ANY` always may.
        engines: Engines of these classes that do it; empty for all.
        formats: Formats of the target in which engines take it, and how common that is.
        operators: ONNX operators it concerns; empty for those whose results it changes.
        additive: Whether no op combines it with others: its cost is evaluated separately, and added to theirs.
    """

    name: str
    words: str
    source: str
    cost: Cost
    allows: Allows = of_prediction
    needs: Needs = Needs()
    options: Mapping[str, str] = dataclasses.field(default_factory=dict)
    rewrite: Callable[[Model], Model | None] = lambda model: None
    draws: int = 0
    applies: Callable[[Model], bool] = lambda model: True
    avoided: str = ""
    hardware: frozenset[Hardware] = _ANYONE
    engines: frozenset[str] = frozenset()
    formats: Mapping[Precision, Usual] = dataclasses.field(default_factory=lambda: _ALWAYS)
    operators: frozenset[str] = frozenset()
    additive: bool = False

    def is_of(self, hardware: Hardware, engine: str = "") -> bool:
        """Return whether hardware of a class may do it, and the named engine of it; an unknown class may."""
        mine = not engine or not self.engines or engine in self.engines
        return hardware is Hardware.ANY or (hardware in self.hardware and mine)

    def concerns(self, op_types: Collection[str]) -> bool:
        """Return whether one of the given operators may have it."""
        return not self.operators or not self.operators.isdisjoint(op_types)

    def is_expected_of_some(self, precision: Precision) -> bool:
        """Return whether all engines of a class of hardware are assumed to do it in a format."""
        return any(each.has_habits for each in self.hardware) and self.formats.get(precision) is Usual.EXPECTED

    def evaluation(self, base: Mapping[str, str] = {}) -> EngineSpec:
        """Return the evaluation of a model under its options, on top of others."""
        return evaluation({**base, **self.options})


Together = tuple[Explanation, ...]
"""Explanations that an engine takes all at once."""


@frozen_dataclass
class Held:
    """Errors compared with the predictions of explanations.

    Attributes:
        predicted: Relative error that they cost, by value.
        gaps: Excess over the prediction in dB, of outputs that stand out.
        limits: Largest allowed error of each of these outputs.
        beyond: Outputs with larger errors than predicted.
        unmet: The condition that is not met, in words; empty where all are.
    """

    explanations: Together
    predicted: Mapping[str, float]
    gaps: Mapping[str, float]
    limits: Mapping[str, Limit]
    beyond: list[str]
    unmet: str = ""

    @property
    def explained(self) -> dict[str, Limit]:
        """The limits of the outputs that are explained."""
        return {} if self.unmet else {name: self.limits[name] for name in self.gaps if name not in self.beyond}

    @property
    def explains(self) -> bool:
        """Whether every output is within its prediction and every condition is met."""
        return bool(self.gaps) and not self.beyond and not self.unmet

    @property
    def worst(self) -> str:
        """The output that exceeds its prediction most."""
        return max(self.beyond or self.gaps, key=lambda name: self.gaps[name])

    @property
    def gap(self) -> str:
        """Excess of the worst output over its prediction, in words."""
        return say_gap(self.gaps[self.worst])

    @property
    def why_not(self) -> str:
        """The exceeded limit or unmet condition, in words; empty where there is none."""
        return f"output '{self.worst}' is {self.gap} against that prediction" if self.beyond else self.unmet


@frozen_dataclass
class Taken:
    """The result of a stage of the walk.

    Attributes:
        tried: Sets that were evaluated; the last one decides.
        limits: Limits of explained outputs, each by the first set that explains it.
        problem: The failure to evaluate a set; empty where all were evaluated.
    """

    tried: list[Held]
    limits: dict[str, Limit]
    problem: str = ""


def evaluation(options: Mapping[str, str]) -> EngineSpec:
    """Return the evaluation of the model under an arithmetic; its results are rounded to their types."""
    return EngineSpec("float64", {"rounding": "results", **options})


CORRECTLY_ROUNDED = evaluation({})
"""The model as its types prescribe, every result correctly rounded: the centre of all comparisons."""

UNROUNDED = EngineSpec("float64", {"quantizers": "unrounded"})
"""Quantizers cut off and do not round."""
SIGNED = EngineSpec("float64", {"quantizers": "signed"})
"""Quantizers cut off at 0 alone, where Relus are, and at the whole number at which a Relu6 ends."""
UNBOUNDED = EngineSpec("float64", {"quantizers": "unbounded"})
"""Quantizers pass everything on."""
FORMS = (UNROUNDED, SIGNED, UNBOUNDED)
"""Unrounded forms of a file; the first one where several are as near."""

AMPLIFIED_FP32 = evaluation({"accumulator": "fp32", "functions": "cpu", "amplify": f"{MATCH_FACTOR:g}"})
"""A healthy fp32 evaluation, whose every operator errs `MATCH_FACTOR` times as much."""

FOLDED = evaluation({"rounding": "none", "norms": "folded"})
"""Nothing rounded between operators, and weights as engines keep them that fold BatchNormalizations."""


# -- what may be asked of a target beside its outputs ----------------------------------------------------------------


class Alone(Protocol):
    """Ops that were run alone on golden operands."""

    @property
    def over(self) -> Mapping[str, float]:
        """Error over its limit, by value."""

    @property
    def chosen(self) -> Mapping[str, Explanation]:
        """Freedoms that account for the errors of values, where one does."""

    @property
    def harmless(self) -> Collection[str]:
        """Values of ops that are known not to make the error, though they are beyond their limits."""


@frozen_dataclass
class Fused:
    """Functions that a target fuses with the nodes of their operands, run on golden operands.

    Attributes:
        chosen: Freedoms that explain the errors of such pieces, by value, where no op of them is wrong alone.
        wrong: Whether one is further off than any accounts for.
        certain: Whether one is further off than a healthy kernel that also rounds inside.
    """

    chosen: Mapping[str, Explanation]
    wrong: bool
    certain: bool


class SeenTarget(Protocol):
    """Observations of a target other than its outputs, each made when a row needs it."""

    def inside(self) -> Mapping[str, Metrics]:
        """Return the figures of values in its own run; empty where it shows none, or showing them is another run."""

    def alone(self, *, asked: bool = True) -> Alone | None:
        """Return its ops run one by one; None where it cannot run them, or if they were not run and not ``asked``."""

    def are_harmless(self, values: Sequence[str]) -> bool:
        """Return whether the local errors of some ops, injected into the reference's run, do not make the error."""

    def fused(self, *, windows: bool = False) -> Fused:
        """Return the measurements of functions fused with the nodes of their operands.

        Args:
            windows: Whether other regions, and windows of a few ops, are tested as well where these show nothing.
        """
