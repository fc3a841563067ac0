"""Made-up data are never to blame: where they do not run, end in NaN, or are uninformative, others are made up.

Candidates are tried in order on the reference, each a question like any other; the diagnosis continues with the first
that runs and is informative. Where none does, the user is asked for data.
"""

import dataclasses
import itertools
import math
from collections.abc import Iterator

import numpy as np

from tensortriage.compare.judgement.within import is_lost, is_noise
from tensortriage.compare.reference_checks import has_nan, is_constant
from tensortriage.diagnose.measurements.evidence import Evidence, Findings
from tensortriage.diagnose.measurements.nonfinite_values.own_nan import nan_of_reference
from tensortriage.diagnose.measurements.outputs import Unsound, deployed, judge, output_floors
from tensortriage.diagnose.rungs.rung import Answer, rung
from tensortriage.diagnose.state.confidence import OBSERVED
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.verdict import Conclusion, Culprit, VerdictKind
from tensortriage.engines.spec import PLAIN
from tensortriage.envelope.setting import Floors
from tensortriage.errors import EngineError, RunFailed
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.inputs.synthetic.candidates import are_ours, other_numbers
from tensortriage.runs.feeds.trial import MOST_FOR_NOISE, as_options, asked_for, first_that_runs, in_words
from tensortriage.runs.questions.question import Question
from tensortriage.runs.questions.suggested_commands import command_without_inputs
from tensortriage.values.text import noise_size

NOISE = "is the answer on the made-up data more than noise?"
REAL_DATA = "--inputs"


def made_up_anew(inv: Investigation, question: str) -> Answer | Conclusion | None:
    """Try other made-up data where the first fail on the reference; None where they do not, or are not to blame.

    Raises:
        DataError: When the reference runs none (``made-up-data-fail``).
    """
    others, feed, reference = inv.question.others, inv.question.feeds[0], inv.question.reference
    if others is None:
        return None
    try:
        golden = inv.golden.outputs(feed)
        outputs = {spec.name: golden[spec.name] for spec in inv.model.outputs if spec.name in golden}
        broken = [name for name, array in outputs.items() if has_nan(array)]
        problem = "" if broken or not all(map(is_constant, outputs.values())) else "says nothing"
    except RunFailed as error:
        broken, problem = [], error.message
        if not are_ours(inv.model, {}):
            return None
    except EngineError:
        return None
    if not broken and not problem:
        return None
    if reference != PLAIN and first_that_runs(PLAIN, inv.model, [feed], inv.lab).varied:
        return None  # the data are sound
    trial = first_that_runs(reference, inv.model, others(), inv.lab)
    if trial.feed is not None and (trial.varied or problem != "says nothing"):
        given = as_options(trial.feed)
        told = f"{in_words(trial.feed)}, number {trial.tried + 1} of those tried: --input-shapes {' '.join(given)}"
        inv.record.answered(question, f"on made-up data that it accepts: {told}", tried=trial.tried, shapes=given)
        return Answer(question=_about(inv, trial.feed))
    if broken:
        return _always_nan(inv, feed, broken[0], trial.tried + 1, question)
    if problem == "says nothing":
        return None
    if trial.ran:
        problem = "the data that run give NaN"
    raise asked_for(inv.model, reference, trial.tried + 1, problem)


def _about(inv: Investigation, feed: Feed) -> Question:
    """Return the question on other made-up data, which commands name: sizes alone would be other numbers."""
    given = (word for word in inv.question.input_paths if not word.startswith("random["))
    return dataclasses.replace(inv.question, feeds=(feed,), input_paths=(*given, feed.name))


def _always_nan(inv: Investigation, feed: Feed, output: str, tried: int, question: str) -> Conclusion | None:
    """Return the verdict where the reference gives NaN on whatever is made up; None where a weight holds the NaN."""
    culprit, born = nan_of_reference(inv, feed, output)
    if culprit and _has_nan_weight(inv, culprit):
        return None
    inv.record.answered(question, f"no: output '{output}' of the reference holds NaN on {tried} made-up feeds{born}")
    return Conclusion(
        VerdictKind.INCONCLUSIVE,
        OBSERVED,
        f"the reference gives NaN in output '{output}' on each of {tried} made-up feeds{born}; give real data",
        next=[
            command_without_inputs(inv.question, "diagnose", "--target", str(inv.question.target), REAL_DATA, "INPUTS")
        ],
    )


def _has_nan_weight(inv: Investigation, culprit: Culprit) -> bool:
    graph = inv.model.graph
    names = [name for name in graph.node(culprit.node).inputs if name in graph.constants]
    return any(has_nan(graph.weight(name)) for name in names)


@rung(
    NOISE,
    reads=("results",),
    gives=("results",),
    cost="nothing new; where a floor is a tenth of an output, evaluations on other made-up data",
    ends=(VerdictKind.INCONCLUSIVE,),
)
def says_more_than_noise(inv: Investigation, evidence: Evidence) -> Answer | Conclusion | None:
    """Go on with made-up data on which a healthy engine's outputs are more than noise; judge nothing by others."""
    worst = evidence.worst_feed
    beyond = any(
        error > worst.floors.limit(name, worst.figures[name].count).error for name, error in worst.errors.items()
    )
    noisy = noisy_output(inv, worst.floors, in_format=beyond)
    if worst.feed.origin is Origin.REAL or inv.question.tolerance is not None or noisy is None:
        return None
    floor = worst.floors.fp32[noisy]
    if inv.question.others is None and math.isfinite(floor) and not is_lost(floor):  # numbers of a seed
        return None
    tried = 0
    for asking, floors in _others(inv, worst.feed) if inv.question.others is not None else ():
        tried += 1
        feed = asking.question.feeds[0]
        if floors is None or noisy_output(asking, floors, in_format=beyond) is not None:
            continue
        try:
            result = judge(asking, feed, deployed(asking, feed), floors)
        except (EngineError, Unsound):
            continue
        _chosen(inv, noisy, feed, tried)
        return Answer(findings=Findings(results=(result,)), question=asking.question)
    floor = worst.floors.fp32[noisy]
    if not is_noise(floor):  # another format makes it noise, and how far off a fault may be cannot be told
        return None
    inv.record.answered(
        NOISE, f"no: healthy engines differ by {noise_size(floor)} of output '{noisy}'", tried=tried + 1
    )
    if not worst.passes:
        return None
    return Conclusion(
        VerdictKind.INCONCLUSIVE,
        OBSERVED,
        f"these data make the answer noise: healthy engines differ by {noise_size(floor)} of output '{noisy}'"
        f"{f', on each of {tried + 1} made-up feeds' if tried else ''}; {inv.question.target} is within that, which "
        "proves nothing; give real data",
        next=[
            command_without_inputs(inv.question, "diagnose", "--target", str(inv.question.target), REAL_DATA, "INPUTS")
        ],
    )


@rung("is the answer of the reference's model on the made-up data more than noise?", cost="evaluations of the model")
def says_more_of_two_models(inv: Investigation, _: Evidence) -> Answer | None:
    """Go on with such data where two models are about to be compared: noise is equal to nothing."""
    if inv.question.others is None or inv.question.target_model is None:
        return None
    noisy = noisy_output(inv, output_floors(inv))
    for tried, (asking, floors) in enumerate(_others(inv, inv.question.feeds[0]) if noisy else (), start=1):
        if noisy and floors is not None and noisy_output(asking, floors) is None:
            _chosen(inv, noisy, asking.question.feeds[0], tried)
            return Answer(question=asking.question)
    return None


def _others(inv: Investigation, first: Feed) -> Iterator[tuple[Investigation, Floors | None]]:
    """Yield the question on other made-up numbers, with the floors of the outputs; None where there are none."""
    for feed in itertools.islice(other_numbers(inv.model, first), MOST_FOR_NOISE):
        asking = inv.about(_about(inv, feed))
        try:
            golden = asking.golden.outputs(feed)
            broken = any(has_nan(np.asarray(golden[name])) for name in golden.names())
            yield asking, None if broken else output_floors(asking)
        except (EngineError, Unsound):
            yield asking, None


def _chosen(inv: Investigation, noisy: str, feed: Feed, tried: int) -> None:
    low, high = _span(feed)
    told = f"no: output '{noisy}' is noise on them; yes on others, floats of {low:g} to {high:g}"
    inv.record.answered(NOISE, told, feed=feed.name, tried=tried)


def noisy_output(inv: Investigation, floors: Floors, *, in_format: bool = False) -> str | None:
    """Return an output of floats whose floor is a tenth of its signal or more, or NaN or Inf; None for none.

    Args:
        inv: The investigation.
        floors: The floors of the outputs.
        in_format: Whether what the target's format costs is a floor too.
    """
    floats = [spec.name for spec in inv.model.outputs if spec.dtype is not None and spec.dtype.is_float]
    found = {**floors.fp32, **(floors.target if in_format else {})}
    return next((name for name in floats if name in found and is_noise(found[name])), None)


def _span(feed: Feed) -> tuple[float, float]:
    floats = [array for array in feed.tensors.values() if array.dtype.kind == "f" and array.size]
    return (min(float(a.min()) for a in floats), max(float(a.max()) for a in floats)) if floats else (0.0, 0.0)
