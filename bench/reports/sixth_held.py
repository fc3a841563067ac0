"""Half of the sixth collection, whose answers nobody reads: totals alone say what mends are worth."""

import numpy as np

from reports import FILE, TARGET, feeding, inputs, model, normal, program, report, reweighted, rewriting, save
from reports.boards import RETURNED
from reports.engines import BOTH, WRAPS, stateful
from reports.exporters import CHANGED
from reports.kernels import ENGINE, LOCAL
from reports.programs import APP, UNSOUND, picture
from reports.quantization import QUANTIZED, convolutions, quantized


@report("airockchip/rknn-toolkit2#318", FILE, QUANTIZED, ("range|coarse|wide|\\bsteps?\\b|recalibrat|255",),
        "\\bx\\b|\\bx_|Quantize|scale|c1|r1")  # fmt: skip
def calibrated_on_pixels_up_to_255() -> None:
    """No deviation is set: pixels from 0 to 255 calibrate a network of 0 to 1, and all pictures come out alike."""
    save(convolutions())
    rng = np.random.default_rng(10)
    quantized([(rng.random((1, 3, 16, 16)) * 255).astype(np.float32) for _ in range(8)], per_channel=True)
    inputs(x=np.random.default_rng(20).random((1, 3, 16, 16)).astype(np.float32))


@report("openvinotoolkit/openvino#35824", TARGET + "openvino", LOCAL, WRAPS, "TopK", live=True)
def largest_of_large_integers() -> None:
    """TopK of int64 on OpenVINO's CPU device compares the low 32 bits: 2^35 is less than 7."""
    save(model(
        "(int64[5] x) => (int64[3] values, int64[3] at) { values, at = TopK(x, number) }", number=np.array([3])
    ))  # fmt: skip
    inputs(x=np.array([2**35, 2**36, 2**37, 5, 7]))


@report("pytorch/pytorch#64418", APP, RETURNED,
        ("swap|exchang|another output|other output|\\border\\b|each other|permut",), "mean|deviation")  # fmt: skip
def outputs_in_the_order_of_the_engine() -> None:
    """Outputs are taken in the order of the engine's bindings, which is not the network's: two come swapped."""
    save(model(
        """(float[4,16] x) => (float[4,8] mean, float[4,8] deviation) {
        a = MatMul(x, w)
        r = Relu(a)
        mean = MatMul(r, wm)
        d = MatMul(r, wd)
        deviation = Softplus(d) }""",
        w=normal(1, 16, 24, scale=0.3), wm=normal(2, 24, 8, scale=0.3), wd=normal(3, 24, 8, scale=0.3),
    ))  # fmt: skip
    inputs(x=normal(4, 4, 16))
    program(results='{**results, "mean": results["deviation"], "deviation": results["mean"]} '
                    'if {"mean", "deviation"} <= set(results) else results')  # fmt: skip


@report("apple/coremltools#2777", FILE, CHANGED,
        ("weight|constant|initializer|'w\\b", "channel|column|row|scale|factor|times|divid|normali[sz]"),
        "MatMul|'?w\\b|linear")  # fmt: skip
def weight_divided_though_left_alone() -> None:
    """Palettizing leaves out a weight that makes no groups, and has divided it by its channels' maxima before."""
    made = model(
        """(float[4,64] x) => (float[4,10] y) {
        a = MatMul(x, w)
        s = Add(a, b)
        r = Relu(s)
        y = MatMul(r, v) }""",
        w=normal(1, 64, 120, scale=0.2), b=normal(2, 120, scale=0.1), v=normal(3, 120, 10, scale=0.1),
    )  # fmt: skip
    save(made)
    w = normal(1, 64, 120, scale=0.2)
    save(reweighted(made, w=w / np.abs(w).max(axis=0)), "target.onnx")
    inputs(x=normal(4, 4, 64))


@report("Tencent/ncnn#1339", FILE, CHANGED, ("bias|offset|constant|shift",), "Conv|b2|bias|BatchNormalization")
def bias_not_scaled_when_folded() -> None:
    """Folding a BatchNormalization into a depthwise Conv scales the weight, and adds to the bias without scaling it."""
    text = """(float[1,3,12,12] x) => (float[1,4,12,12] y) {{
        c1 = Conv<kernel_shape=[1,1]>(x, w1)
        c2 = Conv<kernel_shape=[3,3], pads=[1,1,1,1], group=8>(c1, w2, b2)
        {normalize}
        r = Relu(n)
        y = Conv<kernel_shape=[1,1]>(r, v) }}"""
    weights = {"w1": normal(1, 8, 3, 1, 1, scale=0.5), "v": normal(2, 4, 8, 1, 1, scale=0.4)}
    w2, b2 = normal(3, 8, 1, 3, 3, scale=0.4), normal(4, 8, scale=0.5)
    gain, shift = 1 + normal(5, 8, scale=0.3), normal(6, 8, scale=0.3)
    mean, variance = normal(7, 8, scale=0.3), np.exp(normal(8, 8))
    normalize = "n = BatchNormalization(c2, gain, shift, mean, variance)"
    save(model(
        text.format(normalize=normalize), **weights, w2=w2, b2=b2, gain=gain, shift=shift, mean=mean, variance=variance
    ))  # fmt: skip
    factor = (gain / np.sqrt(variance + np.float32(1e-5))).astype(np.float32)
    folded = model(
        text.format(normalize="").replace("Relu(n)", "Relu(c2)"), **weights,
        w2=w2 * factor[:, None, None, None], b2=b2 + shift - mean * factor,
    )  # fmt: skip
    save(folded, "target.onnx")
    inputs(x=normal(9, 1, 3, 12, 12))


@report("apache/tvm#20053", ENGINE, ("non-finite", *LOCAL),
        ("\\babs\\b|absolute value|negative|\\bsign\\b|\\|x\\|",), "LpPool")  # fmt: skip
def power_without_the_absolute_value() -> None:
    """The converter writes LpPool as the root of the sum of x^p, where ONNX has |x|^p: wrong for odd p."""
    save(model(
        """(float[1,3,12,12] x) => (float[1,4,6,6] y) {
        c = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w)
        p = LpPool<kernel_shape=[2,2], strides=[2,2], p=3>(c)
        y = Conv<kernel_shape=[1,1]>(p, v) }""",
        w=normal(1, 8, 3, 3, 3, scale=0.4), v=normal(2, 4, 8, 1, 1),
    ))  # fmt: skip
    rewriting("""
        if node.op_type == "LpPool":
            at, x, result = list(made.graph.node).index(node), node.input[0], node.output[0]
            for name, number in (("three_", 3), ("four_", 4), ("third_", 1 / 3)):
                made.graph.initializer.append(numpy_helper.from_array(np.array(number, np.float32), name))
            made.graph.node.remove(node)
            steps = [("Pow", [x, "three_"], "cube_", {}),
                     ("AveragePool", ["cube_"], "mean_", {"kernel_shape": [2, 2], "strides": [2, 2]}),
                     ("Mul", ["mean_", "four_"], "sum_", {}), ("Pow", ["sum_", "third_"], result, {})]
            for name, operands, output, attributes in reversed(steps):
                made.graph.node.insert(at, helper.make_node(name, operands, [output], **attributes))
            break""")
    inputs(x=normal(3, 1, 3, 12, 12))


@report("nnstreamer/nnstreamer#4379", BOTH, ("nondeterministic-run", "intermittent"),
        ("first (run|feed|call|time|inference|one)|later runs?|warm|run 1\\b",))  # fmt: skip
def first_result_never_written() -> None:
    """The output's size is asked for before there is one: nothing is copied in the first run, all in later ones."""
    stateful(
        "y = self.network.run(self.names, feed)[0]\n"
        "size = 0 if self.kept is None else y.size\n"
        "self.kept = y\n"
        "copied = np.zeros_like(y)\n"
        "copied.flat[:size] = y.flat[:size]\n"
        "return {self.names[0]: copied}",
        9, 9,
    )  # fmt: skip


@report("huggingface/optimum-intel#258", ENGINE, (*LOCAL, "quantization", "range-overflow"),
        ("saturat|overflow|32,?767|16.bit|int16|VNNI|pairs?\\b|reduce.range|7.bit",), "MatMulInteger")  # fmt: skip
def sums_of_two_products_in_16_bits() -> None:
    """Without VNNI a CPU adds products of bytes in pairs, in 16 bits that saturate: 8-bit weights are too large."""
    rng = np.random.default_rng(1)
    save(model(
        """(float[6,64] x) => (float[6,10] y) {
        q = QuantizeLinear(x, step, zero)
        m = MatMulInteger(q, w, zero)
        f = Cast<to=1>(m)
        a = Mul(f, factor)
        r = Relu(a)
        y = MatMul(r, v) }""",
        step=np.array(0.01, np.float32), zero=np.array(0, np.uint8), factor=np.array(2e-5, np.float32),
        w=rng.integers(-127, 128, (64, 24), dtype=np.int8), v=normal(2, 24, 10, scale=0.4),
    ))  # fmt: skip
    rewriting("""
        if node.op_type == "MatMulInteger":
            q, w, zero = node.input
            result, at = node.output[0], list(made.graph.node).index(node)
            for name, array in (("rows_", np.array([-1, 1, 32, 2])), ("columns_", np.array([1, -1, 32, 2])),
                                ("last_", np.array([3])), ("then_", np.array([2])),
                                ("least_", np.float32(-32768)), ("most_", np.float32(32767))):
                made.graph.initializer.append(numpy_helper.from_array(array, name))
            made.graph.node.remove(node)
            steps = [("Cast", [q], "qf_", {"to": 1}), ("Reshape", ["qf_", "rows_"], "qp_", {}),
                     ("Cast", [w], "wf_", {"to": 1}), ("Transpose", ["wf_"], "wt_", {"perm": [1, 0]}),
                     ("Reshape", ["wt_", "columns_"], "wp_", {}), ("Mul", ["qp_", "wp_"], "products_", {}),
                     ("ReduceSum", ["products_", "last_"], "pairs_", {"keepdims": 0}),
                     ("Clip", ["pairs_", "least_", "most_"], "words_", {}),
                     ("ReduceSum", ["words_", "then_"], "sums_", {"keepdims": 0}),
                     ("Cast", ["sums_"], result, {"to": 6})]
            for name, operands, output, attributes in reversed(steps):
                made.graph.node.insert(at, helper.make_node(name, operands, [output], **attributes))
            break""")
    inputs(x=np.abs(normal(3, 6, 64)) + np.float32(1))


@report("openvinotoolkit/openvino#7672", APP, UNSOUND, ("channel|BGR|RGB",), "image")
def channels_not_reversed_at_the_end() -> None:
    """`--reverse_input_channels` knows NCHW alone, and leaves an NHWC input as it is: the network gets BGR."""
    save(model(
        """(float[1,32,32,3] image) => (float[1,8] scores) {
        planes = Transpose<perm=[0,3,1,2]>(image)
        c1 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(planes, w1, b1)
        r1 = Relu(c1)
        c2 = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(r1, w2)
        r2 = Relu(c2)
        p = GlobalAveragePool(r2)
        f = Flatten(p)
        z = Gemm(f, w3)
        scores = Softmax<axis=-1>(z) }""",
        w1=normal(1, 16, 3, 3, 3, scale=0.4), b1=normal(2, 16, scale=0.1), w2=normal(3, 32, 16, 3, 3, scale=0.15),
        w3=normal(5, 32, 8, scale=0.8),
    ))  # fmt: skip
    inputs(image=np.ascontiguousarray(np.moveaxis(picture(), 0, -1))[None])
    feeding("image[..., ::-1]")


@report("iree-org/iree#18273", APP, UNSOUND,
        ("int64|int32|64.bit|32.bit|bytes|halves|every (other|second)|\\bzeros?\\b",), "indices")  # fmt: skip
def places_of_64_bits_read_as_32() -> None:
    """A flag makes int32 of the model's int64, and the file of indices has int64 still: each is read as two."""
    save(model(
        "(float[10,200] data, int64[35,1] indices) => (float[35,1,200] y) { y = Gather(data, indices) }",
    ))  # fmt: skip
    inputs(data=normal(1, 10, 200), indices=np.random.default_rng(2).integers(0, 10, (35, 1)))
    program('{**feed, "indices": np.frombuffer(feed["indices"].tobytes(), np.int32)[:35].reshape(35, 1)'
            '.astype(np.int64)} if "indices" in feed else feed')  # fmt: skip
