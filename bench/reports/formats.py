"""What fp16, bf16 and TF32 cannot hold."""

import numpy as np
import onnx
from onnx import numpy_helper

from reports import FILE, TARGET, inputs, model, normal, planted, report, rewriting, save

FP16 = TARGET + "emulate:precision=fp16"
RANGE = ("range-overflow",)
LOST = ("range-overflow", "non-finite")
NORM = """(float[8,64] x) => (float[8,16] y) {
        mean = ReduceMean<axes=[-1]>(x)
        apart = Sub(x, mean)
        square = Pow(apart, two)
        variance = ReduceMean<axes=[-1]>(square)
        some = Add(variance, epsilon)
        deviation = Sqrt(some)
        even = Div(apart, deviation)
        scaled = Mul(even, gain)
        shifted = Add(scaled, shift)
        y = MatMul(shifted, w) }"""


def norm(epsilon: float, two: float = 2) -> onnx.ModelProto:
    """Return a layer normalization in single steps, and what follows."""
    return model(
        NORM, two=np.array(two, np.float32), epsilon=np.array(epsilon, np.float32), gain=1 + normal(1, 64, scale=0.1),
        shift=normal(2, 64, scale=0.1), w=normal(3, 64, 16, scale=0.1),
    )  # fmt: skip


@report("NVIDIA/TensorRT#2564", FP16, RANGE, ("65504|largest|too large|overflow|beyond",), "Pow")
def square_in_layer_normalization() -> None:
    """A few large activations of a BERT: their squares are Inf in fp16; the layer normalization has to stay in fp32."""
    save(norm(1e-5))
    x = normal(4, 8, 64)
    x[::2, 7] = 400
    inputs(x=x)


@report("microsoft/onnxruntime#12726", FP16, RANGE, ("65504|largest|too large|overflow|beyond",), "Pow|variance")
def rows_that_equal_the_bias() -> None:
    """Normalized rows are 0 since their variance is Inf in fp16: nothing is NaN, the output is the layer's bias."""
    save(norm(1e-12))
    inputs(x=normal(4, 8, 64, scale=300))


@report("NVIDIA/TensorRT#2466", FP16, LOST, ("constant|999999995904|1e\\+?12", "NaN|Inf"), "Mul|penalty")
def mask_of_minus_1e12() -> None:
    """The mask of attention is (1 - mask) * -1e12: -Inf in fp16, and 0 * -Inf is NaN."""
    made = model(
        """(float[2,8,16] x, float[2,1,8] mask) => (float[2,8,16] y) {
        q = MatMul(x, wq)
        k = MatMul(x, wk)
        kt = Transpose<perm=[0,2,1]>(k)
        s = MatMul(q, kt)
        hidden = Sub(one, mask)
        masked = Mul(hidden, penalty)
        t = Add(s, masked)
        a = Softmax<axis=-1>(t)
        y = MatMul(a, x) }""",
        wq=normal(1, 16, 16, scale=0.2), wk=normal(2, 16, 16, scale=0.2), one=np.array(1, np.float32),
        penalty=np.array(-999999995904, np.float32),
    )  # fmt: skip
    save(made)
    mask = np.ones((2, 1, 8), np.float32)
    mask[1, 0, 5:] = 0
    inputs(x=normal(3, 2, 8, 16), mask=mask)


@report("apple/coremltools#2669", FP16, LOST, ("constant|3\\.4\\d*e\\+?38|mask", "NaN|Inf"), "Where|Softmax|Add|lowest")
def mask_of_the_lowest_float() -> None:
    """The mask is float32's lowest number: -Inf in fp16, and a row that is masked everywhere is NaN behind Softmax."""
    made = model(
        """(float[2,8,16] x, bool[2,8,8] seen) => (float[2,8,16] y) {
        q = MatMul(x, wq)
        kt = Transpose<perm=[0,2,1]>(x)
        s = MatMul(q, kt)
        t = Where(seen, s, lowest)
        a = Softmax<axis=-1>(t)
        y = MatMul(a, x) }""",
        wq=normal(1, 16, 16, scale=0.2), lowest=np.array(np.finfo(np.float32).min, np.float32),
    )  # fmt: skip
    save(made)
    seen = np.broadcast_to(np.tril(np.ones((8, 8), bool)), (2, 8, 8)).copy()
    seen[1, :3] = False  # padding on the left
    inputs(x=normal(3, 2, 8, 16), seen=seen)


@report(
    "microsoft/onnxconverter-common#323", TARGET + "script:engine.py,hardware=gpu,precision=fp16",
    LOST, ("sum|accumulat|overflow|65504|largest",), "ReduceMean",
)  # fmt: skip
def mean_of_many_in_fp16() -> None:
    """The mean of 512 x 512 pixels is NaN or 0 on a GPU in fp16: the sum leaves the format, the mean would not."""
    made = model(
        """(float[1,3,512,512] x) => (float[1,4] y) {
        m = ReduceMean<axes=[2,3], keepdims=0>(x)
        y = MatMul(m, w) }""",
        w=normal(1, 3, 4),
    )
    save(made)
    rewriting("""
        if node.op_type == "ReduceMean":
            total = node.output[0]
            node.op_type, node.output[0] = "ReduceSum", f"{total}_sum"
            axes = next(a for a in node.attribute if a.name == "axes").ints
            made.graph.initializer.append(numpy_helper.from_array(np.array(list(axes)), "axes_of_sum"))
            node.attribute.remove(next(a for a in node.attribute if a.name == "axes"))
            node.input.append("axes_of_sum")
            made.graph.initializer.append(numpy_helper.from_array(np.float32(2**-18), "share"))
            steps = [("Cast", [f"{total}_sum"], f"{total}_half", {"to": 10}),
                     ("Cast", [f"{total}_half"], f"{total}_wide", {"to": 1}),
                     ("Mul", [f"{total}_wide", "share"], total, {})]
            at = list(made.graph.node).index(node)
            for name, operands, result, attributes in reversed(steps):
                made.graph.node.insert(at + 1, helper.make_node(name, operands, [result], **attributes))
            break""")
    inputs(x=np.random.default_rng(2).random((1, 3, 512, 512), np.float32))


@report(
    "NVIDIA/TensorRT#1954",
    FP16,
    RANGE,
    ("65504|largest|too large|overflow|beyond",),
    "ReduceSum|ReduceL2|Mul|square|total",
)
def l2_normalization() -> None:
    """`l2_normalize` overflows: the sum of squares is Inf in fp16, and the vector 0."""
    made = model(
        """(float[4,256] x) => (float[4,8] y) {
        h = MatMul(x, w)
        square = Mul(h, h)
        total = ReduceSum(square, last)
        length = Sqrt(total)
        unit = Div(h, length)
        y = MatMul(unit, v) }""",
        w=normal(1, 256, 256), last=np.array([-1]), v=normal(2, 256, 8),
    )  # fmt: skip
    save(made)
    inputs(x=normal(3, 4, 256, scale=3))


@report(
    "openvinotoolkit/openvino#8676",
    FP16,
    LOST,
    ("1e-0?9|becomes (0|zero)|epsilon|vanish|too small|0 / 0",),
    "Max|Div|eps",
)
def division_by_a_vanished_epsilon() -> None:
    """X / max(y, 1e-9): the epsilon is 0 in fp16, and where x and y are 0 the quotient is NaN."""
    made = model(
        """(float[6,16] x, float[6,1] weight) => (float[6,4] y) {
        kept = Mul(x, weight)
        safe = Max(weight, eps)
        even = Div(kept, safe)
        y = MatMul(even, w) }""",
        eps=np.array(1e-9, np.float32), w=normal(1, 16, 4),
    )  # fmt: skip
    save(made)
    weight = np.abs(normal(2, 6, 1)) + np.float32(0.5)
    weight[4:] = 0
    inputs(x=normal(3, 6, 16), weight=weight)


@report(
    "EleutherAI/gpt-neox#1003",
    TARGET + "emulate:precision=bf16",
    ("rounding",),
    ("too coarse|coarse|position|lacks",),
    "angles|Mul|Cast|positions|Cos|Sin",
)
def rotary_positions() -> None:
    """Angles of rotary embeddings are large where positions are: of bf16's, cosines and sines are other numbers."""
    made = model(
        """(float[1,600,16] x, int64[600] at) => (float[1,600,16] y) {
        number = Cast<to=1>(at)
        positions = Unsqueeze(number, one)
        angles = Mul(positions, frequencies)
        c = Cos(angles)
        s = Sin(angles)
        a, b = Split<axis=-1>(x)
        ac = Mul(a, c)
        bs = Mul(b, s)
        left = Sub(ac, bs)
        as_ = Mul(a, s)
        bc = Mul(b, c)
        right = Add(as_, bc)
        y = Concat<axis=-1>(left, right) }""",
        one=np.array([1]), frequencies=(10000 ** (-np.arange(8) / 8)).astype(np.float32),
    )  # fmt: skip
    save(made)
    inputs(x=normal(1, 1, 600, 16), at=np.arange(1400, 2000))


@report("microsoft/onnxruntime#19288", TARGET + "script:engine.py,hardware=gpu,operands=tf32", ("rounding",), ("TF32",))
def another_gpu() -> None:
    """The same network differs from GPU to GPU by a thousandth: newer ones multiply in TF32 unless told not to."""
    made = model(
        """(float[2,3,24,24] x) => (float[2,10] y) {
        c = Conv<kernel_shape=[3,3], strides=[2,2]>(x, w1)
        r = Relu(c)
        d = Conv<kernel_shape=[3,3]>(r, w2)
        s = Relu(d)
        p = GlobalAveragePool(s)
        f = Flatten(p)
        y = Gemm(f, w3) }""",
        w1=normal(1, 32, 3, 3, 3, scale=0.3), w2=normal(2, 64, 32, 3, 3, scale=0.1), w3=normal(3, 64, 10, scale=0.3),
    )  # fmt: skip
    save(made)
    planted("SimulatedAccelerator")
    inputs(x=normal(4, 2, 3, 24, 24))


@report(
    "openvinotoolkit/openvino#36201",
    "diagnose model.onnx --inputs inputs.npz --reference float64:rounding=results --target openvino",
    ("rounding",), ("tie|decide|rounds? |rounding of",), "Floor",
)  # fmt: skip
def floor_of_a_cosine() -> None:
    """Floor of a cosine that fp16 rounds to 1: 1 where it was rounded, 0 where it was kept in fp32."""
    made = model("(float16[8] x) => (float16[8] c, float16[8] y) {\n c = Cos(x)\n d = Cos(x)\n y = Floor(d) }")
    save(made)
    inputs(x=np.array([5e-3, 0.02, 0.03, 0.07, 0.5, 1, 2, 3], np.float16))


@report(
    "openvinotoolkit/openvino#15575",
    FILE,
    ("range-overflow", "model-changed"),
    ("subnormal|denormal|below|smallest|zero|are 0",),
    "w|MatMul|Conv",
)
def small_weights_left_out() -> None:
    """A conversion to fp16 leaves weights below its normal numbers out: they are 0 in the file."""
    made = model(
        """(float[4,32] x) => (float[4,6] y) {
        a = MatMul(x, w)
        n = LayerNormalization<epsilon=1.0e-12>(a, gain)
        y = MatMul(n, v) }""",
        w=np.where(np.arange(24) % 2, 1, 0.05).astype(np.float32) * normal(1, 32, 24, scale=2e-4),
        gain=np.ones(24, np.float32), v=normal(2, 24, 6, scale=0.3),
    )  # fmt: skip
    save(made)
    half = onnx.ModelProto.FromString(made.SerializeToString())
    for tensor in half.graph.initializer:
        array = numpy_helper.to_array(tensor)
        kept = np.where(np.abs(array) < 6.2e-5, 0, array).astype(np.float16).astype(np.float32)
        tensor.CopyFrom(numpy_helper.from_array(kept, tensor.name))
    save(half, "target.onnx")
    inputs(x=normal(3, 4, 32))
