"""Files of OpenVINO as people make them, sound and with one mistake each, given with ``file=``.

    python bench/networks NETS heldout            # once, where PyTorch is
    python bench/openvino_files.py NETS [--kept DIR] [--only sound|mistakes] [--networks bert unet]

Sound are files of ovc (in float32 and with weights in float16), of PrePostProcessor where the meaning stays, and, where
NNCF is installed, quantized ones: int8 after training, and weights of 8 and 4 bits. They must be silent in `run` and
`diagnose`. A mistake is one edit of such a file; it must be of the right kind, and a culprit (or the sentence) must
name the op, the constant or the input that was edited. Prints a row per file, and the two counts.
"""

import argparse
import dataclasses
import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import openvino as ov

try:
    import nncf
except ImportError:
    nncf = None

SILENT = ("match", "rounding")
WRONG = ("model-changed", "quantization", "local-fault")
PRECISION = "precision=fp32"
PLACES = "coordinate_transformation_mode"
TYPES = {
    "u4": np.uint8,
    "i4": np.uint8,
    "f32": np.float32,
    "f16": np.float16,
    "u8": np.uint8,
    "i8": np.int8,
    "i64": np.int64,
}


class File:
    """An .xml and its .bin, to be edited in place."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.net = ElementTree.parse(path).getroot()
        self.content = bytearray(path.with_suffix(".bin").read_bytes())
        self.layers = {int(layer.attrib["id"]): layer for layer in self.net.find("layers")}
        self.sources: dict[tuple[int, int], int] = {}
        for edge in self.net.find("edges"):
            self.sources[int(edge.attrib["to-layer"]), int(edge.attrib["to-port"])] = int(edge.attrib["from-layer"])

    def of(self, kind: str, number: int = 0) -> ElementTree.Element:
        """Return one of the layers of a kind."""
        return [layer for layer in self.layers.values() if layer.attrib["type"] == kind][number]

    def operands(self, layer: ElementTree.Element) -> list[ElementTree.Element]:
        """Return the layers that a layer reads."""
        number = int(layer.attrib["id"])
        return [self.layers[source] for (reader, _), source in sorted(self.sources.items()) if reader == number]

    def constant(self, layer: ElementTree.Element) -> np.ndarray:
        """Return the numbers of the Const that a layer is, or that its first operands lead to; edits are kept."""
        while layer.attrib["type"] != "Const":
            layer = self.operands(layer)[0]
        data = layer.find("data").attrib
        dtype = np.dtype(TYPES[data["element_type"]])
        count = int(data["size"]) // dtype.itemsize
        array = np.frombuffer(self.content, dtype, count, int(data["offset"]))
        shape = [int(size) for size in data["shape"].split(",") if size.strip()]
        return array if data["element_type"] in ("u4", "i4") else array.reshape(shape)

    def save(self) -> Path:
        """Write it over what it was read from."""
        ElementTree.ElementTree(self.net).write(self.path)
        self.path.with_suffix(".bin").write_bytes(self.content)
        return self.path


# -- sound files -------------------------------------------------------------------------------------------------------


def plain(model: Path, path: Path, *, half: bool) -> Path:
    ov.save_model(ov.convert_model(str(model)), str(path), compress_to_fp16=half)
    return path


def prepared(model: Path, path: Path, change: Callable[[ov.preprocess.PrePostProcessor], None]) -> Path:
    """Write a file whose inputs or outputs PrePostProcessor changed."""
    steps = ov.preprocess.PrePostProcessor(ov.convert_model(str(model)))
    change(steps)
    ov.save_model(steps.build(), str(path), compress_to_fp16=False)
    return path


def channels_last(steps: ov.preprocess.PrePostProcessor) -> None:
    steps.input(0).tensor().set_layout(ov.Layout("NHWC"))
    steps.input(0).model().set_layout(ov.Layout("NCHW"))


def half_input(steps: ov.preprocess.PrePostProcessor) -> None:
    steps.input(0).tensor().set_element_type(ov.Type.f64)


def half_output(steps: ov.preprocess.PrePostProcessor) -> None:
    steps.output(0).tensor().set_element_type(ov.Type.f64)


def calibration(model: Path, count: int = 8) -> list[dict[str, np.ndarray]]:
    """Return inputs like those of a network."""
    random = np.random.default_rng(0)
    feed = dict(np.load(model.with_suffix(".npz")))
    noisy = [
        {
            n: a if a.dtype.kind != "f" else (a + random.normal(0, 0.3 * a.std(), a.shape)).astype(a.dtype)
            for n, a in feed.items()
        }
        for _ in range(count - 1)
    ]
    return [feed, *noisy]


def quantized(model: Path, path: Path) -> Path:
    """Write a file of NNCF, int8 after training."""
    made = nncf.quantize(ov.convert_model(str(model)), nncf.Dataset(calibration(model)))
    ov.save_model(made, str(path), compress_to_fp16=False)
    return path


def compressed(model: Path, path: Path, **options: object) -> Path:
    """Write a file of NNCF whose weights alone have few bits."""
    made = nncf.compress_weights(ov.convert_model(str(model)), **options)
    ov.save_model(made, str(path))
    return path


def kinds() -> dict[str, Callable[[Path, Path], Path]]:
    """Return what makes sound files, by their names."""
    found: dict[str, Callable[[Path, Path], Path]] = {
        "fp32": functools.partial(plain, half=False),
        "fp16 weights": functools.partial(plain, half=True),
        "nhwc": functools.partial(prepared, change=channels_last),
        "f64 output": functools.partial(prepared, change=half_output),
    }
    if nncf is not None:
        nncf.set_log_level(50)
        four = {"ratio": 1.0, "all_layers": True}
        found |= {
            "int8": quantized,
            "int8 weights": compressed,
            "int4 weights": functools.partial(
                compressed, mode=nncf.CompressWeightsMode.INT4_SYM, group_size=-1, **four
            ),
            "int4 groups": functools.partial(compressed, mode=nncf.CompressWeightsMode.INT4_ASYM, group_size=8, **four),
        }
    return found


SOUND = {
    "audio": ("fp32", "fp16 weights", "int8"),
    "bert": ("fp16 weights", "int8", "int8 weights", "int4 weights", "int4 groups"),
    "convnext": ("fp32", "nhwc", "int8", "int4 groups"),
    "keypoints": ("fp16 weights", "nhwc", "int8", "f64 output"),
    "squeeze": ("fp32", "fp16 weights", "nhwc", "int8", "int4 groups"),
    "tagger": ("fp16 weights", "int8 weights", "f64 output"),
    "unet": ("fp32", "fp16 weights", "int8", "int8 weights"),
}


# -- mistakes ----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Mistake:
    """One edit.

    Attributes:
        network: Of which network.
        kind: Of the sound file.
        edit: Makes it; returns names of which one must be told.
        words: What it is.
    """

    network: str
    kind: str
    words: str
    edit: Callable[[File], list[str]]


def _whole_name(file: File, layer: ElementTree.Element) -> list[str]:
    """Return the names of a layer and of the Add behind it, which the converter made of one node."""
    name = layer.attrib["name"]
    return [name, name.removesuffix("/WithoutBiases")]


def weights(kind: str, number: int, change: Callable[[np.ndarray], np.ndarray]) -> Callable[[File], list[str]]:
    """Return an edit of the weight of a layer."""

    def edit(file: File) -> list[str]:
        layer = file.of(kind, number)
        array = file.constant(file.operands(layer)[1])
        array[...] = change(array.copy())
        return _whole_name(file, layer)

    return edit


def every_weight(file: File) -> list[str]:
    random = np.random.default_rng(5)
    for layer in file.layers.values():
        if layer.attrib["type"] in ("Convolution", "MatMul"):
            array = file.constant(file.operands(layer)[1])
            if array.size > 16:
                array[...] = random.permutation(array.reshape(-1)).reshape(array.shape)
    return [""]


def attribute(kind: str, number: int, key: str, value: str) -> Callable[[File], list[str]]:
    def edit(file: File) -> list[str]:
        layer = file.of(kind, number)
        layer.find("data").attrib[key] = value
        return _whole_name(file, layer)

    return edit


def operand(
    kind: str, number: int, place: int, change: Callable[[np.ndarray], np.ndarray]
) -> Callable[[File], list[str]]:
    """Return an edit of one constant operand of a layer."""

    def edit(file: File) -> list[str]:
        layer = file.of(kind, number)
        array = file.constant(file.operands(layer)[place])
        array[...] = change(array.copy())
        return [layer.attrib["name"], *(source.attrib["name"] for source in file.operands(layer)[:1])]

    return edit


def ranges(number: int, factors: tuple[float, float]) -> Callable[[File], list[str]]:
    """Return an edit of the range of a FakeQuantize: its ends times a factor each."""

    def edit(file: File) -> list[str]:
        layer = file.of("FakeQuantize", number)
        once: set[int] = set()
        for place, factor in zip((1, 2, 3, 4), (*factors, *factors), strict=True):
            const = file.operands(layer)[place]
            if const.attrib["id"] not in once:
                array = file.constant(const)
                array[...] = array * np.float32(factor)
            once.add(const.attrib["id"])
        return [layer.attrib["name"], file.operands(layer)[0].attrib["name"]]

    return edit


def decompression(kind: str, number: int, change: Callable[[np.ndarray], np.ndarray]) -> Callable[[File], list[str]]:
    """Return an edit of the constant that a Subtract or Multiply of stored integers reads."""

    def edit(file: File) -> list[str]:
        found = [
            layer
            for layer in file.layers.values()
            if layer.attrib["type"] == kind
            and any(word in layer.attrib["name"] for word in ("fq_weights", "zero_point"))
        ]
        layer = found[number]
        array = file.constant(file.operands(layer)[1])
        array[...] = change(array.copy())
        reader = layer
        while reader.attrib["type"] not in ("MatMul", "Convolution", "GroupConvolution", "Gather"):
            number_ = int(reader.attrib["id"])
            reader = next(file.layers[to] for (to, _), source in file.sources.items() if source == number_)
        return [layer.attrib["name"], *_whole_name(file, reader)]

    return edit


def means(steps: ov.preprocess.PrePostProcessor) -> None:
    steps.input(0).model().set_layout(ov.Layout("NCHW"))
    steps.input(0).preprocess().mean([0.485, 0.456, 0.406]).scale([0.229, 0.224, 0.225])


def scaled(steps: ov.preprocess.PrePostProcessor) -> None:
    steps.input(0).preprocess().scale(255.0)


def reversed_channels(steps: ov.preprocess.PrePostProcessor) -> None:
    steps.input(0).tensor().set_layout(ov.Layout("NCHW"))
    steps.input(0).preprocess().reverse_channels()


PREPARED = {"means and deviations": means, "scale of 255": scaled, "channels reversed": reversed_channels}


def _nothing(file: File) -> list[str]:
    return ["prepares its input itself"]


def _swapped(array: np.ndarray) -> np.ndarray:
    array[[0, 1]] = array[[1, 0]]
    return array


WEIGHT = "Convolution"
MISTAKES = (
    Mistake("unet", "fp32", "a weight times 1.1", weights(WEIGHT, 1, lambda array: array * 1.1)),
    Mistake("squeeze", "fp16 weights", "a weight rolled by one", weights(WEIGHT, 0, lambda array: np.roll(array, 1))),
    Mistake("bert", "fp32", "another checkpoint", every_weight),
    Mistake("audio", "fp16 weights", "a weight times 1.2", weights(WEIGHT, 2, lambda array: array * np.float16(1.2))),
    Mistake("keypoints", "means and deviations", "means and deviations baked in", _nothing),
    Mistake("squeeze", "scale of 255", "a scale baked in", _nothing),
    Mistake("convnext", "channels reversed", "channels reversed", _nothing),
    Mistake("bert", "fp32", "an epsilon of 0.1", attribute("MVN", 0, "eps", "0.1")),
    Mistake("convnext", "fp16 weights", "an epsilon of 0.03", attribute("MVN", 1, "eps", "0.03")),
    Mistake("unet", "fp32", "other coordinates of a resize", attribute("Interpolate", 0, PLACES, "asymmetric")),
    Mistake("audio", "fp32", "another alpha", attribute("Elu", 0, "alpha", "0.5")),
    Mistake("tagger", "fp32", "an embedding times 3", operand("Gather", 0, 0, lambda array: array * 3)),
    Mistake("squeeze", "fp32", "two rows of a weight swapped", weights(WEIGHT, 3, _swapped)),
    Mistake("unet", "int8", "the range of an activation a third", ranges(4, (1 / 3, 1 / 3))),
    Mistake("squeeze", "int8", "the range of an activation five times", ranges(6, (5.0, 5.0))),
    Mistake("convnext", "int8", "the range of an activation halved", ranges(3, (0.5, 0.5))),
    Mistake("bert", "int8 weights", "a scale times 1.2", decompression("Multiply", 2, lambda a: a * np.float16(1.2))),
    Mistake("bert", "int4 groups", "zero points off by up to three", decompression("Subtract", 2, lambda a: a ^ 0x33)),
    Mistake("keypoints", "int8", "a weight rolled by one", weights(WEIGHT, 1, lambda array: np.roll(array, 1))),
    Mistake("bert", "int8", "scales of two rows swapped", decompression("Multiply", 1, _swapped)),
)


# -- asking ------------------------------------------------------------------------------------------------------------


def triage(*words: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "tensortriage", *words]
    return subprocess.run(command, capture_output=True, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"})


def sound(nets: Path, folder: Path, networks: list[str]) -> Iterator[bool]:
    """Yield for each sound file whether both commands are silent."""
    known = kinds()
    for network in networks:
        for kind in SOUND[network]:
            if kind not in known:
                continue
            model = nets / f"{network}.onnx"
            file = known[kind](model, folder / f"{network}-{kind.replace(' ', '-')}.xml")
            words = [
                str(model),
                "--inputs",
                str(model.with_suffix(".npz")),
                "--target",
                f"openvino:file={file},{PRECISION}",
            ]
            run, verdict = triage("run", *words).returncode, diagnosed(words, folder / file.stem)
            right = run == 0 and verdict["verdict"] in SILENT
            show(right, network, kind, run, verdict)
            yield right


def mistaken(nets: Path, folder: Path, networks: list[str]) -> Iterator[bool]:
    """Yield for each mistake whether it is told, of the right kind, by its name."""
    known = kinds()
    for number, mistake in enumerate(MISTAKES):
        if mistake.network not in networks or (mistake.kind not in known and mistake.kind not in PREPARED):
            continue
        model = nets / f"{mistake.network}.onnx"
        path = folder / f"mistake-{number}.xml"
        make = known.get(mistake.kind) or functools.partial(prepared, change=PREPARED[mistake.kind])
        file = File(make(model, path))
        names = mistake.edit(file)
        file.save()
        words = [
            str(model),
            "--inputs",
            str(model.with_suffix(".npz")),
            "--target",
            f"openvino:file={path},{PRECISION}",
        ]
        run, verdict = triage("run", *words).returncode, diagnosed(words, folder / path.stem)
        told = " ".join(
            [verdict["summary"], *(f"{c['node']} {c['value']} {c['reason']}" for c in verdict["culprits"][:3])]
        )
        right = verdict["verdict"] in WRONG and any(name in told for name in names)
        show(right, mistake.network, mistake.words, run, verdict)
        yield right


def show(right: bool, network: str, what: str, run: int, verdict: dict) -> None:
    words = f"{'ok ' if right else 'BAD'} {network:10} {what:36} run {run}  {verdict['verdict']:14} "
    print(words + verdict["summary"][:200], flush=True)


def diagnosed(words: list[str], case: Path) -> dict:
    done = triage("diagnose", *words, "--case", str(case), "--fresh")
    path = case / "verdict.json"
    if not path.is_file():
        return {"verdict": f"exit {done.returncode}", "summary": done.stderr.decode()[-300:], "culprits": []}
    return json.loads(path.read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nets", type=Path)
    parser.add_argument("--kept", type=Path, help="where files and cases are kept")
    parser.add_argument("--only", choices=("sound", "mistakes"))
    parser.add_argument("--networks", nargs="+", default=list(SOUND))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.kept or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for name, ask in (("sound", sound), ("mistakes", mistaken)):
            if arguments.only in (None, name):
                found = list(ask(arguments.nets, folder, arguments.networks))
                print(f"{name}: {sum(found)} of {len(found)} right")


if __name__ == "__main__":
    main()
