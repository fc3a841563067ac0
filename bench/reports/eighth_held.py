"""Half of the eighth collection, which was held back: totals alone were looked at before its figures were taken."""

import numpy as np

from reports import FILE, feeding, inputs, model, normal, report, rewriting, save
from reports.eighth import EITHER
from reports.exporters import CHANGED
from reports.formats import FP16, LOST
from reports.kernels import ENGINE, LOCAL
from reports.narrow import LARGE
from reports.programs import APP, DEVIATION, MEAN, UNSOUND, classifier, picture


@report("tinygrad/tinygrad#11705", FP16, LOST, LARGE, "ReduceSum|total|summ")
def weights_of_a_summary_added_up_beyond_half() -> None:
    """A speaker encoder divides by a sum of weights over time, which is 70,000: Inf in fp16, so that its mean is 0."""
    save(model(
        """(float[1,24,300] x) => (float[1,10] embedding) {
        c1 = Conv<kernel_shape=[3], pads=[1,1]>(x, w1, b1)
        r1 = Relu(c1)
        g = Conv<kernel_shape=[1]>(r1, w2, b2)
        e = Exp(g)
        total = ReduceSum<keepdims=1>(e, last)
        a = Div(e, total)
        weighted = Mul(a, r1)
        m = ReduceSum<keepdims=0>(weighted, last)
        embedding = MatMul(m, v) }""",
        w1=normal(1, 16, 24, 3, scale=0.15), b1=normal(2, 16, scale=0.1), w2=normal(3, 1, 16, 1, scale=0.1),
        b2=np.array([5.6], np.float32), last=np.array([2]), v=normal(4, 16, 10, scale=0.4),
    ))  # fmt: skip
    inputs(x=normal(5, 1, 24, 300))


@report("PaddlePaddle/Paddle2ONNX#930", FILE, CHANGED, ("\\balpha\\b|slope|0\\.2\\b|0\\.166|1 ?/ ?6",), "HardSigmoid")
def slope_of_a_gate_left_to_its_default() -> None:
    """A gate's slope is 1 / 6 in the framework; the file does not say so, and the operator's default is 0.2."""
    text = """(float[1,3,24,24] x) => (float[1,6,12,12] y) {{
        c1 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(x, w1, b1)
        r1 = Relu(c1)
        p = GlobalAveragePool(r1)
        e1 = Conv<kernel_shape=[1,1]>(p, w2)
        r2 = Relu(e1)
        e2 = Conv<kernel_shape=[1,1]>(r2, w3)
        g = HardSigmoid{slope}(e2)
        m = Mul(r1, g)
        y = Conv<kernel_shape=[1,1]>(m, w4) }}"""
    weights = {
        "w1": normal(1, 16, 3, 3, 3, scale=0.4), "b1": normal(2, 16, scale=0.1), "w2": normal(3, 8, 16, 1, 1),
        "w3": normal(4, 16, 8, 1, 1), "w4": normal(5, 6, 16, 1, 1, scale=0.3),
    }  # fmt: skip
    save(model(text.format(slope="<alpha=0.16666667, beta=0.5>"), **weights))
    save(model(text.format(slope=""), **weights), "target.onnx")
    inputs(x=normal(6, 1, 3, 24, 24))


@report("openvinotoolkit/nncf#4074", FILE, EITHER, ("clip|saturat|clamp|cut off|zero.point|\\brange",),
        "MatMul|\\bw|Dequantize|linear")  # fmt: skip
def channels_of_one_sign_beyond_their_zero_point() -> None:
    """Where a channel's weights are of one sign its zero point is beyond a byte: clipped, they become one value."""
    w = normal(1, 64, 32, scale=0.1)
    w[:, [3, 8, 15, 22, 30]] = -0.5 + normal(2, 64, 5, scale=0.04)
    text = """(float[6,24] x) => (float[6,8] y) {{
        h = MatMul(x, w0)
        r0 = Tanh(h)
        {weight}
        m = MatMul(r0, {name})
        r = Relu(m)
        y = MatMul(r, v) }}"""
    weights = {"w0": normal(3, 24, 64, scale=0.2), "v": normal(4, 32, 8, scale=0.3)}
    save(model(text.format(weight="", name="w"), **weights, w=w))
    low, high = w.min(0), w.max(0)
    scale = ((high - low) / 255).astype(np.float32)
    zero = np.clip(np.rint(-low / scale), 0, 255)
    q = np.clip(np.rint(w / scale) + zero, 0, 255).astype(np.uint8)
    save(model(
        text.format(weight="w_d = DequantizeLinear<axis=1>(w_q, w_s, w_z)", name="w_d"), **weights, w_q=q, w_s=scale,
        w_z=zero.astype(np.uint8),
    ), "target.onnx")  # fmt: skip
    inputs(x=normal(5, 6, 24))


@report("tensorflow/tensorflow#120291", ENGINE, ("fusion-fault", "layout", *LOCAL),
        ("transpos|\\border\\b|permut|layout|elsewhere|wrong places|row.major",), "Concat|Split|Reshape")  # fmt: skip
def columns_joined_below_each_other_taken_for_nothing() -> None:
    """Columns are split and joined below each other, a transposition; the converter takes it for a Reshape."""
    save(model(
        """(float[6,10] x) => (float[6,5] y) {
        a = MatMul(x, w1)
        r = Tanh(a)
        t = Reshape(r, three)
        s1, s2, s3, s4 = Split<axis=1>(t)
        c = Concat<axis=0>(s1, s2, s3, s4)
        f = Reshape(c, two)
        b = MatMul(f, w2)
        y = Add(b, bias) }""",
        opset=13, w1=normal(1, 10, 4, scale=0.4), three=np.array([6, 4, 1]), two=np.array([6, 4]),
        w2=normal(2, 4, 5, scale=0.5), bias=normal(3, 5, scale=0.2),
    ))  # fmt: skip
    rewriting("""
        made_by = {o: n for n in made.graph.node for o in n.output}
        seen = {o.name for o in made.graph.output}
        parts = [made_by.get(i) for i in node.input] if node.op_type == "Concat" else []
        if parts and all(n is not None and n.op_type == "Split" for n in parts) and not seen & set(node.input):
            made.graph.initializer.append(numpy_helper.from_array(np.array([-1, 1, 1]), "below_"))
            same = helper.make_node("Reshape", [parts[0].input[0], "below_"], [node.output[0]])
            at = list(made.graph.node).index(node)
            made.graph.node.remove(node)
            made.graph.node.insert(at, same)
            break""")
    inputs(x=normal(4, 6, 10))


@report("apple/coremltools#2573", FILE, CHANGED, ("\\bMul\\b|factor|alpha|times|multipl",), "Sub|Mul|d\\b")
def factor_of_a_difference_not_converted() -> None:
    """`torch.sub(a, b, alpha=5)` becomes a - b."""
    text = """(float[4,16] x) => (float[4,6] y) {{
        a = MatMul(x, wa)
        b = MatMul(x, wb)
        s = Sigmoid(b)
        {times}
        d = Sub(a, {subtracted})
        r = Relu(d)
        y = MatMul(r, v) }}"""
    weights = {"wa": normal(1, 16, 24, scale=0.4), "wb": normal(2, 16, 24, scale=0.3), "v": normal(3, 24, 6, scale=0.3)}
    five = np.array(5, np.float32)
    save(model(text.format(times="m = Mul(s, five)", subtracted="m"), **weights, five=five))
    save(model(text.format(times="", subtracted="s"), **weights), "target.onnx")
    inputs(x=1 + normal(4, 4, 16))


@report("llvm/torch-mlir#4351", ENGINE, ("layout", *LOCAL),
        ("\\bmode\\b|DCR|CRD|\\border\\b|permut|elsewhere|wrong places|interleav|transpos|channels",),
        "DepthToSpace")  # fmt: skip
def depth_split_with_the_block_first() -> None:
    """DepthToSpace of mode CRD is reshaped as if the block came first, and permuted as if it came last."""
    save(model(
        """(float[1,3,10,10] x) => (float[1,3,20,20] y) {
        c1 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w1, b1)
        r1 = Relu(c1)
        c2 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(r1, w2)
        r2 = Relu(c2)
        s = Add(r1, r2)
        c3 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(s, w3)
        d = DepthToSpace<blocksize=2, mode="CRD">(c3)
        y = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(d, w4) }""",
        w1=normal(1, 12, 3, 3, 3, scale=0.3), b1=normal(2, 12, scale=0.1), w2=normal(3, 12, 12, 3, 3, scale=0.1),
        w3=normal(4, 12, 12, 3, 3, scale=0.15), w4=normal(5, 3, 3, 3, 3, scale=0.3),
    ))  # fmt: skip
    rewriting("""
        if node.op_type == "DepthToSpace":
            at, x, result = list(made.graph.node).index(node), node.input[0], node.output[0]
            for name, shape in (("blocks_", [-1, 2, 2, 3, 10, 10]), ("picture_", [-1, 3, 20, 20])):
                made.graph.initializer.append(numpy_helper.from_array(np.array(shape), name))
            made.graph.node.remove(node)
            steps = [("Reshape", [x, "blocks_"], "six_", {}),
                     ("Transpose", ["six_"], "turned_", {"perm": [0, 1, 4, 2, 5, 3]}),
                     ("Reshape", ["turned_", "picture_"], result, {})]
            for name, operands, output, attributes in reversed(steps):
                made.graph.node.insert(at, helper.make_node(name, operands, [output], **attributes))
            break""")
    inputs(x=normal(6, 1, 3, 10, 10))


@report("wkentaro/osam#83", APP, UNSOUND, ("deviation|\\bstd\\b|mean|normali[sz]|scale|0\\.22",), "image")
def mean_divided_before_it_is_subtracted() -> None:
    """`x - mean / std` without brackets: nothing is divided, and more than the mean is taken off."""
    classifier()
    inputs(image=((picture() - MEAN) / DEVIATION)[None])
    mean, deviation = ("np.reshape([0.485, 0.456, 0.406], (3, 1, 1))", "np.reshape([0.229, 0.224, 0.225], (3, 1, 1))")
    feeding(f"image * {deviation} + {mean} - {mean} / {deviation}")


@report("openvinotoolkit/openvino#25169", ENGINE, LOCAL, ("\\bax[ei]s\\b",), "ReduceMean")
def mean_over_all_axes() -> None:
    """Axes are an input since opset 18; the converter writes [0, 1, 2, 3], whatever they are."""
    save(model(
        """(float[2,3,20,20] x) => (float[2,5] y) {
        c1 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(x, w1, b1)
        r1 = Relu(c1)
        m = ReduceMean<keepdims=1>(r1, places)
        d = Sub(r1, m)
        c2 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(d, w2)
        r2 = Relu(c2)
        f = Flatten(r2)
        y = Gemm(f, v) }""",
        opset=18, w1=normal(1, 10, 3, 3, 3, scale=0.4), b1=normal(2, 10, scale=0.4), places=np.array([2, 3]),
        w2=normal(3, 8, 10, 3, 3, scale=0.2), v=normal(4, 200, 5, scale=0.1),
    ))  # fmt: skip
    rewriting("""
        if node.op_type == "ReduceMean":
            del node.input[1:]""")
    inputs(x=normal(5, 2, 3, 20, 20))


@report("CrispStrobe/CrispASR#106", ENGINE, LOCAL, ("gates?\\b|\\border\\b|permut|iofc|ifco|swap|exchang",), "LSTM")
def gates_of_a_cell_in_the_order_of_pytorch() -> None:
    """Weights of an LSTM come from an ONNX file, i, o, f, c, and the program takes them for PyTorch's i, f, c, o."""
    save(model(
        """(float[12,2,10] x) => (float[12,2,4] y) {
        a = MatMul(x, w0)
        t = Tanh(a)
        h, last, cell = LSTM<hidden_size=8, direction="bidirectional">(t, w, r, b)
        order = Transpose<perm=[0,2,1,3]>(h)
        f = Reshape(order, flat)
        z = MatMul(f, v)
        y = Sigmoid(z) }""",
        w0=normal(1, 10, 12, scale=0.4), w=normal(2, 2, 32, 12, scale=0.4), r=normal(3, 2, 32, 8, scale=0.3),
        b=normal(4, 2, 64, scale=0.3), flat=np.array([12, 2, 16]), v=normal(5, 16, 4, scale=0.5),
    ))  # fmt: skip
    rewriting("""
        if node.op_type == "LSTM":
            order = np.concatenate([np.arange(8) + 8 * block for block in (0, 3, 1, 2)])
            for name, at in (("once_", order), ("twice_", np.concatenate([order, 32 + order]))):
                made.graph.initializer.append(numpy_helper.from_array(at, name))
            place = list(made.graph.node).index(node)
            for k, index in ((1, "once_"), (2, "once_"), (3, "twice_")):
                taken = helper.make_node("Gather", [node.input[k], index], [f"taken_{k}"], axis=1)
                node.input[k] = f"taken_{k}"
                made.graph.node.insert(place, taken)
            break""")
    inputs(x=normal(6, 12, 2, 10))


@report("microsoft/onnxruntime#29261", ENGINE, ("layout", *LOCAL), ("interleav|\\bhalves|\\bpairs?\\b",),
        "RotaryEmbedding")  # fmt: skip
def pairs_that_lie_side_by_side_rotated_as_halves() -> None:
    """RotaryEmbedding is fused into an attention that rotates halves: that pairs are `interleaved` is not read."""
    made = model(
        """(float[1,10,32] x) => (float[1,10,6] y) {
        qf = MatMul(x, wq)
        kf = MatMul(x, wk)
        q = RotaryEmbedding<interleaved=1, num_heads=4>(qf, cosines, sines, places)
        k = RotaryEmbedding<interleaved=1, num_heads=4>(kf, cosines, sines, places)
        q4 = Reshape(q, heads)
        qt = Transpose<perm=[0,2,1,3]>(q4)
        k4 = Reshape(k, heads)
        kt = Transpose<perm=[0,2,3,1]>(k4)
        s = MatMul(qt, kt)
        p = Softmax<axis=-1>(s)
        v4 = Reshape(x, heads)
        vt = Transpose<perm=[0,2,1,3]>(v4)
        o = MatMul(p, vt)
        ot = Transpose<perm=[0,2,1,3]>(o)
        f = Reshape(ot, merged)
        y = MatMul(f, v) }""",
        opset=23, wq=normal(1, 32, 32, scale=0.2), wk=normal(2, 32, 32, scale=0.2), v=normal(3, 32, 6, scale=0.3),
        cosines=np.cos(np.outer(np.arange(10), 10.0 ** -np.arange(4))).astype(np.float32),
        sines=np.sin(np.outer(np.arange(10), 10.0 ** -np.arange(4))).astype(np.float32),
        places=np.arange(10)[None], heads=np.array([1, 10, 4, 8]), merged=np.array([1, 10, 32]),
    )  # fmt: skip
    made.ir_version = 11
    save(made)
    rewriting("""
        if node.op_type == "RotaryEmbedding":
            for a in node.attribute:
                if a.name == "interleaved":
                    a.i = 0""")
    inputs(x=normal(4, 1, 10, 32))
