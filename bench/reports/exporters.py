"""What exporters, converters and optimizers wrote wrong into a file."""

import numpy as np
import onnx
from onnx import numpy_helper

from reports import FILE, PYTORCH, changed, inputs, model, normal, report, reweighted, save, script

CHANGED = ("model-changed",)


def exported(opset: int = 17) -> onnx.ModelProto:
    """Return what PyTorch's exporter writes of ``net.py`` today."""
    import net
    import torch

    network, arguments = net.make()
    torch.onnx.export(
        network, arguments, "model.onnx", input_names=["x"], output_names=["y"], dynamo=False, opset_version=opset
    )
    inputs(x=arguments[0].numpy())
    return onnx.load("model.onnx")


def network(forward: str, example: str, init: str = "pass", given: str = "x") -> None:
    """Write ``net.py``."""
    script(
        "net.py",
        f"""
        import torch
        from torch import nn
        import torch.nn.functional as F


        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                {init}

            def forward(self, {given}):
                {forward}


        def make():
            torch.manual_seed(0)
            return Net().eval(), ({example},)
        """,
    )


@report(
    "pytorch/pytorch#61034",
    PYTORCH,
    CHANGED,
    ("accumulat|duplicate|repeat|reduction|more than once|adds",),
    "Scatter",
    needs="torch",
)
def index_put_accumulates() -> None:
    """`index_put` with ``accumulate`` became ScatterND without a reduction: of repeated indices the last one counts."""
    network(
        "return F.relu(self.fc(torch.zeros(5, 8).index_put((self.index,), self.fc(x), accumulate=True)))",
        "torch.randn(6, 8)",
        "self.fc = nn.Linear(8, 8); self.register_buffer('index', torch.tensor([0, 4, 2, 2, 4, 1]))",
    )
    made = exported()
    for node in made.graph.node:
        if node.op_type.startswith("Scatter"):
            del node.attribute[:]
    save(made)


@report("pytorch/pytorch#183523", PYTORCH, CHANGED, ("half_pixel|coordinate",), "Resize", needs="torch")
def interpolate_to_one_pixel() -> None:
    """Bilinear interpolation to 1 x 1 became Resize with ``pytorch_half_pixel``, which takes the first pixel there."""
    network(
        "return self.fc(F.interpolate(self.conv(x), size=(1, 1), mode='bilinear', align_corners=False).flatten(1))",
        "torch.randn(2, 3, 8, 8)",
        "self.conv = nn.Conv2d(3, 6, 3); self.fc = nn.Linear(6, 4)",
    )
    made = exported()
    (resize,) = (n.name for n in made.graph.node if n.op_type == "Resize")
    save(changed(made, resize, coordinate_transformation_mode="pytorch_half_pixel"))


@report("pytorch/pytorch#183528", PYTORCH, CHANGED, ("ceil|pad|border|edge",), "AveragePool", needs="torch")
def average_pool_rounds_up() -> None:
    """`avg_pool2d` with ``ceil_mode`` and ``count_include_pad``: windows over the edge are divided by another count."""
    network(
        "return self.conv(F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=True))",
        "torch.randn(1, 2, 8, 8)",
        "self.conv = nn.Conv2d(2, 3, 1)",
    )
    made = exported()
    (pool,) = (n.name for n in made.graph.node if n.op_type == "AveragePool")
    pads = [0, 0, 1, 1] if any(n.op_type == "Pad" for n in made.graph.node) else [1, 1, 2, 2]
    save(changed(made, pool, ceil_mode=0, pads=pads, count_include_pad=1))  # every window is divided by nine


@report("pytorch/pytorch#78442", PYTORCH, CHANGED, ("floor|toward|negative|trunc|cuts",), "Div", needs="torch")
def floor_division() -> None:
    """`//` of negative integers rounds down in PyTorch, Div cuts off towards zero: relative positions are one off."""
    network(
        "return self.fc(x + self.table[torch.div(self.at, 4, rounding_mode='floor') + 3])",
        "torch.randn(9, 8)",
        "self.fc = nn.Linear(8, 4); self.register_buffer('at', torch.arange(9) - 6); "
        "self.table = nn.Parameter(torch.randn(6, 8))",
    )
    import net

    weights = {k: v.numpy() for k, v in net.make()[0].state_dict().items()}
    inputs(x=net.make()[1][0].numpy())
    save(model(
        """(float[9,8] x) => (float[9,4] y) {
        steps = Div(at, four)
        rows = Add(steps, three)
        bias = Gather(table, rows)
        sum = Add(x, bias)
        y = Gemm<transB=1>(sum, fc_weight, fc_bias) }""",
        at=weights["at"], four=np.array(4), three=np.array(3), table=weights["table"],
        fc_weight=weights["fc.weight"], fc_bias=weights["fc.bias"],
    ))  # fmt: skip


@report(
    "pytorch/vision#2311",
    PYTORCH,
    (*CHANGED, "comparison-unsound"),
    ("batch|first|rows|axis 0|images|shape|size",),
    needs="torch",
)
def batch_of_the_example() -> None:
    """A Python loop over the batch was traced: the file answers for the images of the example, and for no others."""
    network(
        "return torch.stack([self.fc(F.relu(self.conv(x[i:i + 1])).flatten(1))[0] for i in range(x.shape[0])])",
        "torch.randn(2, 3, 6, 6)",
        "self.conv = nn.Conv2d(3, 4, 3); self.fc = nn.Linear(64, 5)",
    )
    made = exported()
    for value in (*made.graph.input, *made.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    save(made)
    inputs(x=normal(3, 4, 3, 6, 6))


@report("onnx/onnx#8480", FILE, CHANGED, ("asymmetric|half_pixel|coordinate",), "Resize", live=True)
def resize_converted_to_opset_11() -> None:
    """The version converter leaves Resize's grid to the defaults of opset 11, which are not what opset 10 meant."""
    made = model(
        """(float[1,3,7,7] x) => (float[1,4,15,15] y) {
        c = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w)
        r = Resize<mode="linear">(c, scales)
        y = Relu(r) }""",
        opset=10, w=normal(1, 4, 3, 3, 3), scales=np.array([1, 1, 2.2, 2.2], np.float32),
    )  # fmt: skip
    save(made)
    save(onnx.version_converter.convert_version(made, 13), "target.onnx")
    inputs(x=normal(2, 1, 3, 7, 7))


def normalized() -> onnx.ModelProto:
    """Return a small classifier with a BatchNormalization."""
    return model(
        """(float[4,3,8,8] x) => (float[4,5] y) {
        c = Conv<kernel_shape=[3,3]>(x, w, b)
        n = BatchNormalization(c, scale, shift, mean, variance)
        r = Relu(n)
        p = GlobalAveragePool(r)
        f = Flatten(p)
        y = Gemm(f, v, u) }""",
        opset=15, w=normal(1, 6, 3, 3, 3, scale=0.4), b=normal(2, 6), scale=1 + normal(3, 6, scale=0.2),
        shift=normal(4, 6), mean=normal(5, 6), variance=np.exp(normal(6, 6)), v=normal(7, 6, 5), u=normal(8, 5),
    )  # fmt: skip


@report("microsoft/onnxruntime#26584", FILE, CHANGED, ("training",), "BatchNormalization")
def batch_normalization_in_training() -> None:
    """Two all but identical models: one was exported in training mode and normalizes by the batch's own statistics."""
    made = normalized()
    save(made)
    trained = changed(made, "/BatchNormalization_n", training_mode=1)
    (node,) = (n for n in trained.graph.node if n.op_type == "BatchNormalization")
    node.output.extend(["running_mean", "running_variance"])
    save(trained, "target.onnx")
    inputs(x=normal(9, 4, 3, 8, 8))


@report("onnx/onnx#2677", FILE, CHANGED, ("weight|constant|fuse|fold",), "Conv|'w")
def normalization_fused_wrong() -> None:
    """`fuse_bn_into_conv` of one build wrote wrong weights into the Conv, and the right bias."""
    made = normalized()
    save(made)
    stored = {t.name: numpy_helper.to_array(t) for t in made.graph.initializer}
    factor = stored["scale"] / np.sqrt(stored["variance"] + 1e-5)
    fused = reweighted(
        made,
        w=stored["w"] * factor[::-1, None, None, None],
        b=(stored["b"] - stored["mean"]) * factor + stored["shift"],
    )
    (batch,) = (n for n in fused.graph.node if n.op_type == "BatchNormalization")
    fused.graph.node.remove(batch)
    next(n for n in fused.graph.node if n.op_type == "Relu").input[0] = "c"
    for name in ("scale", "shift", "mean", "variance"):
        fused.graph.initializer.remove(next(t for t in fused.graph.initializer if t.name == name))
    save(fused, "target.onnx")
    inputs(x=normal(9, 4, 3, 8, 8))


@report("apache/tvm#18750", FILE, CHANGED, ("approximat|tanh|erf",), "Gelu")
def gelu_of_the_other_form() -> None:
    """A converter drops Gelu's attribute ``approximate``: the exact form stands where the network has tanh's."""
    made = model(
        """(float[8,16] x) => (float[8,4] y) {
        a = MatMul(x, w)
        g = Gelu<approximate="tanh">(a)
        y = MatMul(g, v) }""",
        opset=20, w=normal(1, 16, 32, scale=0.4), v=normal(2, 32, 4, scale=0.3),
    )  # fmt: skip
    made.ir_version = 9
    save(made)
    save(changed(made, "/Gelu_g", approximate=None), "target.onnx")
    inputs(x=normal(3, 8, 16))


@report("PINTO0309/onnx2tf#317", FILE, CHANGED, ("transpos",), "MatMul")
def square_matrix_transposed() -> None:
    """A converter of layouts cannot tell the axes of a square matrix apart, and transposes a MatMul's weight."""
    made = model(
        """(float[1,32,32] x) => (float[1,32,32] y) {
        a = MatMul(x, w)
        r = Relu(a)
        b = MatMul(r, v)
        y = Softmax<axis=-1>(b) }""",
        w=normal(1, 32, 32, scale=0.3), v=normal(2, 32, 32, scale=0.3),
    )  # fmt: skip
    save(made)
    save(reweighted(made, v=np.ascontiguousarray(normal(2, 32, 32, scale=0.3).T)), "target.onnx")
    inputs(x=normal(3, 1, 32, 32))


@report(
    "microsoft/onnxruntime#28310",
    "diagnose model.onnx --inputs inputs.npz --reference script:net.py:Original --target onnxruntime",
    ("comparison-unsound", "model-changed"), ("Resize", "asymmetric|floor|nearest_mode|coordinate"),
)  # fmt: skip
def nearest_pixel() -> None:
    """PyTorch's nearest takes the pixel at floor(i / scale); a Resize of half pixels and rounding its neighbour."""
    save(model(
        """(float[1,2,1,26] x) => (float[1,3,1,64] y) {
        a = Conv<kernel_shape=[1,1]>(x, w)
        r = Resize<mode="nearest", coordinate_transformation_mode="half_pixel",
          nearest_mode="round_prefer_ceil">(a, , scales)
        y = Tanh(r) }""",
        w=normal(1, 3, 2, 1, 1), scales=np.array([1, 1, 1, 64 / 26], np.float32),
    ))  # fmt: skip
    np.save("w.npy", normal(1, 3, 2, 1, 1))
    inputs(x=normal(2, 1, 2, 1, 26))
    script(
        "net.py",
        """
        import pathlib
        import numpy as np

        W = np.load(pathlib.Path(__file__).parent / "w.npy")[:, :, 0, 0]


        class Session:
            def run(self, feed):
                a = np.einsum("oc,bchw->bohw", W, feed["x"])
                return {"y": np.tanh(a[..., np.arange(64) * 26 // 64]).astype(np.float32)}


        class Original:
            def compile(self, model_path, options):
                return Session()
        """,
    )
