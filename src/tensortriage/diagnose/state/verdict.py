"""The result of a diagnosis: one verdict of a closed set, the culprits, and the path of evidence to it.

Unsure is a verdict of its own (`inconclusive`), never a guess. The dataclasses are the content of ``verdict.json``.
"""

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from typing import Any

from tensortriage.compare.task_metric import TaskAccuracy
from tensortriage.diagnose.state.confidence import Confidence
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.model.provenance.origin import UNKNOWN, NodeOrigin
from tensortriage.values.result import Result, record
from tensortriage.values.text import error_size, percent

VERDICT_FORMAT = "tensortriage.verdict/1"


class VerdictKind(enum.Enum):
    """The closed set of verdicts; the value is the word in files and messages."""

    MATCH = "match"
    INPUT_SENSITIVE = "input-sensitive"
    COMPARISON_UNSOUND = "comparison-unsound"
    MODEL_CHANGED = "model-changed"
    NON_FINITE = "non-finite"
    RANGE_OVERFLOW = "range-overflow"
    ROUNDING = "rounding"
    LOCAL_FAULT = "local-fault"
    FUSION_FAULT = "fusion-fault"
    LAYOUT = "layout"
    QUANTIZATION = "quantization"
    INTERMITTENT = "intermittent"
    NONDETERMINISTIC_RUN = "nondeterministic-run"
    BUILD_FAILED = "build-failed"
    ENGINE_CRASH = "engine-crash"
    ENGINE_HANG = "engine-hang"
    INCONCLUSIVE = "inconclusive"

    @property
    def exit_code(self) -> int:
        """Exit code of ``triage diagnose``: 0 fine or explained by the format, 4 inconclusive, 1 a problem."""
        if self in (VerdictKind.MATCH, VerdictKind.ROUNDING, VerdictKind.INPUT_SENSITIVE):
            return 0
        return 4 if self is VerdictKind.INCONCLUSIVE else 1


@frozen_dataclass
class Culprit:
    """One op held responsible, most influential first in a verdict.

    Attributes:
        node: ONNX node name.
        op_type: ONNX operator.
        value: The output value of the node in which the error originates.
        local_error: Relative RMS error of the op run on the target with golden inputs; None when not measured.
        influence: Relative RMS error at the model's outputs when only this local error is injected into the reference.
        floor_ratio: ``local_error`` over the noise floor of this value; None when not measured.
        reason: One sentence: the op's fault, with magnitudes.
        anatomy: Peculiarities of its result's error, sentences, the strongest first.
        instances: Nodes at the same place of a repeated block that are wrong as well, itself included; empty outside
            such blocks, or when not looked at.
        alike: How many nodes there are at that place; 0 outside such blocks.
        change: The kind of edit in a changed model, a word of `tensortriage.model.similarity.changes.ChangeKind`; empty
            for other verdicts.
        origin: Module, class and line of the source network from which the node was made, as far as the file holds
            them.
        repeated_module: Path of the module in all ``instances``, ``*`` for the number of the copy; empty without them.
        effect: Its error as a predicate: ``returns 1.03 times the right value``; empty where none is known.
        shown_at: The value of the user's model at which it shows first, where it is an op of another file.
    """

    node: str
    op_type: str
    value: str
    local_error: float | None = None
    influence: float | None = None
    floor_ratio: float | None = None
    reason: str = ""
    anatomy: tuple[str, ...] = ()
    instances: tuple[str, ...] = ()
    alike: int = 0
    change: str = ""
    origin: NodeOrigin = UNKNOWN
    repeated_module: str = ""
    effect: str = ""
    shown_at: str = ""


@frozen_dataclass
class Step:
    """One question of the ladder and the answer that was found.

    Attributes:
        question: E.g. ``does the output differ by more than fp32 engines do?``.
        answer: One short sentence.
        evidence: Figures and names behind the answer, JSON-able.
        seconds: Wall time since the step before, or since the diagnosis began.
        checks: Engine runs since then.
    """

    question: str
    answer: str
    evidence: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    seconds: float = 0.0
    checks: int = 0


@frozen_dataclass
class ShapeRow:
    """The result at one shape of a sweep.

    Attributes:
        shape: Sizes of the swept dimensions, e.g. ``batch=8, seq=16``.
        outcome: ``match``, ``rounding`` (explained by the format), ``wrong``, the word of the verdict on a target that
            fails, ``reference-failed``, or ``not-asked``.
        output: The worst output; empty when none was compared.
        error: Its relative RMS error.
        floor_ratio: ``error`` over the fp32 noise floor.
        message: Why there is no answer; empty when there is.
    """

    shape: str
    outcome: str
    output: str = ""
    error: float | None = None
    floor_ratio: float | None = None
    message: str = ""

    @property
    def fails(self) -> bool:
        """Whether the target is wrong, or gives no answer, at this shape."""
        return self.outcome not in ("match", "rounding", "reference-failed", "not-asked")


def rows_in_words(rows: Sequence[ShapeRow]) -> str:
    """Return the result of a sweep in one sentence."""
    bad = [row for row in rows if row.fails]
    left = sum(row.outcome in ("not-asked", "reference-failed") for row in rows)
    rest = f"; {left} could not be tried" if left else ""
    if not bad:
        return f"at none of {len(rows) - left}{rest}"
    failing = [f"{row.shape} ({error_size(row.error) if row.outcome == 'wrong' else row.outcome})" for row in bad[:8]]
    more = f" and {len(bad) - 8} more" if len(bad) > 8 else ""
    passing = [row.shape for row in rows if row.outcome in ("match", "rounding")]
    good = f"; it passes at {', '.join(passing[:8])}" if passing else "; it passes at none"
    return f"at {', '.join(failing)}{more}{good}{rest}"


@frozen_dataclass
class Remedy:
    """A change that was tried on the target and makes its outputs right, or better.

    Attributes:
        kind: ``sanitize``, ``fixed-sizes``, ``branches``, ``keep-fp32``, ``breakers``, ``engine-option``, ``calibrate``
            or ``seven-bit-weights``.
        summary: One sentence.
        nodes: Nodes that are kept in fp32.
        target: Spec of the engine that tried it.
        error_before: Largest relative RMS error of an output without it.
        error_after: The same with it, over all feeds that were compared.
        file: The changed model, where one was written.
        metric: Mean of the user's metric with it; None without one.
        right: Whether the remaining error is acceptable: by the metric where there is one, else by limits, and in 8
            bits by a tenth of the signal.
        note: How to run the file, or why none is written.
    """

    kind: str
    summary: str
    nodes: tuple[str, ...] = ()
    target: str = ""
    error_before: float | None = None
    error_after: float | None = None
    file: str = ""
    metric: float | None = None
    right: bool = True
    note: str = ""


@frozen_dataclass
class ReproFacts:
    """The smallest case of a diagnosis: the culprit alone, with its inputs and expected outputs.

    Attributes:
        folder: Its path within the case.
        nodes: Names of its nodes.
        failure: How it fails.
        confirmed: Whether it failed the same way in a fresh process.
        module: The PyTorch module of the nodes, in the same folder, with class and line; empty for none.
        anew: Whether the module is wrong when it is exported again by the PyTorch here; None when that is not known.
        otherwise: Behaviour of the fresh process where it differs; empty where confirmed.
    """

    folder: str
    nodes: tuple[str, ...]
    failure: str
    confirmed: bool
    module: str = ""
    anew: bool | None = None
    otherwise: str = ""


@frozen_dataclass
class Cost:
    """The cost of a diagnosis.

    Attributes:
        seconds: Wall time.
        builds: Models compiled by an engine.
        checks: Runs of an engine.
        builds_by_engine: The builds by the names of engines.
        known: Answers that an earlier command had left in the case.
    """

    seconds: float = 0.0
    builds: int = 0
    checks: int = 0
    builds_by_engine: Mapping[str, int] = dataclasses.field(default_factory=dict)
    known: int = 0


@frozen_dataclass
class Conclusion:
    """The conclusion that ends the ladder; the verdict is written from it and from later findings.

    Attributes:
        kind: Kind of the verdict.
        confidence: How sure it is, as of `Verdict` or by the origin of the inputs.
        summary: One sentence for people.
        culprits: Most influential first; empty when there is none to name.
        next: Commands to run next, the most useful first.
        allowed_by: As of `Verdict`.
        lost: As of `Verdict`.
        breakers: As of `Verdict`.
    """

    kind: VerdictKind
    confidence: Confidence | float
    summary: str
    culprits: Sequence[Culprit] = ()
    next: Sequence[str] = ()
    allowed_by: tuple[str, ...] = ()
    lost: bool = False
    breakers: tuple[str, ...] = ()

    def confidence_on(self, inputs: str) -> float:
        """Return 0..1 for ``real`` or ``random`` inputs."""
        sure = self.confidence.on(inputs) if isinstance(self.confidence, Confidence) else self.confidence
        return round(min(max(sure, 0.0), 1.0), 3)


@frozen_dataclass(repr=False)
class Verdict(Result):
    """The result of ``triage diagnose``; the content of ``verdict.json``.

    Attributes:
        verdict: Word of a `VerdictKind`.
        confidence: 0..1: how sure the evidence makes us that ``verdict`` (and the first culprit, where there is one)
            is right.
        summary: One sentence for people.
        culprits: Most influential first; empty when there is none to name.
        inputs: ``real`` or ``random``.
        steps: The path taken through the guide.
        next: Commands to run next, the most useful first.
        cost: Time, builds, runs and checks.
        anatomy: Peculiarities of the worst output's error, sentences, the strongest first.
        shapes: The outcome at each shape of a sweep; empty without a sweep.
        breakers: Tensors that, marked as outputs, restore the target's answer on every feed; verified there.
        remedy: A change that makes the target right, tried on it; None when none is known.
        repro: A case of its own that fails like the culprit; None when none was made.
        sufficiency: Measures of whether a target that only rounds is good enough (classes, cosine, a mixed model), in
            sentences.
        accuracy: The user's metric of reference, target and remedy; None without one.
        fix: The file that ``--fix`` wrote, or why it wrote none; empty where it was not requested.
        headline: Op, module and effect in a few words; empty where no op is to blame.
        allowed_by: Names of the explanations, rows of the judge's registry, that allow the outputs' errors.
        lost: Whether half of the signal of an output or more is lost, whatever explains it.
        format: Version of this file format.
    """

    verdict: str
    confidence: float
    summary: str
    culprits: tuple[Culprit, ...] = ()
    inputs: str = "real"
    steps: tuple[Step, ...] = ()
    next: tuple[str, ...] = ()
    cost: Cost = Cost()
    anatomy: tuple[str, ...] = ()
    shapes: tuple[ShapeRow, ...] = ()
    breakers: tuple[str, ...] = ()
    remedy: Remedy | None = None
    repro: ReproFacts | None = None
    sufficiency: tuple[str, ...] = ()
    accuracy: TaskAccuracy | None = None
    fix: str = ""
    headline: str = ""
    allowed_by: tuple[str, ...] = ()
    lost: bool = False
    format: str = VERDICT_FORMAT

    @property
    def in_short(self) -> str:
        """Verdict, confidence and summary."""
        return f"{self.verdict}, {percent(self.confidence)}: {self.summary}"

    @property
    def records(self) -> Sequence[dict[str, Any]]:
        """A row for each culprit."""
        return [record(culprit) for culprit in self.culprits]

    @property
    def kind(self) -> VerdictKind:
        """The verdict as an enum member."""
        return VerdictKind(self.verdict)

    @property
    def exit_code(self) -> int:
        """Exit code of ``triage diagnose``: that of its kind, and 1 where an output is lost."""
        return 1 if self.lost else self.kind.exit_code
