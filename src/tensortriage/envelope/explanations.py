"""What an explanation is: one way in which a healthy engine may differ from its reference, as data.

An explanation excuses an error by what it costs and no more. Its row in `tensortriage.envelope.registry` says which
function finds the cost, which limit a cost gives, what else must hold, which hardware does it in which formats, and how
usual that is. `tensortriage.envelope.judge` walks the rows; nothing anywhere asks which one it has before it.
"""

import dataclasses
import enum
from collections.abc import Callable, Collection, Mapping

from tensortriage.compare.judgement.relative_error import ErrorFigures, say_gap
from tensortriage.compare.judgement.thresholds import MATCH_FACTOR
from tensortriage.engines.spec import EngineSpec, Hardware
from tensortriage.envelope.limits import Limit, of_prediction
from tensortriage.model.model import Model
from tensortriage.values.block_format import BLOCK_FORMATS
from tensortriage.values.dtype import Precision

ROUNDED = (Precision.FP16, Precision.BF16, Precision.FP8E4M3, Precision.FP8E5M2, Precision.INT8)
"""Formats whose rounding can be emulated result by result."""

PREDICTED = (*ROUNDED, Precision.TF32, *BLOCK_FORMATS)
"""Formats whose error can be predicted; TF32 and formats of blocks shorten operands of products, not results."""

Cost = Callable[..., Mapping[str, float]]
"""Finds what explanations cost values, as relative errors by name: a function of `tensortriage.envelope.costs`."""

Allows = Callable[[float, ErrorFigures], float]
"""Returns the largest error of a value that a cost explains; of its figures none counts that the target made."""


class Usual(enum.Enum):
    """How usual it is among engines that may do it."""

    EXPECTED = "all that compute in the format are taken to do it"
    SELDOM = "in some ops, and in which is not known: it is added where what is expected does not suffice"
    WHERE_IT_FAILS = "asked about only at ops that are wrong otherwise: it is dear to evaluate, or would allow much"


@dataclasses.dataclass(frozen=True, slots=True)
class Needs:
    """What has to hold of the target beside its outputs for an explanation to count.

    Attributes:
        inside: Whether every value that its own run shows inside must be within the explanation's limit as well.
        finite: Whether none of these may hold a NaN or Inf of the target's own: a quantizer makes a number of it again.
        taken: Whether it must be taken at most of the values where that would show.
        alone: How many times its own limit an op that is run alone may be off; None where ops are not asked.
        makes_it: Whether only those ops are asked about so that may make the error.
        unproven: Whether it counts too where the ops cannot be run alone.
    """

    inside: bool = False
    finite: bool = False
    taken: bool = False
    alone: float | None = None
    makes_it: bool = False
    unproven: bool = False


_ALWAYS = dict.fromkeys(Precision, Usual.EXPECTED)
_ANYONE = frozenset({Hardware.CPU, Hardware.LIGHT, Hardware.GPU, Hardware.NPU})


@dataclasses.dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Explanation:
    """One way in which a healthy engine may differ from its reference.

    Attributes:
        name: Short name, for files.
        words: What it is, after the name of an operator and a colon: ``sums kept in fp16, usual on GPUs``.
        source: Where its size comes from.
        cost: Finds what it costs.
        allows: Returns the limit that a cost gives.
        needs: What else has to hold.
        options: Of the engine ``float64``, on top of those of the target's format; where it is evaluated.
        rewrite: Returns the model that shows its cost; None for a model that has none.
        draws: How often inputs are moved.
        applies: Whether it can be of a model.
        avoided: How to avoid it, for people; empty when there is no general way.
        hardware: Classes of hardware that may do it; `Hardware.ANY` always may.
        engines: Names of those of these classes that do it, where not all do; empty for all.
        formats: Formats of the target in which it is done, and how usual that is.
        operators: ONNX operators it concerns; empty for those whose results it changes.
        additive: Whether no op does it together with others: what it costs is evaluated by itself, and added to theirs.
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
        """Say whether hardware of a class may do it, or an engine of it whose name is known; an unknown class may."""
        mine = not engine or not self.engines or engine in self.engines
        return hardware is Hardware.ANY or (hardware in self.hardware and mine)

    def concerns(self, op_types: Collection[str]) -> bool:
        """Say whether one of some operators may do it."""
        return not self.operators or not self.operators.isdisjoint(op_types)

    def is_expected_of_some(self, precision: Precision) -> bool:
        """Say whether all engines of some class of hardware are taken to do it in a format."""
        return any(each.has_habits for each in self.hardware) and self.formats.get(precision) is Usual.EXPECTED

    def evaluation(self, base: Mapping[str, str] = {}) -> EngineSpec:
        """Return the evaluation of a model under its options, on top of others."""
        return evaluation({**base, **self.options})


Together = tuple[Explanation, ...]
"""Explanations that an engine takes all at once."""


@dataclasses.dataclass(frozen=True, slots=True)
class Held:
    """Errors held against what explanations predict.

    Attributes:
        explanations: These.
        predicted: Relative error that they cost, by value.
        gaps: By how many dB outputs that stand out exceed it.
        limits: The largest error of each that they allow.
        beyond: Outputs that are farther off than predicted; what is predicted may leave nothing of an output.
        unmet: What else would have to hold and does not, in words; empty where all of it does.
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
        """Whether nothing is beyond."""
        return bool(self.gaps) and not self.beyond and not self.unmet

    @property
    def worst(self) -> str:
        """The output that exceeds what is predicted most."""
        return max(self.beyond or self.gaps, key=lambda name: self.gaps[name])

    @property
    def gap(self) -> str:
        """By how much it does, in words."""
        return say_gap(self.gaps[self.worst])

    @property
    def why_not(self) -> str:
        """What is beyond or unmet, in words; empty where nothing is."""
        return f"output '{self.worst}' is {self.gap} against what that predicts" if self.beyond else self.unmet


@dataclasses.dataclass(frozen=True, slots=True)
class Taken:
    """What came of a stage of the walk.

    Attributes:
        tried: Sets that were evaluated, the last one that decides.
        limits: The limits of outputs that are explained, each by the first set that does.
        problem: Why a set could not be evaluated; empty where all could.
    """

    tried: list[Held]
    limits: dict[str, Limit]
    problem: str = ""


def evaluation(options: Mapping[str, str]) -> EngineSpec:
    """Return the evaluation of the model under an arithmetic; its results are rounded to their types."""
    return EngineSpec("float64", {"rounding": "results", **options})


CORRECTLY_ROUNDED = evaluation({})
"""The model as its types say, every result correctly rounded: what all other evaluations are compared with."""

AMPLIFIED_FP32 = evaluation({"accumulator": "fp32", "functions": "cpu", "amplify": f"{MATCH_FACTOR:g}"})
"""A healthy fp32 evaluation whose every operator errs `MATCH_FACTOR` times as much."""

FOLDED = evaluation({"rounding": "none", "norms": "folded"})
"""Nothing rounded between operators, and weights as engines keep them that fold BatchNormalizations."""
