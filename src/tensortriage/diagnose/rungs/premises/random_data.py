"""Do made-up data fail where real data pass? Then the inputs are to blame, not the engine.

Random numbers drive a model where it was never meant to work: sums that cancel, logits without a winner, masks that
hide everything. A user who meets the failure on such data alone should know that, and a user whose real data pass
should know that a test on random data would not.

Inputs of one value everywhere are no real data: where made-up ones fail, or cannot run, nothing was shown.
"""

import dataclasses

from tensortriage.compare.judgement.thresholds import MATCH_FACTOR
from tensortriage.compare.judgement.within import is_minor
from tensortriage.compare.reference_checks import has_nan
from tensortriage.diagnose.measurements.evidence import Evidence
from tensortriage.diagnose.measurements.judging import judge_of
from tensortriage.diagnose.measurements.outputs import FeedResult, Unsound, deployed, judge
from tensortriage.diagnose.measurements.soundness import WORDS
from tensortriage.diagnose.rungs.number_format.predicted import beyond_format
from tensortriage.diagnose.rungs.quantization.left_out import pairs_left_out
from tensortriage.diagnose.rungs.rung import rung
from tensortriage.diagnose.state.confidence import OBSERVED, passing_real_data
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, VerdictKind
from tensortriage.engines.capabilities import Calibrates
from tensortriage.engines.registry import resolve
from tensortriage.envelope.costs import of_rewrite, of_ties
from tensortriage.envelope.explanations import CORRECTLY_ROUNDED, PREDICTED, Explanation
from tensortriage.envelope.floors import floors_of
from tensortriage.envelope.judge import only
from tensortriage.envelope.reference import outside_envelope
from tensortriage.errors import EngineError, TriageError
from tensortriage.inputs.feed import Feed
from tensortriage.inputs.oddities import constant_inputs
from tensortriage.inputs.synthetic.random import random_feeds
from tensortriage.model.quantization.qdq import quantizers
from tensortriage.runs.outcome import Outcome
from tensortriage.runs.questions.suggested_commands import command_without_inputs
from tensortriage.values.text import error_size

QUESTION = "is the target right on made-up data as well?"
REFERENCE = "is the reference right on made-up data?"


@rung(
    QUESTION,
    reads=("results",),
    cost="a run of both, an evaluation",
    ends=(VerdictKind.INPUT_SENSITIVE, VerdictKind.INCONCLUSIVE),
)
def random_data(inv: Investigation, evidence: Evidence) -> Conclusion | None:
    """Real data pass: do random data of the same shapes fail?"""
    if inv.question.inputs_word != "real" or beyond_format(inv, evidence.worst_feed):
        return None
    how = _failure(inv, evidence) if inv.question.random_too else None
    if (constant := constant_inputs(inv.question.feeds)) and how != "":
        return unproven(inv, constant, how)
    return sensitive(inv, how) if how else None


def _failure(inv: Investigation, evidence: Evidence) -> str | None:
    """Return how made-up data fail; empty where they do not, None where they could not be run."""
    target = inv.question.target
    calibrated = isinstance(engine := resolve(target).engine, Calibrates) and engine.calibrates(target.options)
    if calibrated and not quantizers(inv.model.graph):
        inv.record.answered(QUESTION, "skipped: the ranges of its integers are those of the real data")
        return None
    try:
        feed = made_up(inv, evidence.feed)
        golden = inv.golden.outputs(feed)
    except TriageError as problem:
        inv.record.answered(QUESTION, f"unknown: {problem.message}")
        return None
    if any(has_nan(golden[name]) for name in golden.names()):
        inv.record.answered(QUESTION, "unknown: the reference itself gives NaN on them")
        return None
    try:
        result = judged(inv, evidence, feed)
        if outside := wrong_reference(inv, result):
            exact = inv.about(dataclasses.replace(inv.question, reference=CORRECTLY_ROUNDED))
            inv, result = exact, judged(exact, evidence, feed)
            inv.record.answered(REFERENCE, f"no: {outside}; float64 replaces it", feed=feed.name)
    except (EngineError, Unsound) as failure:
        words = in_words(failure)
        inv.lab.drop(inv.question.target, inv.model)
        inv.record.answered(QUESTION, f"no: {inv.question.target} {words} on them", feed=feed.name)
        return f"{inv.question.target} {words}"
    if not beyond_format(inv, result):
        format_ = inv.precision if inv.precision in PREDICTED and not result.passes else None
        limit = f"the cost of {format_.value}" if format_ else "the difference between healthy engines"
        limit = limit if inv.question.tolerance is None else "the tolerance given"
        inv.record.answered(QUESTION, f"yes: within {limit}", feed=feed.name, relative_error=dict(result.errors))
        return ""
    name, error, ratio = result.worst_output()
    if inv.question.tolerance is None and (rows := excused(inv, result)):
        words = " and ".join(each.words for each in rows)
        inv.record.answered(QUESTION, f"yes: {words} explains their error, {error_size(error)}", feed=feed.name)
        return ""
    left_out = pairs_left_out(inv, feed, result)
    why = f"; {left_out.sentence}" if left_out else ""
    inv.record.answered(
        QUESTION,
        f"no: output '{name}' is off by {error_size(error)} on them{why}",
        feed=feed.name,
        output=name,
        relative_error=error,
        floor_ratio=ratio,
        limit=f"{MATCH_FACTOR:g}x the fp32 noise floor",
        **(dataclasses.asdict(left_out) if left_out else {}),
    )
    explained = f"{why}: without them its output is right, error {error_size(left_out.error)}" if left_out else ""
    return f"output '{name}' is off by {error_size(error)}{explained}"


def wrong_reference(inv: Investigation, result: FeedResult) -> str:
    """Return the reference's own error on a failing feed, in words; empty if it is right."""
    if inv.question.tolerance is not None or not beyond_format(inv, result):
        return ""
    for dispute in outside_envelope(result.floors, list(result.metrics)).values():
        if not is_minor(dispute.error, result.errors[dispute.value]):
            return f"output '{dispute.value}' of it is off by {error_size(dispute.error)} from what the model computes"
    return ""


def made_up(inv: Investigation, like: Feed) -> Feed:
    """Return a random feed with the shapes of a real one.

    Raises:
        TriageError: When the numbers of an input cannot be made up.
    """
    shapes = {name: tuple(array.shape) for name, array in like.tensors.items()}
    feed = next(random_feeds(inv.model, shapes=shapes))
    return dataclasses.replace(feed, name=f"made up like {like.name}")


def judged(inv: Investigation, evidence: Evidence, feed: Feed) -> FeedResult:
    """Return the outputs on a feed, judged by floors of that feed where those of the real ones do not excuse them."""
    figures = deployed(inv, feed)
    result = judge(inv, feed, figures, evidence.worst_feed.floors)
    if inv.question.tolerance is not None or not beyond_format(inv, result):
        return result
    outputs = [spec.name for spec in inv.model.outputs if spec.name in inv.question.values]
    setting = inv.setting(feed)
    stored = setting.of_reference(inv.golden.outputs(feed), outputs)  # those that the target was compared with
    floors = floors_of(setting, outputs, judged=stored, what="outputs on random data")
    return judge(inv, feed, figures, floors)


def excused(inv: Investigation, result: FeedResult) -> list[Explanation]:
    """Return the freedoms of hardware, integer arithmetic and ties that explain the outputs on a feed.

    No op is examined here, so the cost of an engine's accumulators or shortened operands on these data is unknown: any
    freedom counts.
    """
    judge = judge_of(inv, result)
    left = judge.standing_out
    rows = (*judge.freedoms(None), *judge.of_the_model(of_rewrite), *judge.of_the_model(of_ties))
    found = judge.take(only(*((each,) for each in rows)), left).limits
    names = {name for limit in found.values() for name in limit.by}
    return [each for each in rows if each.name in names] if len(found) == len(left) else []


def sensitive(inv: Investigation, how: str) -> Conclusion:
    """Return the verdict: only random data fail."""
    feeds = len(inv.question.feeds)
    return Conclusion(
        VerdictKind.INPUT_SENSITIVE,
        passing_real_data(feeds),
        f"{inv.question.target} passes on the real data ({feeds} feed{'s' * (feeds > 1)}) and fails on random data "
        f"only: {how}",
        next=[command_without_inputs(inv.question, "diagnose", "--target", str(inv.question.target))],
    )


def unproven(inv: Investigation, constant: str, how: str | None) -> Conclusion:
    """Return the verdict: the target passes on inputs that can show nothing, and not on made-up ones."""
    on_others = "no others were tried" if how is None else f"on made-up data {how}"
    return Conclusion(
        VerdictKind.INCONCLUSIVE,
        OBSERVED,
        f"{inv.question.target} passes on inputs that prove little ({constant}); {on_others}; give real data",
        next=[command_without_inputs(inv.question, "diagnose", "--target", str(inv.question.target))],
    )


def in_words(failure: EngineError | Unsound) -> str:
    """Return the reason why a target gives no comparable answer, in words."""
    if isinstance(failure, EngineError):
        return WORDS[Outcome.of(failure).kind]
    return f"gives outputs that cannot be compared ({failure})"
