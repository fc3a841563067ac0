"""Half of the seventh collection, which was held back until its figures were taken twice."""

import numpy as np

from reports import feeding, inputs, model, normal, report, rewriting, save
from reports.boards import RETURNED
from reports.formats import FP16, LOST
from reports.fourth_programs import program
from reports.kernels import ENGINE, LOCAL
from reports.narrow import LARGE
from reports.programs import APP, UNSOUND, picture
from reports.seventh import detector


@report("microsoft/onnxruntime#5442", ENGINE, LOCAL, ("coordinate|asymmetric|half_pixel",), "Resize")
def attribute_of_opset_11_not_handled() -> None:
    """TensorRT's parser does not look at what opset 11 added to Resize: coordinates are half pixels whatever is set."""
    save(model(
        """(float[1,3,32,32] images) => (float[1,6,16,16] y) {
        c1 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(images, w1, b1)
        r1 = LeakyRelu<alpha=0.1>(c1)
        c2 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(r1, w2)
        r2 = LeakyRelu<alpha=0.1>(c2)
        lateral = Conv<kernel_shape=[1,1]>(r2, w3)
        up = Resize<mode="linear", coordinate_transformation_mode="asymmetric">(lateral, none, double)
        both = Concat<axis=1>(up, r1)
        c4 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(both, w4)
        r4 = LeakyRelu<alpha=0.1>(c4)
        y = Conv<kernel_shape=[1,1]>(r4, w5) }""",
        w1=normal(1, 12, 3, 3, 3, scale=0.3), b1=normal(2, 12, scale=0.1), w2=normal(3, 24, 12, 3, 3, scale=0.15),
        w3=normal(4, 12, 24, 1, 1, scale=0.3), w4=normal(5, 16, 24, 3, 3, scale=0.1),
        w5=normal(6, 6, 16, 1, 1, scale=0.4), none=np.zeros(0, np.float32), double=np.array([1, 1, 2, 2], np.float32),
    ))  # fmt: skip
    rewriting("""
        if node.op_type == "Resize":
            for a in list(node.attribute):
                if a.name == "coordinate_transformation_mode":
                    node.attribute.remove(a)""")
    inputs(images=normal(7, 1, 3, 32, 32))


@report("apple/coremltools#576", ENGINE, ("fusion-fault", "layout", *LOCAL),
        ("\\border\\b|swap|exchang|each other|permut",), "Concat|Conv|Mul|Add")  # fmt: skip
def input_of_a_concat_appended_by_a_fusion() -> None:
    """Conv, Mul and Add become one op, whose name is appended to the inputs of the Concat behind: it comes last."""
    save(model(
        """(float[1,3,16,16] x) => (float[1,3,16,16] y) {
        c1 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w1, b1)
        r1 = Relu(c1)
        d = MaxPool<kernel_shape=[2,2], strides=[2,2]>(r1)
        c2 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(d, w2)
        r2 = Relu(c2)
        up = ConvTranspose<kernel_shape=[2,2], strides=[2,2]>(r2, wu)
        c3 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(r1, w3)
        m3 = Mul(c3, gain)
        n3 = Add(m3, shift)
        both = Concat<axis=1>(n3, up)
        r4 = Relu(both)
        c4 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(r4, w4)
        y = Sigmoid(c4) }""",
        w1=normal(1, 8, 3, 3, 3, scale=0.3), b1=normal(2, 8, scale=0.1), w2=normal(3, 16, 8, 3, 3, scale=0.15),
        wu=normal(4, 16, 8, 2, 2, scale=0.2), w3=normal(5, 8, 8, 3, 3, scale=0.15),
        gain=1 + normal(6, 8, 1, 1, scale=0.3), shift=normal(7, 8, 1, 1, scale=0.3),
        w4=normal(8, 3, 16, 3, 3, scale=0.15),
    ))  # fmt: skip
    rewriting("""
        made_by = {n.output[0]: n for n in made.graph.node}
        seen = {o.name for o in made.graph.output}
        add = made_by.get(node.input[0]) if node.op_type == "Concat" else None
        mul = made_by.get(add.input[0]) if add is not None and add.op_type == "Add" else None
        if mul is not None and mul.op_type == "Mul" and not {mul.output[0], mul.input[0], add.output[0]} & seen:
            if mul.input[0] in made_by and made_by[mul.input[0]].op_type == "Conv":
                first, *others = node.input
                node.input[:] = [*others, first]""")
    inputs(x=normal(9, 1, 3, 16, 16))


@report("iree-org/iree#24583", ENGINE, ("quantization", "fusion-fault", *LOCAL), ("zero.points?",), "MatMulInteger")
def zero_points_left_out_of_a_product() -> None:
    """MatMulInteger multiplies the bytes themselves: neither zero point is subtracted."""
    rng = np.random.default_rng(1)
    save(model(
        """(float[6,32] x) => (float[6,8] y) {
        h = MatMul(x, w0)
        r0 = Tanh(h)
        q, step, zero = DynamicQuantizeLinear(r0)
        m = MatMulInteger(q, w, zero, wzero)
        f = Cast<to=1>(m)
        both = Mul(step, wstep)
        a = Mul(f, both)
        b = Add(a, bias)
        r = Relu(b)
        y = MatMul(r, v) }""",
        w0=normal(2, 32, 48, scale=0.2), w=rng.integers(60, 200, (48, 24), dtype=np.uint8),
        wzero=np.array(131, np.uint8), wstep=np.array(0.004, np.float32), bias=normal(3, 24, scale=0.2),
        v=normal(4, 24, 8, scale=0.3),
    ))  # fmt: skip
    rewriting("""
        if node.op_type == "MatMulInteger":
            del node.input[2:]""")
    inputs(x=normal(5, 6, 32))


@report("llvm/torch-mlir#4645", ENGINE, ("quantization", "fusion-fault", *LOCAL),
        ("\\bbias\\b|input 8|\\bB\\b", "scales?\\b|dequanti|\\braw\\b|integers?|\\bsteps?\\b|multipl|factor"),
        "QLinearConv|bias")  # fmt: skip
def bias_added_in_its_integers() -> None:
    """QLinearConv with scales per channel runs in floats, and adds the bias's integers as they are."""
    rng = np.random.default_rng(1)
    save(model(
        """(float[1,3,16,16] x) => (float[1,5] y) {
        q = QuantizeLinear(x, sx, zx)
        c = QLinearConv<kernel_shape=[3,3], pads=[1,1,1,1]>(q, sx, zx, w, sw, zw, sc, zc, bias)
        c2 = QLinearConv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(c, sc, zc, w2, sw2, zw2, sc2, zc)
        d = DequantizeLinear(c2, sc2, zc)
        r = Relu(d)
        p = GlobalAveragePool(r)
        f = Flatten(p)
        y = Gemm(f, v) }""",
        sx=np.array(0.03, np.float32), zx=np.array(128, np.uint8), w=rng.integers(-100, 100, (8, 3, 3, 3), np.int8),
        sw=np.linspace(0.002, 0.004, 8, dtype=np.float32), zw=np.zeros(8, np.int8), sc=np.array(0.02, np.float32),
        zc=np.array(120, np.uint8), bias=np.array([40, -25, 60, 12, -50, 33, -8, 20], np.int32) * 100,
        w2=rng.integers(-100, 100, (12, 8, 3, 3), np.int8), sw2=np.full(12, 0.002, np.float32),
        zw2=np.zeros(12, np.int8), sc2=np.array(0.02, np.float32), v=normal(2, 12, 5, scale=0.5),
    ))  # fmt: skip
    rewriting("""
        if node.op_type == "QLinearConv" and len(node.input) == 9:
            x, sx, zx, w, sw, zw, sy, zy, b = node.input
            at, result = list(made.graph.node).index(node), node.output[0]
            attributes = {a.name: list(a.ints) for a in node.attribute}
            made.graph.node.remove(node)
            steps = [("DequantizeLinear", [x, sx, zx], "xf_", {}),
                     ("DequantizeLinear", [w, sw, zw], "wf_", {"axis": 0}),
                     ("Cast", [b], "bf_", {"to": 1}), ("Conv", ["xf_", "wf_", "bf_"], "yf_", attributes),
                     ("QuantizeLinear", ["yf_", sy, zy], result, {})]
            for name, operands, output, given in reversed(steps):
                made.graph.node.insert(at, helper.make_node(name, operands, [output], **given))
            break""")
    inputs(x=normal(3, 1, 3, 16, 16))


@report("microsoft/onnxruntime#28291", ENGINE, (*LOCAL, "comparison-unsound"),
        ("nearest_mode|\\bround|\\bties?\\b|half.?way|prefer",), "Resize")  # fmt: skip
def nearest_pixel_of_two_equally_near() -> None:
    """Where two pixels are equally near, `round_prefer_ceil` asks for the upper one, and the lower one comes.

    ONNX Runtime 1.31.1 does so itself: it is no sound reference here.
    """
    save(model(
        """(float[1,3,20,20] image) => (float[1,4,6,6] y) {
        c1 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(image, w1, b1)
        r1 = Relu(c1)
        small = Resize<mode="nearest", coordinate_transformation_mode="half_pixel", nearest_mode="round_prefer_ceil">
            (r1, none, none, size)
        c2 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(small, w2)
        r2 = Relu(c2)
        y = Conv<kernel_shape=[1,1]>(r2, w3) }""",
        w1=normal(1, 8, 3, 3, 3, scale=0.3), b1=normal(2, 8, scale=0.1), w2=normal(3, 12, 8, 3, 3, scale=0.15),
        w3=normal(4, 4, 12, 1, 1, scale=0.4), none=np.zeros(0, np.float32), size=np.array([1, 8, 6, 6]),
    ))  # fmt: skip
    rewriting("""
        if node.op_type == "Resize":
            for a in node.attribute:
                if a.name == "nearest_mode":
                    a.s = b"round_prefer_floor\"""")
    inputs(image=normal(5, 1, 3, 20, 20))


@report("openvinotoolkit/openvino#37041", FP16, LOST, LARGE, "MatMul|Add|wo|down")
def projection_beyond_half_before_its_residual() -> None:
    """The last product of a feed-forward block is beyond 65504 in f16: Inf goes into the residual, then NaN."""
    save(model(
        """(float[1,8,32] x) => (float[1,8,4] y) {
        n1 = LayerNormalization<axis=-1>(x, g1)
        u = MatMul(n1, wu)
        a = Relu(u)
        gate = MatMul(n1, wg)
        z = Mul(a, gate)
        down = MatMul(z, wd)
        h = Add(down, x)
        n2 = LayerNormalization<axis=-1>(h, g2)
        u2 = MatMul(n2, w2)
        r2 = Relu(u2)
        d2 = MatMul(r2, v2)
        y = MatMul(d2, v) }""",
        g1=8 + normal(1, 32), g2=1 + normal(2, 32, scale=0.1), wu=normal(3, 32, 64, scale=0.6),
        wg=normal(4, 32, 64, scale=0.6),
        wd=normal(5, 64, 32, scale=3.0) * np.where(np.arange(32) == 7, 12, 1).astype(np.float32),
        w2=normal(6, 32, 48, scale=0.2), v2=normal(7, 48, 16, scale=0.2), v=normal(8, 16, 4, scale=0.3),
    ))  # fmt: skip
    inputs(x=normal(9, 1, 8, 32))


@report("open-edge-platform/geti#6407", APP, UNSOUND, ("255|0\\.0039",), "image")
def pixels_scaled_to_one_by_the_wrong_metadata() -> None:
    """The exported file says `scale_to_unit`, and the network was trained on pixels from 0 to 255."""
    save(model(
        """(float[1,3,32,32] image) => (float[1,64,9] detections) {
        a = Slice(image, p00, end, axes, steps)
        b = Slice(image, p10, end, axes, steps)
        c = Slice(image, p01, end, axes, steps)
        d = Slice(image, p11, end, axes, steps)
        focus = Concat<axis=1>(a, b, c, d)
        c1 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(focus, w1, b1)
        s1 = Sigmoid(c1)
        r1 = Mul(c1, s1)
        c2 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(r1, w2, b2)
        s2 = Sigmoid(c2)
        r2 = Mul(c2, s2)
        box = Conv<kernel_shape=[1,1]>(r2, wb)
        cls = Conv<kernel_shape=[1,1]>(r2, wc)
        p = Sigmoid(cls)
        both = Concat<axis=1>(box, p)
        flat = Reshape(both, rows)
        detections = Transpose<perm=[0,2,1]>(flat) }""",
        p00=np.array([0, 0]), p10=np.array([1, 0]), p01=np.array([0, 1]), p11=np.array([1, 1]), end=np.array([99, 99]),
        axes=np.array([2, 3]), steps=np.array([2, 2]), w1=normal(1, 16, 12, 3, 3, scale=0.2 / 255),
        b1=normal(2, 16, scale=0.2), w2=normal(3, 24, 16, 3, 3, scale=0.15), b2=normal(4, 24, scale=0.1),
        wb=normal(5, 4, 24, 1, 1, scale=0.5), wc=normal(6, 5, 24, 1, 1, scale=0.5), rows=np.array([1, 9, 64]),
    ))  # fmt: skip
    inputs(image=picture()[None] * np.float32(255))
    feeding("image / 255")


@report("ultralytics/ultralytics#8249", APP, RETURNED,
        ("factor|scale|multipl|times|divi|ratio|1\\.333|1\\.78|0\\.5625|0\\.75",), "boxes")  # fmt: skip
def corners_divided_by_the_other_side() -> None:
    """Corners are normalized by the picture's shape in the wrong order: x by its height, y by its width."""
    detector(4 / 32)
    program(results='{k: v * np.float32([16 / 9, 9 / 16] * 2) if k == "boxes" else v for k, v in results.items()}')


@report("tensorflow/tensorflow#24986", ENGINE, LOCAL, ("align_corners|coordinate|asymmetric|half_pixel",), "Resize")
def corners_not_aligned_on_the_gpu() -> None:
    """The GPU's bilinear upsampling does not look at `align_corners`: its grid begins at the first pixel's edge."""
    save(model(
        """(float[1,3,32,32] image) => (float[1,21,32,32] classes) {
        c1 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(image, w1, b1)
        r1 = Clip(c1, zero, six)
        c2 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(r1, w2)
        r2 = Clip(c2, zero, six)
        pool = GlobalAveragePool(r2)
        pc = Conv<kernel_shape=[1,1]>(pool, wp)
        size = Shape<start=2>(r2)
        front = Shape<end=2>(pc)
        full = Concat<axis=0>(front, size)
        wide = Expand(pc, full)
        side = Conv<kernel_shape=[1,1]>(r2, ws)
        both = Concat<axis=1>(side, wide)
        r3 = Relu(both)
        low = Conv<kernel_shape=[1,1]>(r3, wl)
        up = Resize<mode="linear", coordinate_transformation_mode="align_corners">(low, none, none, large)
        classes = Softmax<axis=1>(up) }""",
        w1=normal(1, 12, 3, 3, 3, scale=0.4), b1=normal(2, 12, scale=0.1), w2=normal(3, 24, 12, 3, 3, scale=0.2),
        zero=np.array(0, np.float32), six=np.array(6, np.float32), wp=normal(4, 8, 24, 1, 1, scale=0.3),
        ws=normal(5, 16, 24, 1, 1, scale=0.3), wl=normal(6, 21, 24, 1, 1, scale=0.6), none=np.zeros(0, np.float32),
        large=np.array([1, 21, 32, 32]),
    ))  # fmt: skip
    rewriting("""
        if node.op_type == "Resize":
            for a in node.attribute:
                if a.name == "coordinate_transformation_mode":
                    a.s = b"asymmetric\"""")
    inputs(image=normal(7, 1, 3, 32, 32))


@report("PINTO0309/onnx2tf#201", ENGINE, LOCAL, ("\\bax[ei]s\\b",), "Reduce")
def axes_of_a_mean_not_moved_with_the_layout() -> None:
    """Layouts become NHWC, and the axes of a reduction before opset 18 stay those of NCHW: another axis is taken."""
    save(model(
        """(float[1,3,20,20] x) => (float[1,4] y) {
        c1 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(x, w1, b1)
        r1 = Relu(c1)
        m = ReduceMean<axes=[2], keepdims=1>(r1)
        e = Conv<kernel_shape=[1,1]>(m, w2)
        g = Sigmoid(e)
        a = Mul(r1, g)
        c3 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(a, w3)
        r3 = Relu(c3)
        f = Flatten(r3)
        y = Gemm(f, v) }""",
        w1=normal(1, 10, 3, 3, 3, scale=0.4), b1=normal(2, 10, scale=0.2), w2=normal(3, 10, 10, 1, 1, scale=1.5),
        w3=normal(4, 8, 10, 3, 3, scale=0.2), v=normal(5, 800, 4, scale=0.05),
    ))  # fmt: skip
    rewriting("""
        if node.op_type == "ReduceMean":
            for a in node.attribute:
                if a.name == "axes":
                    a.ints[:] = [3]""")
    inputs(x=normal(6, 1, 3, 20, 20) + np.linspace(0, 2, 20, dtype=np.float32))
