"""Fusions, kernels, files and programs: half of the eighth collection."""

import numpy as np
import onnx

from reports import FILE, feeding, inputs, model, normal, program, report, rewriting, save
from reports.boards import RETURNED
from reports.exporters import CHANGED
from reports.formats import FP16, LOST
from reports.kernels import ENGINE, LOCAL
from reports.narrow import LARGE
from reports.programs import APP, UNSOUND, classifier, picture
from reports.seventh import detector

EITHER = ("quantization", "model-changed")


@report("GPUOpen-ProfessionalCompute-Libraries/amdovx-modules#218", ENGINE, ("fusion-fault", *LOCAL),
        ("alpha|slope|\\bRelu\\b|negative|below 0",), "LeakyRelu|Conv")  # fmt: skip
def slope_left_behind_by_a_fusion() -> None:
    """Conv and LeakyRelu become one op, and the slope is written where nothing reads it: what is negative is 0."""
    save(model(
        """(float[1,3,24,24] image) => (float[1,5,12,12] y) {
        c1 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(image, w1, b1)
        r1 = LeakyRelu<alpha=0.15>(c1)
        c2 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(r1, w2, b2)
        n2 = BatchNormalization(c2, gain, shift, mean, variance)
        s2 = Sigmoid(n2)
        m2 = Mul(n2, s2)
        c3 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(m2, w3)
        s3 = Add(c3, m2)
        y = Conv<kernel_shape=[1,1]>(s3, w4) }""",
        opset=15, w1=normal(1, 12, 3, 3, 3, scale=0.3), b1=normal(2, 12, scale=0.2),
        w2=normal(3, 16, 12, 3, 3, scale=0.15), b2=normal(4, 16, scale=0.1), gain=1 + normal(5, 16, scale=0.2),
        shift=normal(6, 16, scale=0.2), mean=normal(7, 16, scale=0.2), variance=np.exp(normal(8, 16, scale=0.3)),
        w3=normal(9, 16, 16, 3, 3, scale=0.1), w4=normal(10, 5, 16, 1, 1, scale=0.3),
    ))  # fmt: skip
    rewriting("""
        made_by = {n.output[0]: n for n in made.graph.node}
        seen = {o.name for o in made.graph.output}
        conv = made_by.get(node.input[0]) if node.op_type == "LeakyRelu" else None
        if conv is not None and conv.op_type == "Conv" and conv.output[0] not in seen:
            node.op_type = "Relu"
            del node.attribute[:]""")
    inputs(image=normal(11, 1, 3, 24, 24))


@report("PINTO0309/onnx2tf#603", ENGINE, ("non-finite", "range-overflow", *LOCAL),
        ("NaN", "overflow|\\blarge|\\bexp\\b|Exp\\b|beyond|positive|> ?8\\d"), "Celu")  # fmt: skip
def zero_times_an_exponential_beyond_float() -> None:
    """Celu is written with masks, so that of large x 0 is multiplied by exp(x), which is Inf: a few values are NaN."""
    save(model(
        """(float[1,3,20,20] image) => (float[1,6] y) {
        c1 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(image, w1, b1)
        r1 = Celu<alpha=1.0>(c1)
        c2 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(r1, w2)
        r2 = Tanh(c2)
        f = Flatten(r2)
        y = Gemm(f, v) }""",
        w1=normal(1, 8, 3, 3, 3, scale=0.3), b1=normal(2, 8, scale=0.2), w2=normal(3, 10, 8, 3, 3, scale=0.05),
        v=normal(4, 1000, 6, scale=0.05),
    ))  # fmt: skip
    rewriting("""
        if node.op_type == "Celu":
            at, x, result = list(made.graph.node).index(node), node.input[0], node.output[0]
            for name, number in (("nought_", 0), ("one_", 1)):
                made.graph.initializer.append(numpy_helper.from_array(np.array(number, np.float32), name))
            made.graph.node.remove(node)
            steps = [("Less", [x, "nought_"], "low_", {}), ("Cast", ["low_"], "lower_", {"to": 1}),
                     ("Sub", ["one_", "lower_"], "upper_", {}), ("Exp", [x], "exp_", {}),
                     ("Sub", ["exp_", "one_"], "curve_", {}), ("Mul", ["lower_", "curve_"], "bent_", {}),
                     ("Mul", ["upper_", x], "line_", {}), ("Add", ["bent_", "line_"], result, {})]
            for name, operands, output, attributes in reversed(steps):
                made.graph.node.insert(at, helper.make_node(name, operands, [output], **attributes))
            break""")
    image = normal(5, 1, 3, 20, 20)
    image[:, :, 4:7, 9:12] *= 60
    inputs(image=image)


@report("onnx/tensorflow-onnx#2134", FILE, EITHER, ("\\bax[ie]s\\b|input channels?|other channels?",),
        "ConvTranspose|w2|Dequantize")  # fmt: skip
def scales_along_the_other_axis_of_a_weight() -> None:
    """Scales of a ConvTranspose's weight are by output channel, axis 1; its DequantizeLinear says axis 0, as Conv's."""
    w1, b1 = normal(1, 8, 3, 3, 3, scale=0.3), normal(2, 8, scale=0.1)
    w2 = normal(3, 8, 8, 2, 2, scale=0.3) * np.geomspace(0.15, 3, 8).astype(np.float32)[None, :, None, None]
    w3 = normal(4, 3, 8, 3, 3, scale=0.15)
    text = """(float[1,3,12,12] x) => (float[1,3,24,24] y) {{
        c1 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w1, b1)
        r1 = Relu(c1)
        {quantized}
        r2 = Relu(c2)
        y = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(r2, w3) }}"""
    plain = "c2 = ConvTranspose<kernel_shape=[2,2], strides=[2,2]>(r1, w2)"
    save(model(text.format(quantized=plain), w1=w1, b1=b1, w2=w2, w3=w3))
    scale = np.abs(w2).max((0, 2, 3)) / np.float32(127)
    save(model(
        text.format(quantized="""r1_q = QuantizeLinear(r1, s1, z1)
        r1_d = DequantizeLinear(r1_q, s1, z1)
        w2_d = DequantizeLinear<axis=0>(w2_q, s2, z2)
        c2 = ConvTranspose<kernel_shape=[2,2], strides=[2,2]>(r1_d, w2_d)"""),
        w1=w1, b1=b1, w3=w3, s1=np.array(0.025, np.float32), z1=np.array(0, np.uint8), s2=scale,
        z2=np.zeros(8, np.int8), w2_q=np.rint(w2 / scale[None, :, None, None]).astype(np.int8),
    ), "target.onnx")  # fmt: skip
    inputs(x=normal(5, 1, 3, 12, 12))


@report("tensorflow/tfjs-models#857", APP, RETURNED, ("sigmoid|logistic",), "scores")
def sigmoid_of_scores_that_are_probabilities() -> None:
    """The network ends with a Sigmoid, and the program applies one again: every score is above 0.5, and passes."""
    detector(4.0)
    program(results='{k: 1 / (1 + np.exp(-v)) if k == "scores" else v for k, v in results.items()}')


VGG = (123.68, 116.779, 103.939)


@report("triton-inference-server/server#1914", APP, UNSOUND, ("mean|offset|19\\.7|shift|subtract|\\+ ?-?\\d",), "image")
def means_in_the_order_of_the_other_library() -> None:
    """Pixels are made RGB, and the means that are subtracted stay BGR: red loses what blue has to, and blue red's."""
    classifier(scale=128)
    mean = np.array(VGG, np.float32)[:, None, None]
    inputs(image=(picture() * 255 - mean)[None].astype(np.float32))
    feeding(f"image + np.reshape({VGG}, (3, 1, 1)) - np.reshape({VGG[::-1]}, (3, 1, 1))")


@report("apple/coremltools#2821", ENGINE, LOCAL, ("\\beps(ilon)?\\b",), "RMSNormalization")
def epsilon_added_after_a_row_was_scaled_to_one() -> None:
    """Rows are divided by their maximum, for fp16's sake, and epsilon is not: it grows by the maximum's square."""
    made = model(
        """(float[1,12,64] x) => (float[1,12,5] y) {
        e = Add(x, table)
        n1 = RMSNormalization<axis=-1, epsilon=0.001>(e, g1)
        q = MatMul(n1, wq)
        k = MatMul(n1, wk)
        v = MatMul(n1, wv)
        kt = Transpose<perm=[0,2,1]>(k)
        s = MatMul(q, kt)
        p = Softmax<axis=-1>(s)
        o = MatMul(p, v)
        u = MatMul(o, w1)
        r = Relu(u)
        y = MatMul(r, w2) }""",
        opset=23, table=normal(1, 1, 12, 64, scale=0.3), g1=1 + normal(2, 64, scale=0.1),
        wq=normal(3, 64, 64, scale=0.05),
        wk=normal(4, 64, 64, scale=0.05), wv=normal(5, 64, 64, scale=0.3), w1=normal(6, 64, 48, scale=0.2),
        w2=normal(7, 48, 5, scale=0.2),
    )  # fmt: skip
    made.ir_version = 11
    save(made)
    rewriting("""
        if node.op_type == "RMSNormalization":
            at, result, (x, gain) = list(made.graph.node).index(node), node.output[0], node.input
            made.graph.initializer.append(numpy_helper.from_array(np.float32(0.001), "little_"))
            made.graph.initializer.append(numpy_helper.from_array(np.array([-1]), "last_"))
            made.graph.node.remove(node)
            steps = [("Abs", [x], "size_", {}), ("ReduceMax", ["size_", "last_"], "most_", {"keepdims": 1}),
                     ("Div", [x, "most_"], "small_", {}), ("Mul", ["small_", "small_"], "square_", {}),
                     ("ReduceMean", ["square_", "last_"], "mean_", {"keepdims": 1}),
                     ("Add", ["mean_", "little_"], "some_", {}), ("Sqrt", ["some_"], "root_", {}),
                     ("Mul", ["root_", "most_"], "rms_", {}), ("Div", [x, "rms_"], "even_", {}),
                     ("Mul", ["even_", gain], result, {})]
            for name, operands, output, attributes in reversed(steps):
                made.graph.node.insert(at, helper.make_node(name, operands, [output], **attributes))
            break""")
    x = normal(8, 1, 12, 64)
    x[0, :, 5] = 90
    inputs(x=x)


@report("elbruno/ElBruno.Whisper#5", APP, UNSOUND,
        ("4\\.6\\d*|0\\.217|normali[sz]|scale|times|factor|multipl|deviation",), "mel")  # fmt: skip
def natural_logarithm_of_a_spectrum_left_unscaled() -> None:
    """Features are ln of magnitudes, where (log10 of power + 4) / 4 was trained on: another size, another middle."""
    save(model(
        """(float[1,20,64] mel) => (float[1,32,12] hidden) {
        c1 = Conv<kernel_shape=[3], pads=[1,1]>(mel, w1, b1)
        s1 = Sigmoid(c1)
        r1 = Mul(c1, s1)
        c2 = Conv<kernel_shape=[3], strides=[2], pads=[1,1]>(r1, w2, b2)
        s2 = Sigmoid(c2)
        r2 = Mul(c2, s2)
        t = Transpose<perm=[0,2,1]>(r2)
        n = LayerNormalization<axis=-1>(t, gain, shift)
        q = MatMul(n, wq)
        kt = Transpose<perm=[0,2,1]>(n)
        a = MatMul(q, kt)
        p = Softmax<axis=-1>(a)
        o = MatMul(p, n)
        h = Add(o, t)
        hidden = MatMul(h, v) }""",
        w1=normal(1, 24, 20, 3, scale=0.2), b1=normal(2, 24, scale=0.1), w2=normal(3, 24, 24, 3, scale=0.15),
        b2=normal(4, 24, scale=0.1), gain=1 + normal(5, 24, scale=0.1), shift=normal(6, 24, scale=0.1),
        wq=normal(7, 24, 24, scale=0.1), v=normal(8, 24, 12, scale=0.3),
    ))  # fmt: skip
    bands, frames = np.mgrid[0:20, 0:64]
    power = -4 - 0.1 * bands + 2 * np.sin(frames / 7) * np.exp(-(((bands - 6 - frames / 16) / 4) ** 2))
    noisy = power + normal(9, 20, 64, scale=0.2)
    noisy = np.maximum(noisy, noisy.max() - 8)
    inputs(mel=((noisy + 4) / 4)[None].astype(np.float32))
    program('{"mel": ((4 * feed["mel"] - 4) * np.log(10) / 2).astype(np.float32)} if "mel" in feed else feed')


@report("onnx/tensorflow-onnx#602", FILE, CHANGED, ("\\balpha\\b|\\bsize\\b",), "LRN")
def radius_taken_for_the_size_of_a_window() -> None:
    """A depth radius of 3 becomes a size of 3, where it is 7, and alpha is not multiplied by the size."""
    text = """(float[1,3,24,24] x) => (float[1,6] y) {{
        c1 = Conv<kernel_shape=[5,5], strides=[2,2], pads=[2,2,2,2]>(x, w1, b1)
        r1 = Relu(c1)
        n1 = LRN<{window}, beta=0.75, bias=1.0>(r1)
        p1 = MaxPool<kernel_shape=[2,2], strides=[2,2]>(n1)
        c2 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(p1, w2)
        r2 = Relu(c2)
        f = Flatten(r2)
        y = MatMul(f, v) }}"""
    weights = {
        "w1": normal(1, 16, 3, 5, 5, scale=0.3), "b1": normal(2, 16, scale=0.2),
        "w2": normal(3, 12, 16, 3, 3, scale=0.2), "v": normal(4, 432, 6, scale=0.05),
    }  # fmt: skip
    save(model(text.format(window="size=7, alpha=0.14"), **weights))
    save(model(text.format(window="size=3, alpha=0.02"), **weights), "target.onnx")
    inputs(x=normal(5, 1, 3, 24, 24))


@report("huggingface/transformers#17306", FP16, LOST, LARGE, "Add|mask|hidden|Softmax|Mul|least")
def two_masks_of_the_least_half_added() -> None:
    """Two masks of -65504 are added to scores below -16: -Inf, and NaN in a row that both masks hide."""
    save(model(
        """(float[1,8,16] x, float[1,1,8] mask) => (float[1,8,6] y) {
        q = MatMul(x, wq)
        kt = Transpose<perm=[0,2,1]>(x)
        s = MatMul(q, kt)
        padded = Sub(one, mask)
        hidden = Mul(padded, least)
        both = Add(hidden, causal)
        t = Add(s, both)
        p = Softmax<axis=-1>(t)
        o = MatMul(p, x)
        h = Add(o, x)
        y = MatMul(h, v) }""",
        wq=np.float32(-0.6) * np.eye(16, dtype=np.float32) + normal(1, 16, 16, scale=0.02), one=np.array(1, np.float32),
        least=np.array(-65504, np.float32), v=normal(2, 16, 6, scale=0.3),
        causal=np.triu(np.full((8, 8), -65504, np.float32), 1)[None],
    ))  # fmt: skip
    x = 2 + normal(3, 1, 8, 16, scale=0.3)
    mask = np.ones((1, 1, 8), np.float32)
    mask[0, 0, 0] = 0
    inputs(x=x.astype(np.float32), mask=mask)


@report("microsoft/onnxruntime#7982", FILE, EITHER,
        ("\\bbias\\b|\\bB\\b|\\bb_q", "scales?\\b|steps?\\b|shared|times|factor|multipl|differ"),
        "c2|QLinearConv|\\bb_q|bias")  # fmt: skip
def bias_of_two_convolutions_quantized_for_the_first() -> None:
    """Two Convs share a bias, whose integers are those of the first one's scales: in the second they mean others."""
    w1, w2 = normal(1, 8, 3, 3, 3, scale=0.3), normal(2, 8, 8, 3, 3, scale=0.05)
    b, v = normal(3, 8, scale=0.6), normal(4, 8, 5, scale=0.5)
    save(model(
        """(float[1,3,16,16] x) => (float[1,5] y) {
        c1 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w1, b)
        r1 = Relu(c1)
        c2 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(r1, w2, b)
        r2 = Relu(c2)
        p = GlobalAveragePool(r2)
        f = Flatten(p)
        y = MatMul(f, v) }""",
        w1=w1, w2=w2, b=b, v=v,
    ))  # fmt: skip
    one, two = (np.float32(np.abs(w).max() / 63) for w in (w1, w2))
    step = np.float32(0.03)
    file = model(
        """(float[1,3,16,16] x) => (float[1,5] y) {
        x_q = QuantizeLinear(x, sx, zx)
        r1_q = QLinearConv<kernel_shape=[3,3], pads=[1,1,1,1]>(x_q, sx, zx, w1_q, s1, zw, sr, zr, b_q)
        r2_q = QLinearConv<kernel_shape=[3,3], pads=[1,1,1,1]>(r1_q, sr, zr, w2_q, s2, zw, sc, zr, b_q)
        r2 = DequantizeLinear(r2_q, sc, zr)
        p = GlobalAveragePool(r2)
        f = Flatten(p)
        y = MatMul(f, v) }""",
        sx=step, zx=np.array(128, np.uint8), w1_q=np.rint(w1 / one).astype(np.int8), s1=one, zw=np.array(0, np.int8),
        sr=np.array(0.025, np.float32), zr=np.array(0, np.uint8), b_q=np.rint(b / (step * one)).astype(np.int32),
        w2_q=np.rint(w2 / two).astype(np.int8), s2=two, sc=np.array(0.02, np.float32), v=v,
    )  # fmt: skip
    onnx.checker.check_model(file)
    save(file, "target.onnx")
    inputs(x=normal(5, 1, 3, 16, 16))
