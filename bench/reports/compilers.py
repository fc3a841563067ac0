"""What compilers and quantizers of devices build otherwise: third collection."""

import numpy as np
import onnx
from onnx import numpy_helper

from reports import FILE, TARGET, inputs, model, normal, report, reweighted, rewriting, save, script
from reports.exporters import normalized
from reports.kernels import ENGINE, LOCAL
from reports.narrow import pair
from reports.quantization import QUANTIZED, convolutions, quantized

OWN = TARGET + "script:engine.py"


@report("microsoft/onnxruntime#6455", OWN, ("model-changed", "comparison-unsound"),
        ("weights?\\b|checkpoint|another (model|file|network)|other (model|file|network)|cache|stale",))  # fmt: skip
def engine_of_another_model() -> None:
    """Built engines are kept by the names of nodes: two models of one structure get the engine of the first."""
    first = convolutions(**{f"w{i}": normal(30 + i, *shape, scale=0.3) for i, shape in enumerate(
        ((16, 3, 3, 3), (16, 1, 3, 3), (16, 16, 1, 1), (16, 6)), 1)})  # fmt: skip
    save(convolutions())
    script(
        "engine.py",
        """
        import hashlib
        import pathlib
        import onnx
        import onnxruntime

        KEPT = pathlib.Path(__file__).parent / "engines"


        def place(made):
            names = [n.name for n in made.graph.node] + [o.name for o in made.graph.output]
            return KEPT / (hashlib.sha256(" ".join(names).encode()).hexdigest()[:16] + ".engine")


        class Engine:
            def compile(self, model_path, options):
                made = onnx.load(model_path)
                file = place(made)
                if not file.exists():
                    file.write_bytes(made.SerializeToString())
                self.session = onnxruntime.InferenceSession(file.read_bytes())
                return self

            def run(self, feed):
                names = [o.name for o in self.session.get_outputs()]
                return dict(zip(names, self.session.run(names, feed)))
        """,
    )
    import pathlib

    import engine

    pathlib.Path("engines").mkdir(exist_ok=True)
    engine.place(first).write_bytes(first.SerializeToString())
    inputs(x=normal(20, 1, 3, 16, 16))


@report("apache/tvm#18703", ENGINE, LOCAL, ("training|own (mean|statistic)|(batch|input).s (own )?(mean|statistic)|"
        "(mean|statistic|variance)s? of (the|its) (batch|input)",), "BatchNormalization")  # fmt: skip
def statistics_of_the_batch() -> None:
    """The importer leaves `training_mode` out, and normalizes by the batch's own mean and variance."""
    save(normalized())
    rewriting("""
        if node.op_type == "BatchNormalization":
            kept = [a for a in node.attribute if a.name != "training_mode"]
            del node.attribute[:]
            node.attribute.extend([*kept, helper.make_attribute("training_mode", 1)])
            node.output.extend([f"{node.output[0]}_mean", f"{node.output[0]}_variance"])""")
    inputs(x=normal(9, 4, 3, 8, 8))


@report("apache/tvm#20217", ENGINE, LOCAL, ("negative|below 0|from the end|-1\\b|less than 0",), "GatherElements")
def places_counted_from_the_end() -> None:
    """GatherElements reads negative indices as they are, in front of the row, where they count from its end."""
    save(model(
        """(float[5,6] x, int64[5,4] at) => (float[5,4] y) {
        a = MatMul(x, w)
        g = GatherElements<axis=1>(a, at)
        y = Tanh(g) }""",
        w=normal(1, 6, 7, scale=0.5),
    ))  # fmt: skip
    rewriting("""
        if node.op_type == "GatherElements":
            data, at, result = node.input[0], node.input[1], node.output[0]
            place = list(made.graph.node).index(node)
            made.graph.initializer.append(numpy_helper.from_array(np.array([-1]), "flat_"))
            made.graph.initializer.append(numpy_helper.from_array(np.zeros(7, np.float32), "front_"))
            made.graph.initializer.append(numpy_helper.from_array(7 + 7 * np.arange(5)[:, None], "rows_"))
            steps = [("Reshape", [data, "flat_"], "line_", {}), ("Concat", ["front_", "line_"], "memory_", {"axis": 0}),
                     ("Add", [at, "rows_"], "address_", {}), ("Gather", ["memory_", "address_"], result, {})]
            made.graph.node.remove(node)
            for name, operands, output, attributes in reversed(steps):
                made.graph.node.insert(place, helper.make_node(name, operands, [output], **attributes))
            break""")
    inputs(x=normal(2, 5, 6), at=np.array([[0, 3, -1, 2], [-2, 1, 6, 4], [5, 5, 0, -7], [1, -3, 2, 6], [-1, 0, 4, 3]]))


@report("vllm-project/vllm-ascend#12780", ENGINE, LOCAL, ("interleav|halves|half|pairs|adjacent|neighbou?r|even",),
        "RotaryEmbedding")  # fmt: skip
def rotation_of_halves() -> None:
    """The kernel turns the two halves of a head against each other, and the network pairs of neighbours."""
    angles = np.arange(32)[:, None] * 10000.0 ** (-np.arange(8) / 8)
    onnx.save(model(
        """(float[1,10,32] x, int64[1,10] at) => (float[1,10,32] y) {
        q = MatMul(x, wq)
        t = com.microsoft.RotaryEmbedding<interleaved=1, num_heads=2>(q, at, cosines, sines)
        kt = Transpose<perm=[0,2,1]>(x)
        s = MatMul(t, kt)
        a = Softmax<axis=-1>(s)
        y = MatMul(a, x) }""",
        domain="com.microsoft", wq=normal(1, 32, 32, scale=0.1), cosines=np.cos(angles).astype(np.float32),
        sines=np.sin(angles).astype(np.float32),
    ), "model.onnx")  # fmt: skip
    rewriting("""
        for a in node.attribute:
            if a.name == "interleaved":
                a.i = 0""")
    inputs(x=normal(2, 1, 10, 32), at=np.arange(10)[None])


@report("openvinotoolkit/openvino#36831", OWN, (*LOCAL, "fusion-fault"),
        ("dynamic|static|symbolic|(open|fixed|free) (size|shape|dim|axe)",))  # fmt: skip
def garbage_of_open_sizes() -> None:
    """Convolutions of a model whose sizes are open are next to 0; the same model with fixed sizes is right."""
    save(model(
        """(float[n,3,h,w] x) => (float[n,5] y) {
        c1 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w1, b1)
        r1 = Relu(c1)
        c2 = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(r1, w2, b2)
        r2 = Relu(c2)
        p = GlobalAveragePool(r2)
        f = Flatten(p)
        y = Gemm(f, v) }""",
        w1=normal(1, 8, 3, 3, 3, scale=0.3), b1=normal(2, 8, scale=0.1), w2=normal(3, 12, 8, 3, 3, scale=0.2),
        b2=normal(4, 12, scale=0.1), v=normal(5, 12, 5, scale=0.5),
    ))  # fmt: skip
    rewriting("""
        opened = any(d.dim_param for i in made.graph.input for d in i.type.tensor_type.shape.dim)
        if node.op_type == "Conv" and opened:
            for tensor in made.graph.initializer:
                if tensor.name in node.input[1:]:
                    small = (numpy_helper.to_array(tensor) * 0.01).astype(np.float32)
                    tensor.CopyFrom(numpy_helper.from_array(small, tensor.name))""")
    inputs(x=normal(6, 1, 3, 12, 12))


@report("PINTO0309/onnx2tf#942", FILE, QUANTIZED, ("range|narrow|clip|cut|saturat|recalibrat",), "\\bx\\b|\\bx_")
def scales_written_without_calibration() -> None:
    """The scales of a file's inputs and outputs are fixed ones, from -1 to 1, whatever calibration data hold."""
    save(convolutions())
    quantized([normal(s, 1, 3, 16, 16) for s in range(10, 18)], per_channel=True)
    file = onnx.load("target.onnx")
    fixed = {"x_scale": np.array(1 / 128, np.float32), "x_zero_point": np.array(128, np.uint8)}
    save(reweighted(file, **fixed), "target.onnx")
    file = onnx.load("target.onnx")
    stored = {t.name: numpy_helper.to_array(t) for t in file.graph.initializer}
    of = {t.name: numpy_helper.to_array(t) for t in onnx.load("model.onnx").graph.initializer}
    step = stored["x_scale"].reshape(()) * stored["w1_scale"]  # what the bias of the first Conv is written in
    save(reweighted(
        file, b1_quantized_scale=step.astype(np.float32), b1_quantized=np.rint(of["b1"] / step).astype(np.int32)
    ), "target.onnx")  # fmt: skip
    inputs(x=normal(20, 1, 3, 16, 16, scale=1.5))


@report("onnxruntime/onnxruntime-qnn#434", FILE, QUANTIZED, ("per.channel|channel|share|one scale|coarse|step|float",),
        "BatchNormalization|\\bn\\b|gain|shift")  # fmt: skip
def normalization_with_one_scale() -> None:
    """A BatchNormalization that no Conv takes up has one scale for the gains of all channels, which differ widely."""
    gain = np.geomspace(0.02, 40, 12).astype(np.float32)[np.random.default_rng(3).permutation(12)]
    made = model(
        """(float[1,12,10,10] x) => (float[1,6,8,8] y) {
        n = BatchNormalization(x, gain, shift, mean, variance)
        t = Tanh(n)
        c = Conv<kernel_shape=[3,3]>(t, w)
        r = Relu(c)
        y = Conv<kernel_shape=[1,1]>(r, v) }""",
        opset=15, gain=gain, shift=normal(2, 12) * gain, mean=np.zeros(12, np.float32),
        variance=np.ones(12, np.float32), w=normal(4, 8, 12, 3, 3, scale=0.3), v=normal(5, 6, 8, 1, 1, scale=0.5),
    )  # fmt: skip
    save(made)
    file = onnx.ModelProto.FromString(made.SerializeToString())
    for name in ("gain", "shift"):
        array = numpy_helper.to_array(next(t for t in made.graph.initializer if t.name == name))
        low, high = min(0.0, float(array.min())), float(array.max())
        pair(file, name, (high - low) / 255, np.array(round(-low / (high - low) * 255), np.uint8))
    save(file, "target.onnx")
    inputs(x=normal(6, 1, 12, 10, 10) / gain[None, :, None, None])


@report("WasmEdge/WasmEdge#5348", OWN, ("rounding",), ("bf16|bfloat16",))
def bfloat16_by_default() -> None:
    """On a CPU that has it, the engine computes in bf16 unless fp32 is asked for: results depend on the machine."""
    save(model(
        """(float[2,3,20,20] x) => (float[2,6] y) {
        c1 = Conv<kernel_shape=[3,3], strides=[2,2]>(x, w1, b1)
        r1 = Relu(c1)
        c2 = Conv<kernel_shape=[3,3]>(r1, w2, b2)
        r2 = Relu(c2)
        p = GlobalAveragePool(r2)
        f = Flatten(p)
        y = Gemm(f, w3) }""",
        w1=normal(1, 24, 3, 3, 3, scale=0.3), b1=normal(2, 24, scale=0.1), w2=normal(3, 32, 24, 3, 3, scale=0.1),
        b2=normal(4, 32, scale=0.1), w3=normal(5, 32, 6, scale=0.4),
    ))  # fmt: skip
    script(
        "engine.py",
        """
        import onnx
        import onnxruntime
        from onnx import helper


        class Engine:
            def compile(self, model_path, options):
                made = onnx.load(model_path)
                nodes = []

                def rounded(name, result):
                    nodes.append(helper.make_node("Cast", [name], [result + "_narrow"], to=16))
                    nodes.append(helper.make_node("Cast", [result + "_narrow"], [result], to=1))

                floats = [t.name for t in made.graph.initializer if t.data_type == 1]
                floats += [i.name for i in made.graph.input if i.type.tensor_type.elem_type == 1]
                for name in floats:
                    rounded(name, name + "_rounded")
                for node in made.graph.node:
                    node.input[:] = [n + "_rounded" if n in floats else n for n in node.input]
                    if node.op_type in ("Conv", "Relu", "GlobalAveragePool", "Gemm"):
                        result, node.output[0] = node.output[0], node.output[0] + "_wide"
                        nodes.append(node)
                        rounded(node.output[0], result)
                    else:
                        nodes.append(node)
                nodes = [onnx.NodeProto.FromString(n.SerializeToString()) for n in nodes]
                del made.graph.node[:]
                made.graph.node.extend(nodes)
                options = onnxruntime.SessionOptions()
                options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
                self.session = onnxruntime.InferenceSession(made.SerializeToString(), options)
                return self

            def run(self, feed):
                names = [o.name for o in self.session.get_outputs()]
                return dict(zip(names, self.session.run(names, feed)))
        """,
    )
    inputs(x=normal(6, 2, 3, 20, 20))
