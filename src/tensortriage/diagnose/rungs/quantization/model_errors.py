"""How far the outputs of a changed model are from the original's, both on the reference."""

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.inputs.conform import Casting, check_feed
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model


def output_errors(inv: Investigation, model: Model, feed: Feed) -> dict[str, float]:
    """Return the relative errors of a model's outputs on the reference, against the original model's.

    Raises:
        EngineError: When the reference cannot run the model.
        DataError: When the feed does not fit it.
    """
    golden = inv.golden.outputs(feed)
    fed = check_feed(feed, model.inputs, casting=Casting.ROUND)
    outputs = inv.lab.outputs(inv.question.reference, model, fed)
    return {
        spec.name: error_of(measure(np.asarray(golden[spec.name]), np.asarray(outputs[spec.name])))
        if outputs[spec.name].shape == golden.spec(spec.name).shape
        else np.inf
        for spec in inv.model.outputs
        if spec.name in golden and spec.name in outputs
    }
