"""What simplifiers, fusions, converters and exporters wrote wrong into a file: second collection."""

import numpy as np
import onnx
from onnx import numpy_helper

from reports import FILE, PYTORCH, changed, inputs, model, normal, report, reweighted, save, script
from reports.exporters import CHANGED, exported, network, normalized
from reports.first import ALONE


@report("onnxsim/onnxsim#265", FILE, CHANGED, ("constant|initializer|weight|value|times 0.5|half",), "four|Mul")
def constants_taken_for_duplicates() -> None:
    """`eliminate_duplicate_initializer` took two constants for one: what was multiplied by 4 is multiplied by 2."""
    made = model(
        """(float[4,16] x) => (float[4,6] y) {
        a = MatMul(x, w)
        h = Div(a, two)
        b = Relu(x)
        g = Mul(b, four)
        s = Add(h, g)
        y = MatMul(s, v) }""",
        w=normal(1, 16, 16, scale=0.3), two=np.array(2, np.float32), four=np.array(4, np.float32),
        v=normal(2, 16, 6, scale=0.3),
    )  # fmt: skip
    save(made)
    merged = onnx.ModelProto.FromString(made.SerializeToString())
    next(n for n in merged.graph.node if n.op_type == "Mul").input[1] = "two"
    merged.graph.initializer.remove(next(t for t in merged.graph.initializer if t.name == "four"))
    save(merged, "target.onnx")
    inputs(x=normal(3, 4, 16))


@report("inisis/OnnxSlim#277", FILE, CHANGED, ("start|end|shift|offset|slice|elsewhere|other elements",), "Slice")
def two_slices_made_one() -> None:
    """`EliminationSlice` joins two Slices of one axis and leaves out where the first one begins."""
    text = """(float[1,24,8] x) => (float[1,5,4] y) {{
        a = MatMul(x, w)
        {slices}
        r = Relu(s)
        y = MatMul(r, v) }}"""
    weights = {"w": normal(1, 8, 8, scale=0.4), "v": normal(2, 8, 4, scale=0.4), "axis": np.array([1])}
    two = text.format(slices="f = Slice(a, b1, e1, axis)\n s = Slice(f, b2, e2, axis)")
    ends = {"b1": np.array([6]), "e1": np.array([20]), "b2": np.array([3]), "e2": np.array([8])}
    save(model(two, **weights, **ends))
    one = text.format(slices="s = Slice(a, b2, e2, axis)")
    save(model(one, **weights, b2=ends["b2"], e2=ends["e2"]), "target.onnx")
    inputs(x=normal(3, 1, 24, 8))


@report("onnx/tensorflow-onnx#201", FILE, CHANGED, ("pad",), "Pad|pads")
def padding_in_another_order() -> None:
    """Padding before and after an axis was written in the wrong order: the picture moves by a pixel."""
    made = model(
        """(float[1,3,15,15] x) => (float[1,5] y) {
        p = Pad(x, pads)
        c = Conv<kernel_shape=[3,3], strides=[2,2]>(p, w)
        r = Relu(c)
        g = GlobalAveragePool(r)
        f = Flatten(g)
        y = MatMul(f, v) }""",
        pads=np.array([0, 0, 0, 0, 0, 0, 1, 1]), w=normal(1, 8, 3, 3, 3, scale=0.4), v=normal(2, 8, 5),
    )  # fmt: skip
    save(made)
    save(reweighted(made, pads=np.array([0, 0, 1, 1, 0, 0, 0, 0])), "target.onnx")
    inputs(x=normal(3, 1, 3, 15, 15))


@report(
    "onnx/tensorflow-onnx#1494", FILE, CHANGED,
    ("weight|constant|fold|twice",), "Conv|BatchNormalization|'w",
)  # fmt: skip
def normalization_applied_twice() -> None:
    """A converter folded a BatchNormalization into the Conv before it, and left it in the file as well."""
    made = normalized()
    save(made)
    stored = {t.name: numpy_helper.to_array(t) for t in made.graph.initializer}
    factor = stored["scale"] / np.sqrt(stored["variance"] + 1e-5)
    save(reweighted(
        made, w=stored["w"] * factor[:, None, None, None],
        b=(stored["b"] - stored["mean"]) * factor + stored["shift"],
    ), "target.onnx")  # fmt: skip
    inputs(x=normal(9, 4, 3, 8, 8))


@report("onnx/optimizer#255", FILE, ("match", "rounding"), ())
def normalization_fused_right() -> None:
    """`fuse_bn_into_conv` "causes an output mismatch" of 4e-6: rounding of the folded weights, and no fault."""
    made = normalized()
    save(made)
    stored = {t.name: numpy_helper.to_array(t) for t in made.graph.initializer}
    factor = stored["scale"] / np.sqrt(stored["variance"] + np.float32(1e-5))
    fused = reweighted(
        made, w=stored["w"] * factor[:, None, None, None],
        b=(stored["b"] - stored["mean"]) * factor + stored["shift"],
    )  # fmt: skip
    fused.graph.node.remove(next(n for n in fused.graph.node if n.op_type == "BatchNormalization"))
    next(n for n in fused.graph.node if n.op_type == "Relu").input[0] = "c"
    kept = [t for t in fused.graph.initializer if t.name not in ("scale", "shift", "mean", "variance")]
    del fused.graph.initializer[:]
    fused.graph.initializer.extend(kept)
    save(fused, "target.onnx")
    inputs(x=normal(9, 4, 3, 8, 8))


@report("microsoft/onnxruntime#18945", FILE, CHANGED, ("mask",), "Attention|MatMul|Softmax|mask|Where|heads")
def fusion_that_counts_on_padding_at_the_right() -> None:
    """Attention fusion keeps the number of tokens of a mask, not the mask: right only for padding at the right."""
    heads, width = 2, 16
    weights = {"w": normal(1, width, 3 * width, scale=0.3), "b": normal(2, 3 * width, scale=0.1)}
    weights["v"] = normal(3, width, 6, scale=0.4)
    before = """(float[2,8,16] x, int64[2,8] mask) => (float[2,8,6] y) {
        p = MatMul(x, w)
        pb = Add(p, b)
        q, k, u = Split<axis=-1>(pb)
        q4 = Reshape(q, four)
        k4 = Reshape(k, four)
        u4 = Reshape(u, four)
        qh = Transpose<perm=[0,2,1,3]>(q4)
        kh = Transpose<perm=[0,2,3,1]>(k4)
        uh = Transpose<perm=[0,2,1,3]>(u4)
        s = MatMul(qh, kh)
        scaled = Mul(s, factor)
        seen = Cast<to=1>(mask)
        hidden = Sub(one, seen)
        far = Mul(hidden, low)
        add = Unsqueeze(far, axes)
        masked = Add(scaled, add)
        a = Softmax<axis=-1>(masked)
        o = MatMul(a, uh)
        ot = Transpose<perm=[0,2,1,3]>(o)
        heads = Reshape(ot, three)
        y = MatMul(heads, v) }"""
    save(model(
        before, **weights, four=np.array([2, 8, heads, width // heads]), three=np.array([2, 8, width]),
        factor=np.array((width // heads) ** -0.5, np.float32), one=np.array(1, np.float32),
        low=np.array(-10000, np.float32), axes=np.array([1, 2]),
    ))  # fmt: skip
    after = """(float[2,8,16] x, int64[2,8] mask) => (float[2,8,6] y) {
        small = Cast<to=6>(mask)
        number = ReduceSum<keepdims=0>(small, last)
        heads = com.microsoft.Attention<num_heads=2>(x, w, b, number)
        y = MatMul(heads, v) }"""
    onnx.save(model(after, domain="com.microsoft", **weights, last=np.array([1])), "target.onnx")
    mask = np.array([[0, 0, 1, 0, 1, 1, 0, 1], [1, 0, 1, 0, 1, 0, 1, 1]])
    inputs(x=normal(4, 2, 8, 16), mask=mask)


@report("microsoft/onnxscript#2852", PYTORCH, CHANGED, ("reset",), "GRU", needs="torch")
def gate_applied_before_the_product() -> None:
    """The exporter left out GRU's `linear_before_reset`: PyTorch resets behind the product, ONNX before it."""
    network(
        "return self.fc(self.rnn(x)[0])", "torch.randn(2, 10, 8)",
        "self.rnn = nn.GRU(8, 24, batch_first=True); self.fc = nn.Linear(24, 4)",
    )  # fmt: skip
    made = exported()
    (gru,) = (n.name for n in made.graph.node if n.op_type == "GRU")
    save(changed(made, gru, linear_before_reset=None))


@report("onnx/onnx#4676", PYTORCH, (*CHANGED, "comparison-unsound"),
        ("trac|branch|python|condition|example",), needs="torch")  # fmt: skip
def branch_of_the_example() -> None:
    """A Python `if` on a tensor was traced: the file holds the branch that the example took."""
    network(
        "x = F.relu(self.one(x))\n                if x.mean() > 0.9:\n                    return self.two(x) * 0.5\n"
        "                return self.three(x)",
        "torch.randn(4, 8)",
        "self.one, self.two, self.three = nn.Linear(8, 16), nn.Linear(16, 5), nn.Linear(16, 5)",
    )
    exported()
    inputs(x=normal(3, 4, 8, scale=6))


@report("microsoft/onnxruntime#4589", PYTORCH, ("comparison-unsound", "model-changed", "nondeterministic-run"),
        ("train|eval",), needs="torch")  # fmt: skip
def network_left_in_training() -> None:
    """The network that the file is held against was never put into `eval`: dropout and batch statistics are on."""
    network(
        "return self.fc(self.drop(F.relu(self.norm(self.conv(x)))).flatten(1))", "torch.randn(4, 3, 8, 8)",
        "self.conv, self.norm, self.drop = nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.Dropout(0.3); "
        "self.fc = nn.Linear(216, 5)",
    )  # fmt: skip
    exported()
    from pathlib import Path

    Path("net.py").write_text(Path("net.py").read_text().replace("Net().eval()", "Net().train()"))


@report("microsoft/onnxruntime#4187", ALONE, ("comparison-unsound", "model-changed", "layout"),
        ("revers|flip|backward|direction|order",), "LSTM|time|y|axis")  # fmt: skip
def backward_lstm_of_keras() -> None:
    """Keras leaves the results of `go_backwards` in the order they came, ONNX's reverse LSTM puts them in time."""
    save(model(
        """(float[7,2,6] x) => (float[7,1,2,10] y) {
        y, h, c = LSTM<hidden_size=10, direction="reverse">(x, w, r, b) }""",
        w=normal(1, 1, 40, 6, scale=0.5), r=normal(2, 1, 40, 10, scale=0.3), b=normal(3, 1, 80, scale=0.1),
    ))  # fmt: skip
    script(
        "net.py",
        """
        import pathlib
        import onnxruntime


        class Session:
            def __init__(self):
                self.network = onnxruntime.InferenceSession(str(pathlib.Path(__file__).parent / "model.onnx"))

            def run(self, feed):
                return {"y": self.network.run(["y"], feed)[0][::-1].copy()}


        class Original:
            def compile(self, model_path, options):
                return Session()
        """,
    )
    inputs(x=normal(4, 7, 2, 6))
