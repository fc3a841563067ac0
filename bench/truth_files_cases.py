"""The corpus of rewritten files: which there are, which of them count, and what is right to say of each.

A file counts when what it is called is measured: a sound one loses less than `SOUND_LOSS` of the signal on real data, a
useless one more than `LOST`, and a mistake moves the outputs by more than the rounding of its sound sister does. Others
are left out and counted.
"""

import dataclasses
import functools
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from networks.trained import folder
from truth_files_mistakes import OTHER_ZERO, RANGES, SUFFIXES, WEIGHTS, File, Place
from truth_files_sound import SOUND, USELESS, quiet
from truth_files_structure import STRUCTURE

from tensortriage.api import Model
from tensortriage.engines.cpu_features import sums_in_int16
from tensortriage.model.quantization.int8_products import unsigned_weights

SOUND_LOSS = 0.3
"""Relative error from which nobody would call a file sound; below the half from which it is of no use."""
LOST = 0.5
"""Relative error from which a file is of no use, as `tensortriage.compare.judgement.thresholds` has it."""
VISIBLE = 1.5
"""How many times the loss of the sound file a mistake has to move the outputs by."""
CUT_OFF = ("match", "rounding", "quantization")
"""What may be said of a file of which kernels cut off about as much as it loses anyway."""
NOISE = 1e-5
"""The same of files that lose nothing: some 30 times what another order of sums makes in float32."""
BETWEEN = 40
"""More nodes of the original than a fused one stands for."""

MISTAKES: Mapping[str, Sequence[str]] = {
    "weight-scaled": ("resnet/qdq-u8s8", "mobilenet/qop-u8u8", "bert4/transformers", "gpt/ort-all", "vit/dynamic",
                      "bert4/transformers-fp16", "unet/onnxsim"),
    "channel-scaled": ("resnet/qdq-prepared-channels", "vit/qdq-u8s8", "gpt/transformers-fp16", "mobilenet/ort-all",
                       "bert12/transformers"),
    "rows-rolled": ("bert4/dynamic", "resnet/qop-u8s8-channels", "vit/nbits-4-32", "tagger/onnxsim", "vit/transformers",
                    "gpt/qdq-matmuls"),
    "another-checkpoint": ("bert4/qdq-matmuls", "vit/dynamic", "gpt/nbits-8-16-asymmetric", "resnet/ort-extended",
                           "unet/qdq-u8s8", "bert12/transformers-fp16", "resnet/nncf", "tagger/dynamic"),
    "scale-1.3": ("resnet/qdq-u8s8", "mobilenet/qdq-prepared-channels", "vit/dynamic", "gpt/nbits-4-32",
                  "bert4/qop-constant-b", "unet/qop-u8u8", "bert12/qdq-u16u8", "bert4/dynamic-channels"),
    "zero-20": ("bert4/dynamic", "resnet/qdq-u8u8", "mobilenet/qop-u8u8", "bert12/qdq-u16u8", "resnet/dynamic"),
    "s8-as-u8": ("resnet/qdq-u8s8", "vit/qdq-u8s8", "gpt/dynamic", "unet/qop-u8s8-channels", "bert4/qdq-matmuls"),
    "wrong-axis": ("vit/qdq-s8s8-channels", "bert4/qdq-constant-b", "unet/qdq-prepared-channels",
                   "resnet/qdq-prepared-channels", "resnet/qdq-entropy"),
    "nibbles": ("vit/nbits-4-32", "gpt/nbits-4-32", "bert4/nbits-4-16-asymmetric", "bert4/nbits-4-32-level4"),
    "bias-dropped": ("resnet/qdq-u8u8", "bert4/transformers", "mobilenet/qop-u8s8-channels", "gpt/transformers-fp16",
                     "tagger/qdq-matmuls", "vit/nbits-8-128"),
    "bias-doubled": ("unet/qdq-u8s8", "bert4/ort-all", "resnet/ort-all", "vit/dynamic", "resnet/fp16"),
    "zeros-differ": ("resnet/qdq-u8s8", "unet/qdq-u8s8", "vit/qdq-u8s8", "gpt/qdq-matmuls", "mobilenet/qdq-reduced"),
    "range-40": ("resnet/qdq-s8s8-percentile", "vit/qdq-s8s8-channels", "unet/qop-u8u8", "bert4/qdq-matmuls"),
    "range-twentieth": ("resnet/qdq-u8u8", "vit/qdq-u8s8", "mobilenet/qop-u8s8-channels", "gpt/qdq-matmuls"),
    "heads-2": ("bert4/transformers", "bert12/transformers-fp16", "vit/transformers"),
    "heads-8": ("bert4/transformers-fp16", "bert12/transformers", "vit/transformers-fp16"),
    "epsilon": ("bert4/transformers", "gpt/onnxsim", "vit/ort-all", "bert12/transformers", "bert4/onnxslim"),
    "causal": ("bert4/transformers", "bert12/transformers-fp16", "vit/transformers"),
    "gelu-tanh": ("bert4/transformers", "vit/ort-all", "bert12/ort-all"),
    "gelu-quick": ("vit/ort-all", "bert4/ort-all"),
    "relu-missing": ("resnet/ort-extended", "mobilenet/onnxsim", "unet/fp16", "resnet/qdq-u8s8", "tagger/dynamic",
                     "mobilenet/autocast-fp16", "unet/qdq-s8s8"),
    "concat-order": ("unet/onnxslim", "unet/qop-u8u8", "unet/qdq-u8s8", "unet/fp16"),
    "softmax-axis": ("gpt/onnxsim", "vit/qdq-u8s8", "bert4/dynamic", "gpt/transformers-fp16"),
    "perm": ("gpt/transformers", "vit/onnxsim", "bert4/dynamic", "gpt/nbits-8-16-asymmetric"),
    "resampling": ("unet/ort-all", "unet/fp16", "unet/qdq-u8s8"),
    "alpha": ("vit/ort-all", "gpt/ort-all"),
    "window": ("unet/onnxsim", "unet/qop-u8u8"),
}  # fmt: skip
"""Mistakes, and the sound files that they are made in."""


@dataclasses.dataclass(frozen=True)
class FileCase:
    """A rewritten file and what is right to say of it.

    Attributes:
        name: ``files/sound/NETWORK/FILE``, ``files/mistake/NETWORK/FILE,MISTAKE`` or ``files/useless/NETWORK/FILE``.
        folder: Of the network.
        file: The rewritten one.
        loss: Its relative error on real data, the largest of its outputs.
        verdicts: The right ones.
        culprits: Names of which the first culprit has one, of nodes or constants; empty for none.
    """

    name: str
    folder: Path
    file: Path
    loss: float
    verdicts: tuple[str, ...]
    culprits: tuple[str, ...] = ()


class LeftOut(Exception):
    """A file that does not count, with the reason."""


def names(seed: int) -> list[str]:
    """Return the cases in a seeded order."""
    found = [f"files/sound/{name}" for name in SOUND] + [f"files/useless/{name}" for name in USELESS]
    found += [f"files/mistake/{name},{mistake}" for mistake, files in MISTAKES.items() for name in files]
    return [found[index] for index in np.random.default_rng(seed).permutation(len(found))]


def made(name: str) -> FileCase:
    """Return a case, made if it is not there yet.

    Raises:
        LeftOut: When its file cannot be made here, or is not what it is called.
    """
    _, group, network, rest = name.split("/")
    file, _, mistake = rest.partition(",")
    home = folder(network)
    if group == "mistake":
        return _mistaken(name, home, file, mistake)
    path = _rewritten(home, file)
    lost = _loss(home, path)
    if group == "sound":
        if lost > SOUND_LOSS:
            raise LeftOut(f"not sound: loses {lost:.2g}")
        if (cut := _cut_off(home, path)) < VISIBLE:
            return FileCase(name, home, path, lost, ("match", "rounding"))
        return FileCase(name, home, path, lost, ("quantization",) if cut > 2 * VISIBLE else CUT_OFF)
    if lost < LOST:
        raise LeftOut(f"of use: loses {lost:.2g}")
    return FileCase(name, home, path, lost, ("range-overflow", "quantization") if "fp16" in file else ("quantization",))


def _rewritten(home: Path, file: str) -> Path:
    path = home / f"{file}.onnx"
    if not path.is_file():
        maker = {**SOUND, **USELESS}[f"{home.name}/{file}"]
        try:
            with quiet():
                onnx.save(maker(home), path.with_suffix(".part"))
        except ImportError as error:
            raise LeftOut(f"{error.name} is not installed") from error
        path.with_suffix(".part").rename(path)
    return path


def _twin(home: Path, file: str) -> onnx.ModelProto:
    """Return what the same tool makes of the network that was trained from another start."""
    path = home / f"{file}.another.onnx"
    if not path.is_file():
        with tempfile.TemporaryDirectory() as place, quiet():
            other = Path(place) / home.name
            other.mkdir()
            shutil.copy(home / "another.onnx", other / "model.onnx")
            shutil.copy(home / "calibration.npz", other)
            onnx.save(SOUND[f"{home.name}/{file}"](other), path)
    return onnx.load(path)


def _mistaken(name: str, home: Path, file: str, mistake: str) -> FileCase:
    sound = _rewritten(home, file)
    path = home / f"{file},{mistake}.onnx"
    original, least = _outputs(home, home / "model.onnx"), 0.0
    rounded = _outputs(home, sound)
    allowed = max(VISIBLE * _distance(original, rounded), NOISE)
    for draw in range(4):  # another place may show more
        random = np.random.default_rng([*name.encode(), draw])
        twin = _twin(home, file) if mistake == "another-checkpoint" else None
        changed = File(onnx.load(sound), twin, random)
        place = {**WEIGHTS, **STRUCTURE}[mistake](changed)
        if place is None:
            raise LeftOut("no place for the mistake")
        onnx.save(changed.model, path)
        try:
            wrong = _outputs(home, path)
        except Exception as error:  # an engine that refuses a file has said enough
            raise LeftOut(f"ONNX Runtime refuses it: {str(error)[:60]}") from error
        moved, lost = _distance(rounded, wrong, original), _distance(original, wrong)
        least = max(least, moved)
        if moved < allowed or (mistake in RANGES and lost < LOST):
            continue
        verdicts = ("quantization",) if mistake in RANGES else ("model-changed",)
        if mistake in ("zeros-differ", "scale-1.3", "zero-20", "wrong-axis", "s8-as-u8"):
            verdicts = (*verdicts, "quantization")  # which is: a scale or zero point does not fit
        return FileCase(name, home, path, lost, verdicts, _culprits(home, changed.model, place))
    raise LeftOut(f"moves the outputs by {least:.2g}, and {allowed:.2g} is requested")


def _culprits(home: Path, changed: onnx.ModelProto, place: Place) -> tuple[str, ...]:
    """Return the names that a mistake may be told by: in the changed file, and in the original."""
    original = onnx.load(home / "model.onnx").graph
    found = [*place.nodes, *(node.removesuffix("_quant") for node in place.nodes)]
    constants = {*place.weights}
    for name in place.weights:
        if name == OTHER_ZERO:
            continue
        stem = functools.reduce(lambda word, end: word.removesuffix(end), (*SUFFIXES, "_scale", "_zero_point"), name)
        constants.add(stem)
    found += [node.name for node in original.node if constants & {*node.input}]
    nodes = [node for node in changed.graph.node if node.name in place.nodes]
    found += _behind(changed.graph, nodes)
    known = {value for node in changed.graph.node for value in node.output}
    known |= {word.removesuffix(end) for word in known for end in ("_DequantizeLinear_Output", "_quantized")}
    makers = {value: node for node in original.node for value in node.output}
    for node in nodes:
        between: list[str] = []
        left = [word.removesuffix("_quantized").removesuffix("_QuantizeLinear_Output") for word in node.output]
        first = set(left)
        while left and len(between) <= BETWEEN:
            word = left.pop()
            if word in makers and (word in first or word not in known) and makers[word].name not in between:
                between.append(makers[word].name)
                left += makers[word].input
        if len(between) <= BETWEEN:
            found += between
    return tuple(dict.fromkeys(word for word in (*found, *sorted(constants)) if word))


def _behind(graph: onnx.GraphProto, nodes: Sequence[onnx.NodeProto]) -> list[str]:
    """Return what makes real numbers of products of integers: together they are one node of the original."""
    found: list[str] = []
    made = {value for node in nodes if node.op_type.endswith("Integer") for value in node.output}
    for node in graph.node:
        if made & {*node.input} and node.op_type in ("Cast", "Mul", "Add"):
            made |= {*node.output} if node.op_type != "Add" else set()
            found.append(node.name)
    return found


def _cut_off(home: Path, path: Path) -> float:
    """Return what ONNX Runtime's kernels here cut off in int16, as a multiple of what the file loses, on any feed."""
    if not sums_in_int16():
        return 0.0
    exact = unsigned_weights(Model.load(path))  # of the same numbers, summed in int32
    if exact is None:
        return 0.0
    with tempfile.TemporaryDirectory() as place:
        exact.save(other := Path(place) / "exact.onnx")
        every = (_outputs(home, home / "model.onnx"), _outputs(home, other), _outputs(home, path, deployed=True))
    ratios = [
        _distance([b], [c]) / max(_distance([a], [b]), NOISE)
        for outputs in zip(*every, strict=True) for a, b, c in zip(*outputs, strict=True)
    ]  # fmt: skip
    return max(ratios, default=0.0)


def _outputs(home: Path, path: Path, *, deployed: bool = False) -> Sequence[np.ndarray]:
    """Return the outputs of all feeds, by ONNX Runtime as the file says, or as it computes by itself."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    if not deployed:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    arrays = np.load(home / "real.npz")
    wanted = [value.name for value in session.get_inputs()]
    every = [session.run(None, {name: arrays[name][i] for name in wanted}) for i in range(len(arrays[wanted[0]]))]
    return [np.stack(found).astype(np.float64) for found in zip(*every, strict=True)]


def _loss(home: Path, path: Path) -> float:
    return _distance(_outputs(home, home / "model.onnx"), _outputs(home, path))


def _distance(first: Sequence[np.ndarray], other: Sequence[np.ndarray], of: Sequence[np.ndarray] = ()) -> float:
    """Return the largest relative RMS distance of outputs; infinite where one is not finite."""
    found = 0.0
    for a, b, whole in zip(first, other, of or first, strict=True):
        distance = float(np.linalg.norm(a - b) / np.linalg.norm(whole)) if a.shape == b.shape else np.inf
        found = max(found, distance if np.isfinite(distance) else np.inf)
    return found
