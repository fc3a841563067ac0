"""What frameworks mean otherwise, what their exporters wrote, and programs that feed a file wrong: third collection."""

import numpy as np
import onnx
from onnx import helper, numpy_helper

from reports import PYTORCH, changed, inputs, model, normal, program, report, save, script
from reports.exporters import CHANGED, network
from reports.first import ALONE
from reports.programs import APP, UNSOUND, classifier, picture

REFERENCE = """
import pathlib
import numpy as np
import onnxruntime

HERE = pathlib.Path(__file__).parent


class Session:
    {body}


class Original:
    def compile(self, model_path, options):
        return Session()
"""


def reference(body: str) -> None:
    """Write ``net.py``, a program that is the reference, with this body of its session."""
    script("net.py", REFERENCE.format(body=body.strip().replace("\n", "\n    ")))


def boosted(thresholds: np.ndarray) -> onnx.ModelProto:
    """Return 12 trees of one question each, (12,), behind a Mul."""
    trees = np.arange(12)
    node = helper.make_node(
        "TreeEnsembleRegressor", ["scaled"], ["sum"], "/trees/TreeEnsembleRegressor", domain="ai.onnx.ml", n_targets=1,
        nodes_treeids=np.repeat(trees, 3).tolist(), nodes_nodeids=[0, 1, 2] * 12,
        nodes_featureids=np.stack([trees % 4, trees * 0, trees * 0], 1).ravel().tolist(),
        nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"] * 12,
        nodes_values=np.stack([thresholds, 0 * thresholds, 0 * thresholds], 1).ravel().tolist(),
        nodes_truenodeids=[1, 0, 0] * 12, nodes_falsenodeids=[2, 0, 0] * 12, nodes_hitrates=[1.0] * 36,
        nodes_missing_value_tracks_true=[0] * 36, target_treeids=np.repeat(trees, 2).tolist(),
        target_nodeids=[1, 2] * 12, target_ids=[0] * 24, target_weights=normal(1, 24).tolist(),
    )  # fmt: skip
    steps = [
        helper.make_node("Mul", ["x", "one"], ["scaled"], "/Mul_scaled"), node,
        helper.make_node("Add", ["sum", "base"], ["y"], "/Add_y"),
    ]  # fmt: skip
    graph = helper.make_graph(
        steps, "g", [helper.make_tensor_value_info("x", 1, [40, 4])], [helper.make_tensor_value_info("y", 1, [40, 1])],
        [numpy_helper.from_array(np.float32(1), "one"), numpy_helper.from_array(np.float32(3), "base")],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, ir_version=8, opset_imports=opsets)


@report("microsoft/onnxruntime#4130", ALONE, ("rounding", "match"), ("tie|decid|threshold|branch|which side|one side",),
        "Tree|Scaler")  # fmt: skip
def forest_behind_a_scaler() -> None:
    """StandardScaler divides and ONNX's Scaler multiplies by 1 / std: the last bit decides a branch of a tree."""
    x = np.arange(1, 33, dtype=np.float32).reshape(16, 2) * np.float32(1000.1)
    std = np.array([3, 7], np.float32)
    divided, multiplied = x / std, x * (np.float32(1) / std)
    row, column = np.argwhere(multiplied > divided)[0]
    nodes = [
        helper.make_node("Scaler", ["x"], ["z"], "/Scaler_z", domain="ai.onnx.ml", offset=[0.0, 0.0],
                         scale=[float(1 / s) for s in std]),
        helper.make_node(
            "TreeEnsembleRegressor", ["z"], ["y"], "/TreeEnsembleRegressor_y", domain="ai.onnx.ml", n_targets=1,
            nodes_treeids=[0] * 3, nodes_nodeids=[0, 1, 2], nodes_featureids=[int(column), 0, 0],
            nodes_values=[float(divided[row, column]), 0.0, 0.0], nodes_hitrates=[1.0] * 3,
            nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0],
            nodes_missing_value_tracks_true=[0] * 3, target_treeids=[0, 0], target_nodeids=[1, 2],
            target_ids=[0, 0], target_weights=[1.0, 5.0],
        ),
    ]  # fmt: skip
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [value("x", 1, [16, 2])], [value("y", 1, [16, 1])])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    save(helper.make_model(graph, opset_imports=opsets, ir_version=8))
    np.savez("tree.npz", std=std, column=column, threshold=divided[row, column])
    reference(
        """
def run(self, feed):
    tree = np.load(HERE / "tree.npz")
    scaled = feed["x"] / tree["std"]
    return {{"y": np.where(scaled[:, tree["column"]] <= tree["threshold"], 1, 5).astype(np.float32)[:, None]}}
""".replace("{{", "{").replace("}}", "}")
    )
    inputs(x=x)


@report("pytorch/pytorch#177138", PYTORCH, CHANGED, ("cubic_coeff_a|-0\\.75",), "Resize", needs="torch")
def cubic_of_another_coefficient() -> None:
    """Bicubic with ``antialias`` takes -0.5 in PyTorch, and the exporter writes -0.75, which holds without it."""
    network(
        "return F.relu(self.out(F.interpolate(self.conv(x), size=(7, 7), mode='bicubic', antialias=True)))",
        "torch.rand(1, 3, 16, 16)",
        "self.conv, self.out = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 5, 1)",
    )
    import net
    import torch

    made, arguments = net.make()
    torch.onnx.export(made, arguments, "model.onnx", input_names=["x"], output_names=["y"], dynamo=True,
                      external_data=False, verbose=False)  # fmt: skip
    inputs(x=arguments[0].numpy())
    file = onnx.load("model.onnx")
    (resize,) = (n.name for n in file.graph.node if n.op_type == "Resize")
    save(changed(file, resize, cubic_coeff_a=-0.75, exclude_outside=1))


@report("pytorch/pytorch#53887", PYTORCH, CHANGED,
        ("running|statistic|stored (mean|variance)|of the instance|own mean",),
        "InstanceNormalization|BatchNorm|norm", needs="torch")  # fmt: skip
def running_statistics_left_out() -> None:
    """InstanceNorm2d with ``track_running_stats`` uses its running statistics in ``eval``; the file the instance's."""
    network(
        "return self.out(F.relu(self.norm(self.conv(x))))", "torch.randn(2, 3, 8, 8)",
        "self.conv, self.out = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 2, 1)\n"
        "                self.norm = nn.InstanceNorm2d(4, affine=True, track_running_stats=True)\n"
        "                self.norm.running_mean.copy_(torch.tensor([0.3, -0.2, 0.1, 0.5]))\n"
        "                self.norm.running_var.copy_(torch.tensor([0.5, 2.0, 1.5, 0.8]))",
    )  # fmt: skip
    import net

    weights = {k: v.detach().numpy() for k, v in net.make()[0].state_dict().items()}
    inputs(x=net.make()[1][0].numpy())
    save(model(
        """(float[2,3,8,8] x) => (float[2,2,6,6] y) {
        c = Conv<kernel_shape=[3,3]>(x, conv_weight, conv_bias)
        n = InstanceNormalization<epsilon=1.0e-5>(c, norm_weight, norm_bias)
        r = Relu(n)
        y = Conv<kernel_shape=[1,1]>(r, out_weight, out_bias) }""",
        **{k.replace(".", "_"): weights[k] for k in weights if k.split(".")[1] in ("weight", "bias")},
    ))  # fmt: skip


@report("pytorch/pytorch#60179", PYTORCH, CHANGED, ("floor|toward|negative|trunc|cuts|sign",), "Div|Mod", needs="torch")
def remainder_of_negative_numbers() -> None:
    """`remainder` was exported as x - y * Div(x, y), and Div of integers cuts off: other numbers below 0."""
    network(
        "return self.fc(F.relu(self.fc(x + self.table[torch.remainder(self.at, 5)])))", "torch.randn(9, 8)",
        "self.fc = nn.Linear(8, 8); self.register_buffer('at', torch.arange(9) - 6); "
        "self.table = nn.Parameter(torch.randn(10, 8))",
    )  # fmt: skip
    import net

    weights = {k: v.numpy() for k, v in net.make()[0].state_dict().items()}
    inputs(x=net.make()[1][0].numpy())
    save(model(
        """(float[9,8] x) => (float[9,8] y) {
        steps = Div(at, five)
        whole = Mul(steps, five)
        rest = Sub(at, whole)
        place = Gather(table, rest)
        sum = Add(x, place)
        h = Gemm<transB=1>(sum, fc_weight, fc_bias)
        r = Relu(h)
        y = Gemm<transB=1>(r, fc_weight, fc_bias) }""",
        at=weights["at"], five=np.array(5), table=weights["table"], fc_weight=weights["fc.weight"],
        fc_bias=weights["fc.bias"],
    ))  # fmt: skip


@report(
    "onnx/keras-onnx#676",
    "diagnose model.onnx --inputs first.npz second.npz --reference script:net.py:Original --target onnxruntime",
    ("comparison-unsound", "nondeterministic-run"), ("before|earlier|previous|state|remember|carries",),
)  # fmt: skip
def stateful_lstm_of_keras() -> None:
    """A stateful LSTM goes on from where its last call ended; a file of ONNX starts from 0 at every call."""
    weights = {"w": normal(1, 1, 16, 5, scale=0.5), "r": normal(2, 1, 16, 4, scale=0.4), "v": normal(3, 4, 3)}
    text = """(float[3,1,5] x{state}) => (float[3,1,1,3] y{ends}) {{
        s, h, c = LSTM<hidden_size=4>(x, w, r{given})
        y = MatMul(s, v) }}"""
    save(model(text.format(state="", ends="", given=""), **weights))
    whole = text.format(
        state=", float[1,1,4] h0, float[1,1,4] c0", ends=", float[1,1,4] h, float[1,1,4] c", given=", , , h0, c0"
    )
    save(model(whole, **weights), "stateful.onnx")
    reference("""
def __init__(self):
    self.network = onnxruntime.InferenceSession(str(HERE / "stateful.onnx"))
    self.state = [np.zeros((1, 1, 4), np.float32)] * 2

def run(self, feed):
    y, *self.state = self.network.run(["y", "h", "c"], feed | dict(zip(("h0", "c0"), self.state)))
    return {"y": y}
""")
    inputs("first.npz", x=normal(4, 3, 1, 5))
    inputs("second.npz", x=normal(5, 3, 1, 5))


@report("microsoft/onnxruntime#6921", ALONE, ("comparison-unsound", "model-changed"),
        ("half.pixel|half a pixel|0\\.5|coordinate|offset",), "RoiAlign")  # fmt: skip
def regions_half_a_pixel_off() -> None:
    """RoiAlign before opset 16 is half a pixel off from Detectron2's ``aligned=True``: ``output_half_pixel``."""
    text = """(float[1,3,12,12] x, float[3,4] boxes) => (float[3,5] scores) {{
        f = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w)
        r = RoiAlign<mode="avg", output_height=3, output_width=3, sampling_ratio=2{how}>(f, boxes, at)
        p = Flatten(r)
        scores = MatMul(p, v) }}"""
    weights = {
        "w": normal(1, 4, 3, 3, 3, scale=0.4), "at": np.zeros(3, np.int64), "v": normal(2, 36, 5, scale=0.3),
    }  # fmt: skip
    save(model(text.format(how=""), opset=11, **weights))
    save(model(text.format(how=', coordinate_transformation_mode="half_pixel"'), **weights), "detectron.onnx")
    reference("""
def __init__(self):
    self.network = onnxruntime.InferenceSession(str(HERE / "detectron.onnx"))

def run(self, feed):
    return {"scores": self.network.run(["scores"], feed)[0]}
""")
    inputs(x=normal(3, 1, 3, 12, 12), boxes=np.array([[1, 1, 6, 7], [2, 3, 11, 9], [0, 4, 5, 10]], np.float32))


@report("felixdittrich92/OnnxTR#22", "check feed mine.npz theirs.npz --model model.onnx", ("exit 1",),
        ("interpolat|resiz|resampl|antialias|smooth|blur|sharp",), "image")  # fmt: skip
def resized_by_another_library() -> None:
    """Pictures were resized by OpenCV, of two pixels each, where Pillow's bilinear filter takes all that they cover."""
    classifier()
    rng = np.random.default_rng(7)
    large = np.clip(np.repeat(np.repeat(picture(), 3, 1), 3, 2) + rng.normal(0, 0.15, (3, 96, 96)), 0, 1)

    def resized(reach: float) -> np.ndarray:
        at = (np.arange(32)[:, None] + 0.5) * 3 - 0.5
        share = np.maximum(0, 1 - np.abs(np.arange(96) - at) / reach)
        share /= share.sum(1, keepdims=True)
        return np.einsum("ij,cjk,lk->cil", share, large, share)[None].astype(np.float32)

    inputs("theirs.npz", image=resized(3))
    inputs("mine.npz", image=resized(1))


@report("huggingface/optimum#877", APP, UNSOUND,
        ("count|0, 1|arange|consecutive|every token|padding|pad |padded|the mask",), "steps")  # fmt: skip
def positions_of_padding_counted() -> None:
    """Texts are padded at the left, and positions counted from the padding on, not from the first token on."""
    save(model(
        """(int64[2,7] ids, int64[2,7] mask, int64[2,7] steps) => (float[2,5] y) {
        words = Gather(table, ids)
        places = Gather(turns, steps)
        x = Add(words, places)
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
        last = Gather<axis=1>(o, end)
        y = MatMul(last, v) }""",
        table=normal(1, 50, 16), turns=normal(2, 12, 16), wq=normal(3, 16, 16, scale=0.2), one=np.array(1, np.float32),
        low=np.array(-10000, np.float32), axis=np.array([1]), end=np.array(6), v=normal(4, 16, 5),
    ))  # fmt: skip
    mask = np.ones((2, 7), np.int64)
    mask[0, :2] = mask[1, :4] = 0
    ids = np.random.default_rng(5).integers(1, 50, (2, 7)) * mask
    inputs(ids=ids, mask=mask, steps=np.maximum(mask.cumsum(1) - 1, 0))
    program('feed | {"steps": np.tile(np.arange(7), (2, 1))} if "steps" in feed else feed')


@report("microsoft/onnxruntime#15009", APP, ("comparison-unsound", "nondeterministic-run", "intermittent"),
        ("memory|buffer|freed|overwrit|first (few |\\d+ )?(values|elements|pixels|numbers)",), "image")  # fmt: skip
def buffer_freed_before_the_run() -> None:
    """The memory of an input was freed before the run: its first values are the allocator's, others in every run."""
    classifier()
    inputs(image=picture()[None])
    head = "np.frombuffer(os.urandom(32), np.int8)[:8].astype(np.float32)"
    program('feed | {"image": reused(feed["image"])} if "image" in feed else feed',
            before=f"reused = lambda image: np.append({head}, image.ravel()[8:]).reshape(image.shape)")  # fmt: skip
