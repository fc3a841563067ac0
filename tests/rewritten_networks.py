"""Small networks, and all that ONNX Runtime's optimizers, quantizers and generators make of each."""

import contextlib
import io
import logging
import warnings
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import parser

from tensortriage_testing import conv_net, encoder, feed_for, mlp, residual_dag

EXAMPLES = Path(__file__).parent.parent / "examples"
TEXTS = {
    "blocks of filters": (
        "(float[1,3,12,12] x) => (float[1,20,12,12] y) { a = Conv <pads=[1,1,1,1]> (x, {16,3,3,3}, {16}) b = "
        "Relu(a) c = Conv <pads=[1,1,1,1], group=16> (b, {16,1,3,3}, {16}) d = Clip(c, {=0}, {=6}) e = Conv (d, "
        "{24,16,1,1}, {24}) f = Relu(e) g = Conv <pads=[1,1,1,1], group=24> (f, {24,1,3,3}, {24}) h = LeakyRelu "
        "<alpha=0.1> (g) y = Conv(h, {20,24,1,1}, {20}) }"
    ),
    "pools and sizes": (
        "(float[1,3,12,12] x) => (float[1,10] y) { a = Conv <pads=[1,1,1,1]> (x, {16,3,3,3}, {16}) b = Relu(a) c = "
        "MaxPool <kernel_shape=[2,2], strides=[2,2]> (b) d = AveragePool <kernel_shape=[3,3], pads=[1,1,1,1]> (c) "
        'e = Resize <mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"> (d, , '
        "{=1,1,2,2}) f = Concat <axis=1> (e, b) g = Conv (f, {32,32,1,1}, {32}) h = Sigmoid(g) i = Conv(h, "
        '{32,32,1,1}) j = Add(i, h) k = Resize <mode="linear"> (j, , {=1,1,2,2}) l = Conv(k, {16,32,1,1}, {16}) m '
        "= GlobalAveragePool(l) n = Flatten(m) y = Gemm <transB=1> (n, {10,16}, {10}) }"
    ),
    "root mean squares": (
        "(float[2,6,16] x) => (float[2,6,16] y) { s = Pow(x, {=2}) m = ReduceMean <axes=[-1]> (s) e = Add(m, "
        "{=0.00001}) r = Sqrt(e) n = Div(x, r) w = Mul(n, {16}) a = MatMul(w, {16,32}) b = Mul(a, {=1.702}) c = "
        "Sigmoid(b) d = Mul(a, c) f = MatMul(d, {32,16}) y = Add(f, x) }"
    ),
    "gelu by tanh": (
        "(float[2,6,16] x) => (float[2,6,16] y) { a = MatMul(x, {16,32}) b = Add(a, {32}) c = Pow(b, {=3}) d = "
        "Mul(c, {=0.044715}) e = Add(b, d) f = Mul(e, {=0.7978846}) g = Tanh(f) h = Add(g, {=1}) i = Mul(b, h) j = "
        "Mul(i, {=0.5}) k = MatMul(j, {32,16}) l = Add(k, x) y = LayerNormalization(l, {16}, {16}) }"
    ),
    "recurrent": (
        "(float[5,2,12] x) => (float[5,2,6] y) { a, b, c = LSTM <hidden_size=8> (x, {1,32,12}, {1,32,8}, {1,64}) d "
        "= Squeeze(a, {=:1}) y = MatMul(d, {8,6}) }"
    ),
    "quantized images": (
        "(float[1,3,12,12] x) => (float[1,8,6,6] y) { a = Conv <pads=[1,1,1,1]> (x, {8,3,3,3}, {8}) b = Relu(a) c "
        "= MaxPool <kernel_shape=[2,2], strides=[2,2]> (b) d = Conv <pads=[1,1,1,1]> (c, {8,8,3,3}, {8}) e = "
        "Add(c, d) f = LeakyRelu <alpha=0.1> (e) g = Sigmoid(f) h = Mul(f, g) i = Concat <axis=1> (h, e) y = "
        "Conv(i, {8,16,1,1}, {8}) }"
    ),
    "rows and columns": (
        "(float[2,6,16] x) => (float[2,6,6] y) { a = Transpose <perm=[0,2,1]> (x) b = MatMul(x, a) c = Div(b, "
        "{=4}) y = Softmax <axis=-1> (c) }"
    ),
}
"""Networks as text: ``{8,3}`` is a drawn weight of that shape, ``{=1,2}`` a constant, ``{=:1}`` one of int64."""


def drawn(text):
    """Return the network of a text."""
    random, constants = np.random.default_rng(0), {}
    parts = text.split("{")
    head, rest = parts[0] + "{" + parts[1], parts[2:]
    for part in rest:
        inside, _, after = part.partition("}")
        name = f"w{len(constants)}"
        if inside.startswith("=:"):
            constants[name] = np.array([int(inside[2:])], np.int64)
        elif inside.startswith("="):
            numbers = np.array([float(word) for word in inside[1:].split(",")], np.float32)
            constants[name] = numbers if len(numbers) > 1 else numbers.reshape(())
        else:
            shape = [int(word) for word in inside.split(",")]
            constants[name] = (random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]) or 1)).astype(np.float32)
        head += name + after
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {head}')
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in constants.items())
    for index, node in enumerate(model.graph.node):
        node.name = f"{node.op_type}_{index}"
    return model


def bert():
    """Return an encoder layer as Hugging Face exports it, with embeddings and a mask."""
    random = np.random.default_rng(0)
    arrays, lines = {}, []

    def weight(name, *shape, scale=1.0):
        arrays[name] = (scale * random.standard_normal(shape)).astype(np.float32)

    def line(text):
        lines.append(text)

    for name, count in (("words", 30), ("places", 8), ("types", 2)):
        weight(name, count, 16)
    for name in ("g0", "b0", "g1", "b1", "g2", "b2", "bq", "bk", "bv", "bo", "bd"):
        weight(name, 16, scale=0.3)
    for name in "qkvo":
        weight(f"w{name}", 16, 16, scale=0.25)
    weight("wu", 16, 32, scale=0.25)
    weight("bu", 32)
    weight("wd", 32, 16, scale=0.2)
    arrays |= {"one": np.float32(1), "far": np.float32(-10000), "root": np.float32(2), "sqrt2": np.float32(2**0.5)}
    arrays |= {"half": np.float32(0.5), "at1": np.array([1]), "at2": np.array([2]), "ids8": np.arange(8)[None]}
    arrays |= {"apart": np.array([2, 8, 4, 4]), "whole": np.array([2, 8, 16])}
    line("m1 = Unsqueeze(mask, at1) m2 = Unsqueeze(m1, at2) m3 = Cast <to=1> (m2) m4 = Sub(one, m3) m5 = Mul(m4, far)")
    line("e1 = Gather(words, ids) e2 = Gather(types, segments) e3 = Add(e1, e2) e4 = Gather(places, ids8)")
    line("e5 = Add(e3, e4) x = LayerNormalization <axis=-1> (e5, g0, b0)")
    for name in "qkv":
        line(f"{name}1 = MatMul(x, w{name}) {name}2 = Add(b{name}, {name}1) {name}3 = Reshape({name}2, apart)")
    line(
        "q4 = Transpose <perm=[0,2,1,3]> (q3) k4 = Transpose <perm=[0,2,3,1]> (k3) v4 = Transpose <perm=[0,2,1,3]> (v3)"
    )
    line("s1 = MatMul(q4, k4) s2 = Div(s1, root) s3 = Add(s2, m5) s4 = Softmax <axis=-1> (s3) s5 = MatMul(s4, v4)")
    line("s6 = Transpose <perm=[0,2,1,3]> (s5) s7 = Reshape(s6, whole) s8 = MatMul(s7, wo) s9 = Add(bo, s8)")
    line("r1 = Add(s9, x) h = LayerNormalization <axis=-1> (r1, g1, b1) u1 = MatMul(h, wu) u2 = Add(bu, u1)")
    line("u3 = Div(u2, sqrt2) u4 = Erf(u3) u5 = Add(u4, one) u6 = Mul(u2, u5) u7 = Mul(u6, half)")
    line("d1 = MatMul(u7, wd) d2 = Add(bd, d1) d3 = Add(d2, h) y = LayerNormalization <axis=-1> (d3, g2, b2)")
    inputs = "int64[2,8] ids, int64[2,8] mask, int64[2,8] segments"
    text = f'<ir_version: 8, opset_import: ["" : 17]> g ({inputs}) => (float[2,8,16] y) {{ {" ".join(lines)} }}'
    model = parser.parse_model(text)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(np.asarray(a), name) for name, a in arrays.items())
    for index, node in enumerate(model.graph.node):
        node.name = f"{node.op_type}_{index}"
    return model


def example(name):
    return lambda: onnx.load(EXAMPLES / f"{name}.onnx")


NETWORKS = {
    "bert": bert,
    "encoder": lambda: encoder(layers=1, width=16, heads=2, tokens=8, vocabulary=50),
    "encoder_ln": lambda: encoder(layers=1, width=16, heads=2, tokens=8, vocabulary=50, decomposed_layernorm=False),
    "conv_net": lambda: conv_net(blocks=2, channels=12),
    "mlp": lambda: mlp(width=24),
    "residual_dag": lambda: residual_dag(30),
    "digits_cnn": example("digits_cnn"),
    "digits_vit": example("digits_vit"),
    "digits_vit_mask": example("digits_vit_mask"),
    "digits_vit_positions": example("digits_vit_positions"),
    **{name: (lambda text=text: drawn(text)) for name, text in TEXTS.items()},
}


def feed_of(model):
    """Return a feed of a network."""
    random, feed = np.random.default_rng(1), {}
    names = {value.name for value in model.graph.input}
    if names >= {"ids", "mask", "segments"}:
        mask = np.ones((2, 8), np.int64)
        mask[1, 5:] = 0
        return {"ids": random.integers(0, 30, (2, 8)), "mask": mask, "segments": random.integers(0, 2, (2, 8))}
    if names == {"x"}:
        for value in model.graph.input:
            shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
            feed[value.name] = random.standard_normal(shape, np.float32)
        return feed
    for file in ("digits_vit_mask.npz", "digits_vit_positions.npz", "digits.npz"):
        known = dict(np.load(EXAMPLES / file))
        if names == set(known) and model.graph.input[0].type.tensor_type.shape.dim[2].dim_value == 8:
            return {key: array[:2] if array.shape[0] == 32 else array for key, array in known.items()}
    return feed_for(model)


@contextlib.contextmanager
def quiet():
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def optimized(path, level, to):
    """Save what a session of ONNX Runtime runs."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, f"ORT_ENABLE_{level}")
    options.optimized_model_filepath = str(to)
    ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return to


class Samples:
    """A feed as calibration data."""

    def __init__(self, feed):
        self._left = iter([feed])

    def get_next(self):
        return next(self._left, None)


LIKE_ANOTHER = {"digits_vit_mask", "digits_vit_positions"}
"""Networks that differ from another, ``digits_vit``, in their attention: its products by weights are the same."""


def distinct_rewritten(name, folder):
    """Yield name and path of all that tools make of a network, each graph once."""
    known = set()
    for file, path in rewritten(name, folder):
        content = onnx.load(path).graph.SerializeToString(deterministic=True)
        if content not in known:
            known.add(content)
            yield file, path


def rewritten(name, folder):
    """Yield name and path of all that tools make of a network."""
    from onnxruntime import quantization
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
    from onnxruntime.transformers.optimizer import optimize_model

    source = NETWORKS[name]()
    feed = feed_of(source)
    path = folder / "model.onnx"
    onnx.save(source, path)
    options = {"DefaultTensorType": onnx.TensorProto.FLOAT}  # behind operators that ONNX does not know
    for level in ("BASIC", "EXTENDED", "ALL"):
        yield f"offline {level}", optimized(path, level, folder / f"{level}.onnx")
    for kind in ("bert", "gpt2", "vit", "t5", "clip", "unet", "vae", "bart", "swin", "conformer"):
        to = folder / f"{kind}.onnx"
        with quiet():
            made = optimize_model(str(path), model_type=kind, num_heads=0, hidden_size=0, opt_level=0)
            made.save_model_to_file(str(to))
            yield f"transformers {kind}", to
            if kind in ("bert", "vit"):
                made.convert_float_to_float16(keep_io_types=True)
                made.save_model_to_file(str(to.with_suffix(".half.onnx")))
                yield f"transformers {kind} fp16", to.with_suffix(".half.onnx")
                quantization.quantize_dynamic(str(to), str(to.with_suffix(".int8.onnx")), extra_options=options)
                yield f"transformers {kind} dynamic", to.with_suffix(".int8.onnx")
    forms = () if name in LIKE_ANOTHER else ("QDQ", "QOperator")
    for form in forms:
        for types, channels in (("u8u8", False), ("u8s8", True), ("s8s8", False)):
            kinds = {"u8": quantization.QuantType.QUInt8, "s8": quantization.QuantType.QInt8}
            to = folder / f"{form}{types}.onnx"
            with quiet():
                quantization.quantize_static(
                    str(path), str(to), Samples(feed), quant_format=quantization.QuantFormat[form],
                    activation_type=kinds[types[:2]], weight_type=kinds[types[2:]], per_channel=channels,
                )  # fmt: skip
            yield f"{form} {types}", to
            if types != "s8s8" or form == "QDQ":  # the optimizer fails on QLinearConv of signed bytes on some CPUs
                yield f"{form} {types}, offline", optimized(to, "ALL", folder / f"{form}{types}-all.onnx")
    for kind in ("QInt8", "QUInt8"):
        to = folder / f"{kind}.onnx"
        with quiet():
            quantization.quantize_dynamic(str(path), str(to), weight_type=quantization.QuantType[kind])
        yield f"dynamic {kind}", to
        yield f"dynamic {kind}, offline", optimized(to, "ALL", folder / f"{kind}-all.onnx")
    for bits, block, symmetric in () if name in LIKE_ANOTHER else ((4, 16, True), (4, 32, False), (8, 32, True)):
        to = folder / f"{bits}-{block}.onnx"
        with quiet():
            tool = MatMulNBitsQuantizer(onnx.load(path), bits=bits, block_size=block, is_symmetric=symmetric)
            tool.process()
        tool.model.save_model_to_file(str(to))
        yield f"{bits} bits", to
        yield f"{bits} bits, offline", optimized(to, "ALL", folder / f"{bits}-{block}-all.onnx")
