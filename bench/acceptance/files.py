"""Points 3 and 5: quantized files on processors with and without VNNI, and files of OpenVINO."""

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import onnx

from acceptance.case import FINE, Case, fine
from acceptance.feeds import eeg
from acceptance.networks import GRATINGS, data, gratings, pictures, saved

NNCF_PYTHON = Path("nncf/bin/python")
"""A Python that has NNCF and OpenVINO, in the folder of the bench."""
ORT = ("--target", "onnxruntime")
CUT = ("int16", "reduce-range|7 bits|uint8|x64quantprecision")


def _floats(folder: Path) -> tuple[str, tuple[str, ...]]:
    images, _ = pictures(6, 7)
    return saved(folder, GRATINGS, gratings()), data(folder, picture=images)


class _Reader:
    def __init__(self, feeds: list[Mapping[str, np.ndarray]]) -> None:
        self.rest = iter(feeds)

    def get_next(self) -> Mapping[str, np.ndarray] | None:
        return next(self.rest, None)


def _static(
    folder: Path, model: str, feeds: list[Mapping[str, np.ndarray]], activations: str, weights: str, **options: object
) -> str:
    from onnxruntime import quantization as q

    path, form = str(folder / "int8.onnx"), options.pop("form", "QDQ")
    q.quantize_static(
        model,
        path,
        _Reader(feeds),
        quant_format=getattr(q.QuantFormat, str(form)),
        activation_type=getattr(q.QuantType, activations),
        weight_type=getattr(q.QuantType, weights),
        **options,
    )
    return path


def _calibration() -> list[Mapping[str, np.ndarray]]:
    return [{"picture": image[None]} for image in pictures(40, 5)[0]]


def _quantized(
    folder: Path, activations: str, weights: str, *, alone: tuple[str, ...] = (), **options: object
) -> list[str]:
    model, feed = _floats(folder)
    file = _static(folder, model, _calibration(), activations, weights, **options)
    return [file, *feed, *alone] if alone else [model, *feed, "--target-model", file, *ORT]


def _dynamic(folder: Path, weights: str) -> list[str]:
    from onnxruntime import quantization as q

    r, path = np.random.default_rng(51), str(folder / "int8.onnx")
    text = """mlp (float[b,48] x) => (float[b,5] y) {
        h = MatMul(x, w1)
        a = Relu(h)
        g = MatMul(a, w2)
        s = Sigmoid(g)
        y = MatMul(s, w3)
    }"""
    model = saved(
        folder,
        text,
        {"w1": r.normal(0, 0.2, (48, 64)), "w2": r.normal(0, 0.2, (64, 64)), "w3": r.normal(0, 0.2, (64, 5))},
    )
    q.quantize_dynamic(model, path, weight_type=getattr(q.QuantType, weights))
    return [model, *data(folder, x=r.normal(0, 1, (6, 48)).astype(np.float32)), "--target-model", path, *ORT]


def _four_bits(folder: Path, form: str) -> list[str]:
    from onnxruntime.quantization import QuantFormat
    from onnxruntime.quantization import matmul_nbits_quantizer as n

    r = np.random.default_rng(52)
    text = """wide (float[b,t,96] x) => (float[b,t,96] y) {
        h = MatMul(x, w1)
        a = Tanh(h)
        g = MatMul(a, w2)
        y = Add(g, x)
    }"""
    model = saved(folder, text, {"w1": r.normal(0, 0.1, (96, 256)), "w2": r.normal(0, 0.06, (256, 96))}, opset=21)
    config = n.DefaultWeightOnlyQuantConfig(block_size=32, is_symmetric=False, quant_format=getattr(QuantFormat, form))
    quantizer = n.MatMulNBitsQuantizer(onnx.load(model), algo_config=config)
    quantizer.process()
    path = str(folder / "four.onnx")
    onnx.save(quantizer.model.model if hasattr(quantizer.model, "model") else quantizer.model, path)
    return [model, *data(folder, x=r.normal(0, 1, (2, 7, 96)).astype(np.float32)), "--target-model", path, *ORT]


def _points_of_shape_one(folder: Path) -> list[str]:
    words = _quantized(folder, "QUInt8", "QInt8")
    path = words[words.index("--target-model") + 1]
    model = onnx.load(path)
    for tensor in model.graph.initializer:
        if tensor.name.endswith(("_scale", "_zero_point")) and not tensor.dims:
            tensor.dims.append(1)
    onnx.save(model, path)
    return words


def _bright(folder: Path, *, alone: tuple[str, ...] = (), weights: str = "QInt8", **options: object) -> list[str]:
    """Write a network whose pairs of products are far beyond int16: bright pictures, weights of one sign."""
    text = """bright (float[b,8,10,10] picture) => (float[b,6,8,8] y) {
        c = Conv<kernel_shape=[3,3]>(picture, w, bias)
        y = Sigmoid(c)
    }"""
    r = np.random.default_rng(53)
    w = r.uniform(0.7, 1, (6, 8, 3, 3)) * 0.06
    model = saved(folder, text, {"w": w, "bias": -w.sum((1, 2, 3)) * 0.9})
    feeds = [{"picture": r.uniform(0.75, 1, (1, 8, 10, 10)).astype(np.float32)} for _ in range(8)]
    file = _static(folder, model, feeds, "QUInt8", weights, **options)
    feed = data(folder, picture=feeds[0]["picture"])
    return [file, *feed, *alone] if alone else [model, *feed, "--target-model", file, *ORT]


def _openvino(
    folder: Path,
    edit: Callable[[ElementTree.Element, bytearray], None] | None = None,
    *,
    half: bool = False,
    nncf: bool = False,
) -> list[str]:
    """Convert the gratings by ovc, or NNCF, edit the file, and ask about it."""
    model, feed = _floats(folder)
    path = folder / "model.xml"
    if nncf:
        np.save(folder / "calibration.npy", pictures(40, 5)[0])
        code = (
            f"import nncf, numpy as np, openvino as ov\nimages = np.load('{folder}/calibration.npy')[:, None]\n"
            f"ov.save_model(nncf.quantize(ov.convert_model({model!r}), nncf.Dataset(images)), {str(path)!r})"
        )
        subprocess.run([str(NNCF_PYTHON.absolute()), "-c", code], check=True, capture_output=True)
    else:
        code = (
            f"import openvino as ov\nov.save_model(ov.convert_model({model!r}), {str(path)!r}, compress_to_fp16={half})"
        )
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    if edit is not None:
        tree, numbers = ElementTree.parse(path), bytearray(path.with_suffix(".bin").read_bytes())
        edit(tree.getroot(), numbers)
        tree.write(path)
        path.with_suffix(".bin").write_bytes(bytes(numbers))
    return [model, *feed, "--target", f"openvino:file={path},precision=fp32"]


def _layers(root: ElementTree.Element, kind: str) -> list[ElementTree.Element]:
    return [layer for layer in root.iter("layer") if layer.get("type") == kind]


def _weight(root: ElementTree.Element, numbers: bytearray) -> None:
    """Add a third to what one filter of the second convolution holds."""
    for layer in _layers(root, "Const"):
        about = layer.find("data")
        assert about is not None
        if about.get("shape", "").replace(" ", "") == "12,12,3,3":
            kind = np.dtype(np.float16 if about.get("element_type") == "f16" else np.float32)
            start, size = int(about.get("offset", "")), int(about.get("size", ""))
            array = np.frombuffer(bytes(numbers[start : start + size]), kind).reshape(12, -1).copy()
            array[3:6] *= 1.33
            numbers[start : start + size] = array.tobytes()


def _attribute(kind: str, **changed: str) -> Callable[[ElementTree.Element, bytearray], None]:
    def edit(root: ElementTree.Element, numbers: bytearray) -> None:
        about = _layers(root, kind)[-1].find("data")
        assert about is not None
        for name, value in changed.items():
            assert name in about.attrib, about.attrib
            about.set(name, value)

    return edit


def _swapped(root: ElementTree.Element, numbers: bytearray) -> None:
    layer = _layers(root, "Subtract")[0].get("id")
    edges = [edge for edge in root.iter("edge") if edge.get("to-layer") == layer]
    first, second = (edge.get("to-port", "") for edge in edges)
    edges[0].set("to-port", second)
    edges[1].set("to-port", first)


def _range(root: ElementTree.Element, numbers: bytearray) -> None:
    """Halve the highest number that a quantizer behind the first convolutions gives back."""
    quantizers = [layer for layer in _layers(root, "FakeQuantize") if (layer.find("data") is not None)]
    layer = quantizers[len(quantizers) // 2]
    port = [p.get("id") for p in layer.find("input")][4]  # type: ignore[union-attr] # it has inputs
    source = next(
        e.get("from-layer")
        for e in root.iter("edge")
        if e.get("to-layer") == layer.get("id") and e.get("to-port") == port
    )
    about = next(c for c in root.iter("layer") if c.get("id") == source).find("data")
    assert about is not None
    start, size = int(about.get("offset", "")), int(about.get("size", ""))
    kind = np.dtype(np.float16 if about.get("element_type") == "f16" else np.float32)
    array = np.frombuffer(bytes(numbers[start : start + size]), kind) * kind.type(0.5)
    numbers[start : start + size] = array.tobytes()


def trained_in_half(folder: Path) -> list[str]:
    words = eeg(folder)
    path = folder / "half.xml"
    code = f"import openvino as ov\nov.save_model(ov.convert_model({words[0]!r}), {str(path)!r})"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    return [words[0], *words[3:], "--target", f"openvino:file={path},precision=fp32"]


CHANGED = ("model-changed",)
OPENVINO = ("--target", "openvino:precision=fp32")
CASES = (
    fine("u8s8-channel", 3, lambda f: _quantized(f, "QUInt8", "QInt8", per_channel=True)),
    fine("s8s8", 3, lambda f: _quantized(f, "QInt8", "QInt8")),
    fine("u8u8", 3, lambda f: _quantized(f, "QUInt8", "QUInt8")),
    fine("qoperator", 3, lambda f: _quantized(f, "QUInt8", "QInt8", form="QOperator")),
    Case(
        "qoperator-openvino",
        3,
        lambda f: _quantized(f, "QUInt8", "QInt8", form="QOperator", alone=OPENVINO),
        ("build-failed",),
        1,
        ("QGemm",),
    ),
    fine("dynamic-s8", 3, lambda f: _dynamic(f, "QInt8")),
    fine("dynamic-u8", 3, lambda f: _dynamic(f, "QUInt8")),
    fine("four-bits-qdq", 3, lambda f: _four_bits(f, "QDQ")),
    fine("four-bits-operator", 3, lambda f: _four_bits(f, "QOperator")),
    fine("points-of-shape-one", 3, _points_of_shape_one),
    Case("points-of-shape-one-avx2", 3, _points_of_shape_one, (*FINE, "quantization"), None, without_vnni=True),
    Case("bright-avx2", 3, _bright, ("quantization",), 1, CUT, without_vnni=True),
    Case("bright-alone-avx2", 3, lambda f: _bright(f, alone=ORT), ("quantization",), 1, CUT, without_vnni=True),
    Case(
        "bright-qoperator-avx2",
        3,
        lambda f: _bright(f, alone=ORT, form="QOperator"),
        (*FINE, "quantization"),
        None,
        never=("wrong at QLinearConv",),
        without_vnni=True,
    ),
    fine("bright-7-bits-avx2", 3, lambda f: _bright(f, reduce_range=True), without_vnni=True),
    fine("bright-u8u8-avx2", 3, lambda f: _bright(f, weights="QUInt8"), without_vnni=True),
    fine("ir", 5, _openvino),
    fine("ir-half", 5, lambda f: _openvino(f, half=True)),
    fine("ir-nncf", 5, lambda f: _openvino(f, nncf=True)),
    fine("ir-trained-half", 5, trained_in_half),
    Case("ir-weight", 5, lambda f: _openvino(f, _weight), CHANGED, 1, ("w2|Conv_c2",), culprit="c2"),
    Case("ir-half-weight", 5, lambda f: _openvino(f, _weight, half=True), CHANGED, 1, ("w2|Conv_c2",), culprit="c2"),
    Case(
        "ir-softmax-axis",
        5,
        lambda f: _openvino(f, _attribute("SoftMax", axis="0")),
        CHANGED,
        1,
        ("axis",),
        culprit="scores",
    ),
    Case(
        "ir-pads",
        5,
        lambda f: _openvino(f, _attribute("Convolution", pads_begin="0, 0", pads_end="2, 2")),
        CHANGED,
        1,
        ("pad",),
        culprit="c3",
    ),
    Case(
        "ir-edge",
        5,
        lambda f: _openvino(f, _swapped),
        CHANGED,
        1,
        ("Sub|order|operand|swap|exchang",),
        culprit="_d|Sub",
    ),
    Case(
        "ir-range",
        5,
        lambda f: _openvino(f, _range, nncf=True),
        ("model-changed", "quantization"),
        1,
        ("range|scale|quantiz",),
    ),
)
