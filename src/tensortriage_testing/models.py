"""ONNX models of any size, written without a training framework, whose numbers stay sane from input to output.

A tool that searches for bad numbers must be tried on models with good ones: random weights that let the signal vanish
or explode would make every operator look guilty. Weights here are drawn so that activations keep a root mean square of
order one: standard deviation sqrt(2 / fan-in) before a ReLU (He et al. 2015, equation 10), sqrt(1 / fan-in) otherwise.

================  ====================================================================================================
`encoder`         BERT-like transformer encoder, 50 nodes a layer
`conv_net`        residual convolutional network with BatchNormalization
`mlp`             fully connected network
`residual_dag`    exactly n nodes with skips and branches, for searches over graphs
`feed_for`        one feed for any of them: token ids and padded masks, or normal numbers
`save_model`      to a file, weights next to it if wanted
================  ====================================================================================================

All models: opset 17, IR version 8, float32, deterministic given ``seed``. Node ``NAME`` produces ``NAME_output_0``,
except where that is an output of the model, which has a plain name.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto

from tensortriage_testing.graph_writer import Dim, GraphWriter, floats, integers

_SHARPNESS = 2.0
"""Gain of queries and keys: scores of standard deviation 4 let a token pick others instead of averaging them all."""

_BRANCH_GAIN = 0.5
"""Gain of a branch's contribution to the stream: with it tokens still differ after 12 layers, else they all agree."""

_TOKEN_INPUTS = ("input_ids", "attention_mask")


# --- transformer encoder ----------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, kw_only=True)
class EncoderSizes:
    """The sizes of an `encoder`.

    Attributes:
        layers: Each adds 50 nodes (34 with fused LayerNorm) to the 18 (10) around them.
        width: Channels, a multiple of ``heads``; a layer holds about ``12 * width**2`` weights.
        heads: Attention heads.
        tokens: Length of every sequence, static.
        vocabulary: Number of token ids.
    """

    layers: int = 12
    width: int = 64
    heads: int = 4
    tokens: int = 64
    vocabulary: int = 1000

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise ValueError(f"width {self.width} is not a multiple of heads {self.heads}")


def encoder(*, batch: Dim = 2, decomposed_layernorm: bool = True, seed: int = 0, **sizes: int) -> onnx.ModelProto:
    """Return a BERT-like encoder: post-norm, GELU through Erf, an additive mask of -10000 (which float16 can hold).

    Inputs: ``input_ids`` and ``attention_mask``, int64 ``[batch, tokens]``. Outputs: ``last_hidden_state`` float32
    ``[batch, tokens, width]`` and ``pooler_output`` float32 ``[batch, width]``. Op types: Add, Cast, Div, Erf, Gather,
    Gemm, MatMul, Mul, Reshape, Softmax, Sub, Tanh, Transpose, Unsqueeze, and either Pow, ReduceMean and Sqrt or
    LayerNormalization.

    Args:
        batch: Sequences in a feed.
        decomposed_layernorm: LayerNorm as nine elementary operators, as exporters write it below opset 17, instead of
            one LayerNormalization.
        seed: Seed of the weights.
        sizes: Sizes of the network, as `EncoderSizes` has them.

    Raises:
        ValueError: ``width`` is not a multiple of ``heads``.
    """
    net, graph = EncoderSizes(**sizes), GraphWriter(seed)
    width, tokens = net.width, net.tokens
    norm = _layer_norm if decomposed_layernorm else _fused_layer_norm
    words = graph.normal("embeddings.word.weight", (net.vocabulary, width), 0.9)
    positions = graph.normal("embeddings.position.weight", (tokens, width), 0.4)
    found = graph.op("Gather", words, "input_ids", name="/embeddings/word/Gather", axis=0)
    x = norm(graph, graph.op("Add", found, positions, name="/embeddings/Add"), "/embeddings/norm", width)
    bias = _mask_bias(graph)
    for index in range(net.layers):
        layer = f"/layer.{index}"
        attended = _attention(graph, x, bias, f"{layer}/attention", net)
        x = norm(graph, graph.op("Add", attended, x, name=f"{layer}/Add"), f"{layer}/norm1", width)
        fed = _feed_forward(graph, x, f"{layer}/mlp", width)
        x = norm(graph, graph.op("Add", fed, x, name=f"{layer}/Add_1"), f"{layer}/norm2", width)
    x = graph.publish("last_hidden_state")
    first = graph.op("Gather", x, graph.weight("first_token", np.int64(0)), name="/pooler/Gather", axis=1)
    _gemm(graph, first, "/pooler", width, width)
    graph.op("Tanh", "/pooler/Gemm_output_0", name="/pooler/Tanh")
    graph.publish("pooler_output")
    return graph.finish(
        "encoder",
        [integers("input_ids", batch, tokens), integers("attention_mask", batch, tokens)],
        [floats("last_hidden_state", batch, tokens, width), floats("pooler_output", batch, width)],
    )


def _linear(graph: GraphWriter, x: str, name: str, fan_in: int, fan_out: int, *, gain: float = 1) -> str:
    """Add MatMul and Add, as exporters write a linear layer over three axes."""
    weight = graph.normal(f"{name}.weight", (fan_in, fan_out), gain / math.sqrt(fan_in))
    product = graph.op("MatMul", x, weight, name=f"{name}/MatMul")
    return graph.op("Add", product, graph.normal(f"{name}.bias", (fan_out,), 0.02), name=f"{name}/Add")


def _gemm(graph: GraphWriter, x: str, name: str, fan_in: int, fan_out: int, *, gain: float = 1) -> str:
    weight = graph.normal(f"{name}.weight", (fan_in, fan_out), gain / math.sqrt(fan_in))
    return graph.op("Gemm", x, weight, graph.normal(f"{name}.bias", (fan_out,), 0.02), name=f"{name}/Gemm")


def _layer_norm(graph: GraphWriter, x: str, name: str, width: int) -> str:
    mean = graph.op("ReduceMean", x, name=f"{name}/ReduceMean", axes=[-1], keepdims=1)
    centred = graph.op("Sub", x, mean, name=f"{name}/Sub")
    square = graph.op("Pow", centred, graph.scalar("exponent", 2), name=f"{name}/Pow")
    variance = graph.op("ReduceMean", square, name=f"{name}/ReduceMean_1", axes=[-1], keepdims=1)
    padded = graph.op("Add", variance, graph.scalar("epsilon", 1e-5), name=f"{name}/Add")
    deviation = graph.op("Sqrt", padded, name=f"{name}/Sqrt")
    unit = graph.op("Div", centred, deviation, name=f"{name}/Div")
    scaled = graph.op("Mul", unit, graph.normal(f"{name}.weight", (width,), 0.1, mean=1), name=f"{name}/Mul")
    return graph.op("Add", scaled, graph.normal(f"{name}.bias", (width,), 0.1), name=f"{name}/Add_1")


def _fused_layer_norm(graph: GraphWriter, x: str, name: str, width: int) -> str:
    gain, shift = graph.normal(f"{name}.weight", (width,), 0.1, mean=1), graph.normal(f"{name}.bias", (width,), 0.1)
    return graph.op("LayerNormalization", x, gain, shift, name=f"{name}/LayerNormalization", axis=-1, epsilon=1e-5)


def _mask_bias(graph: GraphWriter) -> str:
    """Turn the mask into ``[batch, 1, 1, tokens]``: 0 to look at a token, -10000 to ignore it."""
    mask = graph.op("Cast", "attention_mask", name="/mask/Cast", to=TensorProto.FLOAT)
    mask = graph.op("Unsqueeze", mask, graph.indices("mask_axes", 1, 2), name="/mask/Unsqueeze")
    hidden = graph.op("Sub", graph.scalar("one", 1), mask, name="/mask/Sub")
    return graph.op("Mul", hidden, graph.scalar("mask_value", -10000), name="/mask/Mul")


def _attention(graph: GraphWriter, x: str, bias: str, name: str, net: EncoderSizes) -> str:
    """Add 21 nodes."""
    tokens, width, heads, depth = net.tokens, net.width, net.heads, net.width // net.heads
    shape = graph.indices("split_heads", -1, tokens, heads, depth)

    def project(word: str, perm: list[int], gain: float) -> str:
        flat = _linear(graph, x, f"{name}/{word}", width, width, gain=gain)
        split = graph.op("Reshape", flat, shape, name=f"{name}/{word}/Reshape")
        return graph.op("Transpose", split, name=f"{name}/{word}/Transpose", perm=perm)

    query, key = project("query", [0, 2, 1, 3], _SHARPNESS), project("key", [0, 2, 3, 1], _SHARPNESS)
    value = project("value", [0, 2, 1, 3], 1)
    products = graph.op("MatMul", query, key, name=f"{name}/MatMul")
    scores = graph.op("Div", products, graph.scalar("sqrt_depth", math.sqrt(depth)), name=f"{name}/Div")
    masked = graph.op("Add", scores, bias, name=f"{name}/Add")
    weights = graph.op("Softmax", masked, name=f"{name}/Softmax", axis=-1)
    mixed = graph.op("MatMul", weights, value, name=f"{name}/MatMul_1")
    merged = graph.op("Transpose", mixed, name=f"{name}/Transpose", perm=[0, 2, 1, 3])
    flat = graph.op("Reshape", merged, graph.indices("merge_heads", -1, tokens, width), name=f"{name}/Reshape")
    return _linear(graph, flat, f"{name}/output", width, width, gain=_BRANCH_GAIN)


def _feed_forward(graph: GraphWriter, x: str, name: str, width: int) -> str:
    hidden = _linear(graph, x, f"{name}/fc1", width, 4 * width)
    ratio = graph.op("Div", hidden, graph.scalar("sqrt_two", math.sqrt(2)), name=f"{name}/act/Div")
    erf = graph.op("Erf", ratio, name=f"{name}/act/Erf")
    gate = graph.op("Add", erf, graph.scalar("one", 1), name=f"{name}/act/Add")
    product = graph.op("Mul", hidden, gate, name=f"{name}/act/Mul")
    gelu = graph.op("Mul", product, graph.scalar("half", 0.5), name=f"{name}/act/Mul_1")
    return _linear(graph, gelu, f"{name}/fc2", 4 * width, width, gain=_BRANCH_GAIN)


# --- convolutional and fully connected networks -----------------------------------------------------------------------


def conv_net(
    *, blocks: int = 3, channels: int = 16, size: int = 16, batch: Dim = 2, classes: int = 10, seed: int = 0
) -> onnx.ModelProto:
    """Return a residual network of ``8 * blocks + 6`` nodes: ``image [batch, 3, size, size]`` -> ``logits``.

    Op types: Add, BatchNormalization, Conv, Flatten, Gemm, GlobalAveragePool, MaxPool, Relu. ``size`` is even.
    """
    graph = GraphWriter(seed)
    x = _conv(graph, "image", "/stem", 3, channels)
    x = graph.op("Relu", x, name="/stem/Relu")
    x = graph.op("MaxPool", x, name="/pool/MaxPool", kernel_shape=[2, 2], strides=[2, 2])
    for index in range(blocks):
        block = f"/block.{index}"
        y = _batch_norm(graph, x, f"{block}/bn1", channels)
        y = _conv(graph, graph.op("Relu", y, name=f"{block}/Relu"), f"{block}/conv1", channels, channels)
        y = _batch_norm(graph, y, f"{block}/bn2", channels)
        y = _conv(graph, graph.op("Relu", y, name=f"{block}/Relu_1"), f"{block}/conv2", channels, channels)
        x = graph.op("Add", x, y, name=f"{block}/Add")
        x = _batch_norm(graph, x, f"{block}/bn3", channels)
    x = graph.op("GlobalAveragePool", x, name="/gap/GlobalAveragePool")
    _gemm(graph, graph.op("Flatten", x, name="/Flatten"), "/fc", channels, classes)
    graph.publish("logits")
    return graph.finish("conv_net", [floats("image", batch, 3, size, size)], [floats("logits", batch, classes)])


def _conv(graph: GraphWriter, x: str, name: str, channels_in: int, channels: int) -> str:
    weight = graph.normal(f"{name}.weight", (channels, channels_in, 3, 3), math.sqrt(2 / (9 * channels_in)))
    bias = graph.normal(f"{name}.bias", (channels,), 0.02)
    return graph.op("Conv", x, weight, bias, name=f"{name}/Conv", kernel_shape=[3, 3], pads=[1, 1, 1, 1])


def _batch_norm(graph: GraphWriter, x: str, name: str, channels: int) -> str:
    parameters = (
        graph.normal(f"{name}.weight", (channels,), 0.1, mean=1),
        graph.normal(f"{name}.bias", (channels,), 0.1),
        graph.normal(f"{name}.running_mean", (channels,), 0.1),
        graph.weight(f"{name}.running_var", graph.rng.uniform(1.2, 1.8, channels)),
    )
    return graph.op("BatchNormalization", x, *parameters, name=f"{name}/BatchNormalization", epsilon=1e-5)


def mlp(
    *, layers: int = 4, width: int = 64, features: int = 32, classes: int = 10, batch: Dim = 8, seed: int = 0
) -> onnx.ModelProto:
    """Return ``layers`` pairs of Gemm and Relu and a last Gemm: ``x [batch, features]`` -> ``logits``."""
    graph = GraphWriter(seed)
    x, fan_in = "x", features
    for index in range(layers):
        name = f"/layer.{index}"
        x = graph.op("Relu", _gemm(graph, x, name, fan_in, width, gain=math.sqrt(2)), name=f"{name}/Relu")
        fan_in = width
    _gemm(graph, x, "/head", fan_in, classes)
    graph.publish("logits")
    return graph.finish("mlp", [floats("x", batch, features)], [floats("logits", batch, classes)])


# --- directed acyclic graph -------------------------------------------------------------------------------------------

_UNARY: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "Erf": np.vectorize(math.erf, otypes=[float]),
    "LayerNormalization": lambda x: (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5),
    "Neg": np.negative,
    "Relu": lambda x: np.maximum(x, 0),
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Tanh": np.tanh,
}
_BINARY: Mapping[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "Add": np.add,
    "Mul": np.multiply,
    "Sub": np.subtract,
}


def residual_dag(nodes: int, *, seed: int = 0, width: int = 16, batch: Dim = 4) -> onnx.ModelProto:
    """Return a random graph of exactly ``nodes`` nodes in which every node matters: ``x [batch, width]`` -> ``y``.

    About half of the nodes continue a chain, the others join two values (skips) or start a branch that is joined again.
    All values have the shape of ``x``; each is also computed here on 64 random rows, and one whose root mean square
    would leave 0.3 to 3 is replaced by a rescaling MatMul or a Mean. Op types: Add, Erf, LayerNormalization, MatMul,
    Mean, Mul, Neg, Relu, Sigmoid, Sub, Tanh.

    Raises:
        ValueError: ``nodes`` is less than 1.
    """
    if nodes < 1:
        raise ValueError(f"a graph needs at least one node, not {nodes}")
    graph = GraphWriter(seed)
    known = {"x": graph.rng.standard_normal((64, width))}
    loose = ["x"]
    for index in range(nodes):
        left = nodes - index
        if left == len(loose) - 1:
            op_type, inputs = "Mean", loose[:2]
        else:
            op_type, inputs = _choose(graph.rng, list(known), loose, may_branch=left > len(loose))
        name, value = _grow(graph, known, op_type, inputs, index)
        known[name] = value
        loose = [other for other in loose if other not in inputs] + [name]
    graph.publish("y")
    return graph.finish("residual_dag", [floats("x", batch, width)], [floats("y", batch, width)])


def _choose(
    rng: np.random.Generator, known: Sequence[str], loose: Sequence[str], *, may_branch: bool
) -> tuple[str, list[str]]:
    """Return an op type and its inputs; ``loose`` holds the values that nothing reads yet."""
    kind = rng.choice(["chain", "join", "branch"], p=[0.5, 0.35, 0.15])
    tip = str(rng.choice(loose))
    others = [name for name in known if name != tip]
    if kind == "join" and others:
        return str(rng.choice(list(_BINARY))), [tip, str(rng.choice(others[-40:]))]
    if kind == "branch" and may_branch:
        tip = str(rng.choice(known))
    return str(rng.choice([*_UNARY, "MatMul", "MatMul"])), [tip]


def _grow(
    graph: GraphWriter, known: Mapping[str, np.ndarray], op_type: str, inputs: list[str], index: int
) -> tuple[str, np.ndarray]:
    """Add one node, another than requested where the result would be too small, too large or constant."""
    arrays = [known[name] for name in inputs]
    if op_type in _UNARY or op_type in _BINARY:
        value = _UNARY[op_type](*arrays) if op_type in _UNARY else _BINARY[op_type](*arrays)
        if not (0.3 < _rms(value) < 3 and _rms(value - value.mean(axis=0)) > 0.2):
            op_type = "MatMul" if op_type in _UNARY else "Mean"
    name = f"/{op_type}_{index}"
    width = arrays[0].shape[1]
    if op_type == "MatMul":
        rotation = np.linalg.qr(graph.rng.standard_normal((width, width)))[0] / _rms(arrays[0])
        return graph.op("MatMul", *inputs, graph.weight(f"{name}.weight", rotation), name=name), arrays[0] @ rotation
    if op_type == "Mean":
        return graph.op("Mean", *inputs, name=name), np.mean(arrays, axis=0)
    if op_type == "LayerNormalization":
        inputs = [*inputs, graph.weight("ones", np.ones(width))]
    return graph.op(op_type, *inputs, name=name), value


def _rms(array: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(array, dtype=np.float64))))


# --- feeds and files --------------------------------------------------------------------------------------------------


def feed_for(model: onnx.ModelProto, *, seed: int = 0, batch: int = 2) -> dict[str, np.ndarray]:
    """Return one feed for a model of this module.

    Token ids follow Zipf's law (few words are frequent) and stay below the vocabulary; masks are 1 for the first tokens
    of each sequence, at least half of them, and 0 for the padding, where ids are 0. Other inputs are normal numbers of
    variance 1; half of the variance of an image is its colour, which global pooling keeps.

    Args:
        model: Made by a builder of this module.
        seed: Seed of the numbers.
        batch: Size of symbolic dimensions.
    """
    rng = np.random.default_rng(seed)
    shapes = {
        value.name: tuple(d.dim_value if d.HasField("dim_value") else batch for d in value.type.tensor_type.shape.dim)
        for value in model.graph.input
    }
    feed = {name: _numbers(rng, shape) for name, shape in shapes.items() if name not in _TOKEN_INPUTS}
    if "input_ids" in shapes:
        sequences, tokens = shapes["input_ids"]
        (vocabulary,) = (w.dims[0] for w in model.graph.initializer if w.name == "embeddings.word.weight")
        lengths = rng.integers((tokens + 1) // 2, tokens + 1, (sequences, 1))
        mask = (np.arange(tokens) < lengths).astype(np.int64)
        words = 1 + (rng.zipf(1.3, (sequences, tokens)) - 1) % (vocabulary - 1)
        feed |= {"input_ids": words * mask, "attention_mask": mask}
    return feed


def _numbers(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    noise = rng.standard_normal(shape, np.float32)
    if len(shape) != 4:
        return noise
    colour = rng.standard_normal((*shape[:2], 1, 1), np.float32)
    return (noise + colour) * np.float32(math.sqrt(0.5))


def save_model(model: onnx.ModelProto, path: Path, *, external_data: bool = False) -> Path:
    """Write ``model`` and return ``path``; with ``external_data`` its weights go to ``NAME.onnx.data`` next to it."""
    location = f"{path.name}.data" if external_data else None
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    onnx.save_model(copy, path, save_as_external_data=external_data, location=location)
    return path
