"""Results of ONNX Runtime's int8 kernels for a quantized model on this processor, and whether 7 bits are better."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tensortriage.api import EngineError, Feed, Model
from tensortriage.precision.sdk import Lab, decibels, near_prediction, seven_bit_weights, sums_in_int16
from tensortriage.sdk import EngineSpec, error_size
from tensortriage_quantize.calibration.calibration_search import outputs_of
from tensortriage_quantize.output_errors import errors_of

OPTIMIZED = EngineSpec("onnxruntime", {})


def kernel_notices(
    made: Model,
    error: float,
    samples: Sequence[Feed],
    golden: Sequence[Mapping[str, np.ndarray]],
    lab: Lab,
) -> Iterator[str]:
    """Yield a warning where kernels that sum in int16 lose more than 8 bits cost, and weights in 7 bits lose less.

    Args:
        made: The int8 model.
        error: Its largest output error as ONNX defines it.
        samples: The samples that judged it.
        golden: Outputs of the float model there.
        lab: Runs models.
    """
    narrow = seven_bit_weights(made) if sums_in_int16() else None
    if narrow is None:
        return
    try:
        here, in_7_bits = (
            max(errors_of(golden, outputs_of(model, samples, lab, OPTIMIZED)).values()) for model in (made, narrow)
        )
    except EngineError:
        return
    if not near_prediction(decibels(here / max(error, 1e-30))) and in_7_bits < here:
        yield (
            "on this processor, which has no VNNI, ONNX Runtime's kernels cut sums of 8-bit products off in int16: "
            f"output error {error_size(here)} instead of {error_size(error)}; with --reduce-range (weights in 7 bits) "
            f"it is about {error_size(in_7_bits)}"
        )
