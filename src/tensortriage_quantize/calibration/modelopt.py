"""TensorRT-Model-Optimizer as quantizer: it places the pairs and chooses their scales, where it is installed.

It brings torch and pins of its own, so it runs in a child, which may be another interpreter's, and is asked once: for a
model with pairs wherever it would put them. Any choice of nodes is that model with the pairs of the others taken away.
The child gets files and leaves a file; it needs nothing of this package.
"""

import functools
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np

from tensortriage.api import Feed, Model
from tensortriage.precision.sdk import ExternalData, Precision, quantizers, seven_bit_weights
from tensortriage.sdk import EngineMissing, ModelError
from tensortriage_quantize.pairs.edit_pairs import quantized_nodes, quantized_only_for, with_stored_weights

CURE = "pip install 'nvidia-modelopt[onnx]' torch, or name a Python that has it: --modelopt-python PYTHON"

_FIND = "import importlib.util, sys; sys.exit(importlib.util.find_spec('modelopt') is None)"
_SECONDS = 60.0
_MOST_WORDS = 300
_CODE = """
import sys
import numpy as np
from onnxruntime.quantization import CalibrationDataReader
from modelopt.onnx.quantization import quantize

model, samples, mode, method, result = sys.argv[1:]
stored, feeds = np.load(samples), {}
for key in stored.files:
    number, name = key.split("/", 1)
    feeds.setdefault(int(number), {})[name] = stored[key]

class Samples(CalibrationDataReader):
    def __init__(self):
        self.rewind()
    def rewind(self):
        self.rest = iter(feeds.values())
    def get_next(self):
        return next(self.rest, None)
    def get_first(self):
        return next(iter(feeds.values()))

quantize(
    model, quantize_mode=mode, calibration_method=method, calibration_data_reader=Samples(), calibration_eps=["cpu"],
    high_precision_dtype="fp32", output_path=result, log_level="ERROR",
)
"""


@functools.cache
def modelopt_python(word: str = "") -> str:
    """Return an interpreter that has TensorRT-Model-Optimizer.

    Args:
        word: A path, or a program on the PATH; empty for the running one.

    Raises:
        EngineMissing: When it has not (``modelopt-missing``).
    """
    path = shutil.which(os.path.expanduser(word)) if word else sys.executable
    if path is None:
        raise _missing(f"there is no program '{word}'")
    if not word:
        if importlib.util.find_spec("modelopt") is None:
            raise _missing("it is not installed")
        return path
    try:
        trial = subprocess.run([path, "-c", _FIND], capture_output=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _missing(str(error)) from error
    if trial.returncode:
        raise _missing(f"'{word}' is not a Python that has it")
    return os.path.abspath(path)


class ModelOptQuantizer:
    """Quantizes one model by TensorRT-Model-Optimizer; it decides the places of pairs.

    Args:
        model: The float model; it is not changed.
        feeds: Calibration samples, at least one.
        precision: int8 or fp8e4m3.
        method: Its name for the choice of ranges, ``entropy`` or ``max``.
        float_weights: Whether weights stay float behind a pair of their own; else they are stored in 8 bits.
        reduce_range: Whether int8 weights use 7 bits.
        python: An interpreter that has it.
        folder: An existing folder for the files this needs.

    Raises:
        ModelError: When it refuses the model (``quantize-failed``) or quantizes nothing (``quantize-nothing``).
    """

    def __init__(
        self,
        model: Model,
        feeds: Sequence[Feed],
        precision: Precision,
        *,
        method: str,
        float_weights: bool,
        reduce_range: bool = False,
        python: str,
        folder: Path,
    ) -> None:
        self._float_weights = float_weights
        whole = _quantized(model, feeds, precision, method=method, python=python, folder=folder)
        self._whole = (seven_bit_weights(whole) if reduce_range else None) or whole
        known = {node.name for node in model.graph.nodes}
        self.nodes = tuple(name for name in quantized_nodes(self._whole) if name in known)
        if not self.nodes:
            raise ModelError(
                "TensorRT-Model-Optimizer quantizes no node of the model",
                slug="quantize-nothing",
                cure="choose another calibration: --calibrate minmax",
            )

    def quantized(self, kept: Collection[str] = (), *, float_weights: bool | None = None) -> Model:
        """Return the model with its pairs at the operands of every node but those kept; see `Quantizer`."""
        made = quantized_only_for(self._whole, set(self.nodes).difference(kept))
        keep_float = self._float_weights if float_weights is None else float_weights
        return made if keep_float else with_stored_weights(made)

    @property
    def ranges(self) -> Mapping[str, tuple[float, float]]:
        """The symmetric range of every pair at an activation, by name of the activation."""
        graph = self._whole.graph
        found: dict[str, tuple[float, float]] = {}
        for pair in quantizers(graph):
            if pair.quantize and pair.value not in graph.constants:
                top = float(pair.dtype.finfo.max) if pair.dtype.is_float else 2.0 ** (pair.dtype.bits - 1) - 1.0
                half = float(np.max(graph.weight(pair.scale))) * top
                found[pair.value] = (-half, half)
        return found


def _quantized(
    model: Model, feeds: Sequence[Feed], precision: Precision, *, method: str, python: str, folder: Path
) -> Model:
    """Return the model with pairs, weights in float behind pairs of their own."""
    source, samples, result = folder / "float.onnx", folder / "samples.npz", folder / "modelopt.onnx"
    model.save(source, external_data=ExternalData.KEEP)
    arrays = {f"{n}/{name}": array for n, feed in enumerate(feeds) for name, array in feed.tensors.items()}
    np.savez(samples, **arrays)  # type: ignore[arg-type] # arrays by name
    mode = "int8" if precision is Precision.INT8 else "fp8"
    words = [python, "-c", _CODE, str(source), str(samples), mode, method, str(result)]
    done = subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder), "CUDA_VISIBLE_DEVICES": ""},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode or not result.exists():
        last = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()[-1]
        raise ModelError(
            f"TensorRT-Model-Optimizer refuses the model: {last[-_MOST_WORDS:]}",
            slug="quantize-failed",
            cure="choose another calibration: --calibrate minmax; or fold and clean the model first: triage surgeon "
            "sanitize MODEL --fold-constants -o clean.onnx",
        )
    return Model.load(result)


def _missing(why: str) -> EngineMissing:
    return EngineMissing(
        f"TensorRT-Model-Optimizer cannot be used: {why}; --calibrate minmax, percentile and entropy work without it",
        slug="modelopt-missing",
        cure=CURE,
    )
