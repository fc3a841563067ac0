"""The reports and trained networks that the product failed on first, each with what is right.

They are no measure, for they have been mended one by one: `tests/e2e/test_public_reports.py` asks them, and
``bench/reports.py`` only by name.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from reports import FILE, PYTORCH, detector, feeding, inputs, model, normal, report, reweighted, save, script
from reports.engines import stateful
from reports.exporters import network
from reports.formats import FP16, LOST
from reports.programs import APP, classifier, picture
from reports.quantization import convolutions, quantized

ALONE = "diagnose model.onnx --inputs inputs.npz --reference script:net.py:Original --target onnxruntime"


@report("microsoft/onnxscript#2479", PYTORCH, ("model-changed",), ("mask", "NaN"), "Softmax", needs="torch", first=True)
def masked_row() -> None:
    """A row that is masked everywhere is 0 in PyTorch, and NaN in files of exporters before mid-2025."""
    network(
        "q, k, v = self.qkv(x).view(2, 6, 3, 2, 8).permute(2, 0, 3, 1, 4); "
        "keep = mask[:, None, :, None] & mask[:, None, None, :]; "
        "return self.out(F.scaled_dot_product_attention(q, k, v, attn_mask=keep).transpose(1, 2).reshape(2, 6, 16))",
        "torch.randn(2, 6, 16), torch.tensor([[True] * 6, [True] * 4 + [False] * 2])",
        "self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)", "x, mask",
    )  # fmt: skip
    import net
    import torch

    made, arguments = net.make()
    torch.onnx.export(
        made, arguments, "model.onnx", input_names=["x", "mask"], output_names=["y"], dynamo=False, opset_version=17
    )
    file = onnx.load("model.onnx")
    (soft,) = (n for n in file.graph.node if n.op_type == "Softmax")
    guard = [n for n in file.graph.node if n.op_type == "IsNaN" or (n.op_type == "Where" and soft.output[0] in n.input)]
    for node in file.graph.node:
        for i, name in enumerate(node.input):
            if guard and name == guard[-1].output[0]:
                node.input[i] = soft.output[0]
    for node in guard:
        file.graph.node.remove(node)
    save(file)
    inputs(x=arguments[0].numpy(), mask=arguments[1].numpy())


@report("microsoft/onnxruntime#14233", FILE, ("quantization",), ("share", "float|outputs of"), "Concat", first=True)
def boxes_and_scores_share_a_scale() -> None:
    """An int8 YOLO detects nothing: boxes up to 640 and scores below 1 are joined, and share one step."""
    save(detector("x", "y", scores=-3))
    quantized([normal(s, 1, 3, 32, 32) for s in range(10, 18)], per_channel=True)
    inputs(x=normal(20, 1, 3, 32, 32))


def dead_channels() -> None:
    """Write a float model and its quantized file; some channels of the depthwise weight are next to nothing."""
    w2, b2 = normal(3, 16, 1, 3, 3, scale=0.3), normal(4, 16, scale=0.3)
    w2[[2, 5, 9, 12]] *= np.float32(1e-9)
    b2[[2, 5, 9, 12]] = [3, 4, 2.5, 3.5]
    save(convolutions(w2=w2, b2=b2))
    quantized([normal(s, 1, 3, 16, 16) for s in range(10, 18)], per_channel=True)
    inputs(x=normal(20, 1, 3, 16, 16))


@report(
    "microsoft/onnxruntime#21000",
    FILE,
    ("quantization", "model-changed"),
    ("int32|2147483647|clip", "bias|b2"),
    "c2|b2",
    first=True,
)
def clipped_biases() -> None:
    """Per channel, a weight near 0 has so small a scale that the bias does not fit in int32: it is clipped there."""
    dead_channels()
    file = onnx.load("target.onnx")
    stored = {t.name: numpy_helper.to_array(t) for t in file.graph.initializer}
    of = {t.name: numpy_helper.to_array(t) for t in onnx.load("model.onnx").graph.initializer}
    scale = np.abs(of["w2"]).max((1, 2, 3)) / np.float32(63)
    step = stored["r1_scale"].reshape(()) * scale
    save(reweighted(
        file, w2_scale=scale, w2_quantized=np.rint(of["w2"] / scale[:, None, None, None]).astype(np.int8),
        b2_quantized_scale=step,
        b2_quantized=np.clip(np.rint(of["b2"].astype(np.float64) / step), -(2**31), 2**31 - 1).astype(np.int32),
    ), "target.onnx")  # fmt: skip


@report(
    "microsoft/onnxruntime#22020",
    "inspect quantizers target.onnx --inputs inputs.npz",
    ("exit 0",),
    ("no|0 |fit",),
    first=True,
)
def biases_that_fit() -> None:
    """The same quantized by today's version, which is sound: Relus were merged into quantizers."""
    dead_channels()


@report(
    "microsoft/onnxruntime#25050",
    FILE,
    ("model-changed",),
    ("axis|axes|flatten", "opset|13|convert"),
    "Softmax",
    first=True,
)
def opset_number_raised() -> None:
    """Only the number of the opset was raised from 11 to 13, and Softmax means something else from there on."""
    made = model(
        """(float[2,3,12,12] x) => (float[2,4] y) {
        c = Conv<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(x, w)
        a = Softmax<axis=1>(c)
        z = Mul(a, c)
        p = GlobalAveragePool(z)
        f = Flatten(p)
        y = Gemm(f, v) }""",
        opset=11, w=normal(1, 8, 3, 3, 3, scale=0.4), v=normal(2, 8, 4),
    )  # fmt: skip
    save(made)
    made.opset_import[0].version = 13
    save(made, "target.onnx")
    inputs(x=normal(3, 2, 3, 12, 12))


@report(
    "onnx/tensorflow-onnx#2174",
    ALONE,
    ("comparison-unsound", "model-changed"),
    ("Div", "negative|floor|toward"),
    first=True,
)
def floordiv_of_a_framework() -> None:
    """A framework's ceil of a division is -floordiv(-a, b); Div cuts off towards zero: lengths are one short."""
    save(model(
        """(float[3,20,8] x, int32[3] lengths) => (float[3,5] y) {
        minus = Neg(lengths)
        q = Div(minus, stride)
        frames = Neg(q)
        wide = Unsqueeze(frames, one)
        alive = Less(steps, wide)
        mask = Cast<to=1>(alive)
        columns = Unsqueeze(mask, two)
        part = Slice(x, zero, seven, one)
        kept = Mul(part, columns)
        s = ReduceSum<keepdims=0>(kept, one)
        y = MatMul(s, w) }""",
        stride=np.array(3, np.int32), one=np.array([1]), two=np.array([2]), zero=np.array([0]), seven=np.array([7]),
        steps=np.arange(7, dtype=np.int32)[None], w=normal(1, 8, 5),
    ))  # fmt: skip
    np.save("w.npy", normal(1, 8, 5))
    inputs(x=normal(2, 3, 20, 8), lengths=np.array([20, 16, 7], np.int32))
    script(
        "net.py",
        """
        import pathlib
        import numpy as np

        W = np.load(pathlib.Path(__file__).parent / "w.npy")


        class Session:
            def run(self, feed):
                frames = -np.floor_divide(-feed["lengths"], 3)
                mask = (np.arange(7)[None] < frames[:, None]).astype(np.float32)
                return {"y": ((feed["x"][:, :7] * mask[:, :, None]).sum(1) @ W).astype(np.float32)}


        class Original:
            def compile(self, model_path, options):
                return Session()
        """,
    )


@report("alibaba/MNN#638", APP, ("comparison-unsound",), ("channel|BGR", "revers|BGR"), "image", first=True)
def blue_first() -> None:
    """The application feeds BGR where the network wants RGB."""
    classifier()
    inputs(image=(picture() * 4 - 2)[None])
    feeding("image[:, ::-1]")


@report(
    "microsoft/onnxruntime#18214",
    "diagnose model.onnx --inputs inputs.npz --reference float64:rounding=results --target onnxruntime",
    ("rounding",), ("tie|decide",), "Cast|label", first=True,
)  # fmt: skip
def integer_of_a_sigmoid() -> None:
    """Sigmoid of 11.6 is 1 where fp16 rounds it, 0.99999 where not, and a Cast to int64 makes 1 or 0 of that."""
    save(
        model(
            "(float16[2,6] a, float16[2,6] b) => (float16[2,6] p, int64[2,6] label) {\n"
            " s = Add(a, b)\n p = Sigmoid(s)\n p2 = Sigmoid(s)\n label = Cast<to=7>(p2) }",
            opset=14,
        )
    )
    rng = np.random.default_rng(18)
    inputs(a=rng.uniform(3, 7, (2, 6)).astype(np.float16), b=rng.uniform(3, 7, (2, 6)).astype(np.float16))


@report(
    "microsoft/onnxruntime#26160",
    "diagnose model.onnx --inputs inputs0.npz --target script:app.py:App",
    ("nondeterministic-run",),
    ("first",),
    first=True,
)
def first_run_of_a_session() -> None:
    """The first run of a session is wrong and all later ones are right: a buffer was used before it was written."""
    stateful(
        "y = self.network.run(self.names, feed)[0]\nfirst, self.kept = self.kept is None, 1\n"
        "return {self.names[0]: y * np.float32(0.8) if first else y}",
        9,
    )


@report(
    "a text detector in fp16",
    FP16,
    ("range-overflow",),
    ("constant|variance", "65,?504"),
    "BatchNormalization",
    first=True,
)
def variance_beyond_fp16() -> None:
    """A BatchNormalization keeps a variance of 9.8e7, Inf in fp16: its channel is silent, and nothing is ever NaN."""
    save(model(
        """(float[1,3,32,32] image) => (float[1,1,32,32] text) {
        s = Conv<kernel_shape=[1,1]>(image, w0)
        n = BatchNormalization(s, gain, shift, mean, variance)
        c = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(n, w1)
        r = Relu(c)
        d = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(r, w2)
        text = Sigmoid(d) }""",
        opset=15, w0=normal(1, 4, 3, 1, 1, scale=90), gain=np.array([9e3, 8e3, 1.1e4, 9.5e3], np.float32),
        shift=normal(2, 4, scale=0.2), mean=np.zeros(4, np.float32),
        variance=np.array([9.8e7, 9.1e7, 8.8e7, 9.4e7], np.float32), w1=normal(3, 8, 4, 3, 3, scale=0.05),
        w2=normal(4, 1, 8, 3, 3, scale=0.2),
    ))  # fmt: skip
    inputs(image=normal(5, 1, 3, 32, 32))


@report("a note detector in fp16", FP16, LOST, ("1e-10|log\\(0\\)|becomes 0|zero",), "Log|Add", first=True)
def vanishing_epsilon() -> None:
    """The epsilon of Log(power + 1e-10) is 0 in fp16: -Inf, and the normalization behind it makes NaN of everything."""
    save(model(
        """(float[1,1,64,32] spectrum) => (float[1,1,64,32] notes) {
        power = Mul(spectrum, spectrum)
        some = Add(power, epsilon)
        level = Log(some)
        low = ReduceMin<keepdims=1, axes=[2,3]>(level)
        high = ReduceMax<keepdims=1, axes=[2,3]>(level)
        above = Sub(level, low)
        range = Sub(high, low)
        scaled = Div(above, range)
        f = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(scaled, w)
        notes = Sigmoid(f) }""",
        epsilon=np.array(1e-10, np.float32), w=normal(1, 1, 1, 3, 3, scale=0.5),
    ))  # fmt: skip
    spectrum = np.abs(normal(2, 1, 1, 64, 32))
    spectrum[:, :, 40:] = 0
    inputs(spectrum=spectrum)


@report(
    "a voice detector without data",
    "diagnose model.onnx --target onnxruntime",
    ("match", "exit 2"),
    ("audio",),
    first=True,
)
def pad_of_a_made_up_length() -> None:
    """Work stands in branches of an If, by the rate; reflection by 32 needs a longer sound than is made up."""

    def branch(size: int, name: str) -> onnx.GraphProto:
        def constant(word: str, array: np.ndarray) -> onnx.NodeProto:
            return helper.make_node("Constant", [], [f"{name}_{word}"], value=numpy_helper.from_array(array))

        def node(op: str, operands: list[str], result: str, **attributes: object) -> onnx.NodeProto:
            given = [operand if operand == "audio" else f"{name}_{operand}" for operand in operands]
            return helper.make_node(op, given, [f"{name}_{result}"], f"/{name}/{op}", **attributes)

        nodes = [
            constant("pads", np.array([0, 0, 0, size // 2])),
            constant("one", np.array([1])),
            constant("w", normal(size, 16, 1, size, scale=0.1)),
            node("Pad", ["audio", "pads"], "long", mode="reflect"),
            node("Unsqueeze", ["long", "one"], "three"),
            node("Conv", ["three", "w"], "frames", kernel_shape=[size], strides=[size]),
            node("ReduceMean", ["frames"], "energy", axes=[1], keepdims=0),
        ]
        result = helper.make_tensor_value_info(f"{name}_energy", TensorProto.FLOAT, None)
        return helper.make_graph(nodes, name, [], [result])

    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [
            helper.make_node("Equal", ["rate", "sixteen"], ["is16"], "/Equal"),
            helper.make_node("If", ["is16"], ["energy"], then_branch=branch(64, "a"), else_branch=branch(32, "b")),
            helper.make_node("Sigmoid", ["energy"], ["speech"], "/Sigmoid"),
        ],
        "vad", [value("audio", TensorProto.FLOAT, [None, None]), value("rate", TensorProto.INT64, [])],
        [value("speech", TensorProto.FLOAT, [None, None])], [numpy_helper.from_array(np.array(16000), "sixteen")],
    )  # fmt: skip
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8))
