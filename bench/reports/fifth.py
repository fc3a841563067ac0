"""ONNX Runtime's providers, exporters, converters, optimizers, the onnx package, programs: fifth collection, one half.

Threads are those that a search of the trackers gave first, one for a fault, that name a cause and can be rebuilt
small. Sorted by the SHA-1 of their names they went by turns here and into `fifth_held`, whose answers nobody reads.
"""

import numpy as np
import onnx

from reports import FILE, PYTORCH, inputs, model, normal, report, reweighted, rewriting, save, script
from reports.engines import BOTH, stateful
from reports.exporters import CHANGED, network
from reports.first import ALONE
from reports.frameworks import reference
from reports.kernels import ENGINE, LOCAL

OUTSIDE = ("comparison-unsound", "model-changed")
"""A reference that shows outputs alone, and a file that means something else."""


def framework(made: onnx.ModelProto) -> None:
    """Write a framework that shows outputs alone: ``net.py``, which answers as this model does."""
    save(made, "framework.onnx")
    reference("""
def run(self, feed):
    network = onnxruntime.InferenceSession(str(HERE / "framework.onnx"))
    return dict(zip([o.name for o in network.get_outputs()], network.run(None, feed)))
""")


@report("onnx/tensorflow-onnx#2211", ALONE, OUTSIDE, ("activation|relu|tanh|sigmoid",), "LSTM")
def activations_of_a_bidirectional_lstm() -> None:
    """A Bidirectional LSTM's activations, Relu, are not converted: LSTM takes Sigmoid and Tanh."""
    w, r, b = normal(1, 2, 24, 5, scale=0.5), normal(2, 2, 24, 6, scale=0.3), normal(3, 2, 48, scale=0.2)

    def lstm(activations: str) -> onnx.ModelProto:
        return model(
            f"""(float[7,2,5] x) => (float[7,2,3] y) {{
            all = LSTM<hidden_size=6, direction="bidirectional"{activations}>(x, w, r, b)
            rows = Transpose<perm=[0,2,1,3]>(all)
            flat = Reshape(rows, shape)
            y = MatMul(flat, v) }}""",
            w=w, r=r, b=b, shape=np.array([7, 2, 12]), v=normal(4, 12, 3, scale=0.4),
        )  # fmt: skip

    save(lstm(""))
    framework(lstm(', activations=["Relu", "Relu", "Relu", "Relu", "Relu", "Relu"]'))
    inputs(x=normal(5, 7, 2, 5))


@report("microsoft/onnxruntime#20627", ENGINE + ",optimization=all", ("fusion-fault", "quantization", "local-fault"),
        ("clip|clamp|satur|limit|\\bcut",), "Clip|Quantize")  # fmt: skip
def clip_lost_with_its_quantizer() -> None:
    """A Clip is fused into the QuantizeLinear behind it; a provider that computes in fp16 drops that, and Clip too."""
    save(model(
        """(float[1,3,12,12] x) => (float[1,5] y) {
        c = Conv<kernel_shape=[3,3]>(x, w1)
        cq = QuantizeLinear(c, wide, middle)
        cd = DequantizeLinear(cq, wide, middle)
        k = Clip(cd, low, high)
        kq = QuantizeLinear(k, fine, none)
        kd = DequantizeLinear(kq, fine, none)
        e = Conv<kernel_shape=[3,3]>(kd, w2)
        p = GlobalAveragePool(e)
        f = Flatten(p)
        y = MatMul(f, w3) }""",
        w1=normal(1, 8, 3, 3, 3, scale=0.5), wide=np.float32(0.08), middle=np.array(128, np.uint8),
        low=np.float32(0), high=np.float32(2), fine=np.float32(2 / 255), none=np.array(0, np.uint8),
        w2=normal(2, 6, 8, 3, 3, scale=0.3), w3=normal(3, 6, 5),
    ))  # fmt: skip
    rewriting("""
        seen = {o.name for o in made.graph.output}
        read = {i: [n.op_type for n in made.graph.node if i in n.input] for n in made.graph.node for i in n.input}
        gone = {}
        for one in made.graph.node:
            following, kept = set(read.get(one.output[0], [])), one.output[0] in seen
            quantized = one.op_type == "QuantizeLinear" and following == {"DequantizeLinear"}
            back = one.op_type == "DequantizeLinear" and one.input[0] in gone
            clip = one.op_type == "Clip" and following == {"QuantizeLinear"}
            if not kept and (quantized or back or clip and options.get("optimization", "all") != "none"):
                gone[one.output[0]] = gone.get(one.input[0], one.input[0])
        kept = [n for n in made.graph.node if n.output[0] not in gone]
        for one in kept:
            one.input[:] = [gone.get(i, i) for i in one.input]
        kept = [type(n).FromString(n.SerializeToString()) for n in kept]
        del made.graph.node[:]
        made.graph.node.extend(kept)
        break""")
    inputs(x=normal(4, 1, 3, 12, 12))


@report("pytorch/pytorch#33443", PYTORCH, OUTSIDE, ("constant|baked|traced?|example|fixed|frozen|scale|factor|size",),
        "Div|Mul|box", needs="torch")  # fmt: skip
def scale_of_the_example() -> None:
    """Boxes are brought back to the picture's size by a factor that tracing kept as the example's."""
    network(
        "scale = 16.0 / float(x.shape[-1]); "
        "small = F.interpolate(x, size=(16, 16), mode='bilinear', align_corners=False); "
        "return self.fc(F.relu(self.conv(small)).mean((2, 3))) / scale",
        "torch.rand(1, 3, 24, 24)",
        "self.conv, self.fc = nn.Conv2d(3, 8, 3), nn.Linear(8, 4)",
    )
    import net
    import torch

    made, (x,) = net.make()
    torch.onnx.export(
        made, (x,), "model.onnx", input_names=["x"], output_names=["y"], dynamo=False, opset_version=17,
        dynamic_axes={"x": {2: "height", 3: "width"}},
    )  # fmt: skip
    inputs(x=np.random.default_rng(1).random((1, 3, 40, 40), np.float32))


@report("ultralytics/ultralytics#19997",
        "diagnose model.onnx --inputs inputs.npz --reference script:predictor.py:App --target script:app.py:App",
        ("comparison-unsound", "layout"), ("0\\.75|1\\.33|4/3|3/4|scale|factor|ratio|gain",), "boxes")  # fmt: skip
def boxes_scaled_by_the_height_twice() -> None:
    """The example's gain divides the width, too, by the picture's height: boxes of a wide picture are too small."""
    save(model(
        """(float[1,3,32,32] images) => (float[1,4,16] boxes, float[1,5,16] scores) {
        c = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(images, w1)
        r = Relu(c)
        d = Conv<kernel_shape=[3,3], strides=[4,4]>(r, w2, b2)
        place = Reshape(d, nine)
        boxes, flags = Split<axis=1>(place, parts)
        scores = Sigmoid(flags) }""",
        w1=normal(1, 8, 3, 3, 3, scale=0.4), w2=normal(2, 9, 8, 3, 3, scale=0.3),
        b2=np.array([16, 16, 9, 9, 0, 0, 0, 0, 0], np.float32), nine=np.array([1, 9, 16]), parts=np.array([4, 5]),
    ))  # fmt: skip
    for name, gain in (("predictor", "min(32 / 24, 32 / 32)"), ("app", "min(32 / 24, 32 / 24)")):
        script(
            f"{name}.py",
            f"""
            import numpy as np
            import onnxruntime

            GAIN, TOP = {gain}, 4  # a picture of 24 x 32 in a square of 32


            class Session:
                def __init__(self, path):
                    self.network = onnxruntime.InferenceSession(path)
                    self.names = [o.name for o in self.network.get_outputs()]

                def run(self, feed):
                    results = dict(zip(self.names, self.network.run(self.names, feed)))
                    if "boxes" in results:
                        off = np.array([0, TOP, 0, 0], np.float32)[:, None]
                        results["boxes"] = ((results["boxes"] - off) / GAIN).astype(np.float32)
                    return results


            class App:
                def compile(self, model_path, options):
                    return Session(str(model_path))
            """,
        )
    inputs(images=normal(3, 1, 3, 32, 32))


@report("microsoft/onnxscript#3027", FILE, CHANGED, ("beta|bias",), "Gemm|'b")
def normalization_fused_without_beta() -> None:
    """BatchNormalization is fused into a Gemm as if ``beta`` were 1, and the node keeps it: the bias counts twice."""
    numbers = {
        "gain": 1 + normal(3, 12, scale=0.3), "shift": normal(4, 12), "mean": normal(5, 12),
        "variance": np.exp(normal(6, 12)),
    }  # fmt: skip
    both = {"w": normal(1, 16, 12, scale=0.4), "b": normal(2, 12), "v": normal(7, 12, 5, scale=0.4)}
    save(model(
        """(float[6,16] x) => (float[6,5] y) {
        g = Gemm<beta=2.0>(x, w, b)
        n = BatchNormalization(g, gain, shift, mean, variance)
        r = Relu(n)
        y = MatMul(r, v) }""",
        **both, **numbers,
    ))  # fmt: skip
    factor = numbers["gain"] / np.sqrt(numbers["variance"] + np.float32(1e-5))
    fused = model(
        """(float[6,16] x) => (float[6,5] y) {
        n = Gemm<beta=2.0>(x, w, b)
        r = Relu(n)
        y = MatMul(r, v) }""",
        **both,
    )  # fmt: skip
    save(reweighted(fused, w=both["w"] * factor, b=(both["b"] - numbers["mean"]) * factor + numbers["shift"]),
         "target.onnx")  # fmt: skip
    inputs(x=normal(8, 6, 16))


@report("microsoft/onnxruntime#29637", ENGINE, LOCAL,
        ("dilat|shift|clamp|phase|step|neighbou?r|other elements",), "MaxPool")  # fmt: skip
def dilated_maximum_at_the_border() -> None:
    """CUDA's MaxPool moves a window that begins in the padding to 0 and dilates from there: other elements."""
    save(model(
        """(float[1,3,1,24] x) => (float[1,4,1,22] y) {
        c = Conv<kernel_shape=[1,1]>(x, w)
        m = MaxPool<kernel_shape=[1,3], dilations=[1,2], pads=[0,1,0,1]>(c)
        y = Conv<kernel_shape=[1,1]>(m, v) }""",
        w=normal(1, 8, 3, 1, 1), v=normal(2, 4, 8, 1, 1, scale=0.4),
    ))  # fmt: skip
    rewriting("""
        if node.op_type == "MaxPool":
            x, result, at = node.input[0], node.output[0], list(made.graph.node).index(node)
            for name, value in (("at0_", [0]), ("at1_", [1]), ("at2_", [2]), ("at3_", [3]), ("far_", [1 << 30])):
                made.graph.initializer.append(numpy_helper.from_array(np.array(value), name))
            node.output[0] = "right_"
            steps = [("Slice", [x, "at0_", "at1_", "at3_"], "zero_", {}),
                     ("Slice", [x, "at2_", "at3_", "at3_"], "two_", {}),
                     ("Max", ["zero_", "two_"], "first_", {}),
                     ("Slice", ["right_", "at1_", "far_", "at3_"], "others_", {}),
                     ("Concat", ["first_", "others_"], result, {"axis": 3})]
            for name, operands, output, attributes in reversed(steps):
                made.graph.node.insert(at + 1, helper.make_node(name, operands, [output], **attributes))
            break""")
    inputs(x=normal(3, 1, 3, 1, 24))


@report("microsoft/onnxruntime#11875", BOTH, ("intermittent", "nondeterministic-run"),
        ("before|earlier|previous|first (feed|run|input)|stale|\\bold\\b",))  # fmt: skip
def inputs_not_there_in_time() -> None:
    """A kernel fills the input in another stream than the network's: now and then it computes on the one before."""
    stateful(
        "late = self.kept is not None and np.random.default_rng().random() < 0.5\n"
        "used = self.kept if late else {k: v.copy() for k, v in feed.items()}\n"
        "self.kept = {k: v.copy() for k, v in feed.items()}\n"
        "return dict(zip(self.names, self.network.run(self.names, used)))",
        9,
        9,
    )


@report("PaddlePaddle/Paddle2ONNX#330", ALONE, OUTSIDE,
        ("ceil|round(s|ed|ing)? (up|down)|floor|last|edge|border|partial",), "MaxPool")  # fmt: skip
def pooling_that_rounds_down() -> None:
    """`pool2d` with ``ceil_mode`` becomes a MaxPool without: windows that stand over the edge are left out."""

    def pooled(mode: int) -> onnx.ModelProto:
        return model(
            f"""(float[1,3,10,10] x) => (float[1,4] y) {{
            c = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w, b)
            m = MaxPool<kernel_shape=[3,3], strides=[2,2], ceil_mode={mode}>(c)
            r = Relu(m)
            p = GlobalAveragePool(r)
            f = Flatten(p)
            y = Gemm(f, v, u) }}""",
            opset=10, w=normal(1, 8, 3, 3, 3, scale=0.4), b=normal(2, 8, scale=0.2), v=normal(3, 8, 4), u=normal(4, 4),
        )  # fmt: skip

    save(pooled(0))
    framework(pooled(1))
    inputs(x=normal(5, 1, 3, 10, 10))


@report("onnx/onnx#7805", ALONE, ("comparison-unsound",), ("channel|batch|axis 1|neighbou?r|squares|sum", "LRN"),
        "LRN|reference", live=True)  # fmt: skip
def response_of_the_first_channel_alone() -> None:
    """The onnx package's LRN loops over the batch for the channels: of one picture all but the first are not normed."""
    save(model(
        """(float[1,3,8,8] x) => (float[1,4,8,8] y) {
        c = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w)
        n = LRN<size=3, alpha=0.9, beta=0.75, bias=1.0>(c)
        y = Conv<kernel_shape=[1,1]>(n, v) }""",
        w=normal(1, 8, 3, 3, 3, scale=0.6), v=normal(2, 4, 8, 1, 1, scale=0.5),
    ))  # fmt: skip
    script(
        "net.py",
        """
        from onnx.reference import ReferenceEvaluator


        class Session:
            def __init__(self, path):
                self.network = ReferenceEvaluator(path)

            def run(self, feed):
                return dict(zip(self.network.output_names, self.network.run(None, feed)))


        class Original:
            def compile(self, model_path, options):
                return Session(str(model_path))
        """,
    )
    inputs(x=normal(3, 1, 3, 8, 8))


@report("microsoft/onnxruntime#24017", ENGINE, LOCAL, ("batch|broadcast|axis 0|sample|\\brows?\\b|first",),
        "MultiHeadAttention")  # fmt: skip
def bias_of_another_batch() -> None:
    """A bias [batch, 1, n, n] is read at the wrong offset where heads share it: every batch gets that of the first."""
    onnx.save(model(
        """(float[2,6,16] x, float[2,1,6,6] bias) => (float[2,6,5] y) {
        q = MatMul(x, wq)
        k = MatMul(x, wk)
        v = MatMul(x, wv)
        a = com.microsoft.MultiHeadAttention<num_heads=4>(q, k, v, , , bias)
        y = MatMul(a, wo) }""",
        domain="com.microsoft", wq=normal(1, 16, 16, scale=0.4), wk=normal(2, 16, 16, scale=0.4),
        wv=normal(3, 16, 16, scale=0.4), wo=normal(4, 16, 5, scale=0.4),
    ), "model.onnx")  # fmt: skip
    rewriting("""
        if node.op_type == "MultiHeadAttention":
            at, bias = list(made.graph.node).index(node), node.input[5]
            made.graph.initializer.append(numpy_helper.from_array(np.array([0, 0]), "one_batch_"))
            made.graph.node.insert(at, helper.make_node("Gather", [bias, "one_batch_"], ["misread_"], axis=0))
            list(n for n in made.graph.node if n.op_type == "MultiHeadAttention")[0].input[5] = "misread_"
            break""")
    inputs(x=normal(5, 2, 6, 16), bias=normal(6, 2, 1, 6, 6, scale=2))
