"""Files, quantizers and programs with one mistake each, and sound ones: what `bench/causes.py` asks about.

Each mistake is made by hand in a right file, or by numpy code of a program that returns something else than its network
computes, as people and tools make them. `UNSEEN` are those that nothing was built on.
"""

import dataclasses
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from causes_networks import NETWORKS, array, classifier, put
from onnx import helper
from reports import normal

PROGRAM = """
import numpy as np
import onnxruntime


class App:
    def compile(self, model_path, options):
        self.session = onnxruntime.InferenceSession({path!r})
        self.names = [output.name for output in self.session.get_outputs()]
        return self

    def run(self, feed):
        r = dict(zip(self.names, self.session.run(self.names, feed)))
        {body}
        return {{name: np.ascontiguousarray(array) for name, array in r.items()}}
"""
Edit = Callable[[onnx.ModelProto], None]


@dataclasses.dataclass(frozen=True)
class CauseCase:
    """One pair.

    Attributes:
        name: What was done.
        network: Of `NETWORKS`.
        said: Regular expressions that the summary has to hold; empty where no cause may be told.
        body: What a program does to its results ``r``; of files None.
        edit: The change of the file; of a quantized file before or behind `quantized`.
        quantized: How the file is quantized: arguments of `quantized`; None for a file in float32.
        seen: Whether something was built on it.
    """

    name: str
    network: str
    said: Sequence[str] = ()
    body: str | None = None
    edit: Edit | None = None
    quantized: Mapping[str, object] | None = None
    seen: bool = True

    def write(self, folder: Path) -> dict[str, object]:
        """Write the case's files; return what `DiagnoseRequest` takes of engines and files."""
        right, feed = NETWORKS[self.network]()
        onnx.save(right, folder / "model.onnx")
        np.savez(folder / "inputs.npz", **feed)
        if self.body is not None:
            (folder / "app.py").write_text(PROGRAM.format(path=str(folder / "model.onnx"), body=self.body))
            return {"target": f"script:{folder / 'app.py'}:App"}
        other = right if self.quantized is None else quantized(right, feed, **self.quantized)  # type: ignore[arg-type] # options
        other = onnx.ModelProto.FromString(other.SerializeToString())
        if self.edit is not None:
            self.edit(other)
        onnx.save(other, folder / "other.onnx")
        return {"target": "onnxruntime", "target_model": folder / "other.onnx"}


def maker(made: onnx.ModelProto, value: str) -> onnx.NodeProto:
    """Return the node that makes a value."""
    return next(node for node in made.graph.node if value in node.output)


def weight(name: str, change: Callable[[np.ndarray], np.ndarray]) -> Edit:
    """Return an edit of a constant."""

    def edit(made: onnx.ModelProto) -> None:
        before = array(made, name)
        put(made, name, np.asarray(change(before)).astype(before.dtype))

    return edit


def operands(value: str, *names: str) -> Edit:
    """Return an edit of what a node reads."""

    def edit(made: onnx.ModelProto) -> None:
        node = maker(made, value)
        del node.input[:]
        node.input.extend(names)

    return edit


def behind(value: str, operator: str, **attributes: object) -> Edit:
    """Return an edit that puts an op behind a value."""

    def edit(made: onnx.ModelProto) -> None:
        node = maker(made, value)
        for reader in made.graph.node:
            for place, name in enumerate(reader.input):
                if name == value:
                    reader.input[place] = f"{value}_more"
        more = helper.make_node(operator, [value], [f"{value}_more"], name="more", **attributes)
        made.graph.node.insert(list(made.graph.node).index(node) + 1, more)

    return edit


def operator(value: str, name: str, **attributes: object) -> Edit:
    """Return an edit of the operator of a node."""

    def edit(made: onnx.ModelProto) -> None:
        node = maker(made, value)
        node.op_type = name
        del node.attribute[:]
        node.attribute.extend(helper.make_attribute(key, each) for key, each in attributes.items())

    return edit


def baked(value: str, feed: Mapping[str, np.ndarray], *, drop: str = "") -> Edit:
    """Return an edit that makes a value the constant that it is on one feed, without the ops before it."""

    def edit(made: onnx.ModelProto) -> None:
        import onnxruntime  # an engine

        shown = onnx.ModelProto.FromString(made.SerializeToString())
        del shown.graph.output[:]
        shown.graph.output.add(name=value)
        (numbers,) = onnxruntime.InferenceSession(shown.SerializeToString()).run([value], dict(feed))
        made.graph.node.remove(maker(made, value))
        put(made, value, numbers)
        while True:
            used = {name for node in made.graph.node for name in node.input} | {o.name for o in made.graph.output}
            dead = [node for node in made.graph.node if used.isdisjoint(node.output)]
            if not dead:
                break
            for node in dead:
                made.graph.node.remove(node)
        for given in [given for given in made.graph.input if given.name == drop]:
            made.graph.input.remove(given)

    return edit


def outputs(order: Mapping[str, str]) -> Edit:
    """Return an edit that gives outputs each other's names."""

    def edit(made: onnx.ModelProto) -> None:
        for node in made.graph.node:
            for place, name in enumerate(node.output):
                node.output[place] = order.get(name, name)

    return edit


def adapted(rank: int, *names: str) -> Edit:
    """Return an edit that takes what a LoRA adapter added off."""

    def edit(made: onnx.ModelProto) -> None:
        for number, name in enumerate(names):
            rows, columns = array(made, name).shape
            moved = normal(50 + number, rows, rank, scale=0.3) @ normal(60 + number, rank, columns, scale=0.4)
            put(made, name, array(made, name) - moved)

    return edit


def quantized(
    right: onnx.ModelProto, feed: Mapping[str, np.ndarray], *, channels: bool = True, signed: bool = False,
    data: Callable[[np.ndarray], np.ndarray] = lambda x: x, before: Edit | None = None,
) -> onnx.ModelProto:  # fmt: skip
    """Return a model in QDQ form by ONNX Runtime's quantizer, calibrated on other data or made of another model."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Reader(CalibrationDataReader):
        def __init__(self) -> None:
            self.feeds = iter([{name: np.asarray(data(x), np.float32) for name, x in feed.items()}])

        def get_next(self) -> dict[str, np.ndarray] | None:
            return next(self.feeds, None)

    made = onnx.ModelProto.FromString(right.SerializeToString())
    if before is not None:
        before(made)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        onnx.save(made, folder / "float.onnx")
        quantize_static(
            folder / "float.onnx", folder / "int8.onnx", Reader(), quant_format=QuantFormat.QDQ, per_channel=channels,
            activation_type=QuantType.QInt8 if signed else QuantType.QUInt8, weight_type=QuantType.QInt8,
        )  # fmt: skip
        return onnx.load(folder / "int8.onnx")


def rounded(*names: str, by: Callable[[np.ndarray], np.ndarray]) -> Edit:
    """Return an edit of the integers of weights: made anew by another rounding."""

    def edit(made: onnx.ModelProto) -> None:
        originals, _ = classifier()
        for name in names:
            node = next(
                n for n in made.graph.node if n.op_type == "DequantizeLinear" and n.input[0] == f"{name}_quantized"
            )
            scale, was = array(made, node.input[1]), array(originals, name)
            axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 0)
            shape = [-1 if each == axis else 1 for each in range(was.ndim)] if scale.ndim else []
            put(made, node.input[0], np.clip(by(was / scale.reshape(shape)), -128, 127).astype(np.int8))

    return edit


def few_bits(bits: int, *names: str) -> Edit:
    """Return an edit that rounds weights to so many bits."""
    top = 2 ** (bits - 1) - 1

    def edit(made: onnx.ModelProto) -> None:
        for name in names:
            numbers = array(made, name)
            step = np.abs(numbers).max() / top
            put(made, name, (np.round(numbers / step) * step).astype(np.float32))

    return edit


def as_unsigned(name: str) -> Edit:
    """Return an edit that keeps int8 bytes as uint8."""

    def edit(made: onnx.ModelProto) -> None:
        for each in (f"{name}_quantized", f"{name}_zero_point"):
            put(made, each, array(made, each).view(np.uint8))

    return edit


ONES = {"x": normal(77, 2, 8, 16), "mask": np.ones((2, 8), np.int64)}
Y = "y = r['output'].copy(); x = y.copy(); "
MISTAKES: tuple[CauseCase, ...] = (
    CauseCase("corners for centres", "detector", ("0..3", "corners .* made of centre"),
              Y + "y[:, :2] = x[:, :2] - x[:, 2:4] / 2; y[:, 2:4] = x[:, :2] + x[:, 2:4] / 2; r['output'] = y"),
    CauseCase("each axis by its own size", "detector", ("multiplied by \\[2.0, 1.125, 2.0, 1.125\\]",),
              Y + "y[:, [0, 2]] *= 2; y[:, [1, 3]] *= 720 / 640; r['output'] = y"),
    CauseCase("objectness multiplied in", "detector", ("5..8", "multiplied by index 4"),
              Y + "y[:, 5:] *= y[:, 4:5]; r['output'] = y"),
    CauseCase("a quarter of the buffer", "detector", ("first 144 of 576", "1/4"),
              Y + "y.ravel()[144:] = 0; r['output'] = y"),
    CauseCase("rows with padding", "segmenter", ("rows of 32 numbers, 20 and padding",),
              "y = r['mask']; z = np.zeros((1, 6, 18, 32), y.dtype); z[..., :20] = y; "
              "r['mask'] = z.ravel()[:y.size].reshape(y.shape)"),
    CauseCase("labels from 1", "labels", ("'label'", "plus 1"), "r['label'] = r['label'] + 1"),
    CauseCase("a mask of one example", "attention", ("constant 'seen'|constant 'u'", "input 'mask'", "do not depend"),
              edit=baked("seen", ONES, drop="mask")),
    CauseCase("no mask", "attention", ("do not depend on input 'mask'", "Softmax"), edit=operands("p", "t")),
    CauseCase("scale twice", "attention", ("not in the reference's model, which reads 't'",),
              edit=behind("t", "Sigmoid")),
    CauseCase("shift for scale", "attention", ("operands 1 and 2 exchanged", "LayerNormalization"),
              edit=operands("ln", "res", "bt", "g")),
    CauseCase("adapter not merged", "attention", ("rank 2", "LoRA", "2 of 6|3 of 7|3 of 6|2 of 7"),
              edit=adapted(2, "wq", "wv", "w1")),
    CauseCase("places one off", "attention", ("Gather", "\\[1, 2, 3, 4, 5, 6, 7, 8\\] instead of \\[0, 1"),
              edit=weight("places", lambda x: x + 1)),
    CauseCase("outputs exchanged", "heads", ("'a' holds 'b'", "'b' holds 'a'"), edit=outputs({"a": "b", "b": "a"})),
    CauseCase("parts exchanged", "heads", ("Concat", "operands 0 and 1 exchanged"), edit=operands("cc", "m1", "sum")),
    CauseCase("rounded down", "classifier", ("rounded down", "falls from"), quantized={},
              edit=rounded("w1", "w2", "w3", by=np.floor)),
    CauseCase("scales moved on", "classifier", ("'w2_DequantizeLinear'", "moved by 1"), quantized={},
              edit=weight("w2_scale", lambda x: np.roll(x, 1))),
    CauseCase("reciprocal of a scale", "classifier", ("reciprocal",), quantized={},
              edit=weight("r1_scale", lambda x: 1 / x)),
    CauseCase("calibrated on pixels", "classifier", ("calibrated on inputs from 0", "pixels from 0 to 255"),
              quantized={"data": lambda x: np.clip(x * 57 + 120, 0, 255)}),
)  # fmt: skip
UNSEEN: tuple[CauseCase, ...] = (
    CauseCase("corners of a picture of another size", "detector", ("0..3", "corners .* made of centre", "multiplied"),
              Y + "y[:, :2] = (x[:, :2] - x[:, 2:4] / 2) * 1.5; y[:, 2:4] = (x[:, :2] + x[:, 2:4] / 2) * 1.5; "
              "r['output'] = y"),
    CauseCase("upper left corner for centre", "detector", ("corner and size .* made of centre",),
              Y + "y[:, :2] = x[:, :2] - x[:, 2:4] / 2; r['output'] = y"),
    CauseCase("bands not taken off", "detector", ("moved by", "-80", "index|indices"),
              Y + "y[:, 1] -= 80; r['output'] = y"),
    CauseCase("scores below 0.3", "detector", ("threshold between 0.2",),
              Y + "y[:, 4:] = np.where(y[:, 4:] < 0.3, 0, y[:, 4:]); r['output'] = y"),
    CauseCase("planes with padding", "segmenter", ("rows of 384 numbers, 360 and padding",),
              "y = r['mask']; z = np.zeros((6, 384), y.dtype); z[:, :360] = y.reshape(6, 360); "
              "r['mask'] = z.ravel()[:y.size].reshape(y.shape)"),
    CauseCase("what was in memory before", "segmenter", ("first 1,000 of 2,160",),
              "y = r['mask'].copy(); y.ravel()[1000:] = np.random.default_rng(1).normal(0, 50, y.size - 1000); "
              "r['mask'] = y"),
    CauseCase("classes one on", "labels", ("'scores'", "moved by 1 along axis 1"),
              "r['scores'] = np.roll(r['scores'], 1, 1)"),
    CauseCase("lengths of rows normalized by rank", "labels", ("sorted along axis 1, ascending",),
              "r['scores'] = np.sort(r['scores'], 1)"),
    CauseCase("attention of one example", "attention", ("constant 'p'", "inputs 'mask' and 'x'"),
              edit=baked("p", ONES)),
    CauseCase("mask the other way round", "attention", ("Where", "operands 1 and 2 exchanged"),
              edit=operands("u", "seen", "low", "t")),
    CauseCase("another temperature", "attention", ("Mul", "0.125 instead of 0.3536"),
              edit=weight("scale", lambda x: np.full_like(x, 0.125))),
    CauseCase("adapter of one weight", "attention", ("rank 3", "LoRA"), edit=adapted(3, "wk")),
    CauseCase("three outputs in a ring", "heads", ("'a' holds", "'b' holds", "'c' holds"),
              edit=outputs({"a": "b", "b": "c", "c": "a"})),
    CauseCase("divisor for dividend", "heads", ("Div", "operands 0 and 1 exchanged"), edit=operands("d", "p1", "sum")),
    CauseCase("another gate", "heads", ("Sigmoid instead of HardSigmoid",), edit=operator("c", "Sigmoid")),
    CauseCase("a Relu too many", "heads", ("Relu 'more' is not in the reference's model",), edit=behind("sum", "Relu")),
    CauseCase("rounded towards 0", "classifier", ("rounded towards 0", "falls from"), quantized={"channels": False},
              edit=rounded("w1", "w2", "w3", by=np.trunc)),
    CauseCase("rounded to 3 bits before", "classifier", ("rounded to 3 bits before",),
              quantized={"before": few_bits(3, "w2", "w3")}),
    CauseCase("scales in reverse", "classifier", ("'w3_DequantizeLinear'", "scales of its channels in another order"),
              quantized={}, edit=weight("w3_scale", lambda x: x[::-1])),
    CauseCase("bytes of another sign", "classifier", ("int8 bytes kept as uint8",), quantized={"channels": False},
              edit=as_unsigned("w2")),
    CauseCase("bias left out", "classifier", ("'b3_DequantizeLinear'", "is 0 everywhere"), quantized={},
              edit=weight("b3_quantized", lambda x: x * 0)),
    CauseCase("calibrated on fractions", "pixels", ("calibrated on inputs from 0 to", "numbers from 0 to 1"),
              quantized={"data": lambda x: x / 255}),
)  # fmt: skip
UNSEEN = tuple(dataclasses.replace(case, seen=False) for case in UNSEEN)


def renamed(made: onnx.ModelProto) -> None:
    """Give every node another name."""
    for number, node in enumerate(made.graph.node):
        node.name = f"n{number}"


def sound() -> Iterator[CauseCase]:
    """Yield pairs of which no cause of these may be told."""
    for network in NETWORKS:
        yield CauseCase(f"{network}: honest program", network, body="pass")
        yield CauseCase(f"{network}: renamed file", network, edit=renamed)
    for channels in (False, True):
        for signed in (False, True):
            for network in ("classifier", "pixels"):
                name = f"{network}: sound int8, {'channels' if channels else 'one scale'}, {'s8' if signed else 'u8'}"
                yield CauseCase(name, network, quantized={"channels": channels, "signed": signed})
    yield CauseCase("another weight", "attention", edit=weight("wv", lambda x: normal(99, *x.shape, scale=0.4)))
    yield CauseCase("noise in a weight", "heads", edit=weight("w2", lambda x: x + normal(98, *x.shape, scale=0.02)))
    yield CauseCase("right in fp16", "heads", edit=weight("w2", lambda x: x.astype(np.float16)))
    yield CauseCase("noise in a quantized weight", "classifier",
                    quantized={"before": weight("w3", lambda x: x + normal(97, *x.shape, scale=0.03))})  # fmt: skip
    yield CauseCase(
        "noise of a program",
        "segmenter",
        body="r['mask'] = r['mask'] + np.random.default_rng(0).normal(0, 0.01, r['mask'].shape).astype('f')",
    )
    yield CauseCase(
        "wrong in one plane", "segmenter", body="y = r['mask'].copy(); y[:, 2] = y[:, 2] ** 2 + y[:, 1]; r['mask'] = y"
    )
