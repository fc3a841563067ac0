"""Accuracy of the digits models in int8: the tool's choice, and min-max on samples that do not represent them.

python bench/int8.py
"""

import tempfile
from pathlib import Path

import numpy as np

from tensortriage.inputs.script import load_function
from tensortriage.precision.quantizing import Calibration
from tensortriage.workflows.feeding import FeedRequest
from tensortriage.workflows.quantizing import QuantizeRequest, QuantizeResult, quantize
from tensortriage.workflows.surgery import Source, Target

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
DIM = 0.1
"""The bad set: the same pictures at a tenth of their brightness."""


def quantized(model: str, samples: Path, ways: tuple[Calibration, ...], folder: Path) -> QuantizeResult:
    return quantize(
        QuantizeRequest(
            source=Source(EXAMPLES / model),
            target=Target(folder / "int8.onnx"),
            calibrations=ways,
            feeding=FeedRequest(paths=[str(samples)]),
            holdout=FeedRequest(paths=[str(EXAMPLES / "digits_samples.npz")]),
            metric=load_function(str(EXAMPLES / "accuracy.py"), "metric"),
            accept_lost=True,
        )
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        dim = Path(folder) / "dim.npz"
        with np.load(EXAMPLES / "digits.npz") as pictures:
            np.savez(dim, image=(pictures["image"] * DIM).astype(np.float32))
        print("| model | float | int8, tool's choice | calibration | int8, bad set | named range |")
        print("|---|---|---|---|---|---|")
        for model in ("digits_cnn.onnx", "digits_vit.onnx"):
            good = quantized(model, EXAMPLES / "digits.npz", tuple(Calibration), Path(folder))
            bad = quantized(model, dim, (Calibration.MINMAX,), Path(folder))
            named = f"'{bad.outgrown[0].value}': {bad.outgrown[0].largest:.3g} in {bad.outgrown[0].range:.3g}"
            figures = (good.metric_before, good.metric_after, good.calibration, bad.metric_after, named)
            print(f"| {model} | {figures[0]:.4f} | {figures[1]:.4f} | {figures[2]} | {figures[3]:.4f} | {figures[4]} |")


if __name__ == "__main__":
    main()
