"""The other half of the fifth collection (see `fifth`), of which the totals alone are looked at, never an answer."""

import numpy as np
from onnx import helper

from reports import FILE, PYTORCH, inputs, model, normal, program, report, rewriting, save
from reports.exporters import CHANGED, network
from reports.fifth import OUTSIDE
from reports.first import ALONE
from reports.fourth_programs import RETURNED
from reports.frameworks import reference
from reports.kernels import ENGINE, LOCAL
from reports.programs import APP, UNSOUND


@report("onnx/sklearn-onnx#1116", ALONE, OUTSIDE, ("softmax|sigmoid|logistic|twice|double|factor|\\b2 ?\\*|\\* ?2\\b",),
        "LinearClassifier|probabilit")  # fmt: skip
def two_classes_by_softmax() -> None:
    """Discriminant analysis of two classes is a sigmoid of s; the converter writes Softmax of -s and s: of 2 s."""
    coefficients, intercept = normal(1, 10, scale=0.4).astype(float), 0.1
    node = helper.make_node(
        "LinearClassifier", ["x"], ["label", "probabilities"], "/LinearClassifier", domain="ai.onnx.ml",
        coefficients=[*(-coefficients), *coefficients], intercepts=[-intercept, intercept], classlabels_ints=[0, 1],
        multi_class=0, post_transform="SOFTMAX",
    )  # fmt: skip
    value = helper.make_tensor_value_info
    outputs = [value("label", 7, [12]), value("probabilities", 1, [12, 2])]
    graph = helper.make_graph([node], "g", [value("x", 1, [12, 10])], outputs)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
    save(helper.make_model(graph, opset_imports=opsets, ir_version=8))
    np.savez("discriminant.npz", coefficients=coefficients, intercept=intercept)
    reference("""
def run(self, feed):
    kept = np.load(HERE / "discriminant.npz")
    score = feed["x"].astype(np.float64) @ kept["coefficients"] + kept["intercept"]
    second = 1 / (1 + np.exp(-score))
    both = np.stack([1 - second, second], 1).astype(np.float32)
    return {"label": both.argmax(1), "probabilities": both}
""")
    inputs(x=normal(2, 12, 10))


@report("microsoft/onnxruntime#25855", ENGINE + ",optimization=all", ("fusion-fault",),
        ("fus|together|merg|optimi[sz]ation", "broadcast|shape|axis|axes|gain|scaled|row"),
        "LayerNorm|ReduceMean|Sub|Pow|Sqrt|Div|Mul|Add")  # fmt: skip
def gain_of_another_axis() -> None:
    """LayerNormFusion does not look at the gain's shape: one for a row is read as one for an element of it."""
    save(model(
        """(float[1,8,8] x) => (float[1,8,4] y) {
        a = MatMul(x, w)
        mean = ReduceMean<axes=[-1]>(a)
        apart = Sub(a, mean)
        square = Pow(apart, two)
        variance = ReduceMean<axes=[-1]>(square)
        some = Add(variance, epsilon)
        deviation = Sqrt(some)
        even = Div(apart, deviation)
        scaled = Mul(even, gain)
        shifted = Add(scaled, shift)
        y = MatMul(shifted, v) }""",
        w=normal(1, 8, 8, scale=0.5), two=np.float32(2), epsilon=np.float32(1e-5), gain=1 + normal(2, 8, 1, scale=0.5),
        shift=normal(3, 8, 1, scale=0.5), v=normal(4, 8, 4, scale=0.4),
    ))  # fmt: skip
    rewriting("""
        inner = ["mean", "apart", "square", "variance", "some", "deviation", "even", "scaled"]
        made_by = {o: n for n in made.graph.node for o in n.output}
        seen = {o.name for o in made.graph.output}
        fuses = options.get("optimization", "all") != "none" and all(n in made_by and n not in seen for n in inner)
        if fuses and "shifted" in made_by:
            stored = {t.name: numpy_helper.to_array(t) for t in made.graph.initializer}
            source = made_by["mean"].input[0]
            for name in ("gain", "shift"):
                made.graph.initializer.append(numpy_helper.from_array(stored[name].ravel(), name + "_flat"))
            at = list(made.graph.node).index(made_by["shifted"])
            for name in [*inner, "shifted"]:
                made.graph.node.remove(made_by[name])
            at -= len(inner)
            fused = helper.make_node("LayerNormalization", [source, "gain_flat", "shift_flat"], ["shifted"])
            made.graph.node.insert(at, fused)
        break""")
    inputs(x=normal(5, 1, 8, 8))


@report("onnx/tensorflow-onnx#934", FILE, CHANGED, ("axis|axes",), "Slice|axes")
def axes_that_two_slices_share() -> None:
    """The optimizer moves a Transpose behind a Slice and changes its axes, which another Slice reads as well."""
    weights = {"w": normal(1, 6, 6, 1, 1, scale=0.5), "v": normal(2, 4, 4, 1, 1)}
    numbers = {"starts": np.array([1]), "ends": np.array([5])}
    tail = """
        p = GlobalMaxPool(a)
        o = GlobalMaxPool(b)
        y = Concat<axis=1>(p, o) }"""
    save(model(
        """(float[1,6,6,6] x) => (float[1,5,1,1] y) {
        t = Transpose<perm=[0,3,1,2]>(x)
        s = Slice(t, starts, ends, axes)
        a = Conv<kernel_shape=[1,1]>(s, v)
        c = Conv<kernel_shape=[1,1]>(t, w)
        k = Slice(c, starts, ends, axes)
        b = ReduceMean<axes=[1]>(k)""" + tail,
        axes=np.array([1]), **numbers, **weights,
    ))  # fmt: skip
    save(model(
        """(float[1,6,6,6] x) => (float[1,5,1,1] y) {
        h = Slice(x, starts, ends, axes)
        s = Transpose<perm=[0,3,1,2]>(h)
        a = Conv<kernel_shape=[1,1]>(s, v)
        t = Transpose<perm=[0,3,1,2]>(x)
        c = Conv<kernel_shape=[1,1]>(t, w)
        k = Slice(c, starts, ends, axes)
        b = ReduceMean<axes=[1]>(k)""" + tail,
        axes=np.array([3]), **numbers, **weights,
    ), "target.onnx")  # fmt: skip
    inputs(x=normal(4, 1, 6, 6, 6))


@report("huggingface/optimum#1381", PYTORCH, CHANGED,
        ("position|cumsum|\\brange|arange|padding|padded|0, 1, 2|counts",),
        "position|CumSum|Gather|Clip|places", needs="torch")  # fmt: skip
def positions_that_padding_moves() -> None:
    """The file counts positions from 0 in every row; rows padded in front begin behind their padding in PyTorch."""
    network(
        "at = (mask.cumsum(-1) - 1).clamp(min=0); "
        "h = self.words(ids) + self.places(at); "
        "q, k, v = self.qkv(h).chunk(3, -1); "
        "s = (q @ k.transpose(1, 2)) / 4 + (1 - mask[:, None].float()) * -10000; "
        "return self.out(F.softmax(s, -1) @ v) * mask[..., None].float()",
        "torch.tensor([[0, 0, 0, 5, 7, 2], [4, 9, 1, 3, 3, 8]]), torch.tensor([[0, 0, 0, 1, 1, 1], [1] * 6])",
        "self.words, self.places = nn.Embedding(12, 16), nn.Embedding(8, 16)\n"
        "                self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 5)",
        "ids, mask",
    )
    import net
    import torch

    made, (ids, mask) = net.make()

    class Counted(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = made

        def forward(self, ids: "torch.Tensor", mask: "torch.Tensor") -> "torch.Tensor":
            n = self.net
            h = n.words(ids) + n.places(torch.arange(6).expand(2, 6))
            q, k, v = n.qkv(h).chunk(3, -1)
            s = (q @ k.transpose(1, 2)) / 4 + (1 - mask[:, None].float()) * -10000
            return n.out(torch.softmax(s, -1) @ v) * mask[..., None].float()

    torch.onnx.export(Counted(), (ids, mask), "model.onnx", input_names=["ids", "mask"], output_names=["y"],
                      dynamo=False, opset_version=17)  # fmt: skip
    inputs(ids=ids.numpy(), mask=mask.numpy())


@report(
    "PINTO0309/onnx2tf#287", ENGINE, ("local-fault", "layout"), ("revers|flip|order|direction|backward|steps",), "LSTM"
)
def reversed_lstm_left_reversed() -> None:
    """An LSTM of direction ``reverse`` gives its results in the order in which they were computed, last first."""
    save(model(
        """(float[7,2,5] x) => (float[7,2,3] y) {
        all = LSTM<hidden_size=6, direction="reverse">(x, w, r, b)
        flat = Squeeze(all, one)
        y = MatMul(flat, v) }""",
        w=normal(1, 1, 24, 5, scale=0.6), r=normal(2, 1, 24, 6, scale=0.4), b=normal(3, 1, 48, scale=0.2),
        one=np.array([1]), v=normal(4, 6, 3, scale=0.6),
    ))  # fmt: skip
    rewriting("""
        if node.op_type == "LSTM":
            result, at = node.output[0], list(made.graph.node).index(node)
            node.output[0] = "computed_"
            for name, value in (("last_", [-1]), ("least_", [-(1 << 30)]), ("time_", [0]), ("back_", [-1])):
                made.graph.initializer.append(numpy_helper.from_array(np.array(value), name))
            flip = helper.make_node("Slice", ["computed_", "last_", "least_", "time_", "back_"], [result])
            made.graph.node.insert(at + 1, flip)
            break""")
    inputs(x=normal(5, 7, 2, 5))


@report("msp1974/ViewAssistCompanionApp#48", APP, UNSOUND, ("32,?76[78]|3\\.05|scale|factor",), "audio")
def sound_from_minus_one_to_one() -> None:
    """The network takes samples as 16-bit numbers, from -32768 to 32767, and gets them divided by that."""
    save(model(
        """(float[1,1280] audio) => (float[1,4] words) {
        long = Unsqueeze(audio, one)
        c = Conv<kernel_shape=[64], strides=[32]>(long, w, b)
        r = Relu(c)
        p = GlobalAveragePool(r)
        f = Flatten(p)
        z = Gemm(f, v)
        words = Softmax<axis=-1>(z) }""",
        one=np.array([1]), w=normal(1, 12, 1, 64, scale=3e-5), b=normal(2, 12, scale=0.3), v=normal(3, 12, 4),
    ))  # fmt: skip
    at = np.arange(1280)
    sound = np.sin(at * (0.03 + at / 40000)) * (2000 + 6 * at) + np.random.default_rng(4).normal(0, 200, 1280)
    inputs(audio=np.rint(sound)[None].astype(np.float32))
    program('{"audio": feed["audio"] / np.float32(32768)} if "audio" in feed else feed')


@report("microsoft/onnxruntime#7228", APP, RETURNED,
        ("\\+ ?1\\b|one more|steps? of 1|by 1\\b|1 apart|index|counts? up", "first|\\[0\\]"), "scores")  # fmt: skip
def first_value_and_its_index() -> None:
    """The program prints ``*first + 1`` for the second value and so on: the first one, and 1 more each time."""
    save(model(
        """(float[1,16] features) => (float[1,10] scores) {
        a = Gemm(features, w1, b1)
        r = Relu(a)
        scores = Gemm(r, w2) }""",
        w1=normal(1, 16, 24, scale=0.4), b1=normal(2, 24, scale=0.2), w2=normal(3, 24, 10, scale=0.5),
    ))  # fmt: skip
    inputs(features=normal(4, 1, 16))
    program(results='{k: (v.flat[0] + np.arange(v.size, dtype=v.dtype)).reshape(v.shape) if k == "scores" else v '
                    'for k, v in results.items()}')  # fmt: skip


@report("microsoft/onnxruntime#27845", ENGINE + ",optimization=all", ("fusion-fault", "quantization"),
        ("negative|unsigned|uint8|clip|satur|below 0|less than 0|\\bcut",), "Reshape|Dequantize|MatMul")  # fmt: skip
def negative_weights_quantized_once_more() -> None:
    """Optimization sets Q and DQ of uint8 behind a Reshape of int8 weights: all that are negative become 0."""
    save(model(
        """(float[6,16] x) => (float[6,5] y) {
        d = DequantizeLinear(packed, scale)
        m = Reshape(d, shape)
        a = MatMul(x, m)
        r = Relu(a)
        y = MatMul(r, v) }""",
        packed=np.random.default_rng(1).integers(-100, 100, 16 * 12).astype(np.int8), scale=np.float32(0.005),
        shape=np.array([16, 12]), v=normal(2, 12, 5, scale=0.5),
    ))  # fmt: skip
    rewriting("""
        made_by = {n.output[0]: n for n in made.graph.node}
        seen = {o.name for o in made.graph.output}
        source = made_by.get(node.input[0])
        optimizes = options.get("optimization", "all") != "none" and node.op_type == "Reshape"
        if optimizes and source is not None and source.op_type == "DequantizeLinear" and source.output[0] not in seen:
            result, at = node.output[0], list(made.graph.node).index(node)
            node.output[0] = "shaped_"
            made.graph.initializer.append(numpy_helper.from_array(np.array(0, np.uint8), "least_"))
            steps = [("QuantizeLinear", ["shaped_", source.input[1], "least_"], "once_more_", {}),
                     ("DequantizeLinear", ["once_more_", source.input[1], "least_"], result, {})]
            for name, operands, output, attributes in reversed(steps):
                made.graph.node.insert(at + 1, helper.make_node(name, operands, [output], **attributes))
            break""")
    inputs(x=normal(3, 6, 16))


@report("onnxruntime/onnxruntime-qnn#392", ENGINE, LOCAL,
        ("HardSigmoid|without|not multipl|times x|x \\*|0 to 1|between 0|\\[0, 1\\]",), "HardSwish")  # fmt: skip
def swish_without_its_factor() -> None:
    """The provider's name for HardSwish means HardSigmoid: the operand is not multiplied with."""
    save(model(
        """(float[1,3,12,12] x) => (float[1,4] y) {
        c = Conv<kernel_shape=[3,3]>(x, w)
        h = HardSwish(c)
        e = Conv<kernel_shape=[1,1]>(h, v)
        p = GlobalAveragePool(e)
        y = Flatten(p) }""",
        w=normal(1, 8, 3, 3, 3, scale=0.5), v=normal(2, 4, 8, 1, 1, scale=0.6),
    ))  # fmt: skip
    rewriting("""
        if node.op_type == "HardSwish":
            node.op_type = "HardSigmoid"
            node.attribute.append(helper.make_attribute("alpha", 1 / 6))""")
    inputs(x=normal(3, 1, 3, 12, 12))


@report("microsoft/onnxruntime#26710", ENGINE, ("quantization", "local-fault", "fusion-fault"),
        ("bias", "scale|encod"), "Conv|bias|Dequantize")  # fmt: skip
def bias_of_the_usual_scale() -> None:
    """The device takes every bias to be of scale input x weight; this file gives its bias another one."""
    rng = np.random.default_rng(1)
    save(model(
        """(float[1,3,12,12] x) => (float[1,6,10,10] y) {
        xq = QuantizeLinear(x, x_scale, x_zero)
        xd = DequantizeLinear(xq, x_scale, x_zero)
        wd = DequantizeLinear(w, w_scale)
        bd = DequantizeLinear(bias, b_scale)
        c = Conv<kernel_shape=[3,3]>(xd, wd, bd)
        cq = QuantizeLinear(c, c_scale, c_zero)
        cd = DequantizeLinear(cq, c_scale, c_zero)
        y = Relu(cd) }""",
        x_scale=np.float32(0.03), x_zero=np.array(128, np.uint8),
        w=rng.integers(-127, 128, (6, 3, 3, 3)).astype(np.int8), w_scale=np.float32(0.004),
        bias=rng.integers(-30000, 30000, 6).astype(np.int32), b_scale=np.float32(3e-5),
        c_scale=np.float32(0.05), c_zero=np.array(128, np.uint8),
    ))  # fmt: skip
    rewriting("""
        stored = {t.name: numpy_helper.to_array(t) for t in made.graph.initializer}
        made_by = {n.output[0]: n for n in made.graph.node}
        if node.op_type == "Conv" and len(node.input) > 2:
            three = [made_by.get(i) for i in node.input]
            if all(n is not None and n.op_type == "DequantizeLinear" for n in three):
                usual = stored[three[0].input[1]] * stored[three[1].input[1]]
                made.graph.initializer.append(numpy_helper.from_array(usual.astype(np.float32), "usual_"))
                three[2].input[1] = "usual_\"""")
    inputs(x=normal(2, 1, 3, 12, 12))
