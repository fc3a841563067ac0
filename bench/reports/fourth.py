"""Exporters, compilers, engines and quantizers over the whole field: fourth collection."""

import numpy as np
import onnx

from reports import FILE, PYTORCH, inputs, model, normal, report, rewriting, save
from reports.exporters import CHANGED, network
from reports.formats import LOST
from reports.kernels import ENGINE, LOCAL
from reports.narrow import GPU
from reports.programs import picture


@report("Tencent/ncnn#4508", ENGINE, LOCAL, ("\\brows?\\b|broadcast|axis 0|first",), "Add")
def added_to_the_first_row_alone() -> None:
    """A row [1, n] is added to the first row of a matrix, where it has to be added to every one."""
    save(model(
        """(float[5,8] x, float[1,6] shift) => (float[5,6] y) {
        a = MatMul(x, w)
        s = Add(a, shift)
        y = Relu(s) }""",
        w=normal(1, 8, 6, scale=0.4),
    ))  # fmt: skip
    rewriting("""
        if node.op_type == "Add":
            at = list(made.graph.node).index(node)
            made.graph.initializer.append(numpy_helper.from_array(np.zeros((4, 6), np.float32), "others_"))
            rows = helper.make_node("Concat", [node.input[1], "others_"], ["rows_"], axis=0)
            node.input[1] = "rows_"
            made.graph.node.insert(at, rows)
            break""")
    inputs(x=normal(2, 5, 8), shift=normal(3, 1, 6))


@report("pytorch/pytorch#186080", PYTORCH, CHANGED, ("order|permut|transpos|wrong places|interleav",), "SpaceToDepth",
        needs="torch")  # fmt: skip
def pixels_unshuffled_in_another_order() -> None:
    """PixelUnshuffle became SpaceToDepth, which puts the block in front of the channel: PyTorch puts it behind."""
    network(
        "return F.relu(self.conv(F.pixel_unshuffle(x, 2)))",
        "torch.randn(1, 3, 8, 8)",
        "self.conv = nn.Conv2d(12, 5, 1)",
    )
    import net

    made, (x,) = net.make()
    save(model(
        """(float[1,3,8,8] x) => (float[1,5,4,4] y) {
        blocks = SpaceToDepth<blocksize=2>(x)
        c = Conv<kernel_shape=[1,1]>(blocks, conv_weight, conv_bias)
        y = Relu(c) }""",
        conv_weight=made.conv.weight.detach().numpy(), conv_bias=made.conv.bias.detach().numpy(),
    ))  # fmt: skip
    inputs(x=x.numpy())


@report("microsoft/onnxruntime#17325", ENGINE, LOCAL, ("\\bpads?\\b|padding|border|shift",), "Conv_c\\b")
def pads_named_in_another_order() -> None:
    """WebNN's padding is top, bottom, left, right, and gets ONNX's pads, which are top, left, bottom, right."""
    save(model(
        """(float[1,3,15,16] x) => (float[1,5] y) {
        c = Conv<kernel_shape=[3,3], strides=[2,2], pads=[0,0,1,1]>(x, w, b)
        r = Relu(c)
        d = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(r, v)
        s = Relu(d)
        p = GlobalMaxPool(s)
        f = Flatten(p)
        y = Gemm(f, u) }""",
        w=normal(1, 8, 3, 3, 3, scale=0.3), b=normal(2, 8, scale=0.1), v=normal(3, 8, 8, 3, 3, scale=0.2),
        u=normal(4, 8, 5),
    ))  # fmt: skip
    rewriting("""
        for a in node.attribute:
            if a.name == "pads" and node.op_type == "Conv":
                top, bottom, left, right = a.ints
                a.ints[:] = [top, left, bottom, right]""")
    inputs(x=normal(5, 1, 3, 15, 16))


@report("alibaba/MNN#2916", ENGINE, ("fusion-fault",), ("fus|fold|merg|together", "BatchNormalization"),
        "ConvTranspose|BatchNormalization")  # fmt: skip
def normalization_merged_into_groups() -> None:
    """A converter merges BatchNormalization into a ConvTranspose with groups along the wrong axis of its weight."""
    save(model(
        """(float[1,8,6,6] x) => (float[1,3,13,13] y) {
        a = Relu(x)
        t = ConvTranspose<kernel_shape=[3,3], strides=[2,2], group=4>(a, w)
        n = BatchNormalization(t, gain, shift, mean, variance)
        r = Relu(n)
        y = Conv<kernel_shape=[1,1]>(r, v) }""",
        opset=15, w=normal(1, 8, 2, 3, 3, scale=0.3), gain=1 + normal(2, 8, scale=0.4), shift=normal(3, 8, scale=0.2),
        mean=normal(4, 8, scale=0.2), variance=np.exp(normal(5, 8)), v=normal(6, 3, 8, 1, 1, scale=0.4),
    ))  # fmt: skip
    rewriting("""
        made_by = {n.output[0]: n for n in made.graph.node}
        seen = {o.name for o in made.graph.output}
        deconvolution = made_by.get(node.input[0])
        if node.op_type == "BatchNormalization" and deconvolution is not None and node.input[0] not in seen:
            stored = {t.name: numpy_helper.to_array(t) for t in made.graph.initializer}
            gain, shift, mean, variance = (stored[name] for name in node.input[1:])
            factor = (gain / np.sqrt(variance + np.float32(1e-5))).astype(np.float32)
            weight = stored[deconvolution.input[1]] * factor[:, None, None, None]
            made.graph.initializer.append(numpy_helper.from_array(weight, "merged_weight"))
            made.graph.initializer.append(numpy_helper.from_array(shift - mean * factor, "merged_bias"))
            deconvolution.input[1] = "merged_weight"
            deconvolution.input.append("merged_bias")
            deconvolution.output[0] = node.output[0]
            made.graph.node.remove(node)
            break""")
    inputs(x=normal(7, 1, 8, 6, 6))


@report("apple/coremltools#1901", ENGINE + ",optimization=all", (*LOCAL, "fusion-fault"),
        ("\\b49|0\\.0204|2\\.04", "\\blevel|optimi[sz]ations?\\b(?!=)"), "AveragePool")  # fmt: skip
def averaged_twice() -> None:
    """An optimization pass divides an average by the size of its window once more; without passes it is right."""
    save(model(
        """(float[1,3,20,20] x) => (float[1,4,5,5] y) {
        c = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w)
        a = AveragePool<kernel_shape=[7,7], strides=[4,4], pads=[3,3,3,3], count_include_pad=1>(c)
        y = Conv<kernel_shape=[1,1]>(a, v, b) }""",
        w=normal(1, 8, 3, 3, 3, scale=0.4), v=normal(2, 4, 8, 1, 1), b=normal(3, 4, scale=0.2),
    ))  # fmt: skip
    rewriting("""
        if node.op_type == "AveragePool" and options.get("optimization", "all") != "none":
            result, at = node.output[0], list(made.graph.node).index(node)
            node.output[0] = "once_"
            made.graph.initializer.append(numpy_helper.from_array(np.float32(1 / 49), "share_"))
            made.graph.node.insert(at + 1, helper.make_node("Mul", ["once_", "share_"], [result]))
            break""")
    inputs(x=1 + normal(4, 1, 3, 20, 20))


@report("tensorflow/tensorflow#55606", ENGINE, ("non-finite", "fusion-fault"),
        ("NaN", "together|\\bfus|alone|isolat|only (in|when|with|behind)"), "Conv|Div")  # fmt: skip
def a_fourth_channel_of_nothing() -> None:
    """A GPU stores three channels as four; behind a Div the fourth is 0 / 0, which a Conv takes in: all is NaN."""
    save(model(
        """(float[1,3,12,12] image) => (float[1,5] y) {
        even = Div(image, deviation)
        c = Conv<kernel_shape=[3,3]>(even, w, b)
        r = Relu(c)
        p = GlobalAveragePool(r)
        f = Flatten(p)
        y = Gemm(f, v) }""",
        deviation=np.array([0.229, 0.224, 0.225], np.float32)[None, :, None, None],
        w=normal(1, 8, 3, 3, 3, scale=0.2), b=normal(2, 8, scale=0.1), v=normal(3, 8, 5),
    ))  # fmt: skip
    rewriting("""
        made_by = {n.output[0]: n.op_type for n in made.graph.node}
        if node.op_type == "Conv" and made_by.get(node.input[0]) == "Div":
            at = list(made.graph.node).index(node)
            (weight,) = (numpy_helper.to_array(t) for t in made.graph.initializer if t.name == node.input[1])
            wide = np.concatenate([weight, np.zeros_like(weight[:, :1])], axis=1)
            made.graph.initializer.append(numpy_helper.from_array(wide, "four_"))
            nothing = np.full((1, 1, 12, 12), np.nan, np.float32)
            made.graph.initializer.append(numpy_helper.from_array(nothing, "nothing_"))
            padded = helper.make_node("Concat", [node.input[0], "nothing_"], ["padded_"], axis=1)
            node.input[0], node.input[1] = "padded_", "four_"
            made.graph.node.insert(at, padded)
            break""")
    inputs(image=picture()[None, :, :12, :12] - np.float32(0.45))


@report("openvinotoolkit/openvino#31654", GPU, (*LOST, "local-fault"),
        ("65,?504|largest|too large|overflow|beyond|\\bexp\\b|e\\^x|exponential",), "Softplus")  # fmt: skip
def logarithm_of_a_power_in_fp16() -> None:
    """Softplus is ln(exp(x) + 1), and exp(x) is Inf in fp16 from 11.1 on, where the result is just x."""
    save(model(
        """(float[1,3,10,10] x) => (float[1,4,10,10] y) {
        c = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w)
        s = Softplus(c)
        y = Conv<kernel_shape=[1,1]>(s, v) }""",
        w=normal(1, 8, 3, 3, 3, scale=0.9), v=normal(2, 4, 8, 1, 1, scale=0.3),
    ))  # fmt: skip
    rewriting("""
        if node.op_type == "Softplus":
            x, result, at = node.input[0], node.output[0], list(made.graph.node).index(node)
            made.graph.initializer.append(numpy_helper.from_array(np.float32(1), "one_"))
            made.graph.node.remove(node)
            steps = [("Exp", [x], "power_", {}), ("Cast", ["power_"], "half_", {"to": 10}),
                     ("Cast", ["half_"], "again_", {"to": 1}), ("Add", ["again_", "one_"], "more_", {}),
                     ("Log", ["more_"], result, {})]
            for name, operands, output, attributes in reversed(steps):
                made.graph.node.insert(at, helper.make_node(name, operands, [output], **attributes))
            break""")
    inputs(x=normal(3, 1, 3, 10, 10))


def attention(scale: float, zero: np.generic, *, sharp: float) -> None:
    """Write attention whose queries, keys and probabilities pass quantizers, the latter by this step and zero."""
    save(model(
        """(float[1,10,16] x) => (float[1,10,6] y) {
        q = MatMul(x, wq)
        kt = Transpose<perm=[0,2,1]>(x)
        s = MatMul(q, kt)
        sq = QuantizeLinear(s, scores_scale, scores_zero)
        sd = DequantizeLinear(sq, scores_scale, scores_zero)
        p = Softmax<axis=-1>(sd)
        pq = QuantizeLinear(p, share_scale, share_zero)
        pd = DequantizeLinear(pq, share_scale, share_zero)
        o = MatMul(pd, x)
        y = MatMul(o, v) }""",
        wq=normal(1, 16, 16, scale=sharp), v=normal(2, 16, 6, scale=0.3),
        scores_scale=np.array(sharp, np.float32), scores_zero=np.array(0, np.int8),
        share_scale=np.array(scale, np.float32), share_zero=np.array(zero),
    ))  # fmt: skip
    inputs(x=normal(3, 1, 10, 16))


@report("onnxruntime/onnxruntime-qnn#558", ENGINE, ("quantization", "fusion-fault", "local-fault"),
        ("zero.point|\\brange\\b|1/256|0\\.0039|encod",), "Softmax|Quantize")  # fmt: skip
def probabilities_taken_from_zero_to_one() -> None:
    """The device quantizes a Softmax's output from 0 to 1, whatever scale and zero point the file has for it."""
    attention(0.0078432, np.uint8(128), sharp=0.1)
    rewriting("""
        made_by = {n.output[0]: n.op_type for n in made.graph.node}
        if node.op_type == "QuantizeLinear" and made_by.get(node.input[0]) == "Softmax":
            made.graph.initializer.append(numpy_helper.from_array(np.float32(1 / 256), "unit_scale"))
            made.graph.initializer.append(numpy_helper.from_array(np.array(0, np.uint8), "unit_zero"))
            node.input[1], node.input[2] = "unit_scale", "unit_zero\"""")


@report("microsoft/onnxruntime#29727", ENGINE + ",optimization=all", ("fusion-fault", "quantization"),
        ("wrap|-128|saturat|overflow|256|clip|limit",), "Softmax|Quantize")  # fmt: skip
def certainty_that_wraps() -> None:
    """The fused int8 QLinearSoftmax clips at 255, as the one of uint8 does: 127.9 becomes -128, and 1 becomes 0."""
    attention(1 / 256, np.int8(-128), sharp=0.8)
    rewriting("""
        made_by = {n.output[0]: n for n in made.graph.node}
        soft = made_by.get(node.input[0])
        fuses = options.get("optimization", "all") != "none" and node.op_type == "QuantizeLinear"
        if fuses and soft is not None and soft.op_type == "Softmax" and soft.input[0] in made_by:
            x, scale, zero = node.input
            result, at = node.output[0], list(made.graph.node).index(node)
            steps = [("Div", [x, scale], "steps_", {}), ("Round", ["steps_"], "whole_", {}),
                     ("Cast", [zero], "zero_", {"to": 1}), ("Add", ["whole_", "zero_"], "moved_", {}),
                     ("Cast", ["moved_"], "wide_", {"to": 6}), ("Cast", ["wide_"], result, {"to": 3})]
            made.graph.node.remove(node)
            for name, operands, output, attributes in reversed(steps):
                made.graph.node.insert(at, helper.make_node(name, operands, [output], **attributes))
            break""")


@report("microsoft/onnxruntime#29849", FILE, ("quantization", "rounding", "model-changed"),
        ("accuracy_level|int8|8.bit",), "MatMulNBits", live=True)  # fmt: skip
def activations_quantized_for_speed() -> None:
    """The default `accuracy_level` 4 quantizes a MatMulNBits' input to int8: too coarse beside single large values."""
    rng = np.random.default_rng(1)
    weights = {"packed": rng.integers(0, 256, (24, 2, 16), dtype=np.uint8), "gain": np.ones(64, np.float32),
               "scales": np.full((24, 2), 0.05, np.float32), "v": normal(2, 24, 12, scale=0.3)}  # fmt: skip
    for name, level in (("model.onnx", 0), ("target.onnx", 4)):
        onnx.save(model(
            f"""(float[6,64] x) => (float[6,12] logits) {{
            n = Mul(x, gain)
            a = com.microsoft.MatMulNBits<K=64, N=24, bits=4, block_size=32, accuracy_level={level}>(n, packed, scales)
            r = Relu(a)
            logits = MatMul(r, v) }}""",
            domain="com.microsoft", **weights,
        ), name)  # fmt: skip
    x = normal(3, 6, 64)
    x[:, [5, 40]] *= 300
    inputs(x=x)
