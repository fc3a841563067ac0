"""How far the outputs of a changed model are from the original's, both on the reference."""

from collections.abc import Mapping

import numpy as np

from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.diagnose.state.investigation import Investigation
from tensortriage.frozen_dataclass import frozen_dataclass
from tensortriage.inputs.conform import Casting, check_feed
from tensortriage.inputs.feed import Feed
from tensortriage.model.model import Model
from tensortriage.model.similarity.correspondence import Correspondence


@frozen_dataclass
class Quantization:
    """A quantized model next to the original, both run on a feed by the reference.

    Attributes:
        matched: Both models, with their nodes matched.
        weights: The original's numbers by the result of the DequantizeLinear.
        errors: Relative errors of the outputs of the quantized model.
        floors: fp32 floors of the outputs of the original.
    """

    matched: Correspondence
    feed: Feed
    weights: Mapping[str, np.ndarray]
    errors: Mapping[str, float]
    floors: Mapping[str, float]

    def errors_of(self, inv: Investigation, weights: Mapping[str, np.ndarray]) -> dict[str, float]:
        """Return the errors of outputs without any quantizer, with weights in place of the quantized ones."""
        return output_errors(inv, self.matched.unquantized(weights), self.feed)

    def most_explained(self, own: Mapping[str, float]) -> tuple[str, float]:
        """Return the output whose error other errors explain most, and that share."""
        shares = {name: (own[name] / error) ** 2 for name, error in self.errors.items() if 0.0 < error < np.inf}
        output = max(shares or self.errors, key=lambda name: shares.get(name, 0.0))
        return output, min(shares.get(output, 0.0), 1.0)


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
