"""An investigation in passing, for commands that seldom need one: all of it is imported with this module."""

from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.diagnose.state.question import Question
from tensortriage.engines.spec import EngineSpec
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.runs.lab import Lab


def passing_investigation(
    lab: Lab, model: Model, feed: Feed, *, reference: EngineSpec, target: EngineSpec
) -> Investigation:
    """Return an investigation of a model on one feed, in a lab that knows what all before it were answered."""
    return Investigation(Question(model=model, feeds=[feed], reference=reference, target=target), lab=lab.remembering)
