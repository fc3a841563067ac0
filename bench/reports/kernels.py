"""Engines whose kernel is wrong, and programs that call them wrong: second collection."""

import numpy as np

from reports import TARGET, feeding, inputs, model, normal, program, report, rewriting, save, script
from reports.engines import BOTH, stateful
from reports.first import ALONE
from reports.programs import APP, UNSOUND, classifier, picture

ENGINE = TARGET + "script:engine.py:Engine"
LOCAL = ("local-fault",)


@report("microsoft/onnxruntime#1607", ENGINE, LOCAL, ("initial|state|direction|backward|reverse|half",), "RNN")
def backward_half_starts_elsewhere() -> None:
    """The backward half of a bidirectional RNN starts from the initial state of the forward half."""
    save(model(
        """(float[6,3,5] x, float[2,3,8] h0) => (float[6,2,3,8] y, float[2,3,8] h) {
        t = Tanh(x)
        y, h = RNN<hidden_size=8, direction="bidirectional", activations=["Relu", "Relu"]>(t, w, r, b, , h0) }""",
        w=normal(1, 2, 8, 5, scale=0.5), r=normal(2, 2, 8, 8, scale=0.3), b=normal(3, 2, 16, scale=0.1),
    ))  # fmt: skip
    rewriting("""
        if node.op_type == "RNN":
            made.graph.initializer.append(numpy_helper.from_array(np.array([0, 0]), "first"))
            at = list(made.graph.node).index(node)
            gather = helper.make_node("Gather", [node.input[5], "first"], ["both"])
            node.input[5] = "both"
            made.graph.node.insert(at, gather)
            break""")
    inputs(x=normal(4, 6, 3, 5), h0=normal(5, 2, 3, 8))


@report("microsoft/onnxruntime#10607", ENGINE, LOCAL, ("border|outside|edge|padding_mode|clamp",), "GridSample")
def bicubic_sampling_at_the_border() -> None:
    """GridSample moves points outside to the border before it takes the cubic's sixteen neighbours."""
    save(model(
        """(float[1,3,8,8] x, float[1,6,6,2] grid) => (float[1,4,6,6] y) {
        a = Conv<kernel_shape=[1,1]>(x, w)
        s = GridSample<mode="bicubic", padding_mode="border", align_corners=1>(a, grid)
        y = Relu(s) }""",
        w=normal(1, 4, 3, 1, 1),
    ))  # fmt: skip
    rewriting("""
        if node.op_type == "GridSample":
            made.graph.initializer.append(numpy_helper.from_array(np.float32(-1), "least"))
            made.graph.initializer.append(numpy_helper.from_array(np.float32(1), "most"))
            at = list(made.graph.node).index(node)
            clip = helper.make_node("Clip", [node.input[1], "least", "most"], ["inside"])
            node.input[1] = "inside"
            made.graph.node.insert(at, clip)
            break""")
    inputs(x=normal(2, 1, 3, 8, 8), grid=normal(3, 1, 6, 6, 2, scale=0.9))


@report("PINTO0309/onnx2tf#207", ENGINE, LOCAL, ("pad|border|edge",), "MaxPool")
def pooling_padded_with_zeros() -> None:
    """MaxPool's border is padded with 0, which is larger than the negative values there."""
    save(model(
        """(float[1,3,12,12] x) => (float[1,4,6,6] y) {
        a = Conv<kernel_shape=[1,1]>(x, w, b)
        m = MaxPool<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(a)
        y = Tanh(m) }""",
        w=normal(1, 4, 3, 1, 1, scale=0.4), b=np.array([-1, -0.5, -1.5, -0.8], np.float32),
    ))  # fmt: skip
    rewriting("""
        if node.op_type == "MaxPool":
            pads = next(a for a in node.attribute if a.name == "pads")
            made.graph.initializer.append(numpy_helper.from_array(np.array([0, 0, 1, 1, 0, 0, 1, 1]), "around"))
            at = list(made.graph.node).index(node)
            made.graph.initializer.append(numpy_helper.from_array(np.float32(1e-30), "nought"))  # 0 is fused away
            pad = helper.make_node("Pad", [node.input[0], "around", "nought"], ["larger"])
            node.input[0] = "larger"
            pads.ints[:] = [0, 0, 0, 0]
            made.graph.node.insert(at, pad)
            break""")
    inputs(x=normal(2, 1, 3, 12, 12))


@report(
    "openvinotoolkit/openvino#35896",
    TARGET + "openvino",
    LOCAL,
    ("int32|32 bits|2\\^31|2147483648",),
    "Cast",
    live=True,
)
def large_floats_made_integers() -> None:
    """Cast from float to int64 gives int32's least number for what does not fit there: ticks in nanoseconds."""
    save(model(
        """(float[6] seconds) => (int64[6] ticks) {
        late = Mul(seconds, rate)
        ticks = Cast<to=7>(late) }""",
        rate=np.array(1e9, np.float32),
    ))  # fmt: skip
    inputs(seconds=np.array([0.5, 1.5, 3, 7, 60, 3600], np.float32))


@report("tinygrad/tinygrad#8546", ENGINE, ("local-fault", "quantization"),
        ("wrap|saturat|clip|overflow|modulo|256|range|cut",), "Quantize")  # fmt: skip
def bytes_that_wrap() -> None:
    """Float numbers beyond a byte are cast to it without a limit: 256 becomes 0, where it had to be 255."""
    save(model(
        """(float[1,3,8,8] x) => (float[1,6,8,8] y) {
        c = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w)
        q = QuantizeLinear(c, scale, zero)
        d = DequantizeLinear(q, scale, zero)
        y = Relu(d) }""",
        w=normal(1, 6, 3, 3, 3, scale=0.4), scale=np.array(0.04, np.float32), zero=np.array(110, np.uint8),
    ))  # fmt: skip
    rewriting("""
        if node.op_type == "QuantizeLinear":
            x, scale, zero = node.input
            result, at = node.output[0], list(made.graph.node).index(node)
            steps = [("Div", [x, scale], "steps_", {}), ("Round", ["steps_"], "whole_", {}),
                     ("Cast", [zero], "zero_", {"to": 1}), ("Add", ["whole_", "zero_"], "moved_", {}),
                     ("Cast", ["moved_"], "wide_", {"to": 6}), ("Cast", ["wide_"], result, {"to": 2})]
            made.graph.node.remove(node)
            for name, operands, output, attributes in reversed(steps):
                made.graph.node.insert(at, helper.make_node(name, operands, [output], **attributes))
            break""")
    inputs(x=normal(2, 1, 3, 8, 8, scale=1.6))


@report("Tencent/ncnn#2649", ENGINE, ("layout", "local-fault"), ("transpos|order|permut|axes",), "Transpose")
def permutation_read_the_other_way() -> None:
    """A converter numbers a Transpose's axes the other way round: channels are computed with as rows."""
    save(model(
        """(float[1,6,5,4] x) => (float[1,120] y) {
        c = Conv<kernel_shape=[1,1]>(x, w)
        t = Transpose<perm=[0,2,3,1]>(c)
        f = Reshape(t, flat)
        y = Tanh(f) }""",
        w=normal(1, 6, 6, 1, 1, scale=0.4), flat=np.array([1, 120]),
    ))  # fmt: skip
    rewriting("""
        if node.op_type == "Transpose":
            result, at = node.output[0], list(made.graph.node).index(node)
            node.attribute[0].ints[:] = [0, 3, 1, 2]
            node.output[0] = "turned"
            made.graph.initializer.append(numpy_helper.from_array(np.array([1, 5, 4, 6]), "shape_of_turned"))
            made.graph.node.insert(at + 1, helper.make_node("Reshape", ["turned", "shape_of_turned"], [result]))
            break""")
    inputs(x=normal(2, 1, 6, 5, 4))


@report(
    "microsoft/onnxruntime#19975",
    BOTH,
    ("nondeterministic-run",),
    ("before|earlier|previous|first (feed|run|input)|stale|old",),
)
def only_the_first_result_is_right() -> None:
    """The first result of a session is right; all others are put together of the first one's and their own."""
    stateful(
        "y = self.network.run(self.names, feed)[0]\n"
        "self.kept = y.copy() if self.kept is None else self.kept\n"
        "y[..., 3:] = self.kept[..., 3:]\n"
        "return {self.names[0]: y}",
        9, 9,
    )  # fmt: skip


TOKENS = """(int64[2,7] ids, int64[2,7] mask, int64[2,7] kinds) => (float[2,5] y) {
        words = Gather(table, ids)
        sorts = Gather(few, kinds)
        x = Add(words, sorts)
        q = MatMul(x, wq)
        xt = Transpose<perm=[0,2,1]>(x)
        s = MatMul(q, xt)
        seen = Cast<to=1>(mask)
        hidden = Sub(one, seen)
        far = Mul(hidden, low)
        row = Unsqueeze(far, axis)
        t = Add(s, row)
        a = Softmax<axis=-1>(t)
        o = MatMul(a, x)
        m = ReduceMean<axes=[1], keepdims=0>(o)
        y = MatMul(m, v) }"""


def tokens(edit: str) -> None:
    """Write a text classifier, its feed, and a program that makes `edit` of the feed."""
    save(model(
        TOKENS, table=normal(1, 50, 16), few=normal(2, 2, 16), wq=normal(3, 16, 16, scale=0.3),
        one=np.array(1, np.float32), low=np.array(-10000, np.float32), axis=np.array([1]), v=normal(4, 16, 5),
    ))  # fmt: skip
    mask = np.ones((2, 7), np.int64)
    mask[0, 5:] = mask[1, 4:] = 0
    ids = np.random.default_rng(5).integers(1, 50, (2, 7)) * mask
    inputs(ids=ids, mask=mask, kinds=np.where(np.arange(7) >= 3, mask, 0))
    program(f'{edit} if "ids" in feed else feed')


@report("NVIDIA/TensorRT#3616", APP, UNSOUND, ("exchang|swap|order|each other",), "mask|kinds")
def inputs_bound_in_another_order() -> None:
    """Inputs are bound by their place, and the engine has them in another order: mask and kinds of tokens change."""
    tokens('{**feed, "mask": feed["kinds"], "kinds": feed["mask"]}')


@report("huggingface/sentence-transformers#2569", APP, UNSOUND, ("mask", "ones|all 1|1 every|padding|pad"), "mask")
def padding_not_masked() -> None:
    """Texts of a batch are padded, and the mask that says so is left out: padding counts as text."""
    tokens('{**feed, "mask": np.ones_like(feed["mask"])}')


@report("tier4/sam2_trt_inference#12", TARGET + "script:app.py:App", ("layout", "comparison-unsound"),
        ("exchang|swap|order|each other",), "high|low")  # fmt: skip
def outputs_read_in_another_order() -> None:
    """A program reads outputs by their place, and the exporter wrote them in another order."""
    save(model(
        """(float[1,3,8,8] image) => (float[1,4,8,8] high, float[1,4,8,8] low) {
        c = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(image, w)
        high = Relu(c)
        d = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(high, v)
        low = Sigmoid(d) }""",
        w=normal(1, 4, 3, 3, 3, scale=0.4), v=normal(2, 4, 4, 3, 3, scale=0.3),
    ))  # fmt: skip
    script(
        "app.py",
        """
        import onnxruntime


        class Session:
            def __init__(self, path):
                self.network = onnxruntime.InferenceSession(path)

            def run(self, feed):
                low, high = self.network.run(None, feed)[:2]
                return {"high": high, "low": low}


        class App:
            def compile(self, model_path, options):
                return Session(str(model_path))
        """,
    )
    inputs(image=normal(3, 1, 3, 8, 8))


@report("microsoft/onnxruntime#19759", ALONE, ("match", "rounding"), ("tie|equal",))
def neighbours_of_equal_distance() -> None:
    """Two points lie at one place: PyTorch's topk names another one of them than ONNX Runtime's."""
    save(model(
        """(float[4,2] a, float[4,2] b) => (int64[4,2] nearest) {
        rows = Unsqueeze(a, one)
        columns = Unsqueeze(b, zero)
        apart = Sub(rows, columns)
        square = Mul(apart, apart)
        distance = ReduceSum<keepdims=0>(square, two)
        d, nearest = TopK<axis=-1, largest=0>(distance, k) }""",
        zero=np.array([0]), one=np.array([1]), two=np.array([2]), k=np.array([2]),
    ))  # fmt: skip
    script(
        "net.py",
        """
        import numpy as np


        class Session:
            def run(self, feed):
                apart = feed["a"][:, None] - feed["b"][None]
                distance = (apart * apart).sum(-1)
                order = np.stack([np.lexsort((-np.arange(4), row)) for row in distance])
                return {"nearest": order[:, :2].astype(np.int64)}


        class Original:
            def compile(self, model_path, options):
                return Session()
        """,
    )
    points = np.array([[1, 1], [2, 2], [0, 0], [0, 0]], np.float32)
    inputs(a=points, b=points)


@report("jaywalnut310/vits#23", TARGET + "onnxruntime", ("nondeterministic-run", "comparison-unsound"),
        ("random|noise|seed",), "RandomNormalLike|noise")  # fmt: skip
def noise_of_a_vocoder() -> None:
    """A speech model draws noise: no two runs are alike, in any engine; give the noise as an input, or a seed."""
    save(model(
        """(float[1,40,16] text) => (float[1,40,8] speech) {
        m = MatMul(text, wm)
        s = MatMul(text, ws)
        spread = Exp(s)
        noise = RandomNormalLike(m)
        scaled = Mul(noise, spread)
        z = Add(m, scaled)
        speech = MatMul(z, v) }""",
        wm=normal(1, 16, 16, scale=0.3), ws=normal(2, 16, 16, scale=0.1), v=normal(3, 16, 8, scale=0.3),
    ))  # fmt: skip
    inputs(text=normal(4, 1, 40, 16))


@report("THU-MIG/yolov10#390", APP, UNSOUND, ("letterbox|stretch|aspect|border|pad",), "image")
def stretched_instead_of_letterboxed() -> None:
    """The network was trained on pictures with bars above and below; the program stretches them instead."""
    classifier()
    wide = picture()
    letterboxed = np.full((3, 32, 32), 114 / 255, np.float32)
    letterboxed[:, 8:24] = wide[:, ::2]
    inputs(image=letterboxed[None])
    feeding("np.repeat(image[:, :, 8:24], 2, axis=2)")
