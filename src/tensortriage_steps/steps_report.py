"""The question and the findings of a model that is run step by step."""

import dataclasses

STEPS_FORMAT = "tensortriage.steps/1"
STEPS = 16
"""Default number of steps, unless more samples are given."""

HANDED_ON = "rows handed on"
"""Part of a state on the target's own: the rows that it received, compared with those that it returns."""


@dataclasses.dataclass(frozen=True, slots=True)
class StepValue:
    """One output of one step.

    Attributes:
        value: Name of the value.
        error: Relative RMS error; a share of unequal elements for whole numbers; inf for NaN, or another shape.
        ratio: Error over its limit; above 1 is outside.
        within: Whether it is within its limit.
        allowed: The limit; None where it is no number.
        part: Which part of it: ``new rows`` or ``old rows`` of a cache, on the target's own states ``rows handed on``,
            which are compared with the received ones; empty for the whole.
    """

    value: str
    error: float
    ratio: float
    within: bool
    allowed: float | None = None
    part: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class StepRow:
    """One step.

    Attributes:
        step: Number of the step, from 0.
        length: Positions so far, this step's included; 0 for models without tokens.
        values: Every output, or part of one, the target fed with the reference's states.
        drifted: The values with the target fed with its own states; empty where that was not run, or nothing is
            carried.
        divergence: Kullback-Leibler divergence of the next token's probabilities, in nats; None without logits.
        top_agreement: Share of the reference's likeliest tokens that are among the target's.
        margin: Lead of the reference's first token, in units of healthy deviations; up to 1 is a tie.
        tokens: The reference's next token and the target's, per row of the batch.
        tie: Whether tokens that differ are a tie.
        failure: Why the target gave no answer; empty when it did.
    """

    step: int
    length: int
    values: tuple[StepValue, ...]
    drifted: tuple[StepValue, ...] = ()
    divergence: float | None = None
    top_agreement: float | None = None
    margin: float | None = None
    tokens: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    tie: bool | None = None
    failure: str = ""

    @property
    def outside(self) -> tuple[StepValue, ...]:
        """Outputs beyond their limit, in the order of the model."""
        return tuple(value for value in self.values if not value.within)


@dataclasses.dataclass(frozen=True, slots=True)
class FreeRun:
    """Both engines generating on their own.

    Attributes:
        reference: The reference's tokens, step by step, per row of the batch.
        target: The target's.
        first: The step at which the tokens of `row` part; None when none do.
        margin: How far the reference's token is ahead of the target's there, over how far a healthy engine that runs
            freely may move the two; up to 1 is a tie. None if not known.
        tie: Whether the target's token there is as good as the reference's; None if not known.
        row: The row of the batch: the first one that parts at no tie, or if none does the first that parts.
        ahead: By how much the reference's score of its token is above that of the target's token there.
        moved: How far a healthy engine may move the two together, in units of scores; None if not known.
    """

    reference: tuple[tuple[int, ...], ...]
    target: tuple[tuple[int, ...], ...]
    first: int | None = None
    margin: float | None = None
    tie: bool | None = None
    row: int = 0
    ahead: float | None = None
    moved: float | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class StepDiagnosis:
    """The diagnosis of the first step that is wrong, on that step's feed alone.

    Attributes:
        verdict: Word of a `tensortriage.diagnose.state.verdict.VerdictKind`.
        summary: One sentence.
        node: The first culprit; empty when none was named.
        op_type: Operator of the node.
        value: The value in which the error originates.
        module: Module in the source network, if the file or the name gives it.
        feed: File with the step's feed.
        case: Directory of the diagnosis.
        body: Branch of an If that the file has the culprit in, ``optimum::if/then_branch``; empty in the main graph.
    """

    verdict: str
    summary: str
    node: str
    op_type: str
    value: str
    module: str
    feed: str
    case: str
    body: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class StepsReport:
    """Findings; the content of ``steps.json``.

    Attributes:
        model: The file.
        reference: The engine assumed to be right.
        target: The engine under suspicion.
        inputs: ``real`` or ``random``.
        carried: ``OUTPUT=INPUT``.
        verdict: ``match`` (every step within its limit, and drift that of fp32), ``drift`` (that of a narrower format,
            no more than its predicted cost), ``fault`` (one step alone is wrong), ``drift-beyond`` (every step is right
            on the reference's states, and on its own the target leaves the prediction), ``tokens`` (alone the target
            chooses a token that is no tie), or ``inconclusive`` (a step is beyond its limit, and its diagnosis finds
            nothing wrong; or the reference stops, and until then nothing is wrong).
        summary: One sentence.
        rows: One per step.
        first: The first step that is wrong; None when none is.
        value: The first output there that is.
        again: Whether that step is wrong in a new session too; true while none is.
        diagnosis: Diagnosis of that step; None when there was none.
        free: Both engines generating on their own; None when not requested.
        stopped: Why the reference gives no step after ``rows``, with the cure; empty when it gives all.
        notes: Figures that are missing, each with its reason.
        next: Commands to run next.
    """

    model: str
    reference: str
    target: str
    inputs: str
    carried: tuple[str, ...]
    verdict: str
    summary: str
    rows: tuple[StepRow, ...]
    first: int | None = None
    value: str = ""
    again: bool = True
    diagnosis: StepDiagnosis | None = None
    free: FreeRun | None = None
    stopped: str = ""
    notes: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    format: str = STEPS_FORMAT

    @property
    def exit_code(self) -> int:
        """0 when every step is right and drift is as predicted, 4 when that is not certain, else 1."""
        return {"match": 0, "drift": 0, "inconclusive": 4}.get(self.verdict, 1)
