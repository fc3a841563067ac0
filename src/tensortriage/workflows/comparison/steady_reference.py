"""Does the reference contradict itself? Then float64 takes its place, by the sentence that `triage diagnose` asks."""

import contextlib
import logging

from tensortriage.errors import EngineError, UsageError
from tensortriage.inputs.feed import Feed
from tensortriage.runs.lab import Lab
from tensortriage.runs.questions.question import Question
from tensortriage.workflows.common.judged import investigation_of
from tensortriage.workflows.comparison.participants import Live, Participant

_logger = logging.getLogger(__name__)


def exact_in_place_of(reference: Participant, feed: Feed, lab: Lab) -> Live | None:
    """Return float64 where an engine gives other results from run to run, beyond rounding; None where it does not.

    Args:
        reference: The participant that is assumed to be right.
        feed: A feed on which it and a target, or the model, disagree.
        lab: The lab that asks engines.
    """
    if not isinstance(reference, Live):
        return None
    # With these all questions of the ladder and rows of the judge are imported.
    from tensortriage.diagnose.measurements.outputs import Unsound
    from tensortriage.diagnose.rungs.premises.second_opinion import unsteady
    from tensortriage.envelope.explanations import CORRECTLY_ROUNDED

    spec, words = reference.precision_spec, ""
    inv = investigation_of(Question(model=reference.model, feeds=[feed], reference=spec, target=spec), lab)
    with contextlib.suppress(EngineError, UsageError, Unsound):
        words = unsteady(inv, feed)
    if not words:
        return None
    _logger.warning("float64 is the reference: %s", words)
    return Live(str(CORRECTLY_ROUNDED), CORRECTLY_ROUNDED, reference.model, lab)
