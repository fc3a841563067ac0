"""`convert --int8` next to ONNX Runtime's own quantizer, in error and in time, on the networks of `int8_networks.py`.

    python bench/int8_peers.py [--only NAME] [--for onnxruntime] [--target openvino]

Six of ONNX Runtime's ways: quantize_static to QDQ with uint8 activations and int8 weights per channel, calibrated by
MinMax, Entropy and Percentile; the same with int8 activations; QOperator; quantize_dynamic. All calibrate on 32 samples
and are judged on 32 others: relative RMS error of the output over all of them. Times are of one run on one thread of
ONNX Runtime's CPU provider: all files of a network in turn, many rounds, medians, so that other load meets all alike.
"""

import argparse
import contextlib
import io
import logging
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import onnxruntime as ort
from int8_networks import CALIBRATING, NAMES, available
from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quantize_dynamic, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

from tensortriage.compare.judgement.relative_error import error_of
from tensortriage.compare.metrics.tensor_metrics import measure
from tensortriage.precision.quantization.calibrated_model import QuantizeOptions
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.workflows.edits.requests import Source, Target
from tensortriage.workflows.quantization.quantize import QuantizeRequest, quantize

ROUNDS, BLOCK_SECONDS = 30, 0.02
"""Rounds in which every file is run, and how long it is run in each."""

U8, S8 = QuantType.QUInt8, QuantType.QInt8
STATIC: Mapping[str, Mapping[str, object]] = {
    "QDQ u8s8 MinMax": {},
    "QDQ u8s8 Entropy": {"calibrate_method": CalibrationMethod.Entropy},
    "QDQ u8s8 Percentile": {"calibrate_method": CalibrationMethod.Percentile},
    "QDQ s8s8 MinMax": {"activation_type": S8},
    "QOperator u8s8 MinMax": {"quant_format": QuantFormat.QOperator},
}
Arrays = Mapping[str, np.ndarray]


class Reader:
    """Hands samples to ONNX Runtime's calibrators."""

    def __init__(self, samples: list[Arrays]) -> None:
        self._rest = iter(samples)

    def get_next(self) -> Arrays | None:
        """Return the next sample."""
        return next(self._rest, None)

    def __iter__(self) -> Iterator[Arrays]:
        return self._rest


def files(name: str, folder: Path, engine: str) -> Iterator[tuple[str, Callable[[], Path]]]:
    """Yield every way to quantize a network, and what writes its file."""
    model = available(name)
    with np.load(model.with_suffix(".npz")) as file:
        arrays = {key: file[key] for key in file.files}
    samples = [{key: array[row] for key, array in arrays.items()} for row in range(CALIBRATING)]
    np.savez(folder / "samples.npz", **{key: array[:CALIBRATING] for key, array in arrays.items()})
    yield "float", lambda: model

    def ours() -> Path:
        quantize(
            QuantizeRequest(
                source=Source(model), target=Target(folder / "ours.onnx"), accept_lost=True,
                options=QuantizeOptions(engine=engine),
                feeding=FeedRequest(paths=[str(folder / "samples.npz")]),
            )
        )  # fmt: skip
        return folder / "ours.onnx"

    yield "triage", ours
    quant_pre_process(str(model), str(folder / "ready.onnx"), skip_symbolic_shape=True)
    for number, (way, words) in enumerate(STATIC.items()):
        path = folder / f"{number}.onnx"

        def made(path: Path = path, words: Mapping[str, object] = words) -> Path:
            given = {"per_channel": True, "activation_type": U8, "weight_type": S8, **words}
            quantize_static(str(folder / "ready.onnx"), str(path), Reader(samples), **given)  # type: ignore[arg-type]  # words of several types
            return path

        yield way, made

    def dynamic() -> Path:
        quantize_dynamic(str(folder / "ready.onnx"), str(folder / "dynamic.onnx"), per_channel=True)
        return folder / "dynamic.onnx"

    yield "dynamic", dynamic


def session(path: Path) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def errors(reference: Path, path: Path, samples: list[Arrays]) -> float:
    """Return the relative RMS error of the output over all samples."""
    one, other = session(reference), session(path)
    pairs = [(one.run(None, dict(sample))[0], other.run(None, dict(sample))[0]) for sample in samples]
    return error_of(measure(*(np.concatenate([pair[side] for pair in pairs]) for side in (0, 1))))


def times(paths: Mapping[str, Path], sample: Arrays) -> dict[str, float]:
    """Return the median time of a run of every file in ms, measured in turn."""
    sessions = {way: session(path) for way, path in paths.items()}
    found: dict[str, list[float]] = {way: [] for way in paths}
    for round_ in range(ROUNDS + 2):
        for way, one in sessions.items():
            runs, begun = 0, time.perf_counter()
            while (passed := time.perf_counter() - begun) < BLOCK_SECONDS:
                one.run(None, dict(sample))
                runs += 1
            if round_ > 1:
                found[way].append(1000.0 * passed / runs)
    return {way: statistics.median(taken) for way, taken in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--for", dest="engine", default="onnxruntime")
    given = parser.parse_args()
    logging.getLogger().setLevel(logging.ERROR)
    for name in NAMES:
        if given.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            paths = {}
            for way, make in files(name, Path(folder), given.engine):
                with contextlib.redirect_stdout(io.StringIO()):
                    try:
                        paths[way] = make()
                    except Exception as error:  # a way that refuses a network is out of the race
                        print(f"{name}: {way} refuses: {type(error).__name__}: {str(error)[:120]}", flush=True)
            with np.load(available(name).with_suffix(".npz")) as file:
                arrays = {key: file[key][CALIBRATING:] for key in file.files}
            samples = [{key: array[row] for key, array in arrays.items()} for row in range(CALIBRATING)]
            taken = times(paths, samples[0])
            print(f"\n| {name} | error | ms | of float |\n|---|---|---|---|")
            for way, path in paths.items():
                error = errors(paths["float"], path, samples)
                print(f"| {way} | {error:.4f} | {taken[way]:.3f} | {taken[way] / taken['float']:.2f} |", flush=True)


if __name__ == "__main__":
    main()
