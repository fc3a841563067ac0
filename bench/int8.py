"""Accuracy of the digits models in int8: the tool's choice, and min-max on samples that do not represent them.

    python bench/int8.py [--modelopt-python PYTHON]

With an interpreter that has TensorRT-Model-Optimizer, also what each way to quantize makes of the samples.
"""

import argparse
import dataclasses
import tempfile
from pathlib import Path

import numpy as np

from tensortriage.precision.quantization.calibrated_model import Calibration, QuantizeOptions
from tensortriage.precision.quantization.calibration_search import usable_ways
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.runs.scripts import METRIC, ScriptFunction
from tensortriage.values.dtype import Precision
from tensortriage.workflows.edits.requests import Source, Target
from tensortriage.workflows.quantization.quantize import QuantizeRequest, QuantizeResult, quantize

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
MODELS = ("digits_cnn.onnx", "digits_vit.onnx")
DIM = 0.1
"""The bad set: the same pictures at a tenth of their brightness."""


def quantized(
    model: str, samples: Path, ways: tuple[Calibration, ...], folder: Path, options: QuantizeOptions
) -> QuantizeResult:
    return quantize(
        QuantizeRequest(
            source=Source(EXAMPLES / model),
            target=Target(folder / "int8.onnx"),
            options=options,
            calibrations=ways,
            feeding=FeedRequest(paths=[str(samples)]),
            holdout=FeedRequest(paths=[str(EXAMPLES / "digits_samples.npz")]),
            metric=ScriptFunction(str(EXAMPLES / "accuracy.py"), METRIC).number,
            accept_lost=True,
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modelopt-python", default="")
    python = parser.parse_args().modelopt_python
    ways = usable_ways("auto", python)
    options = QuantizeOptions(modelopt_python=python)
    with tempfile.TemporaryDirectory() as folder:
        dim = Path(folder) / "dim.npz"
        with np.load(EXAMPLES / "digits.npz") as pictures:
            np.savez(dim, image=(pictures["image"] * DIM).astype(np.float32))
        print("| model | float | int8, tool's choice | calibration | int8, bad set | named range |")
        print("|---|---|---|---|---|---|")
        for model in MODELS:
            good = quantized(model, EXAMPLES / "digits.npz", ways, Path(folder), options)
            bad = quantized(model, dim, (Calibration.MINMAX,), Path(folder), options)
            named = f"'{bad.outgrown[0].value}': {bad.outgrown[0].largest:.3g} in {bad.outgrown[0].range:.3g}"
            figures = (good.metric_before, good.metric_after, good.calibration, bad.metric_after, named)
            print(f"| {model} | {figures[0]:.4f} | {figures[1]:.4f} | {figures[2]} | {figures[3]:.4f} | {figures[4]} |")
        compare(ways, Path(folder), options)


def compare(ways: tuple[Calibration, ...], folder: Path, options: QuantizeOptions) -> None:
    """Print what every way makes of the good samples, in both formats."""
    print("\n| model | format | way | nodes | accuracy | worst output error |")
    print("|---|---|---|---|---|---|")
    for model in MODELS:
        for precision in (Precision.INT8, Precision.FP8E4M3):
            chosen = dataclasses.replace(options, precision=precision)
            made = quantized(model, EXAMPLES / "digits.npz", ways, folder, chosen)
            for tried in made.tried:
                words = (model, precision.value, tried.calibration, tried.quantized)
                print("|", *(f"{word} |" for word in words), f"{tried.metric:.4f} | {tried.worst:.2e} |")


if __name__ == "__main__":
    main()
