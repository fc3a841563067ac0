"""What fp16 cannot hold, and what quantizers wrote: second collection."""

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

from reports import FILE, TARGET, inputs, model, normal, report, reweighted, rewriting, save
from reports.exporters import CHANGED
from reports.formats import FP16, LOST
from reports.quantization import QUANTIZED, convolutions, quantized

LARGE = ("65504|largest|too large|overflow|beyond",)


GPU = TARGET + "script:engine.py,hardware=gpu,precision=fp16"
"""A kernel that keeps a sum of squares in fp16; what rounds results alone does not."""


def summed_in_fp16(op_type: str, axes: str, *, centred: bool) -> None:
    """Write an engine whose normalization of this operator takes the mean of squares in fp16."""
    rewriting(f"""
        if node.op_type == "{op_type}":
            at, result, x = list(made.graph.node).index(node), node.output[0], node.input[0]
            steps = []
            if "{op_type}".startswith("Skip"):
                steps.append(("Add", [x, node.input[1]], "sum_", {{}}))
                x = "sum_"
            gain = node.input[2] if "{op_type}".startswith("Skip") else node.input[1]
            if {centred}:
                steps += [("ReduceMean", [x], "middle_", {{"axes": {axes}}}), ("Sub", [x, "middle_"], "apart_", {{}})]
                x = "apart_"
                for name in (gain, node.input[2]):
                    steps.append(("Unsqueeze", [name, "behind_"], f"{{name}}_wide", {{}}))
                made.graph.initializer.append(numpy_helper.from_array(np.array([1, 2]), "behind_"))
                gain = f"{{gain}}_wide"
            made.graph.initializer.append(numpy_helper.from_array(np.float32(1e-5), "little_"))
            steps += [("Mul", [x, x], "square_", {{}}), ("Cast", ["square_"], "half_", {{"to": 10}}),
                      ("Cast", ["half_"], "again_", {{"to": 1}}),
                      ("ReduceMean", ["again_"], "wide_", {{"axes": {axes}}}),
                      ("Add", ["wide_", "little_"], "some_", {{}}), ("Sqrt", ["some_"], "root_", {{}}),
                      ("Div", [x, "root_"], "even_", {{}})]
            if {centred}:
                steps += [("Mul", ["even_", gain], "scaled_", {{}}),
                          ("Add", ["scaled_", f"{{node.input[2]}}_wide"], result, {{}})]
            else:
                steps.append(("Mul", ["even_", gain], result, {{}}))
            made.graph.node.remove(node)
            for name, operands, output, attributes in reversed(steps):
                made.graph.node.insert(at, helper.make_node(name, operands, [output], **attributes))
            break""")


@report("microsoft/onnxruntime#29034", GPU, LOST, LARGE, "LayerNormalization")
def root_mean_square_of_large_rows() -> None:
    """The square of a residual stream of thousands is Inf in fp16: normalized rows are 0, and nothing is NaN."""
    onnx.save(model(
        """(float[4,32] x, float[4,32] skip) => (float[4,8] y) {
        n = com.microsoft.SkipSimplifiedLayerNormalization<epsilon=1.0e-5>(x, skip, gain)
        y = MatMul(n, w) }""",
        domain="com.microsoft", gain=np.ones(32, np.float32), w=normal(1, 32, 8, scale=0.3),
    ), "model.onnx")  # fmt: skip
    summed_in_fp16("SkipSimplifiedLayerNormalization", "[-1]", centred=False)
    x, skip = normal(2, 4, 32, scale=2000), normal(3, 4, 32, scale=2000)
    x[:, 3] = 9000
    inputs(x=x, skip=skip)


@report("microsoft/onnxruntime#10079", GPU, LOST, LARGE, "InstanceNormalization")
def variance_of_an_instance() -> None:
    """InstanceNormalization of large features is the same for every picture in fp16: the variance is Inf."""
    save(model(
        """(float[2,3,16,16] x) => (float[2,5] y) {
        c = Conv<kernel_shape=[3,3]>(x, w)
        n = InstanceNormalization(c, gain, shift)
        r = Relu(n)
        p = GlobalMaxPool(r)
        f = Flatten(p)
        y = MatMul(f, v) }""",
        w=normal(1, 8, 3, 3, 3, scale=30), gain=1 + normal(2, 8, scale=0.1), shift=normal(3, 8, scale=0.1),
        v=normal(4, 8, 5, scale=0.4),
    ))  # fmt: skip
    summed_in_fp16("InstanceNormalization", "[2, 3]", centred=True)
    inputs(x=normal(5, 2, 3, 16, 16, scale=4))


@report("pytorch/pytorch#60939", FP16, LOST, LARGE, "MatMul")
def scores_beyond_fp16() -> None:
    """The product of queries and keys is Inf in fp16, and NaN behind Softmax; it has to be scaled before."""
    save(model(
        """(float[1,10,64] x) => (float[1,10,8] y) {
        q = MatMul(x, wq)
        k = MatMul(x, wk)
        kt = Transpose<perm=[0,2,1]>(k)
        s = MatMul(q, kt)
        scaled = Mul(s, factor)
        a = Softmax<axis=-1>(scaled)
        o = MatMul(a, x)
        y = MatMul(o, v) }""",
        wq=normal(1, 64, 64), wk=normal(2, 64, 64), factor=np.array(2e-5, np.float32), v=normal(3, 64, 8),
    ))  # fmt: skip
    inputs(x=normal(4, 1, 10, 64, scale=14))


@report("microsoft/onnxconverter-common#295", FILE, (*CHANGED, "range-overflow"), ("10,?000|1e\\+?0?4|clip|cut|limit",),
        "rate|Mul|16000|22050", needs="onnxconverter_common", live=True)  # fmt: skip
def constants_cut_at_ten_thousand() -> None:
    """The converter to fp16 cuts constants at 10000, though fp16 goes to 65504: a rate of 22050 is another one."""
    made = model(
        """(float[4,16] x) => (float[4,6] y) {
        a = MatMul(x, w)
        hertz = Mul(a, rate)
        part = Div(hertz, window)
        s = Sin(part)
        y = MatMul(s, v) }""",
        w=normal(1, 16, 16, scale=0.2), rate=np.array(22050, np.float32), window=np.array(8192, np.float32),
        v=normal(2, 16, 6, scale=0.4),
    )  # fmt: skip
    save(made)
    from onnxconverter_common import float16

    save(float16.convert_float_to_float16(made, keep_io_types=True), "target.onnx")
    inputs(x=normal(3, 4, 16))


def pair(made: onnx.ModelProto, tensor: str, scale: np.ndarray, zero: np.ndarray, axis: int = 1) -> None:
    """Put a quantizer and its inverse behind a tensor, in place."""
    names = [f"{tensor}_scale", f"{tensor}_zero_point"]
    for name, array in zip(names, (np.asarray(scale, np.float32), zero), strict=True):
        made.graph.initializer.append(numpy_helper.from_array(array, name))
    at = max([i + 1 for i, n in enumerate(made.graph.node) if tensor in n.output], default=0)
    for node in made.graph.node:
        for i, name in enumerate(node.input):
            if name == tensor:
                node.input[i] = f"{tensor}_DequantizeLinear_Output"
    first, second = f"{tensor}_QuantizeLinear", f"{tensor}_DequantizeLinear"
    made.graph.node.insert(at, helper.make_node(
        "DequantizeLinear", [f"{first}_Output", *names], [f"{second}_Output"], name=second, axis=axis))  # fmt: skip
    made.graph.node.insert(at, helper.make_node(
        "QuantizeLinear", [tensor, *names], [f"{first}_Output"], name=first, axis=axis))  # fmt: skip


@report("NVIDIA/TensorRT#1694", FILE, (*QUANTIZED, *CHANGED), ("axis",), "w|Dequantize|ConvTranspose")
def scales_along_the_other_axis() -> None:
    """A transposed convolution's scales, one for each output channel, are taken along the axis of its inputs."""
    w = normal(1, 12, 12, 3, 3, scale=0.3) * np.geomspace(0.05, 2, 12).astype(np.float32)[None, :, None, None]
    made = model(
        """(float[1,3,8,8] x) => (float[1,12,17,17] y) {
        c = Conv<kernel_shape=[1,1]>(x, u)
        r = Relu(c)
        y = ConvTranspose<kernel_shape=[3,3], strides=[2,2]>(r, w) }""",
        u=normal(2, 12, 3, 1, 1), w=w,
    )  # fmt: skip
    save(made)
    file = onnx.ModelProto.FromString(made.SerializeToString())
    scale = np.abs(w).max((0, 2, 3)) / 127
    q = np.clip(np.rint(w / scale[None, :, None, None]), -127, 127).astype(np.int8)
    file.graph.initializer.remove(next(t for t in file.graph.initializer if t.name == "w"))
    for name, array in (
        ("w_quantized", q),
        ("w_scale", scale.astype(np.float32)),
        ("w_zero_point", np.zeros(12, np.int8)),
    ):
        file.graph.initializer.append(numpy_helper.from_array(array, name))
    file.graph.node[-1].input[1] = "w_DequantizeLinear_Output"
    file.graph.node.insert(0, helper.make_node(
        "DequantizeLinear", ["w_quantized", "w_scale", "w_zero_point"], ["w_DequantizeLinear_Output"],
        name="w_DequantizeLinear", axis=0,
    ))  # fmt: skip
    save(file, "target.onnx")
    inputs(x=normal(3, 1, 3, 8, 8))


@report("microsoft/Olive#623", FILE, QUANTIZED, ("negative|zero.point|clip|cut|below|range",), "c1|Conv")
def unsigned_without_a_zero_point() -> None:
    """Values of both signs are quantized to unsigned bytes with a zero point of 0: what is negative becomes 0."""
    made = model(
        """(float[1,3,12,12] x) => (float[1,5] y) {
        c1 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w1)
        t = Tanh(c1)
        c2 = Conv<kernel_shape=[3,3]>(t, w2)
        p = GlobalAveragePool(c2)
        f = Flatten(p)
        y = MatMul(f, v) }""",
        w1=normal(1, 8, 3, 3, 3, scale=0.2), w2=normal(2, 8, 8, 3, 3, scale=0.2), v=normal(3, 8, 5),
    )  # fmt: skip
    save(made)
    file = onnx.ModelProto.FromString(made.SerializeToString())
    pair(file, "c1", 3.2 / 127, np.array(0, np.uint8))
    pair(file, "c2", 3.2 / 127, np.array(0, np.int8))
    save(file, "target.onnx")
    inputs(x=normal(4, 1, 3, 12, 12))


@report("huggingface/optimum#151", FILE, QUANTIZED,
        ("outlier|range|float|one scale|share|channel|coarse|nodes_to_exclude",), "MatMul_d|'d'|h")  # fmt: skip
def products_that_dynamic_quantization_ruins() -> None:
    """A few MatMuls cost all of the accuracy: single activations a hundred times larger than the rest."""
    w1 = normal(1, 32, 64, scale=0.2)
    w1[:, 7] *= 150
    w2 = normal(2, 64, 32, scale=0.2)
    w2[7] /= 150
    save(model(
        """(float[6,32] x) => (float[6,4] y) {
        a = MatMul(x, w0)
        n = LayerNormalization(a, gain)
        b = MatMul(n, w1)
        h = Relu(b)
        d = MatMul(h, w2)
        s = Add(d, n)
        m = LayerNormalization(s, gain)
        y = MatMul(m, v) }""",
        w0=normal(5, 32, 32, scale=0.2), gain=np.ones(32, np.float32), w1=w1, w2=w2, v=normal(3, 32, 4, scale=0.3),
    ))  # fmt: skip
    quantize_dynamic("model.onnx", "target.onnx", weight_type=QuantType.QInt8, per_channel=True, reduce_range=True)
    inputs(x=normal(4, 6, 32))


@report("openvinotoolkit/nncf#1861", FILE, QUANTIZED, ("float|scale|range|step|coarse|ignored",),
        "variance|square|deviation|Sqrt|Pow|Div")  # fmt: skip
def layer_normalization_in_int8() -> None:
    """Quantizers stand inside a layer normalization: the variance of a quiet row is below one step of a loud one's."""
    from reports.formats import norm

    made = norm(1e-5)
    save(made)
    x = normal(4, 8, 64)
    x[:7] *= 0.05
    x[7] *= 12
    file = onnx.ModelProto.FromString(made.SerializeToString())
    pair(file, "square", float(np.square(x).max()) / 255, np.array(0, np.uint8))
    pair(file, "some", float(x.var(1).max()) / 255, np.array(0, np.uint8))
    pair(file, "deviation", float(x.std(1).max()) / 255, np.array(0, np.uint8))
    save(file, "target.onnx")
    inputs(x=x)


@report("microsoft/onnxruntime#25823", FILE, ("rounding", "match"), ())
def zero_point_of_127() -> None:
    """Symmetric ranges in unsigned bytes got a zero point of 127 for 128: odd, and no fault, for the scale fits it."""
    save(convolutions())
    quantized([normal(s, 1, 3, 16, 16) for s in range(10, 18)], activation_type=QuantType.QUInt8,
              per_channel=True, extra_options={"ActivationSymmetric": True})  # fmt: skip
    stored = {t.name: numpy_helper.to_array(t) for t in onnx.load("target.onnx").graph.initializer}
    zero = {name: np.array(127, np.uint8) for name, a in stored.items() if a.dtype == np.uint8 and int(a.max()) == 128}
    save(reweighted(onnx.load("target.onnx"), **zero), "target.onnx")
    inputs(x=normal(20, 1, 3, 16, 16))
