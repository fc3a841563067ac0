"""What engines compute, fuse, forget and never finish."""

import numpy as np
import onnx

from reports import TARGET, inputs, model, normal, planted, report, rewriting, save, script

LOCAL = ("local-fault",)
WRAPS = ("int32|32.bit|2\\^3[12]|2147483648|4294967296|wrap|low(er|est)? 32",)


def integers(op: str, x: list[int], **constants: np.ndarray) -> None:
    """Write a model of hashes: an operator on large integers, and what is made of its result."""
    operands = ", ".join(["x", *constants])
    save(model(
        f"""(int64[{len(x)}] x) => (int64[{len(x)}] y) {{
        r = {op}({operands})
        y = Add(r, one) }}""",
        one=np.array(1), **constants,
    ))  # fmt: skip
    inputs(x=np.array(x))


@report(
    "openvinotoolkit/openvino#36218",
    TARGET + "openvino",
    LOCAL,
    ("large|int32|32.bit|2\\^|wrap|precision|beyond",),
    "Mod",
    live=True,
)
def modulo_of_large_integers() -> None:
    """Mod of int64 is wrong on OpenVINO's CPU device where the dividend is large, and right where it is small."""
    integers("Mod", [3, 1234567890, 999999999, 1999999993, 1500000001], by=np.full(5, 13))


@report("openvinotoolkit/openvino#37957", TARGET + "openvino", LOCAL, WRAPS, "Clip", live=True)
def clip_of_the_low_bits() -> None:
    """Clip truncates int64 to its low 32 bits before it clamps."""
    integers("Clip", [2**33 + 5, -(2**33), 5, 2**40 + 70, -7, 2**34 + 99], low=np.array(-100), high=np.array(100))


@report("openvinotoolkit/openvino#35890", TARGET + "openvino", LOCAL, WRAPS, "Abs", live=True)
def absolute_value_of_large_integers() -> None:
    """Abs of int64 on OpenVINO's CPU device is computed in 32 bits: 2^40 becomes 0."""
    integers("Abs", [-(2**40), 2**40 + 3, -5, 0, 2**62, -(2**33) + 6])


@report(
    "NVIDIA/TensorRT#273",
    TARGET + "script:engine.py",
    LOCAL,
    ("asymmetric|half_pixel|coordinate|grid|shift",),
    "Resize",
)
def resize_with_another_grid() -> None:
    """The engine computes every bilinear Resize as ``asymmetric``, and the network wants half pixels."""
    save(model(
        """(float[1,3,10,10] x) => (float[1,2,20,20] y) {
        c = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w)
        r = Resize<mode="linear", coordinate_transformation_mode="pytorch_half_pixel">(c, , scales)
        s = Relu(r)
        y = Conv<kernel_shape=[1,1]>(s, v) }""",
        w=normal(1, 4, 3, 3, 3), v=normal(2, 2, 4, 1, 1), scales=np.array([1, 1, 2, 2], np.float32),
    ))  # fmt: skip
    rewriting(
        "node.attribute.extend([helper.make_attribute('coordinate_transformation_mode', 'asymmetric')]"
        " if node.op_type == 'Resize' and"
        " [node.attribute.remove(a) for a in list(node.attribute) if a.name[0] == 'c'] else [])"
    )
    inputs(x=normal(3, 1, 3, 10, 10))


@report(
    "openvinotoolkit/openvino#33410",
    TARGET + "script:engine.py",
    (*LOCAL, "rounding", "match"),
    ("\\bties?\\b|equal",),
    "Hardmax|ArgMax|best",
)
def last_of_equals() -> None:
    """Of equal maxima ONNX takes the first, an engine that sorts another. The mend was turned down: a tie."""
    save(model(
        """(float[4,12] x) => (int64[4] best) {
        q = Round(x)
        best = ArgMax<axis=-1, keepdims=0>(q) }""",
    ))  # fmt: skip
    rewriting(
        "node.attribute.extend([helper.make_attribute('select_last_index', 1)] if node.op_type == 'ArgMax' else [])"
    )
    x = np.clip(normal(1, 4, 12, scale=2), -2, 2)
    for row, equals in enumerate(([3, 8], [0, 5], [7, 9], [2, 11])):
        x[row, equals] = 3
    inputs(x=x)


BLOCK = """(float[2,6,32] x, float[2,6,32] skip) => (float[2,6,32] y) {
        h = MatMul(x, w)
        sum = Add(h, skip)
        n = LayerNormalization(sum, gain, shift)
        a = MatMul(n, v)
        r = Relu(a)
        y = Add(r, n) }"""


def block() -> onnx.ModelProto:
    """Write a model with a skip connection before a LayerNormalization."""
    save(
        model(
            BLOCK,
            w=normal(1, 32, 32, scale=0.2),
            gain=1 + normal(2, 32, scale=0.1),
            shift=normal(3, 32, scale=0.1),
            v=normal(4, 32, 32, scale=0.2),
        )
    )
    planted()
    inputs(x=normal(5, 2, 6, 32), skip=normal(6, 2, 6, 32))


FUSED = "node=/LayerNormalization_n,fused_with=/Add_sum,from_level=all,optimization=all"


@report(
    "microsoft/onnxruntime#17689",
    TARGET + f"script:engine.py,kind=scale,amount=1.4,{FUSED}",
    ("fusion-fault",),
    ("optimi[sz]ation|level|basic",),
    "LayerNormalization",
)
def skip_layer_normalization() -> None:
    """SkipLayerNormFusion is wrong from the extended level on; with basic optimizations the answer is right."""
    block()


@report(
    "microsoft/onnxruntime#22582",
    TARGET + f"script:engine.py,kind=crash,{FUSED}",
    ("engine-crash",),
    ("optimi[sz]ation|level|basic",),
)
def crash_of_the_highest_level() -> None:
    """The process dies with ORT_ENABLE_ALL, and works with ORT_ENABLE_BASIC."""
    block()


@report(
    "microsoft/onnxruntime#27621",
    TARGET + "script:engine.py,kind=hang,node=/MatMul_a --timeout 4",
    ("engine-hang",),
    ("time|hang|seconds",),
)
def run_that_never_returns() -> None:
    """`run` never returns on one kind of GPU: no error, no time limit."""
    block()


@report(
    "microsoft/onnxruntime#5769",
    TARGET + "script:engine.py,kind=nondeterministic,node=/MatMul_a,run_chance=0.3",
    ("nondeterministic-run",),
    ("equal inputs|run to run|runs|race|differ",),
)
def race_of_copy_and_kernel() -> None:
    """The same input gives another output now and then: data were copied in another stream than kernels ran in."""
    block()


@report(
    "microsoft/onnxruntime#9704",
    TARGET + "script:engine.py,kind=nondeterministic,node=/MatMul_a,amount=1e-7",
    ("match", "rounding"),
    (),
)
def last_digits_vary() -> None:
    """Results vary in the sixth digit from run to run: sums in another order, no fault."""
    block()


POOLED = """(float[1,n,8] x) => (float[1,n,8] y) {
        a = MatMul(x, w)
        r = Relu(a)
        y = MatMul(r, v) }"""
STATEFUL = """
import numpy as np
import onnxruntime


class Session:
    def __init__(self, path):
        self.network = onnxruntime.InferenceSession(path)
        self.names = [o.name for o in self.network.get_outputs()]
        self.kept = None

    def run(self, feed):
        {body}


class App:
    def compile(self, model_path, options):
        return Session(str(model_path))
"""


def stateful(body: str, *sizes: int) -> None:
    """Write a model of any length, feeds of these lengths, and a session that keeps something from run to run."""
    save(model(POOLED, w=normal(1, 8, 8), v=normal(2, 8, 8)))
    script("app.py", STATEFUL.format(body=body.replace("\n", "\n        ")))
    for i, size in enumerate(sizes):
        inputs(f"inputs{i}.npz", x=normal(3 + i, 1, size, 8))


BOTH = "diagnose model.onnx --inputs inputs0.npz inputs1.npz --target script:app.py:App"


@report("microsoft/onnxruntime#9799", BOTH, ("nondeterministic-run",), ("before|earlier|previous|other shape|size",))
def another_shape_in_one_session() -> None:
    """Runs of one session are wrong after a run of another shape; a session for each run is right."""
    stateful(
        "y = self.network.run(self.names, feed)[0]\n"
        "if self.kept is not None and self.kept.shape != y.shape:\n"
        "    rows = min(self.kept.shape[1], y.shape[1]) // 2\n"
        "    y[:, :rows] = self.kept[:, :rows]\n"
        "self.kept = y.copy()\n"
        "return {self.names[0]: y}",
        12, 7,
    )  # fmt: skip


@report(
    "microsoft/onnxruntime#5857",
    BOTH,
    ("nondeterministic-run",),
    ("before|earlier|previous|first (feed|run|input)|stale|old",),
)
def inputs_bound_once() -> None:
    """Inputs bound in host memory are copied to the device once: later runs silently use the old values."""
    stateful(
        "self.kept = self.kept or {k: v.copy() for k, v in feed.items()}\n"
        "return dict(zip(self.names, self.network.run(self.names, self.kept)))",
        9,
        9,
    )


@report("pykeio/ort#454", BOTH, ("nondeterministic-run",), ("buffer|memory|shared?|overwrit|same array",))
def outputs_in_one_buffer() -> None:
    """Every run writes into one output buffer: results that were kept are those of the last run."""
    stateful(
        "y = self.network.run(self.names, feed)[0]\n"
        "self.kept = np.empty_like(y) if self.kept is None else self.kept\n"
        "self.kept[...] = y\n"
        "return {self.names[0]: self.kept}",
        9, 9,
    )  # fmt: skip
